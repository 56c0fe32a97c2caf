// Nodes that keep all concurrent values, and clients that write under contexts, old and new, while
// everything fails: a value stays until somebody who has seen it replaces it, and then it is gone;
// when the faults are over all nodes come to show the same values.
#pragma once

#include <memory>

#include "sim/scenario.h"

namespace helenus::sim {

struct SiblingsScenarioOptions {
  // Wrong on purpose: clients read at ONE, and take it for what they read at QUORUM.
  bool reads_too_few = false;
};

std::unique_ptr<Scenario> make_siblings_scenario(const SiblingsScenarioOptions& options);

}  // namespace helenus::sim
