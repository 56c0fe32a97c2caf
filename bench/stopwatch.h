// Stopwatch: monotonic time for benchmarks; CpuStopwatch: processor time of the calling thread. The
// only clocks a benchmark reads.
#pragma once

#include <cstdint>

namespace helenus::bench {

// Runs from its construction.
class Stopwatch {
 public:
  Stopwatch() : started_ns_(now_ns()) {}

  double seconds() const { return static_cast<double>(now_ns() - started_ns_) / 1e9; }
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

}  // namespace helenus::bench
