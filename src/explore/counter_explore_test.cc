// Worlds of counters: small ones whole, large ones by random schedules, and every mutant.
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/test_scale.h"
#include "explore/counter_search.h"

namespace helenus::explore {
namespace {

const CounterProgress kGoesOn = [](const CounterOutcome&) { return true; };

void expect_all_walked(std::string_view name) {
  const CounterScope& scope = *find_counter_scope(name);
  const CounterOutcome outcome = search_all(scope, ~std::uint64_t{0}, kGoesOn);
  fmt::print("{}: {}\n  {} states, {} transitions, depth {}, {} checked at rest\n", scope.name,
             scope.what, outcome.states, outcome.transitions, outcome.depth, outcome.rests);
  EXPECT_FALSE(outcome.violation) << story_of(outcome);
  EXPECT_TRUE(outcome.complete);
}

void expect_random_walks(std::string_view name, std::uint64_t schedules) {
  const CounterScope& scope = *find_counter_scope(name);
  const CounterOutcome outcome = search_random(scope, 1, schedules, 60, kGoesOn);
  fmt::print("{}: {}\n  {} schedules, {} states\n", scope.name, scope.what, outcome.schedules,
             outcome.states);
  EXPECT_FALSE(outcome.violation) << story_of(outcome);
}

std::uint64_t scaled(std::uint64_t count) {
  return base::count_from_environment("HELENUS_COUNTER_SCHEDULES", count);
}

TEST(CounterExhaustive, TwoReplicas) {
  expect_all_walked("counter-two");
}
TEST(CounterExhaustive, Deletes) {
  expect_all_walked("counter-deletes");
}
TEST(CounterExhaustive, Fragments) {
  expect_all_walked("counter-fragments");
}
TEST(CounterExhaustive, Copies) {
  expect_all_walked("counter-copies");
}

TEST(CounterRandomSchedules, Storage) {
  expect_random_walks("counters", scaled(1500));
}
TEST(CounterRandomSchedules, Joins) {
  expect_random_walks("counters-ring", scaled(1500));
}

TEST(CounterRandomSchedules, Copies) {
  expect_random_walks("counters-copies", scaled(1500));
}

TEST(CounterMutants, EveryOneIsFound) {
  std::set<std::string_view> names;
  for (const CounterMutantInfo& mutant : counter_mutants()) {
    EXPECT_TRUE(names.insert(mutant.name).second) << mutant.name;
    CounterScope scope = *find_counter_scope(mutant.scope);
    scope.mutant = mutant.mutant;
    const CounterOutcome outcome = search_random(scope, 5, 100'000, 60, kGoesOn);
    ASSERT_TRUE(outcome.violation) << mutant.name << " was not found";
    fmt::print("{:32} {:>7} schedules {:>8} states {:>3} steps: {}\n", mutant.name,
               outcome.schedules, outcome.states, outcome.schedule.size(), *outcome.violation);
    scope.mutant = CounterMutant::none;
    const auto innocent = replay_possible(scope, outcome.schedule);
    EXPECT_FALSE(innocent) << mutant.name << ": the rules as they are break too: " << *innocent;
  }
}

}  // namespace
}  // namespace helenus::explore
