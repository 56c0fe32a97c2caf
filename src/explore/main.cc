// helenus-explore: walks every schedule of a small tablet group, or random ones of a large group,
// and tells the first one that breaks a promise.
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "explore/counter_search.h"
#include "explore/crosscheck.h"
#include "explore/search.h"
#include "explore/story.h"

namespace {

using namespace helenus::explore;  // NOLINT: a main is nobody's header

// Seconds since the program began. Only the progress line and --seconds look at it.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

struct Options {
  std::string scope = "group";
  std::string mutant;
  std::uint64_t random = 0;
  double seconds = 0;
  std::uint64_t seed = 1;
  int steps = 60;
  std::uint64_t states_max = SearchLimits{}.states_max;
  int operations = -1;
  int pulls = -1;
  int freezes = -1;
  bool list = false;
  bool table = false;
  bool crosscheck = false;
  bool all_names = false;
};

class Reporter {
 public:
  explicit Reporter(const Options& options) : options_(options) {}

  bool operator()(const Outcome& outcome) {
    const double now = watch_.seconds();
    if (now - last_ >= 5) {
      last_ = now;
      fmt::print(stderr, "\r{:8.0f} s  {:>13} states  {:>10} schedules  depth {:3}", now,
                 outcome.states, outcome.schedules, outcome.depth);
      std::fflush(stderr);
      printed_ = true;
    }
    return options_.seconds == 0 || now < options_.seconds;
  }
  double seconds() const { return watch_.seconds(); }
  void end_line() {
    if (printed_) fmt::print(stderr, "\n");
    printed_ = false;
  }

 private:
  const Options& options_;
  Stopwatch watch_;
  double last_ = 0;
  bool printed_ = false;
};

void list() {
  fmt::print("scopes:\n");
  for (const Scope& scope : named_scopes()) fmt::print("  {:16} {}\n", scope.name, scope.what);
  for (const CounterScope& scope : counter_scopes()) {
    fmt::print("  {:16} {}\n", scope.name, scope.what);
  }
  fmt::print("mutants:\n");
  for (const MutantInfo& mutant : mutants()) {
    fmt::print("  {:30} {} (in {})\n", mutant.name, mutant.breaks, mutant.scope);
  }
  for (const CounterMutantInfo& mutant : counter_mutants()) {
    fmt::print("  {:30} {} (in {})\n", mutant.name, mutant.breaks, mutant.scope);
  }
}

Outcome search(const Scope& scope, const Options& options, bool random, Reporter& reporter) {
  const Progress progress = [&](const Outcome& outcome) { return reporter(outcome); };
  if (!random) {
    const SearchLimits limits{.states_max = options.states_max, .up_to_names = !options.all_names};
    return search_all(scope, limits, progress);
  }
  WalkOptions walks{.seed = options.seed,
                    .schedules = options.random == 0 ? ~std::uint64_t{0} : options.random,
                    .steps_max = options.steps,
                    .visit = {}};
  if (options.crosscheck) {
    walks.visit = [&scope](const State& state) { compare_with_library(state, scope); };
  }
  return search_random(scope, walks, progress);
}

void print_counters(const std::string& name, const CounterOutcome& outcome, double seconds,
                    bool random) {
  fmt::print(
      "{}: {} states, {} transitions, {} schedules, depth {}, {} checked at rest, {:.1f} s{}\n",
      name, outcome.states, outcome.transitions, outcome.schedules, outcome.depth, outcome.rests,
      seconds,
      outcome.violation  ? ", VIOLATION"
      : random           ? ", no violation"
      : outcome.complete ? ", exhaustive, no violation"
                         : ", a limit ended it early, no violation so far");
  if (outcome.violation) fmt::print("{}", story_of(outcome));
}

int explore_counters(CounterScope scope, const Options& options, const std::string& name) {
  Reporter reporter(options);
  const CounterProgress progress = [&](const CounterOutcome& outcome) {
    Outcome shown;
    shown.states = outcome.states;
    shown.schedules = outcome.schedules;
    shown.depth = outcome.depth;
    return reporter(shown);
  };
  const bool random = options.random > 0 || scope.mutant != CounterMutant::none;
  const CounterOutcome outcome =
      random ? search_random(scope, options.seed,
                             options.random == 0 ? ~std::uint64_t{0} : options.random,
                             options.steps, progress)
             : search_all(scope, options.states_max, progress);
  reporter.end_line();
  print_counters(name, outcome, reporter.seconds(), random);
  return outcome.violation ? 1 : 0;
}

// None if neither the scope nor the mutant is of counters.
std::optional<int> explore_counters(const Options& options) {
  if (const CounterMutantInfo* mutant = find_counter_mutant(options.mutant)) {
    CounterScope scope = *find_counter_scope(
        options.scope.empty() ? mutant->scope : std::string_view(options.scope));
    scope.mutant = mutant->mutant;
    return explore_counters(scope, options, fmt::format("{} with {}", scope.name, mutant->name));
  }
  const CounterScope* scope = find_counter_scope(options.scope);
  if (scope == nullptr) return std::nullopt;
  return explore_counters(*scope, options, std::string(scope->name));
}

int explore_one(const Options& options) {
  if (const auto result = explore_counters(options)) return *result;
  const MutantInfo* mutant = options.mutant.empty() ? nullptr : find_mutant(options.mutant);
  if (!options.mutant.empty() && mutant == nullptr) {
    fmt::print(stderr, "no mutant is called {}; see --list\n", options.mutant);
    return 2;
  }
  const Scope* named = find_scope(
      mutant != nullptr && options.scope.empty() ? mutant->scope : std::string_view(options.scope));
  if (named == nullptr) {
    fmt::print(stderr, "no scope is called {}; see --list\n", options.scope);
    return 2;
  }
  Scope scope = *named;
  if (mutant != nullptr) scope.mutant = mutant->mutant;
  if (options.operations >= 0) scope.operations = std::min(options.operations, kEventsMax);
  if (options.pulls >= 0) scope.pulls = std::min(options.pulls, kUnlimited);
  if (options.freezes >= 0) scope.freezes = std::min(options.freezes, kUnlimited);
  Reporter reporter(options);
  const bool random = options.random > 0 || (mutant != nullptr && mutant->random);
  const Outcome outcome = search(scope, options, random, reporter);
  reporter.end_line();
  fmt::print(
      "{}{}: {} states, {} transitions, {} schedules, depth {}, {} quiescence checks, "
      "{:.1f} s{}\n",
      scope.name, mutant == nullptr ? "" : fmt::format(" with {}", mutant->name), outcome.states,
      outcome.transitions, outcome.schedules, outcome.depth, outcome.quiescence_checks,
      reporter.seconds(),
      outcome.found      ? ", VIOLATION"
      : random           ? ", no violation"
      : outcome.complete ? ", exhaustive, no violation"
                         : ", a limit ended it early, no violation so far");
  if (!outcome.found) return 0;
  fmt::print("{}", story_of(scope, outcome.found->schedule, outcome.found->violation));
  return 1;
}

int explore_mutants(const Options& options) {
  int missed = 0;
  fmt::print("{:30} {:14} {:>10} {:>6}  {}\n", "mutant", "scope", "states", "steps", "breaks");
  for (const MutantInfo& mutant : mutants()) {
    Reporter reporter(options);
    const Progress progress = [&](const Outcome& outcome) { return reporter(outcome); };
    const Outcome outcome = search_mutant(mutant, options.seed, progress);
    reporter.end_line();
    if (!outcome.found) ++missed;
    fmt::print("{:30} {:14} {:>10} {:>6}  {}\n", mutant.name, mutant.scope, outcome.states,
               outcome.found ? std::to_string(outcome.found->schedule.size()) : "-",
               outcome.found ? outcome.found->violation.what : "NOT FOUND");
    std::fflush(stdout);
  }
  return missed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.scope.clear();
  CLI::App app("Explores the causality rules of a tablet group, every schedule or random ones.");
  app.add_option("--scope", options.scope, "a scope of --list; a mutant's own when absent");
  app.add_option("--mutant", options.mutant, "break one rule of --list");
  app.add_option("--random", options.random, "walk so many random schedules, not all of them");
  app.add_option("--seconds", options.seconds, "stop after so long");
  app.add_option("--seed", options.seed, "of the random schedules");
  app.add_option("--steps", options.steps, "longest random schedule");
  app.add_option("--states", options.states_max, "give up an exhaustive search beyond so many");
  app.add_option("--operations", options.operations, "instead of the scope's own number");
  app.add_option("--pulls", options.pulls, "instead of the scope's own number");
  app.add_option("--freezes", options.freezes, "instead of the scope's own number");
  app.add_flag("--crosscheck", options.crosscheck, "compare every random state with the library");
  app.add_flag("--all-names", options.all_names,
               "count states that differ only in names as different");
  app.add_flag("--mutants", options.table, "find every mutant and print the table");
  app.add_flag("--list", options.list, "list scopes and mutants");
  CLI11_PARSE(app, argc, argv);
  if (options.list) {
    list();
    return 0;
  }
  if (options.table) return explore_mutants(options);
  if (options.scope.empty() && options.mutant.empty()) options.scope = "group";
  return explore_one(options);
}
