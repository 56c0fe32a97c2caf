// The places of a key in a table of bits, all from one hash, in two ways.
//
// Probes: an arithmetic progression of 64-bit words, scaled to the table (double hashing: Kirsch
// and Mitzenmacher, 2006). The step is odd, so that the words of one key are all different. Two
// keys whose first word and step both agree to the precision of the table have all places in
// common: of n keys in m bits this adds about 2.5 n / m^2 to the rate, which is nothing in a large
// table and more than all the rest in one of a few thousand bits that is meant to be wrong once in
// 10,000.
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
