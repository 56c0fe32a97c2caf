// The counter protocol as an executable specification: one counter at the replicas of one tablet,
// with operation ids, deletes, folding at stability, the record of ids and its floor, joins,
// copies.
//
// Cells, clocks and their operations are those of the library: what is searched here is whether the
// rules for using them hold (docs/theory.md: C1 to C10, R14). The oracle knows nothing of cells: it
// counts distinct operations by what was minted, and judges after every step
//
//   own value       what each replica would answer alone
//   merged value    what any of them answer together, whichever is taken whole (R14)
//   acknowledged    every majority has a dot of every operation that was answered
//
// Amounts are powers of seven, so that no sum of wrong ones is right.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "causality/clock.h"
#include "causality/counter.h"
#include "causality/dot_store.h"
#include "causality/resolve.h"
#include "explore/counter_scope.h"

namespace helenus::explore {

inline constexpr int kCounterReplicasMax = 3;

// What was minted.
struct CounterEvent {
  causality::Dot dot;
  bool deletes = false;
  int operation = 0;  // from 1; 0: it has no id
  std::int64_t amount = 0;
  causality::Clock context;
};

// What a merge may go by.
struct CounterKnowledge {
  causality::Clock base;
  causality::Stability stable;
};

struct CounterFile {
  causality::CellStore cell;
  CounterKnowledge at_freeze = {};
  bool is_copy = false;  // what was copied takes the place of what lies in older files
};

enum class CounterPhase : std::uint8_t { away, silent, pending, member };

struct CounterReplica {
  CounterPhase phase = CounterPhase::member;
  causality::Clock clock;
  causality::CellStore memtable;
  std::vector<CounterFile> files;  // the oldest first
  // Of each other replica, from a complete pull in this epoch.
  std::array<std::optional<causality::Clock>, kCounterReplicasMax> watermark;
  // Dots of operations that a repetition of which is known by.
  causality::Clock record;
  int floor = 0;  // operations up to this one are refused if they are not known
  std::uint8_t pulled = 0;
};

enum class CounterActionKind : std::uint8_t {
  increment,  // with an id
  plain,      // without
  retry,      // operation `what` once more
  remove,     // uniting the clock of `peer`, if that is another
  deliver,    // event `what` alone
  pull,
  hear,   // mutant: take a watermark without pulling
  merge,  // of everything
  flush,
  compact,      // all files
  compact_two,  // the two from file `what` on
  raise_floor,
  lower_floor,  // mutant
  answer,       // operation `what` is acknowledged
  begin_join,
  install,
  promote,
  reconcile,
};

struct CounterAction {
  CounterActionKind kind = CounterActionKind::merge;
  int replica = 0;
  int peer = 0;
  int what = 0;
};

struct CounterState {
  std::array<CounterReplica, kCounterReplicasMax> replica;
  std::vector<CounterEvent> events;
  int operations = 0;
  std::uint32_t answered = 0;  // operations, by bit
  bool joining = false;
  // What is left of the scope's budgets.
  int retries = 0;
  int plain = 0;
  int deletes = 0;
  int floors = 0;
  int singles = 0;
  int reconciles = 0;
  int pulls = 0;
};

CounterState initial_counter_state(const CounterScope& scope);
// False, and the state means nothing, if the step cannot be taken.
bool step(CounterState& state, const CounterScope& scope, const CounterAction& action);
// All that might be possible.
std::vector<CounterAction> counter_actions(const CounterState& state, const CounterScope& scope);
// What does not hold in this state, in words.
std::optional<std::string> check(const CounterState& state, const CounterScope& scope);
// Lets everybody pull from everybody and merge, and checks that each is left with one version, no
// context, and nothing in its record that is below its floor.
std::optional<std::string> check_counter_rest(CounterState state, const CounterScope& scope);
// Of everything that a step or a check depends on.
base::Hash128 digest_of(const CounterState& state);
std::string story_of(const CounterAction& action);

// What a replica holds of the cell, all fragments together.
causality::CellStore read_counter(const CounterReplica& replica);
// What everyone has seen whom `r` must ask (R5, C6).
causality::Stability counter_stability(const CounterState& state, const CounterScope& scope, int r);
// What answers of several show; the first is taken whole.
std::int64_t merged_value(const CounterScope& scope,
                          const std::vector<causality::CounterAnswer>& answers);

}  // namespace helenus::explore
