// LiveEntries: the entries of an index without those that are stale, for a merge of its files.
//
// An entry is stale if no version that its table has at this replica says it any more. Then it may
// go (R23): whatever may say it again brings it again, in a memtable that is not part of the merge.
// So the view of the table is taken when the merge begins, after every entry of its inputs was
// applied with its mutation; and what is written later is seen or not, as it comes.
//
// Where looking would cost more than kRowsMax rows for an entry, the entry stays.
//
// Owns: cursors over the table, one for each tablet. Core affinity: the engine's.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "runtime/task.h"
#include "storage/engine/engine_state.h"
#include "storage/read/entry_source.h"
#include "storage/read/table_cursor.h"
#include "storage/table/table_store.h"

namespace helenus::storage {

class LiveEntries final : public EntrySource {
 public:
  static constexpr std::size_t kRowsMax = 64;

  // Requires: all outlive it; the index derives entries. It is moved forward only.
  LiveEntries(EngineState& state, Shard& shard, const TableStore& index, const TableStore& table,
              EntrySource& entries)
      : state_(state), shard_(shard), index_(index), view_(table.view()), entries_(entries) {}

  Motion seek(base::ByteView key) override { return go_on(entries_.seek(key)); }
  Motion seek_before(base::ByteView key) override { return entries_.seek_before(key); }
  Motion next() override { return go_on(entries_.next()); }
  Motion previous() override { return entries_.previous(); }
  bool valid() const override { return entries_.valid(); }
  RowKey key() const override { return entries_.key(); }
  std::uint64_t sequence() const override { return entries_.sequence(); }
  base::Result<void> absorb_into(Entry& entry) const override {
    return entries_.absorb_into(entry);
  }

  std::uint64_t stale() const { return stale_; }

 private:
  runtime::Task<base::Result<void>> go_on(Motion motion);
  runtime::Task<base::Result<bool>> is_stale();
  // Whether some version of these rows says it.
  runtime::Task<base::Result<bool>> is_said(const EntryKey& entry, causality::ColumnId column);
  // Null if the tablet is gone.
  base::Result<TableCursor*> cursor_of(base::ByteView partition);

  EngineState& state_;
  Shard& shard_;
  const TableStore& index_;
  const TableView view_;
  EntrySource& entries_;
  std::optional<KeyRange> range_;  // of the cursor's tablet
  std::unique_ptr<TableCursor> cursor_;
  std::uint64_t stale_ = 0;
};

}  // namespace helenus::storage
