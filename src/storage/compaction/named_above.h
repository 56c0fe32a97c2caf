// NamedAbove: what the entries of a file name that the base of its tablet's clock does not cover,
// gathered while the file is written (SstableMetadata::named_above).
//
// Invariant: every dot that an entry of the tablet names, as the dot of a version or in a context,
// is in the base that add() was given for it or in by_tablet(); a tablet for which that would take
// too much is not in by_tablet() at all.
//
// Usually there is nothing: a file is written of what was seen without a gap. What is left are dots
// that arrived out of order, and those in contexts of clients who had read from others.
#pragma once

#include <cstddef>

#include <absl/container/btree_map.h>

#include "causality/clock.h"
#include "storage/entry/entry.h"
#include "storage/manifest/knowledge.h"

namespace helenus::storage {

class NamedAbove {
 public:
  // Of one tablet, in ranges of dots and closed actors; beyond it nothing is said of the tablet.
  static constexpr std::size_t kRangesMax = 64;

  // `known`: what goes into the file as known at its last freeze; null if nothing does.
  void add(TabletId tablet, const Entry& entry, const TabletKnowledge* known);
  absl::btree_map<TabletId, causality::Clock> by_tablet() const;

 private:
  struct Named {
    causality::Clock above;
    bool too_much = false;
  };
  static void add_store(Named& named, const causality::CellStore& store,
                        const causality::Clock& base);

  absl::btree_map<TabletId, Named> named_;
};

}  // namespace helenus::storage
