// Deliberately wrong systems, kept to prove that the simulator can fail: each is a right one
// (scenarios/register.h, scenarios/mint.h) with one line missing, and each must be caught.
#pragma once

#include <span>

#include "sim/scenario.h"

namespace helenus::sim {

std::span<const ScenarioInfo> toys();

}  // namespace helenus::sim
