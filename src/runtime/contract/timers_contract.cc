// What Clock, Timers and sleeping promise, in any world.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "runtime/contract/contract.h"
#include "runtime/sleep.h"

namespace helenus::runtime::contract {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TimersContract);

namespace {

// Notes its number when it fires.
class NotingTimer final : public Timer {
 public:
  NotingTimer(int number, std::vector<int>& fired) : number_(number), fired_(fired) {}
  void fire() override { fired_.push_back(number_); }

 private:
  int number_;
  std::vector<int>& fired_;
};

// Stops a source when it fires.
class StoppingTimer final : public Timer {
 public:
  explicit StoppingTimer(StopSource& source) : source_(source) {}
  void fire() override { source_.request_stop(); }

 private:
  StopSource& source_;
};

}  // namespace

TEST_P(TimersContract, SleepEndsNotBeforeItsMoment) {
  run([](Runtime& rt) -> Task<void> {
    const MonotonicTime before = rt.clock.now();
    const auto slept = co_await sleep_for(rt, 3ms, {});
    CO_ASSERT_OK(slept);
    EXPECT_GE(rt.clock.now() - before, 3ms);
  });
}

TEST_P(TimersContract, SleepUntilThePastEndsAtOnce) {
  run([](Runtime& rt) -> Task<void> {
    const auto slept = co_await sleep_until(rt, MonotonicTime(), {});
    CO_ASSERT_OK(slept);
  });
}

TEST_P(TimersContract, MonotonicClockNeverGoesBack) {
  run([](Runtime& rt) -> Task<void> {
    MonotonicTime last = rt.clock.now();
    for (int turn = 0; turn < 1000; ++turn) {
      const auto yielded = co_await yield_now(rt);
      CO_ASSERT_OK(yielded);
      const MonotonicTime now = rt.clock.now();
      EXPECT_GE(now, last);
      last = now;
    }
  });
}

TEST_P(TimersContract, WallClockIsAfterTheYear2020) {
  run([](Runtime& rt) -> Task<void> {
    EXPECT_GE(to_string(rt.clock.wall_now()), "2020-01-01");
    co_return;
  });
}

TEST_P(TimersContract, TimersFireByMomentAndThenByOrderArmed) {
  run([](Runtime& rt) -> Task<void> {
    std::vector<int> fired;
    NotingTimer late(3, fired), early(0, fired), first(1, fired), second(2, fired);
    const MonotonicTime now = rt.clock.now();
    rt.timers.arm(late, now + 4ms);
    rt.timers.arm(first, now + 2ms);
    rt.timers.arm(second, now + 2ms);
    rt.timers.arm(early, now + 1ms);
    const auto slept = co_await sleep_until(rt, now + 5ms, {});
    CO_ASSERT_OK(slept);
    EXPECT_EQ(fired, (std::vector{0, 1, 2, 3}));
  });
}

TEST_P(TimersContract, ArmingNeverFiresFromInsideTheCall) {
  run([](Runtime& rt) -> Task<void> {
    std::vector<int> fired;
    NotingTimer timer(7, fired);
    rt.timers.arm(timer, MonotonicTime());
    EXPECT_TRUE(fired.empty());
    EXPECT_TRUE(timer.armed());
    const auto slept = co_await sleep_for(rt, 1ms, {});
    CO_ASSERT_OK(slept);
    EXPECT_EQ(fired, std::vector{7});
    EXPECT_FALSE(timer.armed());
  });
}

TEST_P(TimersContract, DisarmedAndDestroyedTimersStaySilent) {
  run([](Runtime& rt) -> Task<void> {
    std::vector<int> fired;
    NotingTimer disarmed(1, fired);
    auto destroyed = std::make_unique<NotingTimer>(2, fired);
    rt.timers.arm(disarmed, rt.clock.now() + 1ms);
    rt.timers.arm(*destroyed, rt.clock.now() + 1ms);
    disarmed.disarm();
    destroyed.reset();
    const auto slept = co_await sleep_for(rt, 3ms, {});
    CO_ASSERT_OK(slept);
    EXPECT_TRUE(fired.empty());
  });
}

TEST_P(TimersContract, ArmingAgainMovesATimer) {
  run([](Runtime& rt) -> Task<void> {
    std::vector<int> fired;
    NotingTimer moved(1, fired), fixed(2, fired);
    const MonotonicTime now = rt.clock.now();
    rt.timers.arm(moved, now + 1ms);
    rt.timers.arm(fixed, now + 2ms);
    rt.timers.arm(moved, now + 3ms);
    const auto slept = co_await sleep_until(rt, now + 4ms, {});
    CO_ASSERT_OK(slept);
    EXPECT_EQ(fired, (std::vector{2, 1}));
  });
}

TEST_P(TimersContract, ThousandsOfTimersKeepTheirOrderWhileOthersLeave) {
  run([](Runtime& rt) -> Task<void> {
    constexpr int kTimers = 5000;
    base::Prng dice(1);
    std::vector<int> fired;
    std::vector<std::unique_ptr<NotingTimer>> timers;
    std::vector<MonotonicTime> moments;
    const MonotonicTime now = rt.clock.now();
    for (int number = 0; number < kTimers; ++number) {
      timers.push_back(std::make_unique<NotingTimer>(number, fired));
      moments.push_back(now + Duration(dice.below(20'000'000)));
      rt.timers.arm(*timers.back(), moments.back());
    }
    std::vector<int> expected;
    for (int number = 0; number < kTimers; ++number) {
      if (dice.chance(0.5)) {
        timers[static_cast<std::size_t>(number)]->disarm();
      } else {
        expected.push_back(number);
      }
    }
    std::ranges::sort(expected, {}, [&](int number) {
      return std::pair(moments[static_cast<std::size_t>(number)], number);
    });
    const auto slept = co_await sleep_until(rt, now + 25ms, {});
    CO_ASSERT_OK(slept);
    EXPECT_EQ(fired, expected);
  });
}

TEST_P(TimersContract, SleepIsCutByAStop) {
  run([](Runtime& rt) -> Task<void> {
    StopSource source;
    StoppingTimer stopper(source);
    rt.timers.arm(stopper, rt.clock.now() + 1ms);
    const auto slept = co_await sleep_for(rt, 1h, source.token());
    EXPECT_TRUE(slept.failed_with(base::Errc::cancelled));
    const auto again = co_await sleep_for(rt, 1h, source.token());
    EXPECT_TRUE(again.failed_with(base::Errc::cancelled));
  });
}

}  // namespace helenus::runtime::contract
