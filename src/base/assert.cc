#include "base/assert.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <execinfo.h>
#include <unistd.h>

namespace helenus::base {

namespace {

std::atomic<AssertHook> installed_hook{nullptr};

constexpr int kBacktraceFramesMax = 64;

}  // namespace

AssertHook set_assert_hook(AssertHook hook) {
  return installed_hook.exchange(hook);
}

void assertion_failed(std::string_view condition, std::string_view file, int line,
                      const std::string& message) {
  const std::string report = fmt::format("assertion failed: {} at {}:{}{}{}\n", condition, file,
                                         line, message.empty() ? "" : ": ", message);
  std::fputs(report.c_str(), stderr);
  void* frames[kBacktraceFramesMax];
  const int depth = backtrace(frames, kBacktraceFramesMax);
  backtrace_symbols_fd(frames, depth, STDERR_FILENO);
  // Taken out before the call, so that an assertion inside the hook cannot recurse.
  if (AssertHook hook = installed_hook.exchange(nullptr)) hook(report);
  std::fflush(nullptr);
  std::abort();
}

}  // namespace helenus::base
