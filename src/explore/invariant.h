// The names of what must hold; oracle.h says what each means.
#pragma once

#include <cstdint>

namespace helenus::explore {

enum class Invariant : std::uint8_t { i0, i1, i2, i2_merged, a1, s2, t, d, q };

}  // namespace helenus::explore
