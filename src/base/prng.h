// Prng: a small, fast, seeded generator (xoshiro256**). A value: copy it and both copies go on
// alike. Not for secrets. Protocol code takes its randomness from runtime::Random; this is what
// stands behind it, and what tests and benchmarks seed by hand.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <limits>
#include <ranges>
#include <string_view>

#include "base/assert.h"
#include "base/hash.h"

namespace helenus::base {

class Prng {
 public:
  using result_type = std::uint64_t;

  explicit Prng(std::uint64_t seed) {
    for (auto& word : state_) word = mix64(seed += 0x9e3779b97f4a7c15);
  }
  // An independent stream for a purpose: drawing from one never shifts another.
  static Prng for_purpose(std::uint64_t seed, std::string_view purpose, std::uint64_t index = 0) {
    return Prng(hash64(as_bytes(purpose), mix64(seed) + index));
  }

  std::uint64_t operator()() { return next(); }
  static constexpr std::uint64_t min() { return 0; }
  static constexpr std::uint64_t max() { return std::numeric_limits<std::uint64_t>::max(); }

  std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound). Requires: bound > 0. The bias is below bound / 2^64.
  std::uint64_t below(std::uint64_t bound) {
    ASSERT(bound > 0);
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }
  // Uniform in [low, high]. Requires: low <= high.
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    ASSERT(low <= high);
    const std::uint64_t span = high - low;
    return span == max() ? next() : low + below(span + 1);
  }
  // Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  bool chance(double probability) { return unit() < probability; }

  // Brings the elements into a random order; unlike std::shuffle into the same one everywhere.
  template <std::ranges::random_access_range R>
  void shuffle(R&& range) {
    const auto begin = std::ranges::begin(range);
    for (auto size = std::ranges::distance(range); size > 1; --size) {
      const auto index = static_cast<decltype(size)>(below(static_cast<std::uint64_t>(size)));
      std::ranges::iter_swap(begin + index, begin + (size - 1));
    }
  }

 private:
  std::array<std::uint64_t, 4> state_;
};

}  // namespace helenus::base
