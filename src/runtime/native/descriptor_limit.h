// DescriptorLimit: how many files and sockets this process may have open at once.
#pragma once

#include <cstdint>

namespace helenus::runtime::native {

// Raises the limit as far as the system allows without asking (many systems begin with 1024, for
// programs that are older than poll), and gives what is in force now.
std::uint64_t raise_descriptor_limit();

}  // namespace helenus::runtime::native
