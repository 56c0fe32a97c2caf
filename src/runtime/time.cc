#include "runtime/time.h"

#include <fmt/format.h>

namespace helenus::runtime {

std::string to_string(WallTime time) {
  // In microseconds: the days around the ends of time do not fit into nanoseconds.
  using std::chrono::floor;
  using std::chrono::microseconds;
  const std::chrono::sys_time<microseconds> point{floor<microseconds>(time.since_origin())};
  const auto day = floor<std::chrono::days>(point);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{point - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

}  // namespace helenus::runtime
