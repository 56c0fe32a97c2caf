// Words for people: names of replicas, events and cells, and schedules told as stories.
#pragma once

#include <span>
#include <string>

#include "explore/action.h"
#include "explore/oracle.h"
#include "explore/scope.h"
#include "explore/state.h"

namespace helenus::explore {

// Replicas are a, b, c, d; events w1, w2, ... in the order they were minted.
std::string name_of_replica(int replica);
std::string names_of_replicas(Mask replicas);
std::string name_of_event(const State& state, int event);
std::string names_of(const State& state, Events events);
std::string names_of_cells(Mask cells);

// The schedule, one numbered line an action, and what is wrong at its end.
std::string story_of(const Scope& scope, std::span<const Action> schedule,
                     const Violation& violation);

}  // namespace helenus::explore
