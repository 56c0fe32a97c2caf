// What the tests of the native runtime share: a log that threads may write to, and a child process
// for what changes the process for good.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/log.h"
#include "runtime/native/mutex.h"
#include "runtime/native/native_host.h"

namespace helenus::runtime::native {

// Hears what a server's log hears unless it is told otherwise.
class SharedLog final : public base::LogSink {
 public:
  base::LogLevel level_for(std::string_view) const override { return base::LogLevel::debug; }
  void write(const base::LogRecord& record) override {
    const MutexLock lock(mutex_);
    lines_.push_back(base::format_line("-", record));
  }
  bool contains(std::string_view text) {
    const MutexLock lock(mutex_);
    return std::ranges::any_of(lines_, [&](const auto& line) { return line.contains(text); });
  }

 private:
  Mutex mutex_;
  std::vector<std::string> lines_ GUARDED_BY(mutex_);
};

// The sanitizer of the asan preset opens descriptors for its own checks and takes their lack for a
// finding, so what happens without descriptors is tested by the other presets.
#if __has_feature(address_sanitizer)
inline constexpr bool kCanRunOutOfDescriptors = false;
#else
inline constexpr bool kCanRunOutOfDescriptors = true;
#endif

// Opens a host and runs the program in it.
inline int run_host(const NativeOptions& options, NativeHost::Program program) {
  auto host = NativeHost::open(options);
  if (!host) {
    ADD_FAILURE() << host.error().to_string();
    return -1;
  }
  return (*host)->run(std::move(program));
}

// Runs `story` in a child process, where it may give up rights and lower limits. Its expectations
// count: the child fails if one of them did. Begins the program anew, so that it has one thread.
#define IN_CHILD_PROCESS(...)                             \
  do {                                                    \
    GTEST_FLAG_SET(death_test_style, "threadsafe");       \
    EXPECT_EXIT(                                          \
        {                                                 \
          __VA_ARGS__;                                    \
          std::exit(testing::Test::HasFailure() ? 1 : 0); \
        },                                                \
        testing::ExitedWithCode(0), "");                  \
  } while (false)

}  // namespace helenus::runtime::native
