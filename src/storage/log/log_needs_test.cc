// LogNeeds beside the definition: a segment is needed when a record in it is.
#include "storage/log/log_needs.h"

#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::storage {
namespace {

constexpr TableId kUsers{1};
constexpr TableId kOrders{2};

LogPosition at(std::uint32_t sequence, std::uint64_t offset) {
  return {{1, sequence}, offset};
}

TEST(LogNeeds, ATableThatNeverFlushedNeedsEverySegmentItIsIn) {
  LogNeeds needs;
  needs.begin_segment({1, 1});
  needs.recorded(kUsers, at(1, 4096));
  needs.begin_segment({1, 2});
  EXPECT_TRUE(needs.needed({1, 1}));
  EXPECT_FALSE(needs.needed({1, 2}));
  EXPECT_EQ(needs.tables_needing({1, 1}), std::vector{kUsers});
}

TEST(LogNeeds, WritesAfterTheFlushBeganKeepTheSegment) {
  LogNeeds needs;
  needs.begin_segment({1, 1});
  needs.recorded(kUsers, at(1, 4096));
  const LogPosition flush_began = at(1, 5000);
  needs.recorded(kUsers, at(1, 5000));
  needs.needed_from(kUsers, flush_began);
  EXPECT_TRUE(needs.needed({1, 1}));
  needs.needed_from(kUsers, at(1, 5001));
  EXPECT_FALSE(needs.needed({1, 1}));
}

TEST(LogNeeds, AMiddleSegmentGoesWhileAnOlderOneStays) {
  LogNeeds needs;
  needs.begin_segment({1, 1});
  needs.recorded(kUsers, at(1, 4096));
  needs.begin_segment({1, 2});
  needs.recorded(kOrders, at(2, 4096));
  needs.begin_segment({1, 3});
  needs.needed_from(kOrders, at(3, 4096));
  EXPECT_TRUE(needs.needed({1, 1}));
  EXPECT_FALSE(needs.needed({1, 2}));
  needs.drop_segment({1, 2});
  EXPECT_TRUE(needs.needed({1, 1}));
  needs.recorded(kOrders, at(3, 4096));
  EXPECT_TRUE(needs.needed({1, 3}));
}

TEST(LogNeeds, ADroppedTableNeedsNothing) {
  LogNeeds needs;
  needs.begin_segment({1, 1});
  needs.recorded(kUsers, at(1, 4096));
  needs.recorded(kOrders, at(1, 4200));
  needs.forget_table(kUsers);
  EXPECT_EQ(needs.tables_needing({1, 1}), std::vector{kOrders});
  needs.forget_table(kOrders);
  EXPECT_FALSE(needs.needed({1, 1}));
}

RC_GTEST_PROP(LogNeeds, AgreesWithTheListOfAllRecords, ()) {
  struct Record {
    TableId table;
    LogPosition position;
  };
  LogNeeds needs;
  std::vector<Record> records;
  std::map<TableId, LogPosition> from;
  std::uint32_t sequence = 1;
  std::uint64_t offset = 4096;
  needs.begin_segment({1, sequence});
  const auto steps = *rc::gen::inRange(0, 100);
  for (int step = 0; step < steps; ++step) {
    const TableId table{*rc::gen::inRange<std::uint64_t>(1, 5)};
    switch (*rc::gen::inRange(0, 8)) {
      case 0:
        needs.begin_segment({1, ++sequence});
        offset = 4096;
        break;
      case 1: {
        const LogPosition position{{1, *rc::gen::inRange<std::uint32_t>(1, sequence + 1)},
                                   *rc::gen::inRange<std::uint64_t>(4096, offset + 2)};
        needs.needed_from(table, position);
        from[table] = std::max(from[table], position);
        break;
      }
      case 2:
        needs.forget_table(table);
        std::erase_if(records, [&](const Record& record) { return record.table == table; });
        from.erase(table);
        break;
      default:
        needs.recorded(table, {{1, sequence}, ++offset});
        records.push_back({table, {{1, sequence}, offset}});
    }
    for (std::uint32_t segment = 1; segment <= sequence; ++segment) {
      std::set<TableId> expected;
      for (const Record& record : records) {
        const auto known = from.find(record.table);
        const bool needed = known == from.end() || record.position >= known->second;
        if (needed && record.position.segment.sequence == segment) expected.insert(record.table);
      }
      RC_ASSERT(needs.needed({1, segment}) == !expected.empty());
      RC_ASSERT(needs.tables_needing({1, segment}) ==
                std::vector<TableId>(expected.begin(), expected.end()));
    }
  }
}

}  // namespace
}  // namespace helenus::storage
