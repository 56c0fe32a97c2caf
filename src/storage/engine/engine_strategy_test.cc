// Tables that are merged in levels and by windows of time: their files have the promised shape, and
// their rows are what they are by any other rule; a change of the rule takes the files that there
// are.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "storage/compaction/compaction_strategy.h"
#include "storage/engine/engine_test_support.h"

namespace helenus::storage::testing {
namespace {

using base::Result;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

void live(const std::function<Task<void>(Runtime&)>& tell) {
  LogWorld world;
  world.run([&](Runtime& runtime) { return tell(runtime); });
}

Task<Result<std::vector<SstableRecord>>> files_of(Runtime& runtime) {
  CO_TRY(const auto manifest,
         co_await read_manifest(runtime, std::string(kEngineFolder) + "/a/shard-0000/manifest"));
  co_return manifest.tables.at(kTable).sstables;
}

// Until nothing is left to merge.
Task<Result<void>> come_to_rest(EngineStory& story) {
  CO_TRY_VOID(co_await story.engine().flush(kTable, Until::forever()));
  for (int quiet = 0; quiet < 5;) {
    CO_TRY_VOID(co_await runtime::sleep_for(story.runtime(), std::chrono::milliseconds(20), {}));
    quiet = story.engine().statistics().compactions_running == 0 ? quiet + 1 : 0;
  }
  co_return {};
}

class Rows {
 public:
  explicit Rows(std::uint64_t seed) : random_(seed) {}

  Task<Result<void>> write(EngineStory& story, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string partition = fmt::format("p{:02}", random_.below(60));
      const std::string row = fmt::format("r{}", random_.below(4));
      const std::string value = fmt::format("{}-{}", i, std::string(random_.below(60), 'v'));
      CO_TRY_VOID(co_await story.put(partition, row, value));
      expected_[partition + "/" + row] = value;
    }
    co_return {};
  }
  const Shown& expected() const { return expected_; }

 private:
  base::Prng random_;
  Shown expected_;
};

void expect_levels(const std::vector<SstableRecord>& files) {
  std::map<std::uint32_t, std::vector<SstableRecord>> levels;
  for (const SstableRecord& file : files) levels[file.level].push_back(file);
  EXPECT_LT(levels[0].size(), 4U);
  std::size_t leveled = 0;
  for (auto& [level, its] : levels) {
    if (level == 0) continue;
    leveled += its.size();
    std::ranges::sort(its, {}, &SstableRecord::key_first);
    for (std::size_t i = 1; i < its.size(); ++i) {
      EXPECT_LT(its[i - 1].key_last, its[i].key_first) << "in level " << level;
    }
  }
  EXPECT_GT(leveled, 2U) << "a merge leaves several files";
}

constexpr CompactionStrategy kLeveled = {
    .rule = CompactionRule::leveled, .file_bytes = 2000, .fanout = 3};

Task<void> leveled_files_do_not_overlap(Runtime& runtime) {
  EngineStory story(runtime);
  CO_ASSERT_OK(co_await story.open());
  story.engine().set_watermarks(kTablet, {});
  CO_ASSERT_OK(co_await story.engine().alter_table(kTable, {.compaction = kLeveled}));
  Rows rows(1);
  for (int round = 0; round < 4; ++round) {
    CO_ASSERT_OK(co_await rows.write(story, 150));
    CO_ASSERT_OK(co_await come_to_rest(story));
    expect_levels(*co_await files_of(runtime));
    EXPECT_EQ(*co_await story.scan(), rows.expected());
  }
  CO_ASSERT_OK(co_await story.stop());
  CO_ASSERT_OK(co_await story.open());
  story.engine().set_watermarks(kTablet, {});
  expect_levels(*co_await files_of(runtime));
  EXPECT_EQ(*co_await story.scan(), rows.expected());
  // All of them together are laid out in levels, too.
  CO_ASSERT_OK(co_await story.engine().compact(kTable, Until::forever()));
  const auto merged = *co_await files_of(runtime);
  expect_levels(merged);
  EXPECT_TRUE(std::ranges::none_of(merged, [](const auto& file) { return file.level == 0; }));
  EXPECT_EQ(*co_await story.scan(), rows.expected());
  CO_ASSERT_OK(co_await story.stop());
}

TEST(EngineStrategy, LeveledFilesDoNotOverlap) {
  live(&leveled_files_do_not_overlap);
}

Task<void> a_change_takes_the_files_that_there_are(Runtime& runtime) {
  EngineStory story(runtime);
  CO_ASSERT_OK(co_await story.open());
  story.engine().set_watermarks(kTablet, {});
  Rows rows(2);
  CO_ASSERT_OK(co_await rows.write(story, 300));
  CO_ASSERT_OK(co_await story.engine().compact(kTable, Until::forever()));
  EXPECT_EQ((co_await files_of(runtime))->size(), 1U);
  CO_ASSERT_OK(co_await story.engine().alter_table(kTable, {.compaction = kLeveled}));
  CO_ASSERT_OK(co_await come_to_rest(story));
  expect_levels(*co_await files_of(runtime));
  EXPECT_EQ(*co_await story.scan(), rows.expected());
  CO_ASSERT_OK(co_await story.engine().alter_table(kTable, {}));
  CO_ASSERT_OK(co_await rows.write(story, 100));
  CO_ASSERT_OK(co_await come_to_rest(story));
  EXPECT_EQ(*co_await story.scan(), rows.expected());
  // Nothing is merged by itself that is not to be.
  CO_ASSERT_OK(co_await story.engine().alter_table(kTable, {.compaction = {.enabled = false}}));
  const std::uint64_t before = story.engine().statistics().compactions;
  CO_ASSERT_OK(co_await rows.write(story, 200));
  CO_ASSERT_OK(co_await come_to_rest(story));
  EXPECT_EQ(story.engine().statistics().compactions, before);
  EXPECT_GT((co_await files_of(runtime))->size(), 10U);
  EXPECT_FALSE(co_await story.engine().alter_table(kTable, {.compaction = {.fanout = 0}}));
  CO_ASSERT_OK(co_await story.stop());
}

TEST(EngineStrategy, AChangeTakesTheFilesThatThereAre) {
  live(&a_change_takes_the_files_that_there_are);
}

Task<void> windows_are_not_merged(Runtime& runtime) {
  EngineStory story(runtime);
  CO_ASSERT_OK(co_await story.open());
  story.engine().set_watermarks(kTablet, {});
  constexpr CompactionStrategy kBySeconds = {.rule = CompactionRule::time_window,
                                             .window = std::chrono::seconds(1)};
  CO_ASSERT_OK(co_await story.engine().alter_table(kTable, {.compaction = kBySeconds}));
  for (int window = 0; window < 4; ++window) {
    for (int i = 0; i < 60; ++i) {
      const auto mutation = put_of(fmt::format("w{}-{}", window, i), std::string(30, 'v'),
                                   (window + 1) * 1'000'000 + i);
      CO_ASSERT_OK(co_await story.engine().write(kTable, kTablet, base::Bytes::copy_of("p"),
                                                 mutation, causality::Epoch{1}, Until::forever()));
    }
    CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
  }
  CO_ASSERT_OK(co_await come_to_rest(story));
  // One file for each window that is over; those of the newest by their sizes.
  const auto files = (co_await files_of(runtime))->size();
  EXPECT_GE(files, 4U);
  EXPECT_LE(files, 7U);
  EXPECT_EQ((co_await story.scan())->size(), 240U);
  CO_ASSERT_OK(co_await story.stop());
}

TEST(EngineStrategy, WindowsAreNotMergedWithOneAnother) {
  live(&windows_are_not_merged);
}

}  // namespace
}  // namespace helenus::storage::testing
