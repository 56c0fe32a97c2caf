// For tests that prove a path to allocate nothing: the program's operators new, which count. They
// replace those of the whole program, so such tests have one of their own.
#pragma once

#include <cstdint>

namespace helenus::storage {

// Calls of operator new since the program began.
std::uint64_t allocations();

}  // namespace helenus::storage
