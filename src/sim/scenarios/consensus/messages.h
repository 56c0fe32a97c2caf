// The consensus register as a whole, in a small world of messages: what clients saw must be what
// one register can have shown them, while messages are lost, repeated and reordered, acceptors
// crash and are replaced, and proposers die midway.
#pragma once

#include "sim/scenario.h"

namespace helenus::sim {

RunOutcome run_consensus_messages(const RunOptions& options);

}  // namespace helenus::sim
