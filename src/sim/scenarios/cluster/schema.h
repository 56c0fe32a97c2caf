// Three nodes whose schema is changed from all sides: what was acknowledged is in the one schema of
// all, no two nodes ever know different metadata of one version, and no tablet has other replicas
// in one epoch.
#pragma once

#include <memory>

#include "sim/scenario.h"

namespace helenus::sim {

std::unique_ptr<Scenario> make_schema_scenario();

}  // namespace helenus::sim
