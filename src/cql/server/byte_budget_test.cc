#include "cql/server/byte_budget.h"

#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace helenus::cql {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

TEST(ByteBudget, RefusesWhatDoesNotFitAndTakesItWhenThereIsRoom) {
  ByteBudget budget(100);
  ByteBudget::Charge first(budget);
  ByteBudget::Charge second(budget);
  EXPECT_TRUE(first.grow_to(60));
  EXPECT_FALSE(second.grow_to(41));
  EXPECT_EQ(second.bytes(), 0U);
  EXPECT_TRUE(second.grow_to(40));
  EXPECT_FALSE(first.grow_to(61));
  second.release();
  EXPECT_TRUE(first.grow_to(100));
  EXPECT_EQ(budget.bytes_used(), 100U);
}

TEST(ByteBudget, OneCoreMayUseAllThatTheOthersLeave) {
  const auto limit = std::make_shared<ByteLimit>(64 * kMib);
  ByteBudget here(64 * kMib, limit);
  ByteBudget there(64 * kMib, limit);
  ByteBudget::Charge large(here);
  EXPECT_TRUE(large.grow_to(64 * kMib));
  ByteBudget::Charge small(there);
  EXPECT_FALSE(small.grow_to(1));
  large.release();
  EXPECT_EQ(limit->bytes_taken(), 0U);
  EXPECT_TRUE(small.grow_to(1));
  EXPECT_EQ(limit->bytes_taken(), ByteBudget::kPiece);
  EXPECT_FALSE(large.grow_to(64 * kMib));
  EXPECT_TRUE(large.grow_to((64 * kMib) - ByteBudget::kPiece)) << "but for the other's piece";
}

TEST(ByteBudget, TheLastBytesNeedNotBeAPiece) {
  const auto limit = std::make_shared<ByteLimit>(100);
  ByteBudget budget(1000, limit);
  ByteBudget::Charge charge(budget);
  EXPECT_TRUE(charge.grow_to(99));
  EXPECT_TRUE(charge.grow_to(100));
  EXPECT_FALSE(charge.grow_to(101));
}

TEST(ByteBudget, CoresTogetherNeverTakeMoreThanTheLimitAndInTheEndNothing) {
  constexpr std::size_t kCores = 16;
  const auto limit = std::make_shared<ByteLimit>(8 * kMib);
  base::Prng dice(1);
  {
    std::vector<std::unique_ptr<ByteBudget>> budgets;
    for (std::size_t i = 0; i < kCores; ++i) {
      budgets.push_back(std::make_unique<ByteBudget>(8 * kMib, limit));
    }
    std::vector<ByteBudget::Charge> charges;
    for (std::size_t i = 0; i < 200; ++i) charges.emplace_back(*budgets[i % kCores]);
    std::size_t refused = 0;
    for (int step = 0; step < 20'000; ++step) {
      ByteBudget::Charge& charge = charges[dice.below(charges.size())];
      if (dice.chance(0.4))
        charge.release();
      else
        refused += charge.grow_to(dice.below(kMib)) ? 0 : 1;
      std::size_t used = 0;
      for (const auto& budget : budgets) used += budget->bytes_used();
      ASSERT_LE(used, limit->bytes_taken());
      ASSERT_LE(limit->bytes_taken(), limit->bytes_max());
      ASSERT_LT(limit->bytes_taken(), used + (kCores * ByteBudget::kPiece));
    }
    EXPECT_GT(refused, 0U);
  }
  EXPECT_EQ(limit->bytes_taken(), 0U);
}

}  // namespace
}  // namespace helenus::cql
