// TableCursor: the rows of one tablet of a table, in the order of their keys, both ways.
//
//   CO_TRY_VOID(co_await cursor->seek(partition, row));
//   while (cursor->valid()) {
//     ... cursor->partition(), cursor->row_key(), cursor->read() ...
//     CO_TRY_VOID(co_await cursor->next());
//   }
//   CO_TRY_VOID(co_await engine.wait_durable(cursor->trace(), until));    before anything is shown
//
// A row of which nothing is visible, a deleted one, is a row here: what a reader sees is for the
// table's policy to say. Of a partition only the row it stands on is in memory, and those deletes
// of ranges that may hold it (range_delete_key.h).
//
// Writes may come between its steps. A row is shown as it is at the moment it is read, with all
// that was written to it and to ranges around it until then, or until the memtable that the cursor
// knows was frozen. Rows read one after the other are of different moments. A row that was not
// there when the cursor was made may be passed by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/clock.h"
#include "causality/dot_store.h"
#include "runtime/gate.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "storage/read/entry_source.h"
#include "storage/read/row_range_deletes.h"
#include "storage/read/row_read.h"
#include "storage/read/table_view.h"

namespace helenus::storage {

// A row's entry, its own deletes as a range, and those of the partition's ranges that it lies in.
causality::PartitionStore assemble_row(base::ByteView row, Entry entry,
                                       const RowRangeDeletes& older, const RowRangeDeletes& active);

class TableCursor {
 public:
  // The pass keeps the engine from going away. The clock has seen all writes of the tablet up to
  // that sequence number.
  TableCursor(runtime::Gate::Pass pass, TableView view, KeyRange range, causality::Clock clock,
              std::uint64_t clock_sequence, SstableCursorOptions options);
  TableCursor(const TableCursor&) = delete;
  TableCursor& operator=(const TableCursor&) = delete;

  using Motion = EntrySource::Motion;

  // To the first row at or after this one. Errors of all motions: corrupt, unsupported, io_error,
  // timeout, cancelled; the cursor then stands nowhere.
  runtime::Task<base::Result<void>> seek(base::Bytes partition, base::Bytes row);
  // To the last row before this one.
  runtime::Task<base::Result<void>> seek_before(base::Bytes partition, base::Bytes row);
  // To the first row of the first partition at or after the bound, which need not be a partition's
  // own bytes; and to the last row of the last partition before it.
  runtime::Task<base::Result<void>> seek_bound(base::Bytes bound);
  runtime::Task<base::Result<void>> seek_before_bound(base::Bytes bound);
  runtime::Task<base::Result<void>> seek_first() { return seek_bound(range_.from); }
  runtime::Task<base::Result<void>> seek_last();
  // Both require: valid(). They wait, and allocate, only when something must be read.
  Motion next() { return step(Direction::forward); }
  Motion previous() { return step(Direction::backward); }

  // The deletes of ranges of a partition, those that lie in one place together
  // (range_delete_key.h):
  //   CO_TRY_VOID(co_await cursor->seek_ranges(partition));
  //   while (cursor->at_ranges()) {
  //     ... cursor->ranges() ...
  //     CO_TRY_VOID(co_await cursor->next_ranges());
  //   }
  // They are of all fragments, and of the active memtable as it is when it gets there. One range
  // may be in two places. Those of exactly one row lie with the row, save what older formats have
  // among the ranges. Meanwhile it stands on no row. Errors: as of all motions.
  runtime::Task<base::Result<void>> seek_ranges(base::Bytes partition);
  bool at_ranges() const;
  // Both require: at_ranges().
  base::Result<Entry> ranges();
  Motion next_ranges() { return step_entries(Direction::forward); }

  bool valid() const { return valid_; }
  // All below require valid(); views live until the cursor moves.
  base::ByteView partition() const { return entries_->key().partition(); }
  base::ByteView row_key() const;
  // The row with the ranges it lies in. Errors: corrupt, unsupported.
  base::Result<causality::PartitionStore> read();
  // The same without the deletes of ranges that it lies in.
  base::Result<Entry> row();
  // The row in memory of the cursor's own, which the next one takes over: a walk that keeps nothing
  // allocates nothing for each row. Lives until the cursor moves or is asked again.
  base::Result<const Entry*> look();

  // The clock that everything it shows may be shown with.
  const causality::Clock& clock() const { return clock_; }
  // RowRead::is_newer_than_clock, of all that it has shown.
  bool is_newer_than_clock() const { return trace_.sequence > clock_sequence_; }
  const ReadTrace& trace() const { return trace_; }

 private:
  enum class Direction : unsigned char { forward, backward };

  Motion step(Direction direction);
  Motion step_entries(Direction direction) {
    return direction == Direction::forward ? entries_->next() : entries_->previous();
  }
  runtime::Task<base::Result<void>> step_waiting(Motion motion, Direction direction);
  Motion seek_entries(base::ByteView key, Direction direction);
  // From where the entries stand to the next row of the tablet in that direction.
  Motion skip_to_row(Direction direction);
  // Whether they stand on a row of the tablet, or nowhere in it.
  bool at_row_or_end();
  // From a partition's deletes of ranges, of which there may be many, past all of them.
  runtime::Task<base::Result<void>> leave_ranges(Direction direction);
  bool ranges_loaded() const;
  runtime::Task<base::Result<void>> skip_to_row_waiting(Direction direction);
  void arrive();
  bool in_tablet() const;
  // Merges all there is under the key that the entries stand on.
  base::Result<void> absorb_here(Entry& entry);
  // Whether the active memtable may have got the key since its source went past it.
  bool may_have_come_late() const;

  runtime::Gate::Pass pass_;
  const TableView view_;
  const KeyRange range_;
  const causality::Clock clock_;
  const std::uint64_t clock_sequence_;
  const runtime::Until until_;
  const bool older_may_have_ranges_;
  std::unique_ptr<MergedEntries> entries_;
  std::size_t active_keys_ = 0;  // of the active memtable, when all sources were last sought
  bool valid_ = false;
  base::Bytes ranges_of_;  // the partition whose ranges are sought
  ReadTrace trace_;
  Entry row_;
  RowRangeDeletes older_ranges_;
  RowRangeDeletes active_ranges_;
};

}  // namespace helenus::storage
