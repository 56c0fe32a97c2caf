// Schedule: when requests are due, whatever became of those before them.
//
// A client that sends the next request when the last was answered measures nothing while the server
// stands still (coordinated omission). An open loop takes its starting times from here and counts
// latency from then, not from when a connection was free to send.
#pragma once

#include <cstdint>

#include "base/assert.h"

namespace helenus::bench {

// Evenly spaced times from zero until the end; times are nanoseconds of the caller's clock.
class Schedule {
 public:
  // Requires: per_second > 0, end_ns > 0.
  Schedule(double per_second, std::int64_t end_ns)
      : spacing_ns_(1e9 / per_second), end_ns_(end_ns) {
    ASSERT(per_second > 0 && end_ns > 0);
  }

  // When the next request is due.
  std::int64_t next_ns() const {
    return static_cast<std::int64_t>(static_cast<double>(taken_) * spacing_ns_);
  }
  bool done() const { return next_ns() >= end_ns_; }
  bool due(std::int64_t now_ns) const { return !done() && next_ns() <= now_ns; }
  // Takes the next one and says when it was due. Requires: !done().
  std::int64_t take() {
    ASSERT(!done());
    const std::int64_t at_ns = next_ns();
    ++taken_;
    return at_ns;
  }
  std::uint64_t taken() const { return taken_; }

 private:
  double spacing_ns_;
  std::int64_t end_ns_;
  std::uint64_t taken_ = 0;
};

}  // namespace helenus::bench
