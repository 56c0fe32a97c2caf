// The echo scenario: clients send frames of all sizes to a server and get them back. Whatever the
// network and the processes do, an answer that comes is the frame that was sent.
#pragma once

#include <memory>

#include "sim/scenario.h"

namespace helenus::sim {

std::unique_ptr<Scenario> make_echo_scenario();

}  // namespace helenus::sim
