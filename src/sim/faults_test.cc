#include "sim/faults.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/file_system.h"
#include "runtime/files.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "runtime/transport.h"
#include "sim/function_process.h"
#include "sim/nemesis.h"
#include "sim/world.h"

namespace helenus::sim {

void PrintTo(Fault fault, std::ostream* out) {
  *out << name_of(fault);
}

namespace {

using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;

constexpr std::uint16_t kPort = 7;
constexpr MachineId kMachines = 3;

std::vector<Fault> all_faults() {
  std::vector<Fault> faults;
  for (std::size_t index = 0; index < kFaultCount; ++index) {
    faults.push_back(static_cast<Fault>(index));
  }
  return faults;
}

FaultSet set_of_all() {
  FaultSet set;
  for (const Fault fault : all_faults()) set.add(fault);
  return set;
}

// ---- Plans ----

TEST(FaultPlan, EverythingIsAllThatIsPermittedButForLies) {
  const FaultPlan plan = FaultPlan::everything(set_of_all());
  for (const Fault fault : all_faults()) {
    EXPECT_NE(plan.has(fault), kLyingDiskFaults.contains(fault)) << name_of(fault);
    if (!plan.has(fault)) continue;
    EXPECT_EQ(plan.setting(fault).every > Duration(0), is_episodic(fault)) << name_of(fault);
  }
  EXPECT_EQ(FaultPlan::everything({Fault::kill}).to_string(), "kill every 1s for 0.5s");
  EXPECT_TRUE(plan.liars.empty());
}

TEST(FaultPlan, StaysWithinTheBudget) {
  const FaultBudget budget{.permitted = {Fault::kill, Fault::packet_loss, Fault::bit_rot},
                           .liars_max = 1};
  FaultSet seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    base::Prng dice(seed);
    const FaultPlan plan = FaultPlan::draw(budget, {0, 1, 2}, dice);
    for (const Fault fault : all_faults()) {
      if (!plan.has(fault)) continue;
      EXPECT_TRUE(budget.permitted.contains(fault)) << name_of(fault);
      seen.add(fault);
    }
    EXPECT_LE(plan.liars.size(), 1);
  }
  EXPECT_EQ(seen, budget.permitted);
}

TEST(FaultPlan, SeedsDifferInKindAndSomeAreCalm) {
  const FaultBudget budget{.permitted = set_of_all(), .liars_max = 2};
  std::set<std::string> plans;
  int calm = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    base::Prng dice(seed);
    const FaultPlan plan = FaultPlan::draw(budget, {0, 1, 2}, dice);
    plans.insert(plan.to_string());
    calm += plan.on.empty() ? 1 : 0;
  }
  EXPECT_GT(plans.size(), 180);
  EXPECT_GT(calm, 3);
  EXPECT_LT(calm, 40);
}

TEST(FaultPlan, NobodyLiesWhereNobodyMay) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    base::Prng dice(seed);
    const FaultPlan plan = FaultPlan::draw({.permitted = set_of_all()}, {0, 1, 2}, dice);
    EXPECT_TRUE(plan.liars.empty());
    EXPECT_FALSE(plan.has(Fault::bit_rot));
    EXPECT_FALSE(plan.has(Fault::older_image));
  }
}

TEST(FaultPlan, TakingAwayAPermissionLeavesTheOthersAsTheyWere) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    base::Prng dice(seed);
    base::Prng same_dice(seed);
    const FaultPlan all = FaultPlan::draw({.permitted = set_of_all()}, {0}, dice);
    const FaultPlan few = FaultPlan::draw({.permitted = {Fault::kill}}, {0}, same_dice);
    EXPECT_EQ(all.has(Fault::kill), few.has(Fault::kill));
    EXPECT_EQ(all.setting(Fault::kill).every, few.setting(Fault::kill).every);
  }
}

TEST(FaultPlan, IsToldInOneLine) {
  FaultPlan plan;
  EXPECT_EQ(plan.to_string(), "no faults");
  plan.on = {Fault::packet_loss, Fault::kill, Fault::bit_rot};
  plan.settings[static_cast<std::size_t>(Fault::packet_loss)] = {.chance = 0.05};
  plan.settings[static_cast<std::size_t>(Fault::kill)] = {.every = 2s, .lasting = 500ms};
  plan.settings[static_cast<std::size_t>(Fault::bit_rot)] = {.every = 10s};
  plan.liars = {1, 4};
  EXPECT_EQ(plan.to_string(), "packet_loss 0.05; kill every 2s for 0.5s; bit_rot every 10s on 1,4");
}

TEST(Fault, EveryKindHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const Fault fault : all_faults()) names.insert(name_of(fault));
  EXPECT_EQ(names.size(), kFaultCount);
}

// ---- Strikes ----

Task<void> use_disk(Runtime& rt, StopToken stop) {
  std::uint64_t round = 0;
  while (!stop.stop_requested()) {
    const std::string path = fmt::format("/file{}", ++round % 4);
    base::Buffer content;
    std::ranges::fill(content.extend(1000 + round % 100 * 500), std::byte{1});
    (void)co_await runtime::replace_file(rt, path, std::move(content).freeze());
    (void)co_await runtime::read_file(rt, path, SIZE_MAX);
    for (int site = 0; site < 12; ++site) (void)rt.buggify(fmt::format("test.site{}", site));
    (void)co_await runtime::sleep_for(rt, 20ms, stop);
  }
}

Task<void> send_to(Runtime& rt, runtime::Address to, StopToken stop) {
  const std::array<std::byte, 100> message{};
  while (!stop.stop_requested()) {
    auto stream = co_await rt.transport.connect(to, Until::after(rt, 1s, stop));
    while (stream) {
      const auto sent = co_await (*stream)->write(message, Until::after(rt, 1s, stop));
      if (!sent) break;
      if (!co_await runtime::sleep_for(rt, 10ms, stop)) break;
    }
    (void)co_await runtime::sleep_for(rt, 10ms, stop);
  }
}

Task<void> drain(std::unique_ptr<runtime::Stream> stream, StopToken stop) {
  std::array<std::byte, 1000> memory;
  for (;;) {
    const auto count = co_await stream->read(memory, {.stop = stop});
    if (!count || *count == 0) co_return;
  }
}

// Keeps disk and network busy.
Task<void> be_busy(World& world, MachineId self, Runtime& rt, StopToken stop) {
  const auto listener = rt.transport.listen(world.machine(self).address(kPort));
  runtime::TaskGroup group(rt);
  group.spawn(use_disk(rt, stop));
  for (MachineId peer = 0; peer < kMachines; ++peer) {
    if (peer != self) group.spawn(send_to(rt, world.machine(peer).address(kPort), stop));
  }
  while (!stop.stop_requested()) {
    auto stream = co_await (*listener)->accept({.stop = stop});
    if (stream) group.spawn(drain(*std::move(stream), stop));
  }
  co_await group.join();
}

FaultPlan plan_of(Fault fault) {
  FaultPlan plan;
  plan.on = {fault};
  const FaultSetting setting{.chance = 0.2, .every = 500ms, .lasting = 200ms};
  plan.settings.fill({});
  plan.settings[static_cast<std::size_t>(fault)] = setting;
  plan.liars = {1};
  // An image comes back with the power, so it needs a loss of it.
  if (fault == Fault::older_image) {
    plan.on.add(Fault::power_loss);
    plan.settings[static_cast<std::size_t>(Fault::power_loss)] = setting;
  }
  return plan;
}

// How much of that kind has been seen to happen: what the nemesis counts, or an effect of it where
// the nemesis counts no more than its own strikes.
std::uint64_t seen(World& world, const Nemesis& nemesis, Fault fault) {
  const auto over_machines = [&](auto count_of) {
    std::uint64_t sum = 0;
    for (MachineId id = 0; id < kMachines; ++id) {
      sum += static_cast<std::uint64_t>(count_of(world.machine(id)));
    }
    return sum;
  };
  switch (fault) {
    case Fault::symmetric_partition:
    case Fault::one_way_partition:
    case Fault::bridge_partition:
      return nemesis.strikes(fault) > 0 ? world.network().counts().cut_off : 0;
    case Fault::kill:
    case Fault::power_loss:
      return nemesis.strikes(fault) > 0 ? over_machines([](Machine& m) { return m.starts() - 1; })
                                        : 0;
    case Fault::clock_offset:
    case Fault::clock_jump:
      return over_machines([&](Machine& m) {
        return m.clock().wall_at(world.now()) !=
               LocalClock::kWorldBegins + world.now().since_origin();
      });
    case Fault::clock_drift:
      return over_machines([](Machine& m) { return m.clock().rate_ppb() != 0; });
    case Fault::bit_rot:
      return over_machines([](Machine& m) { return m.disk().counts().bits_flipped; });
    case Fault::older_image:
      return over_machines([](Machine& m) { return m.disk().counts().images_put_back; });
    default:
      return nemesis.happened(fault);
  }
}

class EachFault : public testing::TestWithParam<Fault> {
 protected:
  // Runs busy machines under the faults, heals them, and hands over for judgement.
  template <class Judge>
  void run(const FaultPlan& plan, Judge judge) {
    World world(3);
    for (MachineId id = 0; id < kMachines; ++id) {
      world.add_machine({}, FunctionProcess::factory([&world, id](Runtime& rt, StopToken stop) {
                          return be_busy(world, id, rt, stop);
                        }));
    }
    for (MachineId id = 0; id < kMachines; ++id) world.machine(id).start();
    Nemesis nemesis(world, plan, {0, 1, 2});
    nemesis.start();
    world.run_for(20s);
    nemesis.stop();
    judge(world, nemesis);
  }
};

TEST_P(EachFault, HappensWhenItIsOn) {
  run(plan_of(GetParam()),
      [](World& world, const Nemesis& nemesis) { EXPECT_GT(seen(world, nemesis, GetParam()), 0); });
}

TEST_P(EachFault, IsAbsentWhenOnlyAnotherIsOn) {
  // A fault that shares no effect with any other.
  const Fault other = GetParam() == Fault::slow_link ? Fault::clock_jump : Fault::slow_link;
  run(plan_of(other),
      [](World& world, const Nemesis& nemesis) { EXPECT_EQ(seen(world, nemesis, GetParam()), 0); });
}

TEST_P(EachFault, LeavesNothingBehindThatCanBeHealed) {
  run(plan_of(GetParam()), [](World& world, Nemesis& nemesis) {
    const NetworkCounts before = world.network().counts();
    std::uint64_t starts = 0;
    for (MachineId id = 0; id < kMachines; ++id) starts += world.machine(id).starts();
    const std::uint64_t strikes = nemesis.strikes(GetParam());
    world.run_for(10s);
    const NetworkCounts& after = world.network().counts();
    EXPECT_GT(after.sent, before.sent + 1000) << "work goes on";
    EXPECT_EQ(after.lost, before.lost);
    EXPECT_EQ(after.duplicated, before.duplicated);
    EXPECT_EQ(after.reordered, before.reordered);
    EXPECT_EQ(after.cut_off, before.cut_off);
    EXPECT_EQ(nemesis.strikes(GetParam()), strikes);
    for (MachineId id = 0; id < kMachines; ++id) {
      starts -= world.machine(id).starts();
      EXPECT_EQ(world.machine(id).state(), Machine::State::running);
      EXPECT_EQ(world.machine(id).disk_queue().faults.slowness, 1);
      EXPECT_EQ(world.machine(id).disk_queue().faults.sync_slowness, 1);
    }
    EXPECT_EQ(starts, 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Nemesis, EachFault, testing::ValuesIn(all_faults()),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(Nemesis, OnlyItsTargetsAreStruck) {
  World world(1);
  int runs = 0;
  for (MachineId id = 0; id < 2; ++id) {
    world.add_machine({}, FunctionProcess::factory([&](Runtime& rt, StopToken stop) -> Task<void> {
                        ++runs;
                        (void)co_await runtime::sleep_for(rt, 24h, stop);
                      }));
    world.machine(id).start();
  }
  Nemesis nemesis(world, plan_of(Fault::kill), {0});
  nemesis.start();
  world.run_for(1min);
  nemesis.stop();
  EXPECT_GT(world.machine(0).starts(), 5);
  EXPECT_EQ(world.machine(1).starts(), 1);
}

}  // namespace
}  // namespace helenus::sim
