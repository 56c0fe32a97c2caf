#include "sim/local_clock.h"

#include "base/assert.h"

namespace helenus::sim {

namespace {

constexpr std::int64_t kBillion = 1'000'000'000;

// Rounds down, also below zero: the clock's course stays monotonic.
std::int64_t floor_divide(__int128 dividend, std::int64_t divisor) {
  __int128 quotient = dividend / divisor;
  if (quotient * divisor > dividend) --quotient;
  return static_cast<std::int64_t>(quotient);
}

}  // namespace

runtime::MonotonicTime LocalClock::monotonic_at(WorldTime time) const {
  const std::int64_t passed = (time - anchor_).count();
  if (rate_ppb_ == 0) return anchor_local_ + Duration(passed);
  const std::int64_t gained = floor_divide(static_cast<__int128>(passed) * rate_ppb_, kBillion);
  return anchor_local_ + Duration(passed + gained);
}

WorldTime LocalClock::reached_at(runtime::MonotonicTime local) const {
  if (local.is_never()) return WorldTime::never();
  const std::int64_t wanted = (local - anchor_local_).count();
  if (wanted <= 0) return anchor_;
  if (rate_ppb_ == 0) return anchor_ + Duration(wanted);
  const std::int64_t near =
      floor_divide(static_cast<__int128>(wanted) * kBillion, kBillion + rate_ppb_);
  WorldTime moment = anchor_ + Duration(near);
  if (moment.is_never()) return moment;
  while (monotonic_at(moment) < local) moment = moment + Duration(1);
  while (moment > anchor_ && monotonic_at(moment + Duration(-1)) >= local) {
    moment = moment + Duration(-1);
  }
  return moment;
}

void LocalClock::set_rate(WorldTime now, std::int64_t rate_ppb) {
  ASSERT(rate_ppb >= -kRatePpbMax && rate_ppb <= kRatePpbMax, "{} ppb", rate_ppb);
  anchor_local_ = monotonic_at(now);
  anchor_ = now;
  rate_ppb_ = rate_ppb;
}

void LocalClock::set_wall(WorldTime now, Duration ahead) {
  const Duration wanted = kWorldBegins.since_origin() + now.since_origin() + ahead;
  wall_minus_monotonic_ = wanted - monotonic_at(now).since_origin();
}

void LocalClock::reboot(WorldTime now, Duration uptime) {
  const runtime::WallTime wall = wall_at(now);
  anchor_ = now;
  anchor_local_ = runtime::MonotonicTime(uptime);
  wall_minus_monotonic_ = wall.since_origin() - uptime;
}

}  // namespace helenus::sim
