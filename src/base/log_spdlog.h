// SpdlogSink: log lines on standard error or in a rotated file, by spdlog. Its source is the only
// file that includes spdlog; everyone else writes through Logger.
//
// Threads: may be shared by all cores; lines are written whole, one after another.
// Cost: formatting happens on the caller's core, then one write under a lock. Lines of level info
// and above are handed to the kernel at once; trace and debug lines stay in stdio's buffer until
// then. Neither is synced to the device.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/result.h"

namespace helenus::base {

class SpdlogSink final : public LogSink {
 public:
  // The file is renamed to name.1.ext, name.2.ext ... when it reaches its size; the oldest goes.
  struct File {
    std::string path;
    std::size_t bytes_max = std::size_t{64} << 20;
    std::size_t old_files_max = 8;
  };
  struct Options {
    LogLevels levels;
    // The time of the line being written. Called from any core that logs, at the same time.
    std::function<std::string()> time_text;
    std::optional<File> file;  // standard error without one
  };

  // Requires: options.time_text is set. Errors: io_error when the file cannot be opened,
  // invalid_argument for limits out of range.
  static Result<std::unique_ptr<SpdlogSink>> open(Options options);
  ~SpdlogSink() override;

  LogLevel level_for(std::string_view module) const override;
  // A line that the file does not take goes to standard error instead, and is counted.
  void write(const LogRecord& record) override;
  void flush();

  std::uint64_t lines_refused_count() const { return lines_refused_count_.load(); }

 private:
  struct Target;
  SpdlogSink(Options options, std::unique_ptr<Target> target);

  Options options_;
  std::unique_ptr<Target> target_;
  std::atomic<std::uint64_t> lines_refused_count_{0};
};

}  // namespace helenus::base
