// LogRing: the last lines that the machines of a world logged, with virtual time and the
// machine's name, and what happened to the machines. Shown when a run fails; echoed at once when
// asked for.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

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

  // What the world itself has to tell: a machine dies, a network parts.
  void note(WorldTime now, std::string_view who, std::string_view what);

  const std::deque<std::string>& lines() const { return lines_; }
  // At most so many lines in their order: the last of those that matter (notes, warnings, errors),
  // and where these are few, the last of the others.
  std::vector<std::string> trace(std::size_t lines_max) const;

 private:
  void push(std::string line, bool matters);

  Options options_;
  std::deque<std::string> lines_;
  std::deque<bool> matters_;  // of each line
};

}  // namespace helenus::sim
