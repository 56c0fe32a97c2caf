#include "sim/world.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "runtime/call_on.h"
#include "runtime/channel.h"
#include "runtime/file_system.h"
#include "runtime/gate.h"
#include "runtime/semaphore.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "runtime/transport.h"
#include "sim/function_process.h"

namespace helenus::sim {
namespace {

using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;

Task<void> nap(Runtime& rt, Duration duration) {
  const auto slept = co_await runtime::sleep_for(rt, duration, {});
  EXPECT_TRUE(slept.has_value());
}

Task<void> tick_every_ms(Runtime& rt, int& ticks) {
  for (;;) {
    co_await nap(rt, 1ms);
    ++ticks;
  }
}

Machine& add_machine(World& world, FunctionProcess::Function function,
                     MachineOptions options = {}) {
  return world.add_machine(std::move(options), FunctionProcess::factory(std::move(function)));
}

// ---- Events and time ----

TEST(EventQueue, EventsComeByTimeAndThenInTheOrderScheduled) {
  EventQueue queue;
  base::Prng dice(1);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> expected;
  for (std::uint64_t number = 0; number < 2000; ++number) {
    const std::uint64_t at = dice.below(100);
    queue.push({.at = WorldTime(Duration(at)), .argument = number});
    expected.emplace_back(at, number);
    if (dice.chance(0.3)) {
      const auto least = std::ranges::min_element(expected);
      EXPECT_EQ(queue.pop().argument, least->second);
      expected.erase(least);
    }
  }
  std::ranges::sort(expected);
  for (const auto& [at, number] : expected) EXPECT_EQ(queue.pop().argument, number);
  EXPECT_TRUE(queue.empty());
}

TEST(World, AnHourOfSleepTakesNoTimeAtAll) {
  World world(1);
  Duration slept{0};
  Machine& machine = add_machine(world, [&](Runtime& rt, StopToken) -> Task<void> {
    const auto before = rt.clock.now();
    co_await nap(rt, 1h);
    slept = rt.clock.now() - before;
  });
  machine.start();
  world.run_for(2h);
  EXPECT_GE(slept, 1h);
  EXPECT_LT(slept, 1h + 1ms);
  EXPECT_FALSE(machine.is_up());
  EXPECT_EQ(machine.exits(), 1);
}

TEST(World, CallsComeBackAtTheirMoment) {
  World world(1);
  std::vector<int> calls;
  world.after(2s, [&] { calls.push_back(2); });
  world.after(1s, [&] {
    calls.push_back(1);
    world.after(-1s, [&] { calls.push_back(10); });
  });
  world.run_for(1500ms);
  EXPECT_EQ(calls, (std::vector{1, 10}));
  world.run_for(1s);
  EXPECT_EQ(calls, (std::vector{1, 10, 2}));
}

TEST(World, CodeThatNeverWaitsLetsTimePassAllTheSame) {
  World world(1);
  Machine& machine = add_machine(world, [](Runtime& rt, StopToken) -> Task<void> {
    for (;;) {
      const auto yielded = co_await runtime::yield_now(rt);
      EXPECT_TRUE(yielded.has_value());
    }
  });
  machine.start();
  world.run_for(10ms);
  EXPECT_EQ(world.now().since_origin(), 10ms);
  EXPECT_FALSE(world.exhausted());
}

TEST(World, ARunThatNeverEndsIsCutShort) {
  World world(1, {.events_max = 1000});
  Machine& machine = add_machine(world, [](Runtime& rt, StopToken) -> Task<void> {
    for (;;) {
      const auto yielded = co_await runtime::yield_now(rt);
      EXPECT_TRUE(yielded.has_value());
    }
  });
  machine.start();
  world.run_for(1h);
  EXPECT_TRUE(world.exhausted());
  EXPECT_EQ(world.event_count(), 1000);
}

Task<void> note(std::vector<int>& notes, int number) {
  notes.push_back(number);
  co_return;
}

std::vector<int> order_of_five_jobs(std::uint64_t seed, bool shuffle) {
  World world(seed, {.shuffle = shuffle});
  std::vector<int> notes;
  Machine& machine = add_machine(world, [&](Runtime& rt, StopToken) -> Task<void> {
    runtime::TaskGroup group(rt);
    for (int number = 0; number < 5; ++number) group.spawn(note(notes, number));
    co_await group.join();
  });
  machine.start();
  world.run_for(1s);
  return notes;
}

TEST(World, ReadyJobsRunInManyOrdersUnlessAskedNotTo) {
  std::set<std::vector<int>> shuffled;
  std::set<std::vector<int>> in_order;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    shuffled.insert(order_of_five_jobs(seed, true));
    in_order.insert(order_of_five_jobs(seed, false));
  }
  EXPECT_GT(shuffled.size(), 20);
  EXPECT_EQ(in_order, (std::set<std::vector<int>>{{0, 1, 2, 3, 4}}));
}

std::uint64_t hash_of_a_run(std::uint64_t seed) {
  World world(seed);
  int ticks = 0;
  for (int number = 0; number < 3; ++number) {
    add_machine(world, [&](Runtime& rt, StopToken) { return tick_every_ms(rt, ticks); }).start();
  }
  world.run_for(50ms);
  return world.state_hash();
}

TEST(World, ASeedGivesOneHashAndAnotherSeedAnother) {
  EXPECT_EQ(hash_of_a_run(7), hash_of_a_run(7));
  EXPECT_NE(hash_of_a_run(7), hash_of_a_run(8));
}

TEST(World, LogLinesCarryVirtualTimeAndTheMachine) {
  World world(1);
  Machine& machine = add_machine(world,
                                 [](Runtime& rt, StopToken) -> Task<void> {
                                   co_await nap(rt, 3s);
                                   rt.logger("test").info("hello", base::kv("answer", 42));
                                   rt.logger("test").debug("not wanted");
                                 },
                                 {.name = "oslo"});
  machine.start();
  world.run_for(5s);
  // Besides, that the machine started and ended.
  ASSERT_EQ(world.log().lines().size(), 3);
  const std::string& line = world.log().lines()[1];
  EXPECT_TRUE(line.contains("    3.0") && line.contains("oslo") && line.contains("answer=42"))
      << line;
}

TEST(World, TheLogKeepsOnlyItsLastLines) {
  World world(1);
  Machine& machine = add_machine(world, [](Runtime& rt, StopToken) -> Task<void> {
    for (std::size_t number = 0; number < 2 * LogRing::kLinesMax; ++number) {
      rt.logger("test").info("line", base::kv("number", number));
    }
    co_return;
  });
  machine.start();
  world.run_for(1s);
  EXPECT_EQ(world.log().lines().size(), LogRing::kLinesMax);
  // The last one says that the machine ended.
  const std::string& last = world.log().lines()[LogRing::kLinesMax - 2];
  EXPECT_TRUE(last.contains(fmt::format("{}", 2 * LogRing::kLinesMax - 1))) << last;
}

// ---- Life and death ----

// Notes that it was destroyed, and whether its core had halted by then.
struct Witness {
  Witness(Runtime& rt, std::vector<bool>& destroyed_) : runtime(rt), destroyed(destroyed_) {}
  ~Witness() { destroyed.push_back(runtime.executor.halted()); }
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  Runtime& runtime;
  std::vector<bool>& destroyed;
};

Task<void> wait_holding_a_permit(Runtime& rt, runtime::Semaphore& semaphore, runtime::Gate& gate,
                                 std::vector<bool>& destroyed) {
  const Witness witness(rt, destroyed);
  const auto pass = gate.enter();
  const auto permit = co_await semaphore.acquire(1, Until::after(rt, 1h));
  EXPECT_TRUE(permit.has_value());
  co_await nap(rt, 1h);
}

Task<void> wait_for_an_element(Runtime& rt, runtime::Channel<int>& channel,
                               std::vector<bool>& destroyed) {
  const Witness witness(rt, destroyed);
  const auto popped = co_await channel.pop(Until::forever());
  EXPECT_FALSE(popped.has_value());
}

Task<void> wait_for_a_connection(Runtime& rt, runtime::Address address,
                                 std::vector<bool>& destroyed) {
  const Witness witness(rt, destroyed);
  const auto listener = rt.transport.listen(address);
  const auto stream = co_await (*listener)->accept(Until::forever());
  EXPECT_FALSE(stream.has_value());
}

Task<void> wait_for_an_answer(Runtime& rt, runtime::Address address, std::vector<bool>& destroyed) {
  const Witness witness(rt, destroyed);
  const auto stream = co_await rt.transport.connect(address, Until::forever());
  EXPECT_FALSE(stream.has_value());
}

Task<void> write_for_ever(Runtime& rt, std::vector<bool>& destroyed) {
  const Witness witness(rt, destroyed);
  const auto file = co_await rt.files.open("/file", runtime::OpenOptions::read_write());
  const std::vector<std::byte> bytes(10'000);
  for (;;) {
    const auto written = co_await (*file)->append_and_sync(bytes, Until::forever());
    EXPECT_TRUE(written.has_value());
  }
}

Task<base::Result<void>> guest_that_waits(Runtime& rt, std::vector<bool>& destroyed) {
  const Witness witness(rt, destroyed);
  co_await nap(rt, 1h);
  co_return {};
}

// Waits in every way there is.
Task<void> wait_everywhere(Runtime& rt, runtime::Address own, runtime::Address silent,
                           std::vector<bool>& destroyed) {
  const Witness witness(rt, destroyed);
  runtime::Semaphore semaphore(rt, 1, 10);
  runtime::Gate gate(rt);
  runtime::Channel<int> channel(rt, 1);
  runtime::TaskGroup group(rt);
  for (int i = 0; i < 3; ++i) {
    group.spawn(wait_holding_a_permit(rt, semaphore, gate, destroyed));
  }
  group.spawn(wait_for_an_element(rt, channel, destroyed));
  group.spawn(wait_for_a_connection(rt, own, destroyed));
  group.spawn(wait_for_an_answer(rt, silent, destroyed));
  group.spawn(write_for_ever(rt, destroyed));
  const auto called = co_await runtime::call_on<void>(
      rt, runtime::CoreId{1},
      [&destroyed](Runtime& there) { return guest_that_waits(there, destroyed); },
      Until::forever());
  EXPECT_FALSE(called.has_value());
}

class DeathTest : public testing::TestWithParam<bool> {};

TEST_P(DeathTest, ACrashDestroysEveryCoroutineWhereItWaits) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    World world(seed);
    std::vector<bool> destroyed;
    Machine& silent = world.add_machine({}, {});
    silent.power_loss();
    Machine& machine = add_machine(world,
                                   [&](Runtime& rt, StopToken) {
                                     return wait_everywhere(rt, world.machine(1).address(7),
                                                            silent.address(1), destroyed);
                                   },
                                   {.cores = 2});
    machine.start();
    world.run_for(100ms);
    EXPECT_TRUE(destroyed.empty());
    if (GetParam()) {
      machine.power_loss();
    } else {
      machine.kill();
    }
    EXPECT_EQ(destroyed, std::vector<bool>(9, true)) << "seed " << seed;
    world.run_for(1min);
    EXPECT_EQ(destroyed.size(), 9);
  }
}

INSTANTIATE_TEST_SUITE_P(World, DeathTest, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "PowerLoss" : "Kill");
});

TEST(Machine, AKilledProcessKeepsItsBootIdAndALostMachineDoesNot) {
  World world(1);
  std::vector<std::string> boots;
  std::vector<runtime::MonotonicTime> times;
  Machine& machine = add_machine(world, [&](Runtime& rt, StopToken) -> Task<void> {
    boots.push_back(rt.boot_id);
    times.push_back(rt.clock.now());
    co_await nap(rt, 1h);
  });
  machine.start();
  world.run_for(1s);
  machine.kill();
  EXPECT_TRUE(machine.powered());
  machine.start();
  world.run_for(1s);
  machine.power_loss();
  EXPECT_FALSE(machine.powered());
  machine.start();
  world.run_for(1s);
  ASSERT_EQ(boots.size(), 3);
  EXPECT_EQ(boots[0], boots[1]);
  EXPECT_NE(boots[1], boots[2]);
  EXPECT_GE(times[1] - times[0], 999ms);
  EXPECT_EQ(machine.starts(), 3);
}

TEST(Machine, AProcessThatReturnsIsStartedAgainUntilItMayRest) {
  World world(1);
  int runs = 0;
  Machine& machine = add_machine(world,
                                 [&](Runtime&, StopToken) -> Task<void> {
                                   ++runs;
                                   co_return;
                                 },
                                 {.restart_after = 1s});
  machine.start();
  world.run_for(4500ms);
  EXPECT_EQ(runs, 5);
  EXPECT_EQ(machine.exits(), 5);
  machine.let_rest();
  world.run_for(10s);
  EXPECT_EQ(runs, 5);
}

TEST(Machine, AProcessStopsWhenAskedAndWaitsForItsGuests) {
  World world(1);
  bool guest_done = false;
  Machine& machine =
      add_machine(world,
                  [&](Runtime& rt, StopToken stop) -> Task<void> {
                    const auto sent = rt.cores.send(runtime::CoreId{1}, [&](Runtime& there) {
                      there.cores.guests().spawn([](Runtime& core, bool& done) -> Task<void> {
                        co_await nap(core, 10s);
                        done = true;
                      }(there, guest_done));
                    });
                    EXPECT_TRUE(sent.has_value());
                    const auto slept = co_await runtime::sleep_for(rt, 1h, stop);
                    EXPECT_TRUE(slept.failed_with(base::Errc::cancelled));
                  },
                  {.cores = 2});
  machine.start();
  world.run_for(1s);
  machine.request_stop();
  world.run_for(1s);
  EXPECT_TRUE(machine.is_up());
  EXPECT_FALSE(guest_done);
  world.run_for(10s);
  EXPECT_FALSE(machine.is_up());
  EXPECT_TRUE(guest_done);
}

TEST(Machine, APausedProcessRunsNothingWhileTimePasses) {
  World world(1);
  int ticks = 0;
  Machine& machine =
      add_machine(world, [&](Runtime& rt, StopToken) { return tick_every_ms(rt, ticks); });
  machine.start();
  world.run_for(100ms);
  const int before = ticks;
  EXPECT_GT(before, 50);
  machine.pause();
  EXPECT_EQ(machine.state(), Machine::State::paused);
  world.run_for(10s);
  EXPECT_EQ(ticks, before);
  machine.resume();
  world.run_for(100ms);
  EXPECT_GT(ticks, before + 50);
  EXPECT_LT(ticks, before + 150);
}

Task<void> send_text(Runtime& rt, runtime::Address to, std::string text) {
  const auto stream = co_await rt.transport.connect(to, Until::forever());
  EXPECT_TRUE(stream.has_value());
  const auto written = co_await (*stream)->write(base::as_bytes(text), Until::forever());
  EXPECT_TRUE(written.has_value());
  co_await nap(rt, 1h);
}

TEST(Machine, WhatArrivesDuringAPauseIsReadAfterIt) {
  World world(1);
  std::string received;
  Machine& reader = add_machine(world, [&](Runtime& rt, StopToken) -> Task<void> {
    const auto listener = rt.transport.listen(world.machine(0).address(7));
    const auto stream = co_await (*listener)->accept(Until::forever());
    std::array<std::byte, 100> memory;
    for (;;) {
      const auto count = co_await (*stream)->read(memory, Until::forever());
      EXPECT_TRUE(count.has_value());
      received += base::as_text(base::ByteView(memory).first(*count));
    }
  });
  Machine& writer = add_machine(world, [&](Runtime& rt, StopToken) {
    return send_text(rt, world.machine(0).address(7), "hello");
  });
  reader.start();
  world.run_for(1ms);
  reader.pause();
  writer.start();
  world.run_for(10s);
  EXPECT_EQ(received, "");
  reader.resume();
  world.run_for(1s);
  EXPECT_EQ(received, "hello");
}

// ---- Clocks ----

RC_GTEST_PROP(LocalClock, ATimerIsReachedAtTheFirstMomentTheClockShowsIt, ()) {
  LocalClock clock;
  const auto rate =
      *rc::gen::inRange<std::int64_t>(-LocalClock::kRatePpbMax, LocalClock::kRatePpbMax + 1);
  const WorldTime start(Duration(*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000)));
  clock.reboot(start, Duration(*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000)));
  clock.set_rate(start, rate);
  const auto local =
      clock.monotonic_at(start) + Duration(*rc::gen::inRange<std::int64_t>(1, 1'000'000'000'000));
  const WorldTime reached = clock.reached_at(local);
  RC_ASSERT(clock.monotonic_at(reached) >= local);
  RC_ASSERT(clock.monotonic_at(reached + Duration(-1)) < local);
}

RC_GTEST_PROP(LocalClock, TheMonotonicClockNeverGoesBackWhateverItsRate, ()) {
  LocalClock clock;
  WorldTime now;
  runtime::MonotonicTime last = clock.monotonic_at(now);
  const auto steps = *rc::gen::inRange(1, 50);
  for (int step = 0; step < steps; ++step) {
    now = now + Duration(*rc::gen::inRange<std::int64_t>(0, 1'000'000'000));
    RC_ASSERT(clock.monotonic_at(now) >= last);
    last = clock.monotonic_at(now);
    clock.set_rate(
        now, *rc::gen::inRange<std::int64_t>(-LocalClock::kRatePpbMax, LocalClock::kRatePpbMax));
    RC_ASSERT(clock.monotonic_at(now) == last);
  }
}

TEST(Clocks, ADriftingMachineWakesByItsOwnClock) {
  World world(1);
  WorldTime woke;
  Machine& machine = add_machine(world, [&](Runtime& rt, StopToken) -> Task<void> {
    const auto before = rt.clock.now();
    co_await nap(rt, 100s);
    EXPECT_GE(rt.clock.now() - before, 100s);
    woke = world.now();
  });
  machine.set_clock_rate(10'000'000);  // One hundredth fast.
  machine.start();
  world.run_for(3min);
  EXPECT_GT(woke.since_origin(), 98s);
  EXPECT_LT(woke.since_origin(), 100s);
}

TEST(Clocks, AClockThatBeginsToRunFastWakesThoseWhoSleepAlready) {
  World world(1);
  WorldTime woke;
  Machine& machine = add_machine(world, [&](Runtime& rt, StopToken) -> Task<void> {
    co_await nap(rt, 100s);
    woke = world.now();
  });
  machine.start();
  world.run_for(50s);
  machine.set_clock_rate(LocalClock::kRatePpbMax);
  world.run_for(3min);
  EXPECT_LT(woke.since_origin(), 96s);
  EXPECT_GT(woke.since_origin(), 95s);
}

TEST(Clocks, TheWallClockJumpsAndWaitsDoNot) {
  World world(1);
  std::vector<runtime::WallTime> walls;
  WorldTime woke;
  Machine& machine = add_machine(world, [&](Runtime& rt, StopToken) -> Task<void> {
    walls.push_back(rt.clock.wall_now());
    co_await nap(rt, 10s);
    walls.push_back(rt.clock.wall_now());
    woke = world.now();
  });
  machine.clock().set_wall(world.now(), 5s);
  machine.start();
  world.run_for(5s);
  machine.clock().jump_wall(-1h);
  world.run_for(10s);
  ASSERT_EQ(walls.size(), 2);
  const auto ahead = walls[0] - LocalClock::kWorldBegins;
  EXPECT_GE(ahead, 5s);
  EXPECT_LT(ahead, 5s + 1ms);
  EXPECT_LT(walls[1] - walls[0], -59min);
  EXPECT_LT(woke.since_origin(), 10s + 1ms);
}

// ---- Buggify ----

TEST(Buggify, AQuarterOfTheSitesIsActiveAndTheseFireNowAndThen) {
  int active = 0;
  int fired_sites = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SimBuggify buggify(seed, true);
    for (int visit = 0; visit < 500; ++visit) (void)buggify.fires("test.site");
    const SimBuggify::Site& site = buggify.sites().at("test.site");
    EXPECT_EQ(site.visits, 500);
    active += site.fire_chance > 0 ? 1 : 0;
    fired_sites += site.fired > 0 ? 1 : 0;
    EXPECT_LT(site.fired, 250);
  }
  EXPECT_GT(active, 70);
  EXPECT_LT(active, 130);
  EXPECT_NEAR(active, fired_sites, 5);
}

TEST(Buggify, OneSiteDoesNotShiftAnotherAndNothingFiresWhenOff) {
  const auto fires_of_a = [](bool visit_b, bool enabled) {
    std::vector<bool> fires;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SimBuggify buggify(seed, enabled);
      for (int visit = 0; visit < 50; ++visit) {
        fires.push_back(buggify.fires("a"));
        if (visit_b) (void)buggify.fires("b");
      }
    }
    return fires;
  };
  EXPECT_EQ(fires_of_a(false, true), fires_of_a(true, true));
  EXPECT_GT(std::ranges::count(fires_of_a(false, true), true), 0);
  EXPECT_EQ(std::ranges::count(fires_of_a(false, false), true), 0);
}

}  // namespace
}  // namespace helenus::sim
