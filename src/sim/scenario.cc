#include "sim/scenario.h"

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "sim/nemesis.h"

namespace helenus::sim {

namespace {

constexpr Duration kStopLimit = 2min;
constexpr std::size_t kTraceLinesMax = 40;

// What a failing assertion adds to its report. A hook has no object to ask, hence the static; it
// points to the frame that runs the scenario.
const std::string* replay_of_running_scenario = nullptr;

void print_replay(std::string_view) {
  if (const char* command = take_replay_of_dying_run()) {
    fmt::print(stderr, "replay: {}\n", command);
  }
}

class AssertionsTellReplay {
 public:
  explicit AssertionsTellReplay(const std::string& command)
      : outer_command_(std::exchange(replay_of_running_scenario, &command)),
        outer_hook_(base::set_assert_hook(print_replay)) {}
  ~AssertionsTellReplay() {
    base::set_assert_hook(outer_hook_);
    replay_of_running_scenario = outer_command_;
  }
  AssertionsTellReplay(const AssertionsTellReplay&) = delete;
  AssertionsTellReplay& operator=(const AssertionsTellReplay&) = delete;

 private:
  const std::string* outer_command_;
  base::AssertHook outer_hook_;
};

template <class T>
T one_of(base::Prng& dice, std::initializer_list<T> choices) {
  return choices.begin()[dice.below(choices.size())];
}

// The world itself differs from seed to seed: near or far, with large or small buffers.
WorldOptions draw_world(base::Prng& dice, const LogRing::Options& log) {
  WorldOptions options;
  options.log = log;
  options.shuffle = dice.below(8) != 0;
  options.network.latency_min = one_of<Duration>(dice, {20us, 100us, 1ms});
  options.network.latency_max =
      options.network.latency_min * one_of<std::int64_t>(dice, {1, 4, 50});
  options.network.segment_size = one_of<std::uint32_t>(dice, {536, 1460, 16384});
  options.tcp.send_buffer_size = one_of<std::uint32_t>(dice, {4096, 65536, 262144});
  options.tcp.receive_buffer_size = one_of<std::uint32_t>(dice, {4096, 65536, 262144});
  options.tcp.short_read_chance = one_of<double>(dice, {0, 0.05, 0.5});
  return options;
}

std::string text_of(const WorldOptions& options) {
  return fmt::format("latency {}-{}us, segments {}, buffers {}/{}, {}",
                     options.network.latency_min / 1us, options.network.latency_max / 1us,
                     options.network.segment_size, options.tcp.send_buffer_size,
                     options.tcp.receive_buffer_size, options.shuffle ? "shuffled" : "in order");
}

void stop_all(World& world, Violations& violations) {
  for (MachineId id = 0; id < world.machine_count(); ++id) {
    world.machine(id).let_rest();
    world.machine(id).request_stop();
  }
  const auto all_down = [&] {
    for (MachineId id = 0; id < world.machine_count(); ++id) {
      if (world.machine(id).is_up()) return false;
    }
    return true;
  };
  if (world.run_until(all_down, kStopLimit)) return;
  for (MachineId id = 0; id < world.machine_count(); ++id) {
    const Machine& machine = world.machine(id);
    if (machine.is_up()) violations.add(fmt::format("{} does not stop when asked", machine.name()));
  }
}

std::vector<std::uint64_t> count_faults(World& world, const Nemesis& nemesis) {
  std::vector<std::uint64_t> counts;
  for (std::size_t index = 0; index < kFaultCount; ++index) {
    counts.push_back(nemesis.happened(static_cast<Fault>(index)));
  }
  DiskCounts sum;
  for (MachineId id = 0; id < world.machine_count(); ++id) {
    const DiskCounts& disk = world.machine(id).disk().counts();
    sum.writes_lost += disk.writes_lost;
    sum.writes_torn += disk.writes_torn;
    sum.names_lost += disk.names_lost;
  }
  counts.insert(counts.end(), {sum.writes_lost, sum.writes_torn, sum.names_lost});
  return counts;
}

}  // namespace

std::vector<std::string_view> fault_names() {
  std::vector<std::string_view> names;
  for (std::size_t index = 0; index < kFaultCount; ++index) {
    names.push_back(name_of(static_cast<Fault>(index)));
  }
  names.insert(names.end(), {"writes_lost", "writes_torn", "names_lost"});
  return names;
}

const char* take_replay_of_dying_run() {
  const std::string* const command = std::exchange(replay_of_running_scenario, nullptr);
  return command != nullptr ? command->c_str() : nullptr;
}

std::string replay_command(const ScenarioInfo& info, std::uint64_t seed) {
  return fmt::format("build/release/bin/helenus-sim --scenario {} --seed {}", info.name, seed);
}

void add_world(World& world, base::Digest& digest, RunOutcome& outcome) {
  digest.add(world.state_hash());
  outcome.trace = world.log().trace(kTraceLinesMax);
  for (const auto& [name, site] : world.buggify().sites()) {
    outcome.buggify_sites.push_back(
        fmt::format("{}: {} visits, {} fired", name, site.visits, site.fired));
  }
  outcome.events += world.event_count();
  outcome.virtual_time += world.now().since_origin();
}

namespace {

RunOutcome run_with_nemesis(Scenario& scenario, const RunOptions& options) {
  RunOutcome outcome;
  base::Prng swarm = base::Prng::for_purpose(options.seed, "swarm");
  const WorldOptions world_options = draw_world(swarm, options.log);
  World world(options.seed, world_options);
  scenario.setup(world, world.workload_stream());
  const FaultPlan plan = FaultPlan::draw(scenario.budget(), scenario.targets(), swarm);
  outcome.plan = fmt::format("{} ({})", plan.to_string(), text_of(world_options));

  Nemesis nemesis(world, plan, scenario.targets());
  nemesis.start();
  world.run_for(scenario.safety_phase());
  nemesis.stop();
  world.note("the faults are over");
  scenario.on_healed();
  const bool is_quiet =
      world.run_until([&] { return scenario.quiet(); }, scenario.liveness_limit());
  if (!is_quiet) {
    outcome.violations.add(
        fmt::format("not quiet {} s after the last fault", scenario.liveness_limit() / 1s));
  }
  scenario.check(outcome.violations);
  stop_all(world, outcome.violations);
  if (world.exhausted()) {
    outcome.violations.add(fmt::format("stuck: {} events happened", world.event_count()));
  }

  scenario.add_to(outcome.sightings);
  outcome.faults = count_faults(world, nemesis);
  base::Digest digest;
  add_world(world, digest, outcome);
  scenario.add_to(digest);
  outcome.state_hash = digest.value();
  return outcome;
}

}  // namespace

RunOutcome run_scenario(const ScenarioInfo& info, const RunOptions& options) {
  ASSERT((info.make == nullptr) != (info.run == nullptr));
  const std::string replay = replay_command(info, options.seed);
  const AssertionsTellReplay telling(replay);
  RunOutcome outcome;
  if (info.run != nullptr) {
    outcome = info.run(options);
  } else {
    const std::unique_ptr<Scenario> scenario = info.make();
    outcome = run_with_nemesis(*scenario, options);
  }
  outcome.seed = options.seed;
  return outcome;
}

}  // namespace helenus::sim
