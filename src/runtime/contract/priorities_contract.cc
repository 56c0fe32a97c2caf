// Foreground before background: which queue work is on, in which order the queues go, and that
// neither starves.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/call_on.h"
#include "runtime/channel.h"
#include "runtime/contract/contract.h"
#include "runtime/event.h"
#include "runtime/executor.h"
#include "runtime/in_background.h"
#include "runtime/run_on.h"
#include "runtime/semaphore.h"
#include "runtime/sleep.h"
#include "runtime/take_turn.h"
#include "runtime/task_group.h"
#include "runtime/when_all.h"

namespace helenus::runtime::contract {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PrioritiesContract);

namespace {

using base::Result;

constexpr auto kForeground = Priority::foreground;
constexpr auto kBackground = Priority::background;
// A test that would take longer has starved somebody.
constexpr Duration kPatience = std::chrono::seconds(30);

Task<void> note(std::string& notes, char letter) {
  notes.push_back(letter);
  co_return;
}

Task<Result<Priority>> priority_there(Runtime& there) {
  const auto slept = co_await sleep_for(there, 1us, {});
  EXPECT_TRUE(slept.has_value());
  co_return there.executor.running();
}

Task<void> look_twice(Runtime& rt, std::vector<Priority>& seen) {
  seen.push_back(rt.executor.running());
  const auto slept = co_await sleep_for(rt, 1us, {});
  EXPECT_TRUE(slept.has_value());
  seen.push_back(rt.executor.running());
}

// Lets others run all the time, until told to end.
Task<void> keep_busy(Runtime& rt, const bool& ended, int& rounds) {
  while (!ended) {
    const auto yielded = co_await yield_now(rt);
    EXPECT_TRUE(yielded.has_value());
    ++rounds;
  }
}

Task<void> take_rounds(Runtime& rt, int count, bool& ended) {
  for (int round = 0; round < count; ++round) {
    const auto yielded = co_await yield_now(rt);
    EXPECT_TRUE(yielded.has_value());
  }
  ended = true;
}

}  // namespace

TEST_P(PrioritiesContract, OfWhatIsReadyTheForegroundRunsFirst) {
  run([](Runtime& rt) -> Task<void> {
    std::string notes;
    TaskGroup background(rt, kBackground);
    TaskGroup foreground(rt);
    for (int task = 0; task < 4; ++task) {
      background.spawn(note(notes, 'b'));
      foreground.spawn(note(notes, 'f'));
    }
    co_await background.join();
    co_await foreground.join();
    EXPECT_EQ(notes, "ffffbbbb");
  });
}

TEST_P(PrioritiesContract, WhoeverBackgroundWorkWakesGoesBeforeTheRestOfIt) {
  run([](Runtime& rt) -> Task<void> {
    struct Story {
      static Task<void> wait(Event& event, std::string& notes) {
        const auto waited = co_await event.wait(Until::forever());
        EXPECT_TRUE(waited.has_value());
        notes.push_back('f');
      }
      static Task<void> wake(Event& event, std::string& notes, int& left) {
        notes.push_back('b');
        if (--left == 0) event.set();
        co_return;
      }
    };
    std::string notes;
    Event event(rt);
    TaskGroup foreground(rt);
    TaskGroup background(rt, kBackground);
    foreground.spawn(Story::wait(event, notes));
    const auto slept = co_await sleep_for(rt, 1ms, {});
    CO_ASSERT_OK(slept);
    int left = 2;
    for (int task = 0; task < 4; ++task) background.spawn(Story::wake(event, notes, left));
    co_await background.join();
    co_await foreground.join();
    EXPECT_EQ(notes, "bbfbb");
  });
}

TEST_P(PrioritiesContract, ATaskHasThePriorityOfItsGroupWhoeverSpawnsIt) {
  run([](Runtime& rt) -> Task<void> {
    struct Story {
      static Task<void> spawn_into(TaskGroup& group, Runtime& rt_, std::vector<Priority>& seen) {
        group.spawn(look_twice(rt_, seen));
        co_return;
      }
    };
    std::vector<Priority> seen;
    TaskGroup background(rt, kBackground);
    TaskGroup foreground(rt);
    EXPECT_EQ(rt.executor.running(), kForeground);
    background.spawn(look_twice(rt, seen));
    co_await background.join();
    EXPECT_EQ(seen, (std::vector{kBackground, kBackground}));
    EXPECT_EQ(rt.executor.running(), kForeground) << "though background work has woken it";
    seen.clear();
    background.spawn(Story::spawn_into(foreground, rt, seen));
    co_await background.join();
    co_await foreground.join();
    EXPECT_EQ(seen, (std::vector{kForeground, kForeground}));
  });
}

TEST_P(PrioritiesContract, BackgroundWorkStaysSoWhateverItWaitsFor) {
  world(2);
  run([](Runtime& rt) -> Task<void> {
    struct Story {
      static Task<int> nap(Runtime& rt_, Duration duration) {
        const auto slept = co_await sleep_for(rt_, duration, {});
        EXPECT_TRUE(slept.has_value());
        co_return 1;
      }
      static Task<Result<Priority>> there_until(Runtime& there, Until) {
        return priority_there(there);
      }
      static Task<void> wait_for_all(Runtime& rt_, Event& event, Semaphore& semaphore,
                                     Channel<int>& channel) {
        const auto expect_background = [&](const char* after) {
          EXPECT_EQ(rt_.executor.running(), kBackground) << after;
        };
        CO_ASSERT_OK(co_await yield_now(rt_));
        expect_background("a yield");
        CO_ASSERT_OK(co_await take_turn(rt_, Until::forever()));
        expect_background("a turn");
        CO_ASSERT_OK(co_await event.wait(Until::forever()));
        expect_background("an event that foreground work has set");
        CO_ASSERT_OK(co_await semaphore.acquire(1, Until::forever()));
        expect_background("a semaphore");
        CO_ASSERT_OK(co_await channel.pop(Until::forever()));
        expect_background("a channel");
        EXPECT_FALSE((co_await Event(rt_).wait(Until::after(rt_, 1us))).has_value());
        expect_background("a timeout");
        const auto both = co_await when_all(nap(rt_, 2us), nap(rt_, 1us));
        EXPECT_EQ(std::get<0>(both), 1);
        expect_background("two at once");
        const auto called =
            co_await call_on<Priority>(rt_, CoreId{1}, priority_there, Until::forever());
        EXPECT_THAT(called, Holds(kBackground));
        const auto ran = co_await run_on<Priority>(rt_, CoreId{1}, there_until, Until::forever());
        EXPECT_THAT(ran, Holds(kBackground));
        expect_background("another core");
        co_await in_background(rt_, look_nowhere());
        expect_background("what is in the background anyway");
      }
      static Task<void> look_nowhere() { co_return; }
    };
    Event event(rt);
    Semaphore semaphore(rt, 1, 1);
    Channel<int> channel(rt, 1);
    TaskGroup background(rt, kBackground);
    {
      const Permit held = semaphore.try_acquire(1);
      background.spawn(Story::wait_for_all(rt, event, semaphore, channel));
      CO_ASSERT_OK(co_await sleep_for(rt, 1ms, {}));
      event.set();
      CO_ASSERT_OK(co_await sleep_for(rt, 1ms, {}));
    }
    CO_ASSERT_OK(co_await sleep_for(rt, 1ms, {}));
    CO_ASSERT_OK(channel.try_push(1));
    co_await background.join();
    const auto called = co_await call_on<Priority>(rt, CoreId{1}, priority_there, Until::forever());
    EXPECT_THAT(called, Holds(kForeground)) << "of foreground work";
  });
}

TEST_P(PrioritiesContract, APartOfARequestRunsInTheBackgroundAndTheRestDoesNot) {
  run([](Runtime& rt) -> Task<void> {
    struct Story {
      static Task<Priority> after_a_wait(Runtime& rt_) {
        const auto slept = co_await sleep_for(rt_, 1us, {});
        EXPECT_TRUE(slept.has_value());
        co_return rt_.executor.running();
      }
    };
    std::vector<Priority> seen;
    co_await in_background(rt, look_twice(rt, seen));
    EXPECT_EQ(seen, (std::vector{kBackground, kBackground}));
    EXPECT_EQ(rt.executor.running(), kForeground);
    EXPECT_EQ(co_await in_background(rt, Story::after_a_wait(rt)), kBackground);
    EXPECT_EQ(rt.executor.running(), kForeground);
  });
}

TEST_P(PrioritiesContract, ForegroundThatIsAlwaysBusyDoesNotStarveTheBackground) {
  run([](Runtime& rt) -> Task<void> {
    rt.executor.background_share().set_share(BackgroundShare::kLeast);
    bool ended = false;
    int rounds = 0;
    TaskGroup foreground(rt);
    TaskGroup background(rt, kBackground);
    for (int task = 0; task < 3; ++task) foreground.spawn(keep_busy(rt, ended, rounds));
    background.spawn(take_rounds(rt, 20, ended));
    CO_ASSERT_OK(co_await background.join(Until::after(rt, kPatience)));
    ended = true;
    co_await foreground.join();
    EXPECT_GT(rounds, 0);
  });
}

TEST_P(PrioritiesContract, BackgroundThatIsAlwaysBusyDoesNotStarveTheForeground) {
  run([](Runtime& rt) -> Task<void> {
    rt.executor.background_share().set_share(BackgroundShare::kMost);
    bool ended = false;
    int rounds = 0;
    TaskGroup foreground(rt);
    TaskGroup background(rt, kBackground);
    for (int task = 0; task < 3; ++task) background.spawn(keep_busy(rt, ended, rounds));
    foreground.spawn(take_rounds(rt, 200, ended));
    CO_ASSERT_OK(co_await foreground.join(Until::after(rt, kPatience)));
    ended = true;
    co_await background.join();
  });
}

// A write that waits for a flush, while other requests keep the core busy.
TEST_P(PrioritiesContract, ForegroundThatWaitsForTheBackgroundGoesOnThoughOthersAreBusy) {
  run([](Runtime& rt) -> Task<void> {
    struct Story {
      static Task<void> hold(Runtime& rt_, Semaphore& semaphore, Event& held) {
        const auto permit = co_await semaphore.acquire(1, Until::forever());
        EXPECT_TRUE(permit.has_value());
        held.set();
        for (int round = 0; round < 20; ++round) {
          const auto turn = co_await take_turn(rt_, Until::forever());
          EXPECT_TRUE(turn.has_value());
        }
      }
    };
    bool ended = false;
    int rounds = 0;
    Semaphore semaphore(rt, 1, 1);
    Event held(rt);
    TaskGroup foreground(rt);
    TaskGroup background(rt, kBackground);
    background.spawn(Story::hold(rt, semaphore, held));
    CO_ASSERT_OK(co_await held.wait(Until::after(rt, kPatience)));
    for (int task = 0; task < 3; ++task) foreground.spawn(keep_busy(rt, ended, rounds));
    {
      const auto permit = co_await semaphore.acquire(1, Until::after(rt, kPatience));
      EXPECT_TRUE(permit.has_value());
      EXPECT_EQ(rt.executor.running(), kForeground);
    }
    ended = true;
    co_await foreground.join();
    co_await background.join();
  });
}

namespace {

struct Spent {
  Duration foreground{0};
  Duration background{0};

  Duration all() const { return foreground + background; }
  double fraction() const {
    return static_cast<double>(background.count()) / static_cast<double>(all().count());
  }
};

constexpr Duration kStep = std::chrono::microseconds(20);

Task<void> step_on(Runtime& rt, const bool& ended, Duration& spent) {
  while (!ended) {
    const MonotonicTime began_at = rt.clock.now();
    // In the simulator no time passes here.
    for (int look = 0; look < 1000 && rt.clock.now() - began_at < kStep; ++look) {
    }
    spent += std::max(kStep, rt.clock.now() - began_at);
    const auto turn = co_await take_turn(rt, Until::forever());
    EXPECT_TRUE(turn.has_value());
  }
}

// A processor that others use too takes the time of those that wait for the share to be due.
bool is_about(double fraction, double share) {
  return fraction > share / 4 && fraction < share + 0.08;
}

// What background work gets of a busy core in the long run.
Task<double> fraction_got(Runtime& rt, double expected) {
  bool ended = false;
  Spent spent;
  TaskGroup foreground(rt);
  TaskGroup background(rt, kBackground);
  for (int task = 0; task < 3; ++task) foreground.spawn(step_on(rt, ended, spent.foreground));
  for (int task = 0; task < 3; ++task) background.spawn(step_on(rt, ended, spent.background));
  const MonotonicTime patience = rt.clock.now() + kPatience;
  do {
    const auto slept = co_await sleep_for(rt, 100us, {});
    EXPECT_TRUE(slept.has_value());
  } while ((spent.all() < 2000 * kStep || !is_about(spent.fraction(), expected)) &&
           rt.clock.now() < patience && spent.all() < kPatience);
  ended = true;
  co_await foreground.join();
  co_await background.join();
  co_return spent.fraction();
}

}  // namespace

TEST_P(PrioritiesContract, BothSidesComeToTheirSharesWhenBothAreBusy) {
  run([](Runtime& rt) -> Task<void> {
    for (const double share : {0.25, 0.5, 0.1}) {
      rt.executor.background_share().set_share(share);
      const double fraction = co_await fraction_got(rt, share);
      EXPECT_TRUE(is_about(fraction, share)) << fraction << " of " << share;
    }
  });
}

TEST_P(PrioritiesContract, PressureRaisesTheShareWhileItLasts) {
  run([](Runtime& rt) -> Task<void> {
    struct Much final : BackgroundPressure {
      double background_share_wanted() override { return 0.8; }
    };
    rt.executor.background_share().set_share(0.1);
    {
      Much pressure;
      rt.executor.background_share().add(pressure);
      const double fraction = co_await fraction_got(rt, 0.8);
      EXPECT_TRUE(is_about(fraction, 0.8)) << fraction;
    }
    const double fraction = co_await fraction_got(rt, 0.1);
    EXPECT_TRUE(is_about(fraction, 0.1)) << fraction;
  });
}

}  // namespace helenus::runtime::contract
