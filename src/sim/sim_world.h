// The simulator as a world of the contract suites: one machine without faults.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/contract/world.h"

namespace helenus::sim {

// A WorldFactory; the seed is fixed.
std::unique_ptr<runtime::contract::World> make_sim_world(std::uint32_t cores);
// One for each seed: what holds must hold in any order of events.
runtime::contract::WorldFactory sim_world_factory(std::uint64_t seed);

}  // namespace helenus::sim
