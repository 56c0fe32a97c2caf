// Five nodes found one cluster and no second, and all become its members, whatever happens while
// they do.
#pragma once

#include <memory>

#include "sim/scenario.h"

namespace helenus::sim {

std::unique_ptr<Scenario> make_founding_scenario();

}  // namespace helenus::sim
