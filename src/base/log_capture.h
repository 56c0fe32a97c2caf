// CapturingSink: keeps the formatted lines for a test to look at.
// Threads: one.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"

namespace helenus::base {

class CapturingSink final : public LogSink {
 public:
  // `time_text` gives the time of each line; without one every line is of the time "-".
  explicit CapturingSink(LogLevels levels = LogLevels(LogLevel::trace),
                         std::function<std::string()> time_text = {})
      : levels_(std::move(levels)), time_text_(std::move(time_text)) {}

  LogLevel level_for(std::string_view module) const override { return levels_.level_for(module); }
  void write(const LogRecord& record) override {
    lines_.push_back(format_line(time_text_ ? time_text_() : "-", record));
  }

  const std::vector<std::string>& lines() const { return lines_; }
  // How many lines contain `text`.
  std::size_t count(std::string_view text) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        lines_, [&](const std::string& line) { return line.contains(text); }));
  }
  void clear() { lines_.clear(); }

 private:
  LogLevels levels_;
  std::function<std::string()> time_text_;
  std::vector<std::string> lines_;
};

}  // namespace helenus::base
