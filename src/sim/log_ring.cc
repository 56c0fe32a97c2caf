#include "sim/log_ring.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace helenus::sim {

namespace {

std::string stamp(WorldTime now, std::string_view who) {
  const auto ns = now.since_origin().count();
  return fmt::format("{:5}.{:09} {:<8}", ns / 1'000'000'000, ns % 1'000'000'000, who);
}

}  // namespace

void LogRing::write(WorldTime now, std::string_view machine, const base::LogRecord& record) {
  push(base::format_line(stamp(now, machine), record), record.level >= base::LogLevel::warn);
}

void LogRing::note(WorldTime now, std::string_view who, std::string_view what) {
  push(fmt::format("{} {}", stamp(now, who), what), true);
}

void LogRing::push(std::string line, bool matters) {
  if (options_.echo) fmt::print(stderr, "{}\n", line);
  lines_.push_back(std::move(line));
  matters_.push_back(matters);
  if (lines_.size() <= kLinesMax) return;
  lines_.pop_front();
  matters_.pop_front();
}

std::vector<std::string> LogRing::trace(std::size_t lines_max) const {
  const auto mattering = static_cast<std::size_t>(std::ranges::count(matters_, true));
  std::size_t mattering_left = std::min(mattering, lines_max);
  std::size_t others_left = lines_max - mattering_left;
  std::vector<std::string> chosen;
  for (std::size_t at = lines_.size(); at-- > 0;) {
    std::size_t& left = matters_[at] ? mattering_left : others_left;
    if (left == 0) continue;
    --left;
    chosen.push_back(lines_[at]);
  }
  std::ranges::reverse(chosen);
  return chosen;
}

}  // namespace helenus::sim
