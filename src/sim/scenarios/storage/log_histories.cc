// Commit logs under crashes: at every event of short histories, and at random ones of long
// histories over many lives, with killed processes, power losses, failing disks and full ones. The
// laws are in storage/log/log_history_test_support.h.
#include <array>
#include <vector>

#include "sim/scenarios/storage/storage.h"
#include "sim/scenarios/storage/ways.h"
#include "storage/log/log_history_test_support.h"

namespace helenus::sim {

namespace {

using storage::LogSyncMode;
using storage::testing::LogHistory;

// What a log promises, and how its machine fails.
struct Scope {
  LogSyncMode mode;
  bool power_loss;
};
constexpr std::array kScopes{
    Scope{LogSyncMode::batch, false},    Scope{LogSyncMode::batch, true},
    Scope{LogSyncMode::group, false},    Scope{LogSyncMode::group, true},
    Scope{LogSyncMode::periodic, false}, Scope{LogSyncMode::periodic, true}};

struct LogSeed {
  explicit LogSeed(std::uint64_t seed)
      : scope(kScopes[seed % kScopes.size()]), number(seed / kScopes.size() + 1) {}
  Scope scope;
  std::uint64_t number;
};

RunOutcome outcome_of(LogHistory& history, std::uint64_t records_found) {
  RunOutcome outcome;
  outcome.plan = "crashes";
  outcome.violations = history.violations();
  outcome.sightings = {{"records found", records_found, 1}};
  base::Digest digest;
  add_world(history.world().world(), digest, outcome);
  digest.add(records_found);
  outcome.state_hash = digest.value();
  return outcome;
}

// A life that is crashed at every event; then a second one that begins, works and stops, and a
// third that finds everything.
RunOutcome run_crash_anywhere(const RunOptions& options) {
  const WaysOfSeed seed(options.seed, kScopes.size());
  const Scope scope = kScopes[seed.kind];
  LogHistory history(6 + seed.history, {.mode = scope.mode,
                                        .cores_max = 2,
                                        .steps = 40,
                                        .world = world_of_history(options, seed.history)});
  history.start_life();
  Ways ways(history.world(), seed, {});
  ways.take([&] { return history.run_events(1) && history.violations().empty(); },
            [&](std::uint64_t) {
              history.crash(scope.power_loss);
              history.start_life();
              history.run_to_end();
              history.start_life();
              history.run_to_end();
              return WayEnd{.violations = history.violations(), .sightings = {}};
            });
  RunOutcome outcome = ways.outcome(history.violations());
  outcome.sightings.push_back({"ways", ways.count(), 200 / kWaysShared});
  return outcome;
}

// Crashing inside recovery itself, again and again, changes nothing.
RunOutcome run_crash_in_recovery(const RunOptions& options) {
  const LogSeed seed(options.seed);
  LogHistory history(seed.number, {.mode = seed.scope.mode,
                                   .cores_max = 2,
                                   .steps = 40,
                                   .world = world_of_history(options, seed.number)});
  history.start_life();
  history.run_events(600);
  history.crash(seed.scope.power_loss);
  for (std::uint64_t events = 0; events < 250 && history.violations().empty(); events += 3) {
    history.start_life();
    history.run_events(events);
    history.crash(seed.scope.power_loss);
  }
  history.start_life();
  history.run_to_end();
  return outcome_of(history, history.records_found());
}

RunOutcome run_many_lives(const RunOptions& options) {
  const LogSeed seed(options.seed);
  std::uint64_t found = 0;
  LogHistory history(
      seed.number,
      {.mode = seed.scope.mode, .steps = 80, .world = world_of_history(options, seed.number)});
  base::Prng prng = base::Prng::for_purpose(seed.number, "crashes");
  for (int life = 0; life < 6 && history.violations().empty(); ++life) {
    history.start_life();
    const bool running = history.run_events(prng.below(2000));
    if (running && prng.chance(0.8)) {
      history.crash(prng.chance(seed.scope.power_loss ? 0.8 : 0.2));
    } else {
      history.run_to_end();
    }
    found += history.records_found();
  }
  history.start_life();
  history.run_to_end();
  RunOutcome outcome = outcome_of(history, found);
  outcome.sightings.front().wanted = 40;
  return outcome;
}

RunOutcome run_log_trouble(const RunOptions& options) {
  const LogSeed seed(options.seed);
  LogHistory history(seed.number, {.mode = seed.scope.mode,
                                   .steps = 80,
                                   .faults = true,
                                   .world = world_of_history(options, seed.number)});
  base::Prng prng = base::Prng::for_purpose(seed.number, "crashes");
  for (int life = 0; life < 6 && history.violations().empty(); ++life) {
    history.start_life();
    const bool running = history.run_events(prng.below(3000));
    if (running && prng.chance(0.5)) {
      history.crash(seed.scope.power_loss);
    } else {
      history.run_to_end();
    }
  }
  history.start_life();
  history.run_to_end();
  return outcome_of(history, history.records_found());
}

}  // namespace

std::vector<ScenarioInfo> log_scenarios() {
  return {{.name = "log-crash",
           .description = "commit logs that crash at every event",
           .is_dear = true,
           .run = run_crash_anywhere},
          {.name = "log-recovery",
           .description = "commit logs that crash in their recovery, again and again",
           .is_dear = true,
           .run = run_crash_in_recovery},
          {.name = "log-lives",
           .description = "commit logs over many lives of a machine that crashes",
           .is_dear = true,
           .run = run_many_lives},
          {.name = "log-trouble",
           .description = "commit logs on disks that fail and are full, over many lives",
           .is_dear = true,
           .run = run_log_trouble}};
}

}  // namespace helenus::sim
