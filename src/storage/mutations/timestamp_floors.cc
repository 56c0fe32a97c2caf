#include "storage/mutations/timestamp_floors.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace helenus::storage {

using base::ByteView;
using causality::Clock;
using causality::Timestamp;

namespace {

std::uint64_t hash_of(TableId table, ByteView partition) {
  return base::hash64(partition, table.value());
}

std::uint64_t hash_of(std::uint64_t partition_hash, ByteView row) {
  return base::hash64(row, partition_hash);
}

// A row's delete is of that row, not of its partition.
bool is_one_row(const causality::RowRange& row_range) {
  if (!row_range.from || !row_range.to || row_range.to->size() != row_range.from->size() + 1)
    return false;
  const ByteView to = *row_range.to;
  return to.back() == std::byte{0} &&
         base::equal(to.first(row_range.from->size()), *row_range.from);
}

void raise(Timestamp& floor, Timestamp to) {
  floor = std::max(floor, to);
}

// The same dots and all below them.
Clock without_gaps(const Clock& dots) {
  Clock clock;
  for (const Clock::Entry& entry : dots.entries()) {
    clock.add(causality::DotRange{entry.actor, 1, entry.counters.max()});
  }
  for (const causality::ClosedActors& closed : dots.closed()) clock.close(closed);
  return clock;
}

}  // namespace

Timestamp TimestampFloors::Generation::row(std::uint64_t partition_hash,
                                           std::uint64_t row_hash) const {
  Timestamp floor = causality::kTimestampMin;
  if (const auto at = rows.find(row_hash); at != rows.end()) raise(floor, at->second);
  const auto at = partitions.find(partition_hash);
  if (at != partitions.end()) raise(floor, at->second.deleted_ranges);
  return floor;
}

Timestamp TimestampFloors::Generation::partition(std::uint64_t partition_hash) const {
  const auto at = partitions.find(partition_hash);
  return at == partitions.end() ? causality::kTimestampMin : at->second.any;
}

void TimestampFloors::add(TableId table, ByteView partition, const causality::Delta& delta) {
  if (young_.full(rows_max_)) {
    fold(old_.dots);
    old_ = std::exchange(young_, {});
  }
  young_.dots.up_to.add(causality::DotRange{delta.dot.actor, 1, delta.dot.counter});
  raise(young_.dots.largest, delta.timestamp);
  const std::uint64_t partition_hash = hash_of(table, partition);
  PartitionFloor& floor =
      young_.partitions.try_emplace(partition_hash, PartitionFloor{}).first->second;
  raise(floor.any, delta.timestamp);
  const auto raise_row = [&](ByteView row) {
    const auto [at, added] = young_.rows.try_emplace(hash_of(partition_hash, row), delta.timestamp);
    if (!added) raise(at->second, delta.timestamp);
  };
  for (const causality::RowRange& row_range : delta.deleted_ranges) {
    if (is_one_row(row_range)) {
      raise_row(*row_range.from);
    } else {
      raise(floor.deleted_ranges, delta.timestamp);
    }
  }
  const causality::RowKey* last = nullptr;
  for (const causality::CellChange& cell : delta.cells) {
    if (last != nullptr && cell.row == *last) continue;
    last = &cell.row;
    raise_row(cell.row);
  }
}

void TimestampFloors::add(const Clock& dots, Timestamp largest) {
  fold({.up_to = without_gaps(dots), .largest = largest});
}

void TimestampFloors::fold(const Dots& dots) {
  if (dots.empty()) return;
  folded_.push_back({.dots = dots});
  raise(folded_floor_, dots.largest);
  // A third one alike joins the two oldest of them, which may make a third one among those before.
  for (std::size_t last = folded_.size(); last >= 3; last -= 2) {
    Folded& older = folded_[last - 3];
    const Folded& newer = folded_[last - 2];
    if (older.folds != newer.folds || newer.folds != folded_[last - 1].folds) break;
    older.dots.up_to = causality::join(older.dots.up_to, newer.dots.up_to);
    raise(older.dots.largest, newer.dots.largest);
    older.folds += newer.folds;
    folded_.erase(folded_.begin() + static_cast<std::ptrdiff_t>(last) - 2);
  }
}

void TimestampFloors::find_folded_floor() {
  folded_floor_ = causality::kTimestampMin;
  for (const Folded& each : folded_) raise(folded_floor_, each.dots.largest);
}

void TimestampFloors::clear() {
  young_ = {};
  old_ = {};
  folded_.clear();
  find_folded_floor();
}

void TimestampFloors::shrink() {
  Generation& generation = old_.dots.empty() ? young_ : old_;
  fold(generation.dots);
  generation = {};
}

Timestamp TimestampFloors::of(TableId table, ByteView partition,
                              std::span<const causality::CellChange> cells,
                              std::span<const causality::RowRange> deleted_ranges) const {
  Timestamp floor = folded_floor_;
  if (young_.dots.empty() && old_.dots.empty()) return floor;
  const std::uint64_t partition_hash = hash_of(table, partition);
  const auto take_row = [&](ByteView row) {
    const std::uint64_t row_hash = hash_of(partition_hash, row);
    raise(floor, young_.row(partition_hash, row_hash));
    raise(floor, old_.row(partition_hash, row_hash));
  };
  for (const causality::RowRange& row_range : deleted_ranges) {
    if (is_one_row(row_range)) {
      take_row(*row_range.from);
    } else {
      raise(floor, young_.partition(partition_hash));
      raise(floor, old_.partition(partition_hash));
    }
  }
  const causality::RowKey* last = nullptr;
  for (const causality::CellChange& cell : cells) {
    if (last != nullptr && cell.row == *last) continue;
    last = &cell.row;
    take_row(cell.row);
  }
  return floor;
}

Timestamp TimestampFloors::of_row(TableId table, ByteView partition, ByteView row) const {
  Timestamp floor = folded_floor_;
  if (young_.dots.empty() && old_.dots.empty()) return floor;
  const std::uint64_t partition_hash = hash_of(table, partition);
  const std::uint64_t row_hash = hash_of(partition_hash, row);
  raise(floor, young_.row(partition_hash, row_hash));
  raise(floor, old_.row(partition_hash, row_hash));
  return floor;
}

Timestamp TimestampFloors::of_everything() const {
  return std::max({folded_floor_, young_.dots.largest, old_.dots.largest});
}

void TimestampFloors::collect(const Clock& stable) {
  const auto over = [&](const Dots& dots) { return stable.covers(dots.up_to); };
  if (std::erase_if(folded_, [&](const Folded& each) { return over(each.dots); }) > 0) {
    find_folded_floor();
  }
  if (!over(old_.dots)) return;
  old_ = over(young_.dots) ? Generation() : std::move(young_);
  young_ = {};
}

}  // namespace helenus::storage
