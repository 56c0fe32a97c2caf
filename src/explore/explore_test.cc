// The named scopes, the mutants, and the explorer's own honesty.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "explore/action.h"
#include "explore/crosscheck.h"
#include "explore/search.h"
#include "explore/story.h"
#include "explore/symmetry.h"

namespace helenus::explore {
namespace {

const Progress kGoOn = [](const Outcome&) { return true; };

std::string told(const Scope& scope, const Outcome& outcome) {
  if (!outcome.found) return {};
  return story_of(scope, outcome.found->schedule, outcome.found->violation);
}

void expect_exhausted(std::string_view name) {
  ASSERT_NE(find_scope(name), nullptr);
  const Scope& scope = *find_scope(name);
  const Outcome outcome = search_all(scope, {}, kGoOn);
  fmt::print("{}: {}\n  {} states, {} transitions, depth {}, {} quiescence checks\n", scope.name,
             scope.what, outcome.states, outcome.transitions, outcome.depth,
             outcome.quiescence_checks);
  EXPECT_FALSE(outcome.found) << told(scope, outcome);
  EXPECT_TRUE(outcome.complete);
}

void expect_walked(std::string_view name, std::uint64_t schedules) {
  const Scope& scope = *find_scope(name);
  const WalkOptions options{.seed = 1, .schedules = schedules, .steps_max = 60, .visit = {}};
  const Outcome outcome = search_random(scope, options, kGoOn);
  fmt::print("{}: {}\n  {} schedules, {} states\n", scope.name, scope.what, outcome.schedules,
             outcome.states);
  EXPECT_FALSE(outcome.found) << told(scope, outcome);
  EXPECT_EQ(outcome.schedules, schedules);
}

TEST(Exhaustive, RowUnderACrashWithTailLoss) {
  expect_exhausted("row-crash-small");
}
TEST(Exhaustive, TwoRowsOnTwoReplicas) {
  expect_exhausted("two-rows-small");
}
TEST(Exhaustive, LastWriterWinsWithAPendingMember) {
  expect_exhausted("lww-pending-small");
}
TEST(Exhaustive, RangeDeletes) {
  expect_exhausted("lww-scope");
}
TEST(Exhaustive, ExpiringValues) {
  expect_exhausted("lww-expiry");
}

TEST(Exhaustive, RangeDeletesAtExplicitTimes) {
  expect_exhausted("lww-explicit-range");
}
TEST(Exhaustive, ClocksThatAreTold) {
  expect_exhausted("lww-announce");
}
TEST(Exhaustive, ReentryByPulling) {
  expect_exhausted("cell-reenter");
}

TEST(RandomSchedules, Siblings) {
  expect_walked("group", 200'000);
}
TEST(RandomSchedules, LastWriterWins) {
  expect_walked("lww-group", 150'000);
}
TEST(RandomSchedules, LastWriterWinsUnderACrash) {
  expect_walked("lww-group-crash", 250'000);
}
TEST(RandomSchedules, LastWriterWinsUnderCrashesAndPulls) {
  expect_walked("lww-group-pull", 150'000);
}
TEST(RandomSchedules, SiblingsAndRingChanges) {
  expect_walked("ring", 150'000);
}
TEST(RandomSchedules, LastWriterWinsAndRingChanges) {
  expect_walked("lww-ring", 250'000);
}

TEST(Library, AgreesWithTheMasksOnRandomSchedules) {
  for (const char* name : {"group", "lww-group-crash", "lww-group-pull", "ring", "lww-ring"}) {
    const Scope& scope = *find_scope(name);
    WalkOptions options{.seed = 3, .schedules = 60, .steps_max = 60, .visit = {}};
    options.visit = [&scope](const State& state) { compare_with_library(state, scope); };
    EXPECT_FALSE(search_random(scope, options, kGoOn).found);
  }
}

TEST(Mutants, EveryOneIsFound) {
  fmt::print("{:32} {:16} {:>9} {:>5}\n", "mutant", "scope", "states", "steps");
  for (const MutantInfo& mutant : mutants()) {
    Scope scope = *find_scope(mutant.scope);
    scope.mutant = mutant.mutant;
    const Outcome outcome = search_mutant(mutant, 5, kGoOn);
    ASSERT_TRUE(outcome.found) << mutant.name << " was not found";
    const Invariant broken = outcome.found->violation.invariant;
    EXPECT_EQ(broken == Invariant::i2_merged ? Invariant::i2 : broken, mutant.keeps)
        << mutant.name << " was found for another reason:\n"
        << told(scope, outcome);
    scope.mutant = Mutant::none;
    const auto innocent = replay_possible(scope, outcome.found->schedule);
    EXPECT_FALSE(innocent) << mutant.name
                           << ": the rules as they are break too: " << innocent->what;
    scope.mutant = mutant.mutant;
    fmt::print("{:32} {:16} {:>9} {:>5}\n{}", mutant.name, mutant.scope, outcome.states,
               outcome.found->schedule.size(), told(scope, outcome));
  }
}

TEST(Mutants, AreListedOnceEach) {
  std::set<std::string_view> names;
  for (const MutantInfo& mutant : mutants()) {
    EXPECT_TRUE(names.insert(mutant.name).second) << mutant.name;
    EXPECT_NE(find_scope(mutant.scope), nullptr) << mutant.scope;
  }
}

// The premise of symmetry.h: a step taken under other names leads to the same state under other
// names, and what is forgotten makes no difference to any step or invariant after it.
class Twin {
 public:
  Twin(const Scope& scope, std::uint64_t seed)
      : scope_(scope), symmetry_(scope), random_(seed), state_(initial_state(scope)) {}

  void advance() {
    std::vector<Action> actions;
    each_action(state_, scope_, Writes::none, [&](Action action) { actions.push_back(action); });
    for (int i = 0; i < 4; ++i) actions.push_back(random_write(scope_, random_));
    const Action action = actions[random_.below(actions.size())];
    const auto renamings = symmetry_.renamings();
    const Renaming names =
        with_events_in_normal_form(state_, scope_, renamings[random_.below(renamings.size())]);
    State next = state_;
    State twin = renamed(without_the_forgotten(state_, scope_), names);
    const bool possible = step(next, scope_, action);
    ASSERT_EQ(step(twin, scope_, renamed(action, names)), possible);
    if (!possible) return;
    // Which of two events comes first in a normal form may change with a new one; classes may not.
    const auto left = symmetry_.fingerprint(next);
    const auto right = symmetry_.fingerprint(twin);
    ASSERT_TRUE(left == right) << told(state_, scope_, action);
    ASSERT_EQ(check(next, scope_).has_value(), check(twin, scope_).has_value());
    state_ = next;
  }

 private:
  const Scope& scope_;
  Symmetry symmetry_;
  base::Prng random_;
  State state_;
};

TEST(Symmetry, StepsUnderOtherNamesLeadToTheSameClassOfStates) {
  for (const Scope& scope : named_scopes()) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Twin twin(scope, seed);
      for (int i = 0; i < 60; ++i) {
        twin.advance();
        if (HasFatalFailure()) FAIL() << scope.name << ", seed " << seed << ", step " << i;
      }
    }
  }
}

TEST(Symmetry, FindsWhatASearchOfAllNamesFinds) {
  for (const char* name : {"lww-scope", "lww-expiry", "two-rows-crash"}) {
    Scope scope = *find_scope(name);
    scope.quiescence_every = 0;
    const Outcome classes = search_all(scope, {}, kGoOn);
    const Outcome states = search_all(scope, {.up_to_names = false}, kGoOn);
    fmt::print("{}: {} classes of {} states\n", name, classes.states, states.states);
    EXPECT_TRUE(classes.complete && states.complete);
    EXPECT_LT(classes.states, states.states);
  }
}

TEST(Search, IsTheSameEveryTime) {
  const Scope& scope = *find_scope("lww-group");
  const WalkOptions options{.seed = 9, .schedules = 50, .steps_max = 60, .visit = {}};
  EXPECT_EQ(search_random(scope, options, kGoOn).states,
            search_random(scope, options, kGoOn).states);
}

TEST(Search, StopsWhenAsked) {
  const Progress stop = [](const Outcome&) { return false; };
  const Outcome outcome = search_all(*find_scope("row-crash"), {}, stop);
  EXPECT_FALSE(outcome.complete);
  EXPECT_FALSE(outcome.found);
}

TEST(Shrink, LeavesOnlyWhatTheViolationNeeds) {
  Scope scope = *find_scope("group");
  scope.mutant = Mutant::put_covers_own_dots;
  const WalkOptions options{.seed = 2, .schedules = 1000, .steps_max = 60, .visit = {}};
  const Outcome outcome = search_random(scope, options, kGoOn);
  ASSERT_TRUE(outcome.found);
  EXPECT_LE(outcome.found->schedule.size(), 4U) << told(scope, outcome);
}

}  // namespace
}  // namespace helenus::explore
