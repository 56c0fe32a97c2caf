// Stories about operation ids: what an id has made is found as long as the id may come again,
// whatever was flushed, merged or restarted since.
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/codec.h"
#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "storage/engine/engine_test_support.h"

namespace helenus::storage::testing {
namespace {

using base::Bytes;
using base::Errc;
using base::Result;
using causality::actor_of;
using causality::OperationId;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

constexpr causality::Epoch kFirstEpoch{1};
constexpr std::int64_t kWindowMs = 60'000;
constexpr std::int64_t kSkewMs = 1'000;

EngineOptions engine_with_window() {
  EngineOptions options = small_engine();
  options.operations = {.window_ms = kWindowMs, .skew_ms = kSkewMs};
  return options;
}

Task<void> operation_life(Runtime& runtime, EngineOptions options,
                          std::function<Task<void>(EngineStory&)> tell) {
  EngineStory story(runtime, std::move(options));
  CO_ASSERT_OK(co_await story.open());
  co_await tell(story);
  CO_ASSERT_OK(co_await story.stop());
}

void live_with(LogWorld& world, const std::function<Task<void>(EngineStory&)>& tell,
               const EngineOptions& options = engine_with_window()) {
  world.run([&](Runtime& runtime) { return operation_life(runtime, options, tell); });
}

std::int64_t wall_ms(EngineStory& story) {
  return story.runtime().clock.wall_now().since_origin() / std::chrono::milliseconds(1);
}

OperationId id_of(std::int64_t time_ms, std::uint64_t number) {
  OperationId id{};
  base::store_be(id.data(), static_cast<std::uint64_t>(time_ms) << 16 | 0x7000U);
  base::store_be(id.data() + 8, number | std::uint64_t{1} << 63);
  return id;
}

Task<Result<causality::Delta>> put_under(EngineStory& story, std::string partition,
                                         OperationId id) {
  causality::Mutation mutation = put_of("r", "v", wall_ms(story) * 1000);
  mutation.operation = id;
  co_return co_await story.engine().write(kTable, kTablet, Bytes::copy_of(partition),
                                          std::move(mutation), kFirstEpoch, Until::forever());
}

// "1.1:3=p", or "unknown".
Task<std::string> found(EngineStory& story, OperationId id) {
  causality::Mutation mutation = put_of("r", "v", wall_ms(story) * 1000);
  mutation.operation = id;
  const auto may_be = story.engine().may_know_operation(mutation);
  if (!may_be) co_return may_be.failed_with(Errc::invalid_argument) ? "refused" : "error";
  if (!*may_be) co_return "unknown";
  const auto known = co_await story.engine().find_operation(kTablet, id, Until::forever());
  if (!known) co_return fmt::format("{}", known.error());
  if (!*known) co_return "unknown";
  EXPECT_EQ((*known)->delta.operation, id);
  EXPECT_EQ((*known)->table, kTable);
  co_return fmt::format("{}={}", (*known)->delta.dot, (*known)->partition.text());
}

Task<void> flush_all(EngineStory& story) {
  CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
}

Task<void> pass(EngineStory& story, std::int64_t milliseconds) {
  CO_ASSERT_OK(
      co_await runtime::sleep_for(story.runtime(), std::chrono::milliseconds(milliseconds), {}));
}

struct Ids {
  std::vector<OperationId> made;
  std::vector<std::string> expected;
};

Task<void> make_some(EngineStory& story, Ids& ids) {
  for (std::uint64_t i = 0; i < 12; ++i) {
    const OperationId id = id_of(wall_ms(story), i);
    const auto made = co_await put_under(story, fmt::format("p{}", i), id);
    CO_ASSERT_OK(made);
    ids.made.push_back(id);
    ids.expected.push_back(fmt::format("{}=p{}", made->dot, i));
    CO_ASSERT_OK(co_await story.put("other", "r", "v"));
    if (i % 3 == 2) co_await flush_all(story);
  }
}

Task<void> all_are_found(EngineStory& story, const Ids& ids) {
  for (std::size_t i = 0; i < ids.made.size(); ++i) {
    EXPECT_EQ(co_await found(story, ids.made[i]), ids.expected[i]) << i;
  }
  EXPECT_EQ(co_await found(story, id_of(wall_ms(story), 1000)), "unknown");
}

// What an operator's node is alone, or with a peer that never says what it has.
void ids_outlive_flushes_and_starts(bool is_alone) {
  LogWorld world;
  Ids ids;
  live_with(world, [&](EngineStory& story) -> Task<void> {
    if (is_alone) story.engine().set_watermarks(kTablet, {});
    co_await make_some(story, ids);
    co_await all_are_found(story, ids);
    // Merged: four files were written.
    co_await pass(story, 2000);
    co_await all_are_found(story, ids);
  });
  for (int start = 0; start < 2; ++start) {
    live_with(world, [&](EngineStory& story) -> Task<void> {
      if (is_alone) story.engine().set_watermarks(kTablet, {});
      co_await all_are_found(story, ids);
      EXPECT_EQ(story.engine().statistics().operation_false_positives, 0U);
      EXPECT_EQ(story.engine().statistics().operation_duplicates, ids.made.size());
    });
  }
}

TEST(EngineOperations, AreFoundInMemoryInFilesAndAfterStarts) {
  ids_outlive_flushes_and_starts(false);
  ids_outlive_flushes_and_starts(true);
}

Task<void> they_go_with_the_window(EngineStory& story) {
  Engine& engine = story.engine();
  engine.set_watermarks(kTablet, {});
  Ids ids;
  co_await make_some(story, ids);
  EXPECT_GT(engine.statistics().mutation_files, 0U);
  EXPECT_EQ(engine.statistics().tablets_holding_operations, 1U);
  co_await pass(story, kWindowMs - 10'000);
  co_await all_are_found(story, ids);
  co_await pass(story, kWindowMs);
  EXPECT_EQ(co_await found(story, ids.made[0]), "refused");
  const auto late = co_await put_under(story, "p", ids.made[0]);
  EXPECT_TRUE(late.failed_with(Errc::invalid_argument));
  co_await pass(story, 10'000);
  EXPECT_EQ(engine.statistics().tablets_holding_operations, 0U);
  EXPECT_EQ(engine.statistics().mutation_files, 0U);
  EXPECT_EQ(engine.statistics().mutation_memory_bytes, 0U);
  EXPECT_EQ(engine.statistics().operations_expired, 2U);
}

TEST(EngineOperations, GoWithTheWindowAndLeaveNothing) {
  LogWorld world;
  live_with(world, &they_go_with_the_window);
}

TEST(EngineOperations, FromTheFutureAreRefused) {
  LogWorld world;
  live_with(world, [](EngineStory& story) -> Task<void> {
    const OperationId ahead = id_of(wall_ms(story) + kSkewMs + 50, 1);
    EXPECT_TRUE((co_await put_under(story, "p", ahead)).failed_with(Errc::invalid_argument));
    CO_ASSERT_OK(co_await put_under(story, "p", id_of(wall_ms(story) + kSkewMs, 2)));
    EXPECT_EQ(story.engine().statistics().operations_from_the_future, 1U);
  });
}

// What another replica has minted for the same operation.
TEST(EngineOperations, OfAnotherReplicaAreFoundToo) {
  LogWorld world;
  live_with(world, [](EngineStory& story) -> Task<void> {
    const OperationId id = id_of(wall_ms(story), 1);
    causality::Clock theirs;
    causality::Mutation mutation = put_of("r", "v", 5);
    mutation.operation = id;
    auto delta = causality::mint(theirs, actor_of(2, 1), kFirstEpoch, causality::Policy::lww,
                                 std::move(mutation), causality::kTimestampMin);
    CO_ASSERT_OK(delta);
    CO_ASSERT_OK(story.engine().stage(kTable, kTablet, base::as_bytes("p"), *delta));
    EXPECT_EQ(co_await found(story, id), "2.1:1=p");
    const auto alias = co_await put_under(story, "p", id);
    CO_ASSERT_OK(alias);
    co_await flush_all(story);
    EXPECT_EQ(co_await found(story, id), "1.1:1=p");
  });
}

TEST(EngineOperations, AreNeverShedAndRefusedOverTheCap) {
  LogWorld world;
  EngineOptions options = engine_with_window();
  options.mutation_log_bytes_max = 4 << 10;
  live_with(
      world,
      [](EngineStory& story) -> Task<void> {
        std::vector<OperationId> made;
        Result<causality::Delta> last = base::Error(Errc::internal);
        for (std::uint64_t i = 0; i < 1000; ++i) {
          const OperationId id = id_of(wall_ms(story), i);
          last = co_await put_under(story, fmt::format("partition{}", i), id);
          if (!last) break;
          made.push_back(id);
          if (i % 10 == 9) co_await flush_all(story);
        }
        EXPECT_TRUE(last.failed_with(Errc::overloaded));
        // Others go on.
        CO_ASSERT_OK(co_await story.put("p", "r", "v"));
        co_await pass(story, 5000);
        for (const OperationId& id : made) EXPECT_NE(co_await found(story, id), "unknown");
        EXPECT_EQ(story.engine().statistics().mutation_files_shed, 0U);
        co_await pass(story, 2 * kWindowMs);
        CO_ASSERT_OK(co_await put_under(story, "p", id_of(wall_ms(story), 5000)));
        EXPECT_GT(story.engine().statistics().mutation_files_shed, 0U);
      },
      options);
}

}  // namespace
}  // namespace helenus::storage::testing
