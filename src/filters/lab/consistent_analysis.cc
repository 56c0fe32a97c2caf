#include "filters/lab/consistent_analysis.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/assert.h"

namespace helenus::filters::analysis {

double consistent_rate_as_printed(unsigned members, unsigned candidates, unsigned slots,
                                  unsigned fingerprint_bits) {
  const double compared = static_cast<double>(members) * candidates * slots;
  return -std::expm1(compared * std::log1p(-std::exp2(-static_cast<double>(fingerprint_bits))));
}

double consistent_rate(std::uint64_t keys, unsigned fingerprint_bits) {
  return -std::expm1(static_cast<double>(keys) *
                     std::log1p(-std::exp2(-static_cast<double>(fingerprint_bits))));
}

// Equation 6, term by term: binomial(n, i) p^i as a product, so that nothing of the size of n! is
// ever there, and the rest as a power of (1 - p) = (1 - 1/m)^k.
double usable_part(double keys, double buckets, unsigned candidates, unsigned slots) {
  const double log_not_named = candidates * std::log1p(-1 / buckets);
  const double named = -std::expm1(log_not_named);
  double unused = 0;
  double choices = 1;
  for (unsigned i = 0; i < slots; ++i) {
    const double probability = choices * std::exp((keys - i) * log_not_named);
    unused += (1 - static_cast<double>(i) / slots) * probability;
    choices *= (keys - i) / (i + 1) * named;
  }
  return 1 - unused;
}

double load_threshold(double buckets, unsigned candidates, unsigned slots) {
  ASSERT(buckets >= 2 && candidates > 0 && slots > 0);
  // What can be used grows ever slower with the keys, what is used in proportion: they meet once.
  double low = 0;
  double high = slots;
  for (int step = 0; step < 200 && low < high; ++step) {
    const double middle = (low + high) / 2;
    const double used = middle / slots;
    (usable_part(middle * buckets, buckets, candidates, slots) > used ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::vector<double> named_buckets_distribution(unsigned keys, unsigned candidates,
                                               unsigned buckets) {
  ASSERT(buckets > 0);
  std::vector<double> probability(std::size_t{buckets} + 1);
  probability[0] = 1;
  for (unsigned mapping = 0; mapping < keys * candidates; ++mapping) {
    for (unsigned j = std::min(buckets, mapping + 1); j > 0; --j) {
      const double stays = static_cast<double>(j) / buckets;
      const double grows = static_cast<double>(buckets - j + 1) / buckets;
      probability[j] = probability[j] * stays + probability[j - 1] * grows;
    }
    probability[0] = 0;
  }
  return probability;
}

double fit_probability_max(unsigned keys, unsigned candidates, unsigned slots, unsigned buckets) {
  const auto probability = named_buckets_distribution(keys, candidates, buckets);
  const unsigned enough = (keys + slots - 1) / slots;
  const unsigned named_max = std::min(keys * candidates, buckets);
  double sum = 0;
  for (unsigned j = enough; j <= named_max; ++j) sum += probability[j];
  return sum;
}

}  // namespace helenus::filters::analysis
