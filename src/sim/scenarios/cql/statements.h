// Random statements to a node, or to three that replicate at QUORUM, judged by a reference that is
// too simple to be wrong. Now and then a node is stopped and started, or its process or its machine
// dies; what was acknowledged is there ever after. Of three nodes one that died is away for a
// while, and the others go on.
#pragma once

#include "sim/scenario.h"

namespace helenus::sim {

RunOutcome run_cql_statements(const RunOptions& options);
RunOutcome run_cql_statements_of_three(const RunOptions& options);

}  // namespace helenus::sim
