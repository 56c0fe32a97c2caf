#include "explore/counter_search.h"

#include <utility>

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include "base/prng.h"

namespace helenus::explore {

namespace {

constexpr std::uint64_t kCounterLookEvery = 4096;

using CounterKey = std::pair<std::uint64_t, std::uint64_t>;

CounterKey counter_key_of(const CounterState& state) {
  const base::Hash128 hash = digest_of(state);
  return {hash.high, hash.low};
}

struct CounterStep {
  std::size_t parent;
  CounterAction action;
};

std::vector<CounterAction> counter_schedule_to(const std::vector<CounterStep>& visited,
                                               std::size_t at) {
  std::vector<CounterAction> schedule;
  for (; at != 0; at = visited[at].parent) schedule.push_back(visited[at].action);
  return {schedule.rbegin(), schedule.rend()};
}

}  // namespace

CounterOutcome search_all(const CounterScope& scope, std::uint64_t states_max,
                          const CounterProgress& progress) {
  CounterOutcome outcome;
  absl::flat_hash_set<CounterKey> seen;
  std::vector<CounterStep> visited = {{}};
  struct Waiting {
    CounterState state;
    std::size_t number;
  };
  std::vector<Waiting> layer = {{initial_counter_state(scope), 0}};
  seen.insert(counter_key_of(layer.front().state));
  for (outcome.states = 1; !layer.empty(); ++outcome.depth) {
    std::vector<Waiting> next_layer;
    for (const Waiting& from : layer) {
      for (const CounterAction& action : counter_actions(from.state, scope)) {
        CounterState next = from.state;
        if (!step(next, scope, action)) continue;
        ++outcome.transitions;
        if (!seen.insert(counter_key_of(next)).second) continue;
        visited.push_back({from.number, action});
        if (++outcome.states % kCounterLookEvery == 0 && !progress(outcome)) return outcome;
        outcome.violation = check(next, scope);
        if (!outcome.violation && outcome.states % 16 == 0) {
          ++outcome.rests;
          outcome.violation = check_counter_rest(next, scope);
        }
        if (outcome.violation) {
          outcome.schedule = counter_schedule_to(visited, visited.size() - 1);
          return outcome;
        }
        next_layer.push_back({std::move(next), visited.size() - 1});
      }
      if (outcome.states >= states_max) return outcome;
    }
    layer = std::move(next_layer);
  }
  outcome.complete = true;
  return outcome;
}

CounterOutcome search_random(const CounterScope& scope, std::uint64_t seed, std::uint64_t schedules,
                             int steps_max, const CounterProgress& progress) {
  CounterOutcome outcome;
  base::Prng prng = base::Prng::for_purpose(seed, "schedules of counters");
  for (; outcome.schedules < schedules; ++outcome.schedules) {
    if (outcome.schedules % 64 == 0 && !progress(outcome)) return outcome;
    CounterState state = initial_counter_state(scope);
    std::vector<CounterAction> schedule;
    const auto found = [&](std::optional<std::string> violation) {
      if (!violation) return false;
      outcome.violation = std::move(violation);
      outcome.schedule = schedule;
      return true;
    };
    for (int i = 0; i < steps_max; ++i) {
      std::vector<CounterAction> actions = counter_actions(state, scope);
      while (!actions.empty()) {
        std::swap(actions[prng.below(actions.size())], actions.back());
        const CounterAction action = actions.back();
        actions.pop_back();
        CounterState next = state;
        if (!step(next, scope, action)) continue;
        state = std::move(next);
        schedule.push_back(action);
        break;
      }
      ++outcome.states;
      if (found(check(state, scope))) return outcome;
    }
    ++outcome.rests;
    if (found(check_counter_rest(state, scope))) return outcome;
  }
  return outcome;
}

std::optional<std::string> replay_possible(const CounterScope& scope,
                                           const std::vector<CounterAction>& schedule) {
  CounterState state = initial_counter_state(scope);
  for (const CounterAction& action : schedule) {
    CounterState next = state;
    if (!step(next, scope, action)) continue;
    state = std::move(next);
    if (auto violation = check(state, scope)) return violation;
  }
  return std::nullopt;
}

std::string story_of(const CounterOutcome& outcome) {
  std::string text;
  for (std::size_t i = 0; i < outcome.schedule.size(); ++i) {
    text += fmt::format("{:4}  {}\n", i + 1, story_of(outcome.schedule[i]));
  }
  return text + fmt::format("      {}\n", outcome.violation.value_or("nothing is broken"));
}

}  // namespace helenus::explore
