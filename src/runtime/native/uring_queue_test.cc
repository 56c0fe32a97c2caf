// Stands between the queue and liburing, to make the kernel take fewer entries than it was given.
#include "runtime/native/uring_queue.h"

#include <atomic>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "runtime/file_system.h"
#include "runtime/native/temporary_directory.h"
#include "runtime/native/test_support.h"

namespace {

// The next call leaves the last entry behind.
std::atomic<bool> cut_next_short{false};
std::atomic<int> entries_taken{0};

}  // namespace

extern "C" int io_uring_submit(struct io_uring* ring) {
  static const auto submit =
      reinterpret_cast<int (*)(struct io_uring*)>(::dlsym(RTLD_NEXT, "io_uring_submit"));
  const unsigned left_behind = cut_next_short.exchange(false) ? 1 : 0;
  ring->sq.sqe_tail -= left_behind;
  const int taken = submit(ring);
  ring->sq.sqe_tail += left_behind;
  if (taken > 0) entries_taken += taken;
  return taken;
}

namespace helenus::runtime::native {
namespace {

Task<int> append_two(Runtime& rt, std::string path) {
  const auto file = co_await rt.files.open(path, OpenOptions::create_new());
  if (!file) co_return -1;
  entries_taken = 0;
  const auto whole = co_await (*file)->append_and_sync(base::as_bytes("whole "), Until::forever());
  EXPECT_TRUE(whole.has_value());
  EXPECT_EQ(entries_taken.exchange(0), 2) << "a write and its sync";
  cut_next_short = true;
  const auto cut = co_await (*file)->append_and_sync(base::as_bytes("cut"), Until::forever());
  EXPECT_TRUE(cut.has_value());
  EXPECT_EQ(entries_taken.exchange(0), 3) << "and a sync that is surely behind it";
  const auto again = co_await (*file)->append_and_sync(base::as_bytes(" again"), Until::forever());
  EXPECT_TRUE(again.has_value());
  EXPECT_EQ(entries_taken.exchange(0), 2) << "that was the one call only";
  std::array<std::byte, 32> memory;
  const auto count = co_await (*file)->read_at(0, memory, Until::forever());
  EXPECT_EQ(base::as_text(base::ByteView(memory).first(count.value_or(0))), "whole cut again");
  co_return 0;
}

TEST(UringQueue, ASyncThatWasCutOffFromItsWriteIsAskedForAgain) {
  const TemporaryDirectory directory;
  const NativeOptions options{
      .cores = 1, .file_backend = FileBackend::io_uring, .handle_signals = false};
  const int exit_code = run_host(
      options, [&](Runtime& rt, StopToken) { return append_two(rt, directory.path() + "/file"); });
  EXPECT_EQ(exit_code, 0);
}

}  // namespace
}  // namespace helenus::runtime::native
