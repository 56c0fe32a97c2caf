// Random histories of the engine that go wrong at every event: the machine is killed or loses its
// power, its disk goes back to an older image, loses the log, is full, or fails a read, a write or
// a sync.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "sim/machine.h"
#include "sim/scenarios/storage/storage.h"
#include "sim/scenarios/storage/ways.h"
#include "storage/engine/engine_history_test_support.h"

namespace helenus::sim {

namespace {

using storage::LogSyncMode;
using storage::testing::EngineHistory;
using storage::testing::LogWorld;
using Counts = EngineHistory::Counts;

// How a way ends: what counts of it beside its violations.
using Seen = std::vector<Sighting> (*)(const Counts&);

std::vector<Sighting> nothing_more(const Counts&) {
  return {};
}

// One seed of ways of a history whose life is under way.
RunOutcome run_ways(EngineHistory& history, const WaysOfSeed& seed, WaysOptions options,
                    const std::function<void(std::uint64_t event)>& story, Seen seen,
                    std::uint64_t ways_wanted) {
  Ways ways(history.world(), seed, options);
  ways.take([&] { return history.run_events(1) && history.violations().empty(); },
            [&](std::uint64_t event) {
              story(event);
              return WayEnd{.violations = history.violations(),
                            .sightings = seen(history.counts())};
            });
  RunOutcome outcome = ways.outcome(history.violations());
  outcome.sightings.push_back({"ways", ways.count(), ways_wanted / kWaysShared / options.stride});
  return outcome;
}

// What comes after a crash: a life that may be cut short, too, and one that is not.
void go_on(EngineHistory& history, std::uint64_t event) {
  history.start_life(4);
  if (event % 3 == 0 && history.run_events(event % 97 + 20)) {
    history.crash(event % 2 == 0);
    history.start_life(2);
  }
  history.run_to_end();
}

// ---- Crashes ----

RunOutcome run_crash(const RunOptions& options) {
  constexpr std::array kModes{LogSyncMode::batch, LogSyncMode::group, LogSyncMode::periodic};
  const WaysOfSeed seed(options.seed, kModes.size());
  EngineHistory history(seed.history, {.mode = kModes[seed.kind],
                                       .steps = 25,
                                       .tables = 2,
                                       .world = world_of_history(options, seed.history)});
  history.start_life();
  // The life that is watched begins with nothing, with files, or with a replay.
  const std::uint64_t beginning = (seed.history + seed.kind) % 3;
  if (beginning == 1) {
    history.run_events(400 + seed.history % 100);
    history.crash(seed.history % 2 == 1);
    history.start_life();
  } else if (beginning == 2) {
    history.run_to_end();
    history.start_life();
  }
  const auto story = [&](std::uint64_t event) {
    history.crash(event % 4 != 0);
    go_on(history, event);
  };
  return run_ways(history, seed, {}, story, nothing_more, 300);
}

// After a kill a start may find a manifest, or the name of another file, that is in memory alone;
// what it does by it must not outlive it.
RunOutcome run_power_loss_after_kill(const WaysOfSeed& seed, const RunOptions& options) {
  EngineHistory history(
      seed.history, {.steps = 25, .tables = 2, .world = world_of_history(options, seed.history)});
  history.start_life();
  const auto story = [&](std::uint64_t event) {
    history.crash(false);
    history.start_life(2);
    history.run_events(20 + event * 7 % 150);
    history.crash(true);
    history.start_life(2);
    history.run_to_end();
  };
  return run_ways(history, seed, {}, story, nothing_more, 300);
}

// A start that has to flush before it has replayed everything, killed and then cut off from power:
// what the first kill left in the page cache alone may be in a file already.
RunOutcome run_flush_inside_replay(const WaysOfSeed& seed, const RunOptions& options) {
  EngineHistory history(seed.history, {.steps = 60,
                                       .schema_changes = false,
                                       .tight_memory = true,
                                       .world = world_of_history(options, seed.history)});
  history.start_life();
  history.run_events(350 + seed.history % 7 * 60);
  history.crash(false);
  history.start_life(4);
  const auto story = [&](std::uint64_t) {
    history.crash(true);
    history.start_life(2);
    history.run_to_end();
  };
  return run_ways(history, seed, {}, story, nothing_more, 150);
}

RunOutcome run_two_crashes(const RunOptions& options) {
  const WaysOfSeed seed(options.seed, 2);
  return seed.kind == 0 ? run_power_loss_after_kill(seed, options)
                        : run_flush_inside_replay(seed, options);
}

// An older image of the disk is known for one.
RunOutcome run_older_image(const RunOptions& options) {
  const WaysOfSeed seed(options.seed, 1);
  EngineHistory history(seed.history, {.steps = 25,
                                       .tables = 2,
                                       .schema_changes = false,
                                       .world = world_of_history(options, seed.history)});
  history.start_life();
  history.run_to_end();
  history.take_image();
  history.start_life();
  const auto story = [&](std::uint64_t event) {
    // The next ones go back to here.
    history.crash(true);
    history.put_back_image();
    history.start_life(2);
    if (event % 3 == 0 && history.run_events(event % 97 + 20)) {
      history.crash(event % 2 == 0);
      history.start_life(2);
    }
    history.run_to_end();
  };
  const Seen seen = [](const Counts& counts) -> std::vector<Sighting> {
    return {{"lives in doubt", counts.lives_in_doubt, 1}};
  };
  return run_ways(history, seed, {}, story, seen, 300);
}

// What is left has no dot without its data: what was lost is absent and unseen, and not deleted.
RunOutcome run_lost_log(const RunOptions& options) {
  const WaysOfSeed seed(options.seed, 1);
  EngineHistory history(seed.history,
                        {.steps = 30, .world = world_of_history(options, seed.history)});
  history.start_life();
  history.run_to_end();
  history.start_life();
  const auto story = [&](std::uint64_t event) {
    history.crash(event % 4 != 0);
    history.lose_log();
    go_on(history, event);
  };
  const Seen seen = [](const Counts& counts) -> std::vector<Sighting> {
    return {{"logs lost", counts.logs_lost, 2}, {"writes lost", counts.writes_lost, 1}};
  };
  return run_ways(history, seed, {}, story, seen, 300);
}

// ---- Trouble with the disk ----

enum class Trouble : unsigned char { full, read, write, sync };
constexpr std::uint64_t kTroubles = 4;

// Lets it last until it has struck once, or while the disk is full for a while.
void go_through(EngineHistory& history, Trouble trouble) {
  LogWorld& world = history.world();
  const DiskFaultCounts& counts = world.machine().disk_queue().counts();
  const auto over = [&] { return !world.machine().is_up(); };
  history.begin_trouble(trouble == Trouble::read ? ".sst" : "");
  if (trouble == Trouble::full) {
    const std::uint64_t capacity = world.disk().capacity();
    world.disk().set_capacity(world.disk().used_bytes());
    (void)world.world().run_until(over, 25s);
    world.disk().set_capacity(capacity);
  } else if (trouble == Trouble::read) {
    // For a while, so that answers are asked for: what is in memory is right, the rest an error.
    world.faults().read_error = 1;
    world.faults().only_suffix = ".sst";
    (void)world.world().run_until([&] { return over() || counts.read_errors > 3; }, 20s);
    world.faults() = {};
  } else {
    (trouble == Trouble::write ? world.faults().write_error : world.faults().sync_error) = 1;
    (void)world.world().run_until(
        [&] { return over() || counts.write_errors + counts.sync_errors > 0; }, 1h);
    world.faults() = {};
  }
  history.end_trouble();
  history.run_to_end();
}

void go_through_and_on(EngineHistory& history, Trouble trouble, std::uint64_t event) {
  go_through(history, trouble);
  history.crash(event % 2 == 0);
  history.start_life(3);
  history.run_to_end();
}

// Whether room for changes and the next start is kept at this moment.
bool keeps_room(LogWorld& world) {
  const auto entries = world.disk().list(std::string(storage::testing::kEngineFolder) + "/a");
  return entries && std::ranges::any_of(*entries, [](const runtime::DirectoryEntry& entry) {
           return entry.name.starts_with("reserve-") && entry.name.ends_with("-changes");
         });
}

// It keeps room for a full disk, dies on it, lives on it once more, and has room again.
void live_on_a_full_disk(EngineHistory& history, std::uint64_t event) {
  LogWorld& world = history.world();
  const auto over = [&] { return !world.machine().is_up(); };
  // A disk that somebody else fills while a start has taken back what was kept stops that start.
  if (!keeps_room(world)) return history.run_to_end();
  const std::uint64_t capacity = world.disk().capacity();
  world.disk().set_capacity(world.disk().used_bytes());
  history.begin_trouble();
  (void)world.world().run_until(over, 5s);
  if (!over()) history.crash(event % 2 == 0);
  history.start_life(5);
  history.begin_trouble();
  (void)world.world().run_until(over, 25s);
  world.disk().set_capacity(capacity);
  history.end_trouble();
  history.run_to_end();
  history.crash(event % 2 == 0);
  history.start_life(3);
  history.run_to_end();
}

// Writes are refused with an error that says why, reads go on, nothing is lost, and what can pass
// passes.
RunOutcome run_trouble(const RunOptions& options) {
  constexpr std::uint64_t kFullWithReserve = kTroubles;
  const WaysOfSeed seed(options.seed, kTroubles + 1);
  const bool with_reserve = seed.kind == kFullWithReserve;
  EngineHistory history(seed.history, {.steps = 25,
                                       .tables = 2,
                                       .disk_reserve = with_reserve,
                                       .world = world_of_history(options, seed.history)});
  history.start_life();
  history.run_to_end();
  history.start_life();
  const auto story = [&](std::uint64_t event) {
    if (with_reserve) {
      live_on_a_full_disk(history, event);
    } else {
      go_through_and_on(history, static_cast<Trouble>(seed.kind), event);
    }
  };
  const Seen seen = [](const Counts& counts) -> std::vector<Sighting> {
    return {{"refusals", counts.refusals, 5}};
  };
  return run_ways(history, seed, {.events = Events::of_the_disk}, story, seen, 100);
}

// ---- Deletes of ranges in parts ----

// One partition of many rows, in an 'lww' table, with as many deletes when the life that is watched
// begins as lie in parts: whatever happens, a reader finds those that hold its row. At every so
// many events, as each costs more than those above.
RunOutcome run_ranges(const RunOptions& options) {
  constexpr int kStepsBefore = 150;
  enum Kind : unsigned char { crash, lost_log, trouble };
  const WaysOfSeed seed(options.seed, trouble + kTroubles);
  EngineHistory history(3 * seed.history, {.steps = 15,
                                           .tables = 1,
                                           .tablets = 1,
                                           .shards = 1,
                                           .partitions = 1,
                                           .rows = 150,
                                           .peer_is_away = true,
                                           .schema_changes = false,
                                           .world = world_of_history(options, seed.history)});
  history.start_life(kStepsBefore);
  history.run_to_end();
  history.start_life();
  const auto story = [&](std::uint64_t event) {
    if (seed.kind >= trouble) {
      return go_through_and_on(history, static_cast<Trouble>(seed.kind - trouble), event);
    }
    history.crash(event % 4 != 0);
    if (seed.kind == lost_log) history.lose_log();
    go_on(history, event);
  };
  const Seen seen = [](const Counts& counts) -> std::vector<Sighting> {
    return {{"paths to ranges read", counts.range_paths_read, 1}};
  };
  const bool is_trouble = seed.kind >= trouble;
  return run_ways(history, seed,
                  {.events = is_trouble ? Events::of_the_disk : Events::all,
                   .stride = seed.kind == crash ? 7U : 11U},
                  story, seen, is_trouble ? 100 : 300);
}

}  // namespace

std::vector<ScenarioInfo> engine_crash_scenarios() {
  return {{.name = "storage-crash",
           .description = "an engine that crashes at every event: what was acknowledged is there",
           .is_dear = true,
           .run = run_crash},
          {.name = "storage-two-crashes",
           .description = "an engine that crashes in the start after a crash",
           .is_dear = true,
           .run = run_two_crashes},
          {.name = "storage-older-image",
           .description = "an engine whose disk goes back: no dot is minted twice",
           .is_dear = true,
           .run = run_older_image},
          {.name = "storage-lost-log",
           .description = "an engine that loses its log: the files are true by themselves",
           .is_dear = true,
           .run = run_lost_log},
          {.name = "storage-trouble",
           .description = "an engine whose disk is full or fails, at every operation of it",
           .is_dear = true,
           .run = run_trouble},
          {.name = "storage-ranges",
           .description = "deletes of ranges in parts, through crashes and trouble",
           .is_dear = true,
           .run = run_ranges}};
}

}  // namespace helenus::sim
