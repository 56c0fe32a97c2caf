// Scenario: a system, a workload for it, and what must hold whatever happens; and how one seed of
// it is run:
//
//   setup            machines, processes, clients
//   safety phase     the workload runs, the faults of the plan strike
//   liveness phase   no more faults: within a limit, the scenario must settle
//   check            what was seen is judged
//   stop             every process is asked to stop, and must
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
#include "sim/world.h"
#include "sim/world_time.h"

namespace helenus::sim {

// What did not hold, one sentence each.
class Violations {
 public:
  static constexpr std::size_t kKeptMax = 20;

  void add(std::string what) {
    ++count_;
    if (kept_.size() < kKeptMax) kept_.push_back(std::move(what));
  }
  bool empty() const { return count_ == 0; }
  std::uint64_t count() const { return count_; }
  const std::vector<std::string>& kept() const { return kept_; }

 private:
  std::uint64_t count_ = 0;
  std::vector<std::string> kept_;
};

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
  // Adds what the workload saw.
  virtual void add_to(base::Digest& digest) const = 0;
};

struct ScenarioInfo {
  std::string_view name;
  std::string_view description;
  // A deliberately wrong system, kept to prove that the simulator can fail.
  bool expected_to_fail = false;
  std::unique_ptr<Scenario> (*make)() = nullptr;
};

struct RunOptions {
  std::uint64_t seed = 0;
  LogRing::Options log = {};
};

// How often something went wrong in a run: a kind of fault, or what a power loss did.
struct FaultCount {
  std::string_view name;
  std::uint64_t count = 0;
};

struct RunOutcome {
  std::uint64_t seed = 0;
  Violations violations;
  std::uint64_t state_hash = 0;
  std::string plan;
  std::vector<std::string> log;            // the last lines
  std::vector<std::string> buggify_sites;  // "name: n visits, n fired"
  std::vector<FaultCount> faults;          // all that can be counted, in a fixed order
  std::uint64_t events = 0;
  Duration virtual_time{0};
};

RunOutcome run_scenario(const ScenarioInfo& info, const RunOptions& options);

// The command that runs it again: "helenus-sim --scenario S --seed N".
std::string replay_command(const ScenarioInfo& info, std::uint64_t seed);

// The command of the run under way, for a process that is about to die; null if there is none, or
// if a failed assertion has told it. Safe to call from a signal handler.
const char* take_replay_of_dying_run();

}  // namespace helenus::sim
