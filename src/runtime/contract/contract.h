// The contract suites, by name, for a world to instantiate:
//   using namespace helenus::runtime::contract;
//   INSTANTIATE_TEST_SUITE_P(Native, TimersContract, testing::Values(make_native_world));
#pragma once

#include "runtime/contract/world.h"

namespace helenus::runtime::contract {

class TimersContract : public WorldTest {};
class PrimitivesContract : public WorldTest {};
class CoresContract : public WorldTest {};

}  // namespace helenus::runtime::contract
