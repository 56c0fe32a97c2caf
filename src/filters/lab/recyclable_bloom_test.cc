#include "filters/lab/recyclable_bloom.h"

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

#include "filters/filter_contract.h"
#include "filters/forgetful_rates.h"
#include "filters/probes.h"

namespace helenus::filters {
namespace {

using base::Errc;

TEST(RecyclableBloom, FlushesWhenOneKeyMoreWouldPassTheTarget) {
  auto filter = *RecyclableBloom::with_table(1500, 3, 0.05);
  const std::uint64_t capacity = filter.capacity();
  EXPECT_LE(filter.false_positive_rate_max(), 0.05);
  EXPECT_GT(bloom_rate(1500, 3, capacity + 1) + rate_of_aligned_probes(1500, capacity + 1), 0.05);
  for (const KeyHash key : keys_from(0, capacity)) EXPECT_FALSE(filter.insert_recycling(key));
  EXPECT_EQ(yes_count(filter, keys_from(0, capacity)), capacity);
  EXPECT_TRUE(filter.insert_recycling("one more"));
  EXPECT_EQ(filter.size(), 1U);
  EXPECT_TRUE(filter.contains("one more"));
  EXPECT_LT(yes_count(filter, keys_from(0, capacity)), 3U) << "everything else is forgotten";
  filter.flush();
  EXPECT_FALSE(filter.contains("one more"));
}

TEST(RecyclableBloom, KeepsTargetsThatAlignedProbesAloneWouldPass) {
  const auto filter = *RecyclableBloom::with_table(28'755, 20, 1e-6);
  EXPECT_LE(filter.false_positive_rate_max(), 1e-6);
  EXPECT_GT(filter.capacity(), 100U);
}

TEST(RecyclableBloom, TablesThatCannotKeepTheTargetAreErrors) {
  EXPECT_TRUE(RecyclableBloom::with_table(2, 1, 0.3).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(RecyclableBloom::with_table(0, 1, 0.3).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(RecyclableBloom::with_table(10, 0, 0.3).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(RecyclableBloom::with_table(10, 33, 0.3).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(RecyclableBloom::with_table(10, 1, 0).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(RecyclableBloom::with_table(10, 1, 1).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(RecyclableBloom::with_table(10, 1, std::nan("")).failed_with(Errc::invalid_argument));
}

}  // namespace
}  // namespace helenus::filters
