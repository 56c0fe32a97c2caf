// The commit log over the operating system: real files, past the page cache and through it, on
// io_uring and on threads, with a log on each of two cores.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/call_on.h"
#include "runtime/contract/world.h"
#include "runtime/native/native_host.h"
#include "runtime/native/temporary_directory.h"
#include "runtime/task_group.h"
#include "storage/log/commit_log.h"

namespace helenus::storage {
namespace {

using base::as_bytes;
using base::Result;
using runtime::CoreId;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;
using runtime::native::FileBackend;
using runtime::native::NativeHost;
using runtime::native::TemporaryDirectory;

constexpr int kWriters = 8;
constexpr int kRecordsEach = 150;
constexpr std::uint32_t kCores = 2;

struct Arrangement {
  FileBackend backend = FileBackend::automatic;
  CommitLogOptions options;
};

std::string text_of(std::uint32_t core, int writer, int record) {
  return fmt::format("{}/{}/{}:{}", core, writer, record, std::string(1000, 'x'));
}

Task<void> write(CommitLog& log, std::uint32_t core, int writer) {
  for (int i = 0; i < kRecordsEach; ++i) {
    const std::string text = text_of(core, writer, i);
    auto room = co_await log.room(text.size(), Until::forever());
    CO_ASSERT_OK(room);
    auto appended = co_await log.append(TableId{1}, as_bytes(text), Until::forever());
    CO_ASSERT_OK(appended);
  }
}

Task<Result<void>> run_core(Runtime& runtime, LogShare share, CommitLogOptions options) {
  const std::uint32_t core = share.first.core;
  CO_TRY(auto log, co_await CommitLog::open(runtime, std::move(share), options));
  runtime::TaskGroup writers(runtime);
  for (int i = 0; i < kWriters; ++i) writers.spawn(write(*log, core, i));
  co_await writers.join();
  EXPECT_EQ(log->statistics().records, std::uint64_t{kWriters * kRecordsEach});
  EXPECT_GT(log->tail().segment.sequence, 1U);
  co_return co_await log->stop();
}

Task<int> write_all(Runtime& runtime, const std::string& directory,
                    const Arrangement& arrangement) {
  auto folder = co_await LogDirectory::open(runtime, directory);
  EXPECT_TRUE(folder.has_value()) << folder.error().to_string();
  if (!folder) co_return 1;
  auto nothing = co_await (*folder)->next_batch();
  EXPECT_TRUE(nothing.has_value() && !nothing->has_value());
  auto shares = co_await (*folder)->begin(kCores, arrangement.options);
  EXPECT_TRUE(shares.has_value()) << shares.error().to_string();
  if (!shares) co_return 1;
  for (LogShare& share : *shares) {
    const CoreId core{share.first.core};
    auto ran = co_await runtime::call_on<void>(
        runtime, core,
        [share = std::move(share), options = arrangement.options](Runtime& there) mutable {
          return run_core(there, std::move(share), options);
        },
        Until::forever());
    EXPECT_TRUE(ran.has_value()) << ran.error().to_string();
  }
  auto closed = co_await (*folder)->close();
  EXPECT_TRUE(closed.has_value());
  co_return 0;
}

Task<int> read_all(Runtime& runtime, const std::string& directory,
                   std::vector<std::string>& texts) {
  auto folder = co_await LogDirectory::open(runtime, directory);
  EXPECT_TRUE(folder.has_value()) << folder.error().to_string();
  if (!folder) co_return 1;
  EXPECT_EQ((*folder)->report().last_stop, LastStop::clean);
  while (true) {
    auto batch = co_await (*folder)->next_batch();
    EXPECT_TRUE(batch.has_value()) << batch.error().to_string();
    if (!batch || !*batch) break;
    while (const auto record = (*batch)->records.next()) {
      texts.emplace_back(base::as_text(record->bytes));
    }
  }
  auto closed = co_await (*folder)->close();
  EXPECT_TRUE(closed.has_value());
  co_return 0;
}

void run(const Arrangement& arrangement, NativeHost::Program program) {
  auto host = NativeHost::open(
      {.cores = kCores, .file_backend = arrangement.backend, .handle_signals = false});
  ASSERT_TRUE(host.has_value()) << host.error().to_string();
  EXPECT_EQ((*host)->run(std::move(program)), 0);
}

void write_and_read_back(Arrangement arrangement) {
  arrangement.options.segment_size = 1 << 20;
  arrangement.options.record_size_max = 1 << 16;
  arrangement.options.disk_bytes_max = 64 << 20;
  const TemporaryDirectory directory;
  run(arrangement, [&](Runtime& runtime, StopToken) {
    return write_all(runtime, directory.path(), arrangement);
  });
  std::vector<std::string> texts;
  run(arrangement,
      [&](Runtime& runtime, StopToken) { return read_all(runtime, directory.path(), texts); });
  std::vector<std::string> expected;
  for (std::uint32_t core = 0; core < kCores; ++core) {
    for (int writer = 0; writer < kWriters; ++writer) {
      for (int i = 0; i < kRecordsEach; ++i) expected.push_back(text_of(core, writer, i));
    }
  }
  EXPECT_THAT(texts, ::testing::UnorderedElementsAreArray(expected));
}

TEST(CommitLogNative, BatchModeAsTheFileSystemAllows) {
  write_and_read_back({});
}

TEST(CommitLogNative, BatchModeThroughThePageCacheOnThreads) {
  Arrangement arrangement;
  arrangement.backend = FileBackend::threads;
  arrangement.options.direct = DirectIo::off;
  write_and_read_back(arrangement);
}

TEST(CommitLogNative, GroupMode) {
  Arrangement arrangement;
  arrangement.options.sync_mode = LogSyncMode::group;
  arrangement.options.group_window = std::chrono::microseconds(100);
  write_and_read_back(arrangement);
}

TEST(CommitLogNative, PeriodicMode) {
  Arrangement arrangement;
  arrangement.options.sync_mode = LogSyncMode::periodic;
  arrangement.options.sync_period = std::chrono::milliseconds(2);
  write_and_read_back(arrangement);
}

}  // namespace
}  // namespace helenus::storage
