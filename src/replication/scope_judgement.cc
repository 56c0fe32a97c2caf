#include "replication/scope_judgement.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "causality/limits.h"
#include "causality/resolve.h"
#include "replication/scope_cut.h"

namespace helenus::replication {

using causality::CellChange;
using causality::CellStore;
using causality::ColumnId;
using causality::PartitionStore;
using causality::RowKey;
using causality::Scope;
using causality::ScopedStore;
using causality::Version;

bool wins(const Version& write, const CellStore& there) {
  return causality::explicit_write_applies(there, causality::kTimestampMin, write);
}

bool wins(const Version& write, const Version& there) {
  return wins(write, CellStore({there}, {}));
}

ScopeJudgement::ScopeJudgement(const Scope& scope, const Version& deletion,
                               const RowColumns& columns, const BatchOverlay& before)
    : scope_(scope), deletion_(deletion), columns_(columns), before_(before) {}

void ScopeJudgement::take_ranges(std::vector<ScopedStore> ranges) {
  ranges_ = std::move(ranges);
  index_ = causality::ScopeIndex(ranges_);
  size_ += ranges_.size();
  for (const BatchOverlay::DeletedRange& laid : before_.deleted_in(scope_)) {
    laid_.push_back(laid.scope);
    if (!wins(deletion_, laid.version)) newer_.push_back(laid.scope);
  }
  for (const ScopedStore& range : ranges_) {
    for (const Version& version : range.store.versions()) {
      if (wins(deletion_, version)) continue;
      std::ranges::move(where_it_holds(range, version), std::back_inserter(newer_));
    }
  }
  pieces_ = cut(scope_, newer_);
}

std::vector<Scope> ScopeJudgement::where_it_holds(const ScopedStore& range,
                                                  const Version& version) {
  if (overlaps_ >= kOverlapsMax) return {range.scope};
  std::vector<Scope> superseded = laid_;
  overlaps_ += laid_.size();
  index_.each_overlapping(range.scope, [&](const ScopedStore& other) {
    ++overlaps_;
    if (other.store.context().contains(version.dot)) superseded.push_back(other.scope);
  });
  return cut(range.scope, std::move(superseded));
}

bool ScopeJudgement::deletes_at(const RowKey& row) const {
  const auto behind = std::ranges::partition_point(
      pieces_, [&](const Scope& piece) { return !piece.from || *piece.from <= row; });
  return behind != pieces_.begin() && std::prev(behind)->contains(row);
}

// Ascending, each once.
std::vector<ColumnId> ScopeJudgement::columns_of(const RowKey& row,
                                                 const PartitionStore& stored) const {
  std::vector<ColumnId> columns = row.empty() ? columns_.of_first : columns_.of_rows;
  if (const auto found = stored.rows().find(row); found != stored.rows().end()) {
    for (const auto& cell : found->second.cells()) columns.push_back(cell.first);
  }
  const auto [first, last] = before_.written_in(causality::row_scope(row));
  for (auto cell = first; cell != last; ++cell) columns.push_back(cell->first.second);
  std::ranges::sort(columns);
  const auto repeated = std::ranges::unique(columns);
  columns.erase(repeated.begin(), repeated.end());
  return columns;
}

void ScopeJudgement::take_row(const RowKey& row, const PartitionStore& stored) {
  // What holds for a cell that is not there.
  CellStore elsewhere;
  const Version* const laid = before_.deleted_at(row);
  if (laid != nullptr) {
    elsewhere = CellStore({*laid}, {});
  } else {
    for (const ScopedStore& scoped : stored.scoped()) elsewhere.absorb(scoped.store);
  }
  Row taken;
  taken.is_deleted = wins(deletion_, elsewhere);
  std::size_t cells_there = 0;
  for (const ColumnId column : columns_of(row, stored)) {
    const Version* const written = before_.find(row, column);
    const CellStore there =
        written == nullptr ? stored.cell(row, column) : CellStore({*written}, {});
    if (!there.versions().empty()) ++cells_there;
    if (!wins(deletion_, there)) {
      taken.is_deleted = false;
      continue;
    }
    CellChange change;
    change.row = row;
    change.column = column;
    change.kind = causality::VersionKind::empty;
    change.expires = deletion_.expires;
    (there.versions().empty() ? taken.absent : taken.there).push_back(std::move(change));
  }
  if (!taken.is_deleted) absent_ += taken.absent.size();
  if (taken.is_deleted || absent_ > causality::kCellsPerMutationMax) taken.absent.clear();
  size_ += std::max<std::size_t>(cells_there, 1);
  rows_.insert_or_assign(row, std::move(taken));
}

void ScopeJudgement::take_rows_of_overlay() {
  const auto [first, last] = before_.written_in(scope_);
  for (auto cell = first; cell != last; ++cell) {
    const RowKey& row = cell->first.first;
    if (rows_.contains(row)) continue;
    PartitionStore around;
    index_.each_overlapping(causality::row_scope(row),
                            [&](const ScopedStore& range) { around.absorb(range); });
    take_row(row, around);
  }
}

JudgedScope ScopeJudgement::finish(std::size_t scopes_max) && {
  take_rows_of_overlay();
  JudgedScope judged;
  std::vector<Scope> alone;  // rows that are deleted in places that are not
  for (const auto& [row, taken] : rows_) {
    if (!taken.is_deleted) {
      newer_.push_back(causality::row_scope(row));
    } else if (!deletes_at(row)) {
      alone.push_back(causality::row_scope(row));
    }
  }
  judged.scopes = cut(scope_, std::move(newer_));
  std::ranges::move(alone, std::back_inserter(judged.scopes));
  const bool too_many = judged.scopes.size() > scopes_max;
  if (too_many) judged.scopes.clear();
  for (auto& [row, taken] : rows_) {
    if (taken.is_deleted && !too_many) continue;
    std::ranges::move(taken.there, std::back_inserter(judged.cells));
  }
  if (judged.cells.size() + absent_ > causality::kCellsPerMutationMax) return judged;
  for (auto& [row, taken] : rows_) {
    std::ranges::move(taken.absent, std::back_inserter(judged.cells));
  }
  return judged;
}

}  // namespace helenus::replication
