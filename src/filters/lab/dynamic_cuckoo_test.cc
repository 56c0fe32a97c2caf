#include "filters/lab/dynamic_cuckoo.h"

#include <gtest/gtest.h>

#include "filters/filter_contract.h"

namespace helenus::filters {
namespace {

DynamicCuckoo made() {
  return *DynamicCuckoo::with_options({.capacity = 5000,
                                       .fingerprint_bits = 30,
                                       .slots = 3,
                                       .member_buckets = 64,
                                       .kicks_max = 1200});
}

TEST(DynamicCuckoo, GrowsByMembersAndCompactsWhenKeysGo) {
  DynamicCuckoo filter = made();
  const auto keys = keys_from(0, 5000);
  for (const KeyHash key : keys) ASSERT_TRUE(filter.insert(key));
  const std::uint64_t members = filter.member_count();
  EXPECT_GE(members, 5000U / 192 + 1);
  EXPECT_EQ(yes_count(filter, keys), 5000U);
  for (std::size_t i = 0; i < 4000; ++i) ASSERT_TRUE(filter.erase(keys[i]));
  EXPECT_EQ(filter.member_count(), members);
  EXPECT_GT(filter.compact(), members / 3);
  EXPECT_EQ(yes_count(filter, std::span(keys).subspan(4000)), 1000U);
}

TEST(DynamicCuckoo, CompactingAnEmptyFilterLeavesOneMember) {
  DynamicCuckoo filter = made();
  for (const KeyHash key : keys_from(0, 1000)) ASSERT_TRUE(filter.insert(key));
  for (const KeyHash key : keys_from(0, 1000)) ASSERT_TRUE(filter.erase(key));
  filter.compact();
  EXPECT_EQ(filter.member_count(), 1U);
  EXPECT_TRUE(filter.insert(KeyHash("again")));
}

// What the consistent cuckoo filter is spared.
TEST(DynamicCuckoo, TheRateOfFalsePositivesGrowsWithTheMembers) {
  DynamicCuckoo filter = *DynamicCuckoo::with_options(
      {.capacity = 20'000, .fingerprint_bits = 12, .slots = 4, .member_buckets = 256});
  double rate = 0;
  for (int round = 0; round < 4; ++round) {
    for (const KeyHash key : keys_from(filter.size(), 5000)) ASSERT_TRUE(filter.insert(key));
    expect_hits_at_rate(yes_count(filter, keys_from(kStrangers, 100'000)), 100'000,
                        filter.false_positive_rate());
    EXPECT_GT(filter.false_positive_rate(), rate);
    rate = filter.false_positive_rate();
  }
}

TEST(DynamicCuckoo, RefusesUnsoundOptions) {
  const auto refuses = [](const DynamicCuckoo::Options& options) {
    return DynamicCuckoo::with_options(options).failed_with(base::Errc::invalid_argument);
  };
  EXPECT_FALSE(refuses({.capacity = 1}));
  EXPECT_TRUE(refuses({.capacity = 0}));
  EXPECT_TRUE(refuses({.capacity = 1, .fingerprint_bits = 33}));
  EXPECT_TRUE(refuses({.capacity = 1, .slots = 0}));
  EXPECT_TRUE(refuses({.capacity = 1, .slots = 17}));
  EXPECT_TRUE(refuses({.capacity = 1, .member_buckets = 63}));
  EXPECT_TRUE(refuses({.capacity = 1, .kicks_max = DynamicCuckoo::kKicksMax + 1}));
  EXPECT_TRUE(DynamicCuckoo::for_capacity(0).failed_with(base::Errc::invalid_argument));
}

}  // namespace
}  // namespace helenus::filters
