#include "keyvalue/value_text.h"

#include <cmath>
#include <optional>

#include "base/assert.h"
#include "model/literal.h"
#include "model/value.h"

namespace helenus::keyvalue {

using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using model::DataType;
using model::LiteralKind;
using model::TypeKind;

namespace {

// What a literal of the type is written as.
std::optional<LiteralKind> literal_of(TypeKind kind) {
  switch (kind) {
    case TypeKind::ascii:
    case TypeKind::varchar:
    case TypeKind::timestamp:
    case TypeKind::date:
    case TypeKind::time:
    case TypeKind::inet:
      return LiteralKind::string;
    case TypeKind::tinyint:
    case TypeKind::smallint:
    case TypeKind::int_:
    case TypeKind::bigint:
    case TypeKind::varint:
      return LiteralKind::integer;
    case TypeKind::decimal:
    case TypeKind::double_:
    case TypeKind::float_:
      return LiteralKind::floating;
    case TypeKind::boolean:
      return LiteralKind::boolean;
    case TypeKind::uuid:
    case TypeKind::timeuuid:
      return LiteralKind::uuid;
    case TypeKind::blob:
      return LiteralKind::blob;
    case TypeKind::duration:
      return LiteralKind::duration;
    default:
      return std::nullopt;
  }
}

std::optional<Json> number_of(TypeKind kind, ByteView value) {
  switch (kind) {
    case TypeKind::tinyint:
      if (const auto number = model::read_tinyint(value)) return Json(*number);
      return std::nullopt;
    case TypeKind::smallint:
      if (const auto number = model::read_smallint(value)) return Json(*number);
      return std::nullopt;
    case TypeKind::int_:
      if (const auto number = model::read_int(value)) return Json(*number);
      return std::nullopt;
    case TypeKind::bigint:
      if (const auto number = model::read_bigint(value)) return Json(*number);
      return std::nullopt;
    case TypeKind::float_:
      if (const auto number = model::read_float(value); number && std::isfinite(*number)) {
        return Json(*number);
      }
      return std::nullopt;
    case TypeKind::double_:
      if (const auto number = model::read_double(value); number && std::isfinite(*number)) {
        return Json(*number);
      }
      return std::nullopt;
    case TypeKind::boolean:
      if (const auto truth = model::read_boolean(value)) return Json(*truth);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// As CQL writes it, without the quotes of a literal.
std::string plain_text(const DataType& type, ByteView value) {
  if (type.is_text()) return std::string(base::as_text(value));
  std::string text = model::to_text(type, value);
  if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'') {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

// Whether nothing nests in what nests: deep trees are no values, and cost more than their bytes.
bool is_flat(std::string_view json) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > 1) return false;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return true;
}

}  // namespace

bool has_text(const DataType& type) {
  return type.is_native() && literal_of(type.kind()).has_value();
}

Result<Bytes> value_of_text(const DataType& type, std::string_view text) {
  const auto kind = literal_of(type.kind());
  ASSERT(type.is_native() && kind);
  if (type.kind() == TypeKind::blob && !text.starts_with("0x")) {
    return Error(Errc::invalid_argument, "a blob is written as in 0xcafe");
  }
  return model::parse_literal(type, *kind, text);
}

Result<Bytes> value_of_body(const DataType& type, const Bytes& body) {
  if (type.kind() == TypeKind::blob) return body;
  return value_of_text(type, body.text());
}

Result<Bytes> value_of_json(const DataType& type, const Json& json) {
  if (json.is_string()) return value_of_text(type, json.get_ref<const std::string&>());
  const TypeKind kind = type.kind();
  const auto literal = literal_of(kind);
  ASSERT(type.is_native() && literal);
  const bool is_number = *literal == LiteralKind::integer || *literal == LiteralKind::floating;
  // A decimal's digits would go through a double.
  const bool is_exact =
      json.is_number_integer() || kind == TypeKind::float_ || kind == TypeKind::double_;
  if (json.is_number() && is_number && is_exact) return value_of_text(type, json.dump());
  if (json.is_boolean() && kind == TypeKind::boolean) {
    return model::boolean_value(json.get<bool>());
  }
  return Error(Errc::invalid_argument, "a {} of JSON is no {}", json.type_name(), type.to_cql());
}

Json json_of_value(const DataType& type, ByteView value) {
  if (auto number = number_of(type.kind(), value)) return *std::move(number);
  return plain_text(type, value);
}

std::string body_of_value(const DataType& type, ByteView value) {
  if (type.kind() == TypeKind::blob) return std::string(base::as_text(value));
  return plain_text(type, value);
}

Result<Json> parse_flat_json(std::string_view text) {
  if (!is_flat(text)) return Error(Errc::invalid_argument, "JSON that nests too deeply");
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Error(Errc::invalid_argument, "the body is not JSON");
  return json;
}

std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace helenus::keyvalue
