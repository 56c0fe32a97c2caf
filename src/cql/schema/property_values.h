// Values of properties behind WITH, with the checks and the words that all of them share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cql/errors/query_error.h"
#include "cql/parser/ast.h"
#include "model/table_options.h"

namespace helenus::cql {

// 2000, as Cassandra answers a bad property.
QueryError property_syntax_error(std::string message);

// The value of a property as a text, a map, a number, yes or no. Errors: 2000.
QueryResult<std::string> text_of(const parser::Property& property);
QueryResult<model::OptionMap> map_of(const parser::Property& property);
QueryResult<std::int32_t> integer_of(const parser::Property& property);
QueryResult<double> double_of(const parser::Property& property);
QueryResult<bool> boolean_of(const parser::Property& property);

// Nothing but an integer, or a decimal number, to its end.
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_double(std::string_view text);

template <class Range, class Value>
bool is_among(const Range& range, const Value& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);

// The class with this short name or this full one: "LZ4Compressor" in a package becomes
// "org.apache.cassandra.io.compress.LZ4Compressor".
std::string full_class_name(std::string_view package, std::string_view name);

}  // namespace helenus::cql
