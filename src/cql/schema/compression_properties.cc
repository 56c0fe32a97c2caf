#include "cql/schema/compression_properties.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cql/schema/property_values.h"

namespace helenus::cql {

using model::OptionMap;

namespace {

constexpr std::string_view kPackage = "org.apache.cassandra.io.compress";

struct Compressor {
  std::string_view name;
  std::span<const std::string_view> options;
};
constexpr std::array<std::string_view, 2> kOfLz4 = {"lz4_compressor_type",
                                                    "lz4_high_compressor_level"};
constexpr std::array<std::string_view, 1> kOfZstd = {"compression_level"};
constexpr std::array kCompressors = {
    Compressor{"LZ4Compressor", kOfLz4}, Compressor{"ZstdCompressor", kOfZstd},
    Compressor{"SnappyCompressor", {}},  Compressor{"DeflateCompressor", {}},
    Compressor{"NoopCompressor", {}},
};

// Takes a sub-option out of the map by either of its names.
QueryResult<std::optional<std::string>> take(OptionMap& options, std::string_view name,
                                             std::string_view old_name, std::string_view what) {
  auto entry = options.extract(std::string(name));
  auto old_entry = options.extract(std::string(old_name));
  if (!entry.empty() && !old_entry.empty()) {
    return config_error(
        fmt::format("The '{}' option must not be used if the {} is already specified by the '{}' "
                    "option",
                    old_name, what, name));
  }
  if (!entry.empty()) return std::optional(std::move(entry.mapped()));
  if (!old_entry.empty()) return std::optional(std::move(old_entry.mapped()));
  return std::optional<std::string>();
}

QueryResult<std::string> read_chunk_length(const std::optional<std::string>& text) {
  if (!text) return std::string("16");
  const std::optional<std::int64_t> length = parse_integer(*text);
  if (!length) return config_error("Invalid value for chunk_length_in_kb");
  if (*length > INT32_MAX / 1024) {
    return config_error(fmt::format("Value of chunk_length_in_kb is too large ({})", *length));
  }
  if (*length <= 0) return config_error("Invalid negative or null chunk_length_in_kb");
  if ((*length & (*length - 1)) != 0) {
    return config_error("chunk_length_in_kb must be a power of 2");
  }
  return std::to_string(*length);
}

QueryResult<void> check_ratio(const std::string& text) {
  const std::optional<double> ratio = parse_double(text);
  if (!ratio) return config_error(fmt::format("Invalid value {} for min_compress_ratio", text));
  if (*ratio < 0) return config_error("Invalid negative min_compress_ratio");
  if (*ratio > 0 && *ratio < 1) {
    return config_error("min_compress_ratio can either be 0 or greater than or equal to 1");
  }
  return {};
}

// Cassandra tells of these as its compressors' classes do.
QueryError refused_by(std::string_view compressor, std::string_view exception,
                      std::string_view what) {
  return config_error(
      fmt::format("{}.create() threw an error: {} {}", compressor, exception, what));
}

QueryResult<void> check_level_of_zstd(const std::string& text) {
  constexpr std::int64_t kLeast = -(1 << 17);
  constexpr std::int64_t kMost = 22;
  const std::optional<std::int64_t> level = parse_integer(text);
  if (!level) {
    return refused_by("ZstdCompressor", "java.lang.NumberFormatException",
                      fmt::format("For input string: \"{}\"", text));
  }
  if (*level >= kLeast && *level <= kMost) return {};
  return refused_by("ZstdCompressor", "java.lang.IllegalArgumentException",
                    fmt::format("compression_level={} is invalid", *level));
}

QueryResult<void> check_option_of_lz4(std::string_view name, const std::string& text) {
  constexpr std::string_view kException = "org.apache.cassandra.exceptions.ConfigurationException";
  if (name == "lz4_compressor_type") {
    if (text == "fast" || text == "high") return {};
    return refused_by(
        "LZ4Compressor", kException,
        fmt::format("Invalid compressor type '{}' specified for LZ4 parameter '{}'. Valid options "
                    "are [fast, high].",
                    text, name));
  }
  const std::optional<std::int64_t> level = parse_integer(text);
  if (level && *level >= 1 && *level <= 17) return {};
  return refused_by(
      "LZ4Compressor", kException,
      fmt::format("Invalid value [{}] for parameter '{}'. Value must be between 1 and 17.", text,
                  name));
}

QueryResult<void> check_option(const Compressor& compressor, std::string_view name,
                               const std::string& value) {
  if (name == "min_compress_ratio") return check_ratio(value);
  if (!is_among(compressor.options, name)) {
    return config_error(fmt::format("Unknown compression options {}", name));
  }
  return name == "compression_level" ? check_level_of_zstd(value)
                                     : check_option_of_lz4(name, value);
}

QueryResult<OptionMap> read_enabled(OptionMap options, const std::string& class_given) {
  if (class_given.empty()) {
    return config_error(
        "The 'class' option must not be empty. To disable compression use 'enabled' : false");
  }
  std::string class_name = full_class_name(kPackage, class_given);
  const auto compressor = std::ranges::find_if(kCompressors, [&](const Compressor& known) {
    return class_name == full_class_name(kPackage, known.name);
  });
  if (compressor == kCompressors.end()) {
    return config_error(fmt::format("Could not create Compression for type {}", class_name));
  }
  TRY(const auto length_given,
      take(options, "chunk_length_in_kb", "chunk_length_kb", "chunk length"));
  TRY(std::string length, read_chunk_length(length_given));
  options.erase("crc_check_chance");
  for (const auto& [name, value] : options) {
    TRY_VOID(check_option(*compressor, name, value));
  }
  options["class"] = std::move(class_name);
  options["chunk_length_in_kb"] = std::move(length);
  return options;
}

}  // namespace

QueryResult<OptionMap> read_compression(const OptionMap& given) {
  OptionMap options = given;
  const auto enabled = options.extract("enabled");
  const bool off = !enabled.empty() && to_lower(enabled.mapped()) != "true";
  if (off) {
    if (!options.empty()) {
      return config_error(
          "If the 'enabled' option is set to false no other options must be specified");
    }
    return OptionMap{{"enabled", "false"}};
  }
  if (given.empty()) return OptionMap{{"enabled", "false"}};
  TRY(const auto class_name,
      take(options, "class", "sstable_compression", "compression algorithm"));
  if (!class_name) {
    return config_error("Missing sub-option 'class' for the 'compression' option.");
  }
  return read_enabled(std::move(options), *class_name);
}

}  // namespace helenus::cql
