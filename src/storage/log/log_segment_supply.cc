#include "storage/log/log_segment_supply.h"

#include <utility>

#include "base/assert.h"
#include "runtime/clock.h"
#include "runtime/random.h"
#include "storage/log/log_segment_file.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::kv;
using base::Result;
using runtime::MonotonicTime;
using runtime::Task;
using runtime::Until;

LogSegmentSupply::LogSegmentSupply(runtime::Runtime& runtime, std::string directory,
                                   const SegmentHeader& first, const CommitLogOptions& options,
                                   Listener& listener)
    : runtime_(runtime),
      directory_(std::move(directory)),
      first_(first),
      options_(options),
      listener_(listener),
      log_(runtime.logger("storage.commit_log")),
      sequence_(first.id.sequence),
      work_(runtime) {}

LogSegmentSupply::~LogSegmentSupply() = default;

void LogSegmentSupply::wake() {
  work_.wake_all();
}

void LogSegmentSupply::stop() {
  stopping_ = true;
  wake();
}

void LogSegmentSupply::set_keeps_spares(bool keeps) {
  if (keeps_spares_ == keeps) return;
  keeps_spares_ = keeps;
  wake();
}

void LogSegmentSupply::try_again() {
  problem_.reset();
  wake();
}

bool LogSegmentSupply::at_limit() const {
  return spares_.empty() &&
         (disk_bytes() + first_.segment_size > options_.disk_bytes_max || files_ >= kSegmentsMax);
}

bool LogSegmentSupply::next_due() const {
  return !ready() && !at_limit() && (!problem_ || runtime_.clock.now() >= retry_at_);
}

Task<void> LogSegmentSupply::run() {
  while (!stopping_) {
    if (!finished_.empty()) {
      co_await close_finished();
    } else if (!given_back_.empty()) {
      const SegmentId segment = given_back_.front();
      given_back_.pop_front();
      co_await recycle(segment);
    } else if (next_due()) {
      co_await make_next();
    } else if (!keeps_spares_ && !spares_.empty()) {
      co_await remove_spare();
    } else {
      const bool retrying = problem_ && !ready() && !at_limit();
      const auto deadline = retrying ? retry_at_ : MonotonicTime::never();
      // Woken or late, the state says what is to be done.
      [[maybe_unused]] const auto woken = co_await work_.wait({.deadline = deadline});
    }
  }
}

LogSegmentSupply::Ready LogSegmentSupply::take() {
  ASSERT(ready());
  Ready taken = *std::exchange(next_, std::nullopt);
  wake();
  return taken;
}

Error LogSegmentSupply::why_not_ready() const {
  ASSERT(!ready());
  if (at_limit()) {
    return Error(Errc::overloaded, "{}: the commit log of core {} holds {} bytes, its limit is {}",
                 directory_, first_.core, disk_bytes(), options_.disk_bytes_max);
  }
  if (problem_ && problem_->code() == Errc::no_space) return *problem_;
  // Not the log's failure, and not for ever.
  if (problem_) {
    return Error(Errc::overloaded, "the next segment cannot be made: {}", problem_->to_string());
  }
  return Error(Errc::overloaded, "{}: the next segment of core {} is being made", directory_,
               first_.core);
}

void LogSegmentSupply::finished(std::unique_ptr<runtime::File> file) {
  finished_.push_back(std::move(file));
  wake();
}

void LogSegmentSupply::give_back(SegmentId segment) {
  given_back_.push_back(segment);
  wake();
}

Task<void> LogSegmentSupply::close_finished() {
  auto file = std::move(finished_.front());
  finished_.pop_front();
  const auto closed = co_await file->close();
  // Everything in it was synced: an error now takes nothing away.
  if (!closed) log_.warn("cannot close", kv("file", file->path()), kv("error", closed.error()));
}

Task<bool> LogSegmentSupply::remove(std::string path) {
  const auto removed = co_await runtime_.files.remove(path);
  if (removed.failed_with(Errc::not_found)) co_return true;
  // It is in nobody's way: the next start removes what no note names.
  if (!removed) log_.warn("cannot remove", kv("file", path), kv("error", removed.error()));
  co_return removed.has_value();
}

// The directory is synced when the next segment is made; until then a power loss may bring the old
// name back, which no note names any more.
Task<void> LogSegmentSupply::recycle(SegmentId segment) {
  const std::string from = path_of(segment);
  if (keeps_spares_ && spares_.size() < options_.spare_files_max) {
    const std::string spare = path_of(scratch_file_name(first_.core, ++scratch_count_));
    const auto renamed = co_await runtime_.files.rename(from, spare);
    if (renamed) {
      spares_.push_back(spare);
      retry_at_ = runtime_.clock.now();
      co_return;
    }
    log_.warn("cannot rename", kv("file", from), kv("error", renamed.error()));
  }
  const bool removed = co_await remove(from);
  if (removed) {
    --files_;
    ++counts_.removed;
    retry_at_ = runtime_.clock.now();
  }
}

Task<void> LogSegmentSupply::remove_spare() {
  const std::string spare = std::move(spares_.back());
  spares_.pop_back();
  const bool removed = co_await remove(spare);
  if (!removed) co_return;
  --files_;
  ++counts_.removed;
}

Task<void> LogSegmentSupply::make_next() {
  std::string scratch;
  if (spares_.empty()) {
    scratch = path_of(scratch_file_name(first_.core, ++scratch_count_));
    ++files_;
    ++counts_.created;
  } else {
    scratch = std::move(spares_.back());
    spares_.pop_back();
    ++counts_.recycled;
  }
  auto made = co_await try_make_next(scratch);
  if (!made) {
    --files_;
    problem_ = std::move(made).error();
    retry_at_ = runtime_.clock.now() + options_.retry_delay;
    log_.warn("cannot make the next segment", kv("error", *problem_));
    co_await remove(scratch);
  }
  listener_.on_supply_changed();
}

Task<Result<void>> LogSegmentSupply::try_make_next(std::string scratch) {
  SegmentHeader header = first_;
  header.id.sequence = sequence_ + 1;
  header.salt = runtime_.random.next();
  header.created = runtime_.clock.wall_now();
  // What the first segment could do, this one can.
  const DirectIo direct = first_.alignment == kBatchAlignmentDirect ? DirectIo::on : DirectIo::off;
  CO_TRY(auto prepared, co_await prepare_segment_file(runtime_, scratch, header, direct));
  auto published =
      co_await publish_segment_file(runtime_, std::move(prepared.file), path_of(header.id));
  if (!published) {
    if (!published.failed_with(Errc::no_space)) listener_.on_supply_failed(published.error());
    co_return std::move(published).error();
  }
  // If this fails the file stays there, unused, and the next try replaces it.
  CO_TRY(auto file, co_await open_segment_file(runtime_, path_of(header.id), header));
  ++sequence_;
  next_ = Ready{.header = header, .file = std::move(file)};
  problem_.reset();
  co_return {};
}

Task<Result<void>> LogSegmentSupply::close() {
  while (!finished_.empty()) co_await close_finished();
  if (next_) {
    CO_TRY_VOID(co_await next_->file->close());
    co_await remove(path_of(next_->header.id));
    next_.reset();
  }
  for (const std::string& spare : std::exchange(spares_, {})) co_await remove(spare);
  co_return {};
}

}  // namespace helenus::storage
