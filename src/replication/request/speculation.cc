#include "replication/request/speculation.h"

#include <algorithm>
#include <charconv>

namespace helenus::replication {

using runtime::Duration;

namespace {

// "99p" or "50ms"; whether it was one.
bool read_one(std::string_view text, Speculation& speculation) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit == "p" && number > 0 && number <= 100) {
    speculation.percentile = number;
    return true;
  }
  if (unit != "ms" || number > 1e9) return false;
  speculation.fixed = std::chrono::microseconds(static_cast<std::int64_t>(number * 1000));
  return true;
}

}  // namespace

Speculation Speculation::parse(std::string_view text) {
  if (text == "99p") return {};
  if (text == "ALWAYS") return {.kind = Kind::always};
  if (text == "NEVER" || text == "NONE") return {.kind = Kind::never};
  Speculation speculation;
  const bool is_hybrid =
      (text.starts_with("MIN(") || text.starts_with("MAX(")) && text.ends_with(')');
  if (is_hybrid) {
    speculation.kind = text.starts_with("MIN(") ? Kind::sooner : Kind::later;
    const std::string_view inner = text.substr(4, text.size() - 5);
    const std::size_t comma = std::min(inner.find(','), inner.size());
    if (comma < inner.size() && read_one(inner.substr(0, comma), speculation) &&
        read_one(inner.substr(comma + 1), speculation)) {
      return speculation;
    }
    return {};
  }
  if (!read_one(text, speculation)) return {};
  speculation.kind = text.ends_with("ms") ? Kind::fixed : Kind::percentile;
  return speculation;
}

std::optional<Duration> Speculation::patience(std::optional<Duration> usual) const {
  const Duration by_percentile = std::max(usual.value_or(kUnknown), kPercentileMin);
  switch (kind) {
    case Kind::percentile:
      return by_percentile;
    case Kind::fixed:
      return fixed;
    case Kind::sooner:
      return std::min(by_percentile, fixed);
    case Kind::later:
      return std::max(by_percentile, fixed);
    case Kind::always:
      return Duration(0);
    case Kind::never:
      return std::nullopt;
  }
  return by_percentile;
}

}  // namespace helenus::replication
