// Random: where protocol code gets its dice. Native: seeded by the system; sim: by the run's seed.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/prng.h"

namespace helenus::runtime {

class Random {
 public:
  virtual ~Random() = default;

  virtual std::uint64_t next() = 0;
  // Bytes fit for keys and tokens: from the system's generator in the native world.
  virtual void fill_secret(base::MutableByteView into) = 0;

  // A generator of one's own, for hot paths: independent of what others draw afterwards.
  base::Prng fork() { return base::Prng(next()); }
  // Uniform in [0, bound). Requires: bound > 0.
  std::uint64_t below(std::uint64_t bound) { return fork().below(bound); }
  // Uniform in [low, high]. Requires: low <= high.
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return fork().between(low, high); }
  bool chance(double probability) { return fork().chance(probability); }
};

}  // namespace helenus::runtime
