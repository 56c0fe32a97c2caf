// Scenario: a system, a workload for it, and what must hold whatever happens; and how one seed of
// it is run:
//
//   setup            machines, processes, clients
//   safety phase     the workload runs, the faults of the plan strike
//   liveness phase   no more faults: within a limit, the scenario must settle
//   check            what was seen is judged
//   stop             every process is asked to stop, and must
//
// A system whose faults are no matter of chance (a crash at every event, say) runs a world of its
// own instead: ScenarioInfo::run.
//
// One object a run. Clients are processes on machines of their own and note what they saw in the
// scenario's memory, which no crash touches: all is one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "sim/faults.h"
#include "sim/machine_id.h"
#include "sim/violations.h"
#include "sim/world.h"
#include "sim/world_time.h"

namespace helenus::sim {

class Scenario {
 public:
  virtual ~Scenario() = default;

  virtual FaultBudget budget() const = 0;
  // Adds the machines and starts them. `dice` is the workload's stream: sizes, counts, mixes.
  virtual void setup(World& world, base::Prng& dice) = 0;
  // The machines that faults may strike; the others are clients, whose links alone may suffer.
  virtual std::vector<MachineId> targets() const = 0;

  virtual Duration safety_phase() const { return 20s; }
  virtual Duration liveness_limit() const { return 5min; }
  // The faults are over.
  virtual void on_healed() {}
  // Whether all is done that must come to an end once there are no more faults.
  virtual bool quiet() const = 0;
  virtual void check(Violations& violations) = 0;
  // What must have happened, over many seeds, for the check to prove anything.
  virtual void add_to(std::vector<Sighting>&) const {}
  // Adds what the workload saw.
  virtual void add_to(base::Digest& digest) const = 0;
};

struct RunOptions {
  std::uint64_t seed = 0;
  LogRing::Options log = {};
};

struct RunOutcome {
  std::uint64_t seed = 0;
  Violations violations;
  std::uint64_t state_hash = 0;
  std::string plan;
  std::vector<std::string> trace;          // the last lines that matter
  std::vector<std::string> buggify_sites;  // "name: n visits, n fired"
  std::vector<std::uint64_t> faults;       // how often each of fault_names() happened
  std::vector<Sighting> sightings;         // in a fixed order
  std::uint64_t events = 0;
  Duration virtual_time{0};
};

struct ScenarioInfo {
  std::string_view name;
  std::string_view description;
  // A deliberately wrong system, kept to prove that the simulator can fail.
  bool expected_to_fail = false;
  // It runs much of the product, and a seed of it takes long.
  bool is_dear = false;
  // One of the two.
  std::unique_ptr<Scenario> (*make)() = nullptr;
  RunOutcome (*run)(const RunOptions&) = nullptr;
};

// Of RunOutcome::faults, in their order.
std::vector<std::string_view> fault_names();

RunOutcome run_scenario(const ScenarioInfo& info, const RunOptions& options);

// Adds how a world ended to the digest, and what happened in it to the outcome of its run. Draws
// from the world's streams.
void add_world(World& world, base::Digest& digest, RunOutcome& outcome);

// The command that runs it again: "build/release/bin/helenus-sim --scenario S --seed N".
std::string replay_command(const ScenarioInfo& info, std::uint64_t seed);

// The command of the run under way, for a process that is about to die; null if there is none, or
// if a failed assertion has told it. Safe to call from a signal handler.
const char* take_replay_of_dying_run();

}  // namespace helenus::sim
