// RateLimiter: keeps writers together below a number of bytes a second.
//
// Every write reserves its share of the time line and waits for its turn, so writers share the rate
// in the order they come, and nobody may save up more than a tenth of a second of it.
// Core affinity: one core.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/clock.h"
#include "runtime/runtime.h"
#include "runtime/sleep.h"
#include "runtime/stop_token.h"
#include "storage/sstable/sstable_writer.h"

namespace helenus::storage {

class RateLimiter final : public WriteThrottle {
 public:
  // Zero bytes a second: no limit.
  RateLimiter(runtime::Runtime& runtime, std::uint64_t bytes_per_second, runtime::StopToken stop)
      : runtime_(runtime), bytes_per_second_(bytes_per_second), stop_(std::move(stop)) {}

  // Errors: cancelled.
  runtime::Task<base::Result<void>> before_write(std::size_t bytes) override {
    if (bytes_per_second_ == 0) co_return {};
    const runtime::MonotonicTime now = runtime_.clock.now();
    const auto turn = std::max(next_, now + -kSavedMax);
    next_ = turn + runtime::Duration(static_cast<std::int64_t>(
                       static_cast<double>(bytes) / static_cast<double>(bytes_per_second_) * 1e9));
    if (turn <= now) co_return {};
    co_return co_await runtime::sleep_until(runtime_, turn, stop_);
  }

 private:
  static constexpr runtime::Duration kSavedMax = std::chrono::milliseconds(100);

  runtime::Runtime& runtime_;
  const std::uint64_t bytes_per_second_;
  const runtime::StopToken stop_;
  runtime::MonotonicTime next_;
};

}  // namespace helenus::storage
