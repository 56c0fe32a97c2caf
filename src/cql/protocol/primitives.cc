#include "cql/protocol/primitives.h"

#include <algorithm>
#include <limits>

#include "model/utf8.h"

namespace helenus::cql::protocol {

using base::ByteView;
using base::Decoder;
using base::Encoder;

namespace {

constexpr std::int32_t kNull = -1;
constexpr std::int32_t kUnset = -2;

std::int32_t get_int(Decoder& in) {
  return static_cast<std::int32_t>(in.u32_be());
}

void put_int(Encoder& out, std::int32_t value) {
  out.u32_be(static_cast<std::uint32_t>(value));
}

void put_short_size(Encoder& out, std::size_t size) {
  ASSERT(size <= kShortSizeMax, "{} does not fit a [short]", size);
  out.u16_be(static_cast<std::uint16_t>(size));
}

void put_int_size(Encoder& out, std::size_t size) {
  ASSERT(size <= std::numeric_limits<std::int32_t>::max(), "{} does not fit an [int]", size);
  out.u32_be(static_cast<std::uint32_t>(size));
}

std::string_view text_of(Decoder& in, ByteView bytes) {
  if (model::is_utf8(bytes)) return base::as_text(bytes);
  in.fail("a string is not UTF-8");
  return {};
}

}  // namespace

bool is_error_code(std::int32_t code) {
  switch (static_cast<ErrorCode>(code)) {
    case ErrorCode::server_error:
    case ErrorCode::protocol_error:
    case ErrorCode::bad_credentials:
    case ErrorCode::unavailable:
    case ErrorCode::overloaded:
    case ErrorCode::bootstrapping:
    case ErrorCode::truncate_error:
    case ErrorCode::write_timeout:
    case ErrorCode::read_timeout:
    case ErrorCode::read_failure:
    case ErrorCode::function_failure:
    case ErrorCode::write_failure:
    case ErrorCode::cdc_write_failure:
    case ErrorCode::syntax_error:
    case ErrorCode::unauthorized:
    case ErrorCode::invalid:
    case ErrorCode::config_error:
    case ErrorCode::already_exists:
    case ErrorCode::unprepared:
      return true;
  }
  return false;
}

std::string_view cut_utf8(std::string_view text, std::size_t size_max) {
  if (text.size() <= size_max) return text;
  std::size_t size = size_max;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return text.substr(0, size);
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto upper = [](char letter) {
    return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  };
  return std::ranges::equal(a, b, {}, upper, upper);
}

void put_string(Encoder& out, std::string_view text) {
  put_short_bytes(out, base::as_bytes(text));
}

void put_long_string(Encoder& out, std::string_view text) {
  put_int_size(out, text.size());
  out.raw(base::as_bytes(text));
}

void put_short_bytes(Encoder& out, ByteView bytes) {
  put_short_size(out, bytes.size());
  out.raw(bytes);
}

void put_bytes(Encoder& out, std::optional<ByteView> bytes) {
  if (!bytes) return put_int(out, kNull);
  put_int_size(out, bytes->size());
  out.raw(*bytes);
}

void put_value(Encoder& out, const Value& value) {
  switch (value.kind) {
    case Value::Kind::bytes:
      return put_bytes(out, value.bytes);
    case Value::Kind::null:
      return put_int(out, kNull);
    case Value::Kind::unset:
      return put_int(out, kUnset);
  }
}

void put_string_list(Encoder& out, std::span<const std::string> texts) {
  put_short_size(out, texts.size());
  for (const std::string& text : texts) put_string(out, text);
}

void put_payload(Encoder& out, std::span<const PayloadEntry> payload) {
  put_short_size(out, payload.size());
  for (const PayloadEntry& entry : payload) {
    put_string(out, entry.key);
    put_bytes(out, entry.value);
  }
}

void put_inet(Encoder& out, const Inet& inet) {
  ASSERT(inet.size == 4 || inet.size == 16);
  out.u8(inet.size);
  out.raw(inet.ip());
  put_int(out, inet.port);
}

void put_uuid(Encoder& out, const base::Uuid& uuid) {
  out.raw(uuid.bytes());
}

void put_consistency(Encoder& out, Consistency consistency) {
  out.u16_be(static_cast<std::uint16_t>(consistency));
}

std::string_view get_string(Decoder& in) {
  return text_of(in, get_short_bytes(in));
}

std::string_view get_long_string(Decoder& in) {
  const std::int32_t size = get_int(in);
  if (size < 0) {
    in.fail("the length of a string is negative");
    return {};
  }
  return text_of(in, in.raw(static_cast<std::size_t>(size)));
}

ByteView get_short_bytes(Decoder& in) {
  const std::size_t size = in.u16_be();
  return in.raw(size);
}

std::optional<ByteView> get_bytes(Decoder& in) {
  const std::int32_t size = get_int(in);
  if (size < 0) return std::nullopt;
  return in.raw(static_cast<std::size_t>(size));
}

Value get_value(Decoder& in) {
  const std::int32_t size = get_int(in);
  if (size >= 0) return Value::of(in.raw(static_cast<std::size_t>(size)));
  if (size == kUnset) return Value::unset();
  if (size != kNull) in.fail("the length of a value is less than -2");
  return Value::null();
}

std::vector<std::string_view> get_string_list(Decoder& in) {
  const std::size_t count = get_short_count(in, sizeof(std::uint16_t));
  std::vector<std::string_view> texts;
  texts.reserve(count);
  for (std::size_t index = 0; index < count && in.ok(); ++index) texts.push_back(get_string(in));
  return texts;
}

std::vector<PayloadEntry> get_payload(Decoder& in) {
  const std::size_t count = get_short_count(in, sizeof(std::uint16_t) + sizeof(std::int32_t));
  std::vector<PayloadEntry> payload;
  payload.reserve(count);
  for (std::size_t index = 0; index < count && in.ok(); ++index) {
    const std::string_view key = get_string(in);
    payload.push_back({.key = key, .value = get_bytes(in)});
  }
  return payload;
}

Inet get_inet(Decoder& in) {
  Inet inet;
  inet.size = in.u8();
  if (inet.size != 4 && inet.size != 16) {
    in.fail("an address has neither 4 nor 16 bytes");
    return {};
  }
  const ByteView ip = in.raw(inet.size);
  std::ranges::copy(ip, inet.octets.begin());
  inet.port = get_int(in);
  return inet;
}

Consistency get_consistency(Decoder& in) {
  const std::uint16_t code = in.u16_be();
  if (code > model::kConsistencyMax) {
    in.fail("unknown code of a consistency level");
    return Consistency::one;
  }
  return static_cast<Consistency>(code);
}

std::size_t get_short_count(Decoder& in, std::size_t bytes_each_min) {
  const std::size_t count = in.u16_be();
  if (count <= in.remaining() / bytes_each_min) return count;
  in.fail("counts more elements than there are bytes for");
  return 0;
}

std::size_t get_int_count(Decoder& in, std::size_t bytes_each_min) {
  const std::int32_t count = get_int(in);
  if (count < 0) {
    in.fail("a count is negative");
    return 0;
  }
  if (static_cast<std::size_t>(count) <= in.remaining() / bytes_each_min) {
    return static_cast<std::size_t>(count);
  }
  in.fail("counts more elements than there are bytes for");
  return 0;
}

}  // namespace helenus::cql::protocol
