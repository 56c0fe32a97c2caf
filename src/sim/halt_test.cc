// A crash in the middle of things: suspended frames are destroyed where they wait, in whatever
// state the primitives between them are. Destructors run and must find nothing dangling.
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/call_on.h"
#include "runtime/channel.h"
#include "runtime/event.h"
#include "runtime/gate.h"
#include "runtime/quorum.h"
#include "runtime/semaphore.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "runtime/when_all.h"
#include "sim/world.h"

namespace helenus::sim {
namespace {

using runtime::CoreId;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::TaskGroup;
using runtime::Until;

using Story = Task<void> (*)(Runtime&);

class StoryProcess final : public Process {
 public:
  StoryProcess(Runtime& runtime, Story story) : runtime_(runtime), story_(story) {}
  Task<void> run(StopToken) override { return story_(runtime_); }

 private:
  Runtime& runtime_;
  Story story_;
};

// Lets the story run for a second, at which time it waits for something, and kills it there.
void tell_and_kill(Story story) {
  World world(1);
  Machine& machine = world.add_machine({.name = "victim", .cores = 2}, [story](Runtime& runtime) {
    return std::make_unique<StoryProcess>(runtime, story);
  });
  machine.start();
  world.run_for(1s);
  ASSERT_TRUE(machine.is_up()) << "the story ended before the crash";
  machine.kill();
}

Task<void> wait_forever(Runtime& runtime) {
  const auto slept = co_await runtime::sleep_for(runtime, 1000h, {});
  ADD_FAILURE() << "went on after " << (slept ? "sleeping" : "a stop");
}

Task<void> hold_one(Runtime& runtime, runtime::Semaphore& semaphore) {
  const auto permit = co_await semaphore.acquire(1, Until::forever());
  EXPECT_TRUE(permit.has_value());
  co_await wait_forever(runtime);
}

// ---- Semaphore ----

TEST(Halt, AWaiterMayVanishBeforeWhoeverHoldsTheUnits) {
  tell_and_kill([](Runtime& rt) -> Task<void> {
    runtime::Semaphore semaphore(rt, 1, 10);
    TaskGroup holders(rt);
    TaskGroup waiters(rt);  // the last member: destroyed first
    holders.spawn(hold_one(rt, semaphore));
    const auto slept = co_await runtime::sleep_for(rt, 1ms, {});
    EXPECT_TRUE(slept.has_value());
    waiters.spawn(hold_one(rt, semaphore));
    waiters.spawn(hold_one(rt, semaphore));
    co_await wait_forever(rt);
  });
}

TEST(Halt, WhoeverHoldsTheUnitsMayVanishBeforeAWaiter) {
  tell_and_kill([](Runtime& rt) -> Task<void> {
    runtime::Semaphore semaphore(rt, 1, 10);
    TaskGroup waiters(rt);
    TaskGroup holders(rt);
    holders.spawn(hold_one(rt, semaphore));
    const auto slept = co_await runtime::sleep_for(rt, 1ms, {});
    EXPECT_TRUE(slept.has_value());
    waiters.spawn(hold_one(rt, semaphore));
    waiters.spawn(hold_one(rt, semaphore));
    co_await wait_forever(rt);
  });
}

// ---- The others ----

Task<void> lead(Runtime& runtime, TaskGroup& group) {
  runtime::Semaphore semaphore(runtime, 2, 10);
  runtime::Gate gate(runtime);
  runtime::Event event(runtime);
  struct Follower {
    static Task<void> follow(Runtime& rt, runtime::Semaphore& units, runtime::Gate::Pass pass) {
      const runtime::Gate::Pass inside = std::move(pass);
      co_await hold_one(rt, units);
    }
  };
  for (int follower = 0; follower < 4; ++follower) {
    auto pass = gate.enter();
    group.spawn(Follower::follow(runtime, semaphore, *std::move(pass)));
  }
  const auto waited = co_await event.wait(Until::forever());
  EXPECT_TRUE(waited.has_value());
  co_await gate.close();
}

TEST(Halt, ATaskMayLeanOnAnOlderOneOfItsGroup) {
  tell_and_kill([](Runtime& rt) -> Task<void> {
    TaskGroup group(rt);
    group.spawn(lead(rt, group));
    co_await group.join();
  });
}

TEST(Halt, TasksThatHaveNotBegunAreDroppedWhereTheyAreQueued) {
  World world(1);
  Machine& machine = world.add_machine({.name = "victim"}, [](Runtime& runtime) {
    return std::make_unique<StoryProcess>(runtime, [](Runtime& rt) -> Task<void> {
      TaskGroup group(rt);
      // More than a turn runs, so that some are left when the machine dies.
      for (int task = 0; task < 1000; ++task) group.spawn(wait_forever(rt));
      co_await group.join();
    });
  });
  machine.start();
  ASSERT_TRUE(world.run_until([&] { return world.job_count() >= 40; }, 1s));
  machine.kill();
}

TEST(Halt, AQuorumMayVanishBeforeItsStragglersAndAfter) {
  for (const bool members_first : {false, true}) {
    struct Slow {
      static Task<base::Result<int>> answer(Runtime& rt) {
        co_await wait_forever(rt);
        co_return 1;
      }
      static Task<void> ask(Runtime& rt, TaskGroup& group) {
        std::vector<Task<base::Result<int>>> tasks;
        for (int peer = 0; peer < 3; ++peer) tasks.push_back(answer(rt));
        const auto outcome =
            co_await quorum(rt, group, 2, std::move(tasks), Until::after(rt, 1000h));
        EXPECT_FALSE(outcome.reached());
      }
      static Task<void> members_last(Runtime& rt) {
        TaskGroup members(rt);
        TaskGroup askers(rt);
        askers.spawn(ask(rt, members));
        co_await wait_forever(rt);
      }
      static Task<void> askers_last(Runtime& rt) {
        TaskGroup askers(rt);
        TaskGroup members(rt);
        askers.spawn(ask(rt, members));
        co_await wait_forever(rt);
      }
    };
    tell_and_kill(members_first ? Slow::askers_last : Slow::members_last);
  }
}

TEST(Halt, BranchesOfAWhenAllVanishWithIt) {
  tell_and_kill([](Runtime& rt) -> Task<void> {
    runtime::Channel<int> channel(rt, 1);
    runtime::Event event(rt);
    std::vector<Task<void>> tasks;
    tasks.push_back(wait_forever(rt));
    struct Waits {
      static Task<void> pop(runtime::Channel<int>& from) {
        const auto popped = co_await from.pop(Until::forever());
        EXPECT_FALSE(popped.has_value());
      }
      static Task<void> event(runtime::Event& on, Until until) {
        const auto waited = co_await on.wait(std::move(until));
        EXPECT_FALSE(waited.has_value());
      }
    };
    runtime::StopSource source;
    tasks.push_back(Waits::pop(channel));
    tasks.push_back(Waits::event(event, Until::after(rt, 1000h, source.token())));
    co_await when_all(std::move(tasks));
  });
}

TEST(Halt, ACallToAnotherCoreVanishesOnBothSides) {
  tell_and_kill([](Runtime& rt) -> Task<void> {
    struct There {
      static Task<base::Result<int>> serve(Runtime& there) {
        // Calls back, so that either side waits for the other.
        co_return co_await call_on<int>(there, CoreId{0}, sleep, Until::forever());
      }
      static Task<base::Result<int>> sleep(Runtime& there) {
        co_await wait_forever(there);
        co_return 1;
      }
    };
    const auto called = co_await call_on<int>(rt, CoreId{1}, There::serve, Until::forever());
    EXPECT_FALSE(called.has_value());
  });
}

// A destructor that speaks to primitives, as an object that ends its work does.
struct Farewell {
  runtime::Channel<int>& channel;
  runtime::Event& event;
  ~Farewell() {
    const auto pushed = channel.try_push(1);
    EXPECT_TRUE(pushed.has_value());
    channel.close();
    event.set();
  }
};

TEST(Halt, DestructorsMayWakeWaitersThatAreGone) {
  tell_and_kill([](Runtime& rt) -> Task<void> {
    struct Waits {
      static Task<void> pop(runtime::Channel<int>& from) {
        const auto popped = co_await from.pop(Until::forever());
        EXPECT_FALSE(popped.has_value());
      }
      static Task<void> event(runtime::Event& on) {
        const auto waited = co_await on.wait(Until::forever());
        EXPECT_FALSE(waited.has_value());
      }
    };
    runtime::Channel<int> channel(rt, 1);
    runtime::Event event(rt);
    const Farewell farewell{channel, event};
    TaskGroup group(rt);
    group.spawn(Waits::pop(channel));
    group.spawn(Waits::event(event));
    co_await wait_forever(rt);
  });
}

}  // namespace
}  // namespace helenus::sim
