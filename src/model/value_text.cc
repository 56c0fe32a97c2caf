// Values as literals of CQL.
#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/codec.h"
#include "model/identifier.h"
#include "model/number.h"
#include "model/temporal.h"
#include "model/value.h"

namespace helenus::model {

using base::ByteView;

namespace {

std::string quoted(const std::string& text) {
  return "'" + text + "'";
}

std::string inet_text(ByteView bytes) {
  const auto byte = [&](std::size_t index) { return std::to_integer<unsigned>(bytes[index]); };
  if (bytes.size() == 4) {
    return fmt::format("{}.{}.{}.{}", byte(0), byte(1), byte(2), byte(3));
  }
  std::string text;
  for (std::size_t index = 0; index < bytes.size(); index += 2) {
    if (index > 0) text += ":";
    text += fmt::format("{:x}", byte(index) << 8 | byte(index + 1));
  }
  return text;
}

std::string timestamp_text(ByteView bytes) {
  const std::string text = timestamp_to_text(*read_bigint(bytes));
  return text.ends_with('Z') ? quoted(text) : text;
}

// Requires: valid, and empty only if it is a text or blob.
std::string native_text(TypeKind kind, ByteView bytes) {
  switch (kind) {
    case TypeKind::ascii:
    case TypeKind::varchar:
      return to_cql_string(base::as_text(bytes));
    case TypeKind::blob:
      return "0x" + base::to_hex(bytes);
    case TypeKind::boolean:
      return *read_boolean(bytes) ? "true" : "false";
    case TypeKind::tinyint:
    case TypeKind::smallint:
    case TypeKind::int_:
    case TypeKind::bigint:
    case TypeKind::counter:
    case TypeKind::varint:
      return varint_to_text(bytes);
    case TypeKind::float_:
      return float_to_text(*read_float(bytes));
    case TypeKind::double_:
      return float_to_text(*read_double(bytes));
    case TypeKind::decimal:
      return decimal_to_text(bytes);
    case TypeKind::uuid:
    case TypeKind::timeuuid:
      return read_uuid(bytes)->to_string();
    case TypeKind::inet:
      return quoted(inet_text(bytes));
    case TypeKind::date:
      return quoted(date_to_text(base::load_be<std::uint32_t>(bytes.data())));
    case TypeKind::time:
      return quoted(time_to_text(*read_bigint(bytes)));
    case TypeKind::timestamp:
      return timestamp_text(bytes);
    case TypeKind::duration:
      return duration_to_text(*read_duration(bytes));
    case TypeKind::list:
    case TypeKind::map:
    case TypeKind::set:
    case TypeKind::udt:
    case TypeKind::tuple:
    case TypeKind::vector:
      break;
  }
  UNREACHABLE("type {}", static_cast<unsigned>(kind));
}

std::string valid_text(const DataType& type, ByteView bytes);

std::string collection_text(const DataType& type, ByteView bytes) {
  const bool is_list = type.kind() == TypeKind::list;
  std::string text = is_list ? "[" : "{";
  for (const ByteView element : *split_collection(bytes)) {
    if (text.size() > 1) text += ", ";
    text += valid_text(type.element(), element);
  }
  return text + (is_list ? "]" : "}");
}

std::string map_text(const DataType& type, ByteView bytes) {
  std::string text = "{";
  for (const auto& [key, mapped] : *split_map(bytes)) {
    if (text.size() > 1) text += ", ";
    text += valid_text(type.key(), key) + ": " + valid_text(type.mapped(), mapped);
  }
  return text + "}";
}

std::string vector_text(ByteView bytes) {
  std::string text = "[";
  for (const ByteView element : split_vector(bytes)) {
    if (text.size() > 1) text += ", ";
    text += native_text(TypeKind::float_, element);
  }
  return text + "]";
}

std::string tuple_text(const DataType& type, ByteView bytes) {
  const bool named = type.kind() == TypeKind::udt;
  const auto elements = split_tuple(type.parts().size(), bytes);
  std::string text = named ? "{" : "(";
  for (std::size_t index = 0; index < elements->size(); ++index) {
    if (index > 0) text += ", ";
    if (named) text += to_cql_identifier(type.field_names()[index]) + ": ";
    const OptionalView& element = (*elements)[index];
    text += element ? valid_text(type.parts()[index], *element) : "null";
  }
  return text + (named ? "}" : ")");
}

std::string valid_text(const DataType& type, ByteView bytes) {
  switch (type.kind()) {
    case TypeKind::list:
    case TypeKind::set:
      return collection_text(type, bytes);
    case TypeKind::map:
      return map_text(type, bytes);
    case TypeKind::tuple:
    case TypeKind::udt:
      return tuple_text(type, bytes);
    case TypeKind::vector:
      return vector_text(bytes);
    default:
      break;
  }
  const bool has_empty_literal = type.is_text() || type.kind() == TypeKind::blob;
  return bytes.empty() && !has_empty_literal ? "" : native_text(type.kind(), bytes);
}

}  // namespace

std::string to_text(const DataType& type, ByteView bytes) {
  if (!validate(type, bytes)) return "0x" + base::to_hex(bytes);
  return valid_text(type, bytes);
}

}  // namespace helenus::model
