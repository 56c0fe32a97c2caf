#include "causality/resolve.h"

#include <algorithm>

#include "base/assert.h"
#include "causality/counter.h"

namespace helenus::causality {

namespace {

std::strong_ordering defeats_by_content(const Version& a, const Version& b) {
  if (const auto order = a.timestamp <=> b.timestamp; order != 0) return order;
  const bool a_empty = a.kind == VersionKind::deletion;
  const bool b_empty = b.kind == VersionKind::deletion;
  if (const auto order = a_empty <=> b_empty; order != 0) return order;
  if (const auto order = a.expires <=> b.expires; order != 0) return order;  // none is the least
  return a.value <=> b.value;
}

}  // namespace

std::strong_ordering defeats(const Version& a, const Version& b) {
  if (const auto order = defeats_by_content(a, b); order != 0) return order;
  return a.dot <=> b.dot;
}

bool shows_nothing(const Version& version, WallTime now) {
  return version.kind == VersionKind::deletion || is_record(version.kind) ||
         (version.expires && *version.expires <= now);
}

namespace {

const Version* winner(std::span<const Version> versions) {
  const auto best = std::ranges::max_element(
      versions, [](const Version& a, const Version& b) { return defeats(a, b) < 0; });
  return best == versions.end() ? nullptr : &*best;
}

bool expired_everywhere(const Version& version, const Stability& stable) {
  return stable.wall && version.expires && *version.expires <= *stable.wall;
}

}  // namespace

bool is_over(const Version& version, const Stability& stable) {
  const bool is_forgettable = version.kind == VersionKind::deletion && !version.expires;
  return is_forgettable || is_record(version.kind) || expired_everywhere(version, stable);
}

VisibleVersions visible(const CellStore& cell, Policy policy, WallTime now) {
  VisibleVersions seen;
  if (policy == Policy::lww) {
    const Version* best = winner(cell.versions());
    if (best != nullptr && !shows_nothing(*best, now)) seen.push_back(best);
    return seen;
  }
  if (policy == Policy::counter) return living(cell);
  for (const Version& version : cell.versions()) {
    if (!shows_nothing(version, now)) seen.push_back(&version);
  }
  return seen;
}

Stability stability(const Clock& own, WallTime own_wall,
                    std::span<const std::optional<Watermark>> members_and_pending) {
  Stability stable{.dots = base(own), .wall = own_wall};
  for (const std::optional<Watermark>& watermark : members_and_pending) {
    if (!watermark) return {};
    stable.dots = meet(stable.dots, base(watermark->base));
    stable.wall = std::min(*stable.wall, watermark->wall);
  }
  return stable;
}

std::vector<Dot> droppable(const CellStore& cell, Policy policy, const Stability& stable) {
  std::vector<Dot> dots;
  if (policy == Policy::counter || cell.versions().empty()) return dots;
  const Version* best = winner(cell.versions());
  // In an 'lww' table everything up to the strongest version that may go goes with it.
  const Version* strongest = nullptr;
  for (const Version& version : cell.versions()) {
    if (!stable.dots.contains(version.dot)) continue;
    const bool over = is_over(version, stable);
    if (policy == Policy::siblings) {
      if (over) dots.push_back(version.dot);
      continue;
    }
    if (!over && &version == best) continue;
    if (strongest == nullptr || defeats(version, *strongest) > 0) strongest = &version;
  }
  if (strongest == nullptr) return dots;
  for (const Version& version : cell.versions()) {
    if (defeats(version, *strongest) <= 0) dots.push_back(version.dot);
  }
  return dots;
}

void drop_stable(CellStore& cell, Policy policy, const Stability& stable) {
  if (policy == Policy::counter) return fold(cell, stable);
  cell.forget(droppable(cell, policy, stable));
}

void drop_over(CellStore& range_delete, const Stability& stable) {
  std::vector<Dot> over;
  for (const Version& version : range_delete.versions()) {
    if (stable.dots.contains(version.dot) && is_over(version, stable)) over.push_back(version.dot);
  }
  range_delete.forget(over);
}

void drop_stable(PartitionStore& partition, Policy policy, const Stability& stable) {
  partition.apply_range_deletes_to_rows();
  if (policy == Policy::counter) {
    partition.update_cells([&](CellStore& cell) { fold(cell, stable); });
  }
  struct Drop {
    RowKey row;
    ColumnId column;
    std::vector<Dot> dots;
  };
  std::vector<Drop> drops;
  for (const auto& [row, store] : partition.rows()) {
    for (const auto& [column, cell] : store.cells()) {
      drops.push_back({row, column, droppable(partition.cell(row, column), policy, stable)});
    }
  }
  std::vector<Dot> range_delete_dots;
  for (const RangeDelete& range_delete : partition.range_deletes()) {
    for (const Version& version : range_delete.store.versions()) {
      if (stable.dots.contains(version.dot) && is_over(version, stable)) {
        range_delete_dots.push_back(version.dot);
      }
    }
  }
  for (const Drop& drop : drops) partition.forget(drop.row, drop.column, drop.dots);
  partition.forget_range_deletes(range_delete_dots);
}

bool explicit_write_applies(const CellStore& cell, Timestamp covered_floor, const Version& write) {
  bool ties = false;
  for (const Version& known : cell.versions()) {
    if (defeats_by_content(write, known) <= 0) return false;
    ties = ties || known.timestamp == write.timestamp;
  }
  return write.timestamp > covered_floor || (ties && write.timestamp == covered_floor);
}

}  // namespace helenus::causality
