// The engine on disks that are full, broken, slow or damaged: nothing acknowledged is lost, nothing
// wrong is read, and where the trouble ends the engine goes on by itself.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "storage/engine/engine_pressure.h"
#include "storage/engine/engine_test_support.h"

namespace helenus::storage::testing {
namespace {

using base::Errc;
using base::Result;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kPlenty = std::uint64_t{64} << 30;

// What writers were told.
struct Told {
  Shown acknowledged;
  Shown open;  // the wait ended before the outcome was known
  std::uint64_t refused = 0;
  int next = 0;
};

// Everything acknowledged is shown, and nothing that nobody wrote.
void expect_complete(const Shown& rows, const Told& told) {
  for (const auto& [key, value] : told.acknowledged) {
    const auto at = rows.find(key);
    ASSERT_TRUE(at != rows.end()) << key << " is lost";
    EXPECT_EQ(at->second, value);
  }
  for (const auto& [key, value] : rows) {
    EXPECT_TRUE(told.acknowledged.contains(key) || told.open.contains(key)) << key;
  }
}

Task<void> expect_reads(EngineStory& story, const Told& told) {
  const auto rows = co_await story.scan();
  CO_ASSERT_OK(rows);
  expect_complete(*rows, told);
}

Task<Result<void>> write_one(EngineStory& story, Told& told) {
  const std::string row = fmt::format("r{:05}", told.next++);
  const std::string value = row + std::string(400, 'v');
  const Until until = Until::after(story.runtime(), std::chrono::seconds(10));
  const auto written = co_await story.put("p", row, value, until);
  if (written) {
    told.acknowledged["p/" + row] = value;
    co_return {};
  }
  ++told.refused;
  if (written.failed_with(Errc::timeout)) told.open["p/" + row] = value;
  co_return written.error();
}

Task<void> pause(EngineStory& story, runtime::Duration duration) {
  CO_ASSERT_OK(co_await runtime::sleep_for(story.runtime(), duration, {}));
}

EngineOptions quick_retries() {
  EngineOptions options = small_engine();
  options.retry_delay = std::chrono::milliseconds(100);
  options.log.retry_delay = std::chrono::milliseconds(100);
  return options;
}

// Writes until the engine has refused a few times; every refusal says what is wrong.
Task<void> write_until_refused(EngineStory& story, Told& told, const std::vector<Errc>& allowed) {
  const std::uint64_t refused_before = told.refused;
  for (int tries = 0; tries < 3000 && told.refused < refused_before + 5; ++tries) {
    const auto written = co_await write_one(story, told);
    if (written) continue;
    EXPECT_TRUE(std::ranges::any_of(allowed, [&](Errc code) { return written.failed_with(code); }))
        << written.error().to_string();
    co_await pause(story, std::chrono::milliseconds(30));
  }
  EXPECT_EQ(told.refused, refused_before + 5) << "nothing was refused";
}

// After the trouble: writes are taken again, and everything is there, in files too.
Task<void> expect_recovered(EngineStory& story, Told& told) {
  co_await pause(story, std::chrono::seconds(3));
  for (int row = 0; row < 30; ++row) CO_ASSERT_OK(co_await write_one(story, told));
  EXPECT_FALSE(story.engine().flush_error().has_value());
  EXPECT_FALSE(story.engine().fatal_error().has_value());
  co_await expect_reads(story, told);
  CO_ASSERT_OK(co_await story.engine().compact(kTable, Until::forever()));
  co_await expect_reads(story, told);
}

// ---- A full disk ----

Task<void> fill_the_disk(EngineStory& story, LogWorld& world, Told& told, std::uint64_t slack) {
  for (int row = 0; row < 20; ++row) CO_ASSERT_OK(co_await write_one(story, told));
  world.disk().set_capacity(world.disk().used_bytes() + slack);
  co_await write_until_refused(story, told, {Errc::no_space, Errc::overloaded, Errc::timeout});
  co_await expect_reads(story, told);
}

Task<void> full_life(Runtime& runtime, LogWorld& world, Told& told, std::uint64_t slack) {
  EngineStory story(runtime, quick_retries());
  CO_ASSERT_OK(co_await story.open());
  co_await fill_the_disk(story, world, told, slack);
  world.disk().set_capacity(kPlenty);
  co_await expect_recovered(story, told);
  CO_ASSERT_OK(co_await story.stop());
}

// Stays full until the machine dies.
struct Full {
  bool reached = false;
  std::uint64_t flush_failures = 0;
  std::uint64_t compaction_failures = 0;
};

Task<void> stay_full(Runtime& runtime, LogWorld& world, Told& told, std::uint64_t slack,
                     Full& full) {
  EngineStory story(runtime, quick_retries());
  CO_ASSERT_OK(co_await story.open());
  co_await fill_the_disk(story, world, told, slack);
  full.flush_failures += story.engine().statistics().flush_failures;
  full.compaction_failures += story.engine().statistics().compaction_failures;
  full.reached = true;
  co_await pause(story, std::chrono::hours(10));
}

Task<void> later_life(Runtime& runtime, Told& told, bool& opened) {
  EngineStory story(runtime, quick_retries());
  const auto result = co_await story.open();
  opened = result.has_value();
  if (!opened) {
    EXPECT_TRUE(result.failed_with(Errc::no_space)) << result.error().to_string();
    co_return;
  }
  co_await expect_reads(story, told);
  (void)co_await story.stop();
}

class FullDiskWith : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(FullDiskWith, RefusesWritesReadsOnAndRecoversWhenSpaceReturns) {
  LogWorld world(GetParam());
  Told told;
  world.run([&](Runtime& runtime) { return full_life(runtime, world, told, GetParam() << 10); });
  bool opened = false;
  world.run([&](Runtime& runtime) { return later_life(runtime, told, opened); });
  EXPECT_TRUE(opened);
}

// From room for next to nothing to room for a few segments of the log and files.
INSTANTIATE_TEST_SUITE_P(KibibytesLeft, FullDiskWith,
                         ::testing::Values(0, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 400));

TEST(FullDisk, ACrashOnAFullDiskLosesNothing) {
  Full full;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    LogWorld world(seed);
    Told told;
    full.reached = false;
    world.start(
        [&](Runtime& runtime) { return stay_full(runtime, world, told, (seed * 16) << 10, full); });
    ASSERT_TRUE(world.world().run_until([&] { return full.reached || !world.machine().is_up(); },
                                        std::chrono::hours(1)));
    world.machine().power_loss();
    bool opened = false;
    for (int tries = 0; tries < 3; ++tries) {
      world.run([&](Runtime& runtime) { return later_life(runtime, told, opened); });
    }
    world.disk().set_capacity(kPlenty);
    world.run([&](Runtime& runtime) { return later_life(runtime, told, opened); });
    EXPECT_TRUE(opened);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(full.flush_failures, 0);
  EXPECT_GT(full.compaction_failures, 0);
}

// Fills the disk, and frees it bit by bit until only the manifest finds no room; then drops the
// table under whoever waits with it, and gives all the room there is.
Task<void> drop_under_a_waiting_install(Runtime& runtime, LogWorld& world, Told& told,
                                        std::uint64_t step, bool& begun) {
  EngineStory story(runtime, quick_retries());
  CO_ASSERT_OK(co_await story.open());
  co_await fill_the_disk(story, world, told, step);
  const auto waits = [&] {
    const auto& trouble = story.engine().flush_error();
    return trouble.has_value() && trouble->to_string().contains("manifest");
  };
  std::uint64_t capacity = world.disk().used_bytes();
  for (int tries = 0; tries < 4000 && !waits(); ++tries) {
    world.disk().set_capacity(capacity += step);
    co_await pause(story, std::chrono::milliseconds(120));
  }
  CO_ASSERT_TRUE(waits());
  runtime::TaskGroup tasks(runtime);
  tasks.spawn([](Engine& engine) -> Task<void> {
    CO_ASSERT_OK(co_await engine.drop_table(kTable));
  }(story.engine()));
  co_await pause(story, std::chrono::milliseconds(20));
  world.disk().set_capacity(kPlenty);
  begun = true;
  co_await tasks.join();
  co_await pause(story, std::chrono::seconds(1));
  CO_ASSERT_OK(co_await story.stop());
}

// The table is there with everything, or it is gone.
Task<void> expect_whole_or_dropped(Runtime& runtime, const Told& told, bool& dropped) {
  auto opened = co_await Engine::open(runtime, quick_retries());
  CO_ASSERT_OK(opened);
  dropped = (*opened)->cursor(kTable, kTablet, {}).failed_with(Errc::not_found);
  CO_ASSERT_OK(co_await (*opened)->stop());
  if (dropped) co_return;
  EngineStory story(runtime, quick_retries());
  CO_ASSERT_OK(co_await story.open());
  co_await expect_reads(story, told);
  CO_ASSERT_OK(co_await story.stop());
}

// Whoever waits for room with the manifest has entered nothing yet: a table that is dropped
// meanwhile takes neither its log nor its files away before the manifest forgets it.
TEST(FullDisk, ATableDroppedWhileTheManifestWaitsForRoomIsWholeOrGone) {
  std::uint64_t whole = 0;
  std::uint64_t gone = 0;
  for (const std::uint64_t step : {150U, 200U, 300U, 500U}) {
    for (std::uint64_t events = 1;; events += 5) {
      LogWorld world(step);
      Told told;
      bool begun = false;
      world.start([&](Runtime& runtime) {
        return drop_under_a_waiting_install(runtime, world, told, step, begun);
      });
      ASSERT_TRUE(world.world().run_until([&] { return begun || !world.machine().is_up(); },
                                          std::chrono::hours(1)));
      ASSERT_TRUE(begun);
      for (std::uint64_t event = 0; event < events && world.machine().is_up(); ++event) {
        if (!world.world().step()) break;
      }
      const bool ended = !world.machine().is_up();
      world.machine().power_loss();
      bool dropped = false;
      world.run([&](Runtime& runtime) { return expect_whole_or_dropped(runtime, told, dropped); });
      ASSERT_FALSE(HasFailure()) << "step " << step << ", after event " << events;
      (dropped ? gone : whole) += 1;
      if (ended) break;
    }
  }
  EXPECT_GT(whole, 3);
  EXPECT_GT(gone, 3);
}

// ---- A broken disk ----

Task<void> break_files(EngineStory& story, LogWorld& world, Told& told,
                       std::function<void(sim::DiskFaults&)> fault) {
  for (int row = 0; row < 30; ++row) CO_ASSERT_OK(co_await write_one(story, told));
  world.faults().only_suffix = ".sst";
  fault(world.faults());
  co_await write_until_refused(story, told, {Errc::io_error});
  CO_ASSERT_TRUE(story.engine().flush_error().has_value());
  EXPECT_THAT(story.engine().flush_error()->to_string(), HasSubstr(".sst"));
  EXPECT_FALSE(story.engine().fatal_error().has_value());
  const auto rows = co_await story.scan();
  const bool reads_fail = world.faults().read_error > 0;
  EXPECT_TRUE(rows.has_value() || (reads_fail && rows.failed_with(Errc::io_error)));
  if (rows) expect_complete(*rows, told);
  world.faults() = {};
  co_await expect_recovered(story, told);
}

Task<void> broken_life(Runtime& runtime, LogWorld& world, Told& told,
                       std::function<void(sim::DiskFaults&)> fault) {
  EngineStory story(runtime, quick_retries());
  CO_ASSERT_OK(co_await story.open());
  co_await break_files(story, world, told, std::move(fault));
  CO_ASSERT_OK(co_await story.stop());
}

TEST(BrokenDisk, FilesThatCannotBeWrittenAreWrittenWhenTheyCan) {
  const std::vector<std::function<void(sim::DiskFaults&)>> faults = {
      [](sim::DiskFaults& disk) { disk.write_error = 1; },
      [](sim::DiskFaults& disk) { disk.sync_error = 1; },
      [](sim::DiskFaults& disk) { disk.read_error = 1; },
  };
  for (std::size_t kind = 0; kind < faults.size(); ++kind) {
    LogWorld world(kind + 1);
    Told told;
    world.run([&](Runtime& runtime) { return broken_life(runtime, world, told, faults[kind]); });
    bool opened = false;
    world.run([&](Runtime& runtime) { return later_life(runtime, told, opened); });
    EXPECT_TRUE(opened);
    ASSERT_FALSE(HasFailure()) << "fault " << kind;
  }
}

Task<void> fail_the_log(Runtime& runtime, LogWorld& world, Told& told) {
  EngineStory story(runtime, quick_retries());
  CO_ASSERT_OK(co_await story.open());
  for (int row = 0; row < 30; ++row) CO_ASSERT_OK(co_await write_one(story, told));
  Shown before = told.acknowledged;
  world.faults().sync_error = 1;
  const auto failed = co_await write_one(story, told);
  EXPECT_TRUE(failed.failed_with(Errc::io_error));
  told.open["p/r00030"] = "r00030" + std::string(400, 'v');
  world.faults() = {};
  co_await pause(story, std::chrono::seconds(5));
  CO_ASSERT_TRUE(story.engine().fatal_error().has_value());
  EXPECT_TRUE((co_await write_one(story, told)).failed_with(Errc::io_error)) << "it is final";
  for (const auto& [key, value] : before) {
    const auto read = co_await story.get("p", key.substr(2));
    CO_ASSERT_OK(read);
    EXPECT_EQ(*read, value);
  }
  EXPECT_FALSE((co_await story.get("p", "r00030")).has_value()) << "it may never have been written";
  EXPECT_FALSE((co_await story.stop()).has_value());
}

TEST(BrokenDisk, AFailedSyncOfTheLogEndsWritingForGoodAndReadsGoOn) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    LogWorld world(seed);
    Told told;
    world.run([&](Runtime& runtime) { return fail_the_log(runtime, world, told); });
    if (seed % 2 == 0) world.machine().power_loss();
    bool opened = false;
    world.run([&](Runtime& runtime) { return later_life(runtime, told, opened); });
    EXPECT_TRUE(opened);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

// ---- A failed sync in periodic mode ----

// What a process knew that acknowledged a write, could not sync it and was killed before it could
// tell anybody.
struct Unsynced {
  causality::Dot dot;
  bool failed = false;
};

Task<void> fail_in_periodic_mode(Runtime& runtime, LogWorld& world, Unsynced& unsynced) {
  EngineStory story(runtime, small_engine(LogSyncMode::periodic));
  CO_ASSERT_OK(co_await story.open());
  CO_ASSERT_OK(co_await story.put("p", "first", "v"));
  co_await pause(story, std::chrono::seconds(3));
  const auto written = co_await story.put("p", "second", "v");
  CO_ASSERT_OK(written);
  unsynced.dot = written->dot;
  world.faults().sync_error = 1;
  world.faults().write_error = 1;
  while (!story.engine().fatal_error()) co_await pause(story, std::chrono::milliseconds(1));
  unsynced.failed = true;
  co_await pause(story, std::chrono::hours(2));
}

Task<void> mint_again(Runtime& runtime, const Unsynced& unsynced, bool& lost) {
  EngineStory story(runtime, small_engine(LogSyncMode::periodic));
  CO_ASSERT_OK(co_await story.open());
  Engine& engine = story.engine();
  const auto first = co_await story.get("p", "first");
  CO_ASSERT_OK(first);
  EXPECT_EQ(*first, "v");
  const auto second = co_await story.get("p", "second");
  CO_ASSERT_OK(second);
  lost = second->empty();
  EXPECT_TRUE((co_await story.put("p", "third", "v")).failed_with(Errc::unavailable));
  EXPECT_EQ(engine.tablets_in_doubt(), std::vector{kTablet});
  CO_ASSERT_OK(co_await engine.reincarnate(kTablet, causality::actor_of(1, 2)));
  const auto third = co_await story.put("p", "third", "v");
  CO_ASSERT_OK(third);
  EXPECT_NE(third->dot, unsynced.dot);
  CO_ASSERT_OK(co_await story.stop());
}

// The machine runs on, and the kernel may have dropped what it could not write.
TEST(BrokenDisk, NoDotIsMintedTwiceAfterAFailedSyncAndAKillAtOnce) {
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    LogWorld world(seed);
    Unsynced unsynced;
    world.start([&](Runtime& runtime) { return fail_in_periodic_mode(runtime, world, unsynced); });
    ASSERT_TRUE(world.world().run_until([&] { return unsynced.failed; }, std::chrono::hours(1)));
    world.machine().kill();
    world.faults() = {};
    bool is_lost = false;
    world.run([&](Runtime& runtime) { return mint_again(runtime, unsynced, is_lost); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    lost += is_lost ? 1 : 0;
  }
  EXPECT_GT(lost, 0) << "or nothing was at stake";
}

// ---- One directory of several in trouble ----

std::size_t files_in(LogWorld& world, const std::string& directory) {
  const auto entries = world.disk().list(directory + "/shard-0000");
  return static_cast<std::size_t>(std::ranges::count_if(
      *entries, [](const auto& entry) { return entry.name.ends_with(".sst"); }));
}

// Without merges, so that every file is a flush's.
EngineOptions two_directories() {
  EngineOptions options = quick_retries();
  options.data_directories = {std::string(kEngineFolder) + "/a",
                              std::string(kEngineFolder) + "/ba"};
  options.compaction.files_min = 90;
  options.compaction.files_max = 90;
  return options;
}

Task<void> flush_rows(EngineStory& story, int rows) {
  for (int row = 0; row < rows; ++row) {
    CO_ASSERT_OK(co_await story.put("p", std::to_string(row), "v"));
    CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
  }
}

Task<void> silent_directory(Runtime& runtime, LogWorld& world) {
  const EngineOptions options = two_directories();
  const std::string& second = options.data_directories.back();
  EngineStory story(runtime, options);
  CO_ASSERT_OK(co_await story.open());
  co_await flush_rows(story, 6);
  const std::size_t before = files_in(world, second);
  EXPECT_GT(before, 0U);
  world.faults().read_error = 1;
  world.faults().only_suffix = "/ba";
  co_await flush_rows(story, 10);
  EXPECT_EQ(story.engine().statistics().flush_failures, 0U);
  EXPECT_GE(story.engine().statistics().directories_passed_over, 10U);
  EXPECT_EQ(files_in(world, second), before);
  // None of them says what room it has.
  world.faults().only_suffix = "a";
  CO_ASSERT_OK(co_await story.put("p", "r", "v"));
  EXPECT_FALSE(
      (co_await story.engine().flush(kTable, Until::after(runtime, std::chrono::seconds(1))))
          .has_value());
  CO_ASSERT_TRUE(story.engine().flush_error().has_value());
  EXPECT_TRUE(story.engine().flush_error()->code() == Errc::io_error);
  world.faults() = {};
  co_await pause(story, std::chrono::seconds(3));
  EXPECT_FALSE(story.engine().flush_error().has_value());
  co_await flush_rows(story, 6);
  EXPECT_GT(files_in(world, second), before);
  CO_ASSERT_OK(co_await story.stop());
}

TEST(BrokenDisk, ADirectoryThatDoesNotSayHowMuchRoomItHasIsPassedOver) {
  LogWorld world;
  world.run([&](Runtime& runtime) { return silent_directory(runtime, world); });
}

Task<void> refusing_directory(Runtime& runtime, LogWorld& world) {
  const EngineOptions options = two_directories();
  const std::string& second = options.data_directories.back();
  EngineStory story(runtime, options);
  CO_ASSERT_OK(co_await story.open());
  world.faults().write_error = 1;
  world.faults().only_suffix = "/ba/shard-0000/0000000005.sst";
  while (!story.engine().flush_error()) {
    CO_ASSERT_OK(co_await story.put("p", "r", "v"));
    (void)co_await story.engine().flush(kTable, Until::forever());
  }
  co_await pause(story, std::chrono::seconds(3));
  EXPECT_EQ(story.engine().statistics().flush_failures, 1U) << "the next try was another's";
  world.faults() = {};
  const std::size_t before = files_in(world, second);
  co_await flush_rows(story, 8);
  EXPECT_EQ(files_in(world, second), before) << "it is left alone for a while";
  EXPECT_GE(story.engine().statistics().directories_passed_over, 8U);
  co_await pause(story, std::chrono::minutes(2));
  co_await flush_rows(story, 8);
  EXPECT_GT(files_in(world, second), before);
  EXPECT_EQ(story.engine().statistics().flush_failures, 1U);
  CO_ASSERT_OK(co_await story.stop());
}

TEST(BrokenDisk, ADirectoryThatCannotBeWrittenToIsLeftAloneForAWhile) {
  LogWorld world;
  world.run([&](Runtime& runtime) { return refusing_directory(runtime, world); });
}

// ---- A slow disk ----

TEST(EnginePressure, BeginsAtHalfOfALimitAndIsNearlyTheWholeCoreAtIt) {
  EXPECT_EQ(EnginePressure::share_at(0), 0);
  EXPECT_EQ(EnginePressure::share_at(0.5), 0);
  EXPECT_NEAR(EnginePressure::share_at(0.75), runtime::BackgroundShare::kMost / 2, 1e-9);
  EXPECT_EQ(EnginePressure::share_at(1), runtime::BackgroundShare::kMost);
  EXPECT_EQ(EnginePressure::share_at(3), runtime::BackgroundShare::kMost);
}

EngineOptions narrow() {
  EngineOptions options = small_engine();
  options.memtable_keys_flush = 1000;
  options.memtable_bytes_flush = 32 << 10;
  options.memtable_bytes_max = 128 << 10;
  options.sstables_slow = 5;
  options.sstables_max = 8;
  return options;
}

struct Peak {
  std::size_t memtable_bytes = 0;
  std::size_t sstables = 0;
  double background_share = 0;
};

Task<void> write_at_full_speed(EngineStory& story, int writer, Peak& peak) {
  for (int row = 0; row < 40; ++row) {
    const auto written =
        co_await story.put("p", fmt::format("{}-{}", writer, row), std::string(1500, 'v'));
    EXPECT_TRUE(written.has_value()) << written.error().to_string();
    const EngineStatistics now = story.engine().statistics();
    peak.memtable_bytes = std::max(peak.memtable_bytes, now.memtable_bytes);
    peak.sstables = std::max(peak.sstables, now.sstables);
    auto& share = story.runtime().executor.background_share();
    peak.background_share = std::max(peak.background_share, share.share());
  }
}

Task<void> slow_life(Runtime& runtime, LogWorld& world) {
  const EngineOptions options = narrow();
  EngineStory story(runtime, options);
  CO_ASSERT_OK(co_await story.open());
  world.faults().slowness = 100;
  Peak peak;
  runtime::TaskGroup tasks(runtime);
  for (int writer = 0; writer < 24; ++writer) {
    tasks.spawn(write_at_full_speed(story, writer, peak));
  }
  co_await tasks.join();
  EXPECT_LE(peak.memtable_bytes, options.memtable_bytes_max + options.memtable_bytes_flush);
  // What was frozen before the limit was reached still becomes files.
  EXPECT_LE(peak.sstables,
            options.sstables_max + options.memtable_bytes_max / options.memtable_bytes_flush);
  EXPECT_GT(story.engine().statistics().writes_delayed, 0);
  EXPECT_GT(peak.background_share, 0.8) << "flushes hurry when writes wait for them";
  const auto rows = co_await story.scan();
  CO_ASSERT_OK(rows);
  EXPECT_EQ(rows->size(), 24 * 40);
  CO_ASSERT_OK(co_await story.stop());
}

TEST(SlowDisk, WritersWaitAndMemoryAndFilesStayWithinTheirLimits) {
  LogWorld world;
  world.run([&](Runtime& runtime) { return slow_life(runtime, world); });
}

// ---- A damaged disk ----

// The files below a folder that have bytes.
void collect(LogWorld& world, const std::string& folder, std::vector<std::string>& paths) {
  const auto entries = world.disk().list(folder);
  for (const auto& entry : *entries) {
    const std::string path = folder + "/" + entry.name;
    if (world.disk().find_directory(path).has_value()) {
      collect(world, path, paths);
    } else if (!world.read(path).empty()) {
      paths.push_back(path);
    }
  }
}

// By their numbers.
std::vector<std::string> sstable_paths(LogWorld& world) {
  std::vector<std::string> paths;
  collect(world, kEngineFolder, paths);
  std::erase_if(paths, [](const std::string& path) { return !path.ends_with(".sst"); });
  std::ranges::sort(paths, {},
                    [](const std::string& path) { return path.substr(path.rfind('/')); });
  return paths;
}

// A file that is damaged under a running engine.
Task<void> compact_damaged(Runtime& runtime, LogWorld& world) {
  EngineStory story(runtime);
  Told told;
  CO_ASSERT_OK(co_await story.open());
  story.engine().set_watermarks(kTablet, {});  // without peers there is no mutation file
  for (int row = 0; row < 3; ++row) CO_ASSERT_OK(co_await write_one(story, told));
  CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
  const std::vector<std::string> paths = sstable_paths(world);
  CO_ASSERT_TRUE(paths.size() == 1);
  world.flip_bit(paths.front(), 100 * 8);
  // Once by reading it, and then because it is not read again.
  for (int tries = 0; tries < 2; ++tries) {
    const auto compacted = co_await story.engine().compact(kTable, Until::forever());
    EXPECT_TRUE(compacted.failed_with(Errc::corrupt));
    EXPECT_THAT(compacted.error().to_string(), HasSubstr(paths.front()));
  }
  CO_ASSERT_OK(co_await write_one(story, told));
  EXPECT_EQ((co_await story.get("p", "r00003"))->substr(0, 6), "r00003");
  EXPECT_TRUE((co_await story.scan()).failed_with(Errc::corrupt));
  EXPECT_TRUE(world.disk().find(paths.front()).has_value());
  CO_ASSERT_OK(co_await story.stop());
}

TEST(DamagedDisk, ADamagedFileIsNotMergedAndNotForgotten) {
  LogWorld world;
  world.run([&](Runtime& runtime) { return compact_damaged(runtime, world); });
}

Task<void> add_file(EngineStory& story, Told& told) {
  CO_ASSERT_OK(co_await write_one(story, told));
  CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
}

// Its neighbours go on being merged.
Task<void> merge_around_damage(Runtime& runtime, LogWorld& world) {
  EngineStory story(runtime);
  Told told;
  CO_ASSERT_OK(co_await story.open());
  story.engine().set_watermarks(kTablet, {});
  for (int files = 0; files < 3; ++files) co_await add_file(story, told);
  const std::vector<std::string> paths = sstable_paths(world);
  CO_ASSERT_TRUE(paths.size() == 3);
  world.flip_bit(paths.front(), 100 * 8);
  const auto compacted = co_await story.engine().compact(kTable, Until::forever());
  EXPECT_TRUE(compacted.failed_with(Errc::corrupt));
  EXPECT_THAT(compacted.error().to_string(), HasSubstr(paths.front()));
  EXPECT_EQ(story.engine().statistics().compactions, 1);
  EXPECT_EQ(story.engine().statistics().sstables, 2) << "the damaged one, and all others in one";
  EXPECT_EQ(story.engine().statistics().sstables_set_aside, 1);
  for (int files = 0; files < 3; ++files) co_await add_file(story, told);
  co_await pause(story, std::chrono::seconds(5));
  EXPECT_EQ(story.engine().statistics().compactions, 2);
  EXPECT_EQ(story.engine().statistics().sstables, 2);
  EXPECT_EQ(story.engine().statistics().compaction_failures, 1) << "it is not tried again";
  EXPECT_TRUE((co_await story.scan()).failed_with(Errc::corrupt));
  CO_ASSERT_OK(co_await story.stop());
}

TEST(DamagedDisk, FilesBesideADamagedOneAreStillMerged) {
  LogWorld world;
  world.run([&](Runtime& runtime) { return merge_around_damage(runtime, world); });
}

// A sector that cannot be read is no damage that is there for ever: others are merged meanwhile,
// and the file when it can be read again.
Task<void> merge_around_unreadable(Runtime& runtime, LogWorld& world) {
  EngineStory story(runtime);
  Told told;
  CO_ASSERT_OK(co_await story.open());
  story.engine().set_watermarks(kTablet, {});
  co_await add_file(story, told);
  const std::vector<std::string> paths = sstable_paths(world);
  CO_ASSERT_TRUE(paths.size() == 1);
  world.faults().read_error = 1;
  world.faults().only_suffix = paths.front().substr(paths.front().rfind('/'));
  for (int files = 0; files < 12; ++files) {
    co_await add_file(story, told);
    co_await pause(story, std::chrono::seconds(3));
  }
  EXPECT_GT(story.engine().statistics().compactions, 1);
  EXPECT_LT(story.engine().statistics().sstables, 6);
  EXPECT_EQ(story.engine().statistics().sstables_set_aside, 0);
  const auto failures = story.engine().statistics().compaction_failures;
  EXPECT_GT(failures, 0);
  co_await pause(story, std::chrono::minutes(30));
  EXPECT_LT(story.engine().statistics().compaction_failures, failures + 20) << "not every second";
  world.faults() = {};
  const auto rows = co_await story.scan();
  CO_ASSERT_OK(rows);
  EXPECT_EQ(rows->size(), 13);
  CO_ASSERT_OK(co_await story.engine().compact(kTable, Until::forever()));
  EXPECT_EQ(story.engine().statistics().sstables, 1);
  CO_ASSERT_OK(co_await story.stop());
}

TEST(BrokenDisk, FilesBesideOneThatCannotBeReadAreStillMerged) {
  LogWorld world;
  world.run([&](Runtime& runtime) { return merge_around_unreadable(runtime, world); });
}

// ---- A row that is larger than what a file takes under one key ----

EngineOptions roomy() {
  EngineOptions options = small_engine();
  options.log.segment_size = 64 << 20;
  options.log.record_size_max = 16 << 20;
  options.log.staged_bytes_max = 64 << 20;
  options.log.disk_bytes_max = 1 << 30;
  options.memtable_keys_flush = 1000;
  options.memtable_bytes_flush = 1 << 30;
  options.memtable_bytes_max = std::size_t{4} << 30;
  return options;
}

constexpr std::size_t kLargeColumns = 11;
constexpr std::size_t kLargeValue = std::size_t{13} << 20;

Task<void> write_large_row(EngineStory& story) {
  for (std::uint32_t column = 0; column < kLargeColumns; ++column) {
    auto mutation = put_of("large", std::string(kLargeValue, static_cast<char>('a' + column)), 1);
    mutation.cells.front().column = causality::ColumnId{column};
    CO_ASSERT_OK(co_await story.engine().write(kTable, kTablet, base::Bytes::copy_of("p"),
                                               std::move(mutation), causality::Epoch{1},
                                               Until::forever()));
  }
}

Task<void> expect_large_row(EngineStory& story) {
  const auto row = base::Bytes::copy_of("large");
  const auto read = co_await story.engine().read_row(kTable, kTablet, base::Bytes::copy_of("p"),
                                                     row, Until::forever());
  CO_ASSERT_OK(read);
  for (std::uint32_t column = 0; column < kLargeColumns; ++column) {
    const causality::CellStore cell = read->partition.cell(row, causality::ColumnId{column});
    const auto versions = causality::visible(cell, causality::Policy::lww, story.now);
    CO_ASSERT_TRUE(versions.size() == 1);
    EXPECT_EQ(versions.front()->value.size(), kLargeValue);
    EXPECT_EQ(versions.front()->value.text().front(), static_cast<char>('a' + column));
  }
}

Task<void> live_with_large_row(Runtime& runtime) {
  static_assert(kLargeColumns * kLargeValue > kValueSizeMax);
  EngineStory story(runtime, roomy());
  Told told;
  CO_ASSERT_OK(co_await story.open());
  Engine& engine = story.engine();
  engine.set_watermarks(kTablet, {});
  co_await write_large_row(story);
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  EXPECT_EQ(engine.statistics().flush_failures, 0);
  co_await expect_large_row(story);
  EXPECT_TRUE(
      (co_await engine.compact(kTable, Until::forever())).failed_with(Errc::invalid_argument))
      << "more than fits";
  co_await expect_large_row(story);
  // What it cannot be merged with for long is merged without it.
  for (int files = 0; files < 12; ++files) co_await add_file(story, told);
  co_await pause(story, std::chrono::seconds(30));
  EXPECT_GT(engine.statistics().compactions, 0);
  EXPECT_LT(engine.statistics().sstables, 8);
  CO_ASSERT_OK(co_await story.stop());
}

Task<void> replay_large_row(Runtime& runtime) {
  EngineStory story(runtime, roomy());
  CO_ASSERT_OK(co_await story.open());
  co_await expect_large_row(story);
  CO_ASSERT_OK(co_await story.stop());
}

TEST(LargeRow, ThatDoesNotFitAFileIsKeptInSeveralAndStopsNothing) {
  LogWorld world;
  world.run([&](Runtime& runtime) { return live_with_large_row(runtime); });
}

Task<void> wait_with_large_row(Runtime& runtime, bool& written) {
  EngineStory story(runtime, roomy());
  CO_ASSERT_OK(co_await story.open());
  co_await write_large_row(story);
  written = true;
  co_await pause(story, std::chrono::hours(1));
}

TEST(LargeRow, IsReplayedIntoSeveralFiles) {
  LogWorld world;
  bool written = false;
  world.start([&](Runtime& runtime) { return wait_with_large_row(runtime, written); });
  ASSERT_TRUE(world.world().run_until([&] { return written; }, std::chrono::hours(1)));
  world.machine().kill();
  world.run([&](Runtime& runtime) { return replay_large_row(runtime); });
}

Task<void> remove_cell(EngineStory& story, std::string partition, std::string row) {
  auto mutation = put_of(row, "", 1'000'000);
  mutation.cells.front().kind = causality::VersionKind::deletion;
  CO_ASSERT_OK(co_await story.engine().write(kTable, kTablet, base::Bytes::copy_of(partition),
                                             std::move(mutation), causality::Epoch{1},
                                             Until::forever()));
}

// Deletes of keys that it cannot have go, with what they hide.
Task<void> collect_around_damage(Runtime& runtime, LogWorld& world) {
  EngineOptions options = small_engine();
  options.memtable_keys_flush = 1000;
  options.collection.interval = std::chrono::seconds(10);
  EngineStory story(runtime, options);
  Told told;
  CO_ASSERT_OK(co_await story.open());
  Engine& engine = story.engine();
  engine.set_watermarks(kTablet, {});
  co_await add_file(story, told);
  const std::vector<std::string> paths = sstable_paths(world);
  CO_ASSERT_TRUE(paths.size() == 1);
  world.flip_bit(paths.front(), 100 * 8);
  EXPECT_TRUE((co_await engine.compact(kTable, Until::forever())).failed_with(Errc::corrupt));
  for (int row = 0; row < 10; ++row) {
    CO_ASSERT_OK(co_await story.put("q", std::to_string(row), "v"));
  }
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  for (int row = 0; row < 10; ++row) co_await remove_cell(story, "q", std::to_string(row));
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  EXPECT_EQ(engine.statistics().sstables, 3);
  co_await pause(story, std::chrono::seconds(100));
  EXPECT_EQ(engine.statistics().collections, 1);
  EXPECT_EQ(engine.statistics().sstables, 1) << "the damaged one alone";
  CO_ASSERT_OK(co_await story.stop());
}

TEST(DamagedDisk, GarbageBesideADamagedFileIsStillCollected) {
  LogWorld world;
  world.run([&](Runtime& runtime) { return collect_around_damage(runtime, world); });
}

// ---- A damaged file, and everything else ----

constexpr TabletId kLow{1};
constexpr TabletId kHigh{2};
constexpr causality::Epoch kEpoch{1};

KeyRange low_range() {
  return {.from = {}, .to = base::Bytes::copy_of("m")};
}
KeyRange high_range() {
  return {.from = base::Bytes::copy_of("m"), .to = {}};
}

Task<Result<void>> put_in(Engine& engine, TabletId tablet, std::string row) {
  const auto partition = base::Bytes::copy_of(tablet == kLow ? "low" : "zzz");
  CO_TRY_VOID(co_await engine.write(kTable, tablet, partition, put_of(row, row, 1), kEpoch,
                                    Until::forever()));
  co_return {};
}

Task<Result<std::size_t>> count_rows(Engine& engine, TabletId tablet) {
  CO_TRY(const auto cursor, engine.cursor(kTable, tablet, {}));
  CO_TRY_VOID(co_await cursor->seek_first());
  std::size_t rows = 0;
  while (cursor->valid()) {
    ++rows;
    CO_TRY_VOID(co_await cursor->next());
  }
  co_return rows;
}

// Two tablets without peers: a file of both, and one of the high one alone.
Task<void> make_two_files(Runtime& runtime) {
  auto opened = co_await Engine::open(runtime, small_engine());
  CO_ASSERT_OK(opened);
  Engine& engine = **opened;
  CO_ASSERT_OK(co_await engine.create_table(kTable, {}));
  CO_ASSERT_OK(co_await engine.create_tablet(kLow, low_range(), causality::actor_of(1, 1)));
  CO_ASSERT_OK(co_await engine.create_tablet(kHigh, high_range(), causality::actor_of(1, 1)));
  for (const TabletId tablet : {kLow, kHigh}) engine.set_watermarks(tablet, {});
  CO_ASSERT_OK(co_await put_in(engine, kLow, "a"));
  CO_ASSERT_OK(co_await put_in(engine, kHigh, "a"));
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  CO_ASSERT_OK(co_await put_in(engine, kHigh, "b"));
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  CO_ASSERT_OK(co_await engine.stop());
}

// The tablet that has no part in the damaged file is served, the other one is told, and can be made
// anew; when nobody has a part in the file any more, it goes.
Task<void> live_with_damage(Runtime& runtime, const std::string& path, bool of_both) {
  auto opened = co_await Engine::open(runtime, small_engine());
  CO_ASSERT_OK(opened);
  Engine& engine = **opened;
  const auto high = co_await count_rows(engine, kHigh);
  EXPECT_TRUE(high.failed_with(Errc::corrupt));
  if (!high) EXPECT_THAT(high.error().to_string(), HasSubstr(path));
  const auto row = co_await engine.read_row(kTable, kHigh, base::Bytes::copy_of("zzz"),
                                            base::Bytes::copy_of("b"), Until::forever());
  if (!of_both) EXPECT_TRUE(row.failed_with(Errc::corrupt));
  const auto low = co_await count_rows(engine, kLow);
  if (of_both) {
    EXPECT_TRUE(low.failed_with(Errc::corrupt));
  } else {
    EXPECT_EQ(low, 1U);
  }
  CO_ASSERT_OK(co_await put_in(engine, kLow, "new"));
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  CO_ASSERT_OK(co_await engine.drop_tablet(kHigh));
  CO_ASSERT_OK(co_await engine.create_tablet(kHigh, high_range(), causality::actor_of(1, 2)));
  EXPECT_EQ(co_await count_rows(engine, kHigh), 0U) << "nothing of the old one";
  CO_ASSERT_OK(co_await put_in(engine, kHigh, "anew"));
  EXPECT_EQ(engine.statistics().sstables_set_aside, of_both ? 1 : 0);
  const std::uint64_t failures = engine.statistics().compaction_failures;
  CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::seconds(20), {}));
  EXPECT_EQ(engine.statistics().compaction_failures, failures) << "it is not tried again";
  CO_ASSERT_OK(co_await engine.stop());
}

Task<void> go_on_with_damage(Runtime& runtime, bool of_both) {
  auto opened = co_await Engine::open(runtime, small_engine());
  CO_ASSERT_OK(opened);
  Engine& engine = **opened;
  EXPECT_EQ(co_await count_rows(engine, kHigh), 1U);
  if (of_both) {
    EXPECT_TRUE((co_await count_rows(engine, kLow)).failed_with(Errc::corrupt));
    CO_ASSERT_OK(co_await engine.drop_tablet(kLow));
    CO_ASSERT_OK(co_await engine.create_tablet(kLow, low_range(), causality::actor_of(1, 2)));
    EXPECT_EQ(co_await count_rows(engine, kLow), 0U);
    EXPECT_EQ(co_await count_rows(engine, kHigh), 1U);
  } else {
    EXPECT_EQ(co_await count_rows(engine, kLow), 2U);
  }
  EXPECT_EQ(engine.statistics().sstables_set_aside, 0);
  CO_ASSERT_OK(co_await engine.stop());
}

Task<void> expect_high_is_of_a_later_version(Runtime& runtime, const std::string& path) {
  auto opened = co_await Engine::open(runtime, small_engine());
  CO_ASSERT_OK(opened);
  const auto high = co_await count_rows(**opened, kHigh);
  EXPECT_TRUE(high.failed_with(Errc::unsupported));
  if (!high) {
    EXPECT_THAT(high.error().to_string(),
                AllOf(HasSubstr(path), HasSubstr("offset"), HasSubstr("the program that wrote it"),
                      HasSubstr("drop the tablets")));
  }
  EXPECT_EQ(co_await count_rows(**opened, kLow), 1U);
  CO_ASSERT_OK(co_await (*opened)->stop());
}

void expect_served_beside_damage(bool of_both, bool footer) {
  LogWorld world;
  world.run(make_two_files);
  const auto paths = sstable_paths(world);
  ASSERT_EQ(paths.size(), 2);
  const std::string& path = paths[of_both ? 0 : 1];
  world.flip_bit(path, footer ? world.read(path).size() * 8 - 20 : 60 * 8);
  world.run([&](Runtime& runtime) { return live_with_damage(runtime, path, of_both); });
  world.run([&](Runtime& runtime) { return go_on_with_damage(runtime, of_both); });
  EXPECT_FALSE(world.disk().find(path).has_value()) << "nobody has a part in it any more";
}

TEST(DamagedDisk, AFileThatCannotBeOpenedLeavesEverythingElseServed) {
  expect_served_beside_damage(false, true);
}

TEST(DamagedDisk, AFileThatCannotBeOpenedGoesWhenEveryTabletInItWasMadeAnew) {
  expect_served_beside_damage(true, true);
}

TEST(DamagedDisk, AFileWithADamagedBlockGoesWhenEveryTabletInItWasMadeAnew) {
  expect_served_beside_damage(true, false);
}

TEST(DamagedDisk, AFileOfALaterVersionStopsOnlyThoseWithAPartInIt) {
  LogWorld world;
  world.run(make_two_files);
  const std::string path = sstable_paths(world)[1];
  // A file ends with the version, eight letters and a checksum.
  world.write(path, world.read(path).size() - 16, "\x63");
  world.run([&](Runtime& runtime) { return expect_high_is_of_a_later_version(runtime, path); });
}

// ---- A damaged mutation file ----

std::vector<std::optional<causality::Watermark>> one_peer_that_has_nothing() {
  return {causality::Watermark{.base = {}, .wall = causality::WallTime{0}}};
}

// Two tablets with a peer; the low one has mutations in a file, the high one in the log alone.
Task<void> make_mutation_file(Runtime& runtime) {
  auto opened = co_await Engine::open(runtime, small_engine());
  CO_ASSERT_OK(opened);
  Engine& engine = **opened;
  CO_ASSERT_OK(co_await engine.create_table(kTable, {}));
  CO_ASSERT_OK(co_await engine.create_tablet(kLow, low_range(), causality::actor_of(1, 1)));
  CO_ASSERT_OK(co_await engine.create_tablet(kHigh, high_range(), causality::actor_of(1, 1)));
  CO_ASSERT_OK(co_await put_in(engine, kLow, "a"));
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  CO_ASSERT_OK(co_await put_in(engine, kHigh, "a"));
  CO_ASSERT_OK(co_await engine.stop());
}

Task<void> live_without_mutations(Runtime& runtime, const std::string& path) {
  auto opened = co_await Engine::open(runtime, small_engine());
  CO_ASSERT_OK(opened);
  Engine& engine = **opened;
  for (const TabletId tablet : {kLow, kHigh}) {
    engine.set_watermarks(tablet, one_peer_that_has_nothing());
  }
  EXPECT_EQ(engine.statistics().tablets_stopped, 1);
  const auto told = AllOf(HasSubstr(path), HasSubstr("offset"), HasSubstr("drop the tablet"));
  const auto read = co_await count_rows(engine, kLow);
  CO_ASSERT_TRUE(!read.has_value());
  EXPECT_THAT(read.error().to_string(), told);
  const auto written = co_await put_in(engine, kLow, "b");
  CO_ASSERT_TRUE(!written.has_value());
  EXPECT_THAT(written.error().to_string(), told);
  const auto given = co_await engine.missing_mutations(kLow, {}, 1000, Until::forever());
  CO_ASSERT_TRUE(!given.has_value());
  EXPECT_THAT(given.error().to_string(), told);
  // Nobody else notices.
  EXPECT_EQ(co_await count_rows(engine, kHigh), 1U);
  CO_ASSERT_OK(co_await put_in(engine, kHigh, "b"));
  CO_ASSERT_OK(co_await engine.missing_mutations(kHigh, {}, 1000, Until::forever()));
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  CO_ASSERT_OK(co_await engine.stop());
}

Task<void> make_low_anew(Runtime& runtime) {
  auto opened = co_await Engine::open(runtime, small_engine());
  CO_ASSERT_OK(opened);
  Engine& engine = **opened;
  EXPECT_TRUE((co_await count_rows(engine, kLow)).failed_with(Errc::corrupt)) << "still";
  CO_ASSERT_OK(co_await engine.drop_tablet(kLow));
  CO_ASSERT_OK(co_await engine.create_tablet(kLow, low_range(), causality::actor_of(1, 2)));
  CO_ASSERT_OK(co_await put_in(engine, kLow, "anew"));
  EXPECT_EQ(co_await count_rows(engine, kLow), 1U);
  CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::seconds(1), {}));
  CO_ASSERT_OK(co_await engine.stop());
}

// Without peers, or when they have everything, nobody needs the mutations.
Task<void> go_on_alone(Runtime& runtime) {
  auto opened = co_await Engine::open(runtime, small_engine());
  CO_ASSERT_OK(opened);
  Engine& engine = **opened;
  for (const TabletId tablet : {kLow, kHigh}) engine.set_watermarks(tablet, {});
  EXPECT_EQ(engine.statistics().tablets_stopped, 0);
  EXPECT_EQ(co_await count_rows(engine, kLow), 1U);
  CO_ASSERT_OK(co_await put_in(engine, kLow, "b"));
  CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::seconds(1), {}));
  CO_ASSERT_OK(co_await engine.stop());
}

// The table's file is written first, then that of its mutations.
std::string damage_mutation_file(LogWorld& world) {
  world.run(make_mutation_file);
  const auto paths = sstable_paths(world);
  EXPECT_EQ(paths.size(), 2);
  world.flip_bit(paths.back(), world.read(paths.back()).size() * 8 - 20);
  return paths.back();
}

TEST(DamagedDisk, AMutationFileThatCannotBeOpenedStopsItsTabletsUntilTheyAreMadeAnew) {
  LogWorld world;
  const std::string path = damage_mutation_file(world);
  world.run([&](Runtime& runtime) { return live_without_mutations(runtime, path); });
  EXPECT_TRUE(world.disk().find(path).has_value());
  world.run(make_low_anew);
  EXPECT_FALSE(world.disk().find(path).has_value()) << "nobody has a part in it any more";
  world.run(go_on_alone);
}

TEST(DamagedDisk, AMutationFileThatCannotBeOpenedGoesWhenNobodyNeedsIt) {
  LogWorld world;
  const std::string path = damage_mutation_file(world);
  world.run(go_on_alone);
  EXPECT_FALSE(world.disk().find(path).has_value());
}

TEST(DamagedDisk, AFileThatIsMissingIsNotTakenForADamagedOne) {
  LogWorld world;
  world.run(make_two_files);
  const std::string path = sstable_paths(world).front();
  ASSERT_TRUE(world.disk().remove(path).has_value());
  std::string error;
  world.run([&](Runtime& runtime) -> Task<void> {
    const auto opened = co_await Engine::open(runtime, small_engine());
    if (!opened) error = opened.error().to_string();
  });
  EXPECT_THAT(error, HasSubstr(path));
}

}  // namespace
}  // namespace helenus::storage::testing
