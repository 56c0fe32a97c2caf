// Knowledge: what the tablets of a shard knew at an instant, and the metadata of an sstable that
// carries it.
//
// A merge may strip contexts and drop stable versions only by what was known at an instant at which
// it holds every fragment of the key (S3; causality::merge_instant). For most keys that instant is
// now; for those that newer fragments outside the merge hold, it is the freeze of its newest input,
// so every sstable remembers what was known at its newest freeze. Never a later knowledge: the
// fragments that came with it are not in the merge.
#pragma once

#include <cstdint>
#include <optional>

#include <absl/container/btree_map.h>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/clock.h"
#include "causality/resolve.h"
#include "storage/manifest/garbage.h"
#include "storage/manifest/manifest.h"

namespace helenus::storage {

struct TabletKnowledge {
  causality::Clock base;  // the contiguous base of its clock
  causality::Stability stable;

  // Whether it knows all that the other one knows.
  bool covers(const TabletKnowledge& other) const;
};

using Knowledge = absl::btree_map<TabletId, TabletKnowledge>;

// What the engine keeps in an sstable besides its entries.
struct SstableMetadata {
  TableId table;
  FreezeNumber freeze_first;
  FreezeNumber freeze_last;
  // How many of its entries are range deletes. Where there are none, reading a row needs no
  // look for them.
  std::uint64_t deleted_ranges = 0;
  // How many cells and ranges it has, and what of them will be garbage.
  std::uint64_t cells = 0;
  GarbageByTablet garbage = {};
  // The largest timestamp of any version in it.
  causality::Timestamp newest_write = causality::kTimestampMin;
  Knowledge at_last_freeze = {};
  // By tablet, what its entries name above the base of `at_last_freeze`: dots of versions and of
  // contexts. A tablet is missing if that is not known, or too long to be kept.
  absl::btree_map<TabletId, causality::Clock> named_above = {};

  // No entry of the tablet in the file names a dot that is not in here; nothing if that is not
  // known. Whoever has seen a superset of it has superseded, with one context, all that the file
  // can say of a row (superseded_files.h).
  std::optional<causality::Clock> named(TabletId tablet) const;
  // What it has of counters may take the place of what older files have (causality/counter.h).
  bool is_copy = false;
};

base::Bytes encode(const SstableMetadata& metadata);
// Errors: corrupt; unsupported (another version).
base::Result<SstableMetadata> decode_sstable_metadata(const base::Bytes& bytes);

}  // namespace helenus::storage
