#include "storage/mutations/timestamp_floors.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::storage {
namespace {

using causality::actor_of;
using causality::Clock;
using causality::Delta;
using causality::Dot;
using causality::kTimestampMin;
using causality::Timestamp;

constexpr TableId kTable{7};

causality::CellChange cell_of(const std::string& row) {
  causality::CellChange cell;
  cell.row = base::Bytes::copy_of(row);
  return cell;
}

Delta write_of(std::uint64_t counter, std::int64_t timestamp, const std::string& row) {
  Delta delta;
  delta.dot = {actor_of(1, 1), counter};
  delta.timestamp = Timestamp{timestamp};
  delta.cells.push_back(cell_of(row));
  return delta;
}

Delta delete_of_all(std::uint64_t counter, std::int64_t timestamp) {
  Delta delta = write_of(counter, timestamp, "");
  delta.cells.clear();
  delta.deleted_ranges.push_back({});
  return delta;
}

Timestamp floor_of(const TimestampFloors& floors, const std::string& partition,
                   const std::string& row) {
  return floors.of_row(kTable, base::as_bytes(partition), base::as_bytes(row));
}

Clock up_to(std::uint64_t counter) {
  Clock clock;
  clock.add(causality::DotRange{actor_of(1, 1), 1, counter});
  return clock;
}

TEST(TimestampFloors, AWriteCountsForItsRowAndADeleteForItsPartition) {
  TimestampFloors floors;
  EXPECT_EQ(floor_of(floors, "p", "a"), kTimestampMin);
  floors.add(kTable, base::as_bytes("p"), write_of(1, 100, "a"));
  EXPECT_EQ(floor_of(floors, "p", "a"), Timestamp{100});
  EXPECT_EQ(floor_of(floors, "p", "b"), kTimestampMin) << "another row";
  EXPECT_EQ(floor_of(floors, "q", "a"), kTimestampMin) << "another partition";
  EXPECT_EQ(floors.of_row(TableId{8}, base::as_bytes("p"), base::as_bytes("a")), kTimestampMin);
  const std::vector<causality::RowRange> everything(1);
  EXPECT_EQ(floors.of(kTable, base::as_bytes("p"), {}, everything), Timestamp{100})
      << "a delete of the partition is above all of it";
  floors.add(kTable, base::as_bytes("p"), delete_of_all(2, 150));
  EXPECT_EQ(floor_of(floors, "p", "a"), Timestamp{150});
  EXPECT_EQ(floor_of(floors, "p", "b"), Timestamp{150});
  EXPECT_EQ(floor_of(floors, "q", "b"), kTimestampMin);
}

TEST(TimestampFloors, ADeleteOfARowCountsForThatRow) {
  TimestampFloors floors;
  floors.add(kTable, base::as_bytes("p"), write_of(1, 100, "a"));
  Delta row_delete = delete_of_all(2, 150);
  row_delete.deleted_ranges = {causality::range_of_row(base::Bytes::copy_of("b"))};
  floors.add(kTable, base::as_bytes("p"), row_delete);
  EXPECT_EQ(floor_of(floors, "p", "a"), Timestamp{100});
  EXPECT_EQ(floor_of(floors, "p", "b"), Timestamp{150});
  const auto floor_of_range = [&](const causality::RowRange& row_range) {
    return floors.of(kTable, base::as_bytes("p"), {}, std::span(&row_range, 1));
  };
  const auto bytes = [](std::string_view text) { return base::Bytes::copy_of(text); };
  EXPECT_EQ(floor_of_range(causality::range_of_row(bytes("a"))), Timestamp{100});
  EXPECT_EQ(floor_of_range(causality::range_of_row(bytes("c"))), kTimestampMin);
  for (const causality::RowRange& range :
       {causality::RowRange{bytes("a"), bytes("b")}, causality::RowRange{bytes("a"), std::nullopt},
        causality::RowRange{std::nullopt, bytes("a")},
        causality::RowRange{bytes("a"), bytes(std::string_view("b\0", 2))},
        causality::RowRange{bytes("a"), bytes("aa")}}) {
    EXPECT_EQ(floor_of_range(range), Timestamp{150}) << "a range, though it be of one row";
  }
}

TEST(TimestampFloors, NothingIsLeftWhenAllIsStable) {
  TimestampFloors floors;
  for (std::uint64_t counter = 1; counter <= 10; ++counter) {
    floors.add(kTable, base::as_bytes("p"), write_of(counter, 100, "a"));
  }
  floors.add(up_to(12), Timestamp{500});
  EXPECT_EQ(floor_of(floors, "q", "z"), Timestamp{500}) << "of unknown rows: of all";
  floors.collect(up_to(11));
  EXPECT_EQ(floor_of(floors, "q", "z"), Timestamp{500});
  EXPECT_EQ(floors.row_count(), 0);
  floors.collect(up_to(12));
  EXPECT_EQ(floor_of(floors, "p", "a"), kTimestampMin);
}

TEST(TimestampFloors, AFullOneKeepsTheNewestRowsApartAndFoldsTheOldest) {
  TimestampFloors floors(4);
  for (std::uint64_t counter = 1; counter <= 9; ++counter) {
    const std::string row = std::to_string(counter);
    floors.add(kTable, base::as_bytes("p"), write_of(counter, 100 + std::int64_t(counter), row));
  }
  // 1 to 4 are folded; 5 to 8 and 9 are not.
  EXPECT_EQ(floors.folded(), Timestamp{104});
  EXPECT_EQ(floor_of(floors, "q", "z"), Timestamp{104});
  EXPECT_EQ(floor_of(floors, "p", "1"), Timestamp{104});
  EXPECT_EQ(floor_of(floors, "p", "7"), Timestamp{107});
  EXPECT_EQ(floor_of(floors, "p", "9"), Timestamp{109});
  EXPECT_LE(floors.row_count(), 8);
  floors.collect(up_to(4));
  EXPECT_EQ(floor_of(floors, "q", "z"), kTimestampMin);
  EXPECT_EQ(floor_of(floors, "p", "7"), Timestamp{107});
}

// Under steady load something is unstable at any time, and floors are forgotten all the same.
TEST(TimestampFloors, AFoldedFloorGoesThoughNewOnesAreFoldedAllTheTime) {
  TimestampFloors floors(4);
  constexpr std::uint64_t kLag = 100;
  for (std::uint64_t counter = 1; counter <= 2000; ++counter) {
    // One client is far ahead, once.
    const std::int64_t timestamp = counter == 50 ? 1'000'000 : std::int64_t(counter);
    floors.add(kTable, base::as_bytes("p"), write_of(counter, timestamp, std::to_string(counter)));
    if (counter > kLag) floors.collect(up_to(counter - kLag));
  }
  EXPECT_LT(floors.folded(), Timestamp{2000}) << "the one far ahead has long been stable";
  EXPECT_GE(floors.folded(), Timestamp{1901}) << "what is unstable and folded still counts";
}

TEST(TimestampFloors, RowsAreFoldedWhereMemoryIsShort) {
  TimestampFloors floors;
  for (std::uint64_t counter = 1; counter <= 1000; ++counter) {
    floors.add(kTable, base::as_bytes("p"), write_of(counter, 5, std::to_string(counter)));
  }
  EXPECT_GE(floors.memory_bytes(), 16 * 1000);
  floors.shrink();
  EXPECT_EQ(floors.memory_bytes(), 0);
  EXPECT_EQ(floor_of(floors, "q", "z"), Timestamp{5});
  floors.shrink();
  floors.collect(up_to(1000));
  EXPECT_EQ(floor_of(floors, "q", "z"), kTimestampMin);
  floors.add(kTable, base::as_bytes("p"), write_of(1001, 5, "a"));
  floors.clear();
  EXPECT_EQ(floor_of(floors, "p", "a"), kTimestampMin);
}

TEST(TimestampFloors, FoldedOnesStayFewHoweverManyAreFolded) {
  TimestampFloors floors;
  for (std::uint64_t fold = 1; fold <= 4096; ++fold) {
    floors.add(up_to(fold), Timestamp{static_cast<std::int64_t>(fold)});
    // At most two of each power of two.
    ASSERT_LE(floors.folded_count(), 2 * std::bit_width(fold)) << fold;
  }
  // Each goes with its own dots: the newest are apart from the oldest.
  floors.collect(up_to(4000));
  EXPECT_GE(floors.folded_count(), 1);
  EXPECT_EQ(floors.folded(), Timestamp{4096});
  floors.collect(up_to(4096));
  EXPECT_EQ(floors.folded_count(), 0);
}

// The law: never below the largest timestamp of what is unstable and touches the same cells, and
// nothing at all once everything is stable.
RC_GTEST_PROP(TimestampFloors, AreNeverTooLow, ()) {
  TimestampFloors floors(*rc::gen::inRange<std::size_t>(1, 8));
  std::vector<std::pair<std::string, Delta>> unstable;
  std::uint64_t minted = 0;
  const auto text = [](const char* letters) {
    return std::string(1, *rc::gen::elementOf(std::string(letters)));
  };
  for (int steps = *rc::gen::inRange(1, 60); steps > 0; --steps) {
    const int choice = *rc::gen::inRange(0, 10);
    if (choice < 6) {
      const std::string partition = text("pq");
      const std::int64_t timestamp = *rc::gen::inRange<std::int64_t>(1, 100);
      const Delta delta = choice == 0 ? delete_of_all(++minted, timestamp)
                                      : write_of(++minted, timestamp, text("abcde"));
      floors.add(kTable, base::as_bytes(partition), delta);
      unstable.emplace_back(partition, delta);
    } else if (choice == 6) {
      floors.shrink();
    } else if (choice < 9) {
      const std::uint64_t stable = *rc::gen::inRange<std::uint64_t>(0, minted + 1);
      floors.collect(stable == 0 ? Clock() : up_to(stable));
      std::erase_if(unstable, [&](const auto& each) { return each.second.dot.counter <= stable; });
    }
    const std::string partition = text("pq");
    const std::string row = text("abcde");
    Timestamp row_floor = kTimestampMin;
    Timestamp partition_floor = kTimestampMin;
    for (const auto& [where, delta] : unstable) {
      if (where != partition) continue;
      partition_floor = std::max(partition_floor, delta.timestamp);
      const bool touches = delta.cells.empty() || delta.cells.front().row.text() == row;
      if (touches) row_floor = std::max(row_floor, delta.timestamp);
    }
    const std::vector<causality::CellChange> cells = {cell_of(row)};
    const std::vector<causality::RowRange> deleted_ranges(1);
    const base::ByteView where = base::as_bytes(partition);
    RC_ASSERT(floors.of(kTable, where, cells, {}) >= row_floor);
    RC_ASSERT(floors.of_row(kTable, where, base::as_bytes(row)) ==
              floors.of(kTable, where, cells, {}));
    RC_ASSERT(floors.of(kTable, where, {}, deleted_ranges) >= partition_floor);
  }
  floors.collect(up_to(minted + 1));
  RC_ASSERT(floors.of(kTable, base::as_bytes("p"), {}, std::vector<causality::RowRange>(1)) ==
            kTimestampMin);
}

}  // namespace
}  // namespace helenus::storage
