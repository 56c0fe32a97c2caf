// The simulator as a world of the contract suites: one machine without faults.
#pragma once

#include <cstdint>

#include "runtime/contract/world.h"

namespace helenus::sim {

// One for each seed: what holds must hold in any order of events.
runtime::contract::WorldFactory sim_world_factory(std::uint64_t seed);

}  // namespace helenus::sim
