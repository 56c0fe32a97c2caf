#include "cql/plan/numbers.h"

#include "model/value.h"

namespace helenus::cql {

using model::TypeKind;

bool is_integer(TypeKind kind) {
  return kind == TypeKind::tinyint || kind == TypeKind::smallint || kind == TypeKind::int_ ||
         kind == TypeKind::bigint || kind == TypeKind::counter;
}

bool is_floating(TypeKind kind) {
  return kind == TypeKind::float_ || kind == TypeKind::double_;
}

base::Result<std::int64_t> read_integer(TypeKind kind, base::ByteView bytes) {
  switch (kind) {
    case TypeKind::tinyint: {
      TRY(const std::int8_t value, model::read_tinyint(bytes));
      return value;
    }
    case TypeKind::smallint: {
      TRY(const std::int16_t value, model::read_smallint(bytes));
      return value;
    }
    case TypeKind::int_: {
      TRY(const std::int32_t value, model::read_int(bytes));
      return value;
    }
    default: {
      TRY(const std::int64_t value, model::read_bigint(bytes));
      return value;
    }
  }
}

base::Result<double> read_floating(TypeKind kind, base::ByteView bytes) {
  if (kind == TypeKind::float_) {
    TRY(const float value, model::read_float(bytes));
    return value;
  }
  TRY(const double value, model::read_double(bytes));
  return value;
}

base::Bytes integer_value(TypeKind kind, std::int64_t value) {
  switch (kind) {
    case TypeKind::tinyint:
      return model::tinyint_value(static_cast<std::int8_t>(value));
    case TypeKind::smallint:
      return model::smallint_value(static_cast<std::int16_t>(value));
    case TypeKind::int_:
      return model::int_value(static_cast<std::int32_t>(value));
    case TypeKind::varint:
      return model::varint_value(value);
    case TypeKind::float_:
      return model::float_value(static_cast<float>(value));
    case TypeKind::double_:
      return model::double_value(static_cast<double>(value));
    default:
      return model::bigint_value(value);
  }
}

base::Bytes floating_value(TypeKind kind, double value) {
  return kind == TypeKind::float_ ? model::float_value(static_cast<float>(value))
                                  : model::double_value(value);
}

}  // namespace helenus::cql
