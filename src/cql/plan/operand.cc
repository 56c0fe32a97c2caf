#include "cql/plan/operand.h"

#include <algorithm>

#include "base/assert.h"
#include "base/uuid.h"
#include "cql/plan/functions.h"
#include "model/number.h"
#include "model/value.h"

namespace helenus::cql {

using model::DataType;
using model::TypeKind;

namespace {

// The first type that has room for it.
TypeKind type_of_integer(std::string_view text) {
  const auto value = model::varint_from_text(text);
  if (!value || value->size() > sizeof(std::int64_t)) return TypeKind::varint;
  return value->size() <= sizeof(std::int32_t) ? TypeKind::int_ : TypeKind::bigint;
}

// A double, unless that would lose digits.
TypeKind type_of_floating(std::string_view text) {
  const auto exact = model::decimal_from_text(text);
  const auto nearest = model::double_from_text(text);
  if (!exact || !nearest) return TypeKind::double_;
  const auto shown = model::decimal_from_text(model::float_to_text(*nearest));
  const bool same = shown && model::read_decimal(*shown) == model::read_decimal(*exact);
  return same ? TypeKind::double_ : TypeKind::decimal;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

TypeKind type_of_uuid(std::string_view text) {
  const auto uuid = base::Uuid::parse(text);
  return uuid && uuid->version() == 1 ? TypeKind::timeuuid : TypeKind::uuid;
}

}  // namespace

std::optional<DataType> natural_type(const parser::Literal& literal) {
  switch (literal.kind) {
    case parser::LiteralKind::string:
      return DataType::text();
    case parser::LiteralKind::integer:
      return DataType(type_of_integer(literal.text));
    case parser::LiteralKind::floating:
      return DataType(type_of_floating(literal.text));
    case parser::LiteralKind::boolean:
      return DataType(TypeKind::boolean);
    case parser::LiteralKind::duration:
      return DataType(TypeKind::duration);
    case parser::LiteralKind::uuid:
      return DataType(type_of_uuid(literal.text));
    case parser::LiteralKind::blob:
      return DataType(TypeKind::blob);
    case parser::LiteralKind::null:
      break;
  }
  return std::nullopt;
}

model::LiteralKind literal_kind(parser::LiteralKind kind) {
  switch (kind) {
    case parser::LiteralKind::string:
      return model::LiteralKind::string;
    case parser::LiteralKind::integer:
      return model::LiteralKind::integer;
    case parser::LiteralKind::floating:
      return model::LiteralKind::floating;
    case parser::LiteralKind::boolean:
      return model::LiteralKind::boolean;
    case parser::LiteralKind::duration:
      return model::LiteralKind::duration;
    case parser::LiteralKind::uuid:
      return model::LiteralKind::uuid;
    case parser::LiteralKind::blob:
      return model::LiteralKind::blob;
    case parser::LiteralKind::null:
      break;
  }
  UNREACHABLE("null is no constant of a type");
}

Operand::Operand(const DataType& type) {
  if (!type.is_native()) return;
  for (std::size_t number = 0; number < kKinds; ++number) {
    const auto kind = model::type_kind_from(static_cast<std::uint16_t>(number));
    if (!kind || !model::is_native(*kind)) continue;
    // A time is no number, though it may stand for one.
    const bool is_time = *kind == TypeKind::timestamp || type.kind() == TypeKind::timestamp;
    if (!is_time && is_assignable(DataType(*kind), type)) set(*kind, Fit::weak);
  }
  set(type.kind(), Fit::exact);
}

Operand::Operand(const parser::Literal& literal) {
  if (literal.kind == parser::LiteralKind::null) {
    *this = unknown(false);
    return;
  }
  for (std::size_t number = 0; number < kKinds; ++number) {
    const auto kind = model::type_kind_from(static_cast<std::uint16_t>(number));
    if (!kind || !model::is_native(*kind)) continue;
    if (model::accepts(DataType(*kind), literal_kind(literal.kind))) set(*kind, Fit::weak);
  }
  if (literal.kind == parser::LiteralKind::string) {
    set(is_ascii(literal.text) ? TypeKind::ascii : TypeKind::varchar, Fit::exact);
  } else {
    set(natural_type(literal)->kind(), Fit::exact);
  }
}

Operand Operand::unknown(bool is_marker) {
  Operand operand;
  operand.fits_.fill(Fit::weak);
  operand.is_marker_ = is_marker;
  return operand;
}

}  // namespace helenus::cql
