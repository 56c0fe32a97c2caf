#include "storage/log/commit_log.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "runtime/clock.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::kv;
using base::Result;
using runtime::MonotonicTime;
using runtime::Task;
using runtime::Until;

namespace {

constexpr std::size_t kBufferCapacity = std::size_t{256} << 10;

}  // namespace

CommitLog::CommitLog(Private, runtime::Runtime& runtime, const LogShare& share,
                     const CommitLogOptions& options, std::unique_ptr<runtime::File> file)
    : runtime_(runtime),
      options_(options),
      directory_(share.directory),
      core_(share.first.core),
      log_id_(share.first.log_id),
      log_(runtime.logger("storage.commit_log")),
      supply_(runtime, share.directory, share.first, options_, *this),
      filling_(kBufferCapacity),
      flight_(kBufferCapacity),
      writer_work_(runtime),
      sync_work_(runtime),
      room_changed_(runtime),
      synced_changed_(runtime),
      pressure_changed_(runtime),
      tasks_(runtime) {
  segments_.push_back({.header = share.first, .file = std::move(file), .noted = {}});
  needs_.begin_segment(share.first.id);
  const LogPosition start{share.first.id, kSegmentHeaderSize};
  flight_end_ = written_ = synced_ = acknowledged_ = content_end_ = claimed_synced_ = start;
}

CommitLog::~CommitLog() = default;

Task<Result<std::unique_ptr<CommitLog>>> CommitLog::open(runtime::Runtime& runtime, LogShare share,
                                                         CommitLogOptions options) {
  CO_TRY_VOID(options.validate());
  const std::string path =
      share.directory + "/" + segment_file_name(share.first.id, share.first.core);
  CO_TRY(auto file, co_await open_segment_file(runtime, path, share.first));
  auto log = std::make_unique<CommitLog>(Private{}, runtime, share, options, std::move(file));
  log->tasks_.spawn(log->write_loop());
  log->tasks_.spawn(log->supply_.run());
  if (!options.syncs_every_write()) log->tasks_.spawn(log->sync_loop());
  co_return std::move(log);
}

Task<Result<void>> CommitLog::stop() {
  ASSERT(!stopping_, "a log is stopped once");
  stopping_ = true;
  supply_.stop();
  wake_everybody();
  co_await tasks_.join();
  if (!fatal_error_) {
    auto sealed = co_await write_seal();
    if (!sealed) fail(std::move(sealed).error());
  }
  for (Segment& segment : segments_) {
    if (segment.file != nullptr) supply_.finished(std::move(segment.file));
  }
  auto closed = co_await supply_.close();
  if (fatal_error_) co_return *fatal_error_;
  co_return closed;
}

// ---- Staging ----

std::uint64_t CommitLog::note_footprint() const {
  return batch_footprint(4 * segments_.size(), staging().header.alignment);
}

bool CommitLog::record_fits(std::size_t frame_size) const {
  const SegmentHeader& header = staging().header;
  const std::uint64_t limit = header.segment_size - segment_reserve(header.alignment);
  if (filling_.piece_open()) return filling_.end_with(frame_size) <= limit;
  const bool note = note_due_ || staging_offset_ == kSegmentHeaderSize;
  const std::uint64_t begin = staging_offset_ + (note ? note_footprint() : 0);
  return begin + batch_footprint(frame_size, header.alignment) <= limit;
}

bool CommitLog::memory_full(std::size_t frame_size) const {
  // What a change of segments may add to the record itself.
  const std::uint64_t extra = segment_reserve(staging().header.alignment) +
                              batch_footprint(4 * kSegmentsMax, staging().header.alignment) +
                              2 * staging().header.alignment;
  return !filling_.empty() && filling_.size() + frame_size + extra > options_.staged_bytes_max;
}

// A change of segments takes the piece that ends the old one, and one for the new one.
bool CommitLog::roll_possible() const {
  const std::size_t pieces = filling_.pieces().size() + (filling_.piece_open() ? 0 : 1);
  return supply_.ready() && pieces < LogWriteBuffer::kPiecesMax;
}

std::optional<Error> CommitLog::refusal(std::size_t record_size, std::size_t frame_size) const {
  if (fatal_error_) return *fatal_error_;
  if (stopping_) return Error(Errc::closed, "the commit log is stopping");
  if (record_size > options_.record_size_max) {
    return Error(Errc::invalid_argument, "a record of {} bytes, at most {} are allowed",
                 record_size, options_.record_size_max);
  }
  if (memory_full(frame_size)) {
    return Error(Errc::overloaded, "{} bytes wait for the commit log's disk", filling_.size());
  }
  if (record_fits(frame_size) || roll_possible()) return std::nullopt;
  if (!supply_.ready()) return supply_.why_not_ready();
  return Error(Errc::overloaded, "the commit log changes segments");
}

bool CommitLog::has_room(std::size_t record_size) const {
  const std::size_t frame_size = record_size + kRecordOverheadMax;
  return !fatal_error_ && !stopping_ && record_size <= options_.record_size_max &&
         !memory_full(frame_size) && (record_fits(frame_size) || roll_possible());
}

Result<LogPosition> CommitLog::stage(TableId table, base::ByteView record) {
  const std::size_t frame_size = record_frame_size(table, record.size());
  if (auto refused = refusal(record.size(), frame_size)) [[unlikely]] {
    ++statistics_.refused;
    return std::move(*refused);
  }
  const std::size_t staged_before = filling_.size();
  const bool early = runtime_.buggify("log.early_segment") && filling_.piece_open();
  if (!record_fits(frame_size) || (early && roll_possible())) roll();
  if (!filling_.piece_open()) open_piece();
  const LogPosition position{staging().header.id, filling_.add_record(table, record)};
  needs_.recorded(table, position);
  ++statistics_.records;
  statistics_.record_bytes += record.size();
  // The writer waits for the first record, and in group mode for half of the memory.
  const std::size_t half = options_.staged_bytes_max / 2;
  if (staged_before == 0 || (staged_before < half && filling_.size() >= half))
    writer_work_.wake_all();
  return position;
}

void CommitLog::roll() {
  ASSERT(roll_possible());
  if (!filling_.piece_open()) filling_.open_piece(staging().header, staging_offset_);
  filling_.close_segment(BatchKind::end);
  auto next = supply_.take();
  needs_.begin_segment(next.header.id);
  segments_.push_back({.header = next.header, .file = std::move(next.file), .noted = {}});
  staging_offset_ = kSegmentHeaderSize;
}

// Whether a note fits in front of the end or the seal.
bool CommitLog::note_fits() const {
  const SegmentHeader& header = staging().header;
  return staging_offset_ + note_footprint() + batch_footprint(0, header.alignment) <=
         header.segment_size;
}

// A segment begins with a note, and one that is due goes in front of whatever comes.
void CommitLog::open_piece() {
  filling_.open_piece(staging().header, staging_offset_);
  if (staging_offset_ == kSegmentHeaderSize || (note_due_ && note_fits())) add_note();
}

void CommitLog::add_note() {
  std::vector<std::uint32_t> live;
  live.reserve(segments_.size());
  for (const Segment& segment : segments_) {
    if (!segment.dropped) live.push_back(segment.header.id.sequence);
  }
  filling_.add_live(live);
  const LogPosition noted{staging().header.id, filling_.end_offset()};
  for (Segment& segment : segments_) {
    if (segment.dropped && !segment.noted) segment.noted = noted;
  }
  note_due_ = false;
}

// A note on its own, when no record takes it along. The room for one is kept free in every segment;
// if it was used, the space it brought back has made a next segment possible.
void CommitLog::stage_due_note() {
  if (!note_due_ || filling_.piece_open()) return;
  if (note_fits() && filling_.pieces().size() < LogWriteBuffer::kPiecesMax) {
    open_piece();
  } else if (roll_possible()) {
    roll();
    open_piece();
  }
}

// A batch without records, only to say what is synced.
void CommitLog::stage_claims() {
  const SegmentHeader& header = staging().header;
  const std::uint64_t limit = header.segment_size - segment_reserve(header.alignment);
  if (staging_offset_ + batch_footprint(0, header.alignment) > limit) {
    claimed_synced_ = synced_;
    return;
  }
  filling_.open_piece(header, staging_offset_);
  filling_.add_claims();
}

Task<Result<void>> CommitLog::room(std::size_t record_size, Until until) {
  while (true) {
    // The largest frame such a record can have.
    const std::size_t frame_size = record_size + kRecordOverheadMax;
    auto refused = refusal(record_size, frame_size);
    if (!refused) co_return {};
    const bool passes = refused->code() == Errc::overloaded && !fatal_error_ &&
                        (memory_full(frame_size) || supply_.ready() || supply_.coming());
    if (!passes) co_return std::move(*refused);
    CO_TRY_VOID(co_await room_changed_.wait(until));
  }
}

LogPosition CommitLog::tail() const {
  return {staging().header.id, filling_.piece_open() ? filling_.next_offset() : staging_offset_};
}

// ---- Waiting ----

void CommitLog::Durable::start() {
  if (auto result = log_.enter(*this, position_)) complete(*std::move(result));
}

void CommitLog::Durable::cancel() {
  log_.leave(*this);
  complete(Error(Errc::cancelled));
}

void CommitLog::Append::start() {
  auto staged = log_.stage(table_, record_);
  if (!staged) {
    complete(std::move(staged).error());
    return;
  }
  position_ = *staged;
  if (auto result = log_.enter(*this, position_)) on_acknowledged(*result);
}

void CommitLog::Append::cancel() {
  log_.leave(*this);
  complete(Error(Errc::cancelled));
}

void CommitLog::Append::on_acknowledged(const Result<void>& result) {
  if (result) {
    complete(position_);
  } else {
    complete(result.error());
  }
}

// The result, if it is known already.
std::optional<Result<void>> CommitLog::enter(Waiter& waiter, LogPosition position) {
  if (position < acknowledged_) return Result<void>();
  ASSERT(position < tail(), "{} was never staged, the log ends at {}", position, tail());
  if (fatal_error_) return Result<void>(*fatal_error_);
  if (waiters_count_ >= options_.waiters_max) {
    return Result<void>(Error(Errc::overloaded, "{} wait for the commit log", waiters_count_));
  }
  waiter.since_ = runtime_.clock.now();
  const bool in_flight = position < flight_end_;
  waiters_[in_flight ? flight_list_ : 1 - flight_list_].push_back(waiter);
  ++waiters_count_;
  return std::nullopt;
}

void CommitLog::leave(Waiter& waiter) {
  waiter.unlink();
  --waiters_count_;
}

void CommitLog::acknowledge(std::size_t list, const Result<void>& result) {
  const MonotonicTime now = runtime_.clock.now();
  while (!waiters_[list].empty()) {
    Waiter& waiter = waiters_[list].pop_front();
    --waiters_count_;
    if (result) {
      statistics_.durable_ns.record(static_cast<std::uint64_t>((now - waiter.since_).count()));
    }
    waiter.on_acknowledged(result);
  }
}

void CommitLog::fail(Error error) {
  if (fatal_error_) return;
  log_.error("the log has failed and stops", kv("core", core_), kv("error", error));
  fatal_error_ = std::move(error);
  supply_.stop();
  for (const std::size_t list : {flight_list_, 1 - flight_list_}) acknowledge(list, *fatal_error_);
  wake_everybody();
}

void CommitLog::wake_everybody() {
  for (runtime::WaitQueue* queue :
       {&writer_work_, &sync_work_, &room_changed_, &synced_changed_, &pressure_changed_}) {
    queue->wake_all();
  }
}

// Whether anything staged is not synced yet; claims alone do not count.
bool CommitLog::unsynced() const {
  return !filling_.empty() || !flight_.empty() || content_end_ > synced_;
}

Task<Result<void>> CommitLog::sync_to(LogPosition position, Until until) {
  ASSERT(position <= tail());
  // What is synced ends between writes, and no record begins there.
  while (synced_ < position && unsynced()) {
    if (fatal_error_) co_return *fatal_error_;
    sync_wanted_ = true;
    sync_work_.wake_all();
    CO_TRY_VOID(co_await synced_changed_.wait(until));
  }
  co_return {};
}

// ---- Letting segments go ----

void CommitLog::needed_from(TableId table, LogPosition position) {
  needs_.needed_from(table, position);
  drop_unneeded();
}

void CommitLog::forget_table(TableId table) {
  needs_.forget_table(table);
  drop_unneeded();
}

void CommitLog::drop_unneeded() {
  bool dropped = false;
  for (Segment& segment : segments_) {
    if (!segment.finished || segment.dropped || needs_.needed(segment.header.id)) continue;
    segment.dropped = true;
    dropped = true;
    ++statistics_.segments_dropped;
  }
  if (!dropped) return;
  note_due_ = true;
  writer_work_.wake_all();
}

// What may happen only after a sync: finished files are closed, dropped ones whose note is durable
// are given back.
void CommitLog::on_synced() {
  for (Segment& segment : segments_) {
    if (segment.finished && segment.file != nullptr && segment.file.get() != syncing_) {
      supply_.finished(std::move(segment.file));
    }
  }
  std::erase_if(segments_, [&](const Segment& segment) {
    const bool gone =
        segment.dropped && segment.file == nullptr && segment.noted && *segment.noted <= synced_;
    if (gone) {
      needs_.drop_segment(segment.header.id);
      supply_.give_back(segment.header.id);
    }
    return gone;
  });
  synced_changed_.wake_all();
}

void CommitLog::on_supply_changed() {
  room_changed_.wake_all();
  pressure_changed_.wake_all();
  if (note_due_) writer_work_.wake_all();
}

CommitLogUsage CommitLog::usage() const {
  return {.disk_bytes = supply_.disk_bytes(),
          .disk_bytes_max = options_.disk_bytes_max,
          .segments = segments_.size(),
          .spare_files = supply_.spare_files(),
          .staged_bytes = filling_.size(),
          .waiters = waiters_count_};
}

std::vector<TableId> CommitLog::tables_holding_oldest() const {
  for (const Segment& segment : segments_) {
    if (segment.dropped || &segment == &staging()) continue;
    auto tables = needs_.tables_needing(segment.header.id);
    if (!tables.empty()) return tables;
  }
  return {};
}

Task<Result<std::vector<TableId>>> CommitLog::wait_for_pressure(Until until) {
  while (true) {
    if (fatal_error_) co_return *fatal_error_;
    if (stopping_) co_return Error(Errc::closed, "the commit log is stopping");
    const std::uint64_t used = segments_.size() * options_.segment_size;
    const bool pressed =
        used >= options_.disk_bytes_max / 4 * 3 || (!supply_.ready() && !supply_.coming());
    if (pressed) {
      auto tables = tables_holding_oldest();
      if (!tables.empty()) co_return tables;
    }
    CO_TRY_VOID(co_await pressure_changed_.wait(until));
  }
}

}  // namespace helenus::storage
