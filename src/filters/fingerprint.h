// Fingerprints: the low bits of a key's hash, never zero, which marks an empty slot.
#pragma once

#include <cmath>
#include <cstdint>

#include "filters/key_hash.h"

namespace helenus::filters {

// Requires: bits is 1 to 32.
constexpr std::uint32_t fingerprint_of(KeyHash key, unsigned bits) {
  const auto low = static_cast<std::uint32_t>(key.value() & ((std::uint64_t{1} << bits) - 1));
  return low + (low == 0 ? 1 : 0);
}

// The probability that a stranger's fingerprint is among `compared` others. Two random ones are
// equal with probability (2^bits + 2) / 2^(2 bits): one value, 1, is twice as likely as the rest.
inline double rate_of_equal_fingerprints(unsigned bits, double compared) {
  const double values = std::exp2(bits);
  return -std::expm1(compared * std::log1p(-(values + 2) / (values * values)));
}

}  // namespace helenus::filters
