// CommitLog in the simulator: what each sync mode promises, limits, segments that come and go, and
// errors.
#include "storage/log/commit_log.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "storage/log/commit_log_test_support.h"

namespace helenus::storage {
namespace {

using base::as_bytes;
using base::Errc;
using base::Result;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kLogFolder;
using testing::LogWorld;
using testing::open_logs;
using testing::OpenLogs;
using testing::recover;
using testing::Recovery;
using testing::small_log;
using testing::stop_logs;

constexpr TableId kUsers{1};
constexpr TableId kOrders{2};

// A body that opens one log, hands it to the story, and stops it.
using Story = std::function<Task<void>(Runtime&, CommitLog&)>;

Task<void> tell(Runtime& runtime, const Story& story, CommitLogOptions options) {
  auto open = co_await open_logs(runtime, options);
  CO_ASSERT_OK(open);
  co_await story(runtime, *open->logs[0]);
  auto stopped = co_await stop_logs(*open);
  const bool failed = open->logs[0]->fatal_error().has_value();
  EXPECT_EQ(stopped.has_value(), !failed);
}

void with_log(LogWorld& world, const Story& story, CommitLogOptions options = small_log()) {
  world.run([&](Runtime& runtime) { return tell(runtime, story, options); });
}

Task<void> append_text(CommitLog& log, TableId table, std::string text) {
  auto appended = co_await log.append(table, as_bytes(text), Until::forever());
  EXPECT_TRUE(appended.has_value()) << appended.error().to_string();
}

// Fills segments until `count` more have been begun.
Task<void> fill_segments(CommitLog& log, TableId table, std::uint32_t count) {
  const std::string record(4000, 'x');
  const std::uint32_t until = log.tail().segment.sequence + count;
  while (log.tail().segment.sequence < until) {
    auto room = co_await log.room(record.size(), Until::forever());
    CO_ASSERT_OK(room);
    auto appended = co_await log.append(table, as_bytes(record), Until::forever());
    CO_ASSERT_OK(appended);
  }
}

TEST(CommitLog, RecordsComeBackInOrderAfterACleanStop) {
  LogWorld world;
  with_log(world, [](Runtime&, CommitLog& log) -> Task<void> {
    co_await append_text(log, kUsers, "one");
    co_await append_text(log, kOrders, "two");
    co_await append_text(log, kUsers, "");
  });
  const Recovery found = recover(world);
  ASSERT_FALSE(found.error.has_value()) << found.error->to_string();
  EXPECT_EQ(found.report.last_stop, LastStop::clean);
  EXPECT_EQ(found.report.torn_bytes, 0U);
  EXPECT_THAT(found.texts(), ElementsAre("one", "two", ""));
  EXPECT_EQ(found.records[1].table, kOrders);
}

TEST(CommitLog, StagingFixesTheOrderWithoutASuspension) {
  LogWorld world;
  with_log(world, [](Runtime&, CommitLog& log) -> Task<void> {
    const LogPosition before = log.tail();
    const auto first = log.stage(kUsers, as_bytes("a"));
    const auto second = log.stage(kUsers, as_bytes("b"));
    CO_ASSERT_OK(first);
    CO_ASSERT_OK(second);
    EXPECT_LE(before, *first);
    EXPECT_LT(*first, *second);
    EXPECT_LT(*second, log.tail());
    EXPECT_LE(log.durable_position(), *first);
    auto durable = co_await log.durable(*second, Until::forever());
    CO_ASSERT_OK(durable);
    EXPECT_GT(log.durable_position(), *second);
    EXPECT_GT(log.synced_position(), *second);
    // What is durable already is known at once.
    auto again = co_await log.durable(*first, Until::forever());
    EXPECT_TRUE(again.has_value());
    EXPECT_EQ(log.statistics().records, 2U);
    EXPECT_EQ(log.statistics().writes, 1U);
  });
}

TEST(CommitLog, ManyWritersShareASync) {
  LogWorld world;
  with_log(world, [](Runtime& runtime, CommitLog& log) -> Task<void> {
    constexpr std::uint64_t kWriters = 64;
    constexpr std::uint64_t kEach = 10;
    struct Writer {
      static Task<void> run(CommitLog& log) {
        for (std::uint64_t i = 0; i < kEach; ++i) co_await append_text(log, kUsers, "shared");
      }
    };
    runtime::TaskGroup writers(runtime);
    for (std::uint64_t i = 0; i < kWriters; ++i) writers.spawn(Writer::run(log));
    co_await writers.join();
    EXPECT_EQ(log.statistics().records, kWriters * kEach);
    EXPECT_EQ(log.statistics().durable_ns.count(), kWriters * kEach);
    EXPECT_LE(log.statistics().syncs, 3 * kEach);
    EXPECT_LE(log.statistics().write_records.count(), log.statistics().writes);
  });
  EXPECT_EQ(recover(world).records.size(), 640U);
}

TEST(CommitLog, GroupModeSyncsOnceInAWindow) {
  LogWorld world;
  CommitLogOptions options = small_log(LogSyncMode::group);
  options.group_window = std::chrono::milliseconds(20);
  with_log(
      world,
      [](Runtime& runtime, CommitLog& log) -> Task<void> {
        const auto began = runtime.clock.now();
        for (int i = 0; i < 10; ++i) co_await append_text(log, kUsers, "grouped");
        const auto took = runtime.clock.now() - began;
        EXPECT_GE(took, std::chrono::milliseconds(9 * 20));
        EXPECT_EQ(log.statistics().syncs, 10U);
      },
      options);
}

TEST(CommitLog, GroupModeWritesEarlyWhenHalfOfTheMemoryWaits) {
  LogWorld world;
  CommitLogOptions options = small_log(LogSyncMode::group);
  options.group_window = std::chrono::minutes(1);
  with_log(
      world,
      [](Runtime& runtime, CommitLog& log) -> Task<void> {
        co_await append_text(log, kUsers, "opens the window");
        const auto began = runtime.clock.now();
        for (int i = 0; i < 4; ++i) {
          const auto staged = log.stage(kUsers, as_bytes(std::string(8000, 'x')));
          CO_ASSERT_OK(staged);
        }
        const auto last = log.stage(kUsers, as_bytes(std::string(4000, 'x')));
        CO_ASSERT_OK(last);
        auto durable = co_await log.durable(*last, Until::forever());
        CO_ASSERT_OK(durable);
        EXPECT_LT(runtime.clock.now() - began, std::chrono::seconds(1));
      },
      options);
}

TEST(CommitLog, PeriodicModeAcknowledgesBeforeTheSyncAndSyncsWithinThePeriod) {
  LogWorld world;
  with_log(
      world,
      [](Runtime& runtime, CommitLog& log) -> Task<void> {
        const auto position = log.stage(kUsers, as_bytes("soon"));
        CO_ASSERT_OK(position);
        auto durable = co_await log.durable(*position, Until::forever());
        CO_ASSERT_OK(durable);
        EXPECT_EQ(log.statistics().syncs, 0U);
        EXPECT_LE(log.synced_position(), *position);
        auto slept = co_await runtime::sleep_for(runtime, std::chrono::milliseconds(990), {});
        CO_ASSERT_OK(slept);
        EXPECT_GT(log.statistics().syncs, 0U);
        EXPECT_GT(log.synced_position(), *position);
      },
      small_log(LogSyncMode::periodic));
}

TEST(CommitLog, PeriodicModeStopsAcknowledgingWhenASyncTakesLongerThanThePeriod) {
  LogWorld world;
  with_log(
      world,
      [&world](Runtime& runtime, CommitLog& log) -> Task<void> {
        co_await append_text(log, kUsers, "unsynced");
        const auto acknowledged = runtime.clock.now();
        // A sync now takes many seconds, a write some milliseconds.
        world.faults().slowness = 20000;
        while (log.statistics().syncs == 0) {
          const auto before = runtime.clock.now();
          co_await append_text(log, kUsers, "more");
          // Nothing is written that would be acknowledged a period after what is not yet synced.
          if (log.statistics().syncs == 0) {
            EXPECT_LT(before - acknowledged, std::chrono::seconds(1));
          }
        }
        EXPECT_GT(runtime.clock.now() - acknowledged, std::chrono::seconds(2));
        world.faults().slowness = 1;
      },
      small_log(LogSyncMode::periodic));
}

TEST(CommitLog, SyncToForcesASyncInPeriodicMode) {
  LogWorld world;
  CommitLogOptions options = small_log(LogSyncMode::periodic);
  options.sync_period = std::chrono::minutes(10);
  with_log(
      world,
      [](Runtime& runtime, CommitLog& log) -> Task<void> {
        const auto began = runtime.clock.now();
        const auto position = log.stage(kUsers, as_bytes("needed now"));
        CO_ASSERT_OK(position);
        auto synced = co_await log.sync_to(*position, Until::forever());
        CO_ASSERT_OK(synced);
        EXPECT_GT(log.synced_position(), *position);
        EXPECT_LT(runtime.clock.now() - began, std::chrono::seconds(1));
        // Nothing is left to sync.
        auto again = co_await log.sync_to(log.tail(), Until::forever());
        EXPECT_TRUE(again.has_value());
      },
      options);
}

TEST(CommitLog, ARecordThatIsTooLargeIsRefused) {
  LogWorld world;
  with_log(world, [](Runtime&, CommitLog& log) -> Task<void> {
    const std::string large((8 << 10) + 1, 'x');
    EXPECT_TRUE(log.stage(kUsers, as_bytes(large)).failed_with(Errc::invalid_argument));
    auto appended = co_await log.append(kUsers, as_bytes(large), Until::forever());
    EXPECT_TRUE(appended.failed_with(Errc::invalid_argument));
    auto room = co_await log.room(large.size(), Until::forever());
    EXPECT_TRUE(room.failed_with(Errc::invalid_argument));
    co_await append_text(log, kUsers, large.substr(1));
    EXPECT_EQ(log.statistics().refused, 2U);
  });
}

TEST(CommitLog, StagingBeyondTheMemoryIsRefusedUntilTheDiskCatchesUp) {
  LogWorld world;
  with_log(world, [](Runtime&, CommitLog& log) -> Task<void> {
    const std::string record(4000, 'x');
    Result<LogPosition> staged = log.stage(kUsers, as_bytes(record));
    int accepted = 0;
    for (; staged; staged = log.stage(kUsers, as_bytes(record))) {
      ++accepted;
      EXPECT_LE(log.usage().staged_bytes, std::size_t{64} << 10);
    }
    EXPECT_TRUE(staged.failed_with(Errc::overloaded));
    EXPECT_GE(accepted, 8);
    auto room = co_await log.room(record.size(), Until::forever());
    CO_ASSERT_OK(room);
    co_await append_text(log, kUsers, record);
  });
}

TEST(CommitLog, WaitersAreLimitedAndTheRecordStaysStaged) {
  LogWorld world;
  CommitLogOptions options = small_log();
  options.waiters_max = 2;
  with_log(
      world,
      [](Runtime& runtime, CommitLog& log) -> Task<void> {
        struct Waiter {
          static Task<void> run(CommitLog& log, int& overloaded) {
            auto appended = co_await log.append(kUsers, as_bytes("w"), Until::forever());
            if (appended.failed_with(Errc::overloaded)) ++overloaded;
          }
        };
        int overloaded = 0;
        runtime::TaskGroup waiters(runtime);
        for (int i = 0; i < 5; ++i) waiters.spawn(Waiter::run(log, overloaded));
        co_await waiters.join();
        EXPECT_EQ(overloaded, 3);
      },
      options);
  EXPECT_EQ(recover(world).records.size(), 5U);
}

TEST(CommitLog, ADeadlineLeavesTheOutcomeOpen) {
  LogWorld world;
  with_log(world, [](Runtime& runtime, CommitLog& log) -> Task<void> {
    auto late = co_await log.append(kUsers, as_bytes("late"),
                                    Until::after(runtime, std::chrono::microseconds(1)));
    EXPECT_TRUE(late.failed_with(Errc::timeout));
    EXPECT_EQ(log.usage().waiters, 0U);
  });
  EXPECT_THAT(recover(world).texts(), ElementsAre("late"));
}

TEST(CommitLog, AStoppingLogRefusesNewRecordsAndKeepsTheStagedOnes) {
  LogWorld world;
  struct Run {
    static Task<void> run(Runtime& runtime) {
      auto open = co_await open_logs(runtime, small_log(LogSyncMode::group));
      CO_ASSERT_OK(open);
      CommitLog& log = *open->logs[0];
      EXPECT_TRUE(log.stage(kUsers, as_bytes("first")).has_value());
      EXPECT_TRUE(log.stage(kUsers, as_bytes("staged")).has_value());
      auto stopped = co_await log.stop();
      CO_ASSERT_OK(stopped);
      EXPECT_TRUE(log.stage(kUsers, as_bytes("late")).failed_with(Errc::closed));
      auto pressure = co_await log.wait_for_pressure(Until::forever());
      EXPECT_TRUE(pressure.failed_with(Errc::closed));
      auto closed = co_await open->folder->close();
      EXPECT_TRUE(closed.has_value());
    }
  };
  world.run(Run::run);
  EXPECT_THAT(recover(world).texts(), ElementsAre("first", "staged"));
}

TEST(CommitLog, SegmentsFollowOneAnother) {
  LogWorld world;
  with_log(world, [](Runtime&, CommitLog& log) -> Task<void> {
    co_await fill_segments(log, kUsers, 5);
    EXPECT_EQ(log.tail().segment.sequence, 6U);
    EXPECT_EQ(log.usage().segments, 6U);
    EXPECT_EQ(log.tables_holding_oldest(), std::vector{kUsers});
  });
  const Recovery found = recover(world);
  ASSERT_FALSE(found.error.has_value()) << found.error->to_string();
  EXPECT_EQ(found.report.segments, 6U);
  EXPECT_EQ(found.records.back().position.segment.sequence, 6U);
}

TEST(CommitLog, ASegmentGoesWhenNoTableNeedsItAndItsFileIsUsedAgain) {
  LogWorld world;
  with_log(world, [](Runtime& runtime, CommitLog& log) -> Task<void> {
    co_await fill_segments(log, kUsers, 3);
    co_await append_text(log, kOrders, "held");
    const std::uint64_t created = log.files().created;
    log.needed_from(kUsers, log.tail());
    auto slept = co_await runtime::sleep_for(runtime, std::chrono::milliseconds(50), {});
    CO_ASSERT_OK(slept);
    EXPECT_EQ(log.usage().segments, 1U);
    EXPECT_EQ(log.statistics().segments_dropped, 3U);
    co_await fill_segments(log, kUsers, 2);
    EXPECT_EQ(log.files().created, created);
    EXPECT_GE(log.files().recycled, 2U);
  });
  const Recovery found = recover(world);
  ASSERT_FALSE(found.error.has_value()) << found.error->to_string();
  EXPECT_EQ(found.records.front().position.segment.sequence, 4U);
  EXPECT_THAT(found.texts(), ::testing::Contains("held"));
}

TEST(CommitLog, AMiddleSegmentGoesWhileAnOlderOneIsNeeded) {
  LogWorld world;
  with_log(world, [](Runtime& runtime, CommitLog& log) -> Task<void> {
    co_await append_text(log, kOrders, "cold");
    co_await fill_segments(log, kUsers, 3);
    log.needed_from(kUsers, log.tail());
    auto slept = co_await runtime::sleep_for(runtime, std::chrono::milliseconds(50), {});
    CO_ASSERT_OK(slept);
    EXPECT_EQ(log.usage().segments, 2U);
    co_await append_text(log, kUsers, "new");
    log.forget_table(kOrders);
    slept = co_await runtime::sleep_for(runtime, std::chrono::milliseconds(50), {});
    CO_ASSERT_OK(slept);
    EXPECT_EQ(log.usage().segments, 1U);
  });
  const Recovery found = recover(world);
  ASSERT_FALSE(found.error.has_value()) << found.error->to_string();
  EXPECT_EQ(found.report.segments, 1U);
  EXPECT_EQ(found.texts().back(), "new");
}

TEST(CommitLog, AtTheDiskLimitRecordsAreRefusedUntilTheOldestTableIsFlushed) {
  LogWorld world;
  CommitLogOptions options = small_log();
  options.disk_bytes_max = 4 * options.segment_size;
  with_log(
      world,
      [](Runtime& runtime, CommitLog& log) -> Task<void> {
        co_await append_text(log, kOrders, "oldest");
        auto unpressed =
            co_await log.wait_for_pressure(Until::after(runtime, std::chrono::milliseconds(10)));
        EXPECT_TRUE(unpressed.failed_with(Errc::timeout));
        const std::string record(4000, 'x');
        Result<LogPosition> staged = log.tail();
        while (staged) {
          auto room = co_await log.room(record.size(), Until::forever());
          if (!room) staged = std::move(room).error();
          if (staged) staged = co_await log.append(kUsers, as_bytes(record), Until::forever());
        }
        EXPECT_TRUE(staged.failed_with(Errc::overloaded)) << staged.error().to_string();
        EXPECT_THAT(staged.error().to_string(), HasSubstr("limit"));
        EXPECT_LE(log.usage().disk_bytes, log.usage().disk_bytes_max);
        auto holding = co_await log.wait_for_pressure(Until::forever());
        CO_ASSERT_OK(holding);
        EXPECT_THAT(*holding, ElementsAre(kUsers, kOrders));
        // Again and again, so that every note finds its place in a full segment.
        for (int i = 0; i < 5; ++i) {
          log.needed_from(kOrders, log.tail());
          log.needed_from(kUsers, log.tail());
          auto room =
              co_await log.room(record.size(), Until::after(runtime, std::chrono::seconds(1)));
          while (room.failed_with(Errc::overloaded)) {
            auto slept = co_await runtime::sleep_for(runtime, std::chrono::milliseconds(10), {});
            CO_ASSERT_OK(slept);
            room = co_await log.room(record.size(), Until::after(runtime, std::chrono::seconds(1)));
          }
          CO_ASSERT_OK(room);
          co_await fill_segments(log, kUsers, 1);
        }
      },
      options);
  EXPECT_FALSE(recover(world).error.has_value());
}

TEST(CommitLog, AFullDeviceRefusesRecordsAndTakesThemAgainWhenSpaceReturns) {
  LogWorld world;
  with_log(world, [&world](Runtime& runtime, CommitLog& log) -> Task<void> {
    co_await append_text(log, kUsers, "before");
    co_await fill_segments(log, kUsers, 2);
    world.disk().set_capacity(world.disk().used_bytes());
    const std::string record(4000, 'x');
    Result<LogPosition> staged = log.tail();
    while (staged) {
      auto room = co_await log.room(record.size(), Until::forever());
      if (!room) staged = std::move(room).error();
      if (staged) staged = co_await log.append(kUsers, as_bytes(record), Until::forever());
    }
    EXPECT_TRUE(staged.failed_with(Errc::no_space)) << staged.error().to_string();
    EXPECT_FALSE(log.fatal_error().has_value());
    auto holding = co_await log.wait_for_pressure(Until::forever());
    CO_ASSERT_OK(holding);
    EXPECT_EQ(*holding, std::vector{kUsers});

    world.disk().set_capacity(std::uint64_t{1} << 30);
    auto slept = co_await runtime::sleep_for(runtime, std::chrono::seconds(2), {});
    CO_ASSERT_OK(slept);
    co_await append_text(log, kUsers, "after");
  });
  const Recovery found = recover(world);
  ASSERT_FALSE(found.error.has_value());
  EXPECT_EQ(found.texts().front(), "before");
  EXPECT_EQ(found.texts().back(), "after");
}

TEST(CommitLog, AFailedSyncIsFinalForEverybody) {
  LogWorld world;
  with_log(world, [&world](Runtime&, CommitLog& log) -> Task<void> {
    co_await append_text(log, kUsers, "good");
    world.faults().sync_error = 1;
    const auto position = log.stage(kUsers, as_bytes("bad"));
    CO_ASSERT_OK(position);
    auto durable = co_await log.durable(*position, Until::forever());
    EXPECT_TRUE(durable.failed_with(Errc::io_error));
    world.faults().sync_error = 0;
    EXPECT_TRUE(log.fatal_error().has_value());
    EXPECT_TRUE(log.stage(kUsers, as_bytes("later")).failed_with(Errc::io_error));
    auto waited = co_await log.durable(*position, Until::forever());
    EXPECT_TRUE(waited.failed_with(Errc::io_error));
    auto room = co_await log.room(1, Until::forever());
    EXPECT_TRUE(room.failed_with(Errc::io_error));
    auto synced = co_await log.sync_to(*position, Until::forever());
    EXPECT_TRUE(synced.failed_with(Errc::io_error));
    auto pressure = co_await log.wait_for_pressure(Until::forever());
    EXPECT_TRUE(pressure.failed_with(Errc::io_error));
  });
  EXPECT_EQ(recover(world).texts().front(), "good");
}

TEST(CommitLog, AFailedWriteIsFinalInPeriodicModeToo) {
  LogWorld world;
  with_log(
      world,
      [&world](Runtime&, CommitLog& log) -> Task<void> {
        co_await append_text(log, kUsers, "good");
        world.faults().write_error = 1;
        auto appended = co_await log.append(kUsers, as_bytes("bad"), Until::forever());
        EXPECT_TRUE(appended.failed_with(Errc::io_error));
        world.faults().write_error = 0;
        EXPECT_TRUE(log.stage(kUsers, as_bytes("later")).failed_with(Errc::io_error));
      },
      small_log(LogSyncMode::periodic));
  EXPECT_EQ(recover(world).texts().front(), "good");
}

TEST(CommitLog, AFailedSyncOfThePeriodicLoopStopsTheLog) {
  LogWorld world;
  with_log(
      world,
      [&world](Runtime& runtime, CommitLog& log) -> Task<void> {
        // By then the next segment is ready.
        auto slept = co_await runtime::sleep_for(runtime, std::chrono::milliseconds(100), {});
        CO_ASSERT_OK(slept);
        world.faults().sync_error = 1;
        co_await append_text(log, kUsers, "acknowledged");
        slept = co_await runtime::sleep_for(runtime, std::chrono::seconds(1), {});
        CO_ASSERT_OK(slept);
        EXPECT_TRUE(log.fatal_error().has_value());
        world.faults().sync_error = 0;
      },
      small_log(LogSyncMode::periodic));
  // The machine did not crash, and yet what was acknowledged may be missing.
  const Recovery found = recover(world);
  EXPECT_EQ(found.report.last_stop, LastStop::killed);
  EXPECT_TRUE(found.report.tail_may_be_lost);
  with_log(world, [](Runtime&, CommitLog&) -> Task<void> { co_return; });
  EXPECT_TRUE(recover(world).report.tail_may_be_lost) << "nobody has settled it";
}

// Nothing that is to be done after the failure can be relied on: the disk refuses all of it.
TEST(CommitLog, AFailedSyncThatNobodyCouldTakeANoteOfIsADoubtAllTheSame) {
  LogWorld world;
  bool failed = false;
  const Story story = [&](Runtime& runtime, CommitLog& log) -> Task<void> {
    co_await append_text(log, kUsers, "acknowledged");
    world.faults().sync_error = 1;
    world.faults().write_error = 1;
    while (!log.fatal_error()) {
      CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::milliseconds(10), {}));
    }
    failed = true;
    CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::hours(2), {}));
  };
  world.start(
      [&](Runtime& runtime) { return tell(runtime, story, small_log(LogSyncMode::periodic)); });
  ASSERT_TRUE(world.world().run_until([&] { return failed; }, std::chrono::hours(1)));
  world.machine().kill();
  world.faults() = {};
  const Recovery found = recover(world);
  EXPECT_EQ(found.report.last_stop, LastStop::killed);
  EXPECT_TRUE(found.report.tail_may_be_lost);
}

TEST(CommitLog, AFailedSyncOfTheNextSegmentsFileStopsTheLog) {
  LogWorld world;
  with_log(world, [&world](Runtime& runtime, CommitLog& log) -> Task<void> {
    world.faults().sync_error = 1;
    auto slept = co_await runtime::sleep_for(runtime, std::chrono::milliseconds(100), {});
    CO_ASSERT_OK(slept);
    EXPECT_TRUE(log.fatal_error().has_value());
    EXPECT_TRUE(log.stage(kUsers, as_bytes("later")).failed_with(Errc::io_error));
    world.faults().sync_error = 0;
  });
}

TEST(CommitLog, ANextSegmentThatCannotBeWrittenIsTriedAgain) {
  LogWorld world;
  with_log(world, [&world](Runtime& runtime, CommitLog& log) -> Task<void> {
    world.faults().write_error = 1;
    auto slept = co_await runtime::sleep_for(runtime, std::chrono::milliseconds(100), {});
    CO_ASSERT_OK(slept);
    world.faults().write_error = 0;
    EXPECT_FALSE(log.fatal_error().has_value());
    EXPECT_EQ(log.usage().spare_files, 0U);
    slept = co_await runtime::sleep_for(runtime, std::chrono::seconds(2), {});
    CO_ASSERT_OK(slept);
    EXPECT_EQ(log.usage().spare_files, 1U);
    co_await fill_segments(log, kUsers, 2);
  });
}

TEST(CommitLog, AnIdleLogSaysThatItsLastRecordWasSynced) {
  LogWorld world;
  struct Run {
    static Task<void> run(Runtime& runtime) {
      auto open = co_await open_logs(runtime, small_log());
      CO_ASSERT_OK(open);
      co_await append_text(*open->logs[0], kUsers, "precious");
      auto slept = co_await runtime::sleep_for(runtime, std::chrono::hours(2), {});
      CO_ASSERT_OK(slept);
    }
  };
  world.start(Run::run);
  world.world().run_for(std::chrono::seconds(10));
  world.machine().power_loss();

  const std::string path = world.segment_paths().front();
  const std::string whole = world.read(path);
  const std::size_t at = whole.find("precious");
  ASSERT_NE(at, std::string::npos);
  world.flip_bit(path, at * 8);
  const Recovery found = recover(world);
  ASSERT_TRUE(found.error.has_value());
  EXPECT_EQ(found.error->code(), Errc::corrupt);
  EXPECT_THAT(found.error->to_string(), HasSubstr(path));
}

TEST(CommitLog, OptionsThatDoNotFitTogetherAreNamed) {
  const auto refused = [](auto&& change) {
    CommitLogOptions options;
    change(options);
    const auto valid = options.validate();
    return valid ? "" : std::string(valid.error().context());
  };
  EXPECT_EQ(refused([](CommitLogOptions&) {}), "");
  EXPECT_THAT(refused([](auto& it) { it.segment_size = 1000; }), HasSubstr("segment_size"));
  EXPECT_THAT(refused([](auto& it) { it.segment_size = 2 * kSegmentSizeMax; }),
              HasSubstr("segment_size"));
  EXPECT_THAT(refused([](auto& it) { it.record_size_max = it.segment_size; }),
              HasSubstr("record_size_max"));
  EXPECT_THAT(refused([](auto& it) { it.staged_bytes_max = 1 << 20; }),
              HasSubstr("staged_bytes_max"));
  EXPECT_THAT(refused([](auto& it) { it.disk_bytes_max = it.segment_size; }),
              HasSubstr("disk_bytes_max"));
  EXPECT_THAT(refused([](auto& it) { it.waiters_max = 0; }), HasSubstr("waiters_max"));
  EXPECT_THAT(refused([](auto& it) { it.group_window = {}; }), HasSubstr("duration"));
}

}  // namespace
}  // namespace helenus::storage
