#include "cql/schema/compaction_properties.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cql/schema/property_values.h"

namespace helenus::cql {

using model::OptionMap;

namespace {

constexpr std::string_view kPackage = "org.apache.cassandra.db.compaction";

enum class ValueKind : std::uint8_t { boolean, integer, decimal, word };

struct SubOption {
  std::string_view name;
  ValueKind kind;
  std::int64_t least = 0;  // of an integer
};

constexpr std::array kOfAll = {
    SubOption{"enabled", ValueKind::boolean},
    SubOption{"log_all", ValueKind::boolean},
    SubOption{"only_purge_repaired_tombstones", ValueKind::boolean},
    SubOption{"provide_overlapping_tombstones", ValueKind::word},
    SubOption{"tombstone_compaction_interval", ValueKind::integer},
    SubOption{"tombstone_threshold", ValueKind::decimal},
    SubOption{"unchecked_tombstone_compaction", ValueKind::boolean},
    SubOption{"min_threshold", ValueKind::integer},
    SubOption{"max_threshold", ValueKind::integer},
    SubOption{"min_sstable_size", ValueKind::integer},
    SubOption{"bucket_low", ValueKind::decimal},
    SubOption{"bucket_high", ValueKind::decimal},
};
constexpr std::array kOfLeveled = {
    SubOption{"sstable_size_in_mb", ValueKind::integer, 1},
    SubOption{"fanout_size", ValueKind::integer, 1},
    SubOption{"single_sstable_uplevel", ValueKind::boolean},
};
constexpr std::array kOfTimeWindow = {
    SubOption{"compaction_window_size", ValueKind::integer, 1},
    SubOption{"compaction_window_unit", ValueKind::word},
    SubOption{"expired_sstable_check_frequency_seconds", ValueKind::integer},
    SubOption{"timestamp_resolution", ValueKind::word},
    SubOption{"unsafe_aggressive_sstable_expiration", ValueKind::boolean},
};
constexpr std::array kOfDateTiered = {
    SubOption{"base_time_seconds", ValueKind::integer},
    SubOption{"max_sstable_age_days", ValueKind::decimal},
    SubOption{"max_window_size_seconds", ValueKind::integer},
    SubOption{"timestamp_resolution", ValueKind::word},
};

struct Strategy {
  std::string_view name;
  std::span<const SubOption> own;
};
constexpr std::array kStrategies = {
    Strategy{"SizeTieredCompactionStrategy", {}},
    Strategy{"LeveledCompactionStrategy", kOfLeveled},
    Strategy{"TimeWindowCompactionStrategy", kOfTimeWindow},
    Strategy{"DateTieredCompactionStrategy", kOfDateTiered},
};

// Words that options of this name may have; none: any.
std::span<const std::string_view> words_of(std::string_view option) {
  static constexpr std::array<std::string_view, 3> kOverlap = {"CELL", "NONE", "ROW"};
  static constexpr std::array<std::string_view, 3> kUnits = {"DAYS", "HOURS", "MINUTES"};
  static constexpr std::array<std::string_view, 4> kResolutions = {"MICROSECONDS", "MILLISECONDS",
                                                                   "NANOSECONDS", "SECONDS"};
  if (option == "provide_overlapping_tombstones") return kOverlap;
  if (option == "compaction_window_unit") return kUnits;
  if (option == "timestamp_resolution") return kResolutions;
  return {};
}

QueryResult<void> check_value(const SubOption& option, const std::string& value) {
  switch (option.kind) {
    case ValueKind::boolean: {
      const std::string word = to_lower(value);
      if (word == "true" || word == "false") return {};
      return config_error(
          fmt::format("'{}' should be either 'true' or 'false', not '{}'", option.name, value));
    }
    case ValueKind::integer: {
      const std::optional<std::int64_t> number = parse_integer(value);
      if (!number) {
        return config_error(
            fmt::format("{} is not a parsable int (base10) for {}", value, option.name));
      }
      if (*number < option.least) {
        return config_error(
            fmt::format("{} must be at least {}, but was {}", option.name, option.least, *number));
      }
      return {};
    }
    case ValueKind::decimal: {
      const std::optional<double> number = parse_double(value);
      if (number && *number >= 0) return {};
      return config_error(fmt::format("{} is not a valid value for {}", value, option.name));
    }
    case ValueKind::word:
      break;
  }
  const auto words = words_of(option.name);
  if (is_among(words, to_upper(value))) return {};
  return config_error(fmt::format("{} is not valid for {}", value, option.name));
}

QueryResult<void> check_thresholds(const OptionMap& options) {
  const std::int64_t least = *parse_integer(options.at("min_threshold"));
  const std::int64_t most = *parse_integer(options.at("max_threshold"));
  if (least <= 0 || most <= 0) {
    return config_error(
        "Disabling compaction by setting compaction thresholds to 0 has been removed, set the "
        "compaction option 'enabled' to false instead.");
  }
  if (least <= 1) {
    return config_error(
        fmt::format("Min compaction threshold cannot be less than 2 (got {})", least));
  }
  if (least > most) {
    return config_error(
        fmt::format("Min compaction threshold (got {}) cannot be greater than max compaction "
                    "threshold (got {})",
                    least, most));
  }
  return {};
}

}  // namespace

QueryResult<OptionMap> read_compaction(const OptionMap& given) {
  OptionMap options = given;
  const auto class_entry = options.extract("class");
  if (class_entry.empty()) {
    return config_error("Missing sub-option 'class' for the 'compaction' option");
  }
  std::string class_name = full_class_name(kPackage, class_entry.mapped());
  const auto strategy = std::ranges::find_if(kStrategies, [&](const Strategy& known) {
    return class_name == full_class_name(kPackage, known.name);
  });
  if (strategy == kStrategies.end()) {
    return config_error(fmt::format("Unable to find compaction strategy class '{}'", class_name));
  }
  for (const auto& [name, value] : options) {
    const auto of_all = std::ranges::find(kOfAll, name, &SubOption::name);
    const auto of_one = std::ranges::find(strategy->own, name, &SubOption::name);
    if (of_all == kOfAll.end() && of_one == strategy->own.end()) {
      return config_error(
          fmt::format("Properties specified [{}] are not understood by {}", name, strategy->name));
    }
    TRY_VOID(check_value(of_all != kOfAll.end() ? *of_all : *of_one, value));
  }
  options.try_emplace("min_threshold", "4");
  options.try_emplace("max_threshold", "32");
  TRY_VOID(check_thresholds(options));
  options["class"] = std::move(class_name);
  return options;
}

}  // namespace helenus::cql
