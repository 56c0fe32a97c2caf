#include "storage/engine/live_entries.h"

#include <algorithm>
#include <utility>

namespace helenus::storage {

using base::Bytes;
using base::ByteView;
using base::Result;
using runtime::Task;

namespace {

// What all versions of these rows say.
void derive_all(const TableStore& index, ByteView tablet_from, ByteView partition,
                const causality::PartitionStore& stored, std::vector<DerivedEntry>& into) {
  for (const auto& [row, cells] : stored.rows()) {
    for (const auto& [column, cell] : cells.cells()) {
      for (const causality::Version& version : cell.versions()) {
        causality::CellChange change;
        change.row = row;
        change.column = column;
        change.kind = version.kind;
        change.value = version.value;
        index.derive_entries(tablet_from, partition, {&change, 1}, into);
      }
    }
  }
}

}  // namespace

Task<Result<void>> LiveEntries::go_on(Motion motion) {
  CO_TRY_VOID(co_await std::move(motion));
  while (entries_.valid()) {
    CO_TRY(const bool stale, co_await is_stale());
    if (!stale) co_return {};
    ++stale_;
    CO_TRY_VOID(co_await entries_.next());
  }
  co_return {};
}

Task<Result<bool>> LiveEntries::is_stale() {
  const RowKey key = entries_.key();
  const EntryKey parts = key_parts(key.bytes, key.partition_size);
  if (parts.kind != EntryKind::row) co_return false;
  Entry entry;
  CO_TRY_VOID(entries_.absorb_into(entry));
  for (const auto& [column, cell] : entry.row().cells()) {
    CO_TRY(const bool said, co_await is_said(parts, column));
    if (said) co_return false;
  }
  co_return true;
}

Result<TableCursor*> LiveEntries::cursor_of(ByteView partition) {
  if (range_ && range_->contains(partition)) return cursor_.get();
  cursor_.reset();
  range_.reset();
  for (const auto& [id, tablet] : shard_.tablets()) {
    if (!tablet->range.contains(partition) || tablet->dropping) continue;
    TRY(auto pass, state_.gate.enter());
    SstableCursorOptions options;
    options.until = {.stop = state_.stop.token()};
    range_ = tablet->range;
    cursor_ = std::make_unique<TableCursor>(std::move(pass), view_, tablet->range, tablet->durable,
                                            state_.staged.durable_sequence(), options);
    return cursor_.get();
  }
  return nullptr;
}

// The rows that an entry points at begin with what it has of their key; among them are the row's
// own and those that lie behind it.
Task<Result<bool>> LiveEntries::is_said(const EntryKey& entry, causality::ColumnId column) {
  const std::size_t size = column.value();
  // One that was cut does not tell.
  if (entry.clustering.size() < size) co_return true;
  CO_TRY(TableCursor* const cursor, cursor_of(entry.partition));
  if (cursor == nullptr) co_return true;
  const Bytes partition = Bytes::copy_of(entry.clustering.first(size));
  const Bytes row = Bytes::copy_of(entry.clustering.subspan(size));
  CO_TRY_VOID(co_await cursor->seek(partition, row));
  std::vector<DerivedEntry> said;
  for (std::size_t rows = 0; cursor->valid(); ++rows) {
    if (!base::equal(cursor->partition(), partition) ||
        !base::as_text(cursor->row_key()).starts_with(base::as_text(row))) {
      break;
    }
    if (rows == kRowsMax) co_return true;
    CO_TRY(auto stored, cursor->read());
    stored.apply_range_deletes_to_rows();
    said.clear();
    derive_all(index_, range_->from, partition, stored, said);
    const bool is_there = std::ranges::any_of(said, [&](const DerivedEntry& each) {
      return base::equal(each.partition, entry.partition) &&
             base::equal(each.cell.row, entry.clustering) && each.cell.column == column;
    });
    if (is_there) co_return true;
    CO_TRY_VOID(co_await cursor->next());
  }
  co_return false;
}

}  // namespace helenus::storage
