// Primitives under many tasks at once, with waits that are cut at every moment: nothing is lost,
// nothing is handed out twice.
#include <algorithm>
#include <memory>
#include <vector>

#include "base/prng.h"
#include "runtime/call_on.h"
#include "runtime/channel.h"
#include "runtime/contract/contract.h"
#include "runtime/event.h"
#include "runtime/semaphore.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"

namespace helenus::runtime::contract {

namespace {

using base::Errc;
using base::Error;
using base::Prng;
using base::Result;

constexpr int kTasks = 20;
constexpr int kRounds = 40;

Duration up_to(Prng& dice, Duration longest) {
  return Duration(dice.below(static_cast<std::uint64_t>(longest.count()) + 1));
}

Task<void> nap(Runtime& rt, Duration duration) {
  const auto slept = co_await sleep_for(rt, duration, {});
  EXPECT_TRUE(slept.has_value());
}

// ---- Semaphore ----

struct Shared {
  std::size_t out = 0;
  int granted = 0;
  int cut = 0;
};

Task<void> borrow(Runtime& rt, Semaphore& semaphore, Shared& shared, Prng dice) {
  for (int round = 0; round < kRounds; ++round) {
    const std::size_t units = 1 + dice.below(semaphore.units_total());
    const auto until = Until::after(rt, up_to(dice, 300us));
    const auto permit = co_await semaphore.acquire(units, until);
    if (!permit) {
      EXPECT_TRUE(permit.failed_with(Errc::timeout));
      ++shared.cut;
      continue;
    }
    ++shared.granted;
    shared.out += units;
    EXPECT_LE(shared.out, semaphore.units_total());
    co_await nap(rt, up_to(dice, 30us));
    shared.out -= units;
  }
}

}  // namespace

TEST_P(PrimitivesContract, UnitsAreNeitherLostNorLentTwiceWhenWaitsAreCut) {
  run([](Runtime& rt) -> Task<void> {
    Semaphore semaphore(rt, 5, kTasks);
    Shared shared;
    TaskGroup group(rt);
    for (std::uint64_t task = 0; task < kTasks; ++task) {
      group.spawn(borrow(rt, semaphore, shared, Prng(task)));
    }
    co_await group.join();
    EXPECT_EQ(semaphore.units_free(), 5U);
    EXPECT_EQ(semaphore.waiters(), 0U);
    EXPECT_EQ(shared.granted + shared.cut, kTasks * kRounds);
    EXPECT_GT(shared.granted, 0);
  });
}

// ---- Channel ----

namespace {

struct Traffic {
  std::vector<int> pushed;
  std::vector<int> popped;
  int producers = 0;
};

Task<void> produce(Runtime& rt, Channel<int>& channel, Traffic& traffic, int task) {
  Prng dice(static_cast<std::uint64_t>(task));
  for (int round = 0; round < kRounds; ++round) {
    const int element = task * kRounds + round;
    const auto pushed = co_await channel.push(element, Until::after(rt, up_to(dice, 100us)));
    EXPECT_TRUE(pushed.has_value() || pushed.failed_with(Errc::timeout));
    if (pushed) traffic.pushed.push_back(element);
    if (dice.chance(0.2) && channel.try_push(-element - 1)) traffic.pushed.push_back(-element - 1);
    co_await nap(rt, up_to(dice, 20us));
  }
  if (--traffic.producers == 0) channel.close();
}

Task<void> consume(Runtime& rt, Channel<int>& channel, Traffic& traffic, int task) {
  Prng dice(static_cast<std::uint64_t>(task) + 1000);
  for (;;) {
    const auto popped = co_await channel.pop(Until::after(rt, 1us + up_to(dice, 100us)));
    if (popped.failed_with(Errc::closed)) co_return;
    EXPECT_TRUE(popped.has_value() || popped.failed_with(Errc::timeout));
    if (popped) traffic.popped.push_back(*popped);
    if (const auto more = channel.try_pop()) traffic.popped.push_back(*more);
    co_await nap(rt, up_to(dice, 20us));
  }
}

}  // namespace

TEST_P(PrimitivesContract, AChannelLosesNothingBetweenManyWhoGiveUpAndComeAgain) {
  run([](Runtime& rt) -> Task<void> {
    Channel<int> channel(rt, 3);
    Traffic traffic;
    traffic.producers = kTasks;
    TaskGroup group(rt);
    for (int task = 0; task < kTasks; ++task) group.spawn(produce(rt, channel, traffic, task));
    for (int task = 0; task < kTasks / 2; ++task) group.spawn(consume(rt, channel, traffic, task));
    co_await group.join();
    EXPECT_EQ(channel.size(), 0U);
    std::ranges::sort(traffic.pushed);
    std::ranges::sort(traffic.popped);
    EXPECT_EQ(traffic.popped, traffic.pushed);
    EXPECT_FALSE(traffic.popped.empty());
  });
}

TEST_P(PrimitivesContract, ClosingAChannelWakesEveryoneWhoWaits) {
  run([](Runtime& rt) -> Task<void> {
    struct Waits {
      static Task<void> push(Channel<int>& channel, int& closed) {
        const auto pushed = co_await channel.push(1, Until::forever());
        closed += pushed.failed_with(Errc::closed) ? 1 : 0;
      }
      static Task<void> pop(Channel<int>& channel, int& closed) {
        const auto popped = co_await channel.pop(Until::forever());
        closed += popped.failed_with(Errc::closed) ? 1 : 0;
      }
    };
    Channel<int> full(rt, 1);
    Channel<int> empty(rt, 1);
    EXPECT_TRUE(full.try_push(0).has_value());
    int closed = 0;
    TaskGroup group(rt);
    for (int task = 0; task < 3; ++task) {
      group.spawn(Waits::push(full, closed));
      group.spawn(Waits::pop(empty, closed));
    }
    co_await nap(rt, 1ms);
    full.close();
    empty.close();
    co_await group.join();
    EXPECT_EQ(closed, 6);
    EXPECT_EQ(full.try_pop(), 0) << "what was inside can be taken out";
  });
}

// ---- Event ----

TEST_P(PrimitivesContract, AnEventThatIsResetLetsOnlyLaterOnesWait) {
  run([](Runtime& rt) -> Task<void> {
    Event event(rt);
    event.set();
    CO_ASSERT_OK(co_await event.wait(Until::forever()));
    CO_ASSERT_OK(co_await event.wait({.deadline = MonotonicTime(), .stop = {}}));
    event.reset();
    EXPECT_FALSE(event.is_set());
    const auto waited = co_await event.wait(Until::after(rt, 1ms));
    EXPECT_TRUE(waited.failed_with(Errc::timeout));
  });
}

// ---- Stops ----

TEST_P(PrimitivesContract, AStopInsideTheStartOfAWaitEndsIt) {
  // Stops its own source when it starts, as a source that fails at once might.
  class Stopping final : public Operation<void> {
   public:
    Stopping(Runtime& rt, StopSource& source)
        : Operation(rt, Until::after(rt, 1h, source.token())), source_(source) {}

   private:
    void start() override { source_.request_stop(); }
    void cancel() override { complete(Error(Errc::cancelled)); }
    StopSource& source_;
  };
  run([](Runtime& rt) -> Task<void> {
    StopSource source;
    const auto waited = co_await Stopping(rt, source);
    EXPECT_TRUE(waited.failed_with(Errc::cancelled));
  });
}

TEST_P(PrimitivesContract, ASourceMayStillSucceedAfterAWaitIsCut) {
  // Completes with success when it is told to cancel: it was on its way.
  class Late final : public Operation<int> {
   public:
    explicit Late(Runtime& rt) : Operation(rt, Until::after(rt, 1ms)) {}

   private:
    void start() override {}
    void cancel() override { complete(7); }
  };
  run([](Runtime& rt) -> Task<void> {
    const auto waited = co_await Late(rt);
    EXPECT_THAT(waited, Holds(7));
  });
}

TEST_P(PrimitivesContract, OneStopEndsEveryWaitOfATree) {
  run([](Runtime& rt) -> Task<void> {
    struct Waits {
      static Task<void> on(Runtime& rt_, StopToken stop, int& cancelled) {
        StopSource own(stop);
        Event never(rt_);
        const auto waited = co_await never.wait(Until::after(rt_, 1h, own.token()));
        cancelled += waited.failed_with(Errc::cancelled) ? 1 : 0;
      }
    };
    StopSource root;
    int cancelled = 0;
    TaskGroup group(rt);
    for (int task = 0; task < kTasks; ++task) group.spawn(Waits::on(rt, root.token(), cancelled));
    co_await nap(rt, 1ms);
    root.request_stop();
    co_await group.join();
    EXPECT_EQ(cancelled, kTasks);
  });
}

// ---- Cores ----

TEST_P(CoresContract, MessagesThatWaitForACoreAreBounded) {
  world(1);
  run([](Runtime& rt) -> Task<void> {
    const auto ran = std::make_shared<std::size_t>(0);
    const auto count = [ran](Runtime&) { ++*ran; };
    for (std::size_t sent = 0; sent < Cores::kWaitingMax; ++sent) {
      CO_ASSERT_OK(rt.cores.send(CoreId{0}, count));
    }
    EXPECT_EQ(*ran, 0U) << "a message goes through the queue, even to its own core";
    EXPECT_TRUE(rt.cores.send(CoreId{0}, count).failed_with(Errc::overloaded));
    rt.cores.reply(CoreId{0}, count);
    while (*ran <= Cores::kWaitingMax) co_await nap(rt, 1us);
    EXPECT_TRUE(rt.cores.send(CoreId{0}, count).has_value());
    while (*ran <= Cores::kWaitingMax + 1) co_await nap(rt, 1us);
  });
}

TEST_P(CoresContract, ACallThatACoreHasNoRoomForIsRefusedAtOnce) {
  world(1);
  run([](Runtime& rt) -> Task<void> {
    for (std::size_t sent = 0; sent < Cores::kWaitingMax; ++sent) {
      CO_ASSERT_OK(rt.cores.send(CoreId{0}, [](Runtime&) {}));
    }
    struct There {
      static Task<Result<int>> number(Runtime&) { co_return 1; }
    };
    const auto called = co_await call_on<int>(rt, CoreId{0}, There::number, Until::forever());
    EXPECT_TRUE(called.failed_with(Errc::overloaded));
  });
}

TEST_P(CoresContract, CallsThatAreCutAtAnyMomentAreAnsweredOnce) {
  world(2);
  run([](Runtime& rt) -> Task<void> {
    struct There {
      static Task<Result<int>> number(Runtime& there) {
        const auto slept = co_await sleep_for(there, 20us, {});
        EXPECT_TRUE(slept.has_value());
        co_return 1;
      }
      static Task<void> call(Runtime& here, Prng dice, int& ended) {
        for (int round = 0; round < kRounds; ++round) {
          const auto until = Until::after(here, up_to(dice, 60us));
          const auto called = co_await call_on<int>(here, CoreId{1}, number, until);
          EXPECT_TRUE(called.has_value() || called.failed_with(Errc::timeout));
          ++ended;
        }
      }
    };
    int ended = 0;
    TaskGroup group(rt);
    for (std::uint64_t task = 0; task < kTasks; ++task) {
      group.spawn(There::call(rt, Prng(task), ended));
    }
    co_await group.join();
    EXPECT_EQ(ended, kTasks * kRounds);
  });
}

}  // namespace helenus::runtime::contract
