#include "filters/placement.h"

#include <cstdint>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::filters {
namespace {

TEST(Placement, ReflectionIsAnInvolutionForEveryOffsetBucketAndSmallCount) {
  for (std::uint64_t count = 1; count <= 200; ++count) {
    for (std::uint64_t offset = 0; offset < count; ++offset) {
      std::uint64_t fixed_points = 0;
      for (std::uint64_t bucket = 0; bucket < count; ++bucket) {
        const std::uint64_t other = Placement::reflect(bucket, offset, count);
        ASSERT_LT(other, count);
        ASSERT_EQ(Placement::reflect(other, offset, count), bucket);
        fixed_points += other == bucket ? 1 : 0;
      }
      ASSERT_LE(fixed_points, 2U);
    }
  }
}

TEST(Placement, AlternatesLeadBackForEveryFingerprintOfSixteenBits) {
  for (const std::uint64_t count : {1UL, 2UL, 3UL, 5UL, 16UL, 17UL, 1000UL, 1024UL}) {
    const Placement placement(count);
    for (std::uint32_t fingerprint = 1; fingerprint < 1 << 16; ++fingerprint) {
      const std::uint64_t bucket = fingerprint % count;
      const std::uint64_t other = placement.alternate(bucket, fingerprint);
      ASSERT_LT(other, count);
      ASSERT_EQ(placement.alternate(other, fingerprint), bucket);
    }
  }
}

RC_GTEST_PROP(Placement, AlternatesLeadBackInTablesOfAnySize, ()) {
  const auto count = *rc::gen::inRange<std::uint64_t>(1, std::uint64_t{1} << 40);
  const auto fingerprint = *rc::gen::arbitrary<std::uint32_t>();
  const KeyHash key(*rc::gen::arbitrary<std::uint64_t>());
  const Placement placement(count);
  const std::uint64_t first = placement.first(key);
  RC_ASSERT(first < count);
  const std::uint64_t other = placement.alternate(first, fingerprint);
  RC_ASSERT(other < count);
  RC_ASSERT(placement.alternate(other, fingerprint) == first);
}

// What keeps a table of small fingerprints from filling early: two moves lead to as many places as
// there are pairs of fingerprints, not as many as there are differences.
TEST(Placement, TwoMovesReachAsManyBucketsAsThereArePairsOfFingerprints) {
  const Placement placement(1'000'003);
  std::set<std::uint64_t> reached;
  for (std::uint32_t first = 1; first < 256; ++first) {
    for (std::uint32_t second = 1; second < 256; ++second) {
      reached.insert(placement.alternate(placement.alternate(500'000, first), second));
    }
  }
  // 255 * 254 pairs and one way back; some meet by chance.
  EXPECT_GT(reached.size(), 60'000U);
}

}  // namespace
}  // namespace helenus::filters
