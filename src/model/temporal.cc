#include "model/temporal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "base/assert.h"

namespace helenus::model {

using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::int64_t kMillisecondsPerDay = 86'400'000;
constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr std::int64_t kNanosecondsPerDay = 86'400 * kNanosecondsPerSecond;
constexpr std::int64_t kDateEpoch = std::int64_t{1} << 31;
// No more of a stranger's text comes back in an error.
constexpr std::size_t kTextShownMax = 64;

std::string_view shown(std::string_view text) {
  return text.substr(0, kTextShownMax);
}

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

bool is_integer(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Walks over a text; what does not match is not consumed.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  // From `digits_min` to `digits_max` digits, as many as there are. Requires: digits_max <= 18.
  std::optional<std::int64_t> number(std::size_t digits_min, std::size_t digits_max) {
    std::size_t count = 0;
    while (count < rest_.size() && is_digit(rest_[count])) ++count;
    if (count < digits_min || count > digits_max) return std::nullopt;
    const auto value = to_integer(rest_.substr(0, count));
    rest_.remove_prefix(count);
    return value;
  }

 private:
  std::string_view rest_;
};

std::optional<CivilDate> scan_date(Scanner& in, std::size_t year_digits_min,
                                   std::size_t year_digits_max, std::size_t part_digits_min) {
  const auto year = in.number(year_digits_min, year_digits_max);
  if (!year || !in.take("-")) return std::nullopt;
  const auto month = in.number(part_digits_min, 2);
  if (!month || !in.take("-")) return std::nullopt;
  const auto day = in.number(part_digits_min, 2);
  if (!day) return std::nullopt;
  const CivilDate date{
      .year = *year, .month = static_cast<unsigned>(*month), .day = static_cast<unsigned>(*day)};
  return is_date(date) ? std::optional(date) : std::nullopt;
}

// HH:mm[:ss[.SSS]] in milliseconds. Up to three digits behind the point are a count of
// milliseconds, not a fraction: Cassandra takes .5 as five of them. Up to nine are a fraction, of
// which what is less than a millisecond is left out.
std::optional<std::int64_t> scan_time_ms(Scanner& in) {
  const auto hour = in.number(1, 2);
  if (!hour || *hour > 23 || !in.take(":")) return std::nullopt;
  const auto minute = in.number(1, 2);
  if (!minute || *minute > 59) return std::nullopt;
  std::int64_t time = (*hour * 60 + *minute) * 60'000;
  if (!in.take(":")) return time;
  const auto second = in.number(1, 2);
  if (!second || *second > 59) return std::nullopt;
  time += *second * 1000;
  if (!in.take(".")) return time;
  const std::size_t before = in.rest().size();
  auto fraction = in.number(1, 9);
  if (!fraction) return std::nullopt;
  for (std::size_t digits = before - in.rest().size(); digits > 3; --digits) *fraction /= 10;
  return time + *fraction;
}

// Zones by the names that people write, those of summer too: hours east of Greenwich.
std::optional<std::int64_t> zone_hours(Scanner& in) {
  struct Zone {
    std::string_view name;
    std::int64_t hours;
  };
  static constexpr std::array kZones = {
      Zone{"EST", -5},  Zone{"EDT", -4}, Zone{"CST", -6}, Zone{"CDT", -5},  Zone{"MST", -7},
      Zone{"MDT", -6},  Zone{"PST", -8}, Zone{"PDT", -7}, Zone{"HST", -10}, Zone{"AKST", -9},
      Zone{"AKDT", -8}, Zone{"WET", 0},  Zone{"WEST", 1}, Zone{"BST", 1},   Zone{"CET", 1},
      Zone{"CEST", 2},  Zone{"EET", 2},  Zone{"EEST", 3}, Zone{"MSK", 3},   Zone{"JST", 9},
      Zone{"KST", 9}};
  for (const Zone& zone : kZones) {
    if (in.rest() == zone.name) {
      in.take(zone.name);
      return zone.hours;
    }
  }
  return std::nullopt;
}

// Z, UTC, GMT, EST and its kin, +HH, +HHMM, +HH:MM, GMT+HH:MM: milliseconds east of Greenwich.
// Nothing left is UTC.
std::optional<std::int64_t> scan_zone_ms(Scanner& in) {
  if (in.done()) return 0;
  in.take(" ");
  if (in.take("Z") || in.take("UTC")) return 0;
  if (const auto hours = zone_hours(in)) return *hours * 3'600'000;
  const bool named = in.take("GMT");
  if (named && in.done()) return 0;
  const bool west = in.take("-");
  if (!west && !in.take("+")) return std::nullopt;
  const std::string_view rest = in.rest();
  const std::size_t colon = rest.find(':');
  std::optional<std::int64_t> hour;
  std::optional<std::int64_t> minute = 0;
  if (colon != std::string_view::npos) {
    hour = in.number(named ? 1 : 2, 2);
    in.take(":");
    minute = in.number(2, 2);
  } else if (rest.size() == 4) {
    const auto both = in.number(4, 4);
    if (both) {
      hour = *both / 100;
      minute = *both % 100;
    }
  } else {
    hour = in.number(named ? 1 : 2, 2);
  }
  if (!hour || !minute || *hour > 23 || *minute > 59) return std::nullopt;
  const std::int64_t offset = (*hour * 60 + *minute) * 60'000;
  return west ? -offset : offset;
}

std::optional<std::int64_t> timestamp_ms_of(std::string_view text) {
  Scanner in(text);
  const auto date = scan_date(in, 1, 9, 1);
  if (!date) return std::nullopt;
  std::int64_t time = 0;
  const bool has_time =
      in.take("T") || (in.rest().size() > 1 && in.rest()[0] == ' ' && is_digit(in.rest()[1]));
  if (has_time) {
    in.take(" ");
    const auto scanned = scan_time_ms(in);
    if (!scanned) return std::nullopt;
    time = *scanned;
  }
  const auto zone = scan_zone_ms(in);
  if (!zone || !in.done()) return std::nullopt;
  std::int64_t timestamp = 0;
  if (__builtin_mul_overflow(days_from_civil(*date), kMillisecondsPerDay, &timestamp) ||
      __builtin_add_overflow(timestamp, time - *zone, &timestamp)) {
    return std::nullopt;
  }
  return timestamp;
}

std::string date_text(const CivilDate& date) {
  const std::int64_t year = date.year < 0 ? -date.year : date.year;
  const std::string_view sign = date.year < 0 ? "-" : date.year > 9999 ? "+" : "";
  return fmt::format("{}{:04}-{:02}-{:02}", sign, year, date.month, date.day);
}

std::int64_t floor_divide(std::int64_t value, std::int64_t by) {
  return value / by - (value % by < 0 ? 1 : 0);
}

// A duration as its parts come, the largest unit first.
class DurationBuilder {
 public:
  explicit DurationBuilder(bool negative) : negative_(negative) {}

  enum class Unit : unsigned char {
    years = 1,
    months,
    weeks,
    days,
    hours,
    minutes,
    seconds,
    milliseconds,
    microseconds,
    nanoseconds,
  };

  Result<void> add(std::int64_t count, Unit unit) {
    if (unit == last_) {
      return Error(Errc::invalid_argument, "Invalid duration. The {} are specified multiple times",
                   name_of(unit));
    }
    if (unit < last_) {
      return Error(Errc::invalid_argument, "Invalid duration. The {} should be after {}",
                   name_of(last_), name_of(unit));
    }
    last_ = unit;
    const auto& [total, limit, factor] = measure(unit);
    std::int64_t scaled = 0;
    if (__builtin_mul_overflow(count, factor, &scaled) ||
        __builtin_add_overflow(*total, scaled, total) || *total > limit) {
      return Error(Errc::invalid_argument,
                   "Invalid duration. The total number of {} must be less or equal to {}",
                   unit <= Unit::months ? "months"
                   : unit <= Unit::days ? "days"
                                        : "nanoseconds",
                   limit);
    }
    return {};
  }

  Duration build() const {
    const std::int64_t sign = negative_ ? -1 : 1;
    return {.months = static_cast<std::int32_t>(sign * months_),
            .days = static_cast<std::int32_t>(sign * days_),
            .nanoseconds = sign * nanoseconds_};
  }

 private:
  struct Measure {
    std::int64_t* total;
    std::int64_t limit;
    std::int64_t factor;
  };

  static std::string_view name_of(Unit unit) {
    constexpr std::array<std::string_view, 11> kNames = {
        "",        "years",   "months",       "weeks",        "days",       "hours",
        "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"};
    return kNames[static_cast<std::size_t>(unit)];
  }

  Measure measure(Unit unit) {
    constexpr std::int64_t kSmallMax = std::numeric_limits<std::int32_t>::max();
    constexpr std::int64_t kLargeMax = std::numeric_limits<std::int64_t>::max();
    switch (unit) {
      case Unit::years:
        return {&months_, kSmallMax, 12};
      case Unit::months:
        return {&months_, kSmallMax, 1};
      case Unit::weeks:
        return {&days_, kSmallMax, 7};
      case Unit::days:
        return {&days_, kSmallMax, 1};
      case Unit::hours:
        return {&nanoseconds_, kLargeMax, 3600 * kNanosecondsPerSecond};
      case Unit::minutes:
        return {&nanoseconds_, kLargeMax, 60 * kNanosecondsPerSecond};
      case Unit::seconds:
        return {&nanoseconds_, kLargeMax, kNanosecondsPerSecond};
      case Unit::milliseconds:
        return {&nanoseconds_, kLargeMax, 1'000'000};
      case Unit::microseconds:
        return {&nanoseconds_, kLargeMax, 1000};
      case Unit::nanoseconds:
        return {&nanoseconds_, kLargeMax, 1};
    }
    UNREACHABLE("unit {}", static_cast<unsigned>(unit));
  }

  bool negative_;
  Unit last_{};
  std::int64_t months_ = 0;
  std::int64_t days_ = 0;
  std::int64_t nanoseconds_ = 0;
};

using Unit = DurationBuilder::Unit;

struct UnitName {
  std::string_view name;
  Unit unit;
};

// Longer names before those they begin with.
constexpr std::array kStandardUnits = {
    UnitName{"mo", Unit::months},       UnitName{"ms", Unit::milliseconds},
    UnitName{"us", Unit::microseconds}, UnitName{"\xc2\xb5s", Unit::microseconds},
    UnitName{"ns", Unit::nanoseconds},  UnitName{"y", Unit::years},
    UnitName{"w", Unit::weeks},         UnitName{"d", Unit::days},
    UnitName{"h", Unit::hours},         UnitName{"m", Unit::minutes},
    UnitName{"s", Unit::seconds},
};
constexpr std::array kIsoDateUnits = {UnitName{"Y", Unit::years}, UnitName{"M", Unit::months},
                                      UnitName{"D", Unit::days}};
constexpr std::array kIsoTimeUnits = {UnitName{"H", Unit::hours}, UnitName{"M", Unit::minutes},
                                      UnitName{"S", Unit::seconds}};
constexpr std::array kIsoWeekUnits = {UnitName{"W", Unit::weeks}};

std::string lowered(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return lower;
}

Error not_a_duration(std::string_view text) {
  return Error(Errc::invalid_argument, "Unable to convert '{}' to a duration", shown(text));
}

// Numbers with units behind them, to the end or to a "T".
Result<void> add_parts(Scanner& in, std::span<const UnitName> units, std::string_view text,
                       DurationBuilder& builder) {
  while (!in.done() && in.rest()[0] != 'T') {
    const auto count = in.number(1, 18);
    const auto unit = std::ranges::find_if(
        units, [&](const UnitName& candidate) { return in.take(candidate.name); });
    if (!count || unit == units.end()) return not_a_duration(text);
    TRY_VOID(builder.add(*count, unit->unit));
  }
  return {};
}

// P0001-02-03T04:05:06, without the P.
Result<void> add_alternative(Scanner& in, std::string_view text, DurationBuilder& builder) {
  struct Field {
    std::size_t digits;
    std::string_view behind;
    Unit unit;
  };
  constexpr std::array kFields = {Field{4, "-", Unit::years},   Field{2, "-", Unit::months},
                                  Field{2, "T", Unit::days},    Field{2, ":", Unit::hours},
                                  Field{2, ":", Unit::minutes}, Field{2, "", Unit::seconds}};
  for (const Field& field : kFields) {
    const auto count = in.number(field.digits, field.digits);
    if (!count || !in.take(field.behind)) return not_a_duration(text);
    TRY_VOID(builder.add(*count, field.unit));
  }
  return {};
}

Result<void> add_iso(std::string_view source, std::string_view text, DurationBuilder& builder) {
  Scanner in(source);
  in.take("P");
  if (source.ends_with('W')) {
    TRY_VOID(add_parts(in, kIsoWeekUnits, text, builder));
  } else if (source.contains('-')) {
    TRY_VOID(add_alternative(in, text, builder));
  } else {
    TRY_VOID(add_parts(in, kIsoDateUnits, text, builder));
    if (in.take("T")) TRY_VOID(add_parts(in, kIsoTimeUnits, text, builder));
  }
  if (!in.done()) return not_a_duration(text);
  return {};
}

}  // namespace

bool is_date(const CivilDate& date) {
  constexpr std::array<unsigned, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (date.month < 1 || date.month > 12 || date.day < 1) return false;
  const bool leap = (date.year % 4 == 0 && date.year % 100 != 0) || date.year % 400 == 0;
  return date.day <= kDays[date.month - 1] + (leap && date.month == 2 ? 1 : 0);
}

// Both count in eras of 400 years that begin in March, so that the leap day comes last.
std::int64_t days_from_civil(const CivilDate& date) {
  const std::int64_t year = date.year - (date.month <= 2 ? 1 : 0);
  const std::int64_t era = floor_divide(year, 400);
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t month = (std::int64_t{date.month} + 9) % 12;
  const std::int64_t day_of_year = (153 * month + 2) / 5 + std::int64_t{date.day} - 1;
  const std::int64_t day_of_era =
      year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146'097 + day_of_era - 719'468;
}

CivilDate civil_from_days(std::int64_t days) {
  days += 719'468;
  const std::int64_t era = floor_divide(days, 146'097);
  const std::int64_t day_of_era = days - era * 146'097;
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const std::int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t month = (5 * day_of_year + 2) / 153;
  const auto day = static_cast<unsigned>(day_of_year - (153 * month + 2) / 5 + 1);
  const auto civil_month = static_cast<unsigned>(month < 10 ? month + 3 : month - 9);
  const std::int64_t year = year_of_era + era * 400 + (civil_month <= 2 ? 1 : 0);
  return {.year = year, .month = civil_month, .day = day};
}

Result<std::int64_t> parse_timestamp_ms(std::string_view text) {
  if (is_integer(text)) {
    if (const auto value = to_integer(text)) return *value;
    return Error(Errc::invalid_argument, "Unable to make long (for date) from: '{}'", shown(text));
  }
  if (const auto value = timestamp_ms_of(text)) return *value;
  return Error(Errc::invalid_argument, "Unable to coerce '{}' to a formatted date (long)",
               shown(text));
}

Result<std::uint32_t> parse_date(std::string_view text) {
  if (is_integer(text)) {
    const auto value = to_integer(text);
    if (value && *value >= 0 && *value <= std::numeric_limits<std::uint32_t>::max()) {
      return static_cast<std::uint32_t>(*value);
    }
    return Error(Errc::invalid_argument, "Unable to make unsigned int (for date) from: '{}'",
                 shown(text));
  }
  Scanner in(text);
  const bool negative = in.take("-");
  const bool signed_year = negative || in.take("+");
  auto date = scan_date(in, 4, signed_year ? 9 : 4, 2);
  if (date && negative) date->year = -date->year;
  if (!date || !is_date(*date) || !in.done()) {
    return Error(Errc::invalid_argument, "Unable to coerce '{}' to a formatted date (long)",
                 shown(text));
  }
  const std::int64_t days = days_from_civil(*date) + kDateEpoch;
  if (days < 0 || days > std::numeric_limits<std::uint32_t>::max()) {
    return Error(Errc::invalid_argument, "Input date {} is {} supported date", shown(text),
                 days < 0 ? "less than min" : "greater than max");
  }
  return static_cast<std::uint32_t>(days);
}

Result<std::int64_t> parse_time_ns(std::string_view text) {
  if (is_integer(text)) {
    const auto value = to_integer(text);
    if (value && *value >= 0 && *value < kNanosecondsPerDay) return *value;
    return Error(Errc::invalid_argument, "Unable to make long (for time) from: '{}'", shown(text));
  }
  const auto bad = [&] {
    return Error(Errc::invalid_argument,
                 "(TimeType) Unable to coerce '{}' to a formatted time (long)", shown(text));
  };
  Scanner in(text);
  const auto hour = in.number(1, 2);
  if (!hour || *hour > 23 || !in.take(":")) return bad();
  const auto minute = in.number(1, 2);
  if (!minute || *minute > 59 || !in.take(":")) return bad();
  const auto second = in.number(1, 2);
  if (!second || *second > 59) return bad();
  std::int64_t fraction = 0;
  if (in.take(".")) {
    const std::size_t digits = in.rest().size();
    const auto written = in.number(1, 9);
    if (!written) return bad();
    fraction = *written;
    for (std::size_t count = digits; count < 9; ++count) fraction *= 10;
  }
  if (!in.done()) return bad();
  return ((*hour * 60 + *minute) * 60 + *second) * kNanosecondsPerSecond + fraction;
}

Result<Duration> parse_duration(std::string_view text) {
  const bool negative = text.starts_with('-');
  const std::string_view source = negative ? text.substr(1) : text;
  DurationBuilder builder(negative);
  if (source.starts_with('P')) {
    TRY_VOID(add_iso(source, text, builder));
    return builder.build();
  }
  if (source.empty()) return not_a_duration(text);
  const std::string lower = lowered(source);
  Scanner in(lower);
  TRY_VOID(add_parts(in, kStandardUnits, text, builder));
  return builder.build();
}

std::string timestamp_to_text(std::int64_t milliseconds) {
  const std::int64_t days = floor_divide(milliseconds, kMillisecondsPerDay);
  const std::int64_t remainder = milliseconds % kMillisecondsPerDay;
  const std::int64_t rest = remainder < 0 ? remainder + kMillisecondsPerDay : remainder;
  const CivilDate date = civil_from_days(days);
  if (date.year < 0) return fmt::format("{}", milliseconds);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", date.year, date.month, date.day,
                     rest / 3'600'000, rest / 60'000 % 60, rest / 1000 % 60, rest % 1000);
}

std::string date_to_text(std::uint32_t date) {
  return date_text(civil_from_days(std::int64_t{date} - kDateEpoch));
}

std::string time_to_text(std::int64_t nanoseconds) {
  const std::int64_t seconds = nanoseconds / kNanosecondsPerSecond;
  return fmt::format("{:02}:{:02}:{:02}.{:09}", seconds / 3600, seconds / 60 % 60, seconds % 60,
                     nanoseconds % kNanosecondsPerSecond);
}

std::string duration_to_text(const Duration& duration) {
  const bool negative = duration.months < 0 || duration.days < 0 || duration.nanoseconds < 0;
  std::string text = negative ? "-" : "";
  const auto add = [&](std::uint64_t& count, std::uint64_t unit, std::string_view name) {
    if (count >= unit) text += fmt::format("{}{}", count / unit, name);
    count %= unit;
  };
  const auto magnitude = [](std::int64_t value) {
    return value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  };
  std::uint64_t months = magnitude(duration.months);
  std::uint64_t days = magnitude(duration.days);
  std::uint64_t nanoseconds = magnitude(duration.nanoseconds);
  add(months, 12, "y");
  add(months, 1, "mo");
  add(days, 1, "d");
  add(nanoseconds, 3'600'000'000'000, "h");
  add(nanoseconds, 60'000'000'000, "m");
  add(nanoseconds, 1'000'000'000, "s");
  add(nanoseconds, 1'000'000, "ms");
  add(nanoseconds, 1000, "us");
  add(nanoseconds, 1, "ns");
  return text.empty() ? "0s" : text;
}

}  // namespace helenus::model
