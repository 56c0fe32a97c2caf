#include "sim/log_ring.h"

#include <cstdio>

#include <fmt/format.h>

namespace helenus::sim {

void LogRing::write(WorldTime now, std::string_view machine, const base::LogRecord& record) {
  const auto ns = now.since_origin().count();
  const std::string time =
      fmt::format("{:5}.{:09} {:<8}", ns / 1'000'000'000, ns % 1'000'000'000, machine);
  lines_.push_back(base::format_line(time, record));
  if (options_.echo) fmt::print(stderr, "{}\n", lines_.back());
  if (lines_.size() > kLinesMax) lines_.pop_front();
}

}  // namespace helenus::sim
