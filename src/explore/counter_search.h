// Searching worlds of counters: all schedules of a small one, random schedules of a large one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "explore/counter_scope.h"
#include "explore/counter_world.h"

namespace helenus::explore {

struct CounterOutcome {
  std::uint64_t states = 0;
  std::uint64_t transitions = 0;
  std::uint64_t schedules = 0;
  std::uint64_t rests = 0;  // states whose rest was checked
  int depth = 0;
  bool complete = false;
  // What did not hold, and the steps that led there.
  std::optional<std::string> violation = std::nullopt;
  std::vector<CounterAction> schedule = {};
};

using CounterProgress = std::function<bool(const CounterOutcome&)>;

CounterOutcome search_all(const CounterScope& scope, std::uint64_t states_max,
                          const CounterProgress& progress);
CounterOutcome search_random(const CounterScope& scope, std::uint64_t seed, std::uint64_t schedules,
                             int steps_max, const CounterProgress& progress);
// Repeats what can be repeated of a schedule; what did not hold, if anything.
std::optional<std::string> replay_possible(const CounterScope& scope,
                                           const std::vector<CounterAction>& schedule);
std::string story_of(const CounterOutcome& outcome);

}  // namespace helenus::explore
