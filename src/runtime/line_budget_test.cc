#include "runtime/line_budget.h"

#include <gtest/gtest.h>

#include "base/log.h"
#include "base/log_capture.h"

namespace helenus::runtime {
namespace {

using namespace std::chrono_literals;

class LineBudgetTest : public testing::Test {
 protected:
  // How many of so many lines are written at that second.
  int written(int lines, int second) {
    int count = 0;
    for (int i = 0; i < lines; ++i) {
      count += budget_.admits(log_, MonotonicTime(std::chrono::seconds(second))) ? 1 : 0;
    }
    return count;
  }

  base::CapturingSink sink_;
  base::Logger log_{sink_, "test"};
  LineBudget budget_{{.burst = 5, .interval = 10s}};
};

TEST_F(LineBudgetTest, SoManyAtOnceAndThenOneInAWhile) {
  EXPECT_EQ(written(3, 1'000), 3);
  EXPECT_EQ(written(1'000'000, 1'000), 2);
  EXPECT_EQ(written(100, 1'009), 0);
  EXPECT_EQ(written(100, 1'010), 1);
  EXPECT_EQ(written(100, 1'030), 2);
  EXPECT_EQ(written(100, 1'000'000), 5);
}

TEST_F(LineBudgetTest, WhatWasLeftOutIsToldBeforeTheNextLine) {
  EXPECT_EQ(written(5, 0), 5);
  EXPECT_TRUE(sink_.lines().empty());
  EXPECT_EQ(written(7, 1), 0);
  EXPECT_EQ(written(2, 10), 1);
  ASSERT_EQ(sink_.lines().size(), 1U);
  EXPECT_TRUE(sink_.lines().front().contains("lines=7")) << sink_.lines().front();
  EXPECT_EQ(written(1, 20), 1);
  EXPECT_EQ(sink_.lines().size(), 2U);
  EXPECT_TRUE(sink_.lines().back().contains("lines=1")) << sink_.lines().back();
}

TEST_F(LineBudgetTest, AClockThatGoesBackEarnsNothing) {
  EXPECT_EQ(written(10, 100), 5);
  EXPECT_EQ(written(10, 50), 0);
  EXPECT_EQ(written(10, 110), 1);
}

}  // namespace
}  // namespace helenus::runtime
