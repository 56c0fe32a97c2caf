// Encoder and Decoder: the one way values become bytes and come back.
//
// Fixed-width integers name their byte order: _le in our own files and messages, _be where a
// protocol of others (CQL) wants it. Varints are LEB128, at most ten bytes, and a decoder takes
// only the shortest form, so that equal values have equal bytes.
//
// The Decoder never reads past its end. It is a cursor with a sticky failure: after the first bad
// read every read returns zero or empty, and `finish()` (or `status()`) tells what was wrong and
// where. So a decoder of a record reads as a list of its fields, checked once at the end:
//
//   Decoder in(bytes);
//   Header header{.version = in.u8(), .length = in.u32_le()};
//   TRY_VOID(in.finish());
//
// A count or length read this way is hostile until `finish()` said yes: size containers with
// `count(bytes_each_min)`, which fails when that many elements cannot be there.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace helenus::base {

inline constexpr std::size_t kVarintSizeMax = 10;

// Bytes a varint takes.
constexpr std::size_t varint_size(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

// Signed to unsigned with small magnitudes staying small, and back.
constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

// Raw loads and stores of fixed-width integers at any address.
template <std::unsigned_integral T>
T load_le(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return std::endian::native == std::endian::little ? value : std::byteswap(value);
}
template <std::unsigned_integral T>
T load_be(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return std::endian::native == std::endian::big ? value : std::byteswap(value);
}
template <std::unsigned_integral T>
void store_le(std::byte* to, T value) {
  if constexpr (std::endian::native != std::endian::little) value = std::byteswap(value);
  std::memcpy(to, &value, sizeof value);
}
template <std::unsigned_integral T>
void store_be(std::byte* to, T value) {
  if constexpr (std::endian::native != std::endian::big) value = std::byteswap(value);
  std::memcpy(to, &value, sizeof value);
}

// Appends to a Buffer that outlives it.
class Encoder {
 public:
  explicit Encoder(Buffer& out) : out_(out) {}

  std::size_t size() const { return out_.size(); }
  Buffer& buffer() { return out_; }

  void u8(std::uint8_t value) { out_.push_back(std::byte{value}); }
  void u16_le(std::uint16_t value) { store_le(room<std::uint16_t>(), value); }
  void u32_le(std::uint32_t value) { store_le(room<std::uint32_t>(), value); }
  void u64_le(std::uint64_t value) { store_le(room<std::uint64_t>(), value); }
  void u16_be(std::uint16_t value) { store_be(room<std::uint16_t>(), value); }
  void u32_be(std::uint32_t value) { store_be(room<std::uint32_t>(), value); }
  void u64_be(std::uint64_t value) { store_be(room<std::uint64_t>(), value); }

  void varint(std::uint64_t value) {
    std::byte* to = out_.extend(varint_size(value)).data();
    for (; value >= 0x80; value >>= 7) *to++ = std::byte(value | 0x80);
    *to = std::byte(value);
  }
  void signed_varint(std::int64_t value) { varint(zigzag(value)); }

  void raw(ByteView bytes) { out_.append(bytes); }
  // A varint length, then the bytes.
  void prefixed(ByteView bytes) {
    varint(bytes.size());
    raw(bytes);
  }
  void prefixed(std::string_view text) { prefixed(as_bytes(text)); }

 private:
  template <class T>
  std::byte* room() {
    return out_.extend(sizeof(T)).data();
  }

  Buffer& out_;
};

class Decoder {
 public:
  explicit Decoder(ByteView bytes)
      : begin_(bytes.data()), at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool ok() const { return problem_ == nullptr; }
  std::size_t remaining() const { return static_cast<std::size_t>(end_ - at_); }
  std::size_t offset() const { return static_cast<std::size_t>(at_ - begin_); }

  std::uint8_t u8() { return fixed<std::uint8_t>(&load_le<std::uint8_t>); }
  std::uint16_t u16_le() { return fixed<std::uint16_t>(&load_le<std::uint16_t>); }
  std::uint32_t u32_le() { return fixed<std::uint32_t>(&load_le<std::uint32_t>); }
  std::uint64_t u64_le() { return fixed<std::uint64_t>(&load_le<std::uint64_t>); }
  std::uint16_t u16_be() { return fixed<std::uint16_t>(&load_be<std::uint16_t>); }
  std::uint32_t u32_be() { return fixed<std::uint32_t>(&load_be<std::uint32_t>); }
  std::uint64_t u64_be() { return fixed<std::uint64_t>(&load_be<std::uint64_t>); }

  std::uint64_t varint() {
    if (at_ != end_ && std::to_integer<unsigned>(*at_) < 0x80) [[likely]] {
      return std::to_integer<std::uint64_t>(*at_++);
    }
    return varint_long();
  }
  std::int64_t signed_varint() { return unzigzag(varint()); }

  // A varint that counts elements of at least `bytes_each_min` (> 0) bytes still to come.
  std::size_t count(std::size_t bytes_each_min);

  // The next `size` bytes; they borrow from what is decoded.
  ByteView raw(std::size_t size);
  // A varint length, then that many bytes.
  ByteView prefixed();
  std::string_view prefixed_text() { return as_text(prefixed()); }

  // Marks the input as bad for a reason of the caller's own; the first reason wins.
  // `problem` must be a string literal.
  void fail(const char* problem);

  // Whether everything so far was well formed.
  Result<void> status() const;
  // The same, and that nothing is left over.
  Result<void> finish();

 private:
  template <class T>
  T fixed(T (*load)(const std::byte*)) {
    if (remaining() < sizeof(T)) [[unlikely]] {
      fail("ends inside an integer");
      return 0;
    }
    const T value = load(at_);
    at_ += sizeof(T);
    return value;
  }
  std::uint64_t varint_long();

  const std::byte* begin_;
  const std::byte* at_;
  const std::byte* end_;
  const char* problem_ = nullptr;
  std::size_t problem_offset_ = 0;
};

}  // namespace helenus::base
