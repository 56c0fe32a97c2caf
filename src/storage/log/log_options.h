// What a commit log can be told. Limits on everything; validate() says what does not fit together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "runtime/time.h"
#include "storage/log/log_format.h"
#include "storage/log/log_segment_file.h"

namespace helenus::storage {

struct CommitLogOptions {
  // When a record counts as durable:
  //   batch     after a sync of a write that contains it. While one write and sync are under way
  //             the next batch fills, so many writers share a sync and nobody waits for a timer
  //   group     the same, but a sync begins at most once in `group_window`, unless half of
  //             `staged_bytes_max` waits
  //   periodic  after the write returned. A sync begins when something has been unsynced for half
  //             of `sync_period`, and nothing is acknowledged any more when something has been
  //             unsynced for the whole of it: what a power loss may take was acknowledged within
  //             one period
  LogSyncMode sync_mode = LogSyncMode::batch;
  runtime::Duration group_window = std::chrono::milliseconds(5);
  runtime::Duration sync_period = std::chrono::seconds(1);

  // Between kSegmentSizeMin and kSegmentSizeMax, a multiple of 4096; 32 to 128 MiB outside tests.
  std::uint64_t segment_size = std::uint64_t{64} << 20;
  DirectIo direct = DirectIo::automatic;
  // What the files of this core's log may take together, spare ones included.
  std::uint64_t disk_bytes_max = std::uint64_t{8} << 30;
  // Files kept for later segments when theirs are no longer needed: overwriting blocks that were
  // written before spares the file system a change of its own metadata at every sync.
  std::size_t spare_files_max = 4;

  std::size_t record_size_max = std::size_t{16} << 20;
  // Bytes that may wait for the disk, apart from those that are being written.
  std::size_t staged_bytes_max = std::size_t{32} << 20;
  // Coroutines that may wait for durability at once.
  std::size_t waiters_max = std::size_t{1} << 16;
  // After that long without a record, a batch without records says that the last one was synced, so
  // that damage to it cannot pass for a torn write.
  runtime::Duration claim_delay = std::chrono::milliseconds(500);
  // How long after a failed try the next segment's file is tried again.
  runtime::Duration retry_delay = std::chrono::seconds(1);

  // Whether every write is followed by a sync.
  bool syncs_every_write() const { return sync_mode != LogSyncMode::periodic; }
  // The alignment wanted, as far as the file system can.
  std::uint32_t alignment_wanted() const {
    const bool wanted =
        direct == DirectIo::on || (direct == DirectIo::automatic && syncs_every_write());
    return wanted ? kBatchAlignmentDirect : kBatchAlignmentBuffered;
  }
  // Errors: invalid_argument, naming the option.
  base::Result<void> validate() const;
};

}  // namespace helenus::storage
