// Dates, times, timestamps and durations as texts.
//
// The calendar is the proleptic Gregorian one, in UTC; a timestamp without a zone is taken as UTC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/value.h"

namespace helenus::model {

struct CivilDate {
  std::int64_t year = 1970;
  unsigned month = 1;  // 1 to 12
  unsigned day = 1;    // 1 to 31
  friend bool operator==(const CivilDate&, const CivilDate&) = default;
};

// Days since 1970-01-01. Requires: a date of the calendar, its year within +-10^12.
std::int64_t days_from_civil(const CivilDate& date);
// Requires: within +-10^14.
CivilDate civil_from_days(std::int64_t days);
bool is_date(const CivilDate& date);

// Milliseconds since 1970: an integer; or a date, by itself or with a time and a zone behind it.
//   2011-02-03   2011-02-03T04:05   2011-02-03 04:05:06.123+0000   ...+01:00   ...Z   ... UTC
// Errors, all: invalid_argument with Cassandra's words.
base::Result<std::int64_t> parse_timestamp_ms(std::string_view text);
// The u32 of the encoding: an integer is taken as that itself, else YYYY-MM-DD, years beyond four
// digits with a sign.
base::Result<std::uint32_t> parse_date(std::string_view text);
// Nanoseconds since midnight: an integer, or HH:MM:SS with up to nine digits behind a point.
base::Result<std::int64_t> parse_time_ns(std::string_view text);
// 1y2mo3w4d5h6m7s8ms9us10ns (parts may be missing), P1Y2M3DT4H5M6S, P4W, P0001-02-03T04:05:06; all
// with a minus in front too. An integer is nothing of these.
base::Result<Duration> parse_duration(std::string_view text);

// 2011-02-03T04:05:06.123Z; before the year 0 the milliseconds as an integer.
std::string timestamp_to_text(std::int64_t milliseconds);
// 2011-02-03, +12345-01-01.
std::string date_to_text(std::uint32_t date);
// 04:05:06.123456789. Requires: within a day.
std::string time_to_text(std::int64_t nanoseconds);
// 1y2mo3d4h5m6s7ms8us9ns without the parts that are zero; 0s if all are.
std::string duration_to_text(const Duration& duration);

}  // namespace helenus::model
