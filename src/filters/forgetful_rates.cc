#include "filters/forgetful_rates.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/assert.h"

namespace helenus::filters {

double bloom_fill(std::uint64_t bits, unsigned probes, std::uint64_t keys) {
  ASSERT(bits > 0);
  if (keys == 0) return 0;  // of a single bit, the logarithm below is infinite
  const double set = static_cast<double>(keys) * probes;
  return -std::expm1(set * std::log1p(-1.0 / static_cast<double>(bits)));
}

double bloom_rate(std::uint64_t bits, unsigned probes, std::uint64_t keys) {
  return std::pow(bloom_fill(bits, probes, keys), probes);
}

double chain_rate(std::span<const double> alone, std::span<const double> both) {
  ASSERT(!alone.empty() && both.size() + 1 == alone.size());
  // The logarithm of "none": events are rare, and one minus a product of many would lose them.
  double none = std::log1p(-alone[0]);
  for (std::size_t i = 0; i < both.size(); ++i) {
    if (alone[i] >= 1) return 1;
    const double next_only = std::max(0.0, alone[i + 1] - both[i]);
    none += std::log1p(-std::min(1.0, next_only / (1 - alone[i])));
  }
  return -std::expm1(none);
}

namespace {

// A filter is the bits of two periods; an event asks one filter, or two neighbours, or three. What
// an event needs of one bit is decided by the periods from `first` on, four at most.
class BitOdds {
 public:
  explicit BitOdds(std::span<const double> period_fills) : fills_(period_fills) {}

  // That a bit is set in all filters from `first` to `last`. Requires: last - first <= 2.
  double in_all(std::size_t first, std::size_t last) const {
    ASSERT(first <= last && last - first <= 2 && last < fills_.size());
    const std::size_t from = first == 0 ? 0 : first - 1;
    const std::size_t periods = last - from + 1;
    double odds = 0;
    for (unsigned set = 0; set < (1U << periods); ++set) {
      if (!covers(set, from, first, last)) continue;
      double probability = 1;
      for (std::size_t i = 0; i < periods; ++i) {
        const double fill = fills_[from + i];
        probability *= ((set >> i) & 1) != 0 ? fill : 1 - fill;
      }
      odds += probability;
    }
    return odds;
  }

 private:
  // Whether each filter has one of its two periods in `set`, whose lowest bit is period `from`.
  static bool covers(unsigned set, std::size_t from, std::size_t first, std::size_t last) {
    for (std::size_t filter = first; filter <= last; ++filter) {
      const unsigned older = (set >> (filter - from)) & 1;
      const unsigned newer = filter == 0 ? 0 : (set >> (filter - 1 - from)) & 1;
      if ((older | newer) == 0) return false;
    }
    return true;
  }

  std::span<const double> fills_;
};

// `last` is the first filter that the last event asks for; it asks for all from there on.
double optimised_rate(std::span<const double> period_fills, unsigned probes, std::size_t last) {
  const std::size_t oldest = period_fills.size() - 1;
  const BitOdds odds(period_fills);
  const auto rate = [&](std::size_t first, std::size_t last) {
    return std::pow(odds.in_all(first, last), probes);
  };
  std::vector<double> alone{rate(0, 0)};
  std::vector<double> both;
  for (std::size_t i = 1; i + 1 < oldest; ++i) {
    alone.push_back(rate(i, i + 1));
    both.push_back(rate(i - 1, i + 1));
  }
  alone.push_back(rate(last, oldest));
  both.push_back(rate(oldest - 2, oldest));
  return chain_rate(alone, both);
}

}  // namespace

double forgetful_rate(std::span<const double> period_fills, unsigned probes) {
  ASSERT(period_fills.size() >= 3);
  return optimised_rate(period_fills, probes, period_fills.size() - 1);
}

double forgetful_rate_of_printed_check(std::span<const double> period_fills, unsigned probes) {
  ASSERT(period_fills.size() >= 3);
  const std::size_t oldest = period_fills.size() - 1;
  return optimised_rate(period_fills, probes, period_fills.size() == 3 ? oldest : oldest - 1);
}

double forgetful_rate_simple(std::span<const double> period_fills, unsigned probes) {
  ASSERT(period_fills.size() >= 3);
  const BitOdds odds(period_fills);
  std::vector<double> alone;
  std::vector<double> both;
  for (std::size_t i = 0; i < period_fills.size(); ++i) {
    alone.push_back(std::pow(odds.in_all(i, i), probes));
    if (i > 0) both.push_back(std::pow(odds.in_all(i - 1, i), probes));
  }
  return chain_rate(alone, both);
}

double sliced_rate(std::span<const double> fills, unsigned probes) {
  double none = 0;
  for (const double fill : fills) none += std::log1p(-std::pow(fill, probes));
  return -std::expm1(none);
}

}  // namespace helenus::filters
