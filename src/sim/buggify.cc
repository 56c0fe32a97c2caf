#include "sim/buggify.h"

namespace helenus::sim {

bool SimBuggify::fires(std::string_view name) {
  auto found = sites_.find(name);
  if (found == sites_.end()) {
    base::Prng prng = base::Prng::for_purpose(seed_, name, base::hash64(base::as_bytes("buggify")));
    const bool active = prng.chance(kActiveChance);
    const double chance = kFireChances[prng.below(kFireChances.size())];
    found = sites_.emplace(name, Site{.prng = prng, .fire_chance = active ? chance : 0}).first;
  }
  Site& site = found->second;
  ++site.visits;
  const bool fires = enabled_ && site.prng.chance(site.fire_chance);
  site.fired += fires ? 1 : 0;
  return fires;
}

void SimBuggify::add_to(base::Digest& digest) {
  for (auto& [name, site] : sites_) {
    digest.add(base::as_bytes(name));
    digest.add(site.prng.next());
  }
}

}  // namespace helenus::sim
