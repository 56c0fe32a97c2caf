#include "runtime/native/native_random.h"

#include <cerrno>
#include <span>

#include <sys/random.h>

#include "base/assert.h"
#include "runtime/native/system_error.h"

namespace helenus::runtime::native {

namespace {

void fill_from_kernel(base::MutableByteView into) {
  while (!into.empty()) {
    const ssize_t count = ::getrandom(into.data(), into.size(), 0);
    if (count < 0) {
      ASSERT(errno == EINTR, "getrandom: {}", system_text(errno));
      continue;
    }
    into = into.subspan(static_cast<std::size_t>(count));
  }
}

std::uint64_t seed_from_kernel() {
  std::uint64_t seed = 0;
  fill_from_kernel(std::as_writable_bytes(std::span(&seed, 1)));
  return seed;
}

}  // namespace

NativeRandom::NativeRandom() : prng_(seed_from_kernel()) {}

void NativeRandom::fill_secret(base::MutableByteView into) {
  fill_from_kernel(into);
}

}  // namespace helenus::runtime::native
