// MachineId: the number of a machine in its world, from zero on in the order added.
#pragma once

#include <cstdint>

namespace helenus::sim {

using MachineId = std::uint32_t;

}  // namespace helenus::sim
