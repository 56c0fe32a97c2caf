// Time as the simulated world knows it: one true clock that no machine can read. Machines see it
// through clocks of their own (local_clock.h).
#pragma once

#include "runtime/time.h"

namespace helenus::sim {

using runtime::Duration;
using namespace std::chrono_literals;

// Nanoseconds since the world began.
using WorldTime = runtime::TimePoint<struct WorldTag>;

}  // namespace helenus::sim
