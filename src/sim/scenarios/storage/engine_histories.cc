// Long random histories of the storage engine beside an oracle, without crashes but one.
#include <vector>

#include "sim/scenarios/storage/storage.h"
#include "sim/scenarios/storage/ways.h"
#include "storage/engine/engine_history_test_support.h"

namespace helenus::sim {

namespace {

using storage::testing::EngineHistory;
using Counts = EngineHistory::Counts;

bool has_peers(std::uint64_t number) {
  return number % 4 != 0;
}

void live(EngineHistory& history, int lives) {
  for (int life = 0; life < lives && history.violations().empty(); ++life) {
    history.start_life();
    history.run_to_end();
  }
}

RunOutcome outcome_of(EngineHistory& history, std::vector<Sighting> sightings) {
  RunOutcome outcome;
  outcome.plan = "no faults";
  outcome.violations = history.violations();
  outcome.sightings = std::move(sightings);
  base::Digest digest;
  add_world(history.world().world(), digest, outcome);
  const Counts& counts = history.counts();
  for (const std::uint64_t count : {counts.writes, counts.flushes, counts.compactions,
                                    counts.mutations_given, counts.range_paths_read}) {
    digest.add(count);
  }
  outcome.state_hash = digest.value();
  return outcome;
}

RunOutcome run_engine(const RunOptions& options) {
  const std::uint64_t number = options.seed + 1;
  EngineHistory history(
      number,
      {.steps = 200, .peers = has_peers(number), .world = world_of_history(options, number)});
  live(history, 4);
  const Counts& counts = history.counts();
  return outcome_of(history, {{"flushes", counts.flushes, 60},
                              {"compactions", counts.compactions, 6},
                              {"keys that are gone", counts.keys_gone, 6},
                              {"records replayed", counts.records_replayed, 6},
                              {"mutations given", counts.mutations_given, 60},
                              {"mutations from files", counts.mutations_from_files, 12},
                              {"timestamps raised", counts.timestamps_raised, 12}});
}

// One partition of so many rows that deletes of ranges lie in parts.
RunOutcome run_wide_partition(const RunOptions& options) {
  const std::uint64_t number = options.seed + 1;
  EngineHistory history(number, {.steps = 300,
                                 .tables = 2,
                                 .tablets = 1,
                                 .shards = 1,
                                 .partitions = 1,
                                 .rows = 150,
                                 .peers = has_peers(number),
                                 .schema_changes = false,
                                 .world = world_of_history(options, number)});
  live(history, 3);
  const Counts& counts = history.counts();
  return outcome_of(history, {{"compactions", counts.compactions, 2},
                              {"walks", counts.walks, 5},
                              {"paths to ranges read", counts.range_paths_read, 75}});
}

// A mutation log over its cap names what it cannot give.
RunOutcome run_capped_mutation_log(const RunOptions& options) {
  const std::uint64_t number = options.seed + 1;
  EngineHistory history(number, {.steps = 150,
                                 .shards = 1,
                                 .mutation_log_bytes_max = 4 << 10,
                                 .world = world_of_history(options, number)});
  live(history, 3);
  history.start_life();
  history.run_events(100 * (1 + options.seed % 9));
  history.crash(true);
  live(history, 1);
  return outcome_of(history, {{"mutation files shed", history.counts().mutation_files_shed, 3}});
}

}  // namespace

std::vector<ScenarioInfo> engine_history_scenarios() {
  return {{.name = "storage-engine",
           .description = "an engine beside an oracle: tables, tablets, peers, merges",
           .is_dear = true,
           .run = run_engine},
          {.name = "storage-wide-partition",
           .description = "an engine beside an oracle: one partition of many rows and deletes",
           .is_dear = true,
           .run = run_wide_partition},
          {.name = "storage-mutation-cap",
           .description = "an engine beside an oracle: a mutation log that must shed",
           .is_dear = true,
           .run = run_capped_mutation_log}};
}

}  // namespace helenus::sim
