#include "replication/explicit_timestamps/range_cut.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace helenus::replication {

using causality::RowKey;
using causality::RowRange;

std::vector<RowRange> cut(const RowRange& row_range, std::vector<RowRange> holes) {
  // By where they begin; an absent bound is the least.
  if (!std::ranges::is_sorted(holes)) std::ranges::sort(holes);
  std::vector<RowRange> left;
  std::optional<RowKey> from = row_range.from;  // where the rest begins
  for (RowRange& hole : holes) {
    if (hole.to && from && *hole.to <= *from) continue;
    if (hole.from && row_range.to && *row_range.to <= *hole.from) break;
    if (hole.from && (!from || *from < *hole.from)) left.push_back({.from = from, .to = hole.from});
    if (!hole.to) return left;
    from = std::move(hole.to);
  }
  if (!from || !row_range.to || *from < *row_range.to)
    left.push_back({.from = from, .to = row_range.to});
  return left;
}

std::vector<RowRange> joined(std::vector<RowRange> deleted_ranges) {
  std::ranges::sort(deleted_ranges);
  std::vector<RowRange> apart;
  for (RowRange& row_range : deleted_ranges) {
    const bool joins = !apart.empty() &&
                       (!apart.back().to || !row_range.from || *row_range.from <= *apart.back().to);
    if (!joins) {
      apart.push_back(std::move(row_range));
    } else if (apart.back().to && (!row_range.to || *apart.back().to < *row_range.to)) {
      apart.back().to = std::move(row_range.to);
    }
  }
  return apart;
}

bool holds_any(std::span<const RowRange> among, const RowKey& row) {
  const auto behind = std::ranges::partition_point(
      among, [&](const RowRange& row_range) { return !row_range.from || *row_range.from <= row; });
  return behind != among.begin() && std::prev(behind)->contains(row);
}

bool overlaps_any(const RowRange& row_range, std::span<const RowRange> among) {
  const auto first = std::ranges::partition_point(among, [&](const RowRange& one) {
    return one.to && row_range.from && *one.to <= *row_range.from;
  });
  return first != among.end() && first->overlaps(row_range);
}

}  // namespace helenus::replication
