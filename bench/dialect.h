// Dialect: how a load generator says read and write to one kind of server.
//
// All servers are asked for the same: keys of 16 bytes, values of 100. A dialect turns operations
// into bytes and finds where replies end; connections, pace and measuring are the same for all
// (load.h), so what differs between two servers under the same load is the servers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/result.h"

namespace helenus::bench {

struct Operation {
  enum class Kind : std::uint8_t { read, write };
  Kind kind = Kind::read;
  std::uint64_t key = 0;
  std::uint64_t version = 0;  // of a write: another version is another value
};

inline constexpr std::size_t kKeySize = 16;
inline constexpr std::size_t kValueSize = 100;

// "user000000000042", and a value that no compression makes small.
inline std::array<char, kKeySize> key_text(std::uint64_t key) {
  std::array<char, kKeySize> text{'u', 's', 'e', 'r'};
  for (std::size_t i = kKeySize; i > 4; key /= 10) text[--i] = static_cast<char>('0' + key % 10);
  return text;
}
inline std::array<char, kValueSize> value_text(std::uint64_t key, std::uint64_t version) {
  std::array<char, kValueSize> text;
  std::uint64_t state = base::mix64(key + (version << 40));
  for (std::size_t i = 0; i < kValueSize; ++i) {
    if (i % 8 == 0) state = base::mix64(state + i);
    text[i] = static_cast<char>(state >> (8 * (i % 8)));
  }
  return text;
}

struct Reply {
  std::size_t size = 0;
  // Which request it answers, where the protocol says so; otherwise the oldest.
  std::optional<std::uint16_t> slot;
};

class Dialect {
 public:
  Dialect() = default;
  Dialect(const Dialect&) = delete;
  Dialect& operator=(const Dialect&) = delete;
  virtual ~Dialect() = default;

  // What a new connection says first; it gets one reply.
  virtual void greet(base::Buffer& out) = 0;
  // `slot` tells apart what is under way on one connection.
  virtual void encode(const Operation& operation, std::uint16_t slot, base::Buffer& out) = 0;
  // The reply the bytes begin with; none if it is not complete. A refusal and a read that finds
  // nothing are errors.
  virtual base::Result<std::optional<Reply>> first_reply(base::ByteView bytes) = 0;
};

}  // namespace helenus::bench
