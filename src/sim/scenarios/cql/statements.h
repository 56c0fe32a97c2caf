// Random statements to a node, judged by a reference that is too simple to be wrong. Now and then
// the node is stopped and started, or its process or its machine dies; what was acknowledged is
// there ever after.
#pragma once

#include "sim/scenario.h"

namespace helenus::sim {

RunOutcome run_cql_statements(const RunOptions& options);

}  // namespace helenus::sim
