#include "causality/ranges_around.h"

#include <gtest/gtest.h>

#include "causality/generators.h"
#include "causality/range_sweep.h"

namespace helenus::causality {
namespace {

using testing::any_cell;
using testing::any_clock;
using testing::any_range;
using testing::version_of;

const auto kRow = base::Bytes::copy_of("b");
constexpr ColumnId kColumns[] = {ColumnId{0}, ColumnId{1}};

struct Row {
  PartitionStore deleted_ranges;  // all of which hold it
  RowStore cells;
  CellStore deletes;
};

// Of a mutation that deleted a range of the row and wrote a cell of it.
void write_beside_a_delete(Row& row) {
  for (const RangeDelete& range_delete : row.deleted_ranges.range_deletes()) {
    for (const Version& deleted : range_delete.store.versions()) {
      if (deleted.kind != VersionKind::deletion) continue;
      Version written = deleted;
      written.kind = VersionKind::value;
      written.timestamp = Timestamp{deleted.timestamp.value() + 1};
      written.expires.reset();
      const CellStore& there = row.cells.cell(kColumns[0]);
      if (there.find(deleted.dot) == nullptr && !there.context().contains(deleted.dot)) {
        row.cells.absorb(kColumns[0], CellStore({written}, {}));
        return;
      }
    }
  }
}

Row any_row_in_ranges(bool lww) {
  Row row;
  const int deleted_ranges = *rc::gen::inRange(0, 6);
  for (int i = 0; i < deleted_ranges; ++i) {
    const RowRange row_range = *any_range();
    if (row_range.contains(kRow)) row.deleted_ranges.absorb(RangeDelete{row_range, *any_cell(lww)});
  }
  for (const ColumnId column : kColumns) row.cells.absorb(column, *any_cell(lww));
  if (*rc::gen::inRange(0, 2) == 0) row.deletes = *any_cell(lww);
  // Those of a range are empty.
  if (lww && *rc::gen::inRange(0, 3) == 0) write_beside_a_delete(row);
  return row;
}

// Each cell against every range.
Row settled_plainly(const Row& row, Policy policy, const Clock& known, const Stability& stable) {
  PartitionStore partition = row.deleted_ranges;
  const RowRange own = range_of_row(kRow);
  const auto is_own = [&](const RangeDelete& range_delete) { return range_delete.range == own; };
  const bool among_ranges = std::ranges::any_of(row.deleted_ranges.range_deletes(), is_own);
  CellStore deletes = row.deletes;
  for (const RangeDelete& range_delete : row.deleted_ranges.range_deletes()) {
    deletes.drop_superseded(range_delete.store.context());
  }
  partition.absorb(RangeDelete{own, deletes});
  partition.absorb(kRow, row.cells);
  drop_stable(partition, policy, stable);
  partition.strip(known);
  Row settled;
  const auto at = partition.rows().find(kRow);
  if (at != partition.rows().end()) settled.cells = at->second;
  const auto left = std::ranges::find_if(partition.range_deletes(), is_own);
  if (!among_ranges) {
    if (left != partition.range_deletes().end()) settled.deletes = left->store;
    return settled;
  }
  std::vector<Dot> gone;
  for (const Version& version : deletes.versions()) {
    const bool stays =
        left != partition.range_deletes().end() && left->store.find(version.dot) != nullptr;
    if (!stays) gone.push_back(version.dot);
  }
  deletes.forget(gone);
  settled.deletes = deletes;
  return settled;
}

void add_all(RangesAround& around, std::span<const RangeDelete> deleted_ranges) {
  for (const RangeDelete& range_delete : deleted_ranges) around.add(range_delete);
}

RC_GTEST_PROP(RangesAroundLaws, ARowIsJudgedAsIfByEachRange, ()) {
  const auto policy = *rc::gen::element(Policy::lww, Policy::siblings);
  Row row = any_row_in_ranges(policy == Policy::lww);
  const Clock known = base(*any_clock());
  Stability stable{.dots = meet(known, base(*any_clock())), .wall = {}};
  if (*rc::gen::inRange(0, 2) == 0) stable.wall = WallTime{*rc::gen::inRange(0, 10)};
  const Row want = settled_plainly(row, policy, known, stable);
  RangesAround around(policy, known, stable);
  // Others were there before, and have gone, in any order.
  const Row before = any_row_in_ranges(policy == Policy::lww);
  add_all(around, before.deleted_ranges.range_deletes());
  const auto gone_first =
      *rc::gen::inRange<std::size_t>(0, before.deleted_ranges.range_deletes().size() + 1);
  for (const RangeDelete& gone : before.deleted_ranges.range_deletes().first(gone_first))
    around.remove(gone);
  add_all(around, row.deleted_ranges.range_deletes());
  for (const RangeDelete& gone : before.deleted_ranges.range_deletes().subspan(gone_first))
    around.remove(gone);
  around.apply_to(row.cells, row.deletes);
  RC_CLASSIFY(want.cells.empty(), "nothing is left");
  RC_ASSERT(std::ranges::equal(row.deletes.versions(), want.deletes.versions()));
  RC_ASSERT(row.deletes.context().covers(want.deletes.context()));
  for (const ColumnId column : kColumns) {
    const CellStore& got = row.cells.cell(column);
    const CellStore& plain = want.cells.cell(column);
    RC_ASSERT(std::ranges::equal(got.versions(), plain.versions()));
    RC_ASSERT(got.context().covers(plain.context()));
    RC_ASSERT(fill(got, known) == fill(plain, known));
  }
}

// Deletes of ranges around the row, none of which has seen another.
std::vector<RangeDelete> concurrent_deletes(Counter count) {
  std::vector<RangeDelete> deleted_ranges;
  for (Counter i = 1; i <= count; ++i) {
    Version version;
    version.kind = VersionKind::deletion;
    version.dot = {actor_of(1, 1), 2 * i};
    version.timestamp = Timestamp{static_cast<std::int64_t>(i)};
    deleted_ranges.push_back(
        {{std::nullopt, base::Bytes::copy_of(fmt::format("c{:06}", i))}, CellStore({version}, {})});
  }
  return deleted_ranges;
}

CellStore written_at(std::int64_t timestamp, Clock context) {
  Version version;
  version.dot = {actor_of(2, 1), static_cast<Counter>(timestamp)};
  version.timestamp = Timestamp{timestamp};
  version.value = base::Bytes::copy_of("v");
  return CellStore({version}, std::move(context));
}

// Asking every range for each row would take minutes.
TEST(RangesAround, ManyRowsInsideVeryManyRangesAreJudgedByTheStrongest) {
  constexpr Counter kRangeDeletes = 20'000;
  const std::vector<RangeDelete> deleted_ranges = concurrent_deletes(kRangeDeletes);
  Clock known;
  known.add(actor_of(1, 1), CounterSet::up_to(2 * kRangeDeletes));
  known.add(actor_of(2, 1), CounterSet::up_to(4 * kRangeDeletes));
  const Stability stable{.dots = known, .wall = {}};
  RangesAround around(Policy::lww, known, stable);
  add_all(around, deleted_ranges);
  std::size_t left = 0;
  for (std::int64_t timestamp = 1; timestamp <= static_cast<std::int64_t>(2 * kRangeDeletes);
       ++timestamp) {
    RowStore row;
    CellStore deletes;
    row.absorb(kColumns[0], written_at(timestamp, {}));
    around.apply_to(row, deletes);
    if (!row.empty()) ++left;
  }
  EXPECT_EQ(left, kRangeDeletes) << "the younger half";
  EXPECT_LE(around.steps(), 10 * kRangeDeletes);
}

// Deletes of a window that moves on, each of which has seen those before it or none of them, and a
// row between any two.
std::uint64_t steps_along_windows(Counter windows, Counter width, bool seen) {
  std::vector<RangeDelete> deleted_ranges;
  for (Counter i = 1; i <= windows; ++i) {
    Version version;
    version.kind = VersionKind::deletion;
    version.dot = {actor_of(1, 1), i};
    version.timestamp = Timestamp{static_cast<std::int64_t>(i) + 1};
    Clock context;
    if (seen) context.add(actor_of(1, 1), CounterSet::up_to(i - 1));
    deleted_ranges.push_back({{base::Bytes::copy_of(fmt::format("{:06}", i)),
                               base::Bytes::copy_of(fmt::format("{:06}", i + width))},
                              CellStore({version}, std::move(context))});
  }
  Clock known;
  known.add(actor_of(1, 1), CounterSet::up_to(windows));
  const Stability stable{.dots = known, .wall = {}};
  RangesAround around(Policy::lww, known, stable);
  RangeSweep sweep(deleted_ranges);
  std::size_t left = 0;
  for (Counter i = 1; i <= windows; ++i) {
    sweep.advance(base::Bytes::copy_of(fmt::format("{:06}r", i)), RangeSweep::kNoLimit,
                  [&](const RangeDelete& range_delete, bool opens) {
                    opens ? around.add(range_delete) : around.remove(range_delete);
                  });
    RowStore row;
    CellStore deletes;
    row.absorb(kColumns[0], written_at(static_cast<std::int64_t>(i) + (i % 2 == 0 ? 2 : 0), {}));
    around.apply_to(row, deletes);
    left += row.empty() ? 0 : 1;
  }
  EXPECT_EQ(left, windows / 2) << "those that are younger than the last window around them";
  return around.steps();
}

// To look at each window for each row would be a hundred million steps.
TEST(RangesAround, TheEffortFollowsWhatComesAndGoes) {
  constexpr Counter kWindows = 20'000;
  for (const bool seen : {false, true}) {
    EXPECT_LE(steps_along_windows(kWindows, kWindows / 4, seen), 12 * kWindows) << seen;
  }
}

// A cell looks past those that it has superseded one by one, but for one that has seen all.
TEST(RangesAround, ACellThatHasSeenAllRangesLooksAtNone) {
  constexpr Counter kRangeDeletes = 1000;
  const std::vector<RangeDelete> deleted_ranges = concurrent_deletes(kRangeDeletes);
  Clock all;
  all.add(actor_of(1, 1), CounterSet::up_to(kRangeDeletes));
  all.add(DotRange{actor_of(1, 1), kRangeDeletes + 2, 2 * kRangeDeletes});
  const Stability nothing;
  RangesAround around(Policy::lww, all, nothing);
  add_all(around, deleted_ranges);
  const std::uint64_t before = around.steps();
  RowStore row;
  CellStore deletes;
  row.absorb(kColumns[0], written_at(1, all));
  around.apply_to(row, deletes);
  EXPECT_EQ(row.cell(kColumns[0]).versions().size(), 1U);
  EXPECT_EQ(around.steps() - before, 1U);
}

// Of a cell that was written later and of one that has seen the older half.
TEST(RangesAround, ACellGoesByTheRangesThatItHasNotSeen) {
  constexpr Counter kRangeDeletes = 1000;
  const std::vector<RangeDelete> deleted_ranges = concurrent_deletes(kRangeDeletes);
  Clock all;
  all.add(actor_of(1, 1), CounterSet::up_to(2 * kRangeDeletes));
  Clock half;
  half.add(actor_of(1, 1), CounterSet::up_to(kRangeDeletes));
  const Stability stable{.dots = all, .wall = {}};
  RangesAround around(Policy::lww, all, stable);
  add_all(around, deleted_ranges);
  RowStore row;
  CellStore deletes;
  row.absorb(kColumns[0], written_at(1, all));
  row.absorb(kColumns[1], written_at(1, half));
  around.apply_to(row, deletes);
  EXPECT_EQ(row.cell(kColumns[0]).versions().size(), 1U);
  EXPECT_TRUE(row.cell(kColumns[1]).versions().empty());
}

// While they stay, it names them all: one by one that would be more than it names now.
TEST(RangesAround, AContextThatNamesVeryManyRangesThatStayIsLeftAsItIs) {
  const auto context_around = [](Counter count) {
    const std::vector<RangeDelete> deleted_ranges = concurrent_deletes(count);
    Clock all;
    all.add(actor_of(1, 1), CounterSet::up_to(1'000'000));
    const Stability nothing;
    RangesAround around(Policy::lww, all, nothing);
    add_all(around, deleted_ranges);
    RowStore row;
    CellStore deletes;
    row.absorb(kColumns[0], written_at(1, all));
    around.apply_to(row, deletes);
    return row.cell(kColumns[0]).context();
  };
  EXPECT_EQ(context_around(kSparedMax).entries()[0].counters.size(), kSparedMax);
  EXPECT_EQ(context_around(kSparedMax + 1).entries()[0].counters.size(), 1'000'000U);
}

}  // namespace
}  // namespace helenus::causality
