// RangeCursor: the rows of a range of partitions, in the order of their keys, both ways, across
// tablets. Where one tablet ends the next one begins.
//
//   CO_TRY_VOID(co_await cursor->seek(partition, row));
//   while (cursor->valid()) { ... CO_TRY_VOID(co_await cursor->next()); }
//   CO_TRY_VOID(co_await cursor->settle(until));       before anything is shown
//
// A deleted row is a row here; see storage/table_cursor.h.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/task.h"
#include "storage/engine.h"

namespace helenus::replication {

class RangeCursor {
 public:
  using Motion = storage::TableCursor::Motion;

  // Requires: the tablets are ascending and cover the range; engine and tablets outlive the cursor.
  RangeCursor(storage::Engine& engine, const std::vector<storage::TabletInfo>& tablets,
              storage::TableId table, storage::KeyRange partitions,
              storage::SstableCursorOptions options);
  RangeCursor(const RangeCursor&) = delete;
  RangeCursor& operator=(const RangeCursor&) = delete;

  // To the first row at or after this one, of the range. Errors of all motions: those of
  // TableCursor, and not_found when the table is gone; the cursor then stands nowhere.
  runtime::Task<base::Result<void>> seek(base::Bytes partition, base::Bytes row);
  // To the last row before this one, of the range.
  runtime::Task<base::Result<void>> seek_before(base::Bytes partition, base::Bytes row);
  runtime::Task<base::Result<void>> seek_first();
  runtime::Task<base::Result<void>> seek_last();
  // Both require: valid(). They wait, and allocate, only when something must be read or a tablet
  // ends.
  Motion next();
  Motion previous();

  bool valid() const { return valid_; }
  // All below require valid(); views live until the cursor moves.
  base::ByteView partition() const { return cursor_->partition(); }
  base::ByteView row_key() const { return cursor_->row_key(); }
  base::Result<causality::PartitionStore> read() { return cursor_->read(); }
  // The clock of the tablet it stands in.
  const causality::Clock& clock() const { return cursor_->clock(); }

  // Waits until everything the cursor has shown is durable.
  runtime::Task<base::Result<void>> settle(runtime::Until until);

 private:
  base::Result<void> open_tablet(std::size_t index);
  void arrive();
  // From the end of a tablet to the next one that has a row of the range.
  runtime::Task<base::Result<void>> go_on();
  runtime::Task<base::Result<void>> go_back();
  runtime::Task<base::Result<void>> finish_next(Motion motion);
  runtime::Task<base::Result<void>> finish_previous(Motion motion);

  storage::Engine& engine_;
  const std::vector<storage::TabletInfo>& tablets_;
  const storage::TableId table_;
  const storage::KeyRange partitions_;
  const storage::SstableCursorOptions options_;
  std::size_t index_ = 0;
  std::unique_ptr<storage::TableCursor> cursor_;
  bool valid_ = false;
  // The newest write seen in the tablets it has left.
  storage::ReadTrace left_;
};

}  // namespace helenus::replication
