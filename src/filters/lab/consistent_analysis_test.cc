#include "filters/lab/consistent_analysis.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>

#include <gtest/gtest.h>

#include "filters/consistent_cuckoo.h"
#include "filters/filter_contract.h"

namespace helenus::filters::analysis {
namespace {

// Table II of the paper, for 2^30 buckets.
TEST(ConsistentAnalysis, ThresholdsOfThePaperToEightDecimals) {
  constexpr std::array<std::array<double, 4>, 6> kTable = {{
      {0.796812130, 1.861790807, 2.905683863, 3.934728166},
      {0.940479791, 1.979049536, 2.992264312, 3.997079786},
      {0.980172599, 1.996604114, 2.999390447, 3.999888473},
      {0.993022846, 1.999453835, 2.999955482, 3.999996295},
      {0.997483538, 1.999913939, 2.999996938, 3.999999888},
      {0.999082240, 1.999986694, 2.999999798, 3.999999996},
  }};
  for (unsigned k = 2; k <= 7; ++k) {
    for (unsigned b = 1; b <= 4; ++b) {
      EXPECT_NEAR(load_threshold(std::exp2(30), k, b), kTable[k - 2][b - 1], 5e-9)
          << "k = " << k << ", b = " << b;
    }
  }
}

TEST(ConsistentAnalysis, TheWorkedExampleOfTheoremFive) {
  const auto probability = named_buckets_distribution(3, 2, 5);
  EXPECT_NEAR(probability[2], 0.03968, 1e-12);
  EXPECT_NEAR(probability[3], 0.3456, 1e-12);
  EXPECT_NEAR(probability[4], 0.4992, 1e-12);
  EXPECT_NEAR(probability[5], 0.1152, 1e-12);
  EXPECT_NEAR(fit_probability_max(3, 2, 2, 5), 0.99968, 1e-12);
}

TEST(ConsistentAnalysis, ProbabilitiesOfNamedBucketsAddUp) {
  for (const unsigned buckets : {1U, 2U, 7U, 50U}) {
    for (const unsigned keys : {1U, 3U, 40U}) {
      const auto probability = named_buckets_distribution(keys, 3, buckets);
      EXPECT_NEAR(std::accumulate(probability.begin(), probability.end(), 0.0), 1, 1e-12);
    }
  }
}

TEST(ConsistentAnalysis, NothingFitsIntoTooFewSlots) {
  EXPECT_EQ(fit_probability_max(11, 2, 2, 5), 0);
  EXPECT_NEAR(fit_probability_max(1, 2, 1, 5), 1, 1e-12);
}

// 14 % instead of 0.012 %.
TEST(ConsistentAnalysis, ThePrintedRateIsFarFromTheTrueOne) {
  EXPECT_NEAR(consistent_rate(10'000, 16), 0.1415, 1e-4);
  EXPECT_NEAR(consistent_rate_as_printed(1, 2, 4, 16), 0.000122, 1e-6);
}

TEST(ConsistentAnalysis, StrangersAreTakenForKeysAtTheTrueRateAndNotAtThePrintedOne) {
  constexpr std::uint64_t kKeys = 10'000;
  ConsistentCuckoo filter = *ConsistentCuckoo::with_options(
      {.capacity = kKeys, .fingerprint_bits = 16, .shape = {.candidates = 2, .slots = 4}});
  for (const KeyHash key : keys_from(0, kKeys)) ASSERT_TRUE(filter.insert(key));
  EXPECT_NEAR(filter.false_positive_rate(), consistent_rate(kKeys, 16), 1e-5);
  const auto hits = static_cast<double>(yes_count(filter, keys_from(kStrangers, 400'000)));
  EXPECT_GT(hits / 400'000, 100 * consistent_rate_as_printed(1, 2, 4, 16));
}

TEST(ConsistentAnalysis, TheUsablePartGrowsWithKeysAndCandidates) {
  EXPECT_EQ(usable_part(0, 50, 2, 2), 0);
  EXPECT_LT(usable_part(50, 50, 2, 2), usable_part(60, 50, 2, 2));
  EXPECT_LT(usable_part(50, 50, 2, 2), usable_part(50, 50, 3, 2));
}

}  // namespace
}  // namespace helenus::filters::analysis
