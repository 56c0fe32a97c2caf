#include "cql/plan/numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/big_number.h"
#include "model/number.h"
#include "model/value.h"

namespace helenus::cql {

using model::TypeKind;

bool is_number(TypeKind kind) {
  return is_integer(kind) || is_floating(kind) || kind == TypeKind::varint ||
         kind == TypeKind::decimal;
}

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

namespace {

// As Java converts a double: the nearest value there is, and 0 for NaN.
template <class Integer>
Integer truncated(double value) {
  if (std::isnan(value)) return 0;
  constexpr auto kMax = std::numeric_limits<Integer>::max();
  constexpr auto kMin = std::numeric_limits<Integer>::min();
  if (value >= -static_cast<double>(kMin)) return kMax;
  if (value <= static_cast<double>(kMin)) return kMin;
  return static_cast<Integer>(value);
}

// The lowest 64 bits of two's complement.
std::int64_t lowest_bits(base::ByteView varint) {
  std::uint64_t bits = 0;
  if (!varint.empty() && (varint.front() & std::byte{0x80}) != std::byte{}) bits = ~bits;
  const std::size_t count = std::min(varint.size(), sizeof bits);
  for (const std::byte byte : varint.last(count)) {
    bits = bits << 8 | std::to_integer<std::uint64_t>(byte);
  }
  return static_cast<std::int64_t>(bits);
}

base::Result<Number> read_decimal_number(base::ByteView bytes) {
  Number number;
  number.floating = model::double_from_text(model::decimal_to_text(bytes)).value_or(0);
  model::DecimalValue value = model::read_decimal(bytes);
  // What has more zeros than this behind it has 64 bits of zeros, too.
  constexpr std::int64_t kDigits = static_cast<std::int64_t>(model::kDigitsMax);
  if (value.exponent <= 0 || value.exponent > kDigits) return number;
  value.digits.resize(static_cast<std::size_t>(value.exponent), '0');
  const auto whole = model::varint_from_text((value.negative ? "-" : "") + value.digits);
  if (whole) number.integer = lowest_bits(*whole);
  return number;
}

}  // namespace

base::Result<Number> read_number(TypeKind kind, base::ByteView bytes) {
  Number number;
  if (is_floating(kind)) {
    TRY(number.floating, read_floating(kind, bytes));
    number.integer = truncated<std::int64_t>(number.floating);
    number.is_floating = true;
    return number;
  }
  if (is_integer(kind)) {
    TRY(number.integer, read_integer(kind, bytes));
    number.floating = static_cast<double>(number.integer);
    return number;
  }
  if (bytes.empty())
    return base::Error(base::Errc::invalid_argument, "an empty value is no number");
  if (kind == TypeKind::decimal) return read_decimal_number(bytes);
  number.integer = lowest_bits(bytes);
  number.floating = model::double_from_text(model::varint_to_text(bytes)).value_or(0);
  return number;
}

base::Result<base::Bytes> number_value(TypeKind kind, const Number& number) {
  if (is_floating(kind)) return floating_value(kind, number.floating);
  if (kind == TypeKind::decimal) {
    auto decimal = model::decimal_from_text(model::float_to_text(number.floating));
    if (decimal) return *std::move(decimal);
    return base::Error(base::Errc::invalid_argument, "{} cannot be made a decimal",
                       model::float_to_text(number.floating));
  }
  const bool is_wide =
      kind == TypeKind::bigint || kind == TypeKind::counter || kind == TypeKind::varint;
  return integer_value(kind, number.is_floating && !is_wide
                                 ? truncated<std::int32_t>(number.floating)
                                 : number.integer);
}

base::Result<base::Bytes> exact_number(TypeKind wanted, TypeKind kind, const base::Bytes& bytes) {
  if (kind == wanted) return bytes;
  if (bytes.empty()) {
    return base::Error(base::Errc::invalid_argument, "an empty value is no number");
  }
  if (wanted == TypeKind::decimal && kind == TypeKind::varint) {
    return model::varint_to_decimal(bytes);
  }
  TRY(const Number number, read_number(kind, bytes));
  if (wanted == TypeKind::varint) return model::varint_value(number.integer);
  if (std::isnan(number.floating)) {
    return base::Error(base::Errc::invalid_argument, "A NaN cannot be converted into a decimal");
  }
  if (std::isinf(number.floating)) {
    return base::Error(base::Errc::invalid_argument,
                       "An infinite number cannot be converted into a decimal");
  }
  return number_value(TypeKind::decimal, number);
}

base::Bytes floating_value(TypeKind kind, double value) {
  return kind == TypeKind::float_ ? model::float_value(static_cast<float>(value))
                                  : model::double_value(value);
}

}  // namespace helenus::cql
