// Dropping a tablet: all of its data goes, nothing of its neighbours', and nothing comes back.
#include <functional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "causality/resolve.h"
#include "runtime/contract/world.h"
#include "runtime/task_group.h"
#include "storage/engine/engine_test_support.h"

namespace helenus::storage::testing {
namespace {

using base::Bytes;
using base::Errc;
using base::Result;
using causality::actor_of;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

constexpr causality::Epoch kEpoch{1};
constexpr TabletId kLeft{1};
constexpr TabletId kRight{2};

KeyRange left_range() {
  return {.from = {}, .to = Bytes::copy_of("m")};
}
KeyRange right_range() {
  return {.from = Bytes::copy_of("m"), .to = {}};
}

Task<Result<void>> put(Engine& engine, TabletId tablet, std::string row) {
  const std::string partition = tablet == kLeft ? "left" : "right";
  CO_TRY_VOID(co_await engine.write(kTable, tablet, Bytes::copy_of(partition), put_of(row, row, 1),
                                    kEpoch, Until::forever()));
  co_return {};
}

// "a b c": the rows of a tablet.
Task<Result<std::string>> rows_of(Engine& engine, TabletId tablet) {
  CO_TRY(const auto cursor, engine.cursor(kTable, tablet, {}));
  std::string rows;
  CO_TRY_VOID(co_await cursor->seek_first());
  while (cursor->valid()) {
    rows += (rows.empty() ? "" : " ") + std::string(base::as_text(cursor->row_key()));
    CO_TRY_VOID(co_await cursor->next());
  }
  co_return rows;
}

Task<Result<std::unique_ptr<Engine>>> open_with_two(Runtime& runtime, std::uint32_t incarnation) {
  CO_TRY(auto engine, co_await Engine::open(runtime, small_engine()));
  const auto ignore_existing = [](Result<void> made) {
    return made.failed_with(Errc::already_exists) ? Result<void>() : std::move(made);
  };
  CO_TRY_VOID(ignore_existing(co_await engine->create_table(kTable, {})));
  CO_TRY_VOID(ignore_existing(
      co_await engine->create_tablet(kLeft, left_range(), actor_of(1, incarnation))));
  CO_TRY_VOID(ignore_existing(
      co_await engine->create_tablet(kRight, right_range(), actor_of(1, incarnation))));
  co_return engine;
}

// In a file, in a second one, and in memory.
Task<Result<void>> fill(Engine& engine) {
  for (const char* row : {"a", "b", "c"}) {
    CO_TRY_VOID(co_await put(engine, kLeft, row));
    CO_TRY_VOID(co_await put(engine, kRight, row));
    if (row[0] != 'c') CO_TRY_VOID(co_await engine.flush(kTable, Until::forever()));
  }
  co_return {};
}

Task<void> drop_and_make_anew(Runtime& runtime) {
  auto opened = co_await open_with_two(runtime, 1);
  CO_ASSERT_OK(opened);
  Engine& engine = **opened;
  CO_ASSERT_OK(co_await fill(engine));
  CO_ASSERT_OK(co_await engine.drop_tablet(kLeft));
  EXPECT_TRUE((co_await engine.drop_tablet(kLeft)).failed_with(Errc::not_found));
  EXPECT_TRUE((co_await put(engine, kLeft, "d")).failed_with(Errc::not_found));
  EXPECT_TRUE(engine.cursor(kTable, kLeft, {}).failed_with(Errc::not_found));
  EXPECT_TRUE(engine.durable_clock(kLeft).failed_with(Errc::not_found));
  EXPECT_EQ(engine.tablets().size(), 1);
  EXPECT_EQ(co_await rows_of(engine, kRight), "a b c");
  EXPECT_EQ(engine.kept_mutations(kRight)->entries().size(), 1);
  CO_ASSERT_OK(co_await engine.create_tablet(kLeft, left_range(), actor_of(1, 2)));
  EXPECT_EQ(co_await rows_of(engine, kLeft), "") << "not a row, not even a deleted one";
  EXPECT_TRUE(engine.durable_clock(kLeft)->empty());
  EXPECT_TRUE(engine.kept_mutations(kLeft)->empty());
  CO_ASSERT_OK(co_await put(engine, kLeft, "new"));
  CO_ASSERT_OK(co_await engine.stop());
}

Task<void> expect_anew(Runtime& runtime) {
  auto opened = co_await Engine::open(runtime, small_engine());
  CO_ASSERT_OK(opened);
  EXPECT_EQ(co_await rows_of(**opened, kLeft), "new");
  EXPECT_EQ(co_await rows_of(**opened, kRight), "a b c");
  CO_ASSERT_OK(co_await (*opened)->stop());
}

TEST(DroppedTablet, LeavesNothingBehindForTheNextOneOfItsKeys) {
  LogWorld world;
  world.run(drop_and_make_anew);
  world.run(expect_anew);
}

// ---- Under writes to its neighbour ----

constexpr TableId kOther{8};

Task<void> write_to_the_right(Engine& engine, const bool& over) {
  int row = 0;
  while (!over) {
    ++row;
    for (const TableId table : {kTable, kOther}) {
      CO_ASSERT_OK(co_await engine.write(table, kRight, Bytes::copy_of("right"),
                                         put_of(fmt::format("{}", row), "v", 1), kEpoch,
                                         Until::forever()));
    }
  }
}

Task<void> drop_among_writers(Runtime& runtime) {
  auto opened = co_await open_with_two(runtime, 1);
  CO_ASSERT_OK(opened);
  Engine& engine = **opened;
  CO_ASSERT_OK(co_await engine.create_table(kOther, {}));
  CO_ASSERT_OK(co_await put(engine, kLeft, "old"));
  bool over = false;
  runtime::TaskGroup writers(runtime);
  for (int writer = 0; writer < 8; ++writer) writers.spawn(write_to_the_right(engine, over));
  CO_ASSERT_OK(co_await engine.drop_tablet(kLeft));
  CO_ASSERT_OK(co_await engine.create_tablet(kLeft, left_range(), actor_of(1, 2)));
  over = true;
  co_await writers.join();
  CO_ASSERT_OK(co_await engine.stop());
}

Task<void> expect_no_old_dots(Runtime& runtime) {
  auto opened = co_await Engine::open(runtime, small_engine());
  CO_ASSERT_OK(opened);
  EXPECT_TRUE((*opened)->durable_clock(kLeft)->empty());
  CO_ASSERT_OK(co_await (*opened)->stop());
}

TEST(DroppedTablet, ItsClockDoesNotComeBackWithAMemtableFrozenBefore) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    LogWorld world(seed);
    world.run(drop_among_writers);
    world.run(expect_no_old_dots);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

// ---- Cut short ----

Task<void> fill_and_drop(Runtime& runtime, bool& filled) {
  auto opened = co_await open_with_two(runtime, 1);
  CO_ASSERT_OK(opened);
  CO_ASSERT_OK(co_await fill(**opened));
  filled = true;
  CO_ASSERT_OK(co_await (*opened)->drop_tablet(kLeft));
  CO_ASSERT_OK(co_await (*opened)->stop());
}

// All of it is there, or nothing is and nothing ever comes back.
Task<void> expect_all_or_nothing(Runtime& runtime, bool& dropped) {
  auto opened = co_await Engine::open(runtime, small_engine());
  CO_ASSERT_OK(opened);
  Engine& engine = **opened;
  EXPECT_EQ(co_await rows_of(engine, kRight), "a b c");
  dropped = engine.tablets().size() == 1;
  if (!dropped) {
    EXPECT_EQ(co_await rows_of(engine, kLeft), "a b c");
    CO_ASSERT_OK(co_await engine.stop());
    co_return;
  }
  Result<void> made;
  for (int tries = 0; tries < 100; ++tries) {
    made = co_await engine.create_tablet(kLeft, left_range(), actor_of(1, 2));
    if (made) break;
    EXPECT_TRUE(made.failed_with(Errc::unavailable)) << made.error().to_string();
    CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::milliseconds(50), {}));
  }
  CO_ASSERT_OK(made);
  EXPECT_EQ(co_await rows_of(engine, kLeft), "");
  CO_ASSERT_OK(co_await engine.stop());
}

TEST(DroppedTablet, ACrashLeavesAllOfItOrNothing) {
  std::uint64_t whole = 0;
  std::uint64_t gone = 0;
  for (std::uint64_t events = 30;; events += 7) {
    LogWorld world(events);
    bool filled = false;
    world.start([&](Runtime& runtime) { return fill_and_drop(runtime, filled); });
    for (std::uint64_t event = 0; event < events && world.machine().is_up(); ++event) {
      if (!world.world().step()) break;
    }
    if (!world.machine().is_up()) break;
    world.machine().power_loss();
    if (!filled) continue;
    bool dropped = false;
    world.run([&](Runtime& runtime) { return expect_all_or_nothing(runtime, dropped); });
    ASSERT_FALSE(HasFailure()) << "after event " << events;
    (dropped ? gone : whole) += 1;
  }
  EXPECT_GT(whole, 3);
  EXPECT_GT(gone, 3);
}

}  // namespace
}  // namespace helenus::storage::testing
