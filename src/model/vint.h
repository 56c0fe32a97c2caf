// The variable-length integers of the native protocol, within durations: the leading one bits of
// the first byte say how many bytes follow; the value is zig-zag.
#pragma once

#include <bit>
#include <cstdint>

#include "base/bytes.h"
#include "base/codec.h"

namespace helenus::model {

inline void put_vint(base::Buffer& out, std::int64_t value) {
  const std::uint64_t word = base::zigzag(value);
  // Seven bits in one byte, and seven more with every further one; nine bytes hold all 64.
  const auto bits = static_cast<unsigned>(std::bit_width(word | 1));
  const unsigned extra = bits > 56 ? 8 : (bits - 1) / 7;
  const unsigned head = 0xff00U >> extra & 0xffU;
  if (extra == 8) {
    out.push_back(std::byte{0xff});
  } else {
    out.push_back(std::byte(head | static_cast<unsigned>(word >> (8 * extra))));
  }
  for (unsigned index = extra; index-- > 0;) out.push_back(std::byte(word >> (8 * index)));
}

// Zero on bad bytes; `in` knows.
inline std::int64_t get_vint(base::Decoder& in) {
  const std::uint8_t head = in.u8();
  const auto extra = static_cast<unsigned>(std::countl_one(head));
  std::uint64_t word = extra == 8 ? 0 : head & (0xffU >> extra);
  for (unsigned index = 0; index < extra; ++index) word = word << 8 | in.u8();
  return in.ok() ? base::unzigzag(word) : 0;
}

}  // namespace helenus::model
