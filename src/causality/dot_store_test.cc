#include "causality/dot_store.h"

#include <gtest/gtest.h>

#include "causality/generators.h"
#include "causality/resolve.h"

namespace helenus::causality {
namespace {

using testing::any_cell;
using testing::any_clock;
using testing::any_dot;
using testing::version_of;

const Dot kFirst{actor_of(1, 1), 1};
const Dot kSecond{actor_of(2, 1), 1};

CellStore cell_with(const Dot& dot) {
  return CellStore({version_of(dot, false)}, {});
}

TEST(CellStore, AWriteThatHasSeenAnotherReplacesIt) {
  CellStore cell = cell_with(kFirst);
  Clock seen;
  seen.add(kFirst);
  cell.discard(seen);
  cell.add(version_of(kSecond, false));
  ASSERT_EQ(cell.versions().size(), 1U);
  EXPECT_EQ(cell.versions()[0].dot, kSecond);
  cell.absorb(cell_with(kFirst));
  EXPECT_EQ(cell.versions().size(), 1U) << "the superseded version arrived again and came back";
}

TEST(CellStore, ConcurrentWritesStaySiblings) {
  EXPECT_EQ(sync(cell_with(kFirst), cell_with(kSecond)).versions().size(), 2U);
}

TEST(CellStore, AnAbsentVersionUnderAClockThatSawItIsADelete) {
  Clock clock;
  clock.add(kFirst);
  const CellStore nothing = fill({}, clock);
  EXPECT_TRUE(sync(cell_with(kFirst), nothing).versions().empty());
}

TEST(CellStore, ALiveVersionOfAClosedActorSurvivesFillAndSync) {
  Clock clock;
  clock.close(kFirst.actor);
  const CellStore sent = fill(cell_with(kFirst), clock);
  ASSERT_EQ(sent.versions().size(), 1U);
  EXPECT_FALSE(sent.context().contains(kFirst));
  EXPECT_TRUE(sent.context().contains({kFirst.actor, 2})) << "its other dots are superseded";
  EXPECT_EQ(sync(sent, cell_with(kFirst)).versions().size(), 1U);
  EXPECT_TRUE(sync(sent, cell_with({kFirst.actor, 2})).find({kFirst.actor, 2}) == nullptr);
}

TEST(CellStoreDeathTest, ADotIsNeverInItsOwnContext) {
  Clock context;
  context.add(kFirst);
  EXPECT_DEATH(CellStore({version_of(kFirst, false)}, context), "own context");
}

TEST(RowContext, NamesOnlyDotsThatEveryCellReflects) {
  // A write X of the first cell had seen W, a write of both cells that has not arrived here.
  const Dot w{actor_of(1, 1), 1};
  const Dot x{actor_of(2, 1), 1};
  Clock seen_by_x;
  seen_by_x.add(w);
  const CellStore first({version_of(x, false)}, seen_by_x);
  const CellStore second;
  Clock clock;
  clock.add(x);
  const CellStore* const both[] = {&first, &second};
  EXPECT_FALSE(context_of_read(both, clock).contains(w))
      << "a write of both cells would overwrite W's second cell unseen";
  const CellStore* const one[] = {&first};
  EXPECT_TRUE(context_of_read(one, clock).contains(w));
}

TEST(CellStore, OfVeryManyVersionsMergesFillsAndForgetsInOneRunOverThem) {
  // Odd counters on one side, even ones on the other: increments that were not folded yet.
  constexpr Counter kVersions = 20'000;
  Versions odd;
  Versions even;
  std::vector<Dot> dots;
  Clock clock;
  for (Counter counter = 1; counter <= kVersions; ++counter) {
    const Dot dot{actor_of(1, 1), counter};
    (counter % 2 == 1 ? odd : even).push_back(version_of(dot, false));
    if (counter % 2 == 1) dots.push_back(dot);
    clock.add(dot);
  }
  CellStore cell = sync(CellStore(odd, {}), CellStore(even, {}));
  ASSERT_EQ(cell.versions().size(), kVersions);
  EXPECT_TRUE(std::ranges::is_sorted(cell.versions(), {}, &Version::dot));
  EXPECT_TRUE(fill(cell, clock).context().empty());
  EXPECT_EQ(fill(CellStore(even, {}), clock).context().dots_above_base(), kVersions / 2 - 1);
  cell.forget(dots);
  EXPECT_EQ(cell.versions().size(), even.size());
}

TEST(PartitionStore, IsEmptyOnceItsLastVersionIsForgotten) {
  PartitionStore partition;
  const auto row = base::Bytes::copy_of("a");
  partition.absorb(row, ColumnId{0}, cell_with(kFirst));
  partition.forget(row, ColumnId{0}, std::vector{kFirst});
  EXPECT_TRUE(partition.empty());
}

TEST(RowRange, OfARowIsThatRowAlone) {
  const RowRange row_range = range_of_row(base::Bytes::copy_of("b"));
  EXPECT_TRUE(row_range.contains(base::Bytes::copy_of("b")));
  EXPECT_FALSE(row_range.contains(base::Bytes::copy_of("a")));
  EXPECT_FALSE(row_range.contains(base::Bytes::copy_of("ba")));
  EXPECT_TRUE(RowRange{}.contains(row_range));
  EXPECT_FALSE(row_range.contains(RowRange{}));
  const RowRange up_to_b{std::nullopt, base::Bytes::copy_of("b")};
  EXPECT_TRUE(row_range.overlaps(RowRange{}) && RowRange{}.overlaps(row_range) &&
              row_range.overlaps(row_range));
  EXPECT_FALSE(row_range.overlaps(up_to_b) || up_to_b.overlaps(row_range)) << "they only touch";
}

TEST(PartitionStore, ARangeDeleteHoldsForEveryCellInItsRange) {
  PartitionStore partition;
  const auto row = [](const char* key) { return base::Bytes::copy_of(key); };
  partition.absorb(row("a"), ColumnId{0}, cell_with(kFirst));
  partition.absorb(row("c"), ColumnId{0}, cell_with(kFirst));
  Clock seen;
  seen.add(kFirst);
  partition.absorb(RangeDelete{{row("b"), row("d")}, CellStore({}, seen)});
  EXPECT_EQ(partition.cell(row("a"), ColumnId{0}).versions().size(), 1U);
  EXPECT_TRUE(partition.cell(row("c"), ColumnId{0}).versions().empty());
  EXPECT_EQ(partition.cell(row("c"), ColumnId{7}).context(), seen);
}

TEST(CellStore, PrintsForPeople) {
  Version version = version_of(kFirst, false);
  version.value = base::Bytes::copy_of("hello");
  version.timestamp = Timestamp{5};
  version.expires.reset();
  EXPECT_EQ(fmt::format("{}", CellStore({version}, {})), "[1.1:1@5='hello'] after {}");
  EXPECT_EQ(fmt::format("{}", RowRange{}), "rows all up to the end");
}

// One delete after another of the rows before a mark that moves on, each of which has seen all
// before it.
PartitionStore nested_deletes(int count) {
  PartitionStore partition;
  Clock seen;
  for (int mark = 1; mark <= count; ++mark) {
    Version version;
    version.kind = VersionKind::deletion;
    version.timestamp = Timestamp{mark};
    const Clock context = seen;
    version.dot = event(seen, actor_of(1, 1));
    const auto to = base::Bytes::copy_of(fmt::format("{:06}", mark));
    partition.absorb(RangeDelete{{std::nullopt, to}, CellStore({version}, context)});
  }
  return partition;
}

TEST(PartitionStore, OfDeletesInsideOneThatHasSeenThemOneIsLeft) {
  PartitionStore partition = nested_deletes(20'000);
  ASSERT_EQ(partition.range_deletes().size(), 20'000U);
  partition.apply_range_deletes();
  ASSERT_EQ(partition.range_deletes().size(), 1U);
  EXPECT_EQ(partition.range_deletes()[0].range.to, base::Bytes::copy_of("020000"));
  EXPECT_EQ(partition.range_deletes()[0].store.versions()[0].dot.counter, 20'000U);
}

TEST(PartitionStore, ADeleteInsideOneThatHasNotSeenItStays) {
  PartitionStore partition;
  const auto row = [](const char* key) { return base::Bytes::copy_of(key); };
  Clock other;
  other.add(Dot{actor_of(3, 1), 1});
  partition.absorb(RangeDelete{{row("a"), row("z")}, CellStore({version_of(kFirst, true)}, other)});
  partition.absorb(RangeDelete{{row("b"), row("c")}, cell_with(kSecond)});
  const PartitionStore before = partition;
  partition.apply_range_deletes();
  EXPECT_EQ(partition, before);
}

// The version goes, and what its context names beyond the outer one does not.
TEST(PartitionStore, ADeleteInsideAnotherLeavesWhatTheOtherHasNotSeen) {
  const auto row = [](const char* key) { return base::Bytes::copy_of(key); };
  const Dot unseen_by_outer{actor_of(3, 1), 1};
  Clock inner_context;
  inner_context.add(unseen_by_outer);
  Clock outer_context;
  outer_context.add(kFirst);
  PartitionStore partition;
  partition.absorb(
      RangeDelete{{row("b"), row("c")}, CellStore({version_of(kFirst, true)}, inner_context)});
  partition.absorb(
      RangeDelete{{row("a"), row("d")}, CellStore({version_of(kSecond, true)}, outer_context)});
  partition.apply_range_deletes();
  ASSERT_EQ(partition.range_deletes().size(), 2U);
  EXPECT_TRUE(partition.range_deletes()[1].store.versions().empty());
  partition.absorb(row("b"), ColumnId{0}, cell_with(unseen_by_outer));
  EXPECT_EQ(partition.cell(row("b"), ColumnId{0}).find(unseen_by_outer), nullptr)
      << "what the inner delete took away came back";
}

RC_GTEST_PROP(PartitionStoreLaws, SettlingRangesChangesNoCellOfItNorOfAnyMerge, ()) {
  const auto any_partition = [] {
    PartitionStore partition;
    const int deleted_ranges = *rc::gen::inRange(0, 6);
    for (int i = 0; i < deleted_ranges; ++i) {
      partition.absorb(RangeDelete{*testing::any_range(), *any_cell()});
    }
    const int cells = *rc::gen::inRange(0, 3);
    for (int i = 0; i < cells; ++i) partition.absorb(testing::any_row(), ColumnId{0}, *any_cell());
    return partition;
  };
  const PartitionStore whole = any_partition();
  const PartitionStore other = any_partition();
  PartitionStore settled = whole;
  settled.apply_range_deletes();
  RC_CLASSIFY(settled.range_deletes().size() < whole.range_deletes().size(), "a range is gone");
  PartitionStore merged = whole;
  merged.absorb(other);
  PartitionStore merged_after = settled;
  merged_after.absorb(other);
  const Clock clock = base(*any_clock());
  PartitionStore stripped = whole;
  stripped.strip(clock);
  PartitionStore stripped_after = settled;
  stripped_after.strip(clock);
  for (const char* text : {"", "a", "aa", "b", "c", "cc", "d"}) {
    const auto row = base::Bytes::copy_of(text);
    RC_ASSERT(settled.cell(row, ColumnId{0}) == whole.cell(row, ColumnId{0}));
    RC_ASSERT(merged_after.cell(row, ColumnId{0}) == merged.cell(row, ColumnId{0}));
    const CellStore want = stripped.cell(row, ColumnId{0});
    const CellStore got = stripped_after.cell(row, ColumnId{0});
    RC_ASSERT(std::ranges::equal(got.versions(), want.versions()));
    RC_ASSERT(fill(got, clock) == fill(want, clock));
  }
}

RC_GTEST_PROP(CellStoreLaws, SyncIsCommutativeAssociativeIdempotent, ()) {
  const CellStore a = *any_cell();
  const CellStore b = *any_cell();
  const CellStore c = *any_cell();
  RC_ASSERT(sync(a, b) == sync(b, a));
  RC_ASSERT(sync(a, sync(b, c)) == sync(sync(a, b), c));
  RC_ASSERT(sync(a, a) == a);
  RC_ASSERT(sync(a, {}) == a);
}

RC_GTEST_PROP(CellStoreLaws, DiscardIsSyncWithNothingThatHasSeenIt, ()) {
  CellStore cell = *any_cell();
  const Clock seen = *any_clock();
  const CellStore want = sync(cell, CellStore({}, seen));
  cell.discard(seen);
  RC_ASSERT(cell == want);
  cell.discard(seen);
  RC_ASSERT(cell == want);
}

RC_GTEST_PROP(CellStoreLaws, FillAfterStripLosesNothing, ()) {
  const CellStore cell = *any_cell();
  const Clock known = base(*any_clock());
  const Clock later = join(known, *any_clock());
  // A replica's clock never claims a version that is not there: the live ones are what is left.
  RC_ASSERT(fill(strip(cell, known), later) == fill(cell, later));
}

RC_GTEST_PROP(CellStoreLaws, AnObjectIsTakenAlikeByAStrippedAndAnUnstrippedStore, ()) {
  const Clock clock = *any_clock(false);
  // What the clock has seen is alive here, or superseded here.
  const CellStore local = fill(*any_cell(true, false), clock);
  const CellStore object = *any_cell(true, false);
  const CellStore direct = sync(local, object);
  const CellStore taken = sync(strip(local, base(clock)), unseen(object, clock));
  RC_ASSERT(std::ranges::equal(taken.versions(), direct.versions()));
}

RC_GTEST_PROP(CellStoreLaws, StripNeverChangesWhatAReaderSees, ()) {
  const CellStore cell = *any_cell();
  const CellStore stripped = strip(cell, base(*any_clock()));
  RC_ASSERT(std::ranges::equal(stripped.versions(), cell.versions()));
  for (const Policy policy : {Policy::lww, Policy::siblings}) {
    RC_ASSERT(visible(stripped, policy, WallTime{3}).size() ==
              visible(cell, policy, WallTime{3}).size());
  }
}

RC_GTEST_PROP(CellStoreLaws, FilledStoresMeetAsThePaperSaysObjectsDo, ()) {
  const CellStore a = *any_cell(true, false);
  const CellStore b = *any_cell(true, false);
  const Clock clock_a = join(*any_clock(), a.context());
  const Clock clock_b = join(*any_clock(), b.context());
  const CellStore met = sync(fill(a, clock_a), fill(b, clock_b));
  for (const Dot& dot : testing::universe()) {
    const bool in_a = a.find(dot) != nullptr;
    const bool in_b = b.find(dot) != nullptr;
    const bool survives =
        (in_a && in_b) || (in_a && !clock_b.contains(dot)) || (in_b && !clock_a.contains(dot));
    RC_ASSERT((met.find(dot) != nullptr) == survives);
  }
}

RC_GTEST_PROP(CellStoreLaws, ContextOfARowReadIsReflectedInEveryCell, ()) {
  const CellStore a = *any_cell();
  const CellStore b = *any_cell();
  const Clock clock = *any_clock();
  const CellStore* const cells[] = {&a, &b};
  const Clock context = context_of_read(cells, clock);
  for (const Dot& dot : testing::universe()) {
    const auto reflects = [&](const CellStore& cell) {
      return cell.find(dot) != nullptr || cell.context().contains(dot);
    };
    RC_ASSERT(context.contains(dot) == (clock.contains(dot) || (reflects(a) && reflects(b))));
  }
}

}  // namespace
}  // namespace helenus::causality
