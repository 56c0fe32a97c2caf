#include "replication/explicit_timestamps/explicit_timestamp_filter.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "causality/limits.h"
#include "causality/resolve.h"
#include "replication/explicit_timestamps/range_cut.h"
#include "runtime/take_turn.h"

namespace helenus::replication {

using base::Bytes;
using base::Errc;
using base::Error;
using base::Result;
using causality::CellChange;
using causality::Mutation;
using causality::Scope;
using causality::ScopedStore;
using causality::Version;
using causality::VersionKind;
using runtime::Task;

namespace {

Version version_of(const Mutation& mutation, const CellChange& cell) {
  Version version;
  version.timestamp = mutation.timestamp;
  version.kind = cell.kind;
  version.expires = cell.expires;
  version.value = cell.value;
  return version;
}

// The row, of a scope that has no other.
const Bytes* only_row_of(const Scope& scope) {
  if (!scope.from || scope != causality::row_scope(*scope.from)) return nullptr;
  return &*scope.from;
}

// A cell that is written need not be deleted before.
void join_repeated(std::vector<CellChange>& cells) {
  std::ranges::sort(cells, [](const CellChange& a, const CellChange& b) {
    const bool a_deletes = a.kind == VersionKind::empty;
    const bool b_deletes = b.kind == VersionKind::empty;
    return std::tie(a.row, a.column, a_deletes) < std::tie(b.row, b.column, b_deletes);
  });
  const auto repeated = std::ranges::unique(cells, [](const CellChange& a, const CellChange& b) {
    return a.column == b.column && a.row == b.row;
  });
  cells.erase(repeated.begin(), repeated.end());
}

Result<void> check_changes(std::size_t judged) {
  if (judged <= PartitionJudge::kChangesJudgedMax) return {};
  return Error(Errc::invalid_argument,
               "a delete with a timestamp of its own covers more than {} cells and deletes",
               PartitionJudge::kChangesJudgedMax);
}

Result<void> check_named(const Mutation& judged) {
  if (judged.cells.size() <= causality::kCellsPerMutationMax &&
      judged.scopes.size() <= causality::kScopesPerMutationMax) {
    return {};
  }
  return Error(Errc::invalid_argument,
               "a delete with a timestamp of its own among newer cells comes to more than {} cells "
               "or {} ranges",
               causality::kCellsPerMutationMax, causality::kScopesPerMutationMax);
}

}  // namespace

Task<Result<void>> PartitionJudge::take_turn() {
  effort_ = 0;
  return runtime::take_turn(engine_.runtime(), until_);
}

Task<Result<void>> PartitionJudge::judge(std::span<PartitionWrite* const> writes) {
  CO_TRY(causality::Clock clock, engine_.staged_clock(tablet_.id));
  CO_TRY_VOID(co_await read_ranges(writes));
  for (std::size_t i = 0; i < writes.size(); ++i) {
    PartitionWrite& write = *writes[i];
    if (write.explicit_timestamp) {
      CO_TRY(write.mutation, co_await judge(write));
    }
    if (i + 1 == writes.size()) break;
    if (write.mutation.cells.empty() && write.mutation.scopes.empty()) continue;
    CO_TRY(const causality::Delta delta,
           causality::mint(clock, tablet_.actor, kEpoch, causality::Policy::lww, write.mutation,
                           causality::kTimestampMin));
    before_.lay(delta);
    if (turn_is_over(delta.cells.size() + delta.scopes.size())) CO_TRY_VOID(co_await take_turn());
  }
  co_return {};
}

// ---- Deletes of ranges ----

Task<Result<void>> PartitionJudge::read_ranges(std::span<PartitionWrite* const> writes) {
  std::vector<Scope> scopes;
  for (const PartitionWrite* write : writes) {
    if (!write->explicit_timestamp) continue;
    for (const Scope& scope : write->mutation.scopes) {
      if (only_row_of(scope) == nullptr) scopes.push_back(scope);
    }
  }
  if (scopes.empty()) co_return {};
  const std::vector<Scope> wanted = joined(std::move(scopes));
  const PartitionWrite& any = *writes.front();
  CO_TRY(const auto cursor, engine_.cursor(any.table, tablet_.id, {.until = until_}));
  // Ranges that lie in different places do not come in their order.
  std::map<Scope, causality::CellStore> across;
  CO_TRY_VOID(co_await cursor->seek_ranges(any.partition));
  while (cursor->at_ranges()) {
    CO_TRY(const storage::Entry entry, cursor->ranges());
    for (const ScopedStore& scoped : entry.scopes()) {
      if (overlaps_any(scoped.scope, wanted)) across[scoped.scope].absorb(scoped.store);
    }
    CO_TRY_VOID(check_changes(across.size()));
    if (turn_is_over(1 + entry.scopes().size())) CO_TRY_VOID(co_await take_turn());
    CO_TRY_VOID(co_await cursor->next_ranges());
  }
  ranges_.reserve(across.size());
  for (auto& [range, store] : across) ranges_.push_back({range, std::move(store)});
  index_ = causality::ScopeIndex(ranges_);
  co_return co_await engine_.settle(cursor->trace(), until_);
}

// ---- One write ----

Task<Result<Mutation>> PartitionJudge::judge(const PartitionWrite& write) {
  Mutation judged = write.mutation;
  judged.timestamp_is_explicit = true;
  judged.cells.clear();
  judged.scopes.clear();
  changes_judged_ = 0;
  CO_TRY_VOID(co_await judge_cells(write, judged));
  for (const Scope& scope : write.mutation.scopes) {
    CO_TRY_VOID(co_await judge_scope(write, scope, judged));
    CO_TRY_VOID(check_named(judged));
  }
  if (!write.mutation.scopes.empty()) join_repeated(judged.cells);
  co_return judged;
}

Task<Result<void>> PartitionJudge::judge_cells(const PartitionWrite& write, Mutation& judged) {
  std::optional<storage::RowRead> read;
  const Bytes* row = nullptr;
  for (const CellChange& cell : write.mutation.cells) {
    const Version version = version_of(write.mutation, cell);
    if (const Version* const there = before_.find(cell.row, cell.column)) {
      if (wins(version, *there)) judged.cells.push_back(cell);
      if (turn_is_over(1)) CO_TRY_VOID(co_await take_turn());
      continue;
    }
    if (row == nullptr || *row != cell.row) {
      row = &cell.row;
      CO_TRY(read,
             co_await engine_.read_row(write.table, tablet_.id, write.partition, *row, until_));
      effort_ += kEffortPerRow;
    }
    if (wins(version, read->partition.cell(cell.row, cell.column))) judged.cells.push_back(cell);
    if (turn_is_over(1)) CO_TRY_VOID(co_await take_turn());
  }
  co_return {};
}

Task<Result<void>> PartitionJudge::judge_scope(const PartitionWrite& write, const Scope& scope,
                                               Mutation& judged) {
  CellChange change;
  change.kind = VersionKind::empty;
  change.expires = write.mutation.remembered_until;
  const Version deletion = version_of(write.mutation, change);
  ScopeJudgement judgement(scope, deletion, write.columns, before_);
  if (const Bytes* const row = only_row_of(scope)) {
    CO_TRY(const auto read,
           co_await engine_.read_row(write.table, tablet_.id, write.partition, *row, until_));
    static const causality::ScopeIndex kNone;  // They hold the row, and are read with it.
    judgement.take_ranges(kNone);
    while (judgement.take_newer_range()) {
    }
    const std::size_t effort = judgement.take_row(*row, read.partition);
    if (turn_is_over(kEffortPerRow + effort)) CO_TRY_VOID(co_await take_turn());
  } else {
    judgement.take_ranges(index_);
    CO_TRY_VOID(co_await look_across(write, scope, judgement));
    changes_judged_ += judgement.size();
  }
  JudgedScope left = std::move(judgement).finish(
      std::min(ScopeJudgement::kPiecesMax, causality::kScopesPerMutationMax - judged.scopes.size()),
      causality::kCellsPerMutationMax -
          std::min(causality::kCellsPerMutationMax, judged.cells.size()));
  std::ranges::move(left.scopes, std::back_inserter(judged.scopes));
  std::ranges::move(left.cells, std::back_inserter(judged.cells));
  co_return {};
}

Task<Result<void>> PartitionJudge::look_across(const PartitionWrite& write, const Scope& scope,
                                               ScopeJudgement& judgement) {
  CO_TRY_VOID(check_changes(changes_judged_ + judgement.size()));
  if (turn_is_over(kEffortPerRow + judgement.size())) CO_TRY_VOID(co_await take_turn());
  while (const auto effort = judgement.take_newer_range()) {
    if (turn_is_over(*effort)) CO_TRY_VOID(co_await take_turn());
  }
  CO_TRY(const auto cursor, engine_.cursor(write.table, tablet_.id, {.until = until_}));
  CO_TRY_VOID(co_await cursor->seek(write.partition, scope.from.value_or(Bytes())));
  while (cursor->valid() && base::equal(cursor->partition(), write.partition.view())) {
    const Bytes row = Bytes::copy_of(cursor->row_key());
    if (!scope.contains(row)) break;
    CO_TRY(const auto read, cursor->read());
    const std::size_t effort = judgement.take_row(row, read);
    CO_TRY_VOID(check_changes(changes_judged_ + judgement.size()));
    if (turn_is_over(kEffortPerRow + effort)) CO_TRY_VOID(co_await take_turn());
    CO_TRY_VOID(co_await cursor->next());
  }
  while (const auto effort = judgement.take_row_of_overlay()) {
    CO_TRY_VOID(check_changes(changes_judged_ + judgement.size()));
    if (turn_is_over(*effort)) CO_TRY_VOID(co_await take_turn());
  }
  co_return co_await engine_.settle(cursor->trace(), until_);
}

}  // namespace helenus::replication
