// What the files that perform actions share. Each action is a function from a state to a state;
// false means that it is not possible there.
#pragma once

#include "explore/action.h"
#include "explore/rules.h"
#include "explore/scope.h"
#include "explore/state.h"

namespace helenus::explore {

inline bool is_member(const State& state, int r) {
  return has(config_of(state, replica_of(state, r)).members, r);
}

// Serves clients and answers peers.
inline bool answers(const State& state, int r) {
  const Phase phase = replica_of(state, r).phase;
  return phase == Phase::active || phase == Phase::installed;
}

inline bool coordinates(const State& state, int r) {
  return replica_of(state, r).phase == Phase::active && is_member(state, r);
}

// Both sides adopt the higher epoch, then refuse each other where one was removed (S9, S10).
inline bool meet(State& state, const Scope& scope, int a, int b) {
  const int epoch = std::max(replica_of(state, a).epoch, replica_of(state, b).epoch);
  adopt(state, scope, a, epoch);
  adopt(state, scope, b, epoch);
  return !fenced(state, scope, a, replica_of(state, b).actor) &&
         !fenced(state, scope, b, replica_of(state, a).actor);
}

inline bool post(State& state, const Message& message) {
  for (Message& slot : state.message) {
    if (slot.kind != MessageKind::none) continue;
    slot = message;
    --state.delays_left;
    return true;
  }
  return false;
}

// operations.cc
bool write(State& state, const Scope& scope, const Action& action);
bool deliver(State& state, const Scope& scope, const Action& action);
// S10: acknowledges every mutation at every member that has it and is in the ring it was minted in.
// In truth an answer may come later or never; but a promise only adds to what must hold and no rule
// looks at it, so given at once it stands for all of them.
void acknowledge(State& state, const Scope& scope);

// exchange.cc
bool pull(State& state, const Scope& scope, const Action& action);
bool pull_page(State& state, const Scope& scope, const Action& action);
bool send_reply(State& state, const Scope& scope, const Action& action);
bool announce(State& state, const Scope& scope, const Action& action);
bool send_announcement(State& state, const Scope& scope, const Action& action);
bool repair(State& state, const Scope& scope, const Action& action);
bool send_repair(State& state, const Scope& scope, const Action& action);
bool receive(State& state, const Scope& scope, const Action& action);
bool take_reconcile(State& state, const Scope& scope, const Action& action);
bool cap_log(State& state, const Action& action);

// storage_actions.cc
// What a flush of the frozen memtable, and a compaction of a mask of sstables, merges and leaves
// out.
MergePlan plan_of_flush(const Table& table);
MergePlan plan_of_compaction(const Table& table, unsigned inputs);
bool sync(State& state, const Action& action);
bool freeze(State& state, const Scope& scope, const Action& action);
bool flush(State& state, const Scope& scope, const Action& action);
bool compact(State& state, const Scope& scope, const Action& action);
bool merge_all(State& state, const Scope& scope, const Action& action);
bool tick(State& state, const Scope& scope, const Action& action);

// ring_actions.cc
bool crash(State& state, const Scope& scope, const Action& action);
bool adopt_next(State& state, const Scope& scope, const Action& action);
bool remove(State& state, const Action& action);
bool join(State& state, const Scope& scope, const Action& action);
bool may_scan(State& state, const Scope& scope, const Action& action);
bool start_scan(State& state, const Scope& scope, const Action& action);
bool install(State& state, const Scope& scope, const Action& action);
bool promote(State& state, const Scope& scope, const Action& action);
bool gain_range(State& state, const Scope& scope, const Action& action);

}  // namespace helenus::explore
