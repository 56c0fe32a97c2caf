#include "causality/scopes_around.h"

#include <gtest/gtest.h>

#include "causality/generators.h"
#include "causality/scope_sweep.h"

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

std::vector<const ScopedStore*> pointers_to(std::span<const ScopedStore> scopes) {
  std::vector<const ScopedStore*> pointers;
  for (const ScopedStore& scoped : scopes) pointers.push_back(&scoped);
  return pointers;
}

RC_GTEST_PROP(ScopesAroundLaws, ARowIsJudgedAsIfByEachScope, ()) {
  const auto policy = *rc::gen::element(Policy::lww, Policy::siblings);
  Row row = any_row_in_scopes(policy == Policy::lww);
  const Clock known = base(*any_clock());
  Stability stable{.dots = meet(known, base(*any_clock())), .wall = {}};
  if (*rc::gen::inRange(0, 2) == 0) stable.wall = WallTime{*rc::gen::inRange(0, 10)};
  const Row want = settled_plainly(row, policy, known, stable);
  const ScopesAround around(pointers_to(row.scopes.scoped()), policy, known, stable);
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
  const ScopesAround around(pointers_to(scopes), Policy::lww, known, stable);
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
  const ScopesAround around(pointers_to(scopes), Policy::lww, all, stable);
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
    const ScopesAround around(pointers_to(scopes), Policy::lww, all, nothing);
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
