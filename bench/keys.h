// Which keys a workload touches: uniform, or zipfian as YCSB has it.
//
// The zipfian ranks come from the method of Gray et al. ("Quickly generating billion-record
// synthetic databases"), the exponent is YCSB's 0.99. Rank 0 is the hottest; KeyChooser spreads the
// ranks over the key space by a hash, so that hot keys are not neighbours.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "base/assert.h"
#include "base/hash.h"
#include "base/prng.h"

namespace helenus::bench {

// Draws ranks below `count`: rank r comes with a probability proportional to 1 / (r + 1)^exponent.
// The constructor takes time proportional to `count`, a draw takes one power.
class ZipfianRanks {
 public:
  static constexpr double kYcsbExponent = 0.99;

  // Requires: count >= 2, 0 < exponent < 1.
  explicit ZipfianRanks(std::uint64_t count, double exponent = kYcsbExponent)
      : count_(count), exponent_(exponent), zeta_(zeta(count, exponent)) {
    ASSERT(count >= 2 && exponent > 0 && exponent < 1);
    eta_ = (1 - std::pow(2.0 / static_cast<double>(count), 1 - exponent)) /
           (1 - zeta(2, exponent) / zeta_);
  }

  std::uint64_t next(base::Prng& random) const {
    const double unit = random.unit();
    const double scaled = unit * zeta_;
    if (scaled < 1) return 0;
    if (scaled < 1 + std::pow(0.5, exponent_)) return 1;
    const double position = std::pow(eta_ * (unit - 1) + 1, 1 / (1 - exponent_));
    const auto rank = static_cast<std::uint64_t>(static_cast<double>(count_) * position);
    return rank < count_ ? rank : count_ - 1;
  }
  // How likely rank `rank` is by the law; what `next` draws is close to it, not equal.
  double probability(std::uint64_t rank) const {
    return std::pow(static_cast<double>(rank + 1), -exponent_) / zeta_;
  }

 private:
  static double zeta(std::uint64_t count, double exponent) {
    double sum = 0;
    for (std::uint64_t i = 1; i <= count; ++i) sum += std::pow(static_cast<double>(i), -exponent);
    return sum;
  }

  std::uint64_t count_;
  double exponent_;
  double zeta_;
  double eta_ = 0;
};

enum class Distribution : std::uint8_t { uniform, zipfian };

// Draws keys below `count`. Requires: count >= 2.
class KeyChooser {
 public:
  KeyChooser(Distribution distribution, std::uint64_t count) : count_(count) {
    if (distribution == Distribution::zipfian) ranks_.emplace(count);
  }
  std::uint64_t next(base::Prng& random) const {
    return ranks_ ? base::mix64(ranks_->next(random)) % count_ : random.below(count_);
  }

 private:
  std::uint64_t count_;
  std::optional<ZipfianRanks> ranks_;
};

}  // namespace helenus::bench
