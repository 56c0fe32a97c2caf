// Histories of the storage engine and of its commit log, as scenarios: each over one simulated
// machine of its own, with crashes and trouble at chosen events instead of a nemesis.
#pragma once

#include <vector>

#include "sim/scenario.h"

namespace helenus::sim {

// Of the engine, without crashes; of the engine, with a way taken at every event; of the log.
std::vector<ScenarioInfo> engine_history_scenarios();
std::vector<ScenarioInfo> engine_crash_scenarios();
std::vector<ScenarioInfo> log_scenarios();

}  // namespace helenus::sim
