// An engine that keeps a reserve, on a disk that gets full: writes of data are refused in time,
// whatever gives space back goes on, and so does the next start (disk_reserve.h).
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "storage/engine/engine_test_support.h"

namespace helenus::storage::testing {
namespace {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using ::testing::HasSubstr;

constexpr std::uint64_t kKib = 1024;
constexpr std::uint64_t kRoomForAll = std::uint64_t{64} << 30;
constexpr TableId kOther{2};

EngineOptions reserving_engine() {
  EngineOptions options = small_engine();
  options.disk_reserve_bytes = 64 * kKib;
  options.retry_delay = std::chrono::milliseconds(100);
  options.log.retry_delay = std::chrono::milliseconds(100);
  options.collection.slow_bytes_per_second = std::uint64_t{1} << 20;
  return options;
}

class FullDiskStory {
 public:
  FullDiskStory(Runtime& runtime, LogWorld& world, Shown& rows)
      : story_(runtime, reserving_engine()), world_(world), rows_(rows) {}

  EngineStory& story() { return story_; }
  Engine& engine() { return story_.engine(); }

  Until soon() { return Until::after(story_.runtime(), std::chrono::seconds(10)); }
  Task<void> pause(runtime::Duration duration) {
    CO_ASSERT_OK(co_await runtime::sleep_for(story_.runtime(), duration, {}));
  }

  Task<Result<void>> put(int number) {
    const std::string row = fmt::format("r{:05}", number);
    // Nothing that compresses well.
    std::string value;
    while (value.size() < 2000) value += fmt::format("{:x}", story_.runtime().random.next());
    const auto written = co_await story_.put("p", row, value, soon());
    if (!written) co_return written.error();
    rows_["p/" + row] = value;
    co_return {};
  }
  Task<Result<void>> erase(int number) {
    const std::string row = fmt::format("r{:05}", number);
    auto mutation = put_of(row, "", 1'000'000);
    mutation.cells.front().kind = causality::VersionKind::deletion;
    const auto written = co_await engine().write(kTable, kTablet, base::Bytes::copy_of("p"),
                                                 std::move(mutation), causality::Epoch{1}, soon());
    if (!written) co_return written.error();
    rows_.erase("p/" + row);
    co_return {};
  }

  // Returns why it was refused; nothing was written then.
  Task<Error> put_until_refused(int& next) {
    while (true) {
      const auto written = co_await put(next);
      if (!written) co_return written.error();
      ++next;
    }
  }
  // Somebody else takes what is free.
  void fill_all_but(std::uint64_t bytes) {
    world_.disk().set_capacity(world_.disk().used_bytes() + bytes);
  }

  Task<void> expect_rows() {
    const auto found = co_await story_.scan();
    CO_ASSERT_OK(found);
    EXPECT_EQ(*found, rows_);
  }
  // Until the disk has room again for writes.
  Task<void> wait_for_room() {
    for (int tries = 0; tries < 600 && engine().write_refusal(); ++tries) {
      co_await pause(std::chrono::milliseconds(100));
    }
    EXPECT_FALSE(engine().write_refusal().has_value());
  }

  // A merge may take what has just come free, for a moment.
  Task<void> put_when_there_is_room(int number) {
    Result<void> written = Error(Errc::overloaded);
    for (int tries = 0; tries < 10 && !written; ++tries) {
      co_await wait_for_room();
      written = co_await put(number);
    }
    CO_ASSERT_OK(written);
  }

 private:
  EngineStory story_;
  LogWorld& world_;
  Shown& rows_;
};

using Life = std::function<Task<void>(FullDiskStory&)>;

Task<void> live(Runtime& runtime, LogWorld& world, Shown& rows, Life life) {
  FullDiskStory full(runtime, world, rows);
  CO_ASSERT_OK(co_await full.story().open());
  full.engine().set_watermarks(kTablet, {});
  co_await life(full);
  CO_ASSERT_OK(co_await full.story().stop());
}

void run_life(LogWorld& world, Shown& rows, Life life) {
  world.run([&](Runtime& runtime) { return live(runtime, world, rows, std::move(life)); });
}

void expect_refusal(const Error& error) {
  EXPECT_EQ(error.code(), Errc::overloaded);
  EXPECT_THAT(error.to_string(), HasSubstr("disk is full: "));
  EXPECT_THAT(error.to_string(), HasSubstr(" bytes reserved for deletes"));
}

Task<void> fill_delete_and_fill_again(FullDiskStory& full) {
  full.fill_all_but(2048 * kKib);
  int next = 0;
  for (int round = 0; round < 3; ++round) {
    expect_refusal(co_await full.put_until_refused(next));
    CO_ASSERT_TRUE(full.engine().write_refusal().has_value());
    EXPECT_EQ(full.engine().write_refusal()->code(), Errc::no_space);
    EXPECT_EQ(full.engine().statistics().disks_full, 1U);
    EXPECT_GT(full.engine().statistics().writes_refused, 0U);
    EXPECT_GT(full.engine().statistics().disk_reserve_bytes, 0U) << "nothing needed it yet";
    co_await full.expect_rows();
    for (int row = 0; row < next; ++row) {
      if (row % 4 != 0) CO_ASSERT_OK(co_await full.erase(row));
    }
    co_await full.expect_rows();
    co_await full.expect_rows();
    co_await full.put_when_there_is_room(next++);
  }
  EXPECT_GT(next, 1000) << "the space of what was deleted has come back";
}

TEST(DiskReserve, WhatIsDeletedOnAFullDiskGivesItsSpaceBack) {
  LogWorld world;
  Shown rows;
  run_life(world, rows, fill_delete_and_fill_again);
  run_life(world, rows, [](FullDiskStory& full) { return full.expect_rows(); });
}

Task<void> change_tables_without_room(FullDiskStory& full) {
  CO_ASSERT_OK(co_await full.engine().create_table(kOther, {}));
  for (int row = 0; row < 200; ++row) CO_ASSERT_OK(co_await full.put(row));
  for (const std::uint64_t left : {0U, 4U, 8U}) {
    full.fill_all_but(left * kKib);
    const auto began = full.story().runtime().clock.now();
    CO_ASSERT_OK(co_await full.engine().drop_table(kOther));
    CO_ASSERT_OK(co_await full.engine().create_table(kOther, {}));
    EXPECT_LT(full.story().runtime().clock.now() - began, std::chrono::seconds(2));
  }
  co_await full.expect_rows();
  EXPECT_TRUE(full.engine().write_refusal().has_value());
  EXPECT_EQ(full.engine().fatal_error(), std::nullopt);
}

TEST(DiskReserve, TablesComeAndGoOnADiskWithoutAnyRoom) {
  LogWorld world;
  Shown rows;
  run_life(world, rows, change_tables_without_room);
  // What was given up is there for the start.
  run_life(world, rows, [](FullDiskStory& full) { return full.expect_rows(); });
}

// As long as a peer lacks something, deletes free nothing.
Task<void> use_the_reserve_up(FullDiskStory& full) {
  using causality::Watermark;
  full.engine().set_watermarks(kTablet, {Watermark{{}, causality::WallTime{1}}});
  full.fill_all_but(1000 * kKib);
  int next = 0;
  expect_refusal(co_await full.put_until_refused(next));
  Result<void> erased;
  int deletes = 0;
  for (; erased && deletes < 20'000; ++deletes) {
    erased = co_await full.erase(next + deletes);  // of nothing
  }
  CO_ASSERT_TRUE(!erased.has_value());
  // How many depends on what a merge takes for itself at that moment.
  EXPECT_GT(deletes, 20);
  EXPECT_EQ(erased.error().code(), Errc::overloaded);
  EXPECT_THAT(erased.error().to_string(), HasSubstr("disk is full: 0 bytes reserved for deletes"));
  co_await full.expect_rows();
  CO_ASSERT_OK(co_await full.engine().create_table(kOther, {}));
  CO_ASSERT_OK(co_await full.engine().drop_table(kTable));
  co_await full.wait_for_room();
}

TEST(DiskReserve, DeletesThatFreeNothingMayUseItUpAndDroppingStillWorks) {
  LogWorld world;
  Shown rows;
  run_life(world, rows, use_the_reserve_up);
}

// ---- Crashes ----

Task<void> fill_and_wait(Runtime& runtime, LogWorld& world, Shown& rows, std::uint64_t seed,
                         bool& is_full) {
  FullDiskStory full(runtime, world, rows);
  CO_ASSERT_OK(co_await full.story().open());
  full.engine().set_watermarks(kTablet, {});
  full.fill_all_but((700 + 50 * seed) * kKib);
  int next = 0;
  expect_refusal(co_await full.put_until_refused(next));
  for (int row = 0; row < static_cast<int>(seed % 8) * 10; ++row) {
    CO_ASSERT_OK(co_await full.erase(row));
  }
  is_full = true;
  co_await full.pause(std::chrono::hours(10));
}

TEST(DiskReserve, ANodeThatDiesOnAFullDiskStartsOnIt) {
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    LogWorld world(seed);
    Shown rows;
    bool is_full = false;
    world.start(
        [&](Runtime& runtime) { return fill_and_wait(runtime, world, rows, seed, is_full); });
    ASSERT_TRUE(world.world().run_until([&] { return is_full; }, std::chrono::hours(1)));
    if (seed % 2 == 0) {
      world.machine().power_loss();
    } else {
      world.machine().kill();
    }
    for (int start = 0; start < 3; ++start) {
      run_life(world, rows, [](FullDiskStory& full) -> Task<void> {
        co_await full.expect_rows();
        CO_ASSERT_OK(co_await full.erase(1));
      });
    }
    world.disk().set_capacity(kRoomForAll);
    run_life(world, rows, [](FullDiskStory& full) -> Task<void> {
      co_await full.put_when_there_is_room(9000);
      co_await full.expect_rows();
    });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

// ---- Flushes that fail ----

Task<void> write_while_flushes_fail(FullDiskStory& full, LogWorld& world) {
  CO_ASSERT_OK(co_await full.put(0));
  world.faults().write_error = 1;
  world.faults().only_suffix = ".sst";
  int next = 1;
  while (!full.engine().flush_error()) CO_ASSERT_OK(co_await full.put(next++));
  EXPECT_FALSE(full.engine().write_refusal().has_value());
  for (int more = 0; more < 10; ++more) CO_ASSERT_OK(co_await full.put(next++));
  const Error refused = co_await full.put_until_refused(next);
  EXPECT_EQ(refused.code(), Errc::io_error);
  CO_ASSERT_TRUE(full.engine().write_refusal().has_value());
  EXPECT_EQ(full.engine().write_refusal()->code(), Errc::io_error);
  EXPECT_GE(full.engine().statistics().memtable_bytes, 256 * kKib);
  world.faults() = {};
  co_await full.put_when_there_is_room(next);
  co_await full.expect_rows();
}

TEST(FailedFlush, RefusesNothingWhileMemoryHasRoom) {
  LogWorld world;
  Shown rows;
  run_life(world, rows, [&](FullDiskStory& full) { return write_while_flushes_fail(full, world); });
  run_life(world, rows, [](FullDiskStory& full) { return full.expect_rows(); });
}

}  // namespace
}  // namespace helenus::storage::testing
