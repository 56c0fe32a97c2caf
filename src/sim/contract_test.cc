// The runtime's contract suites, run in the simulator, under several seeds: what they promise must
// hold in any order of events.
#include "runtime/contract/contract.h"

#include "sim/sim_world.h"

namespace helenus::runtime::contract {

namespace {

const auto kWorlds = testing::Values(sim::sim_world_factory(1), sim::sim_world_factory(2),
                                     sim::sim_world_factory(3), sim::sim_world_factory(4));

}  // namespace

INSTANTIATE_TEST_SUITE_P(Sim, TimersContract, kWorlds, world_name);
INSTANTIATE_TEST_SUITE_P(Sim, PrimitivesContract, kWorlds, world_name);
INSTANTIATE_TEST_SUITE_P(Sim, PrioritiesContract, kWorlds, world_name);
INSTANTIATE_TEST_SUITE_P(Sim, CoresContract, kWorlds, world_name);
INSTANTIATE_TEST_SUITE_P(Sim, FileSystemContract, kWorlds, world_name);
INSTANTIATE_TEST_SUITE_P(Sim, TransportContract, kWorlds, world_name);

}  // namespace helenus::runtime::contract
