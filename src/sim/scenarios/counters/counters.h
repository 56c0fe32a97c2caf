// Nodes that replicate counters, and clients that add to them while everything fails: every
// operation has an id, is tried again through other nodes until it is acknowledged, and now and
// then once more after that. What clients may read meanwhile is bounded by what was acknowledged
// and what was begun; when the faults are over and all operations are acknowledged, every counter
// is the sum of them, on all nodes. Each client has a counter of its own that it deletes now and
// then: what was acknowledged before is gone for good, though it be sent again.
#pragma once

#include <memory>

#include "sim/scenario.h"

namespace helenus::sim {

struct CountersScenarioOptions {
  // Wrong on purpose: clients try again without ids.
  bool without_ids = false;
};

std::unique_ptr<Scenario> make_counters_scenario(const CountersScenarioOptions& options);

}  // namespace helenus::sim
