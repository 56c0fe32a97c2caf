// Stories of snapshots: what they keep is what was there at one moment, whatever goes on beside,
// and taking it back brings that and nothing else.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "causality/counter.h"
#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "storage/engine/engine_test_support.h"

namespace helenus::storage::testing {
namespace {

using base::Errc;
using base::Result;
using causality::actor_of;
using causality::Clock;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

void live(const std::function<Task<void>(Runtime&)>& tell) {
  LogWorld world;
  world.run([&](Runtime& runtime) { return tell(runtime); });
}

Task<Result<SnapshotSize>> keep(EngineStory& story, std::string name) {
  return story.engine().make_snapshot(std::move(name), {kTable}, {kTablet}, Until::forever());
}

RestoreOrder order_of(std::optional<causality::ActorId> anew_as = std::nullopt) {
  return {.tablet = kTablet,
          .anew_as = anew_as,
          .tables = {{kTable, kTable}},
          .dropped_before = causality::WallTime{1}};
}

std::uint64_t dots_in(const Clock& clock) {
  std::uint64_t dots = 0;
  for (const causality::DotRange& range : causality::missing(Clock(), clock).dots) {
    dots += range.last - range.first + 1;
  }
  return dots;
}

Task<void> it_brings_back_what_was_there(Runtime& runtime) {
  EngineStory story(runtime);
  CO_ASSERT_OK(co_await story.open());
  story.engine().set_watermarks(kTablet, {});
  for (int i = 0; i < 40; ++i) {
    CO_ASSERT_OK(co_await story.put(fmt::format("p{}", i % 3), fmt::format("r{}", i), "then"));
  }
  const Shown then = *co_await story.scan();
  const auto size = co_await keep(story, "monday");
  CO_ASSERT_OK(size);
  EXPECT_GT(size->files, 0U);
  for (int i = 20; i < 70; ++i) {
    CO_ASSERT_OK(co_await story.put(fmt::format("p{}", i % 3), fmt::format("r{}", i), "later"));
  }
  CO_ASSERT_OK(co_await story.engine().compact(kTable, Until::forever()));
  const Shown later = *co_await story.scan();
  EXPECT_NE(later, then);
  // United with what has all of it, it changes nothing.
  const auto united = co_await story.engine().restore("monday", order_of(), {});
  CO_ASSERT_OK(united);
  EXPECT_TRUE(united->was_in_snapshot);
  EXPECT_EQ(united->taken.dots, 0U);
  EXPECT_EQ(*co_await story.scan(), later);
  // Made anew, it is all there is; twice, as what was asked for before a stop is asked for again.
  for (const std::uint32_t life : {2U, 3U}) {
    CO_ASSERT_OK(co_await story.engine().restore("monday", order_of(actor_of(1, life)), {}));
    story.engine().set_watermarks(kTablet, {});
    EXPECT_EQ(*co_await story.scan(), then);
    const auto written = co_await story.put("p0", "r0", "again");
    CO_ASSERT_OK(written);
    EXPECT_EQ(written->dot.actor, actor_of(1, life));
    EXPECT_EQ(*co_await story.get("p0", "r0"), "again");
  }
  CO_ASSERT_OK(co_await story.stop());
  CO_ASSERT_OK(co_await story.open());
  Shown expected = then;
  expected["p0/r0"] = "again";
  EXPECT_EQ(*co_await story.scan(), expected);
  CO_ASSERT_OK(co_await story.engine().compact(kTable, Until::forever()));
  EXPECT_EQ(*co_await story.scan(), expected);
  CO_ASSERT_OK(co_await story.stop());
}

TEST(EngineSnapshot, BringsBackWhatWasThere) {
  live(&it_brings_back_what_was_there);
}

Task<void> write_rows(EngineStory& story, int& written, const bool& stop) {
  while (!stop) {
    const auto put = co_await story.put("p", fmt::format("{:05}", written), std::string(40, 'v'));
    EXPECT_TRUE(put.has_value());
    if (!put) co_return;
    ++written;
  }
}

// Flushes and merges go on all the time: the claim is still what the files have.
Task<void> it_is_of_one_moment(Runtime& runtime) {
  EngineStory story(runtime);
  CO_ASSERT_OK(co_await story.open());
  story.engine().set_watermarks(kTablet, {});
  int written = 0;
  bool stop = false;
  runtime::TaskGroup writers(runtime);
  writers.spawn(write_rows(story, written, stop));
  std::vector<std::pair<int, int>> around;
  for (int i = 0; i < 5; ++i) {
    CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::milliseconds(40), {}));
    const int before = written;
    CO_ASSERT_OK(co_await keep(story, fmt::format("s{}", i)));
    around.emplace_back(before, written);
  }
  stop = true;
  co_await writers.join();
  EXPECT_GT(story.engine().statistics().compactions, 0U);
  for (std::uint32_t i = 0; i < around.size(); ++i) {
    CO_ASSERT_OK(
        co_await story.engine().restore(fmt::format("s{}", i), order_of(actor_of(1, 10 + i)), {}));
    const Shown shown = *co_await story.scan();
    const auto count = static_cast<int>(shown.size());
    EXPECT_GE(count, around[i].first);
    EXPECT_LE(count, around[i].second + 1);
    if (count > 0) EXPECT_EQ(shown.rbegin()->first, fmt::format("p/{:05}", count - 1)) << "no gap";
    EXPECT_EQ(dots_in(*story.engine().durable_clock(kTablet)), shown.size());
  }
  CO_ASSERT_OK(co_await story.stop());
}

TEST(EngineSnapshot, IsOfOneMoment) {
  live(&it_is_of_one_moment);
}

Task<void> what_is_damaged_is_not_kept(Runtime& runtime, LogWorld& world) {
  EngineStory story(runtime);
  CO_ASSERT_OK(co_await story.open());
  for (int i = 0; i < 9; ++i) {
    CO_ASSERT_OK(co_await story.put("p", fmt::format("r{}", i), std::string(60, 'v')));
  }
  CO_ASSERT_OK(co_await keep(story, "sound"));
  EXPECT_TRUE((co_await keep(story, "sound")).failed_with(Errc::already_exists));
  for (const char* directory : {"/a", "/b"}) {
    const std::string folder = std::string(kEngineFolder) + directory + "/shard-0000";
    for (const auto& entry : *world.disk().list(folder)) {
      const std::string path = folder + "/" + entry.name;
      if (entry.name.ends_with(".sst")) world.flip_bit(path, world.read(path).size() * 8 / 4);
    }
  }
  EXPECT_TRUE(
      (co_await story.engine().verify(kTable, Until::forever())).failed_with(Errc::corrupt));
  EXPECT_TRUE((co_await keep(story, "damaged")).failed_with(Errc::corrupt));
  // The snapshot has the same files: nothing is taken back of it, and nothing goes.
  EXPECT_FALSE((co_await story.engine().restore("nosuch", order_of(actor_of(1, 2)), {})));
  CO_ASSERT_OK(co_await story.stop());
}

TEST(EngineSnapshot, HasNoDamagedFile) {
  LogWorld world;
  world.run([&](Runtime& runtime) { return what_is_damaged_is_not_kept(runtime, world); });
}

}  // namespace
}  // namespace helenus::storage::testing
