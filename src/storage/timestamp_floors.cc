#include "storage/timestamp_floors.h"

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
bool is_one_row(const causality::Scope& scope) {
  if (!scope.from || !scope.to || scope.to->size() != scope.from->size() + 1) return false;
  const ByteView to = *scope.to;
  return to.back() == std::byte{0} && base::equal(to.first(scope.from->size()), *scope.from);
}

void raise(Timestamp& floor, Timestamp to) {
  floor = std::max(floor, to);
}

}  // namespace

Timestamp TimestampFloors::Generation::row(std::uint64_t partition_hash,
                                           std::uint64_t row_hash) const {
  Timestamp floor = causality::kTimestampMin;
  if (const auto at = rows.find(row_hash); at != rows.end()) raise(floor, at->second);
  const auto at = partitions.find(partition_hash);
  if (at != partitions.end()) raise(floor, at->second.scopes);
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
  young_.dots.clock.add(delta.dot);
  raise(young_.dots.largest, delta.timestamp);
  const std::uint64_t partition_hash = hash_of(table, partition);
  PartitionFloor& floor =
      young_.partitions.try_emplace(partition_hash, PartitionFloor{}).first->second;
  raise(floor.any, delta.timestamp);
  const auto raise_row = [&](ByteView row) {
    const auto [at, added] = young_.rows.try_emplace(hash_of(partition_hash, row), delta.timestamp);
    if (!added) raise(at->second, delta.timestamp);
  };
  for (const causality::Scope& scope : delta.scopes) {
    if (is_one_row(scope)) {
      raise_row(*scope.from);
    } else {
      raise(floor.scopes, delta.timestamp);
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
  fold({.clock = dots, .largest = largest});
}

void TimestampFloors::fold(const Dots& dots) {
  if (dots.empty()) return;
  folded_.clock = causality::join(folded_.clock, dots.clock);
  raise(folded_.largest, dots.largest);
}

Timestamp TimestampFloors::of(TableId table, ByteView partition,
                              std::span<const causality::CellChange> cells,
                              std::span<const causality::Scope> scopes) const {
  Timestamp floor = folded_.largest;
  if (young_.dots.empty() && old_.dots.empty()) return floor;
  const std::uint64_t partition_hash = hash_of(table, partition);
  const auto take_row = [&](ByteView row) {
    const std::uint64_t row_hash = hash_of(partition_hash, row);
    raise(floor, young_.row(partition_hash, row_hash));
    raise(floor, old_.row(partition_hash, row_hash));
  };
  for (const causality::Scope& scope : scopes) {
    if (is_one_row(scope)) {
      take_row(*scope.from);
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
  Timestamp floor = folded_.largest;
  if (young_.dots.empty() && old_.dots.empty()) return floor;
  const std::uint64_t partition_hash = hash_of(table, partition);
  const std::uint64_t row_hash = hash_of(partition_hash, row);
  raise(floor, young_.row(partition_hash, row_hash));
  raise(floor, old_.row(partition_hash, row_hash));
  return floor;
}

void TimestampFloors::collect(const Clock& stable) {
  const auto over = [&](const Dots& dots) { return stable.covers(dots.clock); };
  if (over(folded_)) folded_ = {};
  if (!over(old_.dots)) return;
  old_ = over(young_.dots) ? Generation() : std::move(young_);
  young_ = {};
}

}  // namespace helenus::storage
