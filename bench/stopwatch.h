// Stopwatch: monotonic time for benchmarks, the only clock a benchmark reads.
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

}  // namespace helenus::bench
