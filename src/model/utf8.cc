#include "model/utf8.h"

#include <algorithm>
#include <cstdint>

#include "base/codec.h"

namespace helenus::model {

using base::ByteView;

namespace {

constexpr std::uint64_t kHighBits = 0x8080808080808080;

unsigned at(ByteView bytes, std::size_t index) {
  return std::to_integer<unsigned>(bytes[index]);
}

// How many bytes the character at the front takes; 0 if there is none.
std::size_t character_size(ByteView bytes) {
  const unsigned first = at(bytes, 0);
  if (first < 0x80) return 1;
  // The second byte's range keeps out overlong forms, surrogates and what is too large.
  std::size_t size = 0;
  unsigned low = 0x80;
  unsigned high = 0xbf;
  if (first >= 0xc2 && first <= 0xdf) {
    size = 2;
  } else if (first >= 0xe0 && first <= 0xef) {
    size = 3;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
  } else if (first >= 0xf0 && first <= 0xf4) {
    size = 4;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
  } else {
    return 0;
  }
  if (bytes.size() < size || at(bytes, 1) < low || at(bytes, 1) > high) return 0;
  for (std::size_t index = 2; index < size; ++index) {
    if ((at(bytes, index) & 0xc0) != 0x80) return 0;
  }
  return size;
}

}  // namespace

bool is_utf8(ByteView bytes) {
  while (!bytes.empty()) {
    if (bytes.size() >= 8 && (base::load_le<std::uint64_t>(bytes.data()) & kHighBits) == 0) {
      bytes = bytes.subspan(8);
      continue;
    }
    const std::size_t size = character_size(bytes);
    if (size == 0) return false;
    bytes = bytes.subspan(size);
  }
  return true;
}

bool is_ascii(ByteView bytes) {
  return std::ranges::all_of(bytes,
                             [](std::byte byte) { return std::to_integer<unsigned>(byte) < 0x80; });
}

}  // namespace helenus::model
