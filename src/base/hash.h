// Hashing: XXH3 in 64 and 128 bits, stable across versions and machines (values may be stored),
// and a mixer for integers. Not for secrets.
#pragma once

#include <compare>
#include <cstdint>

#include "base/bytes.h"

namespace helenus::base {

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};

std::uint64_t hash64(ByteView bytes, std::uint64_t seed = 0);
Hash128 hash128(ByteView bytes, std::uint64_t seed = 0);

// A bijection of 64-bit words that spreads every input bit over the output (SplitMix64's
// finalizer).
constexpr std::uint64_t mix64(std::uint64_t word) {
  word ^= word >> 30;
  word *= 0xbf58476d1ce4e5b9;
  word ^= word >> 27;
  word *= 0x94d049bb133111eb;
  word ^= word >> 31;
  return word;
}

// An order-dependent digest of a stream of words and byte strings.
class Digest {
 public:
  void add(std::uint64_t word) { state_ = mix64(state_ + 0x9e3779b97f4a7c15 + mix64(word)); }
  void add(ByteView bytes) {
    add(bytes.size());
    add(hash64(bytes));
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace helenus::base
