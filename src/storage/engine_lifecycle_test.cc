// What an engine owes to those who wait: a flush, a merge of all files, a tablet made anew, an end
// of a doubt, a start that was cut short again and again.
#include <string>

#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "storage/engine_test_support.h"

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
