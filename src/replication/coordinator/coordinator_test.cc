// Stories about the coordinators of one node, on one core and on several.
#include "replication/coordinator/coordinator.h"

#include <chrono>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "causality/limits.h"
#include "causality/resolve.h"
#include "replication/coordinator/coordinator_test_support.h"
#include "replication/read/range_cursor.h"
#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "runtime/when_all.h"

namespace helenus::replication {
namespace {

using namespace testing;  // NOLINT: the words of its stories

using base::Bytes;
using base::Errc;
using causality::ColumnId;
using causality::VersionKind;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CoordinatorTest : public NodeTest {};

INSTANTIATE_TEST_SUITE_P(Cores, CoordinatorTest,
                         ::testing::Values(Seat{1, 0}, Seat{2, 0}, Seat{2, 1}, Seat{3, 2}),
                         &name_of);

TEST_P(CoordinatorTest, WhatIsWrittenIsReadAgainAfterARestart) {
  live([](Coordinator& coordinator) -> Task<void> {
    for (const int token : {0x00, 0x55, 0xaa, 0xff}) {
      const auto written = co_await coordinator.write(
          put(partition(token), "r", std::to_string(token), 5), Until::forever());
      EXPECT_TRUE(written.has_value());
      EXPECT_TRUE(written && written->has_value());
    }
  });
  live([](Coordinator& coordinator) -> Task<void> {
    for (const int token : {0x00, 0x55, 0xaa, 0xff}) {
      EXPECT_EQ(co_await get(coordinator, partition(token), "r"), std::to_string(token));
    }
  });
}

TEST_P(CoordinatorTest, AnImageThatIsPutBackTwiceMintsUnderTwoNames) {
  const auto write = [&]() -> causality::ActorId {
    causality::ActorId actor;
    live_in_time(GetParam(), [&](Runtime& runtime, Coordinator& coordinator) -> Task<void> {
      const auto written =
          co_await coordinator.write(put(partition(0x00), "r", "v", 5), Until::forever());
      EXPECT_TRUE(written && written->has_value());
      if (written && written->has_value()) actor = (*written)->dot.actor;
      std::ignore = co_await runtime::sleep_for(runtime, std::chrono::seconds(1), {});
    });
    return actor;
  };
  const causality::ActorId first = write();
  EXPECT_EQ(write(), first);
  const auto image = world_.disk().snapshot();
  world_.disk().put_back(*image, true);
  const causality::ActorId second = write();
  EXPECT_NE(second, first);
  EXPECT_EQ(write(), second);
  world_.disk().put_back(*image, true);
  const causality::ActorId third = write();
  EXPECT_NE(third, first);
  EXPECT_NE(third, second);
}

Task<std::vector<std::string>> walk(Coordinator& coordinator, storage::KeyRange range,
                                    bool forward) {
  std::vector<std::string> seen;
  const auto cursor = coordinator.scan(kTable, std::move(range), {});
  auto moved = forward ? co_await cursor->seek_first() : co_await cursor->seek_last();
  while (moved && cursor->valid()) {
    const auto read = cursor->read();
    const Bytes row = Bytes::copy_of(cursor->row_key());
    if (read) seen.push_back(shown(*read, row));
    moved = forward ? co_await cursor->next() : co_await cursor->previous();
  }
  EXPECT_TRUE(moved.has_value());
  EXPECT_TRUE((co_await cursor->wait_durable(Until::forever())).has_value());
  co_return seen;
}

TEST_P(CoordinatorTest, AScanCrossesTabletsBothWays) {
  live([](Coordinator& coordinator) -> Task<void> {
    std::vector<PartitionWrite> writes;
    int number = 0;
    // Nothing in the second of four tablets.
    for (const int token : {0x00, 0x3f, 0x80, 0xbf, 0xc0, 0xff}) {
      writes.push_back(put(partition(token), "r", std::to_string(number++), 5));
    }
    const auto written = co_await coordinator.write(std::move(writes), Until::forever());
    EXPECT_TRUE(written && written->size() == 6);
    EXPECT_THAT(co_await walk(coordinator, everything(), true),
                ElementsAre("0", "1", "2", "3", "4", "5"));
    EXPECT_THAT(co_await walk(coordinator, everything(), false),
                ElementsAre("5", "4", "3", "2", "1", "0"));
    const storage::KeyRange middle{.from = partition(0x3f), .to = partition(0xc0)};
    EXPECT_THAT(co_await walk(coordinator, middle, true), ElementsAre("1", "2", "3"));
    EXPECT_THAT(co_await walk(coordinator, middle, false), ElementsAre("3", "2", "1"));
    // Bounds that are no partition's own bytes, as borders of tokens are.
    const storage::KeyRange borders{
        .from = Bytes::copy_of(std::string("\0\0\0\1\x3f\0\0\0\0\0\0\0", 12)),
        .to = Bytes::copy_of(std::string("\0\0\0\1\xc0\0\0\0\0\0\0\0", 12))};
    EXPECT_THAT(co_await walk(coordinator, borders, true), ElementsAre("1", "2", "3"));
    EXPECT_THAT(co_await walk(coordinator, borders, false), ElementsAre("3", "2", "1"));
    const storage::KeyRange hollow{.from = partition(0x40), .to = partition(0x50)};
    EXPECT_THAT(co_await walk(coordinator, hollow, true), ElementsAre());
    EXPECT_THAT(co_await walk(coordinator, hollow, false), ElementsAre());
  });
}

TEST_P(CoordinatorTest, AnExplicitTimestampWinsOrLeavesTheCellAlone) {
  live([](Coordinator& coordinator) -> Task<void> {
    const Bytes where = partition(0x10);
    const auto write = [&](std::string value, std::int64_t timestamp) {
      return coordinator.write(put(where, "r", value, timestamp, true), Until::forever());
    };
    EXPECT_TRUE((co_await write("new", 100)).has_value());
    const auto older = co_await write("old", 99);
    EXPECT_TRUE(older.has_value() && !older->has_value());
    EXPECT_EQ(co_await get(coordinator, where, "r"), "new");
    // At equal timestamps the larger bytes.
    EXPECT_TRUE((co_await write("newer", 100)).has_value());
    EXPECT_EQ(co_await get(coordinator, where, "r"), "newer");
    EXPECT_TRUE((co_await write("new", 100)).has_value());
    EXPECT_EQ(co_await get(coordinator, where, "r"), "newer");
  });
}

TEST_P(CoordinatorTest, AnExplicitDeleteOfARangeSparesWhatIsNewer) {
  live([](Coordinator& coordinator) -> Task<void> {
    const Bytes where = partition(0x10);
    std::vector<PartitionWrite> writes;
    writes.push_back(put(where, "a", "1", 10));
    writes.push_back(put(where, "b", "2", 30));
    EXPECT_TRUE((co_await coordinator.write(std::move(writes), Until::forever())).has_value());
    EXPECT_TRUE((co_await coordinator.write(remove_all(where, 20), Until::forever())).has_value());
    EXPECT_EQ(co_await get(coordinator, where, "a"), "");
    EXPECT_EQ(co_await get(coordinator, where, "b"), "2");
    EXPECT_TRUE((co_await coordinator.write(remove_all(where, 40), Until::forever())).has_value());
    EXPECT_EQ(co_await get(coordinator, where, "b"), "");
  });
}

// A later write of a request meets what the earlier ones left, not what was there before them all.
TEST_P(CoordinatorTest, WritesOfOneRequestAreJudgedOneUponTheOther) {
  live([](Coordinator& coordinator) -> Task<void> {
    const Bytes where = partition(0x10);
    const auto write = [&](std::vector<PartitionWrite> writes) -> Task<void> {
      EXPECT_TRUE((co_await coordinator.write(std::move(writes), Until::forever())).has_value());
    };
    // The delete is of what is newer by its timestamp: it came after it.
    co_await write({put(where, "a", "future", 2000)});
    co_await write({remove_plainly(where, 1000), put(where, "a", "after", 1500, true)});
    EXPECT_EQ(co_await get(coordinator, where, "a"), "after");
    co_await write({put(where, "a", "future", 2000)});
    co_await write({remove_plainly(where, 1000), put(where, "a", "equal", 1000, true)});
    EXPECT_EQ(co_await get(coordinator, where, "a"), "");
    // At equal timestamps the larger bytes.
    co_await write({put(where, "b", "b", 10), put(where, "b", "a", 10, true)});
    EXPECT_EQ(co_await get(coordinator, where, "b"), "b");
    co_await write({put(where, "b", "b", 10), put(where, "b", "c", 10, true)});
    EXPECT_EQ(co_await get(coordinator, where, "b"), "c");
    // A delete of a range spares what is newer, and finds what storage does not have yet.
    co_await write(
        {put(where, "c", "older", 3000), put(where, "d", "newer", 3002), remove_all(where, 3001)});
    EXPECT_EQ(co_await get(coordinator, where, "c"), "");
    EXPECT_EQ(co_await get(coordinator, where, "d"), "newer");
    // Other partitions, of other tablets too, are judged by what they have.
    const Bytes other = partition(0x90);
    co_await write({put(other, "a", "there", 2000)});
    co_await write({remove_plainly(where, 1000), put(where, "a", "mine", 1500, true),
                    put(other, "a", "late", 1500, true)});
    EXPECT_EQ(co_await get(coordinator, where, "a"), "mine");
    EXPECT_EQ(co_await get(coordinator, other, "a"), "there");
  });
}

// More cells than a delete with a timestamp of its own may look at: that is found out when it is
// judged, on its core.
Task<void> fill_with_cells(Coordinator& coordinator, const Bytes& where) {
  constexpr int kMutations = 101;
  constexpr int kCellsEach = 1000;
  for (int i = 0; i < kMutations; ++i) {
    PartitionWrite write = put(where, fmt::format("{:03}", i), "v", 5);
    for (std::uint32_t column = 2; column <= kCellsEach; ++column) {
      write.mutation.cells.push_back(cell(fmt::format("{:03}", i), "v"));
      write.mutation.cells.back().column = ColumnId{column};
    }
    const auto written = co_await coordinator.write(std::move(write), Until::forever());
    EXPECT_TRUE(written.has_value()) << written.error().to_string();
  }
}

TEST_P(CoordinatorTest, AnErrorThatSaysNothingWasWrittenIsTrueOnEveryCore) {
  live([](Coordinator& coordinator) -> Task<void> {
    co_await fill_with_cells(coordinator, partition(0x55));
    for (const int token : {0x00, 0x55, 0xaa, 0xff}) {
      const auto written = co_await coordinator.write(
          {put(partition(token, "other"), "r", "v", 5), remove_all(partition(0x55), 9)},
          Until::forever());
      EXPECT_TRUE(written.failed_with(Errc::invalid_argument) ||
                  written.failed_with(Errc::timeout));
      EXPECT_EQ(co_await get(coordinator, partition(token, "other"), "r"),
                written.failed_with(Errc::timeout) ? "v" : "");
    }
  });
}

// What no replica would take is found before the first partition is written.
TEST_P(CoordinatorTest, ABatchWithAnInvalidPartitionWritesNothing) {
  live([](Coordinator& coordinator) -> Task<void> {
    const PartitionWrite good = put(partition(0x00), "r", "good", 5);
    std::vector<PartitionWrite> bad;
    bad.push_back(put(partition(0x55), "r", "claims", 5));
    causality::Context context;
    context.epoch = causality::Epoch{2};
    context.dots.add(causality::Dot{causality::actor_of(1, 2), 1'000'000});
    bad.back().mutation.context = context;
    bad.push_back(put(partition(0x55), "r", "twice", 5));
    bad.back().mutation.cells.push_back(cell("r", "again"));
    bad.push_back(put(partition(0x55), std::string(70'000, 'r'), "long", 5));
    bad.push_back(put(partition(0x55), "r", "many", 5));
    bad.back().mutation.deleted_ranges.resize(causality::kRangesPerMutationMax + 1);
    bad.push_back(put(partition(0x55), "r", "late", 5));
    bad.back().mutation.timestamp_is_explicit = true;
    bad.back().mutation.timestamp = causality::kTimestampMin;
    for (const PartitionWrite& write : bad) {
      const auto written = co_await coordinator.write({good, write}, Until::forever());
      EXPECT_TRUE(written.failed_with(Errc::invalid_argument))
          << write.mutation.cells[0].value.text();
      EXPECT_EQ(co_await get(coordinator, partition(0x00), "r"), "");
    }
    const auto written = co_await coordinator.write({good, put(partition(0x55), "r", "second", 5)},
                                                    Until::forever());
    EXPECT_TRUE(written.has_value() && written->size() == 2);
    EXPECT_EQ(co_await get(coordinator, partition(0x55), "r"), "second");
  });
}

Task<void> fill_partition(Coordinator& coordinator, int token, int rows) {
  for (int row = 0; row < rows; ++row) {
    const auto written = co_await coordinator.write(
        put(partition(token), fmt::format("{:04}", row), std::to_string(row), 5), Until::forever());
    EXPECT_TRUE(written.has_value());
  }
}

// More rows than one trip to another core brings, and borders that lie within.
TEST_P(CoordinatorTest, ALongPartitionIsReadBothWaysFromAnyRow) {
  live([](Coordinator& coordinator) -> Task<void> {
    constexpr int kRows = 300;
    for (const int token : {0x10, 0x50, 0x90}) co_await fill_partition(coordinator, token, kRows);
    for (const int token : {0x10, 0x50, 0x90}) {
      const auto cursor =
          coordinator.scan(kTable, {.from = partition(token), .to = partition(token + 1)}, {});
      CO_ASSERT_OK(co_await cursor->seek(partition(token), Bytes::copy_of("0100")));
      for (int row = 100; row < kRows; ++row) {
        CO_ASSERT_TRUE(cursor->valid());
        EXPECT_EQ(base::as_text(cursor->row_key()), fmt::format("{:04}", row));
        CO_ASSERT_OK(co_await cursor->next());
      }
      EXPECT_FALSE(cursor->valid());
      CO_ASSERT_OK(co_await cursor->seek_before(partition(token), Bytes::copy_of("0200")));
      for (int row = 199; row >= 0; --row) {
        CO_ASSERT_TRUE(cursor->valid());
        EXPECT_EQ(base::as_text(cursor->row_key()), fmt::format("{:04}", row));
        CO_ASSERT_OK(co_await cursor->previous());
      }
      EXPECT_FALSE(cursor->valid());
      CO_ASSERT_OK(co_await cursor->seek(partition(token), Bytes::copy_of("0007")));
      CO_ASSERT_OK(co_await cursor->next());
      CO_ASSERT_OK(co_await cursor->previous());
      CO_ASSERT_OK(co_await cursor->previous());
      CO_ASSERT_OK(co_await cursor->next());
      CO_ASSERT_TRUE(cursor->valid());
      EXPECT_EQ(base::as_text(cursor->row_key()), "0007");
      EXPECT_TRUE((co_await cursor->wait_durable(Until::forever())).has_value());
    }
  });
}

// Every write replaces both rows, and has its value in another column than the one before: whoever
// sees a delete without what came with it, or the other way round, sees two values or none.
constexpr int kWriters = 6;

PartitionWrite replace_both(const Bytes& where, int round) {
  PartitionWrite write;
  write.table = kTable;
  write.partition = where;
  write.mutation.timestamp = causality::Timestamp{10 * round};
  write.mutation.deleted_ranges.push_back({Bytes::copy_of("a"), Bytes::copy_of("c")});
  for (const char* row : {"a", "b"}) {
    write.mutation.cells.push_back(cell(row, fmt::format("{:04}", round)));
    write.mutation.cells.back().column = ColumnId{static_cast<std::uint32_t>(round % 2)};
  }
  return write;
}

// One of several writers.
Task<void> replace_often(Coordinator& coordinator, int first, int& writing) {
  for (int round = first; round <= 300; round += kWriters) {
    CO_ASSERT_OK(
        co_await coordinator.write(replace_both(partition(0x10), round), Until::forever()));
    if (round % 50 == 0) CO_ASSERT_OK(co_await coordinator.flush(kTable, Until::forever()));
  }
  --writing;
}

std::string all_columns(const causality::PartitionStore& store, const Bytes& row) {
  std::string text;
  for (const ColumnId column : {ColumnId{0}, ColumnId{1}}) {
    const causality::CellStore cell = store.cell(row, column);
    for (const causality::Version* version :
         causality::visible(cell, causality::Policy::lww, causality::WallTime{1})) {
      text += version->value.text();
    }
  }
  return text;
}

Task<void> read_both_often(Coordinator& coordinator, const int& writing) {
  const std::vector<Bytes> rows = {Bytes::copy_of("a"), Bytes::copy_of("b")};
  int reads = 0;
  while (writing > 0) {
    // Another tablet's, to let the writer run.
    CO_ASSERT_OK(co_await coordinator.write(put(partition(0x90), "x", "v", 1), Until::forever()));
    const auto both = co_await coordinator.read_rows_at_one_moment(kTable, partition(0x10), rows,
                                                                   Until::forever());
    if (both.failed_with(Errc::overloaded)) continue;
    CO_ASSERT_OK(both);
    CO_ASSERT_TRUE(both->size() == 2U);
    const std::string first = all_columns((*both)[0].partition, rows[0]);
    EXPECT_EQ(first.size(), 4U) << first;
    EXPECT_EQ(all_columns((*both)[1].partition, rows[1]), first);
    ++reads;
  }
  EXPECT_GE(reads, 5);
}

// Nothing is in memory but what was not flushed: a reader waits for the disk between two rows.
TEST_P(CoordinatorTest, RowsReadTogetherAreOfOneMomentAmidWritesAndFlushes) {
  NodeStorageOptions options = small();
  options.engine.block_cache_bytes = 0;
  const auto tell = [](Coordinator& coordinator) -> Task<void> {
    CO_ASSERT_OK(co_await coordinator.write(replace_both(partition(0x10), 0), Until::forever()));
    CO_ASSERT_OK(co_await coordinator.flush(kTable, Until::forever()));
    int writing = kWriters;
    std::vector<Task<void>> tasks;
    for (int writer = 1; writer <= kWriters; ++writer) {
      tasks.push_back(replace_often(coordinator, writer, writing));
    }
    tasks.push_back(read_both_often(coordinator, writing));
    co_await runtime::when_all(std::move(tasks));
  };
  live(GetParam(), tell, options);
}

TEST_P(CoordinatorTest, AnotherNumberOfCoresFindsEverything) {
  const std::vector<int> tokens = {0x00, 0x30, 0x55, 0x90, 0xaa, 0xff};
  std::string last;
  int life = 0;
  for (const Seat share : {GetParam(), Seat{3, 1}, Seat{1, 0}, Seat{2, 1}}) {
    live(share, [&](Coordinator& coordinator) -> Task<void> {
      const std::string now = std::to_string(++life);
      for (const int token : tokens) {
        EXPECT_EQ(co_await get(coordinator, partition(token), "r"), last);
        const auto written =
            co_await coordinator.write(put(partition(token), "r", now, life), Until::forever());
        EXPECT_TRUE(written.has_value());
      }
      last = now;
      if (life == 2) EXPECT_TRUE((co_await coordinator.flush(kTable, Until::forever())));
    });
  }
}

TEST_P(CoordinatorTest, StatisticsAreOfThisCore) {
  live([](Coordinator& coordinator) -> Task<void> {
    for (const int token : {0x00, 0x55, 0xaa, 0xff}) {
      EXPECT_TRUE((co_await coordinator.write(put(partition(token), "r", "v", 5), Until::forever()))
                      .has_value());
    }
    const std::uint64_t writes_here = coordinator.statistics_here().writes;
    EXPECT_TRUE(GetParam().cores == 1 ? writes_here == 4 : writes_here < 4) << writes_here;
    EXPECT_FALSE(coordinator.fatal_error_here().has_value());
  });
}

// A request that nobody waits for any more ends on the other core, too.
TEST_P(CoordinatorTest, ARequestThatIsStoppedOrLateEndsEverywhere) {
  live([](Coordinator& coordinator) -> Task<void> {
    runtime::StopSource stop;
    stop.request_stop();
    const Until stopped{.stop = stop.token()};
    for (const int token : {0x00, 0x55, 0xaa, 0xff}) {
      const auto read = co_await coordinator.scan(kTable, everything(), {.until = stopped})
                            ->seek(partition(token), Bytes());
      EXPECT_TRUE(read.has_value() || read.failed_with(Errc::cancelled));
      const auto written = co_await coordinator.write(put(partition(token), "r", "v", 5), stopped);
      EXPECT_TRUE(written.failed_with(Errc::cancelled));
    }
  });
}

}  // namespace
}  // namespace helenus::replication
