#include "bench/stopwatch.h"

#include <chrono>
#include <ctime>

#include "base/assert.h"

namespace helenus::bench {

std::int64_t Stopwatch::now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace {

std::int64_t used_ns(clockid_t clock) {
  std::timespec used{};
  ::clock_gettime(clock, &used);
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

}  // namespace

std::int64_t CpuStopwatch::now_ns() {
  return used_ns(CLOCK_THREAD_CPUTIME_ID);
}

ProcessCpuStopwatch::ProcessCpuStopwatch(pid_t process) {
  const int fault = ::clock_getcpuclockid(process, &clock_);
  ASSERT(fault == 0, "process {} is not there", process);
  started_ns_ = now_ns();
}

std::int64_t ProcessCpuStopwatch::now_ns() const {
  return used_ns(clock_);
}

}  // namespace helenus::bench
