// The runtime's contract suites, run in the simulator.
#include "runtime/contract/contract.h"

#include "sim/sim_world.h"

namespace helenus::runtime::contract {

INSTANTIATE_TEST_SUITE_P(Sim, TimersContract, testing::Values(sim::make_sim_world));
INSTANTIATE_TEST_SUITE_P(Sim, PrimitivesContract, testing::Values(sim::make_sim_world));
INSTANTIATE_TEST_SUITE_P(Sim, CoresContract, testing::Values(sim::make_sim_world));

}  // namespace helenus::runtime::contract
