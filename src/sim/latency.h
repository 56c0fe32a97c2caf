// How long things take: a base, a quarter of it as jitter, and a long tail: one in 64 takes 2 to
// 128 times as long, each doubling half as likely as the one before. Integers only, so that every
// build draws alike.
#pragma once

#include <bit>
#include <cstdint>

#include "base/prng.h"

namespace helenus::sim {

inline std::uint64_t draw_latency_ns(base::Prng& prng, std::uint64_t base_ns) {
  const std::uint64_t dice = prng.next();
  std::uint64_t latency_ns = base_ns + (((dice >> 32) * (base_ns / 4)) >> 32);
  if ((dice & 63) == 0) {
    const int doublings = std::countr_zero((dice >> 6) | (1U << 6));
    latency_ns += base_ns << (doublings + 1);
  }
  return latency_ns;
}

}  // namespace helenus::sim
