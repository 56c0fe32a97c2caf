// Whose clock is ahead, from what was heard.
#include "admin/clock_watch.h"

#include <gtest/gtest.h>

namespace helenus::admin {
namespace {

using namespace std::chrono_literals;
using Change = ClockWatch::Change;

class ClockWatchTest : public ::testing::Test {
 protected:
  // It said so `delay` ago, with its clock ahead by `ahead`.
  Change hear(runtime::Duration ahead, runtime::Duration delay) {
    now_ += 10s;
    return watch_.note(node_, runtime::WallTime(now_ - delay + ahead), runtime::WallTime(now_));
  }

  const model::NodeId node_{base::Uuid::from_random(1, 2)};
  runtime::Duration now_ = 1'000'000s;
  ClockWatch watch_;
};

TEST_F(ClockWatchTest, ADelayIsNoDifference) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(hear(0s, i * 1s), Change::none);
  ASSERT_EQ(watch_.all().size(), 1U);
  EXPECT_EQ(watch_.all().front().at_least, 0s);
}

TEST_F(ClockWatchTest, AClockThatIsAheadIsToldOfOnceAndUntilItIsNot) {
  EXPECT_EQ(hear(600ms, 300ms), Change::none);
  EXPECT_EQ(hear(600ms, 20ms), Change::apart);
  EXPECT_EQ(hear(600ms, 900ms), Change::none);
  EXPECT_TRUE(watch_.all().front().is_apart());
  EXPECT_EQ(watch_.all().front().at_least, 580ms) << "never more than it is";
  int together = 0;
  for (std::size_t i = 0; i < 2 * ClockWatch::kHeardMax; ++i) {
    together += hear(0s, 10ms) == Change::together ? 1 : 0;
  }
  EXPECT_EQ(together, 1);
  EXPECT_FALSE(watch_.all().front().is_apart());
}

}  // namespace
}  // namespace helenus::admin
