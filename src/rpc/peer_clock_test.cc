#include "rpc/peer_clock.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::rpc {
namespace {

using runtime::Duration;
using runtime::MonotonicTime;
using namespace std::chrono_literals;

MonotonicTime at(Duration time) {
  return MonotonicTime(time);
}

TEST(PeerClock, KnowsNothingBeforeTheFirstExchange) {
  EXPECT_EQ(PeerClock().at_least(at(1s), at(1s)), std::nullopt);
}

TEST(PeerClock, ErrsByTheWayBackAndNoMore) {
  PeerClock clock;
  // Theirs is 100 s ahead; 30 ms there, 20 ms back.
  clock.note(at(10s), at(110s + 30ms), at(10s + 50ms));
  EXPECT_EQ(clock.at_least(at(20s), at(10s + 50ms)), at(120s - 20ms));
  EXPECT_EQ(clock.at_least(MonotonicTime::never(), at(11s)), MonotonicTime::never());
}

TEST(PeerClock, ForgetsWhatAPauseOfThePeerHasMadeWrong) {
  PeerClock clock;
  clock.note(at(10s), at(110s), at(10s + 1ms));
  // Their clock stood still for 30 s.
  clock.note(at(50s), at(120s), at(50s + 1ms));
  EXPECT_EQ(clock.at_least(at(60s), at(50s + 1ms)), at(130s - 1ms));
}

// Law: whatever the ways take and however clocks drift within the bound, a moment that is told is
// not later for the peer than it is for us; and it is early by no more than the way back and drift.
RC_GTEST_PROP(PeerClockLaws, AMomentThatIsToldIsNeverLate, ()) {
  const auto ahead =
      Duration(*rc::gen::inRange<std::int64_t>(-1'000'000'000'000, 1'000'000'000'000));
  const auto drift_ppm = *rc::gen::inRange<std::int64_t>(-900, 900);
  const auto theirs_at = [&](MonotonicTime ours) {
    return ours + ahead + ours.since_origin() / 1'000'000 * drift_ppm;
  };
  PeerClock clock;
  MonotonicTime now = at(2000s);
  Duration way_back{0};
  for (int i = *rc::gen::inRange(1, 6); i > 0; --i) {
    const Duration there(*rc::gen::inRange<std::int64_t>(0, 100'000'000));
    way_back = Duration(*rc::gen::inRange<std::int64_t>(0, 100'000'000));
    const MonotonicTime asked = now;
    now = asked + there + way_back;
    clock.note(asked, theirs_at(asked + there), now);
    now = now + Duration(*rc::gen::inRange<std::int64_t>(0, 3'000'000'000));
  }
  const auto told = clock.at_least(now, now);
  RC_ASSERT(told.has_value());
  RC_ASSERT(*told <= theirs_at(now));
  RC_ASSERT(theirs_at(now) - *told <= way_back + Duration(3s) / 400);
}

}  // namespace
}  // namespace helenus::rpc
