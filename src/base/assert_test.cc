#include "base/assert.h"

#include <cstdio>

#include <gtest/gtest.h>

namespace helenus::base {
namespace {

void print_replay_command(std::string_view report) {
  std::fprintf(stderr, "[replay of: %.*s]", static_cast<int>(report.size()), report.data());
}

void fail_again(std::string_view) {
  std::fputs("hook entered\n", stderr);
  ASSERT(false, "inside the hook");
}

int sign_of(int number) {
  if (number < 0) return -1;
  if (number >= 0) return 1;
  UNREACHABLE("number {}", number);
}

TEST(Assert, ATrueConditionIsEvaluatedOnceAndTheMessageNever) {
  int condition_count = 0;
  int message_count = 0;
  ASSERT(++condition_count > 0, "{}", ++message_count);
  EXPECT_EQ(condition_count, 1);
  EXPECT_EQ(message_count, 0);
}

TEST(Assert, IsOneStatement) {
  bool other_branch = false;
  if (sign_of(1) < 0)
    ASSERT(false);
  else
    other_branch = true;
  EXPECT_TRUE(other_branch);
}

TEST(AssertDeathTest, TellsConditionPlaceAndMessage) {
  const int size = 3;
  EXPECT_DEATH(ASSERT(size > 4), "assertion failed: size > 4 at .*base/assert_test.cc:[0-9]+\n");
  EXPECT_DEATH(ASSERT(size > 4, "size {} of {}", size, "x"), "assert_test.cc:[0-9]+: size 3 of x");
}

TEST(AssertDeathTest, PrintsABacktraceThatNamesFunctions) {
  EXPECT_DEATH(ASSERT(false), "base_test\\(.*assertion_failed.*\\[0x[0-9a-f]+\\]");
}

TEST(AssertDeathTest, UnreachableIsAnAssertion) {
  EXPECT_DEATH(UNREACHABLE(), "assertion failed: unreachable at");
  EXPECT_DEATH(UNREACHABLE("state {}", 7), "assertion failed: unreachable at .*: state 7");
}

TEST(AssertDeathTest, CallsTheHookWithTheReport) {
  EXPECT_DEATH(
      {
        set_assert_hook(&print_replay_command);
        ASSERT(false, "seed {}", 42);
      },
      "\\[replay of: assertion failed: false at .*: seed 42");
}

TEST(AssertDeathTest, AnAssertionInsideTheHookDoesNotRecurse) {
  EXPECT_DEATH(
      {
        set_assert_hook(&fail_again);
        ASSERT(false, "first");
      },
      "first(.|\n)*hook entered(.|\n)*inside the hook");
}

TEST(Assert, SettingAHookReturnsTheOneBefore) {
  EXPECT_EQ(set_assert_hook(&print_replay_command), nullptr);
  EXPECT_EQ(set_assert_hook(nullptr), &print_replay_command);
}

TEST(AssertDeathTest, TheSlowKindIsEvaluatedOnlyWhereItIsOn) {
  int evaluated_count = 0;
  ASSERT_SLOW(++evaluated_count > 0);
#ifdef HELENUS_SLOW_ASSERTS
  EXPECT_EQ(evaluated_count, 1);
  EXPECT_DEATH(ASSERT_SLOW(false, "slow {}", 1), "slow 1");
#else
  EXPECT_EQ(evaluated_count, 0);
#endif
}

}  // namespace
}  // namespace helenus::base
