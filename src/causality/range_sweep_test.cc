#include "causality/range_sweep.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "causality/generators.h"

namespace helenus::causality {
namespace {

using testing::any_cell;
using testing::any_clock;
using testing::any_range;

PartitionStore any_ranges() {
  PartitionStore partition;
  const int deleted_ranges = *rc::gen::inRange(0, 9);
  for (int i = 0; i < deleted_ranges; ++i) partition.absorb(RangeDelete{*any_range(), *any_cell()});
  return partition;
}

std::vector<RangeDelete> copy_of(std::span<const RangeDelete> deleted_ranges) {
  return {deleted_ranges.begin(), deleted_ranges.end()};
}

// Does all of it, so many ranges at a time.
template <class Work>
void advance_by(Work&& work, std::size_t step) {
  while (!work.advance(step)) {
  }
}

PartitionStore without_empty(const std::vector<RangeDelete>& deleted_ranges) {
  PartitionStore partition;
  for (const RangeDelete& range_delete : deleted_ranges) partition.absorb(range_delete);
  return partition;
}

RC_GTEST_PROP(RangeSweepLaws, OpenAreTheRangesThatHoldThePlace, ()) {
  const PartitionStore partition = any_ranges();
  const auto deleted_ranges = partition.range_deletes();
  const auto step = *rc::gen::inRange<std::size_t>(1, 4);
  RangeSweep sweep(deleted_ranges);
  std::set<const RangeDelete*> told;
  const auto on_change = [&](const RangeDelete& range_delete, bool opens) {
    const bool changed = opens ? told.insert(&range_delete).second : told.erase(&range_delete) == 1;
    RC_ASSERT(changed);
  };
  for (const char* text : {"", "a", "aa", "b", "c", "cc", "d"}) {
    const auto place = base::Bytes::copy_of(text);
    while (!sweep.advance(place, step, on_change)) {
    }
    std::vector<const RangeDelete*> want;
    for (const RangeDelete& range_delete : deleted_ranges) {
      if (range_delete.range.contains(place)) want.push_back(&range_delete);
    }
    std::vector<const RangeDelete*> open(sweep.open().begin(), sweep.open().end());
    std::ranges::sort(open);
    RC_ASSERT(open == want);
    RC_ASSERT(std::ranges::equal(told, want));
    const auto begins_behind = [&](const RangeDelete& range_delete) {
      return range_delete.range.from && place < *range_delete.range.from;
    };
    RC_ASSERT(static_cast<std::size_t>(std::ranges::count_if(deleted_ranges, begins_behind)) ==
              sweep.behind().size());
  }
}

RC_GTEST_PROP(RangeSweepLaws, StrippingInStepsIsStrippingAsThePartitionDoes, ()) {
  const PartitionStore partition = any_ranges();
  const Clock known = base(*any_clock());
  std::vector<RangeDelete> deleted_ranges = copy_of(partition.range_deletes());
  advance_by(RangesStripping(deleted_ranges, known), *rc::gen::inRange<std::size_t>(1, 4));
  PartitionStore plain = partition;
  plain.strip(known);
  std::size_t met = 0;
  for (const RangeDelete& range_delete : partition.range_deletes()) {
    met += std::max<std::size_t>(range_delete.store.versions().size(), 1);
  }
  RC_CLASSIFY(met <= kSparedMax, "few");
  if (met <= kSparedMax) RC_ASSERT(without_empty(deleted_ranges) == plain);
  for (const char* text : {"", "a", "aa", "b", "c", "cc", "d"}) {
    const CellStore got =
        without_empty(deleted_ranges).cell(base::Bytes::copy_of(text), ColumnId{0});
    const CellStore want = plain.cell(base::Bytes::copy_of(text), ColumnId{0});
    RC_ASSERT(std::ranges::equal(got.versions(), want.versions()));
    RC_ASSERT(got.context().covers(want.context()));
    RC_ASSERT(fill(got, known) == fill(want, known));
  }
}

RC_GTEST_PROP(RangeSweepLaws, SettlingInStepsIsSettlingAtOnce, ()) {
  const PartitionStore partition = any_ranges();
  std::vector<RangeDelete> deleted_ranges = copy_of(partition.range_deletes());
  advance_by(RangesInside(deleted_ranges), *rc::gen::inRange<std::size_t>(1, 4));
  PartitionStore at_once = partition;
  at_once.apply_range_deletes();
  RC_ASSERT(without_empty(deleted_ranges) == at_once);
}

// Deletes of a window that moves on, each of which has seen all before it.
std::vector<RangeDelete> windows(int count, int width) {
  std::vector<RangeDelete> deleted_ranges;
  Clock seen;
  for (int i = 0; i < count; ++i) {
    Version version;
    version.kind = VersionKind::deletion;
    version.timestamp = Timestamp{i};
    const Clock context = seen;
    version.dot = event(seen, actor_of(1, 1));
    deleted_ranges.push_back({{base::Bytes::copy_of(fmt::format("{:06}", i)),
                               base::Bytes::copy_of(fmt::format("{:06}", i + width))},
                              CellStore({version}, context)});
  }
  return deleted_ranges;
}

Clock clock_of(Counter counter) {
  Clock clock;
  clock.add(actor_of(1, 1), CounterSet::up_to(counter));
  return clock;
}

TEST(RangesStripping, GoesOnNamingTheVersionsOfRangesThatOverlap) {
  std::vector<RangeDelete> deleted_ranges = windows(1000, 10);
  const Clock known = clock_of(1000);
  advance_by(RangesStripping(deleted_ranges, known), 7);
  const Clock& context = deleted_ranges[500].store.context();
  EXPECT_TRUE(context.contains({actor_of(1, 1), 500})) << "the one before it overlaps";
  EXPECT_TRUE(context.contains({actor_of(1, 1), 492}));
  EXPECT_FALSE(context.contains({actor_of(1, 1), 491})) << "which ends where it begins";
}

// Comparing each with all would take minutes.
TEST(RangesStripping, OfVeryManyRangesThatOverlapLeavesTheContextsAsTheyAre) {
  constexpr int kRangeDeletes = 50'000;
  std::vector<RangeDelete> deleted_ranges = windows(kRangeDeletes, kRangeDeletes);
  const Clock known = clock_of(kRangeDeletes);
  advance_by(RangesStripping(deleted_ranges, known), 64);
  EXPECT_EQ(deleted_ranges.back().store.context(), clock_of(kRangeDeletes - 1));
}

TEST(RangesStripping, StripsTheContextOfOneAmongFewThatHasNoVersionOfItsOwn) {
  std::vector<RangeDelete> deleted_ranges{{{}, CellStore({}, clock_of(9))}};
  advance_by(RangesStripping(deleted_ranges, clock_of(5)), 1);
  EXPECT_FALSE(deleted_ranges[0].store.context().contains({actor_of(1, 1), 5}));
  EXPECT_TRUE(deleted_ranges[0].store.context().contains({actor_of(1, 1), 6}));
}

}  // namespace
}  // namespace helenus::causality
