// The append-log scenario: a log on one node. Clients append records and list them; the node syncs
// before it acknowledges, and recovers from whatever a crash left. What was acknowledged or seen
// is never lost, and a torn tail is never taken for records.
#pragma once

#include <memory>

#include "sim/scenario.h"

namespace helenus::sim {

std::unique_ptr<Scenario> make_append_log_scenario();

}  // namespace helenus::sim
