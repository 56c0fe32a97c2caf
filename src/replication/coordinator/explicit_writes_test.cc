// Stories about writes with explicit timestamps amid others.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "causality/limits.h"
#include "replication/coordinator/coordinator.h"
#include "replication/coordinator/coordinator_test_support.h"
#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "runtime/when_all.h"

namespace helenus::replication {
namespace {

using namespace testing;  // NOLINT: the words of its stories

using base::Bytes;
using base::Errc;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using ::testing::HasSubstr;

class ExplicitWrites : public NodeTest {};
class ExplicitWritesOfOneCore : public NodeTest {};

INSTANTIATE_TEST_SUITE_P(Cores, ExplicitWrites,
                         ::testing::Values(Seat{1, 0}, Seat{2, 0}, Seat{2, 1}), &name_of);

Until soon(Runtime& runtime) {
  return Until::after(runtime, std::chrono::seconds(30));
}

// Nothing stays in memory but what was not flushed: whoever reads waits for the disk.
NodeStorageOptions without_cache() {
  NodeStorageOptions options = small();
  options.engine.block_cache_bytes = 0;
  return options;
}

Task<void> write_until(Coordinator& coordinator, Bytes where, std::string row, const bool& done) {
  while (!done) {
    CO_ASSERT_OK(co_await coordinator.write(put(where, row, "plain", 10), Until::forever()));
  }
}

Task<void> write_explicitly(Runtime& runtime, Coordinator& coordinator, Bytes where, bool& done) {
  constexpr std::int64_t kFuture = 1'000'000'000;
  for (int i = 0; i < 5; ++i) {
    const auto written = co_await coordinator.write(
        put(where, "hot", std::to_string(i), kFuture + i, true), soon(runtime));
    EXPECT_TRUE(written.has_value()) << written.error().to_string();
    EXPECT_TRUE(written && written->has_value());
    const auto deleted = co_await coordinator.write(remove_all(where, 5), soon(runtime));
    EXPECT_TRUE(deleted.has_value()) << deleted.error().to_string();
  }
  done = true;
}

TEST_P(ExplicitWrites, EndAmidConstantWritesOfTheirRow) {
  const auto tell = [](Runtime& runtime, Coordinator& coordinator) -> Task<void> {
    const Bytes where = partition(0x10);
    bool done = false;
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 4; ++i) {
      tasks.push_back(write_until(coordinator, where, "hot", done));
      tasks.push_back(write_until(coordinator, partition(0x10, "beside"), "hot", done));
    }
    tasks.push_back(write_explicitly(runtime, coordinator, where, done));
    co_await runtime::when_all(std::move(tasks));
  };
  live_in_time(GetParam(), tell, without_cache());
}

Task<void> write_pairs(Runtime& runtime, Coordinator& coordinator, std::vector<Bytes> places,
                       std::int64_t timestamp) {
  for (int i = 0; i < 20; ++i) {
    std::vector<PartitionWrite> writes;
    for (const Bytes& where : places) {
      writes.push_back(put(where, "r", std::to_string(i), timestamp + i, true));
    }
    const auto written = co_await coordinator.write(std::move(writes), soon(runtime));
    EXPECT_TRUE(written.has_value()) << written.error().to_string();
  }
}

TEST_P(ExplicitWrites, OfSeveralPartitionsEndWhateverTheirOrder) {
  const auto tell = [](Runtime& runtime, Coordinator& coordinator) -> Task<void> {
    for (const Bytes& second : {partition(0x10, "other"), partition(0x90)}) {
      const Bytes first = partition(0x10);
      co_await runtime::when_all(write_pairs(runtime, coordinator, {first, second}, 100),
                                 write_pairs(runtime, coordinator, {second, first}, 110));
      EXPECT_EQ(co_await get(coordinator, first, "r"), "19");
      EXPECT_EQ(co_await get(coordinator, second, "r"), "19");
    }
  };
  live_in_time(GetParam(), tell, without_cache());
}

// While the write is being judged: at once where it is on its way to another core.
Task<void> stop_soon(Runtime& runtime, runtime::StopSource& stop) {
  if (runtime.cores.here() == runtime::CoreId{0}) {
    CO_ASSERT_OK(co_await runtime::yield_now(runtime));
  }
  stop.request_stop();
}

Task<void> put_plainly(Coordinator& coordinator, Bytes where, std::string value) {
  CO_ASSERT_OK(co_await coordinator.write(put(where, "r", value, 10), Until::forever()));
}

// It waits for what it saw to be durable, and has the partition meanwhile. On another core it may
// be done before the stop gets there.
Task<void> put_and_be_stopped(Runtime& runtime, Coordinator& coordinator, Bytes where,
                              runtime::StopToken stop) {
  const auto written =
      co_await coordinator.write(put(where, "r", "stopped", 2000, true), {.stop = stop});
  const bool is_elsewhere = runtime.cores.here() != runtime::CoreId{0};
  EXPECT_TRUE(written.failed_with(Errc::cancelled) || (is_elsewhere && written.has_value()));
}

TEST_P(ExplicitWrites, LetOthersWriteWhenTheyAreStopped) {
  const auto tell = [](Runtime& runtime, Coordinator& coordinator) -> Task<void> {
    const Bytes where = partition(0x10);
    for (int i = 0; i < 3; ++i) {
      runtime::StopSource stop;
      co_await runtime::when_all(put_plainly(coordinator, where, "first"),
                                 put_and_be_stopped(runtime, coordinator, where, stop.token()),
                                 stop_soon(runtime, stop));
      CO_ASSERT_OK(co_await coordinator.write(put(where, "r", "plain", 10), soon(runtime)));
      CO_ASSERT_OK(
          co_await coordinator.write(put(where, "r", "explicit", 3000 + i, true), soon(runtime)));
      EXPECT_EQ(co_await get(coordinator, where, "r"), "explicit");
    }
  };
  live_in_time(GetParam(), tell, without_cache());
}

// ---- What is newer stays ----

constexpr int kNewRows = 60;

std::string row_number(int number) {
  return fmt::format("{:05}", number);
}

Task<void> put_new_rows(Coordinator& coordinator, Bytes where, int first, int& writing) {
  for (int i = first; i < kNewRows; i += 3) {
    CO_ASSERT_OK(
        co_await coordinator.write(put(where, row_number(i), "new", 1000), Until::forever()));
    if (i % 20 == 0) CO_ASSERT_OK(co_await coordinator.flush(kTable, Until::forever()));
  }
  --writing;
}

Task<void> delete_old_rows(Coordinator& coordinator, Bytes where, const int& writing) {
  std::int64_t round = 0;
  while (writing > 0) {
    const std::int64_t timestamp = 1 + ++round % 500;
    PartitionWrite write = remove_all(where, timestamp);
    write.columns.of_rows = {kColumn};
    CO_ASSERT_OK(co_await coordinator.write(std::move(write), Until::forever()));
    CO_ASSERT_OK(co_await coordinator.write(
        put(where, row_number(static_cast<int>(round) % kNewRows), "old", timestamp, true),
        Until::forever()));
  }
}

// What is written while an older delete is judged is spared as what was there before.
TEST_P(ExplicitWrites, LoseNothingNewerThatComesWhileTheyAreJudged) {
  const auto tell = [](Coordinator& coordinator) -> Task<void> {
    const Bytes where = partition(0x10);
    int writing = 3;
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 3; ++i) tasks.push_back(put_new_rows(coordinator, where, i, writing));
    tasks.push_back(delete_old_rows(coordinator, where, writing));
    co_await runtime::when_all(std::move(tasks));
    CO_ASSERT_OK(co_await coordinator.compact(kTable, Until::forever()));
    for (int i = 0; i < kNewRows; ++i) {
      EXPECT_EQ(co_await get(coordinator, where, row_number(i)), "new") << i;
    }
  };
  live(GetParam(), tell, without_cache());
}

Task<void> put_older(Coordinator& coordinator, Bytes where, bool& answered) {
  const auto older = co_await coordinator.write(put(where, "r", "old", 5, true), Until::forever());
  EXPECT_TRUE(older.has_value() && !older->has_value());
  answered = true;
}

// An answer that says that something newer was there holds after a crash.
TEST_F(ExplicitWritesOfOneCore, AreAnsweredWhenWhatBeatsThemIsDurable) {
  bool answered = false;
  const auto tell = [&](Runtime&, Coordinator& coordinator) -> Task<void> {
    co_await runtime::when_all(put_plainly(coordinator, partition(0x10), "new"),
                               put_older(coordinator, partition(0x10), answered));
  };
  world_.start([&](Runtime& runtime) { return life(runtime, small(), Seat{1, 0}, tell); });
  EXPECT_TRUE(world_.world().run_until([&] { return answered; }, std::chrono::minutes(1)));
  world_.machine().kill();
  live(Seat{1, 0}, [](Coordinator& coordinator) -> Task<void> {
    EXPECT_EQ(co_await get(coordinator, partition(0x10), "r"), "new");
  });
}

// ---- Much to judge ----

constexpr std::uint32_t kManyColumns = 200;

// All in memory: reading waits for nothing.
NodeStorageOptions large() {
  NodeStorageOptions options = small();
  options.engine.memtable_keys_flush = 1'000'000;
  options.engine.log.segment_size = 4 << 20;
  options.engine.log.record_size_max = 1 << 20;
  options.engine.log.staged_bytes_max = 4 << 20;
  options.engine.log.disk_bytes_max = 64 * options.engine.log.segment_size;
  return options;
}

RowColumns many_columns() {
  RowColumns columns;
  for (std::uint32_t i = 0; i < kManyColumns; ++i) {
    columns.of_rows.push_back(causality::ColumnId{i});
  }
  return columns;
}

Task<void> put_rows(Coordinator& coordinator, Bytes where, int count) {
  constexpr int kRowsEach = 50;
  for (int i = 0; i < count; i += kRowsEach) {
    PartitionWrite write = put(where, row_number(i), "new", 1000);
    for (int j = i + 1; j < std::min(count, i + kRowsEach); ++j) {
      write.mutation.cells.push_back(cell(row_number(j), "new"));
    }
    CO_ASSERT_OK(co_await coordinator.write(std::move(write), Until::forever()));
  }
}

// Among newer rows one that is older, the last.
Task<void> put_one_older(Coordinator& coordinator, Bytes where) {
  CO_ASSERT_OK(co_await coordinator.write(put(where, "older", "v", 10), Until::forever()));
}

Task<void> delete_until(Coordinator& coordinator, Bytes where, Until until) {
  PartitionWrite write = remove_all(where, 20);
  write.columns = many_columns();
  const auto written = co_await coordinator.write(std::move(write), until);
  EXPECT_TRUE(written.failed_with(Errc::cancelled) || written.failed_with(Errc::timeout));
}

TEST_P(ExplicitWrites, AreJudgedInTurnsWithOthersAndEndWhenTheyMust) {
  const auto tell = [](Runtime& runtime, Coordinator& coordinator) -> Task<void> {
    const Bytes where = partition(0x10);
    co_await put_one_older(coordinator, where);
    co_await put_rows(coordinator, where, 200);
    runtime::StopSource stop;
    co_await runtime::when_all(delete_until(coordinator, where, {.stop = stop.token()}),
                               stop_soon(runtime, stop));
    EXPECT_EQ(co_await get(coordinator, where, "older"), "v");
    co_await delete_until(coordinator, where, {.deadline = runtime.clock.now()});
    EXPECT_EQ(co_await get(coordinator, where, "older"), "v");
    CO_ASSERT_OK(co_await coordinator.write(remove_all(where, 20), soon(runtime)));
    EXPECT_EQ(co_await get(coordinator, where, "older"), "");
    EXPECT_EQ(co_await get(coordinator, where, row_number(7)), "new");
  };
  live_in_time(GetParam(), tell, large());
}

// Beneath an older delete that is remembered every column of a row is something that is there.
Task<void> put_rows_on_a_delete(Coordinator& coordinator, Bytes where, int count) {
  PartitionWrite deleted = remove_plainly(where, 10);
  deleted.mutation.remembered_until = causality::WallTime{1'000'000'000'000};
  CO_ASSERT_OK(co_await coordinator.write(std::move(deleted), Until::forever()));
  co_await put_rows(coordinator, where, count);
}

PartitionWrite remove_range(const Bytes& where, int from, int to) {
  PartitionWrite write = remove_all(where, 20);
  write.columns = many_columns();
  write.mutation.deleted_ranges = {
      {.from = Bytes::copy_of(row_number(from)), .to = Bytes::copy_of(row_number(to))}};
  return write;
}

Task<void> write_and_be_stopped(Coordinator& coordinator, PartitionWrite write,
                                runtime::StopToken stop) {
  const auto written = co_await coordinator.write(std::move(write), {.stop = std::move(stop)});
  EXPECT_TRUE(written.failed_with(Errc::cancelled));
}

TEST_P(ExplicitWrites, OfManyRangesWithNothingInThemAreJudgedInTurns) {
  const auto tell = [](Runtime& runtime, Coordinator& coordinator) -> Task<void> {
    const Bytes where = partition(0x10);
    co_await put_one_older(coordinator, where);
    PartitionWrite write = remove_all(where, 20);
    write.mutation.deleted_ranges = {
        {.from = Bytes::copy_of("older"), .to = Bytes::copy_of("oldest")}};
    for (int i = 0; i < 1000; ++i) {
      write.mutation.deleted_ranges.push_back(
          remove_range(where, i, i + 1).mutation.deleted_ranges.front());
    }
    runtime::StopSource stop;
    co_await runtime::when_all(write_and_be_stopped(coordinator, write, stop.token()),
                               stop_soon(runtime, stop));
    EXPECT_EQ(co_await get(coordinator, where, "older"), "v");
    EXPECT_TRUE((co_await coordinator.write(write, Until::forever())).has_value());
    EXPECT_EQ(co_await get(coordinator, where, "older"), "");
  };
  live_in_time(GetParam(), tell, large());
}

TEST_P(ExplicitWrites, OfRangesThatMeetTooMuchTogetherAreRefused) {
  constexpr int kRows = 300;
  const auto tell = [](Coordinator& coordinator) -> Task<void> {
    const Bytes where = partition(0x10);
    co_await put_rows_on_a_delete(coordinator, where, 2 * kRows);
    PartitionWrite both = remove_range(where, 0, kRows);
    both.mutation.deleted_ranges.push_back(
        remove_range(where, kRows, 2 * kRows).mutation.deleted_ranges.front());
    const auto refused = co_await coordinator.write(both, Until::forever());
    CO_ASSERT_TRUE(refused.failed_with(Errc::invalid_argument));
    EXPECT_THAT(refused.error().to_string(), HasSubstr("more than 100000 cells and deletes"));
    EXPECT_TRUE(
        (co_await coordinator.write(remove_range(where, 0, kRows), Until::forever())).has_value());
    EXPECT_EQ(co_await get(coordinator, where, row_number(7)), "new");
  };
  live(GetParam(), tell, large());
}

TEST_P(ExplicitWrites, OfRowsThatComeToMoreCellsThanAMutationHasAreRefused) {
  constexpr int kRows = causality::kCellsPerMutationMax / (kManyColumns - 1) + 1;
  const auto tell = [](Coordinator& coordinator) -> Task<void> {
    const Bytes where = partition(0x10);
    co_await put_rows_on_a_delete(coordinator, where, kRows);
    PartitionWrite write = remove_all(where, 20);
    write.columns = many_columns();
    write.mutation.deleted_ranges.clear();
    for (int i = 0; i < kRows; ++i) {
      write.mutation.deleted_ranges.push_back(
          causality::range_of_row(Bytes::copy_of(row_number(i))));
    }
    const auto refused = co_await coordinator.write(std::move(write), Until::forever());
    CO_ASSERT_TRUE(refused.failed_with(Errc::invalid_argument));
    EXPECT_THAT(refused.error().to_string(), HasSubstr("among newer cells comes to more than"));
    EXPECT_EQ(co_await get(coordinator, where, row_number(7)), "new");
  };
  live(GetParam(), tell, large());
}

// ---- Room ----

// Of 8 KiB that a record has.
TEST_P(ExplicitWrites, CountTheKeyOfARowOnceForItsCells) {
  live([](Coordinator& coordinator) -> Task<void> {
    const std::string row(3000, 'r');
    for (const bool is_explicit : {false, true}) {
      PartitionWrite write = put(partition(0x10), row, "v", is_explicit ? 6 : 5, is_explicit);
      for (std::uint32_t column = 2; column < 6; ++column) {
        write.mutation.cells.push_back(cell(row, "v"));
        write.mutation.cells.back().column = causality::ColumnId{column};
      }
      const auto written = co_await coordinator.write(std::move(write), Until::forever());
      EXPECT_TRUE(written.has_value()) << written.error().to_string();
    }
    EXPECT_EQ(co_await get(coordinator, partition(0x10), row), "v");
  });
}

}  // namespace
}  // namespace helenus::replication
