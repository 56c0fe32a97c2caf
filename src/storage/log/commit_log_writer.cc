// The part of CommitLog that moves bytes to the disk: the loop that writes, the one that syncs in
// periodic mode, and the seal.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "runtime/clock.h"
#include "runtime/dawdle.h"
#include "runtime/sleep.h"
#include "storage/log/commit_log.h"
#include "storage/log/log_segment_file.h"

namespace helenus::storage {

using Kind = runtime::File::Write::Kind;
using base::Error;
using base::Result;
using runtime::MonotonicTime;
using runtime::Task;
using runtime::Until;

Task<void> CommitLog::write_loop() {
  while (true) {
    const bool more = co_await wait_for_work();
    if (!more) break;
    start_flight();
    auto written = co_await write_flight();
    if (fatal_error_) break;
    if (!written) {
      fail(std::move(written).error());
      break;
    }
    finish_flight();
  }
  writer_done_ = true;
  sync_work_.wake_all();
}

// Returns when there is something to write and the mode allows to; false when nothing will come.
Task<bool> CommitLog::wait_for_work() {
  while (!fatal_error_) {
    stage_due_note();
    if (!filling_.empty() && may_write_now()) {
      if (!runtime_.buggify("log.group_waits")) co_return true;
      static_cast<void>(co_await runtime::dawdle(runtime_, std::chrono::milliseconds(2), {}));
      continue;
    }
    if (filling_.empty() && stopping_) co_return false;
    if (filling_.empty() && claims_owed() &&
        runtime_.clock.now() >= last_write_at_ + options_.claim_delay) {
      stage_claims();
      continue;
    }
    // Woken or late, the state says what is to be done.
    [[maybe_unused]] const auto woken = co_await writer_work_.wait({.deadline = next_work_at()});
  }
  co_return false;
}

bool CommitLog::may_write_now() const {
  if (stopping_) return true;
  const MonotonicTime now = runtime_.clock.now();
  switch (options_.sync_mode) {
    case LogSyncMode::batch:
      return true;
    case LogSyncMode::group:
      return now >= last_sync_began_ + options_.group_window ||
             filling_.size() >= options_.staged_bytes_max / 2;
    case LogSyncMode::periodic:
      return now < unsynced_since() + options_.sync_period;
  }
  return true;
}

MonotonicTime CommitLog::next_work_at() const {
  if (filling_.empty()) {
    return claims_owed() ? last_write_at_ + options_.claim_delay : MonotonicTime::never();
  }
  // In periodic mode the end of a sync wakes the writer.
  return options_.sync_mode == LogSyncMode::group ? last_sync_began_ + options_.group_window
                                                  : MonotonicTime::never();
}

bool CommitLog::claims_owed() const {
  return claimed_synced_ < content_end_ && content_end_ <= synced_;
}

void CommitLog::start_flight() {
  if (filling_.piece_open()) staging_offset_ = filling_.end_offset();
  std::swap(filling_, flight_);
  flight_.finish(
      {.sequence = synced_.segment.sequence, .offset = static_cast<std::uint32_t>(synced_.offset)});
  claimed_synced_ = synced_;
  flight_end_ = {staging().header.id, staging_offset_};
  flight_list_ = 1 - flight_list_;
  room_changed_.wake_all();
}

Task<Result<void>> CommitLog::write_flight() {
  for (const LogWriteBuffer::Piece& piece : flight_.pieces()) {
    CO_TRY_VOID(co_await write_piece(piece));
  }
  co_return {};
}

CommitLog::Segment& CommitLog::segment_of(std::uint32_t sequence) {
  const auto found = std::ranges::find_if(
      segments_, [&](const Segment& segment) { return segment.header.id.sequence == sequence; });
  ASSERT(found != segments_.end());
  return *found;
}

// Refused for want of a free slot, an operation has not begun: nothing is in doubt, and it is tried
// again. Any other error is final.
Task<Result<void>> CommitLog::carry_out(runtime::File& file, runtime::File::Write::Kind kind,
                                        std::uint64_t offset, base::ByteView bytes) {
  while (true) {
    auto done = co_await runtime::File::Write(file, kind, offset, bytes, Until::forever());
    if (!done.failed_with(base::Errc::overloaded)) co_return done;
    CO_TRY_VOID(co_await runtime::sleep_for(runtime_, std::chrono::milliseconds(1), {}));
  }
}

Task<Result<void>> CommitLog::write_piece(LogWriteBuffer::Piece piece) {
  // A segment is synced to its end before the next one is written to, in every mode; and claims
  // are worth something only when they outlive what they are a witness for.
  const bool sync = options_.syncs_every_write() || piece.ends_segment || !piece.holds_content;
  const base::ByteView bytes = flight_.bytes_of(piece);
  runtime::File& file = *segment_of(piece.segment.id.sequence).file;
  const MonotonicTime began = runtime_.clock.now();
  if (sync) last_sync_began_ = began;
  CO_TRY_VOID(co_await carry_out(file, sync ? Kind::write_and_sync : Kind::write, piece.file_offset,
                                 bytes));
  statistics_.syncs += sync ? 1 : 0;
  last_write_at_ = runtime_.clock.now();
  ++statistics_.writes;
  statistics_.written_bytes += bytes.size();
  statistics_.write_ns.record(static_cast<std::uint64_t>((last_write_at_ - began).count()));
  written_ = {piece.segment.id, piece.file_end()};
  if (piece.holds_content) content_end_ = written_;
  if (sync) {
    synced_ = written_;
    unsynced_since_ = MonotonicTime::never();
  }
  if (piece.ends_segment && piece.segment.id != staging().header.id) {
    segment_of(piece.segment.id.sequence).finished = true;
    drop_unneeded();
  }
  if (sync) on_synced();
  co_return {};
}

void CommitLog::finish_flight() {
  if (flight_.record_count() > 0) statistics_.write_records.record(flight_.record_count());
  acknowledged_ = flight_end_;
  if (content_end_ > synced_ && unsynced_since_.is_never()) {
    unsynced_since_ = last_write_at_;
    sync_work_.wake_all();
  }
  flight_.clear();
  synced_changed_.wake_all();
  acknowledge(flight_list_, {});
}

Task<Result<void>> CommitLog::write_seal() {
  ASSERT(filling_.empty() && flight_.empty());
  open_piece();
  filling_.close_segment(BatchKind::seal);
  start_flight();
  co_return co_await write_flight();
}

MonotonicTime CommitLog::unsynced_since() const {
  return std::min(unsynced_since_, syncing_since_);
}

Task<void> CommitLog::sync_loop() {
  while (!fatal_error_) {
    const bool dirty = content_end_ > synced_;
    if (!dirty && writer_done_) break;
    // Half of the period is left for the sync itself.
    const MonotonicTime due =
        dirty ? unsynced_since_ + options_.sync_period / 2 : MonotonicTime::never();
    if (dirty && (sync_wanted_ || stopping_ || runtime_.clock.now() >= due)) {
      auto synced = co_await sync_once();
      if (!synced) fail(std::move(synced).error());
      continue;
    }
    // Woken or late, the state says what is to be done.
    [[maybe_unused]] const auto woken = co_await sync_work_.wait({.deadline = due});
  }
}

Task<Result<void>> CommitLog::sync_once() {
  // Everything unsynced lies in the segment written last: the one before was synced at its end.
  runtime::File& file = *segment_of(written_.segment.sequence).file;
  const LogPosition target = written_;
  syncing_ = &file;
  syncing_since_ = std::exchange(unsynced_since_, MonotonicTime::never());
  sync_wanted_ = false;
  auto result = co_await carry_out(file, Kind::sync, 0, {});
  syncing_ = nullptr;
  syncing_since_ = MonotonicTime::never();
  if (!result) co_return std::move(result).error();
  ++statistics_.syncs;
  synced_ = std::max(synced_, target);
  on_synced();
  writer_work_.wake_all();
  co_return {};
}

}  // namespace helenus::storage
