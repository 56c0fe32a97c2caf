// Giving a record its place in the commit log allocates nothing.
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "storage/log/allocation_count_test_support.h"
#include "storage/log/commit_log_test_support.h"

namespace helenus::storage {
namespace {

using base::as_bytes;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

// Fills the log's buffers and lets them be written, again and again.
Task<void> count_staging(Runtime& runtime) {
  auto open = co_await testing::open_logs(runtime, testing::small_log());
  CO_ASSERT_OK(open);
  CommitLog& log = *open->logs[0];
  const std::string record(100, 'r');
  std::uint64_t counted = 0;
  std::uint64_t staged_count = 0;
  for (int round = 0; round < 200; ++round) {
    std::optional<LogPosition> last;
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t before = allocations();
      const auto staged = log.stage(TableId{1}, as_bytes(record));
      if (!staged) break;  // the next segment is being made
      if (round >= 20) counted += allocations() - before;
      ++staged_count;
      last = *staged;
    }
    CO_ASSERT_TRUE(last.has_value());
    auto durable = co_await log.durable(*last, Until::forever());
    CO_ASSERT_OK(durable);
    log.needed_from(TableId{1}, log.tail());
    auto room = co_await log.room(record.size(), Until::forever());
    CO_ASSERT_OK(room);
  }
  EXPECT_GT(log.tail().segment.sequence, 10u);
  EXPECT_GT(staged_count, 5000u);
  // A change of segments may allocate, a record may not.
  EXPECT_LE(counted, 4u * log.tail().segment.sequence);
  auto stopped = co_await testing::stop_logs(*open);
  CO_ASSERT_OK(stopped);
}

TEST(CommitLogAllocation, StagingARecordAllocatesNothing) {
  testing::LogWorld().run(count_staging);
}

}  // namespace
}  // namespace helenus::storage
