#include "ring/murmur3.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/codec.h"

namespace helenus::ring {

namespace {

constexpr std::uint64_t kFactor1 = 0x87c37b91114253d5;
constexpr std::uint64_t kFactor2 = 0x4cf5ad432745937f;
constexpr std::size_t kBlockSize = 16;

std::uint64_t scramble_low(std::uint64_t word) {
  return std::rotl(word * kFactor1, 31) * kFactor2;
}
std::uint64_t scramble_high(std::uint64_t word) {
  return std::rotl(word * kFactor2, 33) * kFactor1;
}

std::uint64_t finish(std::uint64_t word) {
  word ^= word >> 33;
  word *= 0xff51afd7ed558ccd;
  word ^= word >> 33;
  word *= 0xc4ceb9fe1a85ec53;
  word ^= word >> 33;
  return word;
}

// Up to eight bytes of the last block as one word, each sign-extended before it is shifted to its
// place: a byte above 0x7f turns the bits of its successors over. Drivers do the same.
std::uint64_t tail_word(base::ByteView bytes) {
  std::uint64_t word = 0;
  for (std::size_t index = 0; index < bytes.size(); ++index) {
    const auto extended = static_cast<std::int64_t>(static_cast<std::int8_t>(bytes[index]));
    word ^= static_cast<std::uint64_t>(extended) << (8 * index);
  }
  return word;
}

}  // namespace

model::Token token_of(base::ByteView routing_key) {
  if (routing_key.empty()) return model::kTokenMin;
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  base::ByteView rest = routing_key;
  for (; rest.size() >= kBlockSize; rest = rest.subspan(kBlockSize)) {
    low ^= scramble_low(base::load_le<std::uint64_t>(rest.data()));
    low = (std::rotl(low, 27) + high) * 5 + 0x52dce729;
    high ^= scramble_high(base::load_le<std::uint64_t>(rest.data() + 8));
    high = (std::rotl(high, 31) + low) * 5 + 0x38495ab5;
  }
  if (rest.size() > 8) high ^= scramble_high(tail_word(rest.subspan(8)));
  if (!rest.empty())
    low ^= scramble_low(tail_word(rest.first(std::min<std::size_t>(rest.size(), 8))));
  low ^= routing_key.size();
  high ^= routing_key.size();
  low += high;
  high += low;
  const std::uint64_t hash = finish(low) + finish(high);
  const model::Token token(std::bit_cast<std::int64_t>(hash));
  return token == model::kTokenMin ? model::kTokenMax : token;
}

}  // namespace helenus::ring
