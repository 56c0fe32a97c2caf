// Stopwatch: monotonic time for benchmarks; CpuStopwatch: processor time of the calling thread;
// ProcessCpuStopwatch: that of another process. The only clocks a benchmark reads.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace helenus::bench {

// Runs from its construction.
class Stopwatch {
 public:
  Stopwatch() : started_ns_(now_ns()) {}

  double seconds() const { return static_cast<double>(nanoseconds()) / 1e9; }
  std::int64_t nanoseconds() const { return now_ns() - started_ns_; }
  void restart() { started_ns_ = now_ns(); }

 private:
  static std::int64_t now_ns();

  std::int64_t started_ns_;
};

// Runs from its construction while this thread runs. For work that never waits: on a machine whose
// cores are shared it leaves out the time others had them, though not what they did to the caches.
class CpuStopwatch {
 public:
  CpuStopwatch() : started_ns_(now_ns()) {}

  double seconds() const { return static_cast<double>(now_ns() - started_ns_) / 1e9; }

 private:
  static std::int64_t now_ns();

  std::int64_t started_ns_;
};

// Runs from its construction while any thread of the process runs, in its code or in the kernel on
// its behalf. Requires: the process lives.
class ProcessCpuStopwatch {
 public:
  explicit ProcessCpuStopwatch(pid_t process);

  double seconds() const { return static_cast<double>(now_ns() - started_ns_) / 1e9; }

 private:
  std::int64_t now_ns() const;

  int clock_ = 0;
  std::int64_t started_ns_ = 0;
};

}  // namespace helenus::bench
