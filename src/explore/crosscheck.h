// The explorer's masks against the causality library's types.
//
// Translates a state into clocks, cell stores, partitions and deltas, performs every operation of
// the library on them, and compares with what the masks say. Since the rules do nothing but these
// operations, a schedule run on the library's types visits the same states.
#pragma once

#include "explore/scope.h"
#include "explore/state.h"

namespace helenus::explore {

// Asserts that the library agrees on everything in this state.
void compare_with_library(const State& state, const Scope& scope);

}  // namespace helenus::explore
