// Arithmetic on varints and decimals, exact as far as their limits go. The only place that knows
// the library for big numbers.
//
// Operands and results are values as value.h has them. Scales and roundings are those of Java's
// BigDecimal, as Cassandra uses it: a sum has the larger scale, a product the sum of both; a
// quotient has at least 32 significant digits and up to 1000 behind its point, rounded half up,
// without zeros at its end.
//
// Require, all: operands that are not empty, validate, and have at most kVarintBytesMax bytes of
// digits. Errors, all: invalid_argument for a division by zero, and for a result, or a common scale
// on the way to it, of more than kDigitsMax digits. Cost: quadratic in the digits at worst.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"

namespace helenus::model {

enum class NumberOperation : std::uint8_t { add, subtract, multiply, divide, remainder };

// A quotient is cut towards zero, a remainder has the sign of `a`.
base::Result<base::Bytes> calculate_varint(NumberOperation operation, base::ByteView a,
                                           base::ByteView b);
base::Result<base::Bytes> negate_varint(base::ByteView a);

base::Result<base::Bytes> calculate_decimal(NumberOperation operation, base::ByteView a,
                                            base::ByteView b);
base::Result<base::Bytes> negate_decimal(base::ByteView a);
// To a whole number, half away from zero.
base::Result<base::Bytes> round_decimal(base::ByteView a);
// The mean of `count` decimals, the last of which is `next`, where `mean` is that of those before:
// rounded half to even at the larger scale of both. Requires: count > 0.
base::Result<base::Bytes> next_mean(base::ByteView mean, base::ByteView next, std::uint64_t count);

// To as many significant digits as `a` has, 32 at least. Errors also: a logarithm of zero or less,
// more than two hundred digits of `a`, and an exponent that leaves no decimal.
enum class Transcendental : std::uint8_t { exp, ln, log10 };
base::Result<base::Bytes> calculate_decimal(Transcendental function, base::ByteView a);

base::Bytes varint_to_decimal(base::ByteView varint);
// Cut towards zero.
base::Result<base::Bytes> decimal_to_varint(base::ByteView decimal);

}  // namespace helenus::model
