// LogRing: the last lines that the machines of a world logged, with virtual time and the
// machine's name. Shown when a run fails; echoed at once when asked for.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "base/log.h"
#include "sim/world_time.h"

namespace helenus::sim {

class LogRing {
 public:
  static constexpr std::size_t kLinesMax = 1000;

  struct Options {
    base::LogLevels levels = base::LogLevels(base::LogLevel::info);
    bool echo = false;  // to standard error
  };

  explicit LogRing(Options options) : options_(std::move(options)) {}

  base::LogLevel level_for(std::string_view module) const {
    return options_.levels.level_for(module);
  }
  void write(WorldTime now, std::string_view machine, const base::LogRecord& record);

  const std::deque<std::string>& lines() const { return lines_; }

 private:
  Options options_;
  std::deque<std::string> lines_;
};

}  // namespace helenus::sim
