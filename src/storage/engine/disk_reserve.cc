#include "storage/engine/disk_reserve.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/clock.h"
#include "runtime/file_system.h"
#include "runtime/files.h"
#include "runtime/sleep.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::kv;
using base::Result;
using runtime::Task;

namespace {

constexpr std::string_view kReservePrefix = "reserve-";
// For small files that replace others.
constexpr std::uint64_t kSmallFilesMin = std::uint64_t{64} << 10;
constexpr std::uint64_t kSmallFilesMax = std::uint64_t{8} << 20;
// What is kept for deletes is no more than this part of the disk.
constexpr std::uint64_t kPartOfDisk = 32;

std::vector<std::string> reserve_directories(const EngineOptions& options) {
  std::vector<std::string> directories = {options.data_directories.front()};
  if (options.log_directory_or_default() != directories.front()) {
    directories.push_back(options.log_directory_or_default());
  }
  return directories;
}

}  // namespace

DiskReserve::DiskReserve(EngineState& state)
    : state_(state),
      merge_throttle_(*this, state.compaction_rate),
      turn_(state.runtime, 1, SIZE_MAX) {}

Task<Result<void>> DiskReserve::give_up_all(runtime::Runtime& runtime,
                                            const EngineOptions& options) {
  for (const std::string& directory : reserve_directories(options)) {
    CO_TRY(const auto entries, co_await runtime.files.list(directory));
    bool removed = false;
    for (const runtime::DirectoryEntry& entry : entries) {
      if (!entry.name.starts_with(kReservePrefix)) continue;
      CO_TRY_VOID(co_await runtime.files.remove(directory + "/" + entry.name));
      removed = true;
    }
    if (removed) CO_TRY_VOID(co_await runtime.files.sync_directory(directory));
  }
  co_return {};
}

// ---- What is kept ----

Task<void> DiskReserve::plan_parts() {
  const EngineOptions& options = state_.options;
  const std::string& data = options.data_directories.front();
  const std::string log = options.log_directory_or_default();
  const auto data_info = co_await state_.runtime.files.info(data);
  const auto log_info = co_await state_.runtime.files.info(log);
  log_is_apart_ = data_info && log_info && data_info->identity.device != log_info->identity.device;
  const std::uint64_t segment = options.log.segment_size;
  std::uint64_t for_deletes = options.disk_reserve_bytes;
  if (const auto space = co_await state_.runtime.files.space(data); space) {
    for_deletes = std::min(for_deletes, space->total_bytes / kPartOfDisk / state_.cores);
  }
  for_deletes = std::max(for_deletes, segment + segment / 4);
  const std::uint64_t small = std::clamp(for_deletes / 8, kSmallFilesMin, kSmallFilesMax);
  const auto add = [&](Purpose purpose, const std::string& directory, std::uint64_t bytes) {
    const std::string_view name = purpose == Purpose::deletes ? "deletes" : "changes";
    parts_.push_back(
        {.purpose = purpose,
         .path = fmt::format("{}/{}{:04}-{}", directory, kReservePrefix, state_.core, name),
         .bytes = bytes});
  };
  add(Purpose::changes, data, log_is_apart_ ? small : small + segment);
  if (log_is_apart_) add(Purpose::changes, log, small + segment);
  add(Purpose::deletes, data, for_deletes);
  if (log_is_apart_) add(Purpose::deletes, log, segment + segment / 4);
}

Task<void> DiskReserve::begin() {
  if (state_.options.disk_reserve_bytes == 0) co_return;
  co_await plan_parts();
  co_await look();
}

bool DiskReserve::whole() const {
  return std::ranges::all_of(parts_, &Part::held);
}

bool DiskReserve::holds(Purpose purpose) const {
  return bytes_of(purpose, true) > 0;
}

std::uint64_t DiskReserve::bytes_of(Purpose purpose, bool held) const {
  std::uint64_t bytes = 0;
  for (const Part& part : parts_) {
    if (part.purpose == purpose && part.held == held) bytes += part.bytes;
  }
  return bytes;
}

std::uint64_t DiskReserve::bytes_held() const {
  return bytes_of(Purpose::deletes, true) + bytes_of(Purpose::changes, true);
}

Task<bool> DiskReserve::keep(Part& part) {
  auto file = co_await state_.runtime.files.open(part.path, runtime::OpenOptions::read_write());
  if (!file) co_return false;
  auto kept = co_await (*file)->preallocate(part.bytes);
  auto closed = co_await (*file)->close();
  if (kept && closed) {
    part.held = true;
    co_return true;
  }
  (void)co_await state_.runtime.files.remove(part.path);
  co_return false;
}

// What is for changes and the next start first: without it the others are of no use.
Task<void> DiskReserve::keep_parts() {
  for (Part& part : parts_) {
    if (part.held) continue;
    const bool for_deletes = part.purpose == Purpose::deletes;
    const std::int64_t left = free_of_debt() - (full_ && for_deletes ? 2 * wanted() : 0);
    if (left < signed_of(part.bytes)) co_return;
    const bool kept = co_await keep(part);
    if (!kept) co_return;
    const bool is_of_log =
        log_is_apart_ && part.path.starts_with(state_.options.log_directory_or_default() + "/");
    if (!is_of_log) note_written(part.bytes);
  }
}

Task<bool> DiskReserve::give_up(Purpose purpose) {
  const auto turn = co_await turn_.acquire(1, {.stop = state_.stop.token()});
  if (!turn) co_return false;
  bool more = false;
  for (Part& part : parts_) {
    if (part.purpose != purpose || !part.held) continue;
    const auto removed = co_await state_.runtime.files.remove(part.path);
    if (!removed && !removed.failed_with(Errc::not_found)) continue;
    (void)co_await state_.runtime.files.sync_directory(runtime::directory_of(part.path));
    part.held = false;
    more = true;
  }
  if (more) {
    state_.logger.warn("the disk is full: what was kept of it is given up",
                       kv("for", purpose == Purpose::deletes ? "deletes" : "changes"),
                       kv("bytes_left", bytes_held()));
  }
  co_return more;
}

Task<bool> DiskReserve::give_up_for_deletes() {
  found_no_space();
  if (!on()) co_return false;
  co_return co_await give_up(Purpose::deletes);
}

Task<bool> DiskReserve::make_room() {
  found_no_space();
  if (!on()) co_return false;
  const bool more = co_await give_up(Purpose::deletes);
  if (more) co_return true;
  co_return co_await give_up(Purpose::changes);
}

// ---- How much room there is ----

std::int64_t DiskReserve::free_of_debt() const {
  const std::int64_t of_log = signed_of(log_bytes()) - signed_of(log_bytes_seen_);
  return signed_of(free_) - taken_ - of_log - signed_of(state_.memory.bytes());
}

// Where the log is apart it takes nothing of what files have.
std::uint64_t DiskReserve::log_bytes() const {
  return log_is_apart_ || state_.log == nullptr ? 0 : state_.log->usage().disk_bytes;
}

Task<void> DiskReserve::watch_loop() {
  if (!on()) co_return;
  while (state_.goes_on()) {
    const bool little = full_ || free_of_debt() < 4 * wanted();
    const auto slept = co_await runtime::sleep_for(
        state_.runtime, little ? kLookPeriodFull : kLookPeriod, state_.stop.token());
    if (!slept) co_return;
    co_await look();
    const runtime::MonotonicTime now = state_.runtime.clock.now();
    if (!full_ || now < acted_at_ + kActPeriod || while_full_ == nullptr) continue;
    acted_at_ = now;
    while_full_();
  }
}

// A new file goes to the data directory that has most room; small ones to the first one.
Task<void> DiskReserve::look() {
  const auto turn = co_await turn_.acquire(1, {.stop = state_.stop.token()});
  if (!turn) co_return;
  const std::int64_t taken_before = taken_;
  const std::uint64_t log_before = log_bytes();
  std::optional<std::uint64_t> most;
  for (const std::string& directory : state_.options.data_directories) {
    const auto space = co_await state_.runtime.files.space(directory);
    if (space) most = std::max(most.value_or(0), space->free_bytes);
  }
  // A disk that does not say it is not taken for full: whatever is wrong will show.
  if (!most) co_return;
  free_of_log_ = UINT64_MAX;
  if (log_is_apart_) {
    const auto space =
        co_await state_.runtime.files.space(state_.options.log_directory_or_default());
    if (space) free_of_log_ = space->free_bytes / state_.cores;
  }
  free_ = *most / state_.cores;
  taken_ -= taken_before;
  log_bytes_seen_ = log_before;
  if (!whole()) co_await keep_parts();
  judge();
}

void DiskReserve::judge() {
  const std::int64_t enough = full_ ? 2 * wanted() : wanted();
  const bool log_has_room = !log_is_apart_ || signed_of(free_of_log_ / 2) >= wanted() / 2 ||
                            (state_.log != nullptr && state_.log->usage().spare_files > 0);
  set_full(!whole() || free_of_debt() < enough || !log_has_room);
  if (state_.log != nullptr) state_.log->set_keeps_spare_files(!full_);
}

void DiskReserve::set_full(bool full) {
  if (full_ == full) return;
  full_ = full;
  if (full) {
    state_.logger.warn("the disk is full: writes are refused, deletes are not", kv("free", free_),
                       kv("held_in_memory", state_.memory.bytes()), kv("reserved", bytes_held()));
  } else {
    state_.logger.info("the disk has room again: writes are taken", kv("free", free_));
  }
  state_.wake_everybody();
}

void DiskReserve::found_no_space() {
  if (on()) set_full(true);
}

// ---- Who is refused ----

bool DiskReserve::refuses(WriteKind kind) {
  if (!on()) return false;
  if (kind == WriteKind::data) {
    if (!full_ && free_of_debt() < wanted()) set_full(true);
    return full_;
  }
  return full_ && !holds(Purpose::deletes) &&
         free_of_debt() < signed_of(bytes_of(Purpose::changes, false));
}

Error DiskReserve::refusal() const {
  return Error(Errc::overloaded, "disk is full: {} bytes reserved for deletes",
               bytes_of(Purpose::deletes, true));
}

Error DiskReserve::refusal_after(Error why) const {
  return on() && why.code() == Errc::no_space ? refusal() : why;
}

Task<Result<void>> DiskReserve::MergeThrottle::before_write(std::size_t bytes) {
  reserve_.note_written(bytes);
  if (!reserve_.has_room_for(0)) {
    co_return Error(Errc::no_space, "{} bytes more of a merge would take what memtables need",
                    bytes);
  }
  co_return co_await next_.before_write(bytes);
}

}  // namespace helenus::storage
