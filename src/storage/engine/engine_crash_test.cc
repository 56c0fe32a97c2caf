// Random histories of the engine that go wrong at every event: the machine is killed or loses its
// power, its disk goes back to an older image, loses the log, is full, or fails a read, a write or
// a sync.
//
// At every event the process is copied (fork): the copy takes the other way and ends, the history
// goes on. So every event costs what follows from it, and not all that came before. A failure
// prints seed and event;
//   HELENUS_HISTORY_FROM=SEED HELENUS_HISTORY_SEEDS=1 HELENUS_HISTORY_EVENT=EVENT
// takes just that way, in this process; HELENUS_HISTORY_SEEDS=100 takes a hundred seeds.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test_scale.h"
#include "sim/machine.h"
#include "storage/engine/engine_history_test_support.h"

namespace helenus::storage::testing {
namespace {

using Counts = EngineHistory::Counts;

// A sanitizer looks for faults of memory, which do not hide at one event alone, and makes each of
// them several times as dear.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::uint64_t kStride = 11;
#else
constexpr std::uint64_t kStride = 1;
#endif

struct Seeds {
  explicit Seeds(std::uint64_t count)
      : first(base::number_from_environment("HELENUS_HISTORY_FROM", 1)),
        behind(first + base::count_from_environment("HELENUS_HISTORY_SEEDS", count)) {}
  const std::uint64_t first;
  const std::uint64_t behind;
};

// What happened in copies of this process, which share it.
class Tally {
 public:
  Tally()
      : shared_(static_cast<Shared*>(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    ASSERT(shared_ != MAP_FAILED);
  }
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;
  ~Tally() { ::munmap(shared_, sizeof(Shared)); }

  void add(const Counts& counts) {
    shared_->counts.add(counts);
    ++shared_->ways;
  }
  void add_paths_read(std::uint64_t count) { shared_->paths_read += count; }
  const Counts& counts() const { return shared_->counts; }
  std::uint64_t paths_read() const { return shared_->paths_read; }
  std::uint64_t ways() const { return shared_->ways; }

 private:
  // Zeros are its beginning.
  struct Shared {
    Counts counts;
    std::uint64_t ways;
    std::uint64_t paths_read;
  };
  Shared* shared_;
};

// Whether nothing went wrong in a copy of this process that does it.
bool well_in_a_copy(const std::function<void()>& story) {
  std::fflush(nullptr);
  const pid_t copy = ::fork();
  ASSERT(copy >= 0);
  if (copy == 0) {
    story();
    std::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT(::waitpid(copy, &status, 0) == copy);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Lets the life under way happen, and at each of its events the story in a copy; or only where an
// operation of the disk has begun since.
enum class Events : unsigned char { all, of_the_disk };
void at_every_event(EngineHistory& history, Tally& tally, std::uint64_t seed,
                    const std::function<void(std::uint64_t event)>& story,
                    Events events = Events::all, std::uint64_t stride = 1) {
  const sim::DiskQueue& disk = history.world().machine().disk_queue();
  std::uint32_t begun = disk.operations_begun();
  const std::uint64_t only = base::number_from_environment("HELENUS_HISTORY_EVENT", 0);
  for (std::uint64_t event = 1; history.run_events(1); ++event) {
    if (event == only) {
      story(event);
      return;
    }
    const bool of_the_disk = std::exchange(begun, disk.operations_begun()) != begun;
    if (events == Events::of_the_disk && !of_the_disk) continue;
    if (only != 0 || event % (kStride * stride) != 0) continue;
    const bool well = well_in_a_copy([&] {
      story(event);
      tally.add(history.counts());
    });
    ASSERT_TRUE(well) << "seed " << seed << ", event " << event;
  }
}

// Enough happened, unless it was to be one way alone.
void expect_ways(const Tally& tally, std::uint64_t least) {
  ::testing::Test::RecordProperty("ways", static_cast<int>(tally.ways()));
  if (std::getenv("HELENUS_HISTORY_EVENT") != nullptr) return;
  EXPECT_GE(tally.ways(), least / kStride);
}

// ---- Crashes ----

class EngineCrash : public ::testing::TestWithParam<LogSyncMode> {};

// What comes after a crash: a life that may be cut short, too, and one that is not.
void go_on(EngineHistory& history, std::uint64_t event) {
  history.start_life(4);
  if (event % 3 == 0 && history.run_events(event % 97 + 20)) {
    history.crash(event % 2 == 0);
    history.start_life(2);
  }
  history.run_to_end();
}

TEST_P(EngineCrash, AtEveryEventLosesNothingAcknowledgedAndMintsNoDotTwice) {
  Tally tally;
  const Seeds seeds(1);
  for (std::uint64_t seed = seeds.first; seed < seeds.behind; ++seed) {
    EngineHistory history(seed, {.mode = GetParam(), .steps = 25, .tables = 2});
    history.start_life();
    // The life that is watched begins with nothing, with files, or with a replay.
    const std::uint64_t beginning = seed + static_cast<std::uint64_t>(GetParam());
    if (beginning % 3 == 1) {
      history.run_events(400 + seed % 100);
      history.crash(seed % 2 == 1);
      history.start_life();
    } else if (beginning % 3 == 2) {
      history.run_to_end();
      history.start_life();
    }
    at_every_event(history, tally, seed, [&](std::uint64_t event) {
      history.crash(event % 4 != 0);
      go_on(history, event);
    });
    ASSERT_FALSE(HasFailure());
  }
  expect_ways(tally, 300);
}

INSTANTIATE_TEST_SUITE_P(AllModes, EngineCrash,
                         ::testing::Values(LogSyncMode::batch, LogSyncMode::group,
                                           LogSyncMode::periodic),
                         [](const auto& mode) { return std::string(name_of(mode.param)); });

// After a kill a start may find a manifest, or the name of another file, that is in memory alone;
// what it does by it must not outlive it.
TEST(EngineTwoCrashes, APowerLossInTheStartAfterAKillLosesNothing) {
  Tally tally;
  const Seeds seeds(1);
  for (std::uint64_t seed = seeds.first; seed < seeds.behind; ++seed) {
    EngineHistory history(seed, {.steps = 25, .tables = 2});
    history.start_life();
    at_every_event(history, tally, seed, [&](std::uint64_t event) {
      history.crash(false);
      history.start_life(2);
      history.run_events(20 + event * 7 % 150);
      history.crash(true);
      history.start_life(2);
      history.run_to_end();
    });
    ASSERT_FALSE(HasFailure());
  }
  expect_ways(tally, 300);
}

// A start that has to flush before it has replayed everything, killed and then cut off from power:
// what the first kill left in the page cache alone may be in a file already.
TEST(EngineTwoCrashes, AStartThatFlushesBeforeTheEndOfItsReplayMintsNothingTwice) {
  Tally tally;
  const Seeds seeds(1);
  for (std::uint64_t seed = seeds.first; seed < seeds.behind; ++seed) {
    EngineHistory history(seed, {.steps = 60, .schema_changes = false, .tight_memory = true});
    history.start_life();
    history.run_events(350 + seed % 7 * 60);
    history.crash(false);
    history.start_life(4);
    at_every_event(history, tally, seed, [&](std::uint64_t) {
      history.crash(true);
      history.start_life(2);
      history.run_to_end();
    });
    ASSERT_FALSE(HasFailure());
  }
  expect_ways(tally, 150);
}

TEST(EngineImage, AnOlderImageOfTheDiskIsKnownForOneAtEveryEvent) {
  Tally tally;
  const Seeds seeds(1);
  for (std::uint64_t seed = seeds.first; seed < seeds.behind; ++seed) {
    EngineHistory history(seed, {.steps = 25, .tables = 2, .schema_changes = false});
    history.start_life();
    history.run_to_end();
    history.take_image();
    history.start_life();
    at_every_event(history, tally, seed, [&](std::uint64_t event) {
      // The next ones go back to here.
      history.crash(true);
      history.put_back_image();
      history.start_life(2);
      if (event % 3 == 0 && history.run_events(event % 97 + 20)) {
        history.crash(event % 2 == 0);
        history.start_life(2);
      }
      history.run_to_end();
    });
    ASSERT_FALSE(HasFailure());
  }
  expect_ways(tally, 300);
  EXPECT_GE(tally.counts().lives_in_doubt, tally.ways());
}

// What is left has no dot without its data: what was lost is absent and unseen, and not deleted.
TEST(EngineLostLog, AtEveryEventTheFilesAreTrueByThemselves) {
  Tally tally;
  const Seeds seeds(1);
  for (std::uint64_t seed = seeds.first; seed < seeds.behind; ++seed) {
    EngineHistory history(seed, {.steps = 30});
    history.start_life();
    history.run_to_end();
    history.start_life();
    at_every_event(history, tally, seed, [&](std::uint64_t event) {
      history.crash(event % 4 != 0);
      history.lose_log();
      go_on(history, event);
    });
    ASSERT_FALSE(HasFailure());
  }
  expect_ways(tally, 300);
  EXPECT_GT(tally.counts().logs_lost, tally.ways() / 2);
  EXPECT_GT(tally.counts().writes_lost, tally.ways());
}

// ---- Deletes of ranges in parts ----

// One partition of many rows, in an 'lww' table, with as many deletes when the life that is watched
// begins as lie in parts: whatever happens, a reader finds those that hold its row. At every so
// many events, as each costs more than those above.
void with_ranges_in_parts(const std::function<void(EngineHistory&, std::uint64_t event)>& story,
                          Events events, std::uint64_t stride, std::uint64_t ways_min) {
  constexpr int kStepsBefore = 150;
  Tally tally;
  const Seeds seeds(1);
  for (std::uint64_t seed = seeds.first; seed < seeds.behind; ++seed) {
    EngineHistory history(3 * seed, {.steps = 15,
                                     .tables = 1,
                                     .tablets = 1,
                                     .shards = 1,
                                     .partitions = 1,
                                     .rows = 150,
                                     .peer_is_away = true,
                                     .schema_changes = false});
    history.start_life(kStepsBefore);
    history.run_to_end();
    history.start_life();
    const std::uint64_t before = history.counts().range_paths_read;
    at_every_event(
        history, tally, seed,
        [&](std::uint64_t event) {
          story(history, event);
          tally.add_paths_read(history.counts().range_paths_read - before);
        },
        events, stride);
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
  expect_ways(tally, ways_min / stride);
  EXPECT_GT(tally.paths_read(), tally.ways()) << "after it happened, ranges lay in parts";
}

TEST(EngineRangesInParts, ACrashLosesNoneOfThem) {
  const auto crash = [](EngineHistory& history, std::uint64_t event) {
    history.crash(event % 4 != 0);
    go_on(history, event);
  };
  with_ranges_in_parts(crash, Events::all, 7, 300);
}

TEST(EngineRangesInParts, AreTrueByThemselvesWithoutTheLog) {
  const auto lose_log = [](EngineHistory& history, std::uint64_t event) {
    history.crash(event % 4 != 0);
    history.lose_log();
    go_on(history, event);
  };
  with_ranges_in_parts(lose_log, Events::all, 11, 300);
}

// ---- Trouble with the disk ----

enum class Fault : unsigned char { full, read, write, sync };

class EngineTrouble : public ::testing::TestWithParam<Fault> {};

// Lets it last until it has struck once, or while the disk is full for a while.
void go_through_trouble(EngineHistory& history, Fault fault) {
  LogWorld& world = history.world();
  const sim::DiskFaultCounts& counts = world.machine().disk_queue().counts();
  const auto over = [&] { return !world.machine().is_up(); };
  history.begin_trouble(fault == Fault::read ? ".sst" : "");
  if (fault == Fault::full) {
    const std::uint64_t capacity = world.disk().capacity();
    world.disk().set_capacity(world.disk().used_bytes());
    (void)world.world().run_until(over, std::chrono::seconds(25));
    world.disk().set_capacity(capacity);
  } else if (fault == Fault::read) {
    // For a while, so that answers are asked for: what is in memory is right, the rest an error.
    world.faults().read_error = 1;
    world.faults().only_suffix = ".sst";
    (void)world.world().run_until([&] { return over() || counts.read_errors > 3; },
                                  std::chrono::seconds(20));
    world.faults() = {};
  } else {
    (fault == Fault::write ? world.faults().write_error : world.faults().sync_error) = 1;
    (void)world.world().run_until(
        [&] { return over() || counts.write_errors + counts.sync_errors > 0; },
        std::chrono::hours(1));
    world.faults() = {};
  }
  history.end_trouble();
  history.run_to_end();
}

// Writes are refused with an error that says why, reads go on, nothing is lost, and what can pass
// passes.
TEST_P(EngineTrouble, AtEveryOperationOfTheDiskLosesNothing) {
  Tally tally;
  const Seeds seeds(1);
  for (std::uint64_t seed = seeds.first; seed < seeds.behind; ++seed) {
    EngineHistory history(seed, {.steps = 25, .tables = 2});
    history.start_life();
    history.run_to_end();
    history.start_life();
    at_every_event(
        history, tally, seed,
        [&](std::uint64_t event) {
          go_through_trouble(history, GetParam());
          history.crash(event % 2 == 0);
          history.start_life(3);
          history.run_to_end();
        },
        Events::of_the_disk);
    ASSERT_FALSE(HasFailure());
  }
  expect_ways(tally, 100);
  EXPECT_GT(tally.counts().refusals, 20 / kStride);
}

TEST_P(EngineTrouble, LosesNoDeletesOfRangesInParts) {
  const auto trouble = [](EngineHistory& history, std::uint64_t event) {
    go_through_trouble(history, GetParam());
    history.crash(event % 2 == 0);
    history.start_life(3);
    history.run_to_end();
  };
  with_ranges_in_parts(trouble, Events::of_the_disk, 11, 100);
}

INSTANTIATE_TEST_SUITE_P(Disk, EngineTrouble,
                         ::testing::Values(Fault::full, Fault::read, Fault::write, Fault::sync),
                         [](const auto& fault) {
                           return std::string(fault.param == Fault::full    ? "full"
                                              : fault.param == Fault::read  ? "read_error"
                                              : fault.param == Fault::write ? "write_error"
                                                                            : "sync_error");
                         });

}  // namespace
}  // namespace helenus::storage::testing
