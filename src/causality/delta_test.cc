#include "causality/delta.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "causality/codec.h"
#include "causality/counter.h"
#include "causality/generators.h"
#include "causality/limits.h"
#include "causality/resolve.h"

namespace helenus::causality {
namespace {

using testing::any_dot;
using testing::delta_of;

const ActorId kHere = actor_of(1, 1);
const ActorId kThere = actor_of(2, 1);

base::Bytes text(std::string_view letters) {
  return base::Bytes::copy_of(letters);
}
CellChange put(std::string_view row, std::string_view value, std::uint32_t column = 0) {
  CellChange change;
  change.row = text(row);
  change.column = ColumnId{column};
  change.value = text(value);
  return change;
}
Mutation write(std::vector<CellChange> cells, std::int64_t timestamp = 10) {
  Mutation mutation;
  mutation.timestamp = Timestamp{timestamp};
  mutation.cells = std::move(cells);
  return mutation;
}
base::Result<Delta> minted(Clock& clock, Policy policy, Mutation mutation,
                           Timestamp floor = kTimestampMin) {
  return mint(clock, kHere, Epoch{1}, policy, std::move(mutation), floor);
}

TEST(Mint, ABlindWriteHasSeenWhatItsReplicaHasSeenAndNotItself) {
  Clock clock;
  clock.add(DotRange{kThere, 1, 3});
  clock.add(Dot{kThere, 7});
  const Clock before = clock;
  const Delta delta = minted(clock, Policy::siblings, write({put("k", "v")})).value();
  EXPECT_EQ(delta.context.dots, before);
  EXPECT_EQ(delta.dot, (Dot{kHere, 1}));
  EXPECT_TRUE(clock.contains(delta.dot));
}

TEST(Mint, ASiblingsTableTakesTheClientsContextAsItIs) {
  Clock clock;
  clock.add(Dot{kThere, 1});
  Mutation mutation = write({put("k", "v")});
  mutation.context.emplace().dots.add(Dot{actor_of(3, 1), 1});
  const Clock given = mutation.context->dots;
  EXPECT_EQ(minted(clock, Policy::siblings, mutation)->context.dots, given);
}

TEST(Mint, ASiblingsTableTakesAnEmptyContextAsItIsToo) {
  Clock clock;
  Clock applied;
  PartitionStore store;
  apply(applied, store, minted(clock, Policy::siblings, write({put("k", "v")})).value(),
        Policy::siblings);
  Mutation knows_nothing = write({put("k", "w")});
  knows_nothing.context.emplace();
  const Delta second = minted(clock, Policy::siblings, knows_nothing).value();
  EXPECT_TRUE(second.context.dots.empty());
  apply(applied, store, second, Policy::siblings);
  EXPECT_EQ(store.cell(text("k"), ColumnId{0}).versions().size(), 2U) << "they are siblings";
}

TEST(Mint, AnLwwTableUnitesTheClientsContextWithItsOwn) {
  Clock clock;
  clock.add(Dot{kThere, 1});
  Mutation mutation = write({put("k", "v")});
  mutation.context.emplace().dots.add(Dot{actor_of(3, 1), 1});
  const Clock context = minted(clock, Policy::lww, mutation)->context.dots;
  EXPECT_TRUE(context.contains({kThere, 1}) && context.contains({actor_of(3, 1), 1}));
}

TEST(Mint, RaisesTheTimestampAboveEveryFloor) {
  Clock clock;
  EXPECT_EQ(minted(clock, Policy::lww, write({put("k", "v")}, 10))->timestamp, Timestamp{10});
  EXPECT_EQ(minted(clock, Policy::lww, write({put("k", "v")}, 10), Timestamp{10})->timestamp,
            Timestamp{11});
  Mutation mutation = write({put("k", "v")}, 10);
  mutation.context.emplace().floor = Timestamp{99};
  EXPECT_EQ(minted(clock, Policy::lww, mutation)->timestamp, Timestamp{100});
}

TEST(Mint, RaisesWhatTheRangesOfAWriteDeleteAboveTheFloorToo) {
  Clock clock;
  Mutation replaces = write({put("k", "v")}, 10);
  replaces.deleted_ranges = {range_of_row(text("k"))};
  const Delta delta = minted(clock, Policy::lww, replaces, Timestamp{10}).value();
  EXPECT_EQ(delta.timestamp, Timestamp{12});
  EXPECT_EQ(timestamp_of_range_deletes(delta), Timestamp{11});
  EXPECT_TRUE(minted(clock, Policy::lww, replaces, Timestamp{kTimestampMax.value() - 1})
                  .failed_with(base::Errc::invalid_argument));
}

TEST(Mint, RangesInWhichNothingIsWrittenHaveTheTimestampOfTheCells) {
  Clock clock;
  Mutation beside = write({put("a", "v"), put("k", "v")}, 10);
  beside.deleted_ranges = {RowRange{text("b"), text("c")}, RowRange{text("l"), {}}};
  const Delta delta = minted(clock, Policy::lww, beside, Timestamp{10}).value();
  EXPECT_EQ(delta.timestamp, Timestamp{11});
  EXPECT_EQ(timestamp_of_range_deletes(delta), Timestamp{11});
  for (const RowRange& over : {RowRange{}, RowRange{text("b"), {}}, RowRange{{}, text("b")},
                               RowRange{text("k"), text("l")}, range_of_row(text("a"))}) {
    beside.deleted_ranges = {over, RowRange{text("l"), {}}};
    const Delta overriding = minted(clock, Policy::lww, beside).value();
    EXPECT_EQ(timestamp_of_range_deletes(overriding), Timestamp{9});
  }
}

Mutation at_explicit_time(std::int64_t timestamp) {
  Mutation mutation = write({put("k", "v")}, timestamp);
  mutation.timestamp_is_explicit = true;
  return mutation;
}

TEST(ExplicitTimestamp, IsNeverRaised) {
  Clock clock;
  EXPECT_EQ(minted(clock, Policy::lww, at_explicit_time(10))->timestamp, Timestamp{10});
  EXPECT_EQ(minted(clock, Policy::lww, at_explicit_time(10), Timestamp{10})->timestamp,
            Timestamp{10})
      << "of equal timestamps the caller compared the contents";
  const Clock before = clock;
  EXPECT_TRUE(minted(clock, Policy::lww, at_explicit_time(10), Timestamp{11})
                  .failed_with(base::Errc::invalid_argument))
      << "a cell in which it does not win was not left out";
  EXPECT_TRUE(minted(clock, Policy::lww, at_explicit_time(kTimestampMin.value()))
                  .failed_with(base::Errc::invalid_argument));
  EXPECT_EQ(clock, before) << "nothing was minted";
}

TEST(ExplicitTimestamp, MustBeAboveTheFloorOfAContextThatCoversWhatIsNotHere) {
  Clock clock;
  Mutation mutation = at_explicit_time(10);
  mutation.context.emplace().dots.add(Dot{kThere, 1});
  mutation.context->floor = Timestamp{9};
  EXPECT_EQ(minted(clock, Policy::lww, mutation)->timestamp, Timestamp{10});
  mutation.context->floor = Timestamp{10};
  const Clock before = clock;
  EXPECT_TRUE(minted(clock, Policy::lww, mutation).failed_with(base::Errc::unavailable))
      << "a delete at 10 may be what the context covers";
  EXPECT_EQ(clock, before) << "nothing was minted";
}

TEST(ExplicitTimestamp, IsJudgedByWhatIsKnownHereOnceAllThatTheContextCoversIsHere) {
  Clock clock;
  clock.add(Dot{kThere, 1});
  Mutation mutation = at_explicit_time(10);
  mutation.context.emplace().dots.add(Dot{kThere, 1});
  mutation.context->floor = Timestamp{99};  // of another cell that the client read
  const Delta delta = minted(clock, Policy::lww, mutation, Timestamp{8}).value();
  EXPECT_EQ(delta.timestamp, Timestamp{10});
  Clock seen;
  seen.add(Dot{kThere, 1});
  EXPECT_EQ(delta.context.dots, seen) << "it is the blind write of this replica";
}

TEST(ExplicitTimestamp, HoldsForTheRangesBeneathTheCellsToo) {
  Clock clock;
  Mutation replaces = at_explicit_time(10);
  replaces.deleted_ranges = {range_of_row(text("k"))};
  EXPECT_EQ(timestamp_of_range_deletes(minted(clock, Policy::lww, replaces, Timestamp{9}).value()),
            Timestamp{9});
  EXPECT_TRUE(minted(clock, Policy::lww, replaces, Timestamp{10})
                  .failed_with(base::Errc::invalid_argument));
  replaces.context.emplace().dots.add(Dot{kThere, 1});
  replaces.context->floor = Timestamp{9};
  EXPECT_TRUE(minted(clock, Policy::lww, replaces).failed_with(base::Errc::unavailable));
}

TEST(Mint, RefusesWhatNoDecoderTakes) {
  Clock clock;
  const auto refused = [&](Mutation mutation) {
    return minted(clock, Policy::lww, std::move(mutation))
        .failed_with(base::Errc::invalid_argument);
  };
  CellChange brief = put("k", "");
  brief.kind = VersionKind::increment;
  brief.expires = WallTime{7};
  EXPECT_TRUE(
      minted(clock, Policy::counter, write({brief})).failed_with(base::Errc::invalid_argument));
  Mutation backwards = write({});
  backwards.deleted_ranges = {RowRange{text("b"), text("a")}};
  EXPECT_TRUE(refused(backwards));
  backwards.deleted_ranges = {RowRange{text("a"), text("a")}};
  EXPECT_TRUE(refused(backwards));
}

TEST(Mint, ADeleteMaySayUntilWhenItIsRemembered) {
  Clock clock;
  Mutation mutation = write({put("k", "v")});
  mutation.remembered_until = WallTime{7};
  EXPECT_EQ(minted(clock, Policy::lww, mutation).value().remembered_until, std::nullopt)
      << "it deletes nothing";
  mutation.cells.front().kind = VersionKind::deletion;
  mutation.cells.front().expires = WallTime{9};
  mutation.deleted_ranges = {RowRange{text("l"), {}}};
  const Delta delta = minted(clock, Policy::lww, mutation).value();
  const PartitionStore fragment = fragment_of(delta, Policy::lww);
  EXPECT_EQ(fragment.cell(text("k"), ColumnId{0}).versions().front().expires, WallTime{9});
  EXPECT_EQ(fragment.cell(text("m"), ColumnId{0}).versions().front().expires, WallTime{7});
}

TEST(Mint, KeepsOfAChangeOnlyWhatItsKindHas) {
  Clock clock;
  CellChange removal = put("k", "left over");
  removal.kind = VersionKind::deletion;
  removal.amount = 7;
  const Delta delta = minted(clock, Policy::lww, write({removal})).value();
  EXPECT_TRUE(delta.cells.front().value.empty());
  EXPECT_EQ(delta.cells.front().amount, 0);
  EXPECT_EQ(decode_delta(encoded(delta)).value(), delta);
}

TEST(Mint, RefusesWhatNoDeltaMayHold) {
  Clock clock;
  const auto refused = [&](Policy policy, Mutation mutation, Timestamp floor = kTimestampMin) {
    const Clock before = clock;
    const bool failed =
        minted(clock, policy, std::move(mutation), floor).failed_with(base::Errc::invalid_argument);
    return failed && clock == before;
  };
  EXPECT_TRUE(refused(Policy::lww, write({})));
  EXPECT_TRUE(refused(Policy::lww, write({put("k", "v"), put("k", "w")})));
  CellChange increment = put("k", "");
  increment.kind = VersionKind::increment;
  EXPECT_TRUE(refused(Policy::lww, write({increment})));
  EXPECT_TRUE(refused(Policy::counter, write({increment, put("l", "v")})));
  EXPECT_TRUE(refused(Policy::lww, write({put("k", "v")}), kTimestampMax));
  Mutation from_the_future = write({put("k", "v")});
  from_the_future.context.emplace().dots.add(Dot{kHere, 5});
  EXPECT_TRUE(refused(Policy::siblings, from_the_future));
  std::vector<CellChange> many;
  for (std::uint32_t column = 0; column <= kCellsPerMutationMax; ++column) {
    many.push_back(put("k", "v", column));
  }
  EXPECT_TRUE(refused(Policy::lww, write(many)));
  many.pop_back();
  EXPECT_TRUE(minted(clock, Policy::lww, write(many)).has_value());
  std::vector<CellChange> many_rows;
  for (std::size_t i = 0; i <= kRowsPerMutationMax; ++i) {
    many_rows.push_back(put(fmt::format("{:06}", i), "v"));
  }
  EXPECT_TRUE(refused(Policy::lww, write(many_rows)));
  many_rows.pop_back();
  EXPECT_TRUE(minted(clock, Policy::lww, write(many_rows)).has_value());
  Mutation many_ranges;
  for (std::size_t i = 0; i <= kRangesPerMutationMax; ++i) {
    many_ranges.deleted_ranges.push_back(range_of_row(text(std::to_string(i))));
  }
  EXPECT_TRUE(refused(Policy::lww, many_ranges));
}

TEST(Mint, RangesThatOverlapAreDeletedAsOne) {
  const auto range = [](const char* from, const char* to) {
    return RowRange{.from = text(from), .to = text(to)};
  };
  Clock clock;
  Mutation mutation;
  mutation.deleted_ranges = {
      range_of_row(text("c")), range("b", "d"),         range("k", "p"),
      range("m", "n"),         range("d", "e"),         range("o", "q"),
      range_of_row(text("x")), range_of_row(text("x")), range_of_row(text("y"))};
  const Delta delta = minted(clock, Policy::lww, mutation).value();
  EXPECT_EQ(delta.deleted_ranges, (std::vector{range("b", "d"), range("d", "e"), range("k", "q"),
                                               range_of_row(text("x")), range_of_row(text("y"))}));
  mutation.deleted_ranges.push_back({.from = text("n"), .to = {}});
  EXPECT_EQ(minted(clock, Policy::lww, mutation).value().deleted_ranges.back(),
            (RowRange{.from = text("k"), .to = {}}));
  mutation.deleted_ranges.push_back({});
  EXPECT_EQ(minted(clock, Policy::lww, mutation).value().deleted_ranges, std::vector{RowRange{}});
}

TEST(Mint, AnIncrementSupersedesNothing) {
  Clock clock;
  PartitionStore store;
  Clock applied;
  CellChange increment = put("k", "");
  increment.kind = VersionKind::increment;
  for (const std::int64_t amount : {5, 7, -2}) {
    increment.amount = amount;
    const Delta delta = minted(clock, Policy::counter, write({increment})).value();
    EXPECT_TRUE(delta.context.dots.empty());
    EXPECT_EQ(apply(applied, store, delta, Policy::counter), Applied::now);
    EXPECT_EQ(apply(applied, store, delta, Policy::counter), Applied::before);
  }
  EXPECT_EQ(counter_value(store.cell(text("k"), ColumnId{0})), 10);
  CellChange reset = put("k", "");
  reset.kind = VersionKind::deletion;
  apply(applied, store, minted(clock, Policy::counter, write({reset})).value(), Policy::counter);
  EXPECT_EQ(counter_value(store.cell(text("k"), ColumnId{0})), 0);
}

TEST(Apply, ADeleteLeavesAnEmptyVersionOnlyInAnLwwTable) {
  for (const Policy policy : {Policy::lww, Policy::siblings}) {
    Clock clock;
    Mutation mutation = write({});
    mutation.deleted_ranges = {range_of_row(text("k"))};
    const Delta delta = minted(clock, policy, mutation).value();
    const CellStore cell = fragment_of(delta, policy).cell(text("k"), ColumnId{3});
    EXPECT_EQ(cell.versions().size(), policy == Policy::lww ? 1U : 0U);
  }
}

TEST(Apply, TheCellsOfAMutationOverrideItsRanges) {
  for (const Policy policy : {Policy::lww, Policy::siblings}) {
    Clock clock;
    PartitionStore store;
    store.absorb(fragment_of(
        minted(clock, policy, write({put("k", "old"), put("k", "old", 1)})).value(), policy));
    Mutation replaces = write({put("k", "new")});
    replaces.deleted_ranges = {range_of_row(text("k"))};
    const Delta delta = minted(clock, policy, replaces).value();
    store.absorb(fragment_of(delta, policy));
    const CellStore written = store.cell(text("k"), ColumnId{0});
    const auto shown = visible(written, policy, WallTime{0});
    ASSERT_EQ(shown.size(), 1U);
    EXPECT_EQ(shown[0]->value.text(), "new");
    EXPECT_TRUE(visible(store.cell(text("k"), ColumnId{1}), policy, WallTime{0}).empty());
  }
}

TEST(Apply, WhatDefeatsACellOfAMutationDefeatsItsRangeToo) {
  Clock here;
  Mutation replaces = write({put("k", "m")}, 10);
  replaces.deleted_ranges = {range_of_row(text("k"))};
  const Delta replaced = minted(here, Policy::lww, replaces).value();
  Clock there;
  const Delta concurrent =
      mint(there, kThere, Epoch{1}, Policy::lww, write({put("k", "z")}, 10), kTimestampMin).value();
  PartitionStore store = fragment_of(replaced, Policy::lww);
  store.absorb(fragment_of(concurrent, Policy::lww));
  // A merge that holds the cell but not all of the range drops the loser and keeps the range.
  store.forget(text("k"), ColumnId{0}, std::vector{replaced.dot});
  const CellStore cell = store.cell(text("k"), ColumnId{0});
  ASSERT_EQ(cell.versions().size(), 2U);
  EXPECT_EQ(visible(cell, Policy::lww, WallTime{0}).at(0)->value.text(), "z");
}

TEST(Apply, ALateVersionIsNotAddedUnderAContextThatNamesIt) {
  Clock writer;
  const Delta first = minted(writer, Policy::siblings, write({put("k", "v")})).value();
  const Delta second = minted(writer, Policy::siblings, write({put("k", "w")})).value();
  Clock clock;
  PartitionStore store;
  apply(clock, store, second, Policy::siblings);
  apply(clock, store, first, Policy::siblings);
  const CellStore cell = store.cell(text("k"), ColumnId{0});
  ASSERT_EQ(cell.versions().size(), 1U);
  EXPECT_EQ(cell.versions()[0].dot, second.dot);
  EXPECT_EQ(clock.base_of(kHere), 2U);
}

TEST(MergeInstant, NeedsEveryFragmentOfTheKeyThatExistedThen) {
  const FragmentSpan oldest{.first_freeze = 1, .last_freeze = 1, .may_hold_key = true};
  const FragmentSpan middle{.first_freeze = 2, .last_freeze = 2, .may_hold_key = true};
  const FragmentSpan newest{.first_freeze = 3, .last_freeze = 3, .may_hold_key = true};
  const FragmentSpan without{.first_freeze = 1, .last_freeze = 1, .may_hold_key = false};
  const FragmentSpan memtable{
      .first_freeze = kNotFrozen, .last_freeze = kNotFrozen, .may_hold_key = true};
  using Spans = std::vector<FragmentSpan>;
  EXPECT_EQ(merge_instant(Spans{oldest, middle}, Spans{newest}), MergeInstant::newest_freeze);
  EXPECT_EQ(merge_instant(Spans{oldest, newest}, Spans{middle}), MergeInstant::none);
  EXPECT_EQ(merge_instant(Spans{newest}, Spans{oldest}), MergeInstant::none);
  EXPECT_EQ(merge_instant(Spans{newest}, Spans{without}), MergeInstant::now);
  EXPECT_EQ(merge_instant(Spans{newest}, Spans{without, memtable}), MergeInstant::newest_freeze);
}

TEST(MergeInstant, RemembersTheOldestThingInACompactedSstable) {
  const FragmentSpan middle{.first_freeze = 2, .last_freeze = 2, .may_hold_key = true};
  const FragmentSpan compacted{.first_freeze = 1, .last_freeze = 3, .may_hold_key = true};
  const std::vector<FragmentSpan> inputs{middle};
  const std::vector<FragmentSpan> others{compacted};
  EXPECT_EQ(merge_instant(inputs, others), MergeInstant::none)
      << "stripping the middle one would bring back what the first freeze holds";
}

TEST(Delta, PrintsForPeople) {
  Clock clock;
  const Delta delta = minted(clock, Policy::lww, write({put("k", "v")})).value();
  EXPECT_EQ(fmt::format("{}", delta), "1.1:1 at 10 after {} in epoch 1: 1 cells, 0 ranges");
}

RC_GTEST_PROP(DeltaLaws, FragmentsMergeInAnyOrderAndGroupingToOneResult, ()) {
  const auto chosen = *rc::gen::container<std::set<Dot>>(any_dot());
  std::vector<Dot> dots(chosen.begin(), chosen.end());
  for (const Policy policy : {Policy::lww, Policy::siblings}) {
    PartitionStore straight;
    for (const Dot& dot : dots) straight.absorb(fragment_of(delta_of(dot), policy));
    // Two replicas get them in other orders, one of them twice, into two memtables each.
    std::vector<Dot> shuffled = dots;
    for (std::size_t i = shuffled.size(); i > 1; --i) {
      std::swap(shuffled[i - 1], shuffled[*rc::gen::inRange<std::size_t>(0, i)]);
    }
    const auto split = *rc::gen::inRange<std::size_t>(0, shuffled.size() + 1);
    PartitionStore older;
    PartitionStore newer;
    for (std::size_t i = 0; i < shuffled.size(); ++i) {
      (i < split ? older : newer).absorb(fragment_of(delta_of(shuffled[i]), policy));
    }
    newer.absorb(older);
    newer.absorb(older);
    RC_ASSERT(newer == straight);
  }
}

RC_GTEST_PROP(DeltaLaws, ACellReadsAsTheSyncOfItsFragmentsInAnyOrder, ()) {
  const auto dots = *rc::gen::container<std::vector<Dot>>(any_dot());
  const base::Bytes row = testing::any_row();
  const ColumnId column{*rc::gen::inRange<std::uint32_t>(0, 2)};
  for (const Policy policy : {Policy::lww, Policy::siblings}) {
    PartitionStore whole;
    CellStore forwards;
    CellStore backwards;
    for (const Dot& dot : dots) {
      const PartitionStore fragment = fragment_of(delta_of(dot), policy);
      whole.absorb(fragment);
      const CellStore cell = fragment.cell(row, column);
      forwards = sync(forwards, cell);
      backwards = sync(cell, backwards);
    }
    RC_ASSERT(forwards == backwards);
    RC_ASSERT(forwards == whole.cell(row, column));
  }
}

RC_GTEST_PROP(DeltaLaws, RangesKeptApartFromTheirCellsAreTheSameFragment, ()) {
  const Delta delta = delta_of(*any_dot());
  for (const Policy policy : {Policy::lww, Policy::siblings}) {
    Delta cells = delta;
    cells.deleted_ranges.clear();
    Delta deleted_ranges = delta;
    deleted_ranges.cells.clear();
    deleted_ranges.timestamp = timestamp_of_range_deletes(delta);
    PartitionStore both = fragment_of(deleted_ranges, policy);
    both.absorb(fragment_of(cells, policy));
    RC_ASSERT(both == fragment_of(delta, policy));
  }
}

RC_GTEST_PROP(DeltaLaws, ApplyingIsIdempotentAndClaimsExactlyItsDot, ()) {
  Clock clock;
  PartitionStore memtable;
  const auto dots = *rc::gen::container<std::vector<Dot>>(any_dot());
  for (const Dot& dot : dots) {
    const bool known = clock.contains(dot);
    RC_ASSERT(apply(clock, memtable, delta_of(dot), Policy::lww) ==
              (known ? Applied::before : Applied::now));
  }
  for (const Dot& dot : testing::universe()) {
    RC_ASSERT(clock.contains(dot) == (std::ranges::find(dots, dot) != dots.end()));
  }
}

RC_GTEST_PROP(DeltaLaws, SettlingAndStrippingAWholeMergeKeepWhatEveryCellShows, ()) {
  const auto dots = *rc::gen::container<std::set<Dot>>(any_dot());
  for (const Policy policy : {Policy::lww, Policy::siblings}) {
    Clock clock;
    PartitionStore whole;
    for (const Dot& dot : dots) apply(clock, whole, delta_of(dot), policy);
    PartitionStore settled = whole;
    settled.apply_range_deletes_to_rows();
    PartitionStore stripped = whole;
    stripped.strip(base(clock));
    for (const char* row : {"a", "b", "c"}) {
      for (const std::uint32_t column : {0U, 1U}) {
        const CellStore before = whole.cell(text(row), ColumnId{column});
        RC_ASSERT(settled.cell(text(row), ColumnId{column}) == before);
        const CellStore after = stripped.cell(text(row), ColumnId{column});
        RC_ASSERT(std::ranges::equal(before.versions(), after.versions()));
        RC_ASSERT(fill(before, clock) == fill(after, clock));
      }
    }
  }
}

}  // namespace
}  // namespace helenus::causality
