#include "causality/resolve.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "causality/generators.h"

namespace helenus::causality {
namespace {

using testing::any_cell;
using testing::any_clock;

const ActorId kActor = actor_of(1, 1);

Version value_at(Counter counter, std::int64_t timestamp, std::string_view value) {
  Version version;
  version.dot = {kActor, counter};
  version.timestamp = Timestamp{timestamp};
  version.value = base::Bytes::copy_of(value);
  return version;
}
Version empty_at(Counter counter, std::int64_t timestamp) {
  Version version = value_at(counter, timestamp, "");
  version.kind = VersionKind::deletion;
  return version;
}
Stability stable_up_to(Counter counter, std::int64_t wall = 0) {
  Stability stable;
  stable.dots.add(kActor, CounterSet::up_to(counter));
  stable.wall = WallTime{wall};
  return stable;
}
std::vector<Dot> dots(std::initializer_list<Counter> counters) {
  std::vector<Dot> all;
  for (const Counter counter : counters) all.push_back({kActor, counter});
  return all;
}

TEST(LastWriterWins, LargerTimestampThenEmptyThenBytesThenDot) {
  EXPECT_TRUE(defeats(value_at(1, 2, "a"), value_at(2, 1, "z")) > 0);
  EXPECT_TRUE(defeats(empty_at(1, 2), value_at(2, 2, "z")) > 0);
  EXPECT_TRUE(defeats(value_at(1, 2, "b"), value_at(2, 2, "a")) > 0);
  EXPECT_TRUE(defeats(value_at(2, 2, "a"), value_at(1, 2, "a")) > 0);
  const auto brief = [](std::uint32_t dot, const char* value, std::int64_t expires) {
    Version version = value_at(dot, 2, value);
    version.expires = WallTime{expires};
    return version;
  };
  EXPECT_TRUE(defeats(brief(1, "a", 100), value_at(2, 2, "z")) > 0) << "one that expires stays";
  EXPECT_TRUE(defeats(brief(1, "a", 200), brief(2, "z", 100)) > 0) << "the later expiry";
  EXPECT_TRUE(defeats(brief(1, "b", 100), brief(2, "a", 100)) > 0);
  EXPECT_TRUE(defeats(empty_at(1, 2), brief(2, "z", 100)) > 0);
}

TEST(LastWriterWins, AnEmptyWinnerShowsNothing) {
  const CellStore cell({value_at(1, 5, "a"), empty_at(2, 6)}, {});
  EXPECT_TRUE(visible(cell, Policy::lww, WallTime{0}).empty());
}

TEST(Siblings, ShowEveryValue) {
  const CellStore cell({value_at(1, 5, "a"), value_at(2, 6, "b")}, {});
  EXPECT_EQ(visible(cell, Policy::siblings, WallTime{0}).size(), 2U);
}

TEST(Expiry, HidesAVersionWithoutUncoveringWhatItDefeats) {
  Version brief = value_at(2, 6, "b");
  brief.expires = WallTime{100};
  const CellStore cell({value_at(1, 5, "a"), brief}, {});
  EXPECT_EQ(visible(cell, Policy::lww, WallTime{99})[0]->dot.counter, 2U);
  EXPECT_TRUE(visible(cell, Policy::lww, WallTime{100}).empty());
  EXPECT_EQ(visible(cell, Policy::siblings, WallTime{100}).size(), 1U);
}

TEST(Stability, IsWhatEveryMemberHasWithoutAGap) {
  Clock own;
  own.add(DotRange{kActor, 1, 5});
  own.add(Dot{kActor, 9});
  Clock peer;
  peer.add(DotRange{kActor, 1, 3});
  peer.add(Dot{kActor, 5});
  const std::optional<Watermark> watermarks[] = {Watermark{peer, WallTime{40}}};
  const Stability stable = stability(own, WallTime{50}, watermarks);
  EXPECT_EQ(stable.dots.base_of(kActor), 3U);
  EXPECT_EQ(stable.dots.dots_above_base(), 0U);
  EXPECT_EQ(stable.wall, WallTime{40});
}

TEST(Stability, IsNothingWhileAMemberWasNotFullyPulledFrom) {
  Clock own;
  own.add(DotRange{kActor, 1, 5});
  const std::optional<Watermark> watermarks[] = {Watermark{own, WallTime{40}}, std::nullopt};
  const Stability stable = stability(own, WallTime{50}, watermarks);
  EXPECT_TRUE(stable.dots.empty());
  EXPECT_FALSE(stable.wall);
}

TEST(Drop, AnEmptyVersionGoesWhenStableWithAllItDefeats) {
  const CellStore cell({value_at(1, 5, "a"), empty_at(2, 6), value_at(3, 7, "c")}, {});
  EXPECT_EQ(droppable(cell, Policy::lww, stable_up_to(2)), dots({1, 2}));
}

TEST(Drop, NothingGoesBeforeItIsStable) {
  const CellStore cell({value_at(1, 5, "a"), empty_at(2, 6)}, {});
  EXPECT_TRUE(droppable(cell, Policy::lww, stable_up_to(0)).empty());
  EXPECT_EQ(droppable(cell, Policy::lww, stable_up_to(1)), dots({1})) << "the stable loser goes";
}

TEST(Drop, TheVisibleVersionStays) {
  const CellStore cell({value_at(1, 5, "a"), value_at(2, 6, "b")}, {});
  EXPECT_EQ(droppable(cell, Policy::lww, stable_up_to(2)), dots({1}));
  EXPECT_TRUE(droppable(cell, Policy::siblings, stable_up_to(2)).empty());
}

TEST(Drop, AnExpiredVersionWaitsForTheSmallestWallClockOfAll) {
  Version brief = value_at(1, 5, "a");
  brief.expires = WallTime{100};
  const CellStore cell({brief}, {});
  for (const Policy policy : {Policy::lww, Policy::siblings}) {
    EXPECT_TRUE(droppable(cell, policy, stable_up_to(1, 99)).empty());
    EXPECT_EQ(droppable(cell, policy, stable_up_to(1, 100)), dots({1}));
  }
}

TEST(Drop, ADeleteThatIsRememberedWaitsForTheSmallestWallClockOfAll) {
  Version remembered = empty_at(2, 6);
  remembered.expires = WallTime{100};
  const CellStore cell({value_at(1, 5, "a"), remembered}, {});
  EXPECT_EQ(droppable(cell, Policy::lww, stable_up_to(2, 99)), dots({1})) << "what it hides goes";
  EXPECT_EQ(droppable(cell, Policy::lww, stable_up_to(2, 100)), dots({1, 2}));
  EXPECT_EQ(droppable(cell, Policy::lww, stable_up_to(1, 100)), dots({1})) << "it is not stable";
  EXPECT_TRUE(visible(cell, Policy::lww, WallTime{1000}).empty());
}

TEST(Drop, ARangeThatIsRememberedStaysAndTakesWhatItHidesAlong) {
  Version remembered = empty_at(3, 6);
  remembered.expires = WallTime{100};
  const auto row = [](const char* key) { return base::Bytes::copy_of(key); };
  PartitionStore partition;
  partition.absorb(row("a"), ColumnId{0}, CellStore({value_at(1, 5, "old")}, {}));
  partition.absorb(row("b"), ColumnId{0}, CellStore({value_at(2, 7, "new")}, {}));
  partition.absorb(RangeDelete{{}, CellStore({remembered}, {})});
  drop_stable(partition, Policy::lww, stable_up_to(3, 99));
  EXPECT_EQ(partition.rows().find(row("a")), partition.rows().end());
  EXPECT_EQ(partition.range_deletes().size(), 1U);
  EXPECT_FALSE(explicit_write_applies(partition.cell(row("c"), ColumnId{0}), kTimestampMin,
                                      value_at(4, 5, "late")));
  drop_stable(partition, Policy::lww, stable_up_to(3, 100));
  EXPECT_TRUE(partition.range_deletes().empty());
  EXPECT_NE(partition.rows().find(row("b")), partition.rows().end());
}

TEST(Drop, CounterVersionsStay) {
  const CellStore cell({value_at(1, 5, "a"), empty_at(2, 6)}, {});
  EXPECT_TRUE(droppable(cell, Policy::counter, stable_up_to(2)).empty());
}

TEST(Drop, ARangesEmptyVersionTakesWhatItDefeatsInEveryCellAlong) {
  const auto row = [](const char* key) { return base::Bytes::copy_of(key); };
  PartitionStore partition;
  partition.absorb(row("a"), ColumnId{0}, CellStore({value_at(1, 5, "old")}, {}));
  partition.absorb(row("b"), ColumnId{0}, CellStore({value_at(2, 7, "new")}, {}));
  partition.absorb(RangeDelete{{}, CellStore({empty_at(3, 6)}, {})});
  drop_stable(partition, Policy::lww, stable_up_to(3));
  EXPECT_TRUE(partition.cell(row("a"), ColumnId{0}).empty());
  EXPECT_EQ(partition.cell(row("b"), ColumnId{0}).versions().size(), 1U);
  EXPECT_TRUE(partition.range_deletes().empty());
}

TEST(Strip, ACellGoesOnNamingTheRangeDeleteItSupersedes) {
  // The range delete is stable and still here; a later write that saw it has a smaller timestamp.
  const auto row = base::Bytes::copy_of("a");
  PartitionStore partition;
  partition.absorb(RangeDelete{{}, CellStore({empty_at(1, 9)}, {})});
  Clock seen;
  seen.add(Dot{kActor, 1});
  partition.absorb(row, ColumnId{0}, CellStore({value_at(2, 3, "back")}, seen));
  ASSERT_EQ(visible(partition.cell(row, ColumnId{0}), Policy::lww, WallTime{0}).size(), 1U);
  partition.strip(stable_up_to(2).dots);
  EXPECT_EQ(visible(partition.cell(row, ColumnId{0}), Policy::lww, WallTime{0}).size(), 1U)
      << "the delete it had seen hides the write again";
}

TEST(Strip, ARangeDeleteGoesOnNamingTheOneItSupersedesInAPartOfItsRows) {
  const auto row = [](const char* key) { return base::Bytes::copy_of(key); };
  PartitionStore partition;
  partition.absorb(RangeDelete{{row("a"), row("c")}, CellStore({empty_at(1, 5)}, {})});
  Clock seen;
  seen.add(Dot{kActor, 1});
  partition.absorb(RangeDelete{{row("b"), row("d")}, CellStore({empty_at(2, 6)}, seen)});
  partition.strip(stable_up_to(2).dots);
  EXPECT_EQ(partition.cell(row("a"), ColumnId{0}).versions().size(), 1U);
  EXPECT_EQ(partition.cell(row("b"), ColumnId{0}).versions().size(), 1U)
      << "the superseded delete came back";
  // Once it has gone, nothing is left to be named.
  drop_stable(partition, Policy::lww, stable_up_to(2));
  partition.strip(stable_up_to(2).dots);
  EXPECT_TRUE(partition.empty());
}

TEST(ExplicitTimestamp, LeavesOutCellsThatKnowSomethingNewer) {
  const CellStore cell({value_at(1, 5, "m")}, {});
  EXPECT_TRUE(explicit_write_applies(cell, kTimestampMin, value_at(2, 6, "a")));
  EXPECT_FALSE(explicit_write_applies(cell, kTimestampMin, value_at(2, 4, "z")));
  EXPECT_FALSE(explicit_write_applies(cell, Timestamp{8}, value_at(2, 7, "z")))
      << "a superseded mutation that is unstable has a larger timestamp";
  EXPECT_FALSE(explicit_write_applies({{empty_at(1, 9)}, {}}, kTimestampMin, value_at(2, 8, "z")))
      << "a remembered delete beats an older explicit timestamp";
}

TEST(ExplicitTimestamp, AtEqualTimesEmptyBeatsValueAndThenTheLargerBytes) {
  const CellStore cell({value_at(1, 5, "m")}, {});
  const Timestamp floor{5};  // the version itself, unstable
  EXPECT_TRUE(explicit_write_applies(cell, floor, value_at(2, 5, "n")));
  EXPECT_TRUE(explicit_write_applies(cell, floor, empty_at(2, 5)));
  EXPECT_FALSE(explicit_write_applies(cell, floor, value_at(2, 5, "l")));
  EXPECT_FALSE(explicit_write_applies(cell, floor, value_at(2, 5, "m"))) << "it is there already";
  EXPECT_FALSE(explicit_write_applies({{empty_at(1, 5)}, {}}, floor, value_at(2, 5, "z")));
  EXPECT_FALSE(explicit_write_applies({}, floor, value_at(2, 5, "z")))
      << "of what was superseded only the timestamp is known";
}

RC_GTEST_PROP(ResolveLaws, DefeatsIsATotalOrder, ()) {
  const CellStore cell = *any_cell();
  for (const Version& a : cell.versions()) {
    for (const Version& b : cell.versions()) {
      RC_ASSERT((defeats(a, b) == 0) == (a.dot == b.dot));
      RC_ASSERT((defeats(a, b) > 0) == (defeats(b, a) < 0));
      for (const Version& c : cell.versions()) {
        if (defeats(a, b) > 0 && defeats(b, c) > 0) RC_ASSERT((defeats(a, c) > 0));
      }
    }
  }
}

RC_GTEST_PROP(ResolveLaws, DroppingChangesNothingAReaderSees, ()) {
  CellStore cell = *any_cell();
  const WallTime wall{*rc::gen::inRange<std::int64_t>(0, 12)};
  const Stability stable{base(*any_clock()), wall};
  const WallTime now{wall.value() + *rc::gen::inRange<std::int64_t>(0, 3)};
  for (const Policy policy : {Policy::lww, Policy::siblings}) {
    std::vector<Dot> before;
    for (const Version* version : visible(cell, policy, now)) before.push_back(version->dot);
    drop_stable(cell, policy, stable);
    std::vector<Dot> after;
    for (const Version* version : visible(cell, policy, now)) after.push_back(version->dot);
    RC_ASSERT(before == after);
  }
}

std::vector<Version> seen_in(const PartitionStore& partition) {
  std::vector<Version> seen;
  for (const char* row : {"a", "b", "c"}) {
    for (const std::uint32_t column : {0U, 1U}) {
      const CellStore cell = partition.cell(base::Bytes::copy_of(row), ColumnId{column});
      for (const Version* it : visible(cell, Policy::lww, WallTime{0})) seen.push_back(*it);
    }
  }
  return seen;
}

// Many of the deltas write cells inside the ranges that they delete.
RC_GTEST_PROP(ResolveLaws, DroppingCellsThenRangesChangesNothingAReaderSees, ()) {
  PartitionStore partition;
  for (const Dot& dot : *rc::gen::container<std::set<Dot>>(testing::any_dot())) {
    partition.absorb(fragment_of(testing::delta_of(dot), Policy::lww));
  }
  const Stability stable{base(*any_clock()), WallTime{0}};
  const std::vector<Version> before = seen_in(partition);
  // First in one cell alone, as by a merge that holds all of the cell but not of the range.
  const base::Bytes row = testing::any_row();
  for (const std::uint32_t column : {0U, 1U}) {
    const CellStore cell = partition.cell(row, ColumnId{column});
    partition.forget(row, ColumnId{column}, droppable(cell, Policy::lww, stable));
  }
  RC_ASSERT(seen_in(partition) == before);
  drop_stable(partition, Policy::lww, stable);
  RC_ASSERT(seen_in(partition) == before);
}

}  // namespace
}  // namespace helenus::causality
