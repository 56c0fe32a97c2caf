#include "replication/explicit_timestamps/explicit_range_delete_filter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "causality/resolve.h"
#include "replication/explicit_timestamps/range_cut.h"

namespace helenus::replication {

using causality::CellChange;
using causality::CellStore;
using causality::ColumnId;
using causality::PartitionStore;
using causality::RangeDelete;
using causality::RowKey;
using causality::RowRange;
using causality::Version;

bool wins(const Version& write, const CellStore& there) {
  return causality::explicit_write_applies(there, causality::kTimestampMin, write);
}

bool wins(const Version& write, const CellStore& there, causality::Timestamp covered_floor) {
  return causality::explicit_write_applies(there, covered_floor, write);
}

bool wins(const Version& write, const Version& there) {
  return wins(write, CellStore({there}, {}));
}

namespace {

// Of two ranges that overlap.
RowRange common_part(const RowRange& a, const RowRange& b) {
  RowRange both{.from = std::max(a.from, b.from), .to = a.to};
  if (!both.to || (b.to && *b.to < *both.to)) both.to = b.to;
  return both;
}

}  // namespace

ExplicitRangeDeleteFilter::ExplicitRangeDeleteFilter(const RowRange& row_range,
                                                     const Version& deletion,
                                                     const RowColumns& columns,
                                                     const BatchOverlay& before)
    : row_range_(row_range), deletion_(deletion), columns_(columns), before_(before) {}

void ExplicitRangeDeleteFilter::take_ranges(const causality::RangeIndex& ranges) {
  ranges_ = &ranges;
  for (const BatchOverlay::DeletedRange& laid : before_.deleted_in(row_range_)) {
    laid_.push_back(laid.range);
    if (!wins(deletion_, laid.version)) newer_.push_back(laid.range);
  }
  ranges_->each_overlapping(row_range_, [&](const RangeDelete& range) {
    ++size_;
    for (const Version& version : range.store.versions()) {
      if (!wins(deletion_, version)) newer_versions_.push_back({&range, &version});
    }
  });
}

std::optional<std::size_t> ExplicitRangeDeleteFilter::take_newer_range() {
  if (newer_taken_ < newer_versions_.size()) {
    const std::size_t overlaps_before = overlaps_;
    std::ranges::move(where_it_holds(newer_versions_[newer_taken_++]), std::back_inserter(newer_));
    return overlaps_ - overlaps_before + 1;
  }
  std::ranges::sort(newer_);
  pieces_ = cut(row_range_, newer_);
  return std::nullopt;
}

std::vector<RowRange> ExplicitRangeDeleteFilter::where_it_holds(const NewerVersion& newer) {
  const RowRange here = common_part(newer.range->range, row_range_);
  if (overlaps_ >= kOverlapsMax) return {here};
  std::vector<RowRange> superseded = laid_;
  overlaps_ += laid_.size();
  ranges_->each_overlapping(here, [&](const RangeDelete& other) {
    // Beyond the limit it counts as holding there.
    if (++overlaps_ > kOverlapsMax) return;
    if (other.store.context().contains(newer.version->dot)) superseded.push_back(other.range);
  });
  return cut(here, std::move(superseded));
}

bool ExplicitRangeDeleteFilter::deletes_at(const RowKey& row) const {
  return holds_any(pieces_, row);
}

// Ascending, each once.
std::vector<ColumnId> ExplicitRangeDeleteFilter::columns_there(const RowKey& row,
                                                               const PartitionStore& stored) const {
  std::vector<ColumnId> columns;
  if (const auto found = stored.rows().find(row); found != stored.rows().end()) {
    for (const auto& cell : found->second.cells()) columns.push_back(cell.first);
  }
  const auto [first, last] = before_.written_in(causality::range_of_row(row));
  for (auto cell = first; cell != last; ++cell) columns.push_back(cell->first.second);
  std::ranges::sort(columns);
  const auto repeated = std::ranges::unique(columns);
  columns.erase(repeated.begin(), repeated.end());
  return columns;
}

std::vector<ColumnId> ExplicitRangeDeleteFilter::columns_beside(
    const RowKey& row, const std::vector<ColumnId>& there) const {
  std::vector<ColumnId> columns = row.empty() ? columns_.of_first : columns_.of_rows;
  std::erase_if(columns,
                [&](ColumnId column) { return std::ranges::binary_search(there, column); });
  return columns;
}

CellChange ExplicitRangeDeleteFilter::deletion_of(const RowKey& row, ColumnId column) const {
  CellChange change;
  change.row = row;
  change.column = column;
  change.kind = causality::VersionKind::deletion;
  change.expires = deletion_.expires;
  return change;
}

std::size_t ExplicitRangeDeleteFilter::take_row(const RowKey& row, const PartitionStore& stored) {
  // What holds for a cell that has nothing of its own.
  CellStore elsewhere;
  const Version* const laid = before_.deleted_at(row);
  if (laid != nullptr) {
    elsewhere = CellStore({*laid}, {});
  } else {
    for (const RangeDelete& range_delete : stored.range_deletes())
      elsewhere.absorb(range_delete.store);
  }
  Row taken;
  const bool wins_elsewhere = wins(deletion_, elsewhere);
  taken.is_deleted = wins_elsewhere;
  std::size_t cells_there = 0;
  std::size_t effort = 0;
  const std::vector<ColumnId> columns = columns_there(row, stored);
  std::vector<ColumnId> beside;
  for (const ColumnId column : columns) {
    const Version* const written = before_.find(row, column);
    const CellStore there =
        written == nullptr ? stored.cell(row, column) : CellStore({*written}, {});
    if (!wins(deletion_, there)) {
      ++cells_there;
      taken.is_deleted = false;
    } else if (!there.versions().empty()) {
      ++cells_there;
      taken.there.push_back(deletion_of(row, column));
    } else {
      beside.push_back(column);  // A context alone.
    }
  }
  effort += columns.size();
  if (!elsewhere.versions().empty()) {
    const std::vector<ColumnId> others = columns_beside(row, columns);
    cells_there += others.size();
    effort += others.size();
    for (const ColumnId column : others) {
      if (wins_elsewhere) taken.there.push_back(deletion_of(row, column));
    }
  }
  if (!taken.is_deleted && absent_ <= kAbsentMax) {
    if (elsewhere.versions().empty()) {
      std::ranges::move(columns_beside(row, columns), std::back_inserter(beside));
    }
    absent_ += beside.size();
    effort += beside.size();
    if (absent_ <= kAbsentMax) {
      for (const ColumnId column : beside) taken.absent.push_back(deletion_of(row, column));
    }
  }
  size_ += std::max<std::size_t>(cells_there, 1);
  if (!taken.is_deleted) newer_rows_.push_back(causality::range_of_row(row));
  rows_.insert_or_assign(rows_.end(), row, std::move(taken));
  return effort;
}

std::optional<std::size_t> ExplicitRangeDeleteFilter::take_row_of_overlay() {
  const RowRange left =
      overlay_at_ ? RowRange{.from = causality::range_of_row(*overlay_at_).to, .to = row_range_.to}
                  : row_range_;
  auto [first, last] = before_.written_in(left);
  while (first != last && rows_.contains(first->first.first)) ++first;
  if (first == last) return std::nullopt;
  overlay_at_ = first->first.first;
  PartitionStore around;
  ranges_->each_overlapping(causality::range_of_row(*overlay_at_),
                            [&](const RangeDelete& range) { around.absorb(range); });
  return take_row(*overlay_at_, around);
}

FilteredRangeDelete ExplicitRangeDeleteFilter::finish(std::size_t ranges_max,
                                                      std::size_t cells_max) && {
  FilteredRangeDelete judged;
  std::vector<RowRange> alone;  // rows that are deleted in places that are not
  for (const auto& [row, taken] : rows_) {
    if (taken.is_deleted && !deletes_at(row)) alone.push_back(causality::range_of_row(row));
  }
  // Those of the overlay alone came last.
  if (!std::ranges::is_sorted(newer_rows_)) std::ranges::sort(newer_rows_);
  std::vector<RowRange> holes;
  holes.reserve(newer_.size() + newer_rows_.size());
  std::ranges::merge(newer_, newer_rows_, std::back_inserter(holes));
  judged.deleted_ranges = cut(row_range_, std::move(holes));
  std::ranges::move(alone, std::back_inserter(judged.deleted_ranges));
  const bool too_many = judged.deleted_ranges.size() > ranges_max;
  if (too_many) judged.deleted_ranges.clear();
  for (auto& [row, taken] : rows_) {
    if (taken.is_deleted && !too_many) continue;
    std::ranges::move(taken.there, std::back_inserter(judged.cells));
  }
  if (absent_ > kAbsentMax || judged.cells.size() + absent_ > cells_max) return judged;
  for (auto& [row, taken] : rows_) {
    std::ranges::move(taken.absent, std::back_inserter(judged.cells));
  }
  return judged;
}

}  // namespace helenus::replication
