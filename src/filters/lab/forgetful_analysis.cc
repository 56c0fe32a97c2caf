#include "filters/lab/forgetful_analysis.h"

#include <cmath>
#include <vector>

#include "base/assert.h"

namespace helenus::filters {

double bloom_rate_approximated(std::uint64_t bits, unsigned probes, std::uint64_t keys) {
  const double load = static_cast<double>(keys) * probes / static_cast<double>(bits);
  return std::pow(-std::expm1(-load), probes);
}

double bloom_rate_as_printed(std::uint64_t bits, unsigned probes, std::uint64_t keys) {
  const double exponent = static_cast<double>(bits) * probes;
  return 1 - std::pow(1 - 1.0 / static_cast<double>(keys), exponent);
}

double forgetful_rate_as_printed(std::span<const double> rates) {
  ASSERT(rates.size() >= 3);
  double none = (1 - rates.front()) * (1 - rates.back());
  for (std::size_t i = 1; i + 1 < rates.size(); ++i) none *= 1 - rates[i] * rates[i + 1];
  return 1 - none;
}

double rate_as_printed(const ForgetfulBloom& filter) {
  std::vector<double> rates;
  for (unsigned role = 0; role < filter.filter_count(); ++role) {
    const std::uint64_t older = role == 0 ? 0 : filter.keys_of_period(role - 1);
    rates.push_back(bloom_rate_approximated(filter.shape().bits, filter.shape().probes,
                                            filter.keys_of_period(role) + older));
  }
  return forgetful_rate_as_printed(rates);
}

}  // namespace helenus::filters
