// CommitLog: one core's log of records: bytes in, positions and durability out. What a record means
// is its owner's business.
//
//   TRY(const auto position, log.stage(table, record));   order is fixed here, without a suspension
//   memtable.apply(...);
//   CO_TRY_VOID(co_await log.durable(position, until));   as durable as the sync mode promises
//
// Staging copies the record into the buffer that the next write will take; one write is under way
// at a time, and while it is, the next batch fills. So the cost of a sync is shared by all who came
// meanwhile, and nobody waits for a timer (but in group mode). The path of a record allocates
// nothing: waiting happens in the waiter's own frame, buffers are reused.
//
// Durability (theory S1): `durable` is what the sync mode promises (log_options.h); `synced` is
// what survives a power loss. Only what is synced may be shown to peers as durable, and only up to
// there may an sstable or a manifest depend on the log.
//
// Segments. A record is accepted only if its place is reserved on the disk already: the next
// segment is made ahead of need. When it cannot be (device full, disk_bytes_max reached), records
// are refused with no_space or overloaded until it can; nothing accepted is affected. A segment
// goes when no table needs anything in it: first a note in the log says so and is synced, then the
// file is kept for a later segment or removed. So at every moment the newest note names exactly the
// segments that must exist.
//
// Errors. A write or a sync that fails is final: every waiter gets the error, and so does everybody
// who comes later. Nothing is retried: after a failed sync a later success proves nothing, and the
// log gets no seal. In periodic mode what was acknowledged since the last sync is then in doubt,
// and the next start says so: not by a note of the failure, which the same disk may refuse, but
// because there is no seal (log_directory.h).
//
// Core affinity: the core whose Runtime opened it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/histogram.h"
#include "base/log.h"
#include "base/result.h"
#include "runtime/file_system.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/wait_queue.h"
#include "storage/log/log_directory.h"
#include "storage/log/log_needs.h"
#include "storage/log/log_options.h"
#include "storage/log/log_segment_supply.h"
#include "storage/log/log_write_buffer.h"

namespace helenus::storage {

struct CommitLogStatistics {
  std::uint64_t records = 0;
  std::uint64_t record_bytes = 0;
  std::uint64_t writes = 0;
  std::uint64_t written_bytes = 0;  // with headers and padding
  std::uint64_t syncs = 0;
  std::uint64_t refused = 0;  // records that were not accepted
  std::uint64_t segments_dropped = 0;
  base::Histogram durable_ns;     // from asking for durability to having it
  base::Histogram write_ns;       // of a write, and its sync where there is one
  base::Histogram write_records;  // how many records shared a write
};

struct CommitLogUsage {
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_bytes_max = 0;
  std::size_t segments = 0;     // that hold records somebody needs, and the one being written
  std::size_t spare_files = 0;  // waiting to be used again, or ready as the next segment
  std::size_t staged_bytes = 0;
  std::size_t waiters = 0;
};

class CommitLog final : private LogSegmentSupply::Listener {
  struct Private {
    explicit Private() = default;
  };
  // Whoever waits for a position to be acknowledged.
  class Waiter : public runtime::ListHook<Waiter> {
   public:
    virtual void on_acknowledged(const base::Result<void>& result) = 0;

   protected:
    ~Waiter() = default;

   private:
    friend class CommitLog;
    runtime::MonotonicTime since_;
  };

 public:
  // Errors: those of the log; overloaded (waiters_max; the record stays staged); timeout and
  // cancelled, which leave the outcome open.
  class Durable final : public runtime::Operation<void>, private Waiter {
   public:
    Durable(CommitLog& log, LogPosition position, runtime::Until until)
        : Operation(log.runtime_, std::move(until)), log_(log), position_(position) {}

   private:
    void start() override;
    void cancel() override;
    void on_acknowledged(const base::Result<void>& result) override { complete(result); }

    CommitLog& log_;
    LogPosition position_;
  };

  // stage() and durable() in one.
  class Append final : public runtime::Operation<LogPosition>, private Waiter {
   public:
    Append(CommitLog& log, TableId table, base::ByteView record, runtime::Until until)
        : Operation(log.runtime_, std::move(until)), log_(log), table_(table), record_(record) {}

   private:
    void start() override;
    void cancel() override;
    void on_acknowledged(const base::Result<void>& result) override;

    CommitLog& log_;
    TableId table_;
    base::ByteView record_;
    LogPosition position_;
  };

  // Takes the share that LogDirectory::begin() made, with the options it was made for.
  // Errors: invalid_argument; of the file system.
  static runtime::Task<base::Result<std::unique_ptr<CommitLog>>> open(runtime::Runtime& runtime,
                                                                      LogShare share,
                                                                      CommitLogOptions options);
  // For open().
  CommitLog(Private, runtime::Runtime& runtime, const LogShare& share,
            const CommitLogOptions& options, std::unique_ptr<runtime::File> file);
  // Requires: stopped and nobody waits, or the core has halted.
  ~CommitLog();
  CommitLog(const CommitLog&) = delete;
  CommitLog& operator=(const CommitLog&) = delete;

  // Refuses newcomers, writes and syncs what is staged, seals the log and closes its files. When it
  // succeeds the next start finds a clean stop. Errors: the log's failure. Called once.
  runtime::Task<base::Result<void>> stop();

  // Gives the record its place. Later records lie behind it.
  // Errors: invalid_argument (larger than record_size_max); overloaded (staged_bytes_max, or
  // disk_bytes_max); no_space; closed; the log's failure.
  base::Result<LogPosition> stage(TableId table, base::ByteView record);
  // Waits until the record at `position` is as durable as the mode promises.
  // Requires: stage() returned the position.
  Durable durable(LogPosition position, runtime::Until until) {
    return {*this, position, std::move(until)};
  }
  // Both. The record must live until the wait ends.
  Append append(TableId table, base::ByteView record, runtime::Until until) {
    return {*this, table, record, std::move(until)};
  }
  // Whether stage() would accept a record of that size now.
  bool has_room(std::size_t record_size) const;
  // Waits until a record of that size would be accepted, if only memory or a file being made is in
  // its way. Errors: timeout, cancelled; what stage() would say, if that is not about to change.
  runtime::Task<base::Result<void>> room(std::size_t record_size, runtime::Until until);
  // Whether files of segments that nobody needs are kept for later ones; on a full disk others need
  // their room more.
  void set_keeps_spare_files(bool keeps) { supply_.set_keeps_spares(keeps); }
  // There may be room on the disk again: room() waits until that has been tried.
  void try_next_segment() { supply_.try_again(); }
  // Waits until the record at `position`, and everything before, is synced, whatever the mode; asks
  // for a sync if need be. sync_to(tail()) is everything staged so far.
  // Errors: the log's failure, timeout, cancelled.
  runtime::Task<base::Result<void>> sync_to(LogPosition position, runtime::Until until);

  // Every record staged so far lies before it, every later one does not.
  LogPosition tail() const;
  // Records before it are as durable as the mode promises.
  LogPosition durable_position() const { return acknowledged_; }
  // Records before it survive a power loss.
  LogPosition synced_position() const { return synced_; }

  std::uint64_t log_id() const { return log_id_; }
  std::uint32_t core() const { return core_; }

  // The table has everything before `position` in durable files. Requires: they are durable.
  void needed_from(TableId table, LogPosition position);
  void forget_table(TableId table);

  CommitLogUsage usage() const;
  // The tables that hold the oldest segment somebody needs, apart from the one being written.
  std::vector<TableId> tables_holding_oldest() const;
  // Waits until three quarters of disk_bytes_max are in use, or the next segment could not be made;
  // returns whom to flush. Call again when they have been. Errors: timeout, cancelled, closed.
  runtime::Task<base::Result<std::vector<TableId>>> wait_for_pressure(runtime::Until until);

  // What ended the log, if something did.
  const std::optional<base::Error>& fatal_error() const { return fatal_error_; }
  const CommitLogStatistics& statistics() const { return statistics_; }
  const LogSegmentSupply::Counts& files() const { return supply_.counts(); }

 private:
  struct Segment {
    SegmentHeader header;
    std::unique_ptr<runtime::File> file;  // until everything is in it
    bool finished = false;                // written and synced to its end
    // No table needs it. `noted` is where the note that says so ends, once there is one.
    bool dropped = false;
    std::optional<LogPosition> noted;
  };

  // Staging.
  Segment& staging() { return segments_.back(); }
  const Segment& staging() const { return segments_.back(); }
  std::uint64_t note_footprint() const;
  bool note_fits() const;
  bool record_fits(std::size_t frame_size) const;
  bool memory_full(std::size_t frame_size) const;
  std::optional<base::Error> refusal(std::size_t record_size, std::size_t frame_size) const;
  bool roll_possible() const;
  void roll();
  void open_piece();
  void add_note();
  void stage_due_note();
  void stage_claims();

  // Waiting.
  std::optional<base::Result<void>> enter(Waiter& waiter, LogPosition position);
  void leave(Waiter& waiter);
  void acknowledge(std::size_t list, const base::Result<void>& result);
  bool unsynced() const;
  void fail(base::Error error);
  void wake_everybody();

  // Writing.
  runtime::Task<void> write_loop();
  runtime::Task<bool> wait_for_work();
  bool may_write_now() const;
  runtime::MonotonicTime next_work_at() const;
  bool claims_owed() const;
  void start_flight();
  runtime::Task<base::Result<void>> write_flight();
  runtime::Task<base::Result<void>> carry_out(runtime::File& file, runtime::File::Write::Kind kind,
                                              std::uint64_t offset, base::ByteView bytes);
  runtime::Task<base::Result<void>> write_piece(LogWriteBuffer::Piece piece);
  void finish_flight();
  runtime::Task<base::Result<void>> write_seal();
  Segment& segment_of(std::uint32_t sequence);

  // Syncing apart from writing, in periodic mode.
  runtime::Task<void> sync_loop();
  runtime::Task<base::Result<void>> sync_once();
  runtime::MonotonicTime unsynced_since() const;

  // Letting segments go.
  void on_synced();
  void drop_unneeded();

  void on_supply_changed() override;
  void on_supply_failed(base::Error error) override { fail(std::move(error)); }

  runtime::Runtime& runtime_;
  const CommitLogOptions options_;
  const std::string directory_;
  const std::uint32_t core_;
  const std::uint64_t log_id_;
  base::Logger log_;
  bool stopping_ = false;
  bool writer_done_ = false;
  std::optional<base::Error> fatal_error_;

  std::deque<Segment> segments_;  // ascending; the last one is staged into
  LogNeeds needs_;
  bool note_due_ = false;  // segments were dropped that the newest note still names
  LogSegmentSupply supply_;

  LogWriteBuffer filling_;
  LogWriteBuffer flight_;
  std::uint64_t staging_offset_ = kSegmentHeaderSize;  // where the next piece of staging() goes
  LogPosition flight_end_;  // what is staged before it is in flight, or was
  // Waiters for what is in flight and for what is filling; which is which changes with each write.
  std::array<runtime::IntrusiveList<Waiter>, 2> waiters_;
  std::size_t flight_list_ = 0;
  std::size_t waiters_count_ = 0;

  LogPosition written_;
  LogPosition synced_;
  LogPosition acknowledged_;
  LogPosition content_end_;     // where the last write of more than claims ended
  LogPosition claimed_synced_;  // what the batch written last says is synced
  runtime::MonotonicTime last_write_at_;
  runtime::MonotonicTime last_sync_began_;
  // Periodic mode: since when something acknowledged is unsynced; apart from what a sync under way
  // covers, which has its own.
  runtime::MonotonicTime unsynced_since_ = runtime::MonotonicTime::never();
  runtime::MonotonicTime syncing_since_ = runtime::MonotonicTime::never();
  runtime::File* syncing_ = nullptr;
  bool sync_wanted_ = false;

  CommitLogStatistics statistics_;

  runtime::WaitQueue writer_work_;
  runtime::WaitQueue sync_work_;
  runtime::WaitQueue room_changed_;
  runtime::WaitQueue synced_changed_;
  runtime::WaitQueue pressure_changed_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::storage
