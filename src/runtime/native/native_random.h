// NativeRandom: a generator seeded by the kernel, and the kernel's own for secrets.
#pragma once

#include <cstdint>

#include "base/prng.h"
#include "runtime/random.h"

namespace helenus::runtime::native {

class NativeRandom final : public Random {
 public:
  NativeRandom();

  std::uint64_t next() override { return prng_.next(); }
  void fill_secret(base::MutableByteView into) override;

 private:
  base::Prng prng_;
};

}  // namespace helenus::runtime::native
