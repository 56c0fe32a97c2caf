// Assertions that stay on in production.
//
// A programmer's error is not an operating error: it stops the process with the broken condition,
// a message, a backtrace and, under simulation, the command that replays it. Operating errors
// (timeouts, damaged bytes, bad input) are values: see result.h.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace helenus::base {

// Called once with the report of a failed assertion before the process aborts. The simulator
// installs one that adds the command replaying the run. This is the only process-wide hook in the
// code base: a failing assertion has no object to ask. Returns the hook installed before.
using AssertHook = void (*)(std::string_view report);
AssertHook set_assert_hook(AssertHook hook);

[[noreturn]] void assertion_failed(std::string_view condition, std::string_view file, int line,
                                   const std::string& message);

namespace detail {
inline std::string assertion_message() {
  return {};
}
template <class... Args>
std::string assertion_message(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}
}  // namespace detail

}  // namespace helenus::base

// ASSERT(condition) or ASSERT(condition, "format {}", value): always checked.
#define ASSERT(condition, ...)                                                                    \
  do {                                                                                            \
    if (!(condition)) [[unlikely]] {                                                              \
      ::helenus::base::assertion_failed(#condition, __FILE__, __LINE__,                           \
                                        ::helenus::base::detail::assertion_message(__VA_ARGS__)); \
    }                                                                                             \
  } while (false)

// ASSERT_SLOW: checked in the dev, asan and tsan presets, where its cost does not matter; compiled
// and never evaluated elsewhere.
#ifdef HELENUS_SLOW_ASSERTS
#define ASSERT_SLOW(...) ASSERT(__VA_ARGS__)
#else
#define ASSERT_SLOW(...)   \
  do {                     \
    if constexpr (false) { \
      ASSERT(__VA_ARGS__); \
    }                      \
  } while (false)
#endif

#define UNREACHABLE(...)                                               \
  ::helenus::base::assertion_failed("unreachable", __FILE__, __LINE__, \
                                    ::helenus::base::detail::assertion_message(__VA_ARGS__))
