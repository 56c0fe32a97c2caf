#include "base/log_spdlog.h"

#include <cstdio>
#include <exception>
#include <utility>

#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "base/assert.h"

namespace helenus::base {

namespace {

constexpr std::size_t kFileSizeMin = std::size_t{64} << 10;
constexpr std::size_t kOldFilesMax = 1000;

}  // namespace

// We drive a spdlog sink, not a spdlog logger: a logger would read the clock and register itself
// process-wide.
struct SpdlogSink::Target {
  std::unique_ptr<spdlog::sinks::sink> sink;
};

Result<std::unique_ptr<SpdlogSink>> SpdlogSink::open(Options options) {
  ASSERT(options.time_text != nullptr);
  auto target = std::make_unique<Target>();
  if (options.file) {
    const File& file = *options.file;
    if (file.bytes_max < kFileSizeMin || file.old_files_max > kOldFilesMax) {
      return Error(Errc::invalid_argument,
                   "log file of {} bytes with {} old ones; at least {} bytes and at most {} old "
                   "ones are allowed",
                   file.bytes_max, file.old_files_max, kFileSizeMin, kOldFilesMax);
    }
    try {
      target->sink = std::make_unique<spdlog::sinks::rotating_file_sink_mt>(
          file.path, file.bytes_max, file.old_files_max);
    } catch (const std::exception& failure) {
      return Error(Errc::io_error, "opening log file {}: {}", file.path, failure.what());
    }
  } else {
    target->sink = std::make_unique<spdlog::sinks::stderr_sink_mt>();
  }
  target->sink->set_pattern("%v");
  return std::unique_ptr<SpdlogSink>(new SpdlogSink(std::move(options), std::move(target)));
}

SpdlogSink::SpdlogSink(Options options, std::unique_ptr<Target> target)
    : options_(std::move(options)), target_(std::move(target)) {}

SpdlogSink::~SpdlogSink() = default;

LogLevel SpdlogSink::level_for(std::string_view module) const {
  return options_.levels.level_for(module);
}

void SpdlogSink::write(const LogRecord& record) {
  const std::string line = format_line(options_.time_text(), record);
  try {
    // The time is part of the line; spdlog's own is not shown.
    target_->sink->log(spdlog::details::log_msg(
        spdlog::log_clock::time_point{}, spdlog::source_loc{}, "", spdlog::level::info, line));
    if (record.level >= LogLevel::info) target_->sink->flush();
  } catch (const std::exception& failure) {
    lines_refused_count_.fetch_add(1, std::memory_order_relaxed);
    const std::string report = fmt::format("{}\nlog file failed: {}\n", line, failure.what());
    std::fputs(report.c_str(), stderr);
  }
}

void SpdlogSink::flush() {
  try {
    target_->sink->flush();
  } catch (const std::exception&) {
    lines_refused_count_.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace helenus::base
