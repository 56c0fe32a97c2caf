#include "cluster/founding_rule.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace helenus::cluster {

FoundingStep next_founding_step(const runtime::Address& self,
                                std::span<const runtime::Address> seeds,
                                const SeedAnswers& answers) {
  using Kind = FoundingStep::Kind;
  if (!answers.informed.empty()) return {.kind = Kind::fetch_metadata};
  if (!answers.silent.empty()) {
    return {.kind = Kind::wait,
            .waits_for = fmt::format("{} to say whether there is a cluster",
                                     fmt::join(answers.silent, " and "))};
  }
  const auto founder = std::ranges::min_element(seeds);
  if (founder == seeds.end() || *founder == self) return {.kind = Kind::found};
  return {.kind = Kind::wait, .waits_for = fmt::format("{} to found the cluster", *founder)};
}

}  // namespace helenus::cluster
