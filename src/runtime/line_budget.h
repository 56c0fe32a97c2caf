// LineBudget: how many lines of the log others can make this node write. Lines about strangers, bad
// frames and the like are worth reading one by one, and worth nothing by the million: a scanner
// that comes every millisecond must not fill the disk. So many may come at once, and then one in a
// while; what is left out is counted, and told before the next line that is not.
//
//   if (lines_.admits(log_, clock.now())) log_.warn("closed a connection", ...);
//
// Core affinity: one core.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "runtime/time.h"

namespace helenus::runtime {

class LineBudget {
 public:
  struct Options {
    std::int64_t burst = 64;                       // at least 1
    Duration interval = std::chrono::seconds(10);  // from a line to the next, after that; above 0
  };

  LineBudget() : LineBudget(Options{}) {}
  explicit LineBudget(const Options& options) : options_(options), lines_(options.burst) {
    ASSERT(options.burst >= 1 && options.interval > Duration(0));
  }

  // Whether a line may be written now; it is counted as written then. A time before an earlier one
  // counts as no time passed.
  [[nodiscard]] bool admits(const base::Logger& log, MonotonicTime now) {
    if (const std::int64_t earned = (now - counted_until_) / options_.interval; earned > 0) {
      counted_until_ = counted_until_ + earned * options_.interval;
      lines_ =
          earned >= options_.burst ? options_.burst : std::min(options_.burst, lines_ + earned);
    }
    if (lines_ == 0) {
      ++left_out_;
      return false;
    }
    --lines_;
    if (left_out_ > 0) {
      log.warn("lines like the next one were left out", base::kv("lines", left_out_));
      left_out_ = 0;
    }
    return true;
  }

 private:
  Options options_;
  std::int64_t lines_;
  MonotonicTime counted_until_;
  std::uint64_t left_out_ = 0;
};

}  // namespace helenus::runtime
