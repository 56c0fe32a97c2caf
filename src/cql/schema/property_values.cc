#include "cql/schema/property_values.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

namespace helenus::cql {

namespace {

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}
char upper(char letter) {
  return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
}

}  // namespace

QueryError property_syntax_error(std::string message) {
  return {protocol::ErrorCode::syntax_error, std::move(message)};
}

QueryResult<std::string> text_of(const parser::Property& property) {
  const auto* literal = std::get_if<parser::Literal>(&property.value);
  if (literal == nullptr) {
    return property_syntax_error(
        fmt::format("Invalid value for property '{}'. It should be a string", property.name.text));
  }
  return literal->text;
}

QueryResult<model::OptionMap> map_of(const parser::Property& property) {
  const auto* entries = std::get_if<parser::PropertyMap>(&property.value);
  if (entries == nullptr) {
    return property_syntax_error(
        fmt::format("Invalid value for property '{}'. It should be a map.", property.name.text));
  }
  model::OptionMap map;
  for (const parser::PropertyEntry& entry : *entries) map[entry.key.text] = entry.value.text;
  return map;
}

QueryResult<std::int32_t> integer_of(const parser::Property& property) {
  TRY(const std::string text, text_of(property));
  const std::optional<std::int64_t> value = parse_integer(text);
  if (!value || *value < INT32_MIN || *value > INT32_MAX) {
    return property_syntax_error(
        fmt::format("Invalid integer value {} for '{}'", text, property.name.text));
  }
  return static_cast<std::int32_t>(*value);
}

QueryResult<double> double_of(const parser::Property& property) {
  TRY(const std::string text, text_of(property));
  const std::optional<double> value = parse_double(text);
  if (!value) {
    return property_syntax_error(
        fmt::format("Invalid double value {} for '{}'", text, property.name.text));
  }
  return *value;
}

QueryResult<bool> boolean_of(const parser::Property& property) {
  TRY(const std::string text, text_of(property));
  const std::string word = to_lower(text);
  if (word == "1" || word == "true" || word == "yes") return true;
  if (word == "0" || word == "false" || word == "no") return false;
  return property_syntax_error(
      fmt::format("Invalid boolean value {} for '{}'. Positive values can be '1', 'true' or 'yes'. "
                  "Negative values can be '0', 'false' or 'no'.",
                  text, property.name.text));
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::string to_lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result) letter = lower(letter);
  return result;
}

std::string to_upper(std::string_view text) {
  std::string result(text);
  for (char& letter : result) letter = upper(letter);
  return result;
}

std::string full_class_name(std::string_view package, std::string_view name) {
  if (name.contains('.')) return std::string(name);
  return fmt::format("{}.{}", package, name);
}

}  // namespace helenus::cql
