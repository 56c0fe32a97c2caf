// RangeCursor: the rows of a range of partitions, in the order of their keys, both ways, across
// tablets. Where one tablet ends the next one begins.
//
//   CO_TRY_VOID(co_await cursor->seek(partition, row));
//   while (cursor->valid()) { ... CO_TRY_VOID(co_await cursor->next()); }
//   CO_TRY_VOID(co_await cursor->wait_durable(until));       before anything is shown
//
// A deleted row is a row here; see storage/read/table_cursor.h. A tablet that only this node holds
// is read by a cursor of the engine where it is of this core; all others by RemoteRows, from
// another core or from as many replicas as the level needs.
//
// Core affinity: the core of its Runtime.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "replication/cluster/replicas.h"
#include "replication/map/replica_map.h"
#include "replication/read/remote_rows.h"
#include "replication/request/read_request.h"
#include "runtime/cores.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "storage/engine/engine.h"

namespace helenus::replication {

class RangeCursor {
 public:
  using Motion = storage::TableCursor::Motion;

  // The range is of one keyspace. Where that is gone, every motion is an error (not_found).
  // Requires: the replicas outlive it.
  RangeCursor(runtime::Runtime& here, const Replicas& replicas, storage::TableId table,
              storage::KeyRange partitions, ScanOptions options);
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
  base::ByteView partition() const {
    return remote_ == nullptr ? cursor_->partition() : remote_->partition();
  }
  base::ByteView row_key() const {
    return remote_ == nullptr ? cursor_->row_key() : remote_->row_key();
  }
  base::Result<causality::PartitionStore> read() {
    if (remote_ != nullptr) return remote_->stored();
    return cursor_->read();
  }
  // What was read while this was the same number is of one moment, if that began where the cursor
  // was last sought: a cursor that was sought before a write may pass by what the write brought. So
  // whoever reads rows that belong together asks whether moment() is sought_at() still, seeks the
  // first of them again if not, and again if moment() is another one at the last of them. Only with
  // ScanOptions::at_one_moment. Rows of more bytes than RowsAnswer::kBytesMax together may come
  // from another core or node in parts of different moments.
  std::uint64_t moment() const { return remote_ == nullptr ? engine_->last_write() : trips(); }
  std::uint64_t sought_at() const { return remote_ == nullptr ? sought_at_ : trips(); }
  // Whether rows come from elsewhere, so many bytes at a time at the most.
  bool reads_in_parts() const { return remote_ != nullptr; }
  // The next seek in this tablet is for many rows that belong together.
  void expect_many() {
    if (remote_ != nullptr) remote_->expect_many();
  }
  // The clock of the tablet it stands in.
  const causality::Clock& clock() const {
    return remote_ == nullptr ? cursor_->clock() : remote_->clock();
  }

  // What is read is shown to nobody whose moment is earlier (R8).
  causality::WallTime wall() const {
    return remote_ == nullptr ? causality::WallTime{} : remote_->wall();
  }

  // Waits until everything the cursor has shown is durable.
  runtime::Task<base::Result<void>> wait_durable(runtime::Until until);

 private:
  base::Result<void> open_tablet(std::size_t index);
  RemoteRows::Fetch fetch_from(std::size_t index, const HeldTablet* held);
  std::size_t tablet_count() const { return keyspace_ == nullptr ? 0 : keyspace_->tablet_count(); }
  const TabletBounds& bounds(std::size_t index) const;
  std::size_t index_of(base::ByteView partition) const;
  bool opened() const { return cursor_ != nullptr || remote_ != nullptr; }
  std::uint64_t trips() const { return remote_->trips(); }
  // Notes that the cursor of the tablet is sought now.
  void note_sought() {
    if (remote_ == nullptr) sought_at_ = engine_->last_write();
  }
  // Notes what the cursor of this core has shown.
  void take_trace();
  bool tablet_valid() const { return remote_ == nullptr ? cursor_->valid() : remote_->valid(); }
  // Does it with the cursor of the tablet, whichever kind it is.
  template <class Motion>
  auto on_tablet(Motion motion) {
    return remote_ == nullptr ? motion(*cursor_) : motion(*remote_);
  }
  // No partition is in the range. It may begin where the keyspace ends: behind the last token.
  bool is_hollow() const { return partitions_.to && *partitions_.to <= partitions_.from; }
  base::Result<void> nowhere();
  void arrive();
  // From the end of a tablet to the next one that has a row of the range.
  runtime::Task<base::Result<void>> go_on();
  runtime::Task<base::Result<void>> go_back();
  runtime::Task<base::Result<void>> finish_next(Motion motion);
  runtime::Task<base::Result<void>> finish_previous(Motion motion);

  runtime::Runtime& here_;
  const Replicas& replicas_;
  const Replicas::Core& core_;
  // Of the beginning.
  const HeldTabletsPtr held_;
  const KeyspaceMap* const keyspace_;  // of their map; null if it is gone
  const storage::TableId table_;
  const storage::KeyRange partitions_;
  const ScanOptions options_;
  std::size_t index_ = 0;
  // One of them, when it stands in a tablet: of this core, or of another.
  std::unique_ptr<storage::TableCursor> cursor_;
  std::unique_ptr<RemoteRows> remote_;
  bool valid_ = false;
  // The newest write seen in the tablets of this core, and their engine.
  storage::ReadTrace seen_;
  storage::Engine* engine_ = nullptr;
  std::uint64_t sought_at_ = 0;
};

}  // namespace helenus::replication
