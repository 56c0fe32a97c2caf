// Stories about what the engine gives back by itself: deletes and expired values of a table that
// nobody writes to, without a command; and what it must keep.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "storage/engine/engine_test_support.h"

namespace helenus::storage::testing {
namespace {

using base::Bytes;
using causality::actor_of;
using causality::Clock;
using causality::Watermark;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

constexpr causality::Epoch kEpoch{1};
const causality::ActorId kPeer = actor_of(2, 1);

EngineOptions collecting() {
  EngineOptions options = small_engine();
  options.memtable_keys_flush = 1000;
  options.collection.interval = std::chrono::seconds(10);
  return options;
}

Task<void> life(Runtime& runtime, EngineOptions options,
                std::function<Task<void>(EngineStory&)> tell) {
  EngineStory story(runtime, std::move(options));
  CO_ASSERT_OK(co_await story.open());
  co_await tell(story);
  CO_ASSERT_OK(co_await story.stop());
}

void live(const std::function<Task<void>(EngineStory&)>& tell,
          const EngineOptions& options = collecting()) {
  LogWorld world;
  world.run([&](Runtime& runtime) { return life(runtime, options, tell); });
}

std::int64_t wall_seconds(EngineStory& story) {
  return std::chrono::floor<std::chrono::seconds>(story.runtime().clock.wall_now().since_origin())
      .count();
}

Task<void> wait(EngineStory& story, std::int64_t seconds) {
  CO_ASSERT_OK(co_await runtime::sleep_for(story.runtime(), std::chrono::seconds(seconds), {}));
}

Task<void> put_expiring(EngineStory& story, std::string row, std::int64_t expires) {
  auto mutation = put_of(row, "short", 1, causality::WallTime{expires});
  CO_ASSERT_OK(co_await story.engine().write(kTable, kTablet, Bytes::copy_of("p"),
                                             std::move(mutation), kEpoch, Until::forever()));
}

Task<void> remove_row(EngineStory& story, std::string row, std::int64_t timestamp) {
  causality::Mutation mutation;
  mutation.timestamp = causality::Timestamp{timestamp};
  mutation.deleted_ranges.push_back(causality::range_of_row(Bytes::copy_of(row)));
  CO_ASSERT_OK(co_await story.engine().write(kTable, kTablet, Bytes::copy_of("p"),
                                             std::move(mutation), kEpoch, Until::forever()));
}

Task<void> remove_cell(EngineStory& story, std::string row, std::int64_t timestamp) {
  auto mutation = put_of(row, "", timestamp);
  mutation.cells.front().kind = causality::VersionKind::deletion;
  CO_ASSERT_OK(co_await story.engine().write(kTable, kTablet, Bytes::copy_of("p"),
                                             std::move(mutation), kEpoch, Until::forever()));
}

Task<void> flush(EngineStory& story) {
  CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
}

// ---- Expired values ----

Task<void> expire_in_a_quiet_table(EngineStory& story) {
  story.engine().set_watermarks(kTablet, {});
  const std::int64_t expires = wall_seconds(story) + 100;
  for (int row = 0; row < 20; ++row) {
    co_await put_expiring(story, fmt::format("{:02}", row), expires);
  }
  co_await flush(story);
  co_await wait(story, 60);
  EXPECT_EQ(story.engine().statistics().sstables, 1);
  co_await wait(story, 100);
  EXPECT_EQ(story.engine().statistics().sstables, 0) << "nothing is left, not even a file";
  EXPECT_EQ(story.engine().statistics().collections, 1);
}

TEST(Collection, ExpiredValuesOfAQuietTableGoByThemselves) {
  live(expire_in_a_quiet_table);
}

Task<void> expire_in_a_busy_table(EngineStory& story) {
  story.engine().set_watermarks(kTablet, {});
  const std::int64_t expires = wall_seconds(story) + 100;
  for (int row = 0; row < 20; ++row) {
    co_await put_expiring(story, fmt::format("{:02}", row), expires);
  }
  co_await flush(story);
  // In memory all the time, and newer than the file: the row 07 once more, and something else.
  CO_ASSERT_OK(co_await story.put("p", "07", "for ever"));
  CO_ASSERT_OK(co_await story.put("q", "0", "v"));
  co_await wait(story, 200);
  story.now = causality::WallTime{wall_seconds(story)};
  const auto statistics = story.engine().statistics();
  EXPECT_EQ(statistics.flushes, 1) << "nothing has been frozen since";
  EXPECT_EQ(statistics.keys_gone, 19) << "all but the one that is in memory, too";
  EXPECT_EQ(statistics.collections, 2) << "the file, then the table, and then it is let alone";
  const auto shown = co_await story.scan();
  CO_ASSERT_OK(shown);
  EXPECT_EQ(*shown, (Shown{{"p/07", "for ever"}, {"q/0", "v"}}));
}

TEST(Collection, ExpiredValuesGoWhileOthersOfTheTableAreWritten) {
  live(expire_in_a_busy_table);
}

// ---- Deletes ----

Task<void> delete_in_a_quiet_table(EngineStory& story, bool range_delete) {
  Engine& engine = story.engine();
  for (int row = 0; row < 20; ++row) {
    CO_ASSERT_OK(co_await story.put("p", fmt::format("{:02}", row), "v"));
  }
  co_await flush(story);
  for (int row = 0; row < 15; ++row) {
    if (range_delete) {
      co_await remove_row(story, fmt::format("{:02}", row), 5000);
    } else {
      co_await remove_cell(story, fmt::format("{:02}", row), 5000);
    }
  }
  co_await flush(story);
  const Clock all = *engine.durable_clock(kTablet);
  Clock some;
  some.add(causality::DotRange{actor_of(1, 1), 1, 30});
  engine.set_watermarks(kTablet, {Watermark{some, causality::WallTime{1}}});
  co_await wait(story, 100);
  EXPECT_EQ(engine.statistics().collections, 0) << "some peer has not seen all of them";
  engine.set_watermarks(kTablet, {Watermark{all, causality::WallTime{1}}});
  co_await wait(story, 100);
  const auto statistics = engine.statistics();
  EXPECT_EQ(statistics.collections, 1);
  EXPECT_EQ(statistics.sstables, 1);
  EXPECT_GE(statistics.keys_gone, 15);
  const auto shown = co_await story.scan();
  CO_ASSERT_OK(shown);
  EXPECT_EQ(shown->size(), 5);
}

TEST(Collection, DeletesOfAQuietTableGoWhenTheyAreStable) {
  live([](EngineStory& story) { return delete_in_a_quiet_table(story, false); });
  live([](EngineStory& story) { return delete_in_a_quiet_table(story, true); });
}

causality::Delta delta_of_peer(std::int64_t timestamp) {
  Clock clock;
  auto delta = causality::mint(clock, kPeer, kEpoch, causality::Policy::lww,
                               put_of("00", "old", timestamp), causality::kTimestampMin);
  return *std::move(delta);
}

// A peer wrote at the same time as the delete and loses to it. Here that write is in memory alone
// and the delete in a file that is merged.
Task<void> delete_what_is_in_memory(EngineStory& story) {
  Engine& engine = story.engine();
  co_await remove_cell(story, "00", 5000);
  CO_ASSERT_OK(co_await story.put("p", "01", "v"));
  co_await flush(story);
  CO_ASSERT_OK(engine.stage(kTable, kTablet, Bytes::copy_of("p"), delta_of_peer(1)));
  engine.set_watermarks(kTablet, {});
  co_await wait(story, 100);
  EXPECT_GE(engine.statistics().collections, 1);
  EXPECT_LE(engine.statistics().collections, 10) << "one an interval at most";
  EXPECT_EQ(*co_await story.get("p", "00"), "") << "the delete must stay while it hides something";
  co_await flush(story);
  EXPECT_EQ(*co_await story.get("p", "00"), "");
  co_await wait(story, 100);
  EXPECT_EQ(*co_await story.get("p", "00"), "");
  EXPECT_EQ(*co_await story.get("p", "01"), "v");
  EXPECT_EQ(engine.statistics().sstables, 1) << "and then both go";
}

TEST(Collection, ADeleteStaysAsLongAsSomethingInMemoryIsHiddenByIt) {
  live(delete_what_is_in_memory);
}

// ---- Little garbage ----

Task<void> delete_a_little(EngineStory& story) {
  Engine& engine = story.engine();
  engine.set_watermarks(kTablet, {});
  for (int row = 0; row < 100; ++row) {
    CO_ASSERT_OK(co_await story.put("p", fmt::format("{:02}", row), std::string(100, 'v')));
  }
  co_await flush(story);
  co_await remove_cell(story, "00", 5000);
  co_await flush(story);
  const std::uint64_t bytes = engine.statistics().sstable_bytes;
  co_await wait(story, 30);
  EXPECT_EQ(engine.statistics().collections, 1) << "the first after a start comes soon";
  co_await remove_cell(story, "01", 6000);
  co_await flush(story);
  const auto wait_seconds = static_cast<std::int64_t>(bytes / 10);
  co_await wait(story, wait_seconds / 2);
  EXPECT_EQ(engine.statistics().collections, 1);
  co_await wait(story, wait_seconds);
  EXPECT_EQ(engine.statistics().collections, 2);
  EXPECT_EQ(engine.statistics().sstables, 1);
}

TEST(Collection, ALittleGarbageWaitsSoLongThatRewritingForItIsCheap) {
  EngineOptions options = collecting();
  options.collection.slow_bytes_per_second = 10;
  live(delete_a_little, options);
}

Task<void> do_nothing_for_long(EngineStory& story) {
  story.engine().set_watermarks(kTablet, {});
  for (int file = 0; file < 3; ++file) {
    CO_ASSERT_OK(co_await story.put("p", std::to_string(file), "v"));
    co_await flush(story);
  }
  co_await wait(story, 3000);
  EXPECT_EQ(story.engine().statistics().compactions, 0);
}

TEST(Collection, WithoutGarbageNothingIsRewritten) {
  live(do_nothing_for_long);
}

}  // namespace
}  // namespace helenus::storage::testing
