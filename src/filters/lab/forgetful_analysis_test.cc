#include "filters/lab/forgetful_analysis.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "filters/forgetful_rates.h"

namespace helenus::filters {
namespace {

TEST(ForgetfulAnalysis, EquationOneInItsThreeForms) {
  // 300 elements in 6250 bits by 5 probes, the paper's favourite.
  EXPECT_NEAR(bloom_rate_approximated(6250, 5, 300), bloom_rate(6250, 5, 300), 1e-6);
  EXPECT_NEAR(bloom_rate_as_printed(6250, 5, 300), 1, 1e-9) << "as printed it is always about one";
}

TEST(ForgetfulAnalysis, EquationsTwoAndThreeAsPrinted) {
  const std::vector<double> basic = {0.1, 0.2, 0.3};
  EXPECT_NEAR(forgetful_rate_as_printed(basic), 1 - 0.9 * (1 - 0.2 * 0.3) * 0.7, 1e-12);
  const std::vector<double> two_past = {0.1, 0.2, 0.3, 0.4};
  EXPECT_NEAR(forgetful_rate_as_printed(two_past), 1 - 0.9 * (1 - 0.06) * (1 - 0.12) * 0.6, 1e-12);
}

// A pair's bit is set with a + (1 - a) a^2; as printed with (1 - (1 - a)^2)^2.
TEST(ForgetfulAnalysis, PairsAreUnderestimatedAsPrintedFiveToFiveThousandTimes) {
  const auto underestimate = [](double fill) {
    const double pair = fill + (1 - fill) * fill * fill;
    const double printed = std::pow(1 - (1 - fill) * (1 - fill), 2);
    return std::pow(pair / printed, 5);
  };
  EXPECT_NEAR(underestimate(0.3), 5, 0.5);
  EXPECT_NEAR(underestimate(0.05), 5000, 500);
  // The same from the functions: only the pair of filters 1 and 2 has bits.
  const std::vector<double> fills = {0, 0.05, 0, 0, 0};
  const double one = std::pow(0.05, 5);
  EXPECT_NEAR(forgetful_rate(fills, 5) / one, 1, 1e-6);
  const std::vector<double> rates = {0, one, one, 0, 0};
  EXPECT_LT(forgetful_rate_as_printed(rates), 1e-4 * one);
}

// A filter in the steady state: as many keys in each of its periods, just before a refresh.
ForgetfulBloom steady(ForgetfulBloom::Shape shape, std::uint64_t keys_per_period) {
  auto filter = *ForgetfulBloom::with_shape(shape);
  std::uint64_t next = 0;
  for (unsigned period = 0; period < shape.past + 4; ++period) {
    if (period > 0) filter.refresh();
    for (std::uint64_t i = 0; i < keys_per_period; ++i) filter.insert(KeyHash::of_integer(next++));
  }
  return filter;
}

TEST(ForgetfulAnalysis, ThePrintedEquationsAreFarOffWhereThereArePairs) {
  const auto filter = steady({.bits = 62'500, .probes = 5, .past = 10, .capacity = 1}, 1500);
  EXPECT_LT(rate_as_printed(filter), 0.8 * filter.false_positive_rate());
  const auto basic = steady({.bits = 62'500, .probes = 5, .past = 1, .capacity = 1}, 1500);
  EXPECT_NEAR(rate_as_printed(basic) / basic.false_positive_rate(), 1, 0.06);
}

}  // namespace
}  // namespace helenus::filters
