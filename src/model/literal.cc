#include "model/literal.h"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>

#include "base/assert.h"
#include "base/codec.h"
#include "model/number.h"
#include "model/temporal.h"
#include "model/utf8.h"
#include "model/value.h"

namespace helenus::model {

using base::Buffer;
using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;

namespace {

// No more of a stranger's text comes back in an error.
constexpr std::size_t kTextShownMax = 64;
constexpr std::size_t kInet6Size = 16;

Error unable(std::string_view what, std::string_view text) {
  return Error(Errc::invalid_argument, "{} from '{}'", what, text.substr(0, kTextShownMax));
}

template <std::signed_integral T>
Result<T> parse_integer(std::string_view text, std::string_view what) {
  std::string_view digits = text;
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  T value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (problem != std::errc() || end != digits.data() + digits.size()) return unable(what, text);
  return value;
}

std::optional<unsigned> scan_number(std::string_view text, int base, std::size_t digits_max) {
  unsigned value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  const bool whole = problem == std::errc() && end == text.data() + text.size();
  return whole && text.size() <= digits_max ? std::optional(value) : std::nullopt;
}

// Calls `visit` with the parts between separators until it says no; says whether it never did.
template <class Visit>
bool every_part(std::string_view text, char separator, Visit visit) {
  while (true) {
    const std::size_t end = text.find(separator);
    const bool last = end == std::string_view::npos;
    if (!visit(text.substr(0, end), last)) return false;
    if (last) return true;
    text.remove_prefix(end + 1);
  }
}

// 1.2.3.4
std::optional<Bytes> parse_inet4(std::string_view text) {
  Buffer address;
  const bool good = every_part(text, '.', [&](std::string_view part, bool) {
    const auto number = scan_number(part, 10, 3);
    if (!number || *number > 0xff || address.size() == 4) return false;
    address.push_back(std::byte(*number));
    return true;
  });
  if (!good || address.size() != 4) return std::nullopt;
  return std::move(address).freeze();
}

// The groups on one side of "::", of which the last may be an address of version 4.
bool scan_groups(std::string_view text, bool ends_address, Buffer& out) {
  if (text.empty()) return true;
  return every_part(text, ':', [&](std::string_view part, bool last) {
    if (out.size() > kInet6Size) return false;
    if (last && ends_address && part.contains('.')) {
      const auto tail = parse_inet4(part);
      if (tail) out.append(tail->view());
      return tail.has_value();
    }
    const auto group = scan_number(part, 16, 4);
    if (group) base::Encoder(out).u16_be(static_cast<std::uint16_t>(*group));
    return group.has_value();
  });
}

// 2001:db8::1, ::ffff:1.2.3.4; the latter are addresses of version 4.
std::optional<Bytes> parse_inet6(std::string_view text) {
  const std::size_t gap = text.find("::");
  const bool has_gap = gap != std::string_view::npos;
  Buffer head;
  Buffer tail;
  if (!scan_groups(text.substr(0, gap), !has_gap, head)) return std::nullopt;
  if (has_gap && !scan_groups(text.substr(gap + 2), true, tail)) return std::nullopt;
  const std::size_t size = head.size() + tail.size();
  if (has_gap ? size > kInet6Size - 2 : size != kInet6Size) return std::nullopt;
  for (std::size_t count = size; count < kInet6Size; ++count) head.push_back(std::byte{0});
  head.append(tail.view());
  constexpr std::string_view kMapped("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
  Bytes address = std::move(head).freeze();
  return address.text().starts_with(kMapped) ? address.slice(kMapped.size()) : address;
}

Result<Bytes> parse_inet(std::string_view text) {
  const auto address = text.contains(':') ? parse_inet6(text) : parse_inet4(text);
  if (!address) return unable("Unable to make inet address", text);
  return *address;
}

Result<Bytes> parse_uuid(std::string_view text, bool time_based) {
  const auto uuid = base::Uuid::parse(text);
  if (!uuid) {
    const std::string_view shown = text.substr(0, kTextShownMax);
    if (!time_based) return unable("Unable to make UUID", shown);
    return Error(Errc::invalid_argument, "Unknown timeuuid representation: {}", shown);
  }
  if (time_based && uuid->version() != 1) {
    return Error(Errc::invalid_argument, "TimeUUID supports only version 1 UUIDs");
  }
  return uuid_value(*uuid);
}

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

Result<Bytes> parse_hex(std::string_view text) {
  const auto bad = [&] {
    return Error(Errc::invalid_argument, "cannot parse '{}' as hex bytes",
                 text.substr(0, kTextShownMax));
  };
  std::string_view digits = text;
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  if (digits.size() % 2 != 0) return bad();
  Buffer out(digits.size() / 2);
  for (std::size_t index = 0; index < digits.size(); index += 2) {
    const int high = hex_value(digits[index]);
    const int low = hex_value(digits[index + 1]);
    if (high < 0 || low < 0) return bad();
    out.push_back(std::byte(high << 4 | low));
  }
  return std::move(out).freeze();
}

Result<Bytes> parse_boolean(std::string_view text) {
  const auto is = [&](std::string_view word) {
    return std::ranges::equal(text, word, [](char a, char b) { return (a | 0x20) == b; });
  };
  if (is("true")) return boolean_value(true);
  if (is("false")) return boolean_value(false);
  return unable("Unable to make boolean", text);
}

Result<Bytes> parse_text(TypeKind kind, std::string_view text) {
  const ByteView bytes = base::as_bytes(text);
  if (kind == TypeKind::ascii && !is_ascii(bytes)) {
    return Error(Errc::invalid_argument, "Invalid ASCII character in string literal");
  }
  if (!is_utf8(bytes)) return Error(Errc::invalid_argument, "String didn't validate.");
  return Bytes::copy_of(text);
}

Result<Bytes> parse_number(TypeKind kind, std::string_view text) {
  switch (kind) {
    case TypeKind::tinyint: {
      TRY(const auto value, parse_integer<std::int8_t>(text, "Unable to make byte"));
      return tinyint_value(value);
    }
    case TypeKind::smallint: {
      TRY(const auto value, parse_integer<std::int16_t>(text, "Unable to make short"));
      return smallint_value(value);
    }
    case TypeKind::int_: {
      TRY(const auto value, parse_integer<std::int32_t>(text, "Unable to make int"));
      return int_value(value);
    }
    case TypeKind::bigint:
    case TypeKind::counter: {
      TRY(const auto value, parse_integer<std::int64_t>(text, "Unable to make long"));
      return bigint_value(value);
    }
    case TypeKind::float_:
      if (const auto value = float_from_text(text)) return float_value(*value);
      return unable("Unable to make float", text);
    case TypeKind::double_:
      if (const auto value = double_from_text(text)) return double_value(*value);
      return unable("Unable to make double", text);
    case TypeKind::varint:
      if (const auto value = varint_from_text(text)) return *value;
      return unable("unable to make int", text);
    case TypeKind::decimal:
      if (const auto value = decimal_from_text(text)) return *value;
      return unable("unable to make BigDecimal", text);
    default:
      UNREACHABLE("type {}", static_cast<unsigned>(kind));
  }
}

Result<Bytes> parse_temporal(TypeKind kind, std::string_view text) {
  switch (kind) {
    case TypeKind::timestamp: {
      TRY(const auto milliseconds, parse_timestamp_ms(text));
      return bigint_value(milliseconds);
    }
    case TypeKind::date: {
      TRY(const auto date, parse_date(text));
      return int_value(static_cast<std::int32_t>(date));
    }
    case TypeKind::time: {
      TRY(const auto nanoseconds, parse_time_ns(text));
      return bigint_value(nanoseconds);
    }
    case TypeKind::duration: {
      TRY(const auto duration, parse_duration(text));
      return duration_value(duration);
    }
    default:
      UNREACHABLE("type {}", static_cast<unsigned>(kind));
  }
}

bool is_number(TypeKind kind) {
  switch (kind) {
    case TypeKind::tinyint:
    case TypeKind::smallint:
    case TypeKind::int_:
    case TypeKind::bigint:
    case TypeKind::counter:
    case TypeKind::float_:
    case TypeKind::double_:
    case TypeKind::varint:
    case TypeKind::decimal:
      return true;
    default:
      return false;
  }
}

bool is_temporal(TypeKind kind) {
  return kind == TypeKind::timestamp || kind == TypeKind::date || kind == TypeKind::time ||
         kind == TypeKind::duration;
}

}  // namespace

std::string_view name_of(LiteralKind kind) {
  switch (kind) {
    case LiteralKind::integer:
      return "INTEGER";
    case LiteralKind::floating:
      return "FLOAT";
    case LiteralKind::string:
      return "STRING";
    case LiteralKind::boolean:
      return "BOOLEAN";
    case LiteralKind::uuid:
      return "UUID";
    case LiteralKind::blob:
      return "HEX";
    case LiteralKind::duration:
      return "DURATION";
  }
  UNREACHABLE("literal {}", static_cast<unsigned>(kind));
}

bool accepts(const DataType& type, LiteralKind kind) {
  const TypeKind wanted = type.kind();
  switch (kind) {
    case LiteralKind::integer:
      return is_number(wanted) || is_temporal(wanted);
    case LiteralKind::floating:
      return wanted == TypeKind::decimal || wanted == TypeKind::double_ ||
             wanted == TypeKind::float_;
    case LiteralKind::string:
      return type.is_text() || wanted == TypeKind::inet ||
             (is_temporal(wanted) && wanted != TypeKind::duration);
    case LiteralKind::boolean:
      return wanted == TypeKind::boolean;
    case LiteralKind::uuid:
      return wanted == TypeKind::uuid || wanted == TypeKind::timeuuid;
    case LiteralKind::blob:
      return wanted == TypeKind::blob;
    case LiteralKind::duration:
      return wanted == TypeKind::duration;
  }
  UNREACHABLE("literal {}", static_cast<unsigned>(kind));
}

Result<Bytes> parse_literal(const DataType& type, LiteralKind kind, std::string_view text) {
  ASSERT(accepts(type, kind), "a {} for {}", name_of(kind), type.to_cql());
  const TypeKind wanted = type.kind();
  if (is_number(wanted)) return parse_number(wanted, text);
  if (is_temporal(wanted)) return parse_temporal(wanted, text);
  switch (wanted) {
    case TypeKind::ascii:
    case TypeKind::varchar:
      return parse_text(wanted, text);
    case TypeKind::inet:
      return parse_inet(text);
    case TypeKind::boolean:
      return parse_boolean(text);
    case TypeKind::uuid:
      return parse_uuid(text, false);
    case TypeKind::timeuuid:
      return parse_uuid(text, true);
    case TypeKind::blob:
      return parse_hex(text);
    default:
      UNREACHABLE("type {}", static_cast<unsigned>(wanted));
  }
}

}  // namespace helenus::model
