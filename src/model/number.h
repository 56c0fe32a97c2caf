// Numbers as texts and as bytes: varints and decimals of any size within kVarintBytesMax, without
// floating point; floats by their shortest digits.
//
// A varint is big-endian two's complement, shortest when no leading byte can be left out. A decimal
// is an i32 scale and a varint: varint / 10^scale.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace helenus::model {

// The most decimal digits in kVarintBytesMax bytes.
inline constexpr std::size_t kDigitsMax = 9864;

// The same number in its shortest form; borrows. Zero keeps one byte. Requires: not empty.
base::ByteView shortest_varint(base::ByteView varint);

// "-123". Requires: 1 to kVarintBytesMax bytes. Cost: quadratic in the size.
std::string varint_to_text(base::ByteView varint);
// An optional sign and digits; nothing if it is anything else or has no room.
std::optional<base::Bytes> varint_from_text(std::string_view text);

// Require: neither is empty.
std::strong_ordering compare_varints(base::ByteView a, base::ByteView b);

// What a decimal is worth: 0.digits * 10^exponent. `digits` has no zeros at either end; it is empty
// for zero, which has exponent 0 and no sign.
struct DecimalValue {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;
  friend bool operator==(const DecimalValue&, const DecimalValue&) = default;
};

// Requires: at least five bytes, at most 4 + kVarintBytesMax.
DecimalValue read_decimal(base::ByteView decimal);
// The decimal of that worth with no zeros behind its point, and written out before it: 100 has
// scale 0, unless there is no room for that. Nothing if scale or digits have no room at all.
std::optional<base::Bytes> make_decimal(const DecimalValue& value);

std::weak_ordering compare(const DecimalValue& a, const DecimalValue& b);

// As Java's BigDecimal prints it: plainly, 12.50, unless that would take very many zeros; then with
// an exponent, 1.250E+100000. Requires: as read_decimal().
std::string decimal_to_text(base::ByteView decimal);
// -12.50, .5, 1e-7; keeps the scale that is written. Nothing for other texts, or without room.
std::optional<base::Bytes> decimal_from_text(std::string_view text);

// The shortest digits that read back as the same number, laid out as Java does: 1.0, 1.0E10, NaN,
// -Infinity.
std::string float_to_text(double value);
std::string float_to_text(float value);
// Out of range is infinite or zero. Nothing for what is no number.
std::optional<double> double_from_text(std::string_view text);
std::optional<float> float_from_text(std::string_view text);

}  // namespace helenus::model
