#include "model/temporal.h"

#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::model {
namespace {

using base::Errc;

constexpr std::int64_t kNoon = 1296705906000;  // 2011-02-03T04:05:06Z

TEST(Timestamp, FormsOfCassandraAreRead) {
  const auto read = [](std::string_view text) { return parse_timestamp_ms(text); };
  EXPECT_EQ(read("1296705906123"), kNoon + 123);
  EXPECT_EQ(read("-1"), -1);
  EXPECT_EQ(read("2011-02-03 04:05:06.123+0000"), kNoon + 123);
  EXPECT_EQ(read("2011-02-03T04:05:06.123Z"), kNoon + 123);
  EXPECT_EQ(read("2011-02-03 04:05:06"), kNoon);
  EXPECT_EQ(read("2011-02-03 04:05:06 UTC"), kNoon);
  EXPECT_EQ(read("2011-02-03 04:05:06 GMT"), kNoon);
  EXPECT_EQ(read("2011-02-03 04:05"), kNoon - 6000);
  EXPECT_EQ(read("2011-02-03 05:05+0100"), kNoon - 6000);
  EXPECT_EQ(read("2011-02-03 05:05+01:00"), kNoon - 6000);
  EXPECT_EQ(read("2011-02-03 05:05+01"), kNoon - 6000);
  EXPECT_EQ(read("2011-02-02T23:35-0430"), kNoon - 6000);
  EXPECT_EQ(read("2011-2-3"), 1296691200000);
  EXPECT_EQ(read("2011-02-03"), 1296691200000);
  EXPECT_EQ(read("2011-02-03+0000"), 1296691200000);
  EXPECT_EQ(read("1970-01-01"), 0);
  EXPECT_EQ(read("1969-12-31T23:59:59.999Z"), -1);
  // Digits behind the point count milliseconds.
  EXPECT_EQ(read("1970-01-01T00:00:00.5Z"), 5);
}

TEST(Timestamp, OtherTextsAreRefused) {
  for (const std::string_view text :
       {"", "now", "2011-", "2011-02", "2011-13-01", "2011-02-29", "2011-02-03 24:00",
        "2011-02-03 04:60", "2011-02-03 04:05:60", "2011-02-03 04:05:06.1234567890",
        "2011-02-03 04:05:06.", "2011-02-03 04:05:06 XYZ", "2011-02-03 04:05+25", "2011-02-03T",
        "2011-02-03 04:05+0", "2011-02-03x", "9999999999-01-01", "999999999-01-01",
        "99999999999999999999"}) {
    EXPECT_TRUE(parse_timestamp_ms(text).failed_with(Errc::invalid_argument)) << text;
  }
}

RC_GTEST_PROP(Timestamp, TextsReadBack, (std::int64_t milliseconds)) {
  RC_ASSERT(*parse_timestamp_ms(timestamp_to_text(milliseconds)) == milliseconds);
}

TEST(Timestamp, TheFirstAndTheLastReadBack) {
  for (const std::int64_t edge :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(),
        std::int64_t{-62167219200001}, std::int64_t{-62167219200000}}) {
    EXPECT_EQ(parse_timestamp_ms(timestamp_to_text(edge)), edge);
  }
}

TEST(Date, FormsOfCassandraAreRead) {
  constexpr std::uint32_t kEpoch = 1U << 31;
  EXPECT_EQ(parse_date("1970-01-01"), kEpoch);
  EXPECT_EQ(parse_date("1970-01-02"), kEpoch + 1);
  EXPECT_EQ(parse_date("2147483648"), kEpoch);
  EXPECT_EQ(parse_date("0"), 0U);
  EXPECT_EQ(parse_date("-5877641-06-23"), 0U);
  EXPECT_EQ(parse_date("+5881580-07-11"), std::numeric_limits<std::uint32_t>::max());
  for (const std::string_view text :
       {"", "-1", "4294967296", "1970-1-1", "1970-01-32", "12345-01-01", "+5881580-07-12",
        "-5877641-06-22", "1970-01-01T00:00", "70-01-01"}) {
    EXPECT_TRUE(parse_date(text).failed_with(Errc::invalid_argument)) << text;
  }
}

RC_GTEST_PROP(Date, TextsReadBack, (std::uint32_t date)) {
  RC_ASSERT(*parse_date(date_to_text(date)) == date);
}

RC_GTEST_PROP(Date, DaysAndCivilDatesAreOne, ()) {
  const auto days = *rc::gen::inRange<std::int64_t>(-100'000'000'000, 100'000'000'000);
  const CivilDate date = civil_from_days(days);
  RC_ASSERT(is_date(date));
  RC_ASSERT(days_from_civil(date) == days);
}

TEST(Time, FormsOfCassandraAreRead) {
  EXPECT_EQ(parse_time_ns("04:05:06"), 14'706'000'000'000);
  EXPECT_EQ(parse_time_ns("04:05:06.5"), 14'706'500'000'000);
  EXPECT_EQ(parse_time_ns("23:59:59.999999999"), 86'399'999'999'999);
  EXPECT_EQ(parse_time_ns("1"), 1);
  EXPECT_EQ(time_to_text(14'706'000'000'001), "04:05:06.000000001");
  for (const std::string_view text : {"", "04:05", "24:00:00", "04:60:00", "04:05:60", "04:05:06.",
                                      "04:05:06.1234567890", "-1", "86400000000000", "04:05:06Z"}) {
    EXPECT_TRUE(parse_time_ns(text).failed_with(Errc::invalid_argument)) << text;
  }
}

TEST(DurationText, FormsOfCassandraAreRead) {
  constexpr std::int64_t kHour = 3'600'000'000'000;
  const auto read = [](std::string_view text) { return *parse_duration(text); };
  EXPECT_EQ(read("1h30m"), (Duration{.months = 0, .days = 0, .nanoseconds = kHour * 3 / 2}));
  EXPECT_EQ(read("1Y2MO3W4D"), (Duration{.months = 14, .days = 25, .nanoseconds = 0}));
  EXPECT_EQ(read("-2d"), (Duration{.months = 0, .days = -2, .nanoseconds = 0}));
  EXPECT_EQ(read("1s2ms3us4ns").nanoseconds, 1'002'003'004);
  EXPECT_EQ(read("5\xc2\xb5s").nanoseconds, 5000);
  EXPECT_EQ(read("P1Y2M"), (Duration{.months = 14, .days = 0, .nanoseconds = 0}));
  EXPECT_EQ(read("P1DT1H"), (Duration{.months = 0, .days = 1, .nanoseconds = kHour}));
  EXPECT_EQ(read("PT1M").nanoseconds, kHour / 60);
  EXPECT_EQ(read("P3W").days, 21);
  EXPECT_EQ(read("P0001-02-03T01:00:00"),
            (Duration{.months = 14, .days = 3, .nanoseconds = kHour}));
  EXPECT_EQ(read("-P1D").days, -1);
}

TEST(DurationText, OtherTextsAreRefused) {
  for (const std::string_view text :
       {"", "-", "h", "1", "1x", "1h1h", "1m1h", "1h 1m", "P1H", "P1Y1Y", "PT1D", "P1W2D",
        "P001-02-03T01:00:00", "P0001-02-03", "2147483648d", "178956971y", "9223372036854775807h",
        "99999999999999999999ns"}) {
    EXPECT_TRUE(parse_duration(text).failed_with(Errc::invalid_argument)) << text;
  }
}

RC_GTEST_PROP(DurationText, TextsReadBack, ()) {
  const auto sign = *rc::gen::element(-1, 1);
  const Duration duration{
      .months = sign * *rc::gen::inRange(0, std::numeric_limits<std::int32_t>::max()),
      .days = sign * *rc::gen::inRange(0, std::numeric_limits<std::int32_t>::max()),
      .nanoseconds =
          sign * *rc::gen::inRange<std::int64_t>(0, std::numeric_limits<std::int64_t>::max())};
  RC_ASSERT(*parse_duration(duration_to_text(duration)) == duration);
}

}  // namespace
}  // namespace helenus::model
