// LocalClock: how one machine sees time. Its monotonic clock runs a little fast or slow; its wall
// clock has an offset besides, and may jump. All in integers, so that every build agrees.
#pragma once

#include <cstdint>

#include "sim/world_time.h"

namespace helenus::sim {

class LocalClock {
 public:
  // The true wall time at which every world begins.
  static constexpr runtime::WallTime kWorldBegins{std::chrono::seconds(1'767'225'600)};  // 2026
  // A clock gains or loses at most a tenth: beyond that it is broken, not drifting.
  static constexpr std::int64_t kRatePpbMax = 100'000'000;

  runtime::MonotonicTime monotonic_at(WorldTime time) const;
  runtime::WallTime wall_at(WorldTime time) const {
    return runtime::WallTime(monotonic_at(time).since_origin() + wall_minus_monotonic_);
  }
  // The first moment at which the monotonic clock shows `local` or more.
  WorldTime reached_at(runtime::MonotonicTime local) const;

  // From `now` on the clock gains this many nanoseconds a second; negative loses.
  // Requires: within kRatePpbMax.
  void set_rate(WorldTime now, std::int64_t rate_ppb);
  std::int64_t rate_ppb() const { return rate_ppb_; }

  void jump_wall(Duration by) { wall_minus_monotonic_ += by; }
  // Sets the wall clock so that it is ahead of true time by `ahead` at `now`.
  void set_wall(WorldTime now, Duration ahead);
  // The machine came up: its monotonic clock begins again, at `uptime`; the wall clock goes on.
  void reboot(WorldTime now, Duration uptime);

 private:
  WorldTime anchor_;
  runtime::MonotonicTime anchor_local_;
  std::int64_t rate_ppb_ = 0;
  Duration wall_minus_monotonic_ = kWorldBegins.since_origin();
};

}  // namespace helenus::sim
