#include "bench/stopwatch.h"

#include <chrono>
#include <ctime>

namespace helenus::bench {

std::int64_t Stopwatch::now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::int64_t CpuStopwatch::now_ns() {
  std::timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

}  // namespace helenus::bench
