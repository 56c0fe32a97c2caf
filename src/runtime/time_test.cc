#include "runtime/time.h"

#include <gtest/gtest.h>

namespace helenus::runtime {
namespace {

constexpr MonotonicTime at(std::int64_t ns) {
  return MonotonicTime(Duration(ns));
}

TEST(Time, AddingPastEitherEndStopsThere) {
  EXPECT_EQ(at(1) + Duration(2), at(3));
  EXPECT_EQ(at(1) + Duration(-2), at(-1));
  EXPECT_TRUE((at(1) + Duration::max()).is_never());
  EXPECT_TRUE((MonotonicTime::never() + Duration(-1)).is_never());
  EXPECT_EQ(at(-2) + Duration::min(), at(INT64_MIN));
}

TEST(Time, DifferencesStopAtTheLongestDuration) {
  EXPECT_EQ(at(5) - at(7), Duration(-2));
  EXPECT_EQ(MonotonicTime::never() - at(-1), Duration::max());
  EXPECT_EQ(at(INT64_MIN) - at(1), Duration::min());
  EXPECT_EQ(MonotonicTime::never() - MonotonicTime::never(), Duration(0));
}

TEST(Time, NeverIsLaterThanAnyMoment) {
  EXPECT_LT(at(INT64_MAX - 1), MonotonicTime::never());
  EXPECT_FALSE(at(0).is_never());
}

TEST(WallTime, ShowsTheCalendarInUtc) {
  struct Row {
    std::int64_t ns;
    const char* text;
  };
  for (const Row& row : {
           Row{0, "1970-01-01T00:00:00.000000Z"},
           Row{1'794'735'000'123'456'000, "2026-11-15T09:30:00.123456Z"},
           Row{951'782'399'999'999'999, "2000-02-28T23:59:59.999999Z"},
           Row{951'782'400'000'000'000, "2000-02-29T00:00:00.000000Z"},
           Row{-1, "1969-12-31T23:59:59.999999Z"},
           Row{-86'400'000'000'000, "1969-12-31T00:00:00.000000Z"},
           Row{-86'400'000'000'001, "1969-12-30T23:59:59.999999Z"},
           Row{INT64_MAX, "2262-04-11T23:47:16.854775Z"},
           Row{INT64_MIN, "1677-09-21T00:12:43.145224Z"},
       }) {
    EXPECT_EQ(to_string(WallTime(Duration(row.ns))), row.text);
  }
}

TEST(WallTime, TextsSortAsTheirMoments) {
  std::string last;
  for (std::int64_t day = 0; day < 100'000; day += 97) {
    const auto text = to_string(WallTime(std::chrono::hours(24) * day));
    EXPECT_LT(last, text);
    last = text;
  }
}

}  // namespace
}  // namespace helenus::runtime
