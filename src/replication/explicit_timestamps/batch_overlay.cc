#include "replication/explicit_timestamps/batch_overlay.h"

#include <iterator>

namespace helenus::replication {

using causality::CellChange;
using causality::ColumnId;
using causality::Delta;
using causality::RowKey;
using causality::Scope;
using causality::Version;

namespace {

RowKey first_of(const Scope& scope) {
  return scope.from.value_or(RowKey());
}

bool is_empty(const Scope& scope) {
  return scope.to && *scope.to <= first_of(scope);
}

}  // namespace

void BatchOverlay::lay(const Delta& delta) {
  Version version;
  version.dot = delta.dot;
  version.timestamp = causality::timestamp_of_scopes(delta);
  version.kind = causality::VersionKind::empty;
  version.expires = delta.remembered_until;
  for (const Scope& scope : delta.scopes) lay(scope, version);
  version.timestamp = delta.timestamp;
  for (const CellChange& cell : delta.cells) {
    version.kind = cell.kind;
    version.expires = cell.expires;
    version.value = cell.value;
    cells_.insert_or_assign({cell.row, cell.column}, version);
  }
}

void BatchOverlay::lay(const Scope& scope, const Version& version) {
  if (is_empty(scope)) return;
  const RowKey from = first_of(scope);
  const auto [first, last] = written_in(scope);
  cells_.erase(first, last);
  cut(from);
  if (scope.to) cut(*scope.to);
  deleted_.erase(deleted_.lower_bound(from),
                 scope.to ? deleted_.lower_bound(*scope.to) : deleted_.end());
  deleted_.insert_or_assign(from, Deleted{.to = scope.to, .version = version});
}

void BatchOverlay::cut(const RowKey& row) {
  const auto behind = deleted_.lower_bound(row);
  if (behind == deleted_.begin()) return;
  Deleted& across = std::prev(behind)->second;
  if (across.to && *across.to <= row) return;
  Deleted rest = across;
  across.to = row;
  deleted_.try_emplace(row, std::move(rest));
}

const Version* BatchOverlay::find(const RowKey& row, ColumnId column) const {
  const auto cell = cells_.find({row, column});
  return cell != cells_.end() ? &cell->second : deleted_at(row);
}

const Version* BatchOverlay::deleted_at(const RowKey& row) const {
  const auto behind = deleted_.upper_bound(row);
  if (behind == deleted_.begin()) return nullptr;
  const Deleted& deleted = std::prev(behind)->second;
  return !deleted.to || row < *deleted.to ? &deleted.version : nullptr;
}

std::pair<BatchOverlay::Cells::const_iterator, BatchOverlay::Cells::const_iterator>
BatchOverlay::written_in(const Scope& scope) const {
  if (is_empty(scope)) return {cells_.end(), cells_.end()};
  return {cells_.lower_bound({first_of(scope), ColumnId{0}}),
          scope.to ? cells_.lower_bound({*scope.to, ColumnId{0}}) : cells_.end()};
}

std::vector<BatchOverlay::DeletedRange> BatchOverlay::deleted_in(const Scope& scope) const {
  std::vector<DeletedRange> ranges;
  auto at = deleted_.upper_bound(first_of(scope));
  if (at != deleted_.begin()) --at;
  for (; at != deleted_.end() && (!scope.to || at->first < *scope.to); ++at) {
    const bool ends_before = at->second.to && *at->second.to <= first_of(scope);
    if (ends_before) continue;
    ranges.push_back(
        {.scope = {.from = at->first, .to = at->second.to}, .version = at->second.version});
  }
  return ranges;
}

}  // namespace helenus::replication
