// How much a test does: as much as is usual, or as the environment asks for, and less where a
// sanitizer makes every step several times as dear. ./test --long sets HELENUS_TEST_SCALE.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace helenus::base {

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// The number that a variable of the environment holds, or the usual one where there is no such
// variable. What is no number ends the test.
inline std::uint64_t number_from_environment(const char* name, std::uint64_t usual) {
  const char* const wanted = std::getenv(name);
  return wanted == nullptr ? usual : std::stoull(wanted);
}

// How many seeds or steps a test takes: what the variable `name` holds, or the usual number of them
// times HELENUS_TEST_SCALE.
inline std::uint64_t count_from_environment(const char* name, std::uint64_t usual) {
  return number_from_environment(name, usual * number_from_environment("HELENUS_TEST_SCALE", 1));
}

}  // namespace helenus::base
