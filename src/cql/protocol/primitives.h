// The notations of the CQL native protocol, version 4: what every message is made of, how it is
// written and how it is read. docs: native_protocol_v4.spec of Apache Cassandra, section 3.
//
// Writers append to a base::Encoder, readers take from a base::Decoder and keep its manner: a
// sticky failure, asked for once at the end. Every length and count is hostile: nothing is reserved
// that the bytes present could not fill. Texts are checked to be UTF-8, as Cassandra does.
//
// Views read from a Decoder borrow from what it decodes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/uuid.h"
#include "model/consistency.h"

namespace helenus::cql::protocol {

using model::Consistency;

inline constexpr std::size_t kShortSizeMax = 65535;  // of a string, of short bytes, of a list

// The codes of ERROR.
enum class ErrorCode : std::int32_t {
  server_error = 0x0000,
  protocol_error = 0x000a,
  bad_credentials = 0x0100,
  unavailable = 0x1000,
  overloaded = 0x1001,
  bootstrapping = 0x1002,
  truncate_error = 0x1003,
  write_timeout = 0x1100,
  read_timeout = 0x1200,
  read_failure = 0x1300,
  function_failure = 0x1400,
  write_failure = 0x1500,
  cdc_write_failure = 0x1600,
  syntax_error = 0x2000,
  unauthorized = 0x2100,
  invalid = 0x2200,
  config_error = 0x2300,
  already_exists = 0x2400,
  unprepared = 0x2500,
};
// Whether the number is one of the codes above.
bool is_error_code(std::int32_t code);

// The address of a node as clients reach it.
struct Inet {
  std::array<std::byte, 16> octets{};
  std::uint8_t size = 4;  // 4 or 16: how many octets count
  std::int32_t port = 0;

  base::ByteView ip() const [[clang::lifetimebound]] { return std::span(octets).first(size); }
  friend bool operator==(const Inet& a, const Inet& b) {
    return a.port == b.port && base::equal(a.ip(), b.ip());
  }
};

// What a client bound to a marker.
struct Value {
  enum class Kind : std::uint8_t {
    bytes,  // a value, the empty one included
    null,   // deletes the cell
    unset,  // leaves the cell alone
  };
  Kind kind = Kind::null;
  base::ByteView bytes;  // empty unless kind is bytes

  static Value of(base::ByteView bytes) { return {.kind = Kind::bytes, .bytes = bytes}; }
  static Value null() { return {}; }
  static Value unset() { return {.kind = Kind::unset, .bytes = {}}; }
  friend bool operator==(const Value& a, const Value& b) {
    return a.kind == b.kind && base::equal(a.bytes, b.bytes);
  }
};

// One entry of a [bytes map]; a value may be null.
struct PayloadEntry {
  std::string_view key;
  std::optional<base::ByteView> value;

  friend bool operator==(const PayloadEntry& a, const PayloadEntry& b) {
    if (a.key != b.key || a.value.has_value() != b.value.has_value()) return false;
    return !a.value.has_value() || base::equal(*a.value, *b.value);
  }
};

// The longest beginning of at most `size_max` bytes that ends between two characters.
std::string_view cut_utf8(std::string_view text, std::size_t size_max);

// ASCII letters compare without regard to case, as the names of options do.
bool equal_ignoring_case(std::string_view a, std::string_view b);

// Writers. Requires: what has a [short] in front is no longer than kShortSizeMax, what has an [int]
// in front no longer than INT32_MAX.
void put_string(base::Encoder& out, std::string_view text);
void put_long_string(base::Encoder& out, std::string_view text);
void put_short_bytes(base::Encoder& out, base::ByteView bytes);
// No value is null.
void put_bytes(base::Encoder& out, std::optional<base::ByteView> bytes);
void put_value(base::Encoder& out, const Value& value);
void put_string_list(base::Encoder& out, std::span<const std::string> texts);
void put_payload(base::Encoder& out, std::span<const PayloadEntry> payload);
void put_inet(base::Encoder& out, const Inet& inet);
void put_uuid(base::Encoder& out, const base::Uuid& uuid);
void put_consistency(base::Encoder& out, Consistency consistency);

// Readers.
std::string_view get_string(base::Decoder& in);
std::string_view get_long_string(base::Decoder& in);
base::ByteView get_short_bytes(base::Decoder& in);
// A negative length is null.
std::optional<base::ByteView> get_bytes(base::Decoder& in);
// -1 is null, -2 unset; anything less is an error.
Value get_value(base::Decoder& in);
std::vector<std::string_view> get_string_list(base::Decoder& in);
std::vector<PayloadEntry> get_payload(base::Decoder& in);
Inet get_inet(base::Decoder& in);
Consistency get_consistency(base::Decoder& in);
// A [short], or an [int], that counts elements of at least `bytes_each_min` (> 0) bytes to come.
std::size_t get_short_count(base::Decoder& in, std::size_t bytes_each_min);
std::size_t get_int_count(base::Decoder& in, std::size_t bytes_each_min);

}  // namespace helenus::cql::protocol
