#include "replication/explicit_timestamps/batch_overlay.h"

#include <iterator>

namespace helenus::replication {

using causality::CellChange;
using causality::ColumnId;
using causality::Delta;
using causality::RowKey;
using causality::RowRange;
using causality::Version;

namespace {

RowKey first_of(const RowRange& row_range) {
  return row_range.from.value_or(RowKey());
}

bool is_empty(const RowRange& row_range) {
  return row_range.to && *row_range.to <= first_of(row_range);
}

}  // namespace

void BatchOverlay::lay(const Delta& delta) {
  Version version;
  version.dot = delta.dot;
  version.timestamp = causality::timestamp_of_range_deletes(delta);
  version.kind = causality::VersionKind::deletion;
  version.expires = delta.remembered_until;
  for (const RowRange& row_range : delta.deleted_ranges) lay(row_range, version);
  version.timestamp = delta.timestamp;
  for (const CellChange& cell : delta.cells) {
    version.kind = cell.kind;
    version.expires = cell.expires;
    version.value = cell.value;
    cells_.insert_or_assign({cell.row, cell.column}, version);
  }
}

void BatchOverlay::lay(const RowRange& row_range, const Version& version) {
  if (is_empty(row_range)) return;
  const RowKey from = first_of(row_range);
  const auto [first, last] = written_in(row_range);
  cells_.erase(first, last);
  cut(from);
  if (row_range.to) cut(*row_range.to);
  deleted_.erase(deleted_.lower_bound(from),
                 row_range.to ? deleted_.lower_bound(*row_range.to) : deleted_.end());
  deleted_.insert_or_assign(from, Deleted{.to = row_range.to, .version = version});
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
BatchOverlay::written_in(const RowRange& row_range) const {
  if (is_empty(row_range)) return {cells_.end(), cells_.end()};
  return {cells_.lower_bound({first_of(row_range), ColumnId{0}}),
          row_range.to ? cells_.lower_bound({*row_range.to, ColumnId{0}}) : cells_.end()};
}

std::vector<BatchOverlay::DeletedRange> BatchOverlay::deleted_in(const RowRange& row_range) const {
  std::vector<DeletedRange> ranges;
  auto at = deleted_.upper_bound(first_of(row_range));
  if (at != deleted_.begin()) --at;
  for (; at != deleted_.end() && (!row_range.to || at->first < *row_range.to); ++at) {
    const bool ends_before = at->second.to && *at->second.to <= first_of(row_range);
    if (ends_before) continue;
    ranges.push_back(
        {.range = {.from = at->first, .to = at->second.to}, .version = at->second.version});
  }
  return ranges;
}

}  // namespace helenus::replication
