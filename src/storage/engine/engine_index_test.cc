// Stories about indexes: every version that a table has, has an entry, whatever is flushed, merged,
// stopped or cut off in between.
#include <algorithm>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "storage/engine/engine_test_support.h"

namespace helenus::storage::testing {
namespace {

using base::Bytes;
using base::Errc;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

constexpr TableId kIndex{20};

// The entry of a value lies in a partition of its name.
DeriveEntries by_value(const Bytes& definition) {
  if (definition != Bytes::copy_of("by value")) return {};
  return [](base::ByteView /*tablet_from*/, base::ByteView partition,
            std::span<const causality::CellChange> cells, std::vector<DerivedEntry>& into) {
    for (const causality::CellChange& cell : cells) {
      if (cell.kind != causality::VersionKind::value) continue;
      causality::CellChange entry;
      entry.row =
          Bytes::copy_of(std::string(base::as_text(partition)) + std::string(cell.row.text()));
      entry.column = causality::ColumnId(static_cast<std::uint32_t>(partition.size()));
      into.push_back({.partition = cell.value, .cell = std::move(entry)});
    }
  };
}

EngineOptions indexed() {
  EngineOptions options = small_engine();
  options.read_index_definition = by_value;
  return options;
}

Task<base::Result<void>> make_index(Engine& engine) {
  TableOptions options;
  options.index = IndexOf{.table = kTable, .definition = Bytes::copy_of("by value")};
  return engine.create_table(kIndex, options);
}

Task<void> wait_built(EngineStory& story) {
  for (int round = 0; round < 1000 && !story.engine().indexes_being_built().empty(); ++round) {
    std::ignore = co_await runtime::sleep_for(story.runtime(), std::chrono::milliseconds(10), {});
  }
  EXPECT_TRUE(story.engine().indexes_being_built().empty());
}

Task<std::set<std::string>> entries_of(EngineStory& story, std::string value) {
  std::set<std::string> rows;
  auto cursor = story.engine().cursor(kIndex, kTablet, {.until = Until::forever()});
  EXPECT_TRUE(cursor.has_value());
  if (!cursor) co_return rows;
  const auto sought = co_await (*cursor)->seek(Bytes::copy_of(value), {});
  EXPECT_TRUE(sought.has_value());
  while ((*cursor)->valid() && base::as_text((*cursor)->partition()) == value) {
    std::string row(base::as_text((*cursor)->row_key()));
    const auto stored = (*cursor)->read();
    EXPECT_TRUE(stored.has_value());
    for (const auto& [key, cells] : stored->rows()) {
      for (const auto& [column, cell] : cells.cells()) {
        if (!cell.versions().empty()) rows.insert(std::string(row).insert(column.value(), "/"));
      }
    }
    const auto moved = co_await (*cursor)->next();
    EXPECT_TRUE(moved.has_value());
    if (!moved) break;
  }
  co_return rows;
}

// That each row has the entry of its value.
Task<void> expect_every_row_found(EngineStory& story) {
  auto shown = co_await story.scan();
  CO_ASSERT_TRUE(shown.has_value());
  for (const auto& [place, value] : *shown) {
    const auto rows = co_await entries_of(story, value);
    EXPECT_TRUE(rows.contains(place)) << place << " of " << value;
  }
}

void live_indexed(LogWorld& world, const std::function<Task<void>(EngineStory&)>& tell) {
  world.run([&](Runtime& runtime) -> Task<void> {
    EngineStory story(runtime, indexed());
    CO_ASSERT_OK(co_await story.open());
    co_await tell(story);
    CO_ASSERT_OK(co_await story.stop());
  });
}

Task<void> index_what_was_there(EngineStory& story) {
  CO_ASSERT_OK(co_await story.put("p", "in a file", "v"));
  CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
  CO_ASSERT_OK(co_await story.put("p", "in memory", "v"));
  CO_ASSERT_OK(co_await make_index(story.engine()));
  CO_ASSERT_OK(co_await story.put("q", "later", "v"));
  co_await wait_built(story);
  EXPECT_THAT(co_await entries_of(story, "v"),
              ::testing::UnorderedElementsAre("p/in a file", "p/in memory", "q/later"));
}

Task<void> expect_still_indexed(EngineStory& story) {
  EXPECT_TRUE(story.engine().indexes_being_built().empty()) << "the manifest has it";
  EXPECT_EQ((co_await entries_of(story, "v")).size(), 3U);
  CO_ASSERT_OK(co_await story.put("r", "another", "v"));
  EXPECT_EQ((co_await entries_of(story, "v")).size(), 4U);
}

TEST(EngineIndex, HasWhatWasThereBeforeItAndWhatCameAfter) {
  LogWorld world;
  live_indexed(world, index_what_was_there);
  live_indexed(world, expect_still_indexed);
}

Task<void> overwrite_and_merge(EngineStory& story) {
  CO_ASSERT_OK(co_await make_index(story.engine()));
  co_await wait_built(story);
  CO_ASSERT_OK(co_await story.put("p", "a", "old"));
  CO_ASSERT_OK(co_await story.put("p", "b", "old"));
  CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
  CO_ASSERT_OK(co_await story.put("p", "a", "new"));
  EXPECT_EQ((co_await entries_of(story, "old")).size(), 2U) << "a blind write leaves it";
  CO_ASSERT_OK(co_await story.engine().compact(kTable, Until::forever()));
  EXPECT_THAT(co_await entries_of(story, "old"), ::testing::ElementsAre("p/b"));
  EXPECT_THAT(co_await entries_of(story, "new"), ::testing::ElementsAre("p/a"));
  EXPECT_EQ(story.engine().statistics().index_entries_stale, 1U);
  CO_ASSERT_OK(co_await story.put("p", "a", "old"));
  EXPECT_EQ((co_await entries_of(story, "old")).size(), 2U) << "what says it again brings it again";
}

TEST(EngineIndex, MergesLeaveOutWhatNoRowSaysAnyMore) {
  LogWorld world;
  live_indexed(world, overwrite_and_merge);
}

Task<void> ask_too_early(EngineStory& story) {
  TableOptions options;
  options.index = IndexOf{.table = kTable, .definition = Bytes::copy_of("nonsense")};
  CO_ASSERT_OK(co_await story.put("p", "r", "v"));
  CO_ASSERT_OK(co_await story.engine().create_table(kIndex, options));
  EXPECT_TRUE(story.engine().cursor(kIndex, kTablet, {}).failed_with(Errc::unavailable));
  EXPECT_EQ(story.engine().indexes_being_built(), std::vector{kIndex});
  const auto copy = co_await story.engine().snapshot(kTablet, Until::forever());
  EXPECT_TRUE(copy.failed_with(Errc::unavailable));
  CO_ASSERT_OK(co_await story.engine().drop_table(kIndex));
  EXPECT_TRUE(story.engine().indexes_being_built().empty());
  CO_ASSERT_OK(co_await story.put("p", "r", "w"));
}

TEST(EngineIndex, ThatIsNotBuiltAnswersNobody) {
  LogWorld world;
  live_indexed(world, ask_too_early);
}

Task<void> write_index_and_flush(Runtime& runtime) {
  EngineStory story(runtime, indexed());
  CO_ASSERT_OK(co_await story.open());
  for (int i = 0; i < 80; ++i) {
    CO_ASSERT_OK(co_await story.put("p" + std::to_string(i % 7), "r" + std::to_string(i % 5),
                                    "v" + std::to_string(i % 11)));
    if (i == 30) CO_ASSERT_OK(co_await make_index(story.engine()));
    if (i % 17 == 16) CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
    if (i == 70) CO_ASSERT_OK(co_await story.engine().compact(kIndex, Until::forever()));
  }
  CO_ASSERT_OK(co_await story.stop());
}

// Of what was there, in whichever state, all rows are found by it.
Task<void> expect_index_whole(EngineStory& story) {
  const auto tables = story.engine().tables();
  if (std::ranges::find(tables, kIndex) == tables.end()) co_return;
  co_await wait_built(story);
  co_await expect_every_row_found(story);
}

TEST(EngineIndex, APowerLossAtAnyMomentLosesNoEntry) {
  std::uint64_t crashes = 0;
  for (std::uint64_t events = 50;; events += 61) {
    LogWorld world(events);
    world.start([](Runtime& runtime) { return write_index_and_flush(runtime); });
    bool running = true;
    for (std::uint64_t event = 0; event < events && running; ++event) {
      running = world.machine().is_up() && world.world().step();
    }
    if (!world.machine().is_up() || !running) break;
    world.machine().power_loss();
    ++crashes;
    live_indexed(world, expect_index_whole);
    ASSERT_FALSE(HasFailure()) << "after event " << events;
  }
  EXPECT_GT(crashes, 10);
}

}  // namespace
}  // namespace helenus::storage::testing
