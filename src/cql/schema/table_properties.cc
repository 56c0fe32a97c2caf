#include "cql/schema/table_properties.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "cql/schema/compaction_properties.h"
#include "cql/schema/compression_properties.h"
#include "cql/schema/filter_properties.h"
#include "cql/schema/property_values.h"

namespace helenus::cql {

using model::OptionMap;
using model::TableOptions;
using parser::Properties;
using parser::Property;

namespace {

QueryResult<std::string> read_rows_cached(const std::string& text) {
  const std::string word = to_upper(text);
  if (word == "ALL" || word == "NONE") return word;
  const std::optional<std::int64_t> number = parse_integer(text);
  if (number && *number >= 0 && *number <= INT32_MAX) {
    return *number == 0 ? std::string("NONE") : std::to_string(*number);
  }
  return config_error(fmt::format(
      "Invalid value '{}' for caching sub-option 'rows_per_partition': only 'ALL', 'NONE', and "
      "integer values are allowed",
      text));
}

QueryResult<OptionMap> read_caching(const Property& property) {
  TRY(const OptionMap given, map_of(property));
  OptionMap caching = {{"keys", "NONE"}, {"rows_per_partition", "NONE"}};
  for (const auto& [name, value] : given) {
    if (name == "keys") {
      caching["keys"] = to_upper(value);
      if (caching["keys"] != "ALL" && caching["keys"] != "NONE") {
        return config_error(fmt::format(
            "Invalid value '{}' for caching sub-option 'keys': only 'ALL' and 'NONE' are allowed",
            value));
      }
    } else if (name == "rows_per_partition") {
      TRY(caching["rows_per_partition"], read_rows_cached(value));
    } else {
      return config_error(fmt::format(
          "Invalid caching sub-options [{}]: only 'keys' and 'rows_per_partition' are allowed",
          name));
    }
  }
  return caching;
}

// A latency in percentiles ("99p", "99percentile") or milliseconds ("10ms"), as Cassandra prints
// it; nothing for what is neither.
std::optional<std::string> read_latency(std::string_view text) {
  const std::string word = to_lower(text);
  const std::size_t digits = std::min(word.find_first_not_of("0123456789."), word.size());
  const std::optional<double> number = parse_double(std::string_view(word).substr(0, digits));
  const std::string_view unit = std::string_view(word).substr(digits);
  if (!number) return std::nullopt;
  if (unit == "ms" && *number <= INT32_MAX) {
    return fmt::format("{}ms", static_cast<std::int64_t>(*number));
  }
  if ((unit == "p" || unit == "percentile") && *number > 0 && *number < 100) {
    return fmt::format("{}p", *number);
  }
  return std::nullopt;
}

// MIN(99p,50ms): one of each kind.
std::optional<std::string> read_hybrid(std::string_view text) {
  const std::string word = to_lower(text);
  if ((!word.starts_with("min(") && !word.starts_with("max(")) || !word.ends_with(')')) {
    return std::nullopt;
  }
  const std::string_view inner = std::string_view(word).substr(4, word.size() - 5);
  const std::size_t comma = inner.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  std::string_view second = inner.substr(comma + 1);
  while (second.starts_with(' ')) second.remove_prefix(1);
  std::optional<std::string> percentile = read_latency(inner.substr(0, comma));
  std::optional<std::string> fixed = read_latency(second);
  if (!percentile || !fixed) return std::nullopt;
  if (percentile->ends_with("ms")) std::swap(percentile, fixed);
  if (percentile->ends_with("ms") || !fixed->ends_with("ms")) return std::nullopt;
  return fmt::format("{}({},{})", to_upper(word.substr(0, 3)), *percentile, *fixed);
}

QueryResult<std::string> read_speculation(const Property& property) {
  TRY(const std::string text, text_of(property));
  const std::string word = to_upper(text);
  if (word == "ALWAYS" || word == "NEVER") return word;
  if (word == "NONE") return std::string("NEVER");
  if (std::optional<std::string> latency = read_latency(text)) return *std::move(latency);
  if (std::optional<std::string> hybrid = read_hybrid(text)) return *std::move(hybrid);
  return config_error(fmt::format("Invalid value {} for option 'speculative_retry'", text));
}

QueryResult<std::string> read_read_repair(const Property& property) {
  TRY(const std::string text, text_of(property));
  std::string word = to_upper(text);
  if (word == "NONE" || word == "BLOCKING") return word;
  return config_error(
      fmt::format("Invalid value {} for option 'read_repair': NONE or BLOCKING", text));
}

QueryResult<std::string> read_memtable(const Property& property) {
  TRY(std::string text, text_of(property));
  if (text == "default") return text;
  return config_error(
      fmt::format("Memtable configuration \"{}\" not found; there is \"default\"", text));
}

QueryResult<std::map<std::string, base::Bytes>> read_extensions(const Property& property) {
  TRY(const OptionMap given, map_of(property));
  std::map<std::string, base::Bytes> extensions;
  for (const auto& [name, value] : given) extensions[name] = base::Bytes::copy_of(value);
  return extensions;
}

template <class T>
QueryResult<T> as_config_error(base::Result<T> result) {
  if (result) return *std::move(result);
  return config_error(std::string(result.error().context()));
}

QueryResult<void> read_ours(const Property& property, TableOptions& options) {
  const std::string& name = property.name.text;
  if (name == "filter") {
    TRY(const OptionMap given, map_of(property));
    TRY(options.filter, read_filter(given));
    return {};
  }
  if (name == "delete_memory") {
    TRY(options.delete_memory_seconds, integer_of(property));
    return {};
  }
  TRY(const std::string text, text_of(property));
  if (name == "conflicts") {
    TRY(options.conflicts, as_config_error(model::parse_conflicts(to_lower(text))));
    return {};
  }
  TRY(options.causal_writes, as_config_error(model::parse_causal_writes(to_lower(text))));
  return {};
}

QueryResult<void> read_number(const Property& property, TableOptions& options) {
  const std::string& name = property.name.text;
  if (name == "bloom_filter_fp_chance" || name == "crc_check_chance") {
    TRY(const double value, double_of(property));
    (name == "crc_check_chance" ? options.crc_check_chance : options.bloom_filter_fp_chance) =
        value;
    return {};
  }
  TRY(const std::int32_t value, integer_of(property));
  if (name == "default_time_to_live") options.default_time_to_live = value;
  if (name == "gc_grace_seconds") options.gc_grace_seconds = value;
  if (name == "max_index_interval") options.max_index_interval = value;
  if (name == "min_index_interval") options.min_index_interval = value;
  if (name == "memtable_flush_period_in_ms") options.memtable_flush_period_in_ms = value;
  return {};
}

QueryResult<void> read_property(const Property& property, TableOptions& options) {
  constexpr std::array<std::string_view, 7> kNumbers = {
      "bloom_filter_fp_chance", "crc_check_chance",   "default_time_to_live",
      "gc_grace_seconds",       "max_index_interval", "memtable_flush_period_in_ms",
      "min_index_interval"};
  constexpr std::array<std::string_view, 4> kOurs = {"conflicts", "filter", "causal_writes",
                                                     "delete_memory"};
  const std::string& name = property.name.text;
  if (is_among(kNumbers, name)) return read_number(property, options);
  if (is_among(kOurs, name)) return read_ours(property, options);
  if (name == "additional_write_policy") {
    TRY(options.additional_write_policy, read_speculation(property));
  } else if (name == "caching") {
    TRY(options.caching, read_caching(property));
  } else if (name == "cdc") {
    TRY(options.cdc, boolean_of(property));
  } else if (name == "comment") {
    TRY(options.comment, text_of(property));
  } else if (name == "compaction") {
    TRY(const OptionMap given, map_of(property));
    TRY(options.compaction, read_compaction(given));
  } else if (name == "compression") {
    TRY(const OptionMap given, map_of(property));
    TRY(options.compression, read_compression(given));
  } else if (name == "extensions") {
    TRY(options.extensions, read_extensions(property));
  } else if (name == "memtable") {
    TRY(options.memtable, read_memtable(property));
  } else if (name == "read_repair") {
    TRY(options.read_repair, read_read_repair(property));
  } else if (name == "speculative_retry") {
    TRY(options.speculative_retry, read_speculation(property));
  } else {
    return property_syntax_error(fmt::format("Unknown property '{}'", name));
  }
  return {};
}

QueryResult<void> check(const TableOptions& options) {
  const base::Result<void> valid = model::validate(options);
  if (!valid) return config_error(std::string(valid.error().context()));
  return {};
}

}  // namespace

QueryResult<TableProperties> read_new_table_properties(const Properties& properties) {
  TableProperties result;
  bool names_rate = false;
  for (const Property& property : properties) {
    if (property.name.text == "id") {
      TRY(const std::string text, text_of(property));
      const auto id = base::Uuid::parse(text);
      if (!id) return config_error("Invalid table id");
      result.id = *id;
      continue;
    }
    names_rate = names_rate || property.name.text == "bloom_filter_fp_chance";
    TRY_VOID(read_property(property, result.options));
  }
  // Cassandra's default rate depends on how files are compacted.
  if (!names_rate && result.options.compaction["class"].ends_with("LeveledCompactionStrategy")) {
    result.options.bloom_filter_fp_chance = 0.1;
  }
  TRY_VOID(check(result.options));
  return result;
}

QueryResult<TableOptions> read_altered_table_properties(const Properties& properties,
                                                        const TableOptions& before) {
  TableOptions options = before;
  for (const Property& property : properties) {
    if (property.name.text == "id") return config_error("Cannot alter table id.");
    TRY_VOID(read_property(property, options));
  }
  if (options.conflicts != before.conflicts) {
    return config_error(
        "Cannot alter conflicts: versions that are stored cannot be told apart any more");
  }
  TRY_VOID(check(options));
  return options;
}

}  // namespace helenus::cql
