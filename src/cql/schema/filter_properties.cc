#include "cql/schema/filter_properties.h"

#include <string>
#include <string_view>
#include <vector>

#include "cql/schema/property_values.h"

namespace helenus::cql {

using model::OptionMap;
using storage::FilterKind;
using storage::TableFilter;

namespace {

constexpr std::string_view kClass = "class";
constexpr std::string_view kRate = "false_positive_rate";
constexpr std::string_view kBits = "bits_per_hash";

std::optional<double> number_of(const OptionMap& options, std::string_view name) {
  const auto found = options.find(std::string(name));
  return found == options.end() ? std::nullopt : parse_double(found->second);
}

// What a class can be told, for the one who told it something else.
std::string what_fits(FilterKind kind) {
  if (!storage::has_size(kind)) return fmt::format("class '{}' has no others", name_of(kind));
  return fmt::format("class '{}' takes either {} ({} to {}) or {} ({} to {})", name_of(kind), kRate,
                     storage::rate_min(kind), storage::kFilterRateMax, kBits,
                     storage::kFilterBitsMin, storage::kFilterBitsMax);
}

}  // namespace

QueryResult<OptionMap> read_filter(const OptionMap& given) {
  if (given.empty()) return given;
  const auto named = given.find(std::string(kClass));
  if (named == given.end()) {
    return config_error("Missing sub-option 'class' for the 'filter' option");
  }
  const std::optional<FilterKind> kind = storage::filter_kind_named(named->second);
  if (!kind) {
    std::vector<std::string_view> names;
    for (const FilterKind each : storage::kFilterKinds) names.push_back(name_of(each));
    return config_error(fmt::format("Invalid filter sub-option 'class' = '{}'; there are {}",
                                    named->second, fmt::join(names, ", ")));
  }
  for (const auto& [name, value] : given) {
    if (name == kClass) continue;
    TableFilter alone{.kind = *kind};
    if (name == kRate) alone.false_positive_rate = parse_double(value);
    if (name == kBits) alone.bits_per_hash = parse_double(value);
    const bool read = alone.false_positive_rate || alone.bits_per_hash;
    if (read && storage::validate(alone)) continue;
    return config_error(
        fmt::format("Invalid filter sub-option '{}' = '{}': {}", name, value, what_fits(*kind)));
  }
  if (given.size() > 2) {
    return config_error(fmt::format("Invalid filter sub-options '{}' and '{}': {}", kRate, kBits,
                                    what_fits(*kind)));
  }
  return given;
}

std::optional<TableFilter> filter_of(const OptionMap& options) {
  const auto named = options.find(std::string(kClass));
  if (named == options.end()) return std::nullopt;
  const std::optional<FilterKind> kind = storage::filter_kind_named(named->second);
  if (!kind) return std::nullopt;
  TableFilter filter{.kind = *kind, .bits_per_hash = number_of(options, kBits)};
  if (!filter.bits_per_hash) filter.false_positive_rate = number_of(options, kRate);
  return storage::validate(filter) ? filter : TableFilter{.kind = *kind};
}

}  // namespace helenus::cql
