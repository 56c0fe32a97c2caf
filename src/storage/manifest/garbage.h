// Garbage: what of an sstable may be dropped one day, counted when the file is written.
//
// A delete is kept until it is stable, a value that expires, and a delete that is remembered, until
// it is stable and expired for everybody (causality::droppable). Increments of a counter are folded
// when they are stable (causality::fold): all but one of a cell are garbage then. Nothing happens
// to a file at that moment, and to a table without new writes nothing happens at all: by these
// figures the engine finds out that merging it would give space back (compaction_picker.h,
// CollectionOptions).
//
// Figures decide when to merge, never what to drop. They are small and err late: an expiry is
// rounded up, and a tablet's garbage counts only when all of it is stable.
#pragma once

#include <cstddef>
#include <cstdint>

#include <absl/container/btree_map.h>

#include "base/codec.h"
#include "base/result.h"
#include "causality/clock.h"
#include "causality/resolve.h"
#include "storage/entry/entry.h"
#include "storage/manifest/manifest.h"

namespace helenus::storage {

// How many values expire when, in a bounded number of steps that widen as times lie further apart.
class ExpiryHistogram {
 public:
  static constexpr std::size_t kStepsMax = 32;

  void add(causality::WallTime expires);
  // Those that have surely expired.
  std::uint64_t expired_by(causality::WallTime now) const;
  bool empty() const { return counts_.empty(); }
  friend bool operator==(const ExpiryHistogram&, const ExpiryHistogram&) = default;

 private:
  friend void encode(base::Encoder& out, const ExpiryHistogram& histogram);
  friend ExpiryHistogram decode_expiry_histogram(base::Decoder& in);

  // The last second of the step it lies in.
  std::int64_t step_of(std::int64_t second) const {
    return second | ((std::int64_t{1} << step_bits_) - 1);
  }
  void widen();

  std::uint8_t step_bits_ = 0;  // a step is 2^step_bits_ seconds
  absl::btree_map<std::int64_t, std::uint64_t> counts_;
};

void encode(base::Encoder& out, const ExpiryHistogram& histogram);
// Fails the decoder on what cannot be.
ExpiryHistogram decode_expiry_histogram(base::Decoder& in);

// What may be dropped by somebody's knowledge.
struct Collectable {
  std::uint64_t expired = 0;
  std::uint64_t deletes = 0;
  std::uint64_t increments = 0;
  Collectable& operator+=(const Collectable& other) {
    expired += other.expired;
    deletes += other.deletes;
    increments += other.increments;
    return *this;
  }
  bool empty() const { return expired == 0 && deletes == 0 && increments == 0; }
};

// What a file has of one tablet.
struct Garbage {
  std::uint64_t deletes = 0;  // empty versions, ranges, and contexts with nothing beside them
  ExpiryHistogram expiring;   // values, and deletes that are remembered
  // Beside other versions of their cells, or with names of operations.
  std::uint64_t increments = 0;
  // No dot that must be stable is above these: of each actor all counters up to the largest.
  causality::Clock up_to;

  bool empty() const { return deletes == 0 && expiring.empty() && increments == 0; }
  Collectable collectable(const causality::Stability& stable) const;
  friend bool operator==(const Garbage&, const Garbage&) = default;
};

using GarbageByTablet = absl::btree_map<TabletId, Garbage>;

// The largest timestamp of its versions; kTimestampMin if it has none.
causality::Timestamp newest_write(const Entry& entry);
// Counts what an entry of the tablet has of it; returns how many cells and ranges there are at all.
std::uint64_t count_garbage(const Entry& entry, Garbage& garbage);

}  // namespace helenus::storage
