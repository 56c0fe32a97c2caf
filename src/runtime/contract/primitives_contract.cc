// Tasks, groups, gates, semaphores, channels, quorums, stops: the same behaviour in any world.
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/call_on.h"
#include "runtime/channel.h"
#include "runtime/contract/contract.h"
#include "runtime/event.h"
#include "runtime/gate.h"
#include "runtime/quorum.h"
#include "runtime/run_on.h"
#include "runtime/semaphore.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "runtime/when_all.h"

namespace helenus::runtime::contract {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PrimitivesContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CoresContract);

namespace {

using base::Errc;
using base::Error;
using base::Result;

Task<int> ready(int value) {
  co_return value;
}

Task<int> after(Runtime& rt, Duration wait, int value) {
  const auto slept = co_await sleep_for(rt, wait, {});
  EXPECT_TRUE(slept.has_value());
  co_return value;
}

Task<Result<int>> answer_after(Runtime& rt, Duration wait, Result<int> answer) {
  const auto slept = co_await sleep_for(rt, wait, {});
  EXPECT_TRUE(slept.has_value());
  co_return answer;
}

Task<void> note_after(Runtime& rt, Duration wait, std::vector<int>& notes, int note) {
  const auto slept = co_await sleep_for(rt, wait, {});
  EXPECT_TRUE(slept.has_value());
  notes.push_back(note);
}

Task<void> stop_after(Runtime& rt, Duration wait, StopSource& source) {
  const auto slept = co_await sleep_for(rt, wait, {});
  EXPECT_TRUE(slept.has_value());
  source.request_stop();
}

}  // namespace

// ---- Task ----

TEST_P(PrimitivesContract, MillionsOfReadyAwaitsUseNoStack) {
  run([](Runtime&) -> Task<void> {
    std::int64_t sum = 0;
    for (int turn = 0; turn < 2'000'000; ++turn) sum += co_await ready(1);
    EXPECT_EQ(sum, 2'000'000);
  });
}

TEST_P(PrimitivesContract, ATaskThatIsNeverAwaitedNeverRuns) {
  run([](Runtime& rt) -> Task<void> {
    std::vector<int> notes;
    {
      const Task<void> dropped = note_after(rt, 0ms, notes, 1);
    }
    const auto slept = co_await sleep_for(rt, 1ms, {});
    CO_ASSERT_OK(slept);
    EXPECT_TRUE(notes.empty());
  });
}

TEST_P(PrimitivesContract, TasksCarryMoveOnlyValues) {
  run([](Runtime&) -> Task<void> {
    struct Make {
      static Task<std::unique_ptr<int>> box(int value) { co_return std::make_unique<int>(value); }
    };
    const auto box = co_await Make::box(5);
    EXPECT_EQ(*box, 5);
  });
}

// ---- TaskGroup ----

TEST_P(PrimitivesContract, SpawnDoesNotRunTheTaskInline) {
  run([](Runtime& rt) -> Task<void> {
    struct Noting {
      static Task<void> note(bool& ran) {
        ran = true;
        co_return;
      }
    };
    bool ran = false;
    TaskGroup group(rt);
    group.spawn(Noting::note(ran));
    EXPECT_FALSE(ran);
    EXPECT_EQ(group.size(), 1U);
    co_await group.join();
    EXPECT_TRUE(ran);
    EXPECT_TRUE(group.empty());
  });
}

TEST_P(PrimitivesContract, JoinWaitsForTasksSpawnedMeanwhile) {
  run([](Runtime& rt) -> Task<void> {
    struct Chain {
      static Task<void> link(Runtime& rt_, TaskGroup& group, std::vector<int>& notes, int left) {
        co_await note_after(rt_, 1ms, notes, left);
        if (left > 0) group.spawn(link(rt_, group, notes, left - 1));
      }
    };
    std::vector<int> notes;
    TaskGroup group(rt);
    group.spawn(Chain::link(rt, group, notes, 4));
    co_await group.join();
    EXPECT_EQ(notes, (std::vector{4, 3, 2, 1, 0}));
  });
}

TEST_P(PrimitivesContract, JoinCanBeCutAndTheTasksRunOn) {
  run([](Runtime& rt) -> Task<void> {
    std::vector<int> notes;
    TaskGroup group(rt);
    group.spawn(note_after(rt, 20ms, notes, 1));
    const auto joined = co_await group.join(Until::after(rt, 1ms));
    EXPECT_TRUE(joined.failed_with(Errc::timeout));
    EXPECT_EQ(group.size(), 1U);
    co_await group.join();
    EXPECT_EQ(notes, std::vector{1});
  });
}

TEST_P(PrimitivesContract, AFullGroupRefusesToSpawn) {
  run([](Runtime& rt) -> Task<void> {
    std::vector<int> notes;
    TaskGroup group(rt, 1);
    EXPECT_TRUE(group.try_spawn(note_after(rt, 1ms, notes, 1)));
    EXPECT_FALSE(group.try_spawn(note_after(rt, 1ms, notes, 2)));
    co_await group.join();
    EXPECT_EQ(notes, std::vector{1});
  });
}

// ---- Stops ----

TEST_P(PrimitivesContract, StoppingAParentStopsItsChildren) {
  run([](Runtime&) -> Task<void> {
    StopSource parent;
    StopSource child(parent.token());
    StopSource grandchild(child.token());
    EXPECT_FALSE(grandchild.stop_requested());
    child.request_stop();
    EXPECT_FALSE(parent.stop_requested());
    EXPECT_TRUE(grandchild.stop_requested());
    const StopSource born_late(child.token());
    EXPECT_TRUE(born_late.stop_requested());
    co_return;
  });
}

TEST_P(PrimitivesContract, ATokenOutlivesItsSource) {
  run([](Runtime&) -> Task<void> {
    StopToken token;
    EXPECT_FALSE(token.stop_possible());
    {
      StopSource source;
      token = source.token();
      source.request_stop();
    }
    EXPECT_TRUE(token.stop_requested());
    co_return;
  });
}

TEST_P(PrimitivesContract, AWaitWhoseDeadlineHasPassedDoesNotBegin) {
  run([](Runtime& rt) -> Task<void> {
    Event never(rt);
    const auto waited = co_await never.wait({.deadline = MonotonicTime(), .stop = {}});
    EXPECT_TRUE(waited.failed_with(Errc::timeout));
  });
}

TEST_P(PrimitivesContract, AStopWinsOverALaterDeadline) {
  run([](Runtime& rt) -> Task<void> {
    Event never(rt);
    StopSource source;
    TaskGroup group(rt);
    group.spawn(stop_after(rt, 1ms, source));
    const auto waited = co_await never.wait(Until::after(rt, 1h, source.token()));
    EXPECT_TRUE(waited.failed_with(Errc::cancelled));
    co_await group.join();
  });
}

// ---- when_all ----

TEST_P(PrimitivesContract, WhenAllKeepsTheOrderOfItsTasks) {
  run([](Runtime& rt) -> Task<void> {
    std::vector<Task<int>> tasks;
    tasks.push_back(after(rt, 3ms, 1));
    tasks.push_back(ready(2));
    tasks.push_back(after(rt, 1ms, 3));
    const auto values = co_await when_all(std::move(tasks));
    EXPECT_EQ(values, (std::vector{1, 2, 3}));
    const auto none = co_await when_all(std::vector<Task<int>>{});
    EXPECT_TRUE(none.empty());
  });
}

TEST_P(PrimitivesContract, WhenAllMixesKindsOfTasks) {
  run([](Runtime& rt) -> Task<void> {
    std::vector<int> notes;
    const auto [number, nothing, text] =
        co_await when_all(after(rt, 1ms, 7), note_after(rt, 2ms, notes, 1), ready(9));
    EXPECT_EQ(number, 7);
    EXPECT_EQ(text, 9);
    EXPECT_EQ(notes, std::vector{1});
    static_cast<void>(nothing);
  });
}

TEST_P(PrimitivesContract, WhenAllKeepsTheTypeOfALoneTask) {
  run([](Runtime&) -> Task<void> {
    struct Pair {
      static Task<std::pair<int, int>> make() { co_return std::pair(1, 2); }
      static Task<std::tuple<int>> wrap() { co_return std::tuple(3); }
    };
    const std::tuple<std::pair<int, int>> pair = co_await when_all(Pair::make());
    EXPECT_EQ(std::get<0>(pair).second, 2);
    const std::tuple<std::tuple<int>> nested = co_await when_all(Pair::wrap());
    EXPECT_EQ(std::get<0>(std::get<0>(nested)), 3);
  });
}

TEST_P(PrimitivesContract, WhenAllOfVoidTasksWaitsForTheSlowest) {
  run([](Runtime& rt) -> Task<void> {
    std::vector<int> notes;
    std::vector<Task<void>> tasks;
    tasks.push_back(note_after(rt, 2ms, notes, 2));
    tasks.push_back(note_after(rt, 1ms, notes, 1));
    co_await when_all(std::move(tasks));
    EXPECT_EQ(notes, (std::vector{1, 2}));
  });
}

// ---- quorum ----

TEST_P(PrimitivesContract, QuorumGoesOnWhenEnoughHaveAnswered) {
  run([](Runtime& rt) -> Task<void> {
    TaskGroup group(rt);
    std::vector<Task<Result<int>>> tasks;
    tasks.push_back(answer_after(rt, 50ms, 1));
    tasks.push_back(answer_after(rt, 2ms, 2));
    tasks.push_back(answer_after(rt, 1ms, 3));
    const auto outcome = co_await quorum(rt, group, 2, std::move(tasks), Until::after(rt, 1h));
    EXPECT_TRUE(outcome.reached());
    CO_ASSERT_TRUE(outcome.answers.size() == 2);
    EXPECT_EQ(outcome.answers[0].task, 2U);
    EXPECT_EQ(outcome.answers[0].value, 3);
    EXPECT_EQ(outcome.answers[1].task, 1U);
    EXPECT_EQ(group.size(), 1U) << "the straggler runs on";
    co_await group.join();
  });
}

TEST_P(PrimitivesContract, QuorumGivesUpAsSoonAsItIsHopeless) {
  run([](Runtime& rt) -> Task<void> {
    TaskGroup group(rt);
    std::vector<Task<Result<int>>> tasks;
    tasks.push_back(answer_after(rt, 50ms, 1));
    tasks.push_back(answer_after(rt, 1ms, Error(Errc::io_error)));
    tasks.push_back(answer_after(rt, 2ms, Error(Errc::refused)));
    const auto outcome = co_await quorum(rt, group, 2, std::move(tasks), Until::after(rt, 1h));
    EXPECT_EQ(outcome.verdict, QuorumOutcome<int>::Verdict::unreachable);
    CO_ASSERT_TRUE(outcome.failures.size() == 2);
    EXPECT_EQ(outcome.failures[0].task, 1U);
    EXPECT_EQ(outcome.failures[1].error.code(), Errc::refused);
    co_await group.join();
  });
}

TEST_P(PrimitivesContract, QuorumTellsTimeoutFromCancellationAndKeepsWhatCame) {
  run([](Runtime& rt) -> Task<void> {
    TaskGroup group(rt);
    std::vector<Task<Result<int>>> slow;
    slow.push_back(answer_after(rt, 1ms, 1));
    slow.push_back(answer_after(rt, 40ms, 2));
    const auto late = co_await quorum(rt, group, 2, std::move(slow), Until::after(rt, 10ms));
    EXPECT_EQ(late.verdict, QuorumOutcome<int>::Verdict::timeout);
    EXPECT_EQ(late.answers.size(), 1U);

    StopSource source;
    group.spawn(stop_after(rt, 1ms, source));
    std::vector<Task<Result<int>>> stopped;
    stopped.push_back(answer_after(rt, 40ms, 1));
    const auto cut =
        co_await quorum(rt, group, 1, std::move(stopped), Until::after(rt, 1h, source.token()));
    EXPECT_EQ(cut.verdict, QuorumOutcome<int>::Verdict::cancelled);
    co_await group.join();
  });
}

TEST_P(PrimitivesContract, AQuorumOfNoneIsReachedAtOnce) {
  run([](Runtime& rt) -> Task<void> {
    TaskGroup group(rt);
    const auto outcome =
        co_await quorum(rt, group, 0, std::vector<Task<Result<int>>>{}, Until::forever());
    EXPECT_TRUE(outcome.reached());
  });
}

TEST_P(PrimitivesContract, AQuorumDoesNotWaitForWhomItCouldNotAsk) {
  run([](Runtime& rt) -> Task<void> {
    TaskGroup group(rt, 2);
    std::vector<Task<Result<int>>> enough;
    for (int task = 0; task < 3; ++task) enough.push_back(answer_after(rt, 1ms, task));
    const auto reached = co_await quorum(rt, group, 2, std::move(enough), Until::after(rt, 1h));
    EXPECT_TRUE(reached.reached());
    CO_ASSERT_TRUE(reached.failures.size() == 1);
    EXPECT_EQ(reached.failures[0].task, 2U);
    EXPECT_EQ(reached.failures[0].error.code(), Errc::overloaded);
    co_await group.join();

    std::vector<Task<Result<int>>> too_many;
    for (int task = 0; task < 4; ++task) too_many.push_back(answer_after(rt, 20ms, task));
    const auto refused = co_await quorum(rt, group, 3, std::move(too_many), Until::after(rt, 1h));
    EXPECT_EQ(refused.verdict, QuorumOutcome<int>::Verdict::unreachable);
    CO_ASSERT_TRUE(refused.failures.size() == 2);
    EXPECT_EQ(refused.failures[1].task, 3U);
    EXPECT_EQ(refused.failures[1].error.code(), Errc::overloaded);
    EXPECT_EQ(group.size(), 2U) << "did not wait for the others";
    co_await group.join();
  });
}

// ---- Semaphore ----

namespace {

Task<void> hold(Runtime& rt, Semaphore& semaphore, std::size_t units, Duration wait,
                std::vector<int>& notes, int note) {
  const auto permit = co_await semaphore.acquire(units, Until::forever());
  EXPECT_TRUE(permit.has_value());
  notes.push_back(note);
  const auto slept = co_await sleep_for(rt, wait, {});
  EXPECT_TRUE(slept.has_value());
}

Task<void> queue_in_turn(Runtime& rt, TaskGroup& group, Task<void> task) {
  group.spawn(std::move(task));
  const auto slept = co_await sleep_for(rt, 1ms, {});
  EXPECT_TRUE(slept.has_value());
}

}  // namespace

TEST_P(PrimitivesContract, ALargeRequestIsNotOvertakenBySmallOnes) {
  run([](Runtime& rt) -> Task<void> {
    Semaphore semaphore(rt, 2, 10);
    TaskGroup group(rt);
    std::vector<int> notes;
    co_await queue_in_turn(rt, group, hold(rt, semaphore, 1, 20ms, notes, 1));
    co_await queue_in_turn(rt, group, hold(rt, semaphore, 2, 1ms, notes, 2));
    co_await queue_in_turn(rt, group, hold(rt, semaphore, 1, 1ms, notes, 3));
    EXPECT_EQ(notes, std::vector{1});
    EXPECT_EQ(semaphore.try_acquire(1).units(), 0U) << "the queue comes first";
    co_await group.join();
    EXPECT_EQ(notes, (std::vector{1, 2, 3}));
    EXPECT_EQ(semaphore.units_free(), 2U);
  });
}

TEST_P(PrimitivesContract, AWaiterThatGivesUpLetsThoseBehindItPass) {
  run([](Runtime& rt) -> Task<void> {
    struct Impatient {
      static Task<void> wait(Runtime& rt_, Semaphore& semaphore) {
        const auto permit = co_await semaphore.acquire(2, Until::after(rt_, 5ms));
        EXPECT_TRUE(permit.failed_with(Errc::timeout));
      }
    };
    Semaphore semaphore(rt, 2, 10);
    TaskGroup group(rt);
    std::vector<int> notes;
    co_await queue_in_turn(rt, group, hold(rt, semaphore, 1, 500ms, notes, 1));
    co_await queue_in_turn(rt, group, Impatient::wait(rt, semaphore));
    co_await queue_in_turn(rt, group, hold(rt, semaphore, 1, 0ms, notes, 3));
    const auto slept = co_await sleep_for(rt, 50ms, {});
    CO_ASSERT_OK(slept);
    EXPECT_EQ(notes, (std::vector{1, 3})) << "did not wait for the first to end";
    co_await group.join();
  });
}

TEST_P(PrimitivesContract, SemaphoreWaitersAreBounded) {
  run([](Runtime& rt) -> Task<void> {
    Semaphore semaphore(rt, 1, 0);
    Permit held = semaphore.try_acquire(1);
    const auto refused = co_await semaphore.acquire(1, Until::forever());
    EXPECT_TRUE(refused.failed_with(Errc::overloaded));
    held.release();
    const auto granted = co_await semaphore.acquire(1, Until::forever());
    EXPECT_TRUE(granted.has_value());
  });
}

// ---- Gate ----

TEST_P(PrimitivesContract, AClosingGateRefusesNewcomersAndWaitsForThoseInside) {
  run([](Runtime& rt) -> Task<void> {
    struct Guest {
      static Task<void> stay(Runtime& rt_, Gate::Pass pass, std::vector<int>& notes) {
        co_await note_after(rt_, 5ms, notes, 1);
        const Gate::Pass left = std::move(pass);
      }
    };
    Gate gate(rt);
    TaskGroup group(rt);
    std::vector<int> notes;
    auto pass = gate.enter();
    CO_ASSERT_OK(pass);
    group.spawn(Guest::stay(rt, *std::move(pass), notes));
    co_await gate.close();
    EXPECT_EQ(notes, std::vector{1});
    EXPECT_TRUE(gate.enter().failed_with(Errc::closed));
    co_await gate.close();
    co_await group.join();
  });
}

// ---- Channel ----

TEST_P(PrimitivesContract, AFullChannelHoldsItsProducerBack) {
  run([](Runtime& rt) -> Task<void> {
    struct Producer {
      static Task<void> fill(Channel<int>& channel, int count, int& pushed) {
        for (; pushed < count; ++pushed) {
          const auto result = co_await channel.push(pushed, Until::forever());
          EXPECT_TRUE(result.has_value());
        }
        channel.close();
      }
    };
    Channel<int> channel(rt, 2);
    TaskGroup group(rt);
    int pushed = 0;
    group.spawn(Producer::fill(channel, 10, pushed));
    const auto slept = co_await sleep_for(rt, 2ms, {});
    CO_ASSERT_OK(slept);
    EXPECT_EQ(pushed, 2);
    EXPECT_TRUE(channel.try_push(99).failed_with(Errc::overloaded));
    for (int expected = 0; expected < 10; ++expected) {
      const auto element = co_await channel.pop(Until::forever());
      CO_ASSERT_OK(element);
      EXPECT_EQ(*element, expected);
    }
    const auto end = co_await channel.pop(Until::forever());
    EXPECT_TRUE(end.failed_with(Errc::closed));
    EXPECT_TRUE(channel.try_push(1).failed_with(Errc::closed));
    co_await group.join();
  });
}

TEST_P(PrimitivesContract, PoppingAnEmptyChannelCanBeCut) {
  run([](Runtime& rt) -> Task<void> {
    Channel<std::string> channel(rt, 1);
    const auto nothing = co_await channel.pop(Until::after(rt, 1ms));
    EXPECT_TRUE(nothing.failed_with(Errc::timeout));
    EXPECT_EQ(channel.try_pop(), std::nullopt);
    EXPECT_TRUE(channel.try_push("x").has_value());
    EXPECT_EQ(channel.try_pop(), "x");
  });
}

TEST_P(PrimitivesContract, ManyConsumersLoseNoElement) {
  run([](Runtime& rt) -> Task<void> {
    struct Consumer {
      static Task<void> drain(Channel<int>& channel, int& sum) {
        for (;;) {
          const auto element = co_await channel.pop(Until::forever());
          if (!element) co_return;
          sum += *element;
        }
      }
    };
    Channel<int> channel(rt, 3);
    TaskGroup group(rt);
    int sum = 0;
    for (int consumer = 0; consumer < 5; ++consumer) group.spawn(Consumer::drain(channel, sum));
    for (int element = 1; element <= 100; ++element) {
      const auto pushed = co_await channel.push(element, Until::forever());
      CO_ASSERT_OK(pushed);
    }
    channel.close();
    co_await group.join();
    EXPECT_EQ(sum, 5050);
  });
}

// ---- Cores ----

namespace {

Task<Result<int>> core_number(Runtime& there) {
  co_return static_cast<int>(there.cores.here().value());
}

Task<Result<int>> slow_answer(Runtime& there) {
  const auto slept = co_await sleep_for(there, 30ms, {});
  EXPECT_TRUE(slept.has_value());
  co_return 1;
}

}  // namespace

TEST_P(CoresContract, ATaskRunsOnTheCoreItIsSentTo) {
  world(2);
  run([](Runtime& rt) -> Task<void> {
    CO_ASSERT_TRUE(rt.cores.count() == 2);
    EXPECT_EQ(rt.cores.here(), CoreId{0});
    const auto there = co_await call_on<int>(rt, CoreId{1}, core_number, Until::after(rt, 10s));
    CO_ASSERT_OK(there);
    EXPECT_EQ(*there, 1);
    const auto here = co_await call_on<int>(rt, CoreId{0}, core_number, Until::after(rt, 10s));
    CO_ASSERT_OK(here);
    EXPECT_EQ(*here, 0);
  });
}

TEST_P(CoresContract, ACallThatIsCutLeavesItsTaskRunning) {
  world(2);
  run([](Runtime& rt) -> Task<void> {
    const auto cut = co_await call_on<int>(rt, CoreId{1}, slow_answer, Until::after(rt, 1ms));
    EXPECT_TRUE(cut.failed_with(Errc::timeout));
    const auto next = co_await call_on<int>(rt, CoreId{1}, slow_answer, Until::after(rt, 10s));
    EXPECT_TRUE(next.has_value());
  });
}

TEST_P(CoresContract, MessagesBetweenTwoCoresKeepTheirOrder) {
  world(2);
  run([](Runtime& rt) -> Task<void> {
    constexpr int kMessages = 2000;
    auto seen = std::make_shared<std::vector<int>>();
    for (int number = 0; number < kMessages; ++number) {
      const auto sent =
          rt.cores.send(CoreId{1}, [seen, number](Runtime&) { seen->push_back(number); });
      CO_ASSERT_OK(sent);
    }
    const auto flushed = co_await call_on<int>(rt, CoreId{1}, core_number, Until::after(rt, 10s));
    CO_ASSERT_OK(flushed);
    CO_ASSERT_TRUE(seen->size() == kMessages);
    for (int number = 0; number < kMessages; ++number) {
      EXPECT_EQ((*seen)[static_cast<std::size_t>(number)], number);
    }
  });
}

TEST_P(CoresContract, ManyCallsInBothDirectionsAllComeBack) {
  world(2);
  run([](Runtime& rt) -> Task<void> {
    struct Bounce {
      static Task<Result<int>> back(Runtime& there) {
        co_return co_await call_on<int>(there, CoreId{0}, core_number, Until::after(there, 10s));
      }
      static Task<Result<int>> once(Runtime& here) {
        co_return co_await call_on<int>(here, CoreId{1}, back, Until::after(here, 10s));
      }
    };
    std::vector<Task<Result<int>>> calls;
    for (int call = 0; call < 500; ++call) calls.push_back(Bounce::once(rt));
    for (const auto& result : co_await when_all(std::move(calls))) {
      CO_ASSERT_OK(result);
      EXPECT_EQ(*result, 0);
    }
  });
}

namespace {

Task<Result<int>> sleep_long(Runtime& there, Until until) {
  CO_TRY_VOID(co_await sleep_until(there, MonotonicTime::never(), until.stop));
  co_return 1;
}

Task<Result<int>> finish_late(Runtime& there, int* borrowed, Until until) {
  std::ignore = co_await sleep_until(there, MonotonicTime::never(), until.stop);
  std::ignore = co_await sleep_for(there, 5ms, {});
  *borrowed = static_cast<int>(there.cores.here().value());
  co_return 7;
}

}  // namespace

TEST_P(CoresContract, WorkOnAnotherCoreIsWaitedForToItsEnd) {
  world(2);
  run([](Runtime& rt) -> Task<void> {
    int borrowed = -1;
    const auto late = [&borrowed](Runtime& there, Until until) {
      return finish_late(there, &borrowed, std::move(until));
    };
    const auto done = co_await run_on<int>(rt, CoreId{1}, late, Until::after(rt, 1ms));
    CO_ASSERT_OK(done);
    EXPECT_EQ(*done, 7) << "what succeeded after all is a success";
    EXPECT_EQ(borrowed, 1) << "the frame it borrowed from was there";
  });
}

TEST_P(CoresContract, AStopTravelsToTheCoreThatWorks) {
  world(2);
  run([](Runtime& rt) -> Task<void> {
    const auto late = co_await run_on<int>(rt, CoreId{1}, sleep_long, Until::after(rt, 1ms));
    EXPECT_TRUE(late.failed_with(Errc::timeout));
    StopSource stop;
    struct Stopper {
      static Task<void> later(Runtime& rt, StopSource& stop) {
        std::ignore = co_await sleep_for(rt, 1ms, {});
        stop.request_stop();
      }
      static Task<Result<int>> wait(Runtime& rt, StopToken stop) {
        co_return co_await run_on<int>(rt, CoreId{1}, sleep_long, Until{.stop = std::move(stop)});
      }
    };
    auto both = co_await when_all(Stopper::wait(rt, stop.token()), Stopper::later(rt, stop));
    EXPECT_TRUE(std::get<0>(both).failed_with(Errc::cancelled));
    const auto before = co_await run_on<int>(rt, CoreId{1}, sleep_long, {.stop = stop.token()});
    EXPECT_TRUE(before.failed_with(Errc::cancelled));
  });
}

TEST_P(CoresContract, WorkCutAtAnyMomentComesBackOnce) {
  world(2);
  run([](Runtime& rt) -> Task<void> {
    struct Cut {
      static Task<Result<int>> work(Runtime& there, Until until) {
        CO_TRY_VOID(co_await sleep_for(there, 50us, until.stop));
        co_return 1;
      }
      static Task<Result<int>> once(Runtime& rt, int number) {
        co_return co_await run_on<int>(rt, CoreId{1}, work, Until::after(rt, number * 1us));
      }
    };
    std::vector<Task<Result<int>>> calls;
    for (int number = 0; number < 300; ++number) calls.push_back(Cut::once(rt, number));
    for (const auto& result : co_await when_all(std::move(calls))) {
      EXPECT_TRUE(result.has_value() || result.failed_with(Errc::timeout));
    }
  });
}

}  // namespace helenus::runtime::contract
