#include "model/number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>
#include <ranges>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/codec.h"
#include "model/value.h"

namespace helenus::model {

using base::Buffer;
using base::Bytes;
using base::ByteView;

namespace {

constexpr std::uint32_t kChunk = 1'000'000'000;  // nine decimal digits, the most in 32 bits
constexpr std::size_t kChunkDigits = 9;
constexpr std::int64_t kScaleMin = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kScaleMax = std::numeric_limits<std::int32_t>::max();
// Written with digits on both sides of the point, an exponent may be a little off the scale.
constexpr std::int64_t kExponentMin = 2 * kScaleMin;
constexpr std::int64_t kExponentMax = 2 * kScaleMax;

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}
bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

bool is_negative(ByteView varint) {
  return (varint[0] & std::byte{0x80}) != std::byte{0};
}

// An unsigned number, least word first, no zero words at the end.
using Words = std::vector<std::uint32_t>;

Words magnitude(ByteView varint) {
  const bool negative = is_negative(varint);
  Words words((varint.size() + 3) / 4, 0);
  for (std::size_t index = 0; index < varint.size(); ++index) {
    const std::byte byte = varint[varint.size() - 1 - index];
    const auto value = std::to_integer<std::uint32_t>(negative ? ~byte : byte);
    words[index / 4] |= value << (8 * (index % 4));
  }
  for (std::size_t index = 0; negative && index < words.size(); ++index) {
    if (++words[index] != 0) break;
  }
  while (!words.empty() && words.back() == 0) words.pop_back();
  return words;
}

Bytes to_varint(bool negative, const Words& words) {
  Buffer out(words.size() * 4 + 1);
  out.push_back(std::byte{0});  // room for the sign
  for (const std::uint32_t word : words | std::views::reverse) base::Encoder(out).u32_be(word);
  if (negative) {
    for (std::byte& byte : out.mutable_view()) byte = ~byte;
    for (std::size_t index = out.size(); index-- > 0;) {
      std::byte& byte = out.mutable_view()[index];
      byte = std::byte(std::to_integer<unsigned>(byte) + 1);
      if (byte != std::byte{0}) break;
    }
  }
  return Bytes::copy_of(shortest_varint(out.view()));
}

std::string to_digits(Words words) {
  std::vector<std::uint32_t> chunks;
  while (!words.empty()) {
    std::uint64_t rest = 0;
    for (std::uint32_t& word : words | std::views::reverse) {
      rest = (rest << 32) | word;
      word = static_cast<std::uint32_t>(rest / kChunk);
      rest %= kChunk;
    }
    chunks.push_back(static_cast<std::uint32_t>(rest));
    while (!words.empty() && words.back() == 0) words.pop_back();
  }
  if (chunks.empty()) return "0";
  std::string digits = fmt::format("{}", chunks.back());
  for (std::size_t index = chunks.size() - 1; index-- > 0;) {
    digits += fmt::format("{:09}", chunks[index]);
  }
  return digits;
}

// Requires: digits only.
Words from_digits(std::string_view digits) {
  Words words;
  while (!digits.empty()) {
    const std::size_t count = (digits.size() - 1) % kChunkDigits + 1;
    std::uint64_t carry = 0;
    std::from_chars(digits.data(), digits.data() + count, carry);
    for (std::uint32_t& word : words) {
      carry += std::uint64_t{word} * kChunk;
      word = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) words.push_back(static_cast<std::uint32_t>(carry));
    digits.remove_prefix(count);
  }
  return words;
}

std::int64_t scale_of(ByteView decimal) {
  return static_cast<std::int32_t>(base::load_be<std::uint32_t>(decimal.data()));
}

std::optional<Bytes> to_bounded_varint(bool negative, std::string_view digits) {
  if (digits.size() > kDigitsMax) return std::nullopt;
  Bytes varint = to_varint(negative, from_digits(digits));
  if (varint.size() > kVarintBytesMax) return std::nullopt;
  return varint;
}

std::optional<Bytes> to_decimal(bool negative, std::string_view digits, std::int64_t scale) {
  if (scale < kScaleMin || scale > kScaleMax) return std::nullopt;
  const auto varint = to_bounded_varint(negative, digits);
  if (!varint) return std::nullopt;
  Buffer out;
  base::Encoder(out).u32_be(static_cast<std::uint32_t>(static_cast<std::int32_t>(scale)));
  out.append(varint->view());
  return std::move(out).freeze();
}

// A decimal number as it is written.
struct WrittenNumber {
  bool negative = false;
  std::string digits;
  std::int64_t scale = 0;
};

std::optional<WrittenNumber> read_written(std::string_view text) {
  WrittenNumber number;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    number.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  std::int64_t exponent = 0;
  if (const std::size_t mark = text.find_first_of("eE"); mark != std::string_view::npos) {
    std::string_view written = text.substr(mark + 1);
    text = text.substr(0, mark);
    if (written.starts_with('+')) {
      written.remove_prefix(1);
      if (written.starts_with('-')) return std::nullopt;
    }
    const auto [end, problem] =
        std::from_chars(written.data(), written.data() + written.size(), exponent);
    if (problem != std::errc() || end != written.data() + written.size()) return std::nullopt;
    if (exponent < kExponentMin || exponent > kExponentMax) return std::nullopt;
  }
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view part =
      point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  number.digits.reserve(text.size());
  number.digits.append(whole).append(part);
  if (!all_digits(number.digits)) return std::nullopt;
  number.scale = static_cast<std::int64_t>(part.size()) - exponent;
  return number;
}

template <std::floating_point Float>
std::string java_text(Float value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  std::array<char, 64> room{};
  const auto [end, problem] =
      std::to_chars(room.data(), room.data() + room.size(), value, std::chars_format::scientific);
  ASSERT(problem == std::errc());
  // -d.ddde-xx: the digits and where the point is.
  std::string_view text(room.data(), static_cast<std::size_t>(end - room.data()));
  std::string sign;
  if (text.starts_with('-')) {
    sign = "-";
    text.remove_prefix(1);
  }
  const std::size_t mark = text.find('e');
  std::string digits(text.substr(0, 1));
  if (mark > 2) digits += text.substr(2, mark - 2);
  std::string_view written = text.substr(mark + 1);
  if (written.starts_with('+')) written.remove_prefix(1);
  int exponent = 0;
  std::from_chars(written.data(), written.data() + written.size(), exponent);

  if (value == 0) return sign + "0.0";
  constexpr int kPlainMin = -3;
  constexpr int kPlainMax = 7;
  if (exponent < kPlainMin || exponent >= kPlainMax) {
    const std::string rest = digits.size() > 1 ? digits.substr(1) : "0";
    return fmt::format("{}{}.{}E{}", sign, digits[0], rest, exponent);
  }
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) digits.append(whole + 1 - digits.size(), '0');
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

template <std::floating_point Float>
std::optional<Float> parse_float(std::string_view text) {
  constexpr Float kInfinity = std::numeric_limits<Float>::infinity();
  if (text == "NaN" || text == "-NaN") return std::numeric_limits<Float>::quiet_NaN();
  if (text == "Infinity") return kInfinity;
  if (text == "-Infinity") return -kInfinity;
  const auto number = read_written(text);
  if (!number) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  Float value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc::result_out_of_range) {
    const auto size = static_cast<std::int64_t>(number->digits.size());
    const Float limit = size > number->scale ? kInfinity : Float{0};
    return number->negative ? -limit : limit;
  }
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

ByteView shortest_varint(ByteView varint) {
  ASSERT(!varint.empty());
  const std::byte sign = is_negative(varint) ? std::byte{0xff} : std::byte{0};
  std::size_t spare = 0;
  while (spare + 1 < varint.size() && varint[spare] == sign &&
         ((varint[spare + 1] ^ sign) & std::byte{0x80}) == std::byte{0}) {
    ++spare;
  }
  return varint.subspan(spare);
}

std::string varint_to_text(ByteView varint) {
  ASSERT(!varint.empty() && varint.size() <= kVarintBytesMax);
  return (is_negative(varint) ? "-" : "") + to_digits(magnitude(varint));
}

std::optional<Bytes> varint_from_text(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (!all_digits(text)) return std::nullopt;
  return to_bounded_varint(negative, text);
}

std::strong_ordering compare_varints(ByteView a, ByteView b) {
  a = shortest_varint(a);
  b = shortest_varint(b);
  const bool negative = is_negative(a);
  if (negative != is_negative(b)) return is_negative(b) <=> negative;
  if (a.size() != b.size()) return negative ? b.size() <=> a.size() : a.size() <=> b.size();
  return base::compare(a, b);
}

DecimalValue read_decimal(ByteView decimal) {
  const ByteView unscaled = decimal.subspan(4);
  ASSERT(!unscaled.empty() && unscaled.size() <= kVarintBytesMax);
  DecimalValue value{.negative = is_negative(unscaled), .digits = to_digits(magnitude(unscaled))};
  if (value.digits == "0") return {};
  value.exponent = static_cast<std::int64_t>(value.digits.size()) - scale_of(decimal);
  value.digits.erase(value.digits.find_last_not_of('0') + 1);
  return value;
}

std::optional<Bytes> make_decimal(const DecimalValue& value) {
  if (value.digits.empty()) return to_decimal(false, "0", 0);
  if (!all_digits(value.digits)) return std::nullopt;
  if (value.exponent < kExponentMin || value.exponent > kExponentMax) return std::nullopt;
  const std::int64_t scale = static_cast<std::int64_t>(value.digits.size()) - value.exponent;
  if (scale < 0 && value.exponent <= static_cast<std::int64_t>(kDigitsMax)) {
    const std::string digits = value.digits + std::string(static_cast<std::size_t>(-scale), '0');
    if (auto whole = to_decimal(value.negative, digits, 0)) return whole;
  }
  // The largest numbers need zeros where the scale ends.
  const std::int64_t zeros = std::max<std::int64_t>(kScaleMin - scale, 0);
  if (zeros > static_cast<std::int64_t>(kDigitsMax)) return std::nullopt;
  const std::string digits = value.digits + std::string(static_cast<std::size_t>(zeros), '0');
  return to_decimal(value.negative, digits, scale + zeros);
}

std::weak_ordering compare(const DecimalValue& a, const DecimalValue& b) {
  const auto sign = [](const DecimalValue& value) {
    return value.digits.empty() ? 0 : value.negative ? -1 : 1;
  };
  if (sign(a) != sign(b)) return sign(a) <=> sign(b);
  const DecimalValue& less = a.negative ? b : a;
  const DecimalValue& more = a.negative ? a : b;
  if (less.exponent != more.exponent) return less.exponent <=> more.exponent;
  return less.digits <=> more.digits;
}

std::string decimal_to_text(ByteView decimal) {
  const std::int64_t scale = scale_of(decimal);
  const ByteView unscaled = decimal.subspan(4);
  ASSERT(!unscaled.empty() && unscaled.size() <= kVarintBytesMax);
  const std::string sign = is_negative(unscaled) ? "-" : "";
  std::string digits = to_digits(magnitude(unscaled));
  const auto size = static_cast<std::int64_t>(digits.size());
  const auto zeros_max = static_cast<std::int64_t>(kDigitsMax);
  if (scale == 0) return sign + digits;
  if (scale < 0 && -scale <= zeros_max) {
    if (digits == "0") return digits;
    return sign + digits + std::string(static_cast<std::size_t>(-scale), '0');
  }
  if (scale > 0 && scale - size <= zeros_max) {
    if (scale >= size) digits.insert(0, static_cast<std::size_t>(scale - size) + 1, '0');
    digits.insert(digits.size() - static_cast<std::size_t>(scale), 1, '.');
    return sign + digits;
  }
  if (digits.size() > 1) digits.insert(1, 1, '.');
  return fmt::format("{}{}E{:+}", sign, digits, size - 1 - scale);
}

std::optional<Bytes> decimal_from_text(std::string_view text) {
  const auto number = read_written(text);
  if (!number) return std::nullopt;
  return to_decimal(number->negative, number->digits, number->scale);
}

std::string float_to_text(double value) {
  return java_text(value);
}
std::string float_to_text(float value) {
  return java_text(value);
}
std::optional<double> double_from_text(std::string_view text) {
  return parse_float<double>(text);
}
std::optional<float> float_from_text(std::string_view text) {
  return parse_float<float>(text);
}

}  // namespace helenus::model
