#include "explore/search.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>

#include "base/assert.h"
#include "base/hash.h"
#include "base/prng.h"
#include "explore/symmetry.h"

namespace helenus::explore {

namespace {

// Every state ever seen, in the order it was found: its fingerprint, and how it was first reached.
class Visited {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // The index of the new state, or kNone when it is known.
  std::uint32_t insert(const base::Hash128& hash, std::uint32_t parent, const Action& action) {
    if (hashes_.size() * 3 >= table_.size() * 2) grow();
    std::size_t at = hash.low & (table_.size() - 1);
    while (table_[at] != kNone) {
      if (hashes_[table_[at]] == hash) return kNone;
      at = (at + 1) & (table_.size() - 1);
    }
    const auto index = static_cast<std::uint32_t>(hashes_.size());
    table_[at] = index;
    hashes_.push_back(hash);
    parents_.push_back(parent);
    actions_.push_back(action);
    return index;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(hashes_.size()); }
  // The initial state has itself as parent.
  std::uint32_t parent(std::uint32_t index) const { return parents_[index]; }
  const Action& action(std::uint32_t index) const { return actions_[index]; }

  // The schedule that first reached a state.
  std::vector<Action> schedule(std::uint32_t index) const {
    std::vector<Action> actions;
    for (; parents_[index] != index; index = parents_[index]) actions.push_back(actions_[index]);
    std::ranges::reverse(actions);
    return actions;
  }

 private:
  void grow() {
    table_.assign(table_.empty() ? 1 << 16 : table_.size() * 2, kNone);
    for (std::uint32_t index = 0; index < hashes_.size(); ++index) {
      std::size_t at = hashes_[index].low & (table_.size() - 1);
      while (table_[at] != kNone) at = (at + 1) & (table_.size() - 1);
      table_[at] = index;
    }
  }

  std::vector<std::uint32_t> table_;
  // Not vectors: one that doubles holds its elements twice while it does.
  std::deque<base::Hash128> hashes_;
  std::deque<std::uint32_t> parents_;
  std::deque<Action> actions_;
};

// Makes visited states again by taking the steps that led to them. States are found level by level
// and in the order of their parents, so when they are asked for in that order, the ancestors of one
// are those of the next, or come soon after: each is made once a level at most.
class Replay {
 public:
  Replay(const Scope& scope, const Visited& visited) : scope_(scope), visited_(visited) {
    path_.push_back({0, initial_state(scope)});
  }

  // The state of `index`, which was found at `depth`.
  const State& state_of(std::uint32_t index, std::size_t depth) {
    if (path_.size() <= depth) path_.resize(depth + 1, {Visited::kNone, {}});
    path_to_.resize(depth + 1);
    std::size_t known = depth;
    for (std::uint32_t at = index; path_[known].index != at; at = visited_.parent(at)) {
      path_to_[known--] = at;
    }
    for (std::size_t level = known + 1; level <= depth; ++level) {
      path_[level].index = path_to_[level];
      path_[level].state = path_[level - 1].state;
      const bool possible = step(path_[level].state, scope_, visited_.action(path_to_[level]));
      ASSERT(possible, "a step that was taken is not possible any more");
    }
    return path_[depth].state;
  }

 private:
  struct Ancestor {
    std::uint32_t index;
    State state;
  };

  const Scope& scope_;
  const Visited& visited_;
  // By level; the steps to the state asked for last.
  std::vector<Ancestor> path_;
  std::vector<std::uint32_t> path_to_;
};

class ExhaustiveSearch {
 public:
  ExhaustiveSearch(const Scope& scope, const SearchLimits& limits, const Progress& progress)
      : scope_(scope), limits_(limits), progress_(progress), symmetry_(scope) {}

  Outcome run() {
    visited_.insert(fingerprint(initial_state(scope_)), 0, {});
    std::uint32_t begin = 0;
    bool go_on = true;
    while (go_on && begin < visited_.size()) {
      const std::uint32_t end = visited_.size();
      go_on = expand_level(begin, end);
      begin = end;
      ++outcome_.depth;
    }
    outcome_.states = visited_.size();
    outcome_.complete = go_on;
    return std::move(outcome_);
  }

 private:
  bool expand_level(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t index = begin; index < end; ++index) {
      const State& state = replay_.state_of(index, static_cast<std::size_t>(outcome_.depth));
      bool go_on = true;
      const std::function<void(Action)> try_action = [&](Action action) {
        go_on = go_on && expand(state, index, action);
      };
      each_action(state, scope_, Writes::all, try_action);
      if (!go_on) return false;
      if ((++expanded_ & 0xfff) == 0 && !keep_going()) return false;
    }
    return true;
  }

  base::Hash128 fingerprint(const State& state) const {
    if (limits_.up_to_names) return symmetry_.fingerprint(state);
    return base::hash128(std::as_bytes(std::span(&state, 1)));
  }

  bool keep_going() {
    outcome_.states = visited_.size();
    return visited_.size() < limits_.states_max && progress_(outcome_);
  }

  // False when the search is over.
  bool expand(const State& state, std::uint32_t parent, const Action& action) {
    State child = state;
    if (!step(child, scope_, action)) return true;
    ++outcome_.transitions;
    const base::Hash128 hash = fingerprint(child);
    const std::uint32_t index = visited_.insert(hash, parent, action);
    if (index == Visited::kNone) return true;
    std::optional<Violation> violation = check(child, scope_);
    const auto every = static_cast<std::uint64_t>(scope_.quiescence_every);
    if (!violation && every != 0 && hash.high % every == 0) {
      ++outcome_.quiescence_checks;
      violation = check_quiescence(child, scope_);
    }
    if (violation) {
      outcome_.found = Found{*std::move(violation), visited_.schedule(index)};
      return false;
    }
    return true;
  }

  const Scope& scope_;
  const SearchLimits& limits_;
  const Progress& progress_;
  Symmetry symmetry_;
  Visited visited_;
  Replay replay_{scope_, visited_};
  Outcome outcome_;
  std::uint64_t expanded_ = 0;
};

// One random walk. Kinds of action are drawn first, so that the many deliveries do not drown the
// few crashes.
class Walk {
 public:
  Walk(const Scope& scope, std::uint64_t seed) : scope_(scope), random_(seed) {
    states_[0] = initial_state(scope);
  }

  // False when nothing is possible any more.
  bool advance() {
    for (auto& actions : by_kind_) actions.clear();
    kinds_.clear();
    const std::function<void(Action)> sort_in = [&](Action action) {
      auto& actions = by_kind_[static_cast<unsigned>(action.kind)];
      if (actions.empty()) kinds_.push_back(static_cast<unsigned>(action.kind));
      actions.push_back(action);
    };
    each_action(state(), scope_, Writes::none, sort_in);
    for (int i = 0; i < kWritesDrawn && state().events < scope_.operations; ++i) {
      sort_in(random_write(scope_, random_));
    }
    while (!kinds_.empty()) {
      const std::size_t kind_at = random_.below(kinds_.size());
      auto& actions = by_kind_[kinds_[kind_at]];
      const std::size_t at = random_.below(actions.size());
      State& next = states_[1 - current_];
      next = state();
      if (step(next, scope_, actions[at]) && std::memcmp(&next, &state(), sizeof next) != 0) {
        schedule_.push_back(actions[at]);
        current_ = 1 - current_;
        return true;
      }
      actions[at] = actions.back();
      actions.pop_back();
      if (actions.empty()) {
        kinds_[kind_at] = kinds_.back();
        kinds_.pop_back();
      }
    }
    return false;
  }

  int length() { return static_cast<int>(random_.below(1 << 16)); }
  const State& state() const { return states_[current_]; }
  Found found(Violation violation) const { return {std::move(violation), schedule_}; }

 private:
  static constexpr int kWritesDrawn = 6;

  const Scope& scope_;
  base::Prng random_;
  // The state of now, and room for the next one.
  std::array<State, 2> states_;
  unsigned current_ = 0;
  std::vector<Action> schedule_;
  std::array<std::vector<Action>, kActionKinds> by_kind_;
  std::vector<unsigned> kinds_;
};

std::optional<Found> walk_once(const Scope& scope, const WalkOptions& options, std::uint64_t seed,
                               Outcome& outcome) {
  Walk walk(scope, seed);
  const int steps = options.steps_max / 3 + walk.length() % (options.steps_max * 2 / 3 + 1);
  for (int i = 0; i < steps && walk.advance(); ++i) {
    ++outcome.states;
    if (options.visit) options.visit(walk.state());
    if (auto violation = check(walk.state(), scope)) return walk.found(*std::move(violation));
    outcome.depth = std::max(outcome.depth, i + 1);
  }
  ++outcome.quiescence_checks;
  if (auto violation = check_quiescence(walk.state(), scope)) {
    return walk.found(*std::move(violation));
  }
  return std::nullopt;
}

// Leaves out action `at`; when it minted an event, what speaks of that event goes too.
std::vector<Action> leave_out(const std::vector<Action>& schedule, std::size_t at) {
  if (at >= schedule.size()) return schedule;
  std::vector<Action> rest;
  int event = -1;
  int events = 0;
  int minted = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    Action action = schedule[i];
    if (action.kind == ActionKind::write) {
      const int mints = (action.flags & kReplaces) != 0 ? 2 : 1;
      if (i == at) {
        event = minted;
        events = mints;
      }
      minted += mints;
    }
    if (i == at) continue;
    const bool names_event =
        action.kind == ActionKind::deliver || action.kind == ActionKind::pull_page;
    if (event >= 0 && names_event) {
      if (action.what >= event && action.what < event + events) continue;
      if (action.what > event) action.what = static_cast<std::uint8_t>(action.what - events);
    }
    rest.push_back(action);
  }
  return rest;
}

std::optional<Violation> replay(const Scope& scope, const std::vector<Action>& schedule) {
  State state = initial_state(scope);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    if (!step(state, scope, schedule[i])) return std::nullopt;
    auto violation = check(state, scope);
    if (violation) return i + 1 == schedule.size() ? violation : std::nullopt;
  }
  return check_quiescence(state, scope);
}

}  // namespace

std::optional<Violation> replay_possible(const Scope& scope, std::span<const Action> schedule) {
  State state = initial_state(scope);
  for (const Action& action : schedule) {
    State next = state;
    if (!step(next, scope, action)) continue;
    state = next;
    if (auto violation = check(state, scope)) return violation;
  }
  return check_quiescence(state, scope);
}

Outcome search_all(const Scope& scope, const SearchLimits& limits, const Progress& progress) {
  return ExhaustiveSearch(scope, limits, progress).run();
}

Outcome search_random(const Scope& scope, const WalkOptions& options, const Progress& progress) {
  Outcome outcome;
  for (std::uint64_t i = 0; i < options.schedules; ++i) {
    const std::uint64_t seed = base::mix64(options.seed + i * 0x9e3779b97f4a7c15);
    ++outcome.schedules;
    if (auto found = walk_once(scope, options, seed, outcome)) {
      outcome.found = shrink(scope, *found);
      return outcome;
    }
    if ((i & 0x3f) == 0x3f && !progress(outcome)) return outcome;
  }
  outcome.complete = true;
  return outcome;
}

Outcome search_mutant(const MutantInfo& mutant, std::uint64_t seed, const Progress& progress) {
  constexpr std::uint64_t kSchedulesMax = 1'000'000;
  constexpr std::uint64_t kStatesWithoutRestMax = 300'000;
  Scope scope = *find_scope(mutant.scope);
  scope.mutant = mutant.mutant;
  if (mutant.random) {
    return search_random(
        scope, {.seed = seed, .schedules = kSchedulesMax, .steps_max = 60, .visit = {}}, progress);
  }
  scope.quiescence_every = 0;
  Outcome outcome = search_all(scope, {.states_max = kStatesWithoutRestMax}, progress);
  if (outcome.found) return outcome;
  scope.quiescence_every = 1;
  return search_all(scope, {}, progress);
}

Found shrink(const Scope& scope, const Found& found) {
  Found best = found;
  // Some actions only make sense together (a crash and the reconciles after it), so runs of them
  // are left out before single ones.
  constexpr std::size_t kRunMax = 8;
  bool shorter = true;
  while (shorter) {
    shorter = false;
    for (std::size_t run = kRunMax; run > 0; --run) {
      for (std::size_t end = best.schedule.size(); end >= run; --end) {
        std::vector<Action> candidate = best.schedule;
        for (std::size_t i = 0; i < run; ++i) candidate = leave_out(candidate, end - 1 - i);
        auto violation = replay(scope, candidate);
        if (!violation || violation->invariant != best.violation.invariant) continue;
        best.schedule = std::move(candidate);
        best.violation = *std::move(violation);
        end = std::min(end, best.schedule.size() + 1);
        shorter = true;
      }
    }
  }
  return best;
}

}  // namespace helenus::explore
