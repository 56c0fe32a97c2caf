// The oracle: what must hold, judged with the full causal history.
//
//   I0  one dot, one mutation, for ever
//   I1  a clock claims only what the data reflects
//   I2  what a reader sees of a cell are the maximal events among those applied to it, resolved
//       by the table's policy: at once no lost update, no false sibling, no zombie. Of one replica,
//       and of any two merged, as a quorum read merges them
//   A1  every read quorum of the newest epoch reflects every acknowledged write
//   S2  a quorum delete covers every write acknowledged before it
//   T   a timestamp exceeds those of all unstable mutations of its cells that its writer had seen
//   D   an explicit timestamp stays as it was given
//   Q   when everybody has talked to everybody: equal clocks, equal bytes, empty mutation logs, no
//       context left
#pragma once

#include <optional>
#include <string>

#include "explore/invariant.h"
#include "explore/scope.h"
#include "explore/state.h"

namespace helenus::explore {

struct Violation {
  Invariant invariant;
  // What was found, in words.
  std::string what;
};

// The first of I0, I1, I2, A1, S2, T, D that does not hold in this state.
std::optional<Violation> check(const State& state, const Scope& scope);

// Lets everything that can happen by itself happen, without faults and without operations, and
// checks Q and everything else at the end.
std::optional<Violation> check_quiescence(const State& state, const Scope& scope);

// The events applied to a cell that no other event applied to it had seen.
Events maximal(const State& state, int cell, Events applied);

}  // namespace helenus::explore
