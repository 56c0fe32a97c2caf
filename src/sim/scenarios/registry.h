// The scenarios there are, by name.
#pragma once

#include <string_view>
#include <vector>

#include "sim/scenario.h"

namespace helenus::sim {

// Those that must hold first, then those that must fail.
const std::vector<ScenarioInfo>& all_scenarios();
// Null if there is none of that name.
const ScenarioInfo* find_scenario(std::string_view name);

}  // namespace helenus::sim
