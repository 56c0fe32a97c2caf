// RangeSweep and what goes by it: work on very many ranges of one partition whose effort follows
// what overlaps, and that may be done in steps, with others running in between.
//
// Plain forms of the same, by which it is tested: PartitionStore::apply_range_deletes says what is
// meant by settling inside one another, PartitionStore::strip by stripping.
//
// Values alone; nothing here waits. Ranges are borrowed and must neither move nor change meanwhile,
// but as said.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <absl/functional/function_ref.h>

#include "causality/clock.h"
#include "causality/dot_store.h"

namespace helenus::causality {

// Goes along ranges and knows which of them hold the place it has come to. A range opens where it
// begins and closes where it ends; those that are open lie in a heap, the first to end on top.
// Cost: O(log n) for each range, once, however many places are asked for.
class RangeSweep {
 public:
  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
  // Is told of each range that opens, and of each that closes.
  using OnChange = absl::FunctionRef<void(const RangeDelete&, bool opens)>;

  RangeSweep() = default;
  // Requires: ascending, as PartitionStore has them. Their contexts may change.
  explicit RangeSweep(std::span<const RangeDelete> deleted_ranges)
      : deleted_ranges_(deleted_ranges) {}

  // Goes on to `place`, opening and closing `steps_max` ranges at most; returns whether it is
  // there. Requires: no place before the last one.
  bool advance(const RowKey& place, std::size_t steps_max, OnChange on_change);
  bool advance(const RowKey& place, std::size_t steps_max = kNoLimit) {
    return advance(place, steps_max, [](const RangeDelete&, bool) {});
  }

  // All below require: it is where it was sent.
  // Those that hold the place, in no order.
  std::span<const RangeDelete* const> open() const { return open_; }
  // Those that begin behind the place, ascending.
  std::span<const RangeDelete> behind() const { return deleted_ranges_.subspan(next_); }

 private:
  std::span<const RangeDelete> deleted_ranges_;
  std::size_t next_ = 0;
  std::vector<const RangeDelete*> open_;
};

// PartitionStore::apply_range_deletes in steps. What it leaves empty is for the owner to take out.
class RangesInside {
 public:
  // How many of the ranges around another are asked.
  static constexpr std::size_t kAroundMax = 64;

  // Requires: ascending. Changes their stores.
  explicit RangesInside(std::span<RangeDelete> deleted_ranges);
  // Goes on with up to so many ranges, one at least; returns whether all are done.
  bool advance(std::size_t ranges_max);

 private:
  std::vector<RangeDelete*> order_;
  std::size_t next_ = 0;
  std::vector<const RangeDelete*> around_;
};

// How many versions of ranges a context may have to go on naming and yet be stripped. Where there
// are more, or more ranges than that overlap, it stays as it is: that is always allowed
// (CellStore::strip), the effort of each is bounded, and a context that named so many one by one
// would be larger than before. It is stripped by a merge that finds fewer.
inline constexpr std::size_t kSparedMax = 64;

// What PartitionStore::strip does to ranges, in steps, but for contexts of more than kSparedMax
// ranges. What it leaves empty is for the owner to take out.
class RangesStripping {
 public:
  // Requires: ascending; `known` outlives it. Changes their contexts.
  RangesStripping(std::span<RangeDelete> deleted_ranges, const Clock& known)
      : deleted_ranges_(deleted_ranges), known_(known), sweep_(deleted_ranges) {}
  // Goes on with up to so many ranges, one at least; returns whether all are done.
  bool advance(std::size_t ranges_max);

 private:
  // Whether there are few enough; they are in spared_ then.
  bool find_spared(const RangeDelete& range_delete);

  std::span<RangeDelete> deleted_ranges_;
  const Clock& known_;
  RangeSweep sweep_;
  std::size_t next_ = 0;
  std::vector<Dot> spared_;
};

}  // namespace helenus::causality
