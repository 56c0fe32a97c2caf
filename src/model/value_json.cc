// Values of CQL as JSON, and back.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/codec.h"
#include "model/json.h"
#include "model/literal.h"
#include "model/number.h"
#include "model/temporal.h"

namespace helenus::model {

using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using Kind = JsonValue::Kind;

namespace {

// ---- From JSON ----

// No more of a stranger's text comes back in an error.
constexpr std::size_t kJsonShownMax = 64;

template <class... Args>
Error unfit(fmt::format_string<Args...> format, Args&&... args) {
  return Error(Errc::invalid_argument, fmt::format(format, std::forward<Args>(args)...));
}

std::string_view class_of(const JsonValue& json) {
  switch (json.kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "Boolean";
    case Kind::integer:
      return "Integer";
    case Kind::floating:
      return "Double";
    case Kind::string:
      return "String";
    case Kind::array:
      return "ArrayList";
    case Kind::object:
      return "LinkedHashMap";
  }
  return "";
}

std::string shown(const JsonValue& json) {
  if (json.kind == Kind::array) return "[...]";
  if (json.kind == Kind::object) return "{...}";
  return json.text.substr(0, kJsonShownMax);
}

Error not_what(std::string_view what, const JsonValue& json) {
  return unfit("Expected {}, but got a {}: {}", what, class_of(json), shown(json));
}

bool is_json_number(const JsonValue& json) {
  return json.kind == Kind::integer || json.kind == Kind::floating;
}

Result<Bytes> number_of_json(const DataType& type, const JsonValue& json) {
  if (!is_json_number(json) && json.kind != Kind::string) {
    return not_what(fmt::format("a {} value", type.to_cql()), json);
  }
  const bool is_whole = type.kind() != TypeKind::float_ && type.kind() != TypeKind::double_ &&
                        type.kind() != TypeKind::decimal;
  if (is_whole && json.kind == Kind::floating) {
    return not_what(fmt::format("a {} value", type.to_cql()), json);
  }
  TRY(Bytes value, parse_literal(type, LiteralKind::integer, json.text));
  return value;
}

Result<Bytes> native_of_json(const DataType& type, const JsonValue& json) {
  const bool is_string = json.kind == Kind::string;
  switch (type.kind()) {
    case TypeKind::varchar:
      if (!is_string) return not_what("a UTF-8 string", json);
      return text_value(json.text);
    case TypeKind::ascii:
      if (!is_string) return not_what("an ascii string", json);
      return text_value(json.text);
    case TypeKind::blob: {
      if (!is_string) return not_what("a string representation of a blob value", json);
      if (!json.text.starts_with("0x")) {
        return unfit("String representation of blob is missing 0x prefix: {}", shown(json));
      }
      TRY(Bytes blob, parse_literal(type, LiteralKind::blob, json.text));
      return blob;
    }
    case TypeKind::boolean: {
      const bool is_word = json.text == "true" || json.text == "false";
      if (json.kind != Kind::boolean && !(is_string && is_word)) {
        return not_what("a boolean value", json);
      }
      return boolean_value(json.text == "true");
    }
    case TypeKind::uuid:
    case TypeKind::timeuuid: {
      if (!is_string) return not_what("a string representation of a uuid", json);
      TRY(Bytes uuid, parse_literal(type, LiteralKind::uuid, json.text));
      return uuid;
    }
    case TypeKind::timestamp:
      if (!is_string && json.kind != Kind::integer) {
        return not_what("a long or a datestring representation of a timestamp value", json);
      }
      return parse_literal(type, LiteralKind::string, json.text);
    case TypeKind::date:
    case TypeKind::time:
    case TypeKind::inet:
      if (!is_string) {
        return not_what(fmt::format("a string representation of a {} value", type.to_cql()), json);
      }
      return parse_literal(type, LiteralKind::string, json.text);
    case TypeKind::duration:
      if (!is_string) return not_what("a string representation of a duration", json);
      return parse_literal(type, LiteralKind::duration, json.text);
    default:
      return number_of_json(type, json);
  }
}

Result<Bytes> part_of_json(const DataType& type, const JsonValue& json, std::string_view of,
                           base::Pace* pace) {
  TRY(OptionalBytes part, from_json(type, json, pace));
  if (!part) return unfit("Invalid null {}", of);
  return *std::move(part);
}

Result<Bytes> array_of_json(const DataType& type, const JsonValue& json, base::Pace* pace) {
  const bool is_set = type.kind() == TypeKind::set;
  if (json.kind != Kind::array) {
    return not_what(is_set ? "a list (representing a set)" : "a list", json);
  }
  std::vector<Bytes> elements;
  for (const JsonValue& part : json.parts) {
    TRY(Bytes element,
        part_of_json(type.element(), part, is_set ? "element in set" : "element in list", pace));
    elements.push_back(std::move(element));
  }
  return compose_list(elements);
}

Result<Bytes> map_of_json(const DataType& type, const JsonValue& json, base::Pace* pace) {
  if (json.kind != Kind::object) return not_what("a map", json);
  base::Buffer out;
  base::Encoder encoder(out);
  encoder.u32_be(static_cast<std::uint32_t>(json.parts.size()));
  for (std::size_t i = 0; i < json.parts.size(); ++i) {
    JsonValue name;
    name.kind = Kind::string;
    name.text = json.names[i];
    TRY(const Bytes key, part_of_json(type.key(), name, "key in map", pace));
    TRY(const Bytes mapped, part_of_json(type.mapped(), json.parts[i], "value in map", pace));
    for (const ByteView part : {key.view(), mapped.view()}) {
      encoder.u32_be(static_cast<std::uint32_t>(part.size()));
      encoder.raw(part);
    }
  }
  return std::move(out).freeze();
}

Result<Bytes> tuple_of_json(const DataType& type, const JsonValue& json, base::Pace* pace) {
  if (json.kind != Kind::array) return not_what("a list representation of a tuple", json);
  const std::size_t count = type.parts().size();
  if (json.parts.size() != count) {
    return unfit("Tuple contains {} items (expected {}, got {})",
                 json.parts.size() > count ? "extra" : "missing", count, json.parts.size());
  }
  std::vector<OptionalBytes> parts(count);
  for (std::size_t i = 0; i < count; ++i) {
    TRY(parts[i], from_json(type.parts()[i], json.parts[i], pace));
  }
  return compose_tuple(parts);
}

Result<Bytes> vector_of_json(const DataType& type, const JsonValue& json, base::Pace* pace) {
  if (json.kind != Kind::array) return not_what("a list", json);
  if (json.parts.size() != type.dimension()) {
    return unfit("List had incorrect size: expected {} but given {}", type.dimension(),
                 json.parts.size());
  }
  std::vector<Bytes> elements;
  for (const JsonValue& part : json.parts) {
    TRY(Bytes element, part_of_json(type.element(), part, "element in list", pace));
    if (element.size() != kVectorElementSize) return not_what("a float value", part);
    elements.push_back(std::move(element));
  }
  return compose_vector(elements);
}

Result<Bytes> user_type_of_json(const DataType& type, const JsonValue& json, base::Pace* pace) {
  if (json.kind != Kind::object) return not_what("a map", json);
  std::vector<OptionalBytes> parts(type.parts().size());
  for (std::size_t i = 0; i < json.parts.size(); ++i) {
    const auto field = type.field_index(name_of_json(json.names[i]));
    if (!field) {
      return unfit("Unknown field(s) in value of user defined type {}: {}", type.name(),
                   json.names[i].substr(0, kJsonShownMax));
    }
    TRY(parts[*field], from_json(type.parts()[*field], json.parts[i], pace));
  }
  return compose_tuple(parts);
}

Result<Bytes> value_of_json(const DataType& type, const JsonValue& json, base::Pace* pace) {
  switch (type.kind()) {
    case TypeKind::list:
    case TypeKind::set:
      return array_of_json(type, json, pace);
    case TypeKind::map:
      return map_of_json(type, json, pace);
    case TypeKind::tuple:
      return tuple_of_json(type, json, pace);
    case TypeKind::udt:
      return user_type_of_json(type, json, pace);
    case TypeKind::vector:
      return vector_of_json(type, json, pace);
    default:
      return native_of_json(type, json);
  }
}

}  // namespace

Result<OptionalBytes> from_json(const DataType& type, const JsonValue& json, base::Pace* pace) {
  TRY_VOID(base::Pace::turn(pace));
  if (json.kind == Kind::null) return OptionalBytes();
  // Keys of maps that are composed are JSON within a string.
  if (!type.is_native() && json.kind == Kind::string) {
    TRY(const JsonValue inner, parse_json(json.text, pace));
    if (inner.kind == Kind::string) return not_what("JSON within a string", inner);
    return from_json(type, inner, pace);
  }
  TRY(const Bytes made, value_of_json(type, json, pace));
  TRY(Bytes sorted, normalise(type, made, pace));
  return OptionalBytes(std::move(sorted));
}

// ---- To JSON ----

namespace {

std::string json_of(const DataType& type, ByteView bytes);

std::string json_of_parts(const DataType& type, ByteView bytes) {
  std::string text = "[";
  for (const ByteView element : *split_collection(bytes)) {
    if (text.size() > 1) text += ", ";
    text += json_of(type.element(), element);
  }
  return text + "]";
}

std::string json_of_map(const DataType& type, ByteView bytes) {
  std::string text = "{";
  for (const auto& [key, mapped] : *split_map(bytes)) {
    if (text.size() > 1) text += ", ";
    const std::string name = json_of(type.key(), key);
    text += (name.starts_with('"') ? name : json_string(name)) + ": ";
    text += json_of(type.mapped(), mapped);
  }
  return text + "}";
}

std::string json_of_tuple(const DataType& type, ByteView bytes) {
  const bool named = type.kind() == TypeKind::udt;
  const auto parts = split_tuple(type.parts().size(), bytes);
  std::string text = named ? "{" : "[";
  for (std::size_t i = 0; i < parts->size(); ++i) {
    if (i > 0) text += ", ";
    if (named) text += json_name(type.field_names()[i]) + ": ";
    text += (*parts)[i] ? json_of(type.parts()[i], *(*parts)[i]) : "null";
  }
  return text + (named ? "}" : "]");
}

std::string json_of_vector(const DataType& type, ByteView bytes) {
  std::string text = "[";
  for (const ByteView element : split_vector(bytes)) {
    if (text.size() > 1) text += ", ";
    text += json_of(type.element(), element);
  }
  return text + "]";
}

std::string json_of_timestamp(ByteView bytes) {
  std::string text = timestamp_to_text(*read_bigint(bytes));
  if (const std::size_t at = text.find('T'); at != std::string::npos) text[at] = ' ';
  return json_string(text);
}

std::string json_of_native(const DataType& type, ByteView bytes) {
  if (type.is_text()) return json_string(base::as_text(bytes));
  if (bytes.empty() && type.kind() != TypeKind::blob) return "\"\"";
  std::string text = to_text(type, bytes);
  switch (type.kind()) {
    case TypeKind::timestamp:
      return json_of_timestamp(bytes);
    case TypeKind::float_:
    case TypeKind::double_:
      // JSON has no such numbers.
      return text.ends_with("NaN") || text.ends_with("Infinity") ? "null" : text;
    case TypeKind::boolean:
    case TypeKind::tinyint:
    case TypeKind::smallint:
    case TypeKind::int_:
    case TypeKind::bigint:
    case TypeKind::counter:
    case TypeKind::varint:
    case TypeKind::decimal:
      return text;
    default:
      break;
  }
  if (text.starts_with('\'')) text = text.substr(1, text.size() - 2);
  return json_string(text);
}

std::string json_of(const DataType& type, ByteView bytes) {
  switch (type.kind()) {
    case TypeKind::list:
    case TypeKind::set:
      return json_of_parts(type, bytes);
    case TypeKind::map:
      return json_of_map(type, bytes);
    case TypeKind::tuple:
    case TypeKind::udt:
      return json_of_tuple(type, bytes);
    case TypeKind::vector:
      return json_of_vector(type, bytes);
    default:
      return json_of_native(type, bytes);
  }
}

}  // namespace

std::string to_json(const DataType& type, ByteView bytes) {
  if (!validate(type, bytes)) return json_string("0x" + base::to_hex(bytes));
  return json_of(type, bytes);
}

}  // namespace helenus::model
