// Probes: the places of a key in a table of bits, all from one hash.
//
// An arithmetic progression of 64-bit words, scaled to the table (double hashing: Kirsch and
// Mitzenmacher, 2006). The step is odd, so that the words of one key are all different.
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

}  // namespace helenus::filters
