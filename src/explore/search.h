// Searching: every schedule of a small scope, or random schedules of a large one.
//
// Exhaustive search is breadth first, so the first violation has a shortest schedule. Visited
// states are remembered by a 128-bit hash; with n states the chance that two differ and hash alike
// is about n^2 / 2^129: for 10^8 states 10^-23. A state is kept as its hash and the step that first
// led to it, about 36 bytes, and is made again from its schedule when its turn comes.
//
// Random search walks until nothing is possible or the walk is long enough, checks every state on
// the way, and quiescence at the end. A violation's schedule is shortened by leaving out actions
// for as long as the same invariant still breaks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "explore/action.h"
#include "explore/oracle.h"
#include "explore/scope.h"
#include "explore/state.h"

namespace helenus::explore {

struct Found {
  Violation violation;
  std::vector<Action> schedule;
};

struct Outcome {
  std::optional<Found> found;
  std::uint64_t states = 0;
  std::uint64_t transitions = 0;
  std::uint64_t quiescence_checks = 0;
  std::uint64_t schedules = 0;
  int depth = 0;
  // Whether every reachable state was visited.
  bool complete = false;
};

// Called now and then; false stops the search.
using Progress = std::function<bool(const Outcome&)>;

struct SearchLimits {
  std::uint64_t states_max = 60'000'000;
  // Off, every state counts, not every class of states that differ only in names (symmetry.h).
  bool up_to_names = true;
};

Outcome search_all(const Scope& scope, const SearchLimits& limits, const Progress& progress);

struct WalkOptions {
  std::uint64_t seed = 1;
  std::uint64_t schedules = 1;
  int steps_max = 60;
  // Called for every state visited; for the comparison with the library.
  std::function<void(const State&)> visit;
};
Outcome search_random(const Scope& scope, const WalkOptions& options, const Progress& progress);

// Looks for the mutant in its own scope: by random schedules where it is marked so, else among all,
// first for a schedule that breaks something by itself, then for one that does when all has come to
// rest.
Outcome search_mutant(const MutantInfo& mutant, std::uint64_t seed, const Progress& progress);

// The shortest schedule found by leaving actions out that still ends in the same invariant broken.
Found shrink(const Scope& scope, const Found& found);

// What the schedule breaks in `scope`: after one of its steps, or when all has come to rest after
// the last. Steps that are not possible there are left out.
std::optional<Violation> replay_possible(const Scope& scope, std::span<const Action> schedule);

}  // namespace helenus::explore
