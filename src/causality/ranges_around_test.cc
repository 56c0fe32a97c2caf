#include "causality/ranges_around.h"

#include <gtest/gtest.h>

#include "causality/generators.h"
#include "causality/range_sweep.h"

namespace helenus::causality {
namespace {

using testing::any_cell;
using testing::any_clock;
using testing::any_scope;
using testing::version_of;

const auto kRow = base::Bytes::copy_of("b");
constexpr ColumnId kColumns[] = {ColumnId{0}, ColumnId{1}};

struct Row {
  PartitionStore scopes;  // all of which hold it
  RowStore cells;
  CellStore deletes;
};

// Of a mutation that deleted a scope of the row and wrote a cell of it.
void write_beside_a_delete(Row& row) {
  for (const ScopedStore& scoped : row.scopes.scoped()) {
    for (const Version& deleted : scoped.store.versions()) {
      if (deleted.kind != VersionKind::empty) continue;
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

Row any_row_in_scopes(bool lww) {
  Row row;
  const int scopes = *rc::gen::inRange(0, 6);
  for (int i = 0; i < scopes; ++i) {
    const Scope scope = *any_scope();
    if (scope.contains(kRow)) row.scopes.absorb(ScopedStore{scope, *any_cell(lww)});
  }
  for (const ColumnId column : kColumns) row.cells.absorb(column, *any_cell(lww));
  if (*rc::gen::inRange(0, 2) == 0) row.deletes = *any_cell(lww);
  // Those of a scope are empty.
  if (lww && *rc::gen::inRange(0, 3) == 0) write_beside_a_delete(row);
  return row;
}

// Each cell against every scope.
Row settled_plainly(const Row& row, Policy policy, const Clock& known, const Stability& stable) {
  PartitionStore partition = row.scopes;
  const Scope own = row_scope(kRow);
  const auto is_own = [&](const ScopedStore& scoped) { return scoped.scope == own; };
  const bool among_scopes = std::ranges::any_of(row.scopes.scoped(), is_own);
  CellStore deletes = row.deletes;
  for (const ScopedStore& scoped : row.scopes.scoped()) {
    deletes.drop_superseded(scoped.store.context());
  }
  partition.absorb(ScopedStore{own, deletes});
  partition.absorb(kRow, row.cells);
  drop_stable(partition, policy, stable);
  partition.strip(known);
  Row settled;
  const auto at = partition.rows().find(kRow);
  if (at != partition.rows().end()) settled.cells = at->second;
  const auto left = std::ranges::find_if(partition.scoped(), is_own);
  if (!among_scopes) {
    if (left != partition.scoped().end()) settled.deletes = left->store;
    return settled;
  }
  std::vector<Dot> gone;
  for (const Version& version : deletes.versions()) {
    const bool stays = left != partition.scoped().end() && left->store.find(version.dot) != nullptr;
    if (!stays) gone.push_back(version.dot);
  }
  deletes.forget(gone);
  settled.deletes = deletes;
  return settled;
}

void add_all(ScopesAround& around, std::span<const ScopedStore> scopes) {
  for (const ScopedStore& scoped : scopes) around.add(scoped);
}

RC_GTEST_PROP(ScopesAroundLaws, ARowIsJudgedAsIfByEachScope, ()) {
  const auto policy = *rc::gen::element(Policy::lww, Policy::siblings);
  Row row = any_row_in_scopes(policy == Policy::lww);
  const Clock known = base(*any_clock());
  Stability stable{.dots = meet(known, base(*any_clock())), .wall = {}};
  if (*rc::gen::inRange(0, 2) == 0) stable.wall = WallTime{*rc::gen::inRange(0, 10)};
  const Row want = settled_plainly(row, policy, known, stable);
  ScopesAround around(policy, known, stable);
  // Others were there before, and have gone, in any order.
  const Row before = any_row_in_scopes(policy == Policy::lww);
  add_all(around, before.scopes.scoped());
  const auto gone_first = *rc::gen::inRange<std::size_t>(0, before.scopes.scoped().size() + 1);
  for (const ScopedStore& gone : before.scopes.scoped().first(gone_first)) around.remove(gone);
  add_all(around, row.scopes.scoped());
  for (const ScopedStore& gone : before.scopes.scoped().subspan(gone_first)) around.remove(gone);
  around.settle(row.cells, row.deletes);
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
std::vector<ScopedStore> concurrent_deletes(Counter count) {
  std::vector<ScopedStore> scopes;
  for (Counter i = 1; i <= count; ++i) {
    Version version;
    version.kind = VersionKind::empty;
    version.dot = {actor_of(1, 1), 2 * i};
    version.timestamp = Timestamp{static_cast<std::int64_t>(i)};
    scopes.push_back(
        {{std::nullopt, base::Bytes::copy_of(fmt::format("c{:06}", i))}, CellStore({version}, {})});
  }
  return scopes;
}

CellStore written_at(std::int64_t timestamp, Clock context) {
  Version version;
  version.dot = {actor_of(2, 1), static_cast<Counter>(timestamp)};
  version.timestamp = Timestamp{timestamp};
  version.value = base::Bytes::copy_of("v");
  return CellStore({version}, std::move(context));
}

// Asking every range for each row would take minutes.
TEST(ScopesAround, ManyRowsInsideVeryManyRangesAreJudgedByTheStrongest) {
  constexpr Counter kScopes = 20'000;
  const std::vector<ScopedStore> scopes = concurrent_deletes(kScopes);
  Clock known;
  known.add(actor_of(1, 1), CounterSet::up_to(2 * kScopes));
  known.add(actor_of(2, 1), CounterSet::up_to(4 * kScopes));
  const Stability stable{.dots = known, .wall = {}};
  ScopesAround around(Policy::lww, known, stable);
  add_all(around, scopes);
  std::size_t left = 0;
  for (std::int64_t timestamp = 1; timestamp <= static_cast<std::int64_t>(2 * kScopes);
       ++timestamp) {
    RowStore row;
    CellStore deletes;
    row.absorb(kColumns[0], written_at(timestamp, {}));
    around.settle(row, deletes);
    if (!row.empty()) ++left;
  }
  EXPECT_EQ(left, kScopes) << "the younger half";
  EXPECT_LE(around.steps(), 10 * kScopes);
}

// Deletes of a window that moves on, each of which has seen those before it or none of them, and a
// row between any two.
std::uint64_t steps_along_windows(Counter windows, Counter width, bool seen) {
  std::vector<ScopedStore> scopes;
  for (Counter i = 1; i <= windows; ++i) {
    Version version;
    version.kind = VersionKind::empty;
    version.dot = {actor_of(1, 1), i};
    version.timestamp = Timestamp{static_cast<std::int64_t>(i) + 1};
    Clock context;
    if (seen) context.add(actor_of(1, 1), CounterSet::up_to(i - 1));
    scopes.push_back({{base::Bytes::copy_of(fmt::format("{:06}", i)),
                       base::Bytes::copy_of(fmt::format("{:06}", i + width))},
                      CellStore({version}, std::move(context))});
  }
  Clock known;
  known.add(actor_of(1, 1), CounterSet::up_to(windows));
  const Stability stable{.dots = known, .wall = {}};
  ScopesAround around(Policy::lww, known, stable);
  ScopeSweep sweep(scopes);
  std::size_t left = 0;
  for (Counter i = 1; i <= windows; ++i) {
    sweep.advance(base::Bytes::copy_of(fmt::format("{:06}r", i)), ScopeSweep::kNoLimit,
                  [&](const ScopedStore& scoped, bool opens) {
                    opens ? around.add(scoped) : around.remove(scoped);
                  });
    RowStore row;
    CellStore deletes;
    row.absorb(kColumns[0], written_at(static_cast<std::int64_t>(i) + (i % 2 == 0 ? 2 : 0), {}));
    around.settle(row, deletes);
    left += row.empty() ? 0 : 1;
  }
  EXPECT_EQ(left, windows / 2) << "those that are younger than the last window around them";
  return around.steps();
}

// To look at each window for each row would be a hundred million steps.
TEST(ScopesAround, TheEffortFollowsWhatComesAndGoes) {
  constexpr Counter kWindows = 20'000;
  for (const bool seen : {false, true}) {
    EXPECT_LE(steps_along_windows(kWindows, kWindows / 4, seen), 12 * kWindows) << seen;
  }
}

// A cell looks past those that it has superseded one by one, but for one that has seen all.
TEST(ScopesAround, ACellThatHasSeenAllRangesLooksAtNone) {
  constexpr Counter kScopes = 1000;
  const std::vector<ScopedStore> scopes = concurrent_deletes(kScopes);
  Clock all;
  all.add(actor_of(1, 1), CounterSet::up_to(kScopes));
  all.add(DotRange{actor_of(1, 1), kScopes + 2, 2 * kScopes});
  const Stability nothing;
  ScopesAround around(Policy::lww, all, nothing);
  add_all(around, scopes);
  const std::uint64_t before = around.steps();
  RowStore row;
  CellStore deletes;
  row.absorb(kColumns[0], written_at(1, all));
  around.settle(row, deletes);
  EXPECT_EQ(row.cell(kColumns[0]).versions().size(), 1U);
  EXPECT_EQ(around.steps() - before, 1U);
}

// Of a cell that was written later and of one that has seen the older half.
TEST(ScopesAround, ACellGoesByTheRangesThatItHasNotSeen) {
  constexpr Counter kScopes = 1000;
  const std::vector<ScopedStore> scopes = concurrent_deletes(kScopes);
  Clock all;
  all.add(actor_of(1, 1), CounterSet::up_to(2 * kScopes));
  Clock half;
  half.add(actor_of(1, 1), CounterSet::up_to(kScopes));
  const Stability stable{.dots = all, .wall = {}};
  ScopesAround around(Policy::lww, all, stable);
  add_all(around, scopes);
  RowStore row;
  CellStore deletes;
  row.absorb(kColumns[0], written_at(1, all));
  row.absorb(kColumns[1], written_at(1, half));
  around.settle(row, deletes);
  EXPECT_EQ(row.cell(kColumns[0]).versions().size(), 1U);
  EXPECT_TRUE(row.cell(kColumns[1]).versions().empty());
}

// While they stay, it names them all: one by one that would be more than it names now.
TEST(ScopesAround, AContextThatNamesVeryManyRangesThatStayIsLeftAsItIs) {
  const auto context_around = [](Counter count) {
    const std::vector<ScopedStore> scopes = concurrent_deletes(count);
    Clock all;
    all.add(actor_of(1, 1), CounterSet::up_to(1'000'000));
    const Stability nothing;
    ScopesAround around(Policy::lww, all, nothing);
    add_all(around, scopes);
    RowStore row;
    CellStore deletes;
    row.absorb(kColumns[0], written_at(1, all));
    around.settle(row, deletes);
    return row.cell(kColumns[0]).context();
  };
  EXPECT_EQ(context_around(kSparedMax).entries()[0].counters.size(), kSparedMax);
  EXPECT_EQ(context_around(kSparedMax + 1).entries()[0].counters.size(), 1'000'000U);
}

}  // namespace
}  // namespace helenus::causality
