// Points in time. Two kinds that never mix: MonotonicTime measures waits and only goes forward;
// WallTime is what calendars show and may jump. Both count nanoseconds.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>

namespace helenus::runtime {

using Duration = std::chrono::nanoseconds;
using namespace std::chrono_literals;

template <class Tag>
class TimePoint {
 public:
  constexpr TimePoint() = default;
  constexpr explicit TimePoint(Duration since_origin) : since_origin_(since_origin) {}

  static constexpr TimePoint never() { return TimePoint(Duration::max()); }

  constexpr Duration since_origin() const { return since_origin_; }
  constexpr bool is_never() const { return since_origin_ == Duration::max(); }

  // Adding to `never`, or past the end of time, gives `never`; going back stops at its beginning.
  friend constexpr TimePoint operator+(TimePoint time, Duration duration) {
    if (time.is_never()) return never();
    std::int64_t sum = 0;
    if (__builtin_add_overflow(time.since_origin_.count(), duration.count(), &sum)) {
      return duration > Duration(0) ? never() : TimePoint(Duration::min());
    }
    return TimePoint(Duration(sum));
  }
  // The longest duration, in its direction, if the two are further apart.
  friend constexpr Duration operator-(TimePoint a, TimePoint b) {
    std::int64_t difference = 0;
    if (__builtin_sub_overflow(a.since_origin_.count(), b.since_origin_.count(), &difference)) {
      return a > b ? Duration::max() : Duration::min();
    }
    return Duration(difference);
  }
  friend constexpr auto operator<=>(TimePoint, TimePoint) = default;

 private:
  Duration since_origin_{0};
};

using MonotonicTime = TimePoint<struct MonotonicTag>;
using WallTime = TimePoint<struct WallTag>;  // since 1970-01-01T00:00:00Z

// "2026-11-15T09:30:00.123456Z".
std::string to_string(WallTime time);

}  // namespace helenus::runtime
