#include "bench/stopwatch.h"

#include <chrono>

namespace helenus::bench {

std::int64_t Stopwatch::now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace helenus::bench
