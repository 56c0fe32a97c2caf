#include "storage/read/row_range_deletes.h"

#include <algorithm>
#include <utility>

namespace helenus::storage {

using base::Result;
using runtime::Task;

namespace {

std::string together_key(base::ByteView partition) {
  return encode_key({partition, EntryKind::deleted_ranges, {}});
}

std::string path_key(base::ByteView partition, base::ByteView row, RangeDepth depth) {
  const std::string path = range_path(row, depth);
  return encode_key({partition, EntryKind::deleted_ranges, base::as_bytes(path)});
}

}  // namespace

bool RowRangeDeletes::Level::serves(base::ByteView key) const {
  if (!loaded) return false;
  if (!has_digits(key, depth)) return too_short;
  return !too_short && same_digits(key, base::as_bytes(row), depth);
}

void RowRangeDeletes::Level::take(base::ByteView key, Entry found) {
  row.assign(base::as_text(key));
  entry = std::move(found);
  index = causality::RangeIndex(entry.deleted_ranges());
  loaded = true;
}

bool RowRangeDeletes::serves(base::ByteView partition, base::ByteView row) const {
  return is_of(partition) &&
         std::ranges::all_of(levels_, [&](const Level& level) { return level.serves(row); });
}

void RowRangeDeletes::begin(base::ByteView partition, Entry together) {
  together_ = std::move(together);
  together_index_ = causality::RangeIndex(together_.deleted_ranges());
  levels_.clear();
  for (const RangeDepth depth : together_.depths()) levels_.emplace_back().depth = depth;
  partition_ = std::string(base::as_text(partition));
}

RowRangeDeletes::Level* RowRangeDeletes::next_missing(base::ByteView row) {
  for (Level& level : levels_) {
    if (level.serves(row)) continue;
    level.entry.clear();
    level.index = {};
    level.too_short = !has_digits(row, level.depth);
    level.loaded = level.too_short;
    if (!level.loaded) return &level;
  }
  return nullptr;
}

Task<Result<void>> RowRangeDeletes::load_older(const TableView& view, base::ByteView partition,
                                               base::ByteView row, runtime::Until until,
                                               ReadTrace& trace) {
  if (!is_of(partition)) {
    partition_.reset();
    const std::string key = together_key(partition);
    CO_TRY(auto together, co_await view.find_older(base::as_bytes(key), until, trace));
    begin(partition, std::move(together));
  }
  while (Level* level = next_missing(row)) {
    ++trace.range_paths_read;
    const std::string key = path_key(partition, row, level->depth);
    CO_TRY(auto entry, co_await view.find_older(base::as_bytes(key), until, trace));
    level->take(row, std::move(entry));
  }
  co_return {};
}

void RowRangeDeletes::load_active(const TableView& view, base::ByteView partition,
                                  base::ByteView row, ReadTrace& trace) {
  const auto find = [&](const std::string& key) {
    Entry entry;
    view.absorb_active(base::as_bytes(key), entry, trace);
    return entry;
  };
  const std::uint64_t writes = view.active().range_writes();
  if (!is_of(partition) || range_writes_ != writes) {
    begin(partition, find(together_key(partition)));
    range_writes_ = writes;
  }
  while (Level* level = next_missing(row)) {
    ++trace.range_paths_read;
    level->take(row, find(path_key(partition, row, level->depth)));
  }
}

void RowRangeDeletes::add_to(causality::PartitionStore& partition,
                             const causality::RowKey& row) const {
  if (!partition_) return;
  const causality::RowRange sought = causality::range_of_row(row);
  const auto add = [&](const causality::RangeIndex& index) {
    index.each_overlapping(sought,
                           [&](const auto& range_delete) { partition.absorb(range_delete); });
  };
  add(together_index_);
  for (const Level& level : levels_) add(level.index);
}

}  // namespace helenus::storage
