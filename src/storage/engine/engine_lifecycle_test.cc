// What an engine owes to those who wait: a flush, a merge of all files, a tablet made anew, an end
// of a doubt, a start that was cut short again and again.
#include <string>

#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "storage/engine/engine_test_support.h"

namespace helenus::storage::testing {
namespace {

using runtime::Runtime;
using runtime::Task;
using runtime::Until;

// ---- Among writers ----

Task<void> write_on(EngineStory& story, int writer, const bool& over) {
  int row = 0;
  while (!over) {
    CO_ASSERT_OK(co_await story.put("p", fmt::format("{}-{}", writer, ++row % 50), "v"));
  }
}

// Files come faster than one turn of merging takes, so that some are always being merged.
Task<void> merge_among_writers(Runtime& runtime) {
  EngineOptions options = small_engine();
  options.memtable_keys_flush = 4;
  EngineStory story(runtime, options);
  CO_ASSERT_OK(co_await story.open());
  story.engine().set_watermarks(kTablet, {});
  bool over = false;
  runtime::TaskGroup writers(runtime);
  for (int writer = 0; writer < 8; ++writer) writers.spawn(write_on(story, writer, over));
  for (int turn = 0; turn < 5; ++turn) {
    CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::milliseconds(200), {}));
    EXPECT_GT(story.engine().statistics().sstables, 0);
    const Until soon = Until::after(runtime, std::chrono::seconds(2));
    CO_ASSERT_OK(co_await story.engine().flush(kTable, soon));
    CO_ASSERT_OK(co_await story.engine().compact(kTable, soon));
  }
  over = true;
  co_await writers.join();
  CO_ASSERT_OK(co_await story.stop());
}

TEST(Lifecycle, AFlushAndAMergeOfAllFilesComeToTheirEndAmongWriters) {
  LogWorld world;
  world.run(merge_among_writers);
}

// ---- The end of a doubt ----

Task<void> make_tablet(Runtime& runtime) {
  EngineStory story(runtime);
  CO_ASSERT_OK(co_await story.open());
  CO_ASSERT_OK(co_await story.put("p", "r", "v"));
  CO_ASSERT_OK(co_await story.stop());
}

Task<void> drop_in_doubt(Runtime& runtime) {
  EngineOptions options = small_engine();
  options.accept_lost_log_of_start = 1;
  auto opened = co_await Engine::open(runtime, options);
  CO_ASSERT_OK(opened);
  EXPECT_EQ((*opened)->tablets_in_doubt().size(), 1);
  CO_ASSERT_OK(co_await (*opened)->drop_tablet(kTablet));
  CO_ASSERT_OK(co_await (*opened)->stop());
}

Task<void> expect_settled(Runtime& runtime) {
  auto opened = co_await Engine::open(runtime, small_engine());
  CO_ASSERT_OK(opened);
  EXPECT_FALSE((*opened)->report().log.tail_may_be_lost);
  CO_ASSERT_OK(co_await (*opened)->stop());
}

TEST(Lifecycle, ADoubtEndsWithTheLastTabletThatHadIt) {
  LogWorld world;
  world.run(make_tablet);
  const auto entries = world.disk().list(kLogFolder);
  for (const auto& entry : *entries) world.remove(std::string(kLogFolder) + "/" + entry.name);
  world.run(drop_in_doubt);
  world.run(expect_settled);
}

// ---- Merges that are cut off ----

EngineOptions merging_at(std::uint64_t bytes_per_second) {
  EngineOptions options = small_engine();
  options.memtable_keys_flush = 1000;
  options.compaction_bytes_per_second = bytes_per_second;
  return options;
}

Task<void> add_file(EngineStory& story, int file) {
  for (int row = 0; row < 10; ++row) {
    CO_ASSERT_OK(co_await story.put("p", fmt::format("{}-{}", file, row), "v"));
  }
  CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
}

Task<void> await_merges(EngineStory& story, std::uint64_t done, std::size_t running) {
  const auto there = [&] {
    const EngineStatistics now = story.engine().statistics();
    return now.compactions == done && now.compactions_running == running;
  };
  while (!there()) {
    CO_ASSERT_OK(co_await runtime::sleep_for(story.runtime(), std::chrono::milliseconds(10), {}));
  }
}

std::size_t sstables(LogWorld& world);

// One merge is through; the next has begun its file and waits for its turn at the disk for hours.
Task<void> merge_and_begin(Runtime& runtime, LogWorld& world, bool stops, bool& begun) {
  EngineStory story(runtime, merging_at(1));
  CO_ASSERT_OK(co_await story.open());
  story.engine().set_watermarks(kTablet, {});
  for (int file = 0; file < 4; ++file) co_await add_file(story, file);
  co_await await_merges(story, 1, 0);
  for (int file = 4; file < 7; ++file) co_await add_file(story, file);
  co_await await_merges(story, 1, 1);
  while (sstables(world) == 4) {
    CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::milliseconds(10), {}));
  }
  begun = true;
  if (stops) {
    CO_ASSERT_OK(co_await story.stop());
  } else {
    CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::hours(10), {}));
  }
}

Task<void> expect_taken_up(Runtime& runtime, LogWorld& world) {
  EngineStory story(runtime, merging_at(0));
  CO_ASSERT_OK(co_await story.open());
  EXPECT_EQ(story.engine().statistics().sstables, 4) << "what the first merge did stands";
  EXPECT_EQ(sstables(world), 4) << "nothing is left of the second";
  co_await await_merges(story, 1, 0);
  EXPECT_EQ(sstables(world), 1);
  const auto rows = co_await story.scan();
  CO_ASSERT_OK(rows);
  EXPECT_EQ(rows->size(), 70);
  CO_ASSERT_OK(co_await story.stop());
}

TEST(Lifecycle, AMergeThatIsCutOffLeavesNothingAndIsTakenUpByTheNextStart) {
  for (const std::string how : {"stop", "kill", "power loss"}) {
    SCOPED_TRACE(how);
    LogWorld world;
    bool begun = false;
    world.start(
        [&](Runtime& runtime) { return merge_and_begin(runtime, world, how == "stop", begun); });
    const auto over = [&] { return !world.machine().is_up() || (how != "stop" && begun); };
    ASSERT_TRUE(world.world().run_until(over, std::chrono::hours(1)));
    ASSERT_TRUE(begun);
    if (how == "power loss") {
      world.machine().power_loss();
    } else {
      world.machine().kill();
    }
    world.run([&](Runtime& runtime) { return expect_taken_up(runtime, world); });
  }
}

// ---- Starts that are cut short ----

EngineOptions large_memtables() {
  EngineOptions options = small_engine();
  options.memtable_bytes_flush = 8 << 20;
  options.memtable_bytes_max = 32 << 20;
  options.memtable_keys_flush = 100'000;
  return options;
}

Task<void> fill_the_log(Runtime& runtime) {
  EngineStory story(runtime, large_memtables());
  CO_ASSERT_OK(co_await story.open());
  for (int row = 0; row < 400; ++row) {
    CO_ASSERT_OK(co_await story.put("p", std::to_string(row), std::string(1000, 'v')));
  }
  CO_ASSERT_OK(co_await story.stop());
}

Task<void> expect_all(Runtime& runtime) {
  EngineStory story(runtime);
  CO_ASSERT_OK(co_await story.open());
  const auto rows = co_await story.scan();
  CO_ASSERT_OK(rows);
  EXPECT_EQ(rows->size(), 400);
  CO_ASSERT_OK(co_await story.stop());
}

std::size_t sstables(LogWorld& world) {
  std::size_t count = 0;
  for (const char* directory : {"a", "b"}) {
    const auto entries =
        world.disk().list(fmt::format("{}/{}/shard-0000", kEngineFolder, directory));
    if (!entries) continue;
    for (const auto& entry : *entries) count += entry.name.ends_with(".sst") ? 1 : 0;
  }
  return count;
}

TEST(Lifecycle, AStartThatIsKilledAgainAndAgainInItsReplayTakesNoMoreRoom) {
  LogWorld world;
  world.run(fill_the_log);
  ASSERT_EQ(sstables(world), 0);
  // The first one shows how far to go until it has flushed something and is not through.
  std::uint64_t events = 0;
  world.start(expect_all);
  while (world.machine().is_up() && sstables(world) < 4) {
    world.world().step();
    ++events;
  }
  ASSERT_TRUE(world.machine().is_up());
  world.machine().kill();
  for (int start = 0; start < 20; ++start) {
    world.start(expect_all);
    for (std::uint64_t event = 0; event < events && world.machine().is_up(); ++event) {
      world.world().step();
    }
    world.machine().kill();
    EXPECT_LT(sstables(world), 12) << "start " << start;
  }
  world.run(expect_all);
}

}  // namespace
}  // namespace helenus::storage::testing
