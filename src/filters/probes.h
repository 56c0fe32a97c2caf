// The places of a key in a table of bits, all from one hash, in two ways.
//
// Probes: an arithmetic progression of 64-bit words, scaled to the table (double hashing: Kirsch
// and Mitzenmacher, 2006). The step is odd, so that the words of one key are all different. A
// stranger whose words are those of a key to the precision of the table, all of them or all but a
// few at an end, forward or backward, is taken for it: of n keys in m bits this adds about 4 n /
// m^2 to the rate. That is nothing in a large table, and in a small one that is meant to be wrong
// once in a million it is most: 5.8 times the rate without it for 1,000 keys, 2.5 times for 3,000,
// and one part in 250 for a million (measured; 3.7 to 4.4 for 13 to 30 probes, less for fewer).
//
// MixedProbes: a chain of multiplications and shifts. Two keys that share a place differ in lower
// bits, which the next word depends on, and so share further places by chance only. For filters
// made of many small tables.
#pragma once

#include <cstdint>

#include "base/hash.h"
#include "filters/key_hash.h"
#include "filters/placement.h"

namespace helenus::filters {

inline constexpr unsigned kProbesMax = 32;

// What Probes add to the rate of a table by being in a line; at most that.
constexpr double rate_of_aligned_probes(std::uint64_t bits, std::uint64_t keys) {
  constexpr double kPairs = 4.5;
  const auto positions = static_cast<double>(bits);
  return kPairs * static_cast<double>(keys) / positions / positions;
}

class Probes {
 public:
  explicit constexpr Probes(KeyHash key)
      : word_(key.value()), step_(base::mix64(key.value()) | 1) {}

  // The next place, below `bits`. Requires: bits > 0.
  constexpr std::uint64_t next(std::uint64_t bits) {
    const std::uint64_t bit = scale(word_, bits);
    word_ += step_;
    return bit;
  }

 private:
  std::uint64_t word_;
  std::uint64_t step_;
};

class MixedProbes {
 public:
  explicit constexpr MixedProbes(KeyHash key) : word_(key.value()) {}

  // The next place, below `bits`. Requires: bits > 0.
  constexpr std::uint64_t next(std::uint64_t bits) {
    const std::uint64_t bit = scale(word_, bits);
    word_ = (word_ ^ (word_ >> 32)) * 0x9e3779b97f4a7c15;
    return bit;
  }

 private:
  std::uint64_t word_;
};

}  // namespace helenus::filters
