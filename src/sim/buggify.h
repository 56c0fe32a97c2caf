// SimBuggify: rare branches taken on purpose. A site is active in a quarter of all seeds, and an
// active one fires now and then, with a probability of its own. Every site draws from a stream
// named after it, so that visiting one never shifts another.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/prng.h"
#include "runtime/runtime.h"

namespace helenus::sim {

class SimBuggify final : public runtime::Buggify {
 public:
  static constexpr double kActiveChance = 0.25;
  static constexpr std::array<double, 3> kFireChances = {0.01, 0.05, 0.25};

  struct Site {
    base::Prng prng;
    double fire_chance;  // zero if the site is not active
    std::uint64_t visits = 0;
    std::uint64_t fired = 0;
  };

  SimBuggify(std::uint64_t seed, bool enabled) : seed_(seed), enabled_(enabled) {}

  bool fires(std::string_view site) override;
  // Nothing fires while disabled; visits are counted on.
  void enable(bool enabled) { enabled_ = enabled; }
  const std::map<std::string, Site, std::less<>>& sites() const { return sites_; }
  void add_to(base::Digest& digest);

 private:
  std::uint64_t seed_;
  bool enabled_;
  std::map<std::string, Site, std::less<>> sites_;
};

}  // namespace helenus::sim
