// The node scenario: one Node as the server runs it, killed and restarted, on a disk that fails and
// loses what was not synced. Whoever asks for its health is told the same identity for ever.
#pragma once

#include <memory>

#include "sim/scenario.h"

namespace helenus::sim {

std::unique_ptr<Scenario> make_node_identity_scenario();

}  // namespace helenus::sim
