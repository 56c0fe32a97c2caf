// What clients do: minting a mutation, and a mutation on its way to the other replicas.
#include <algorithm>

#include "explore/birth.h"
#include "explore/parts.h"
#include "explore/rules.h"

namespace helenus::explore {

namespace {

bool is_explicit(const Action& action) {
  return (action.flags & kExplicit) != 0;
}
bool replaces(const Action& action) {
  return (action.flags & kReplaces) != 0;
}
// All cells of the table that these are in.
Mask row_of(Mask cells) {
  return static_cast<Mask>(cells < 1U << kCellsPerTable ? 3U : 3U << kCellsPerTable);
}

// What the client brings along: the context it read, or the clock of another replica for a quorum
// delete; nothing when it writes blindly. The epoch of it is adopted first (S10).
bool take_client_context(State& state, const Scope& scope, const Action& action,
                         ReadContext& client) {
  const bool quorum = (action.flags & kQuorum) != 0;
  if (!answers(state, action.peer) || (quorum && action.peer == action.replica)) return false;
  if (scope.mutant != Mutant::context_without_epoch) {
    adopt(state, scope, action.replica, replica_of(state, action.peer).epoch);
  }
  const Mask cells = replaces(action) ? row_of(action.what) : action.what;
  client = quorum ? context_of_clock(state, action.peer, cells)
                  : context_of_read(state, scope, action.peer, cells);
  return coordinates(state, action.replica);
}

// Everything that the write is given as seen (S2, (a)): the client's context as it is in a siblings
// table, else with all that the minting replica has seen.
ReadContext context_of_write(const State& state, const Scope& scope, const Action& action,
                             const ReadContext& client) {
  const Replica& replica = replica_of(state, action.replica);
  ReadContext read{seen_by(state, replica), replica.clock, 0};
  const bool quorum = (action.flags & kQuorum) != 0;
  if (action.peer != kNobody) {
    const bool as_such = scope.policy != Policy::lww && !quorum;
    if (as_such || scope.mutant == Mutant::client_context_as_such) read = {0, 0, 0};
    if (!(quorum && scope.mutant == Mutant::delete_by_own_clock)) {
      read.context |= client.context;
      read.past |= client.past;
    }
  }
  if (scope.mutant == Mutant::put_covers_own_dots) {
    read.context |= minted_by(state, bit(replica.actor));
  }
  return read;
}

int timestamp_of_write(const State& state, const Scope& scope, const Action& action,
                       const ReadContext& client, Events context) {
  if (scope.policy != Policy::lww || scope.mutant == Mutant::no_timestamp_raise) {
    return action.timestamp;
  }
  const bool without_floor = scope.mutant == Mutant::context_without_floor;
  const int brought = without_floor ? 0 : client.floor;
  const Mask touched = replaces(action) ? row_of(action.what) : action.what;
  if (is_explicit(action)) {
    const bool raises = scope.mutant == Mutant::explicit_is_raised;
    return raises ? std::max(int{action.timestamp}, brought + 1) : action.timestamp;
  }
  const int floor = std::max(brought, floor_of_log(state, action.replica, touched, context));
  // What the scope beneath the cells deletes is one tick older, and must be above the floor too.
  return std::max(int{action.timestamp}, floor + (replaces(action) ? 2 : 1));
}

// The next event of the replica.
int add_event(State& state, int r, const Action& action, Mask cells, int timestamp,
              const ReadContext& read) {
  const Replica& replica = replica_of(state, r);
  state.event[state.events] = {.actor = replica.actor,
                               .kind = action.operation,
                               .cells = cells,
                               .scoped = (action.flags & kScoped) != 0,
                               .timestamp = static_cast<std::uint8_t>(timestamp),
                               .expires = (action.flags & kExpires) != 0,
                               .epoch = replica.epoch,
                               .acks = 0,
                               .partner = 0,
                               .unused = 0,
                               .context = read.context,
                               .past = read.past};
  return state.events++;
}

// The scope beneath the cells of event `e`: the same dot, and one tick older (docs/adr/0016).
void add_scope_beneath(State& state, const Scope& scope, int r, int e, const ReadContext& read) {
  const Event& over = event_of(state, e);
  const bool as_old = scope.mutant == Mutant::scope_as_old_as_cells;
  const int timestamp = over.timestamp - (as_old || scope.policy != Policy::lww ? 0 : 1);
  Action removal{.kind = ActionKind::write};
  removal.operation = Kind::remove;
  removal.flags = kScoped;
  const int beneath = add_event(state, r, removal, row_of(over.cells), timestamp, read);
  state.event[static_cast<unsigned>(e)].partner = static_cast<std::uint8_t>(beneath + 1);
  state.event[static_cast<unsigned>(beneath)].partner = static_cast<std::uint8_t>(e + 1);
  state.replacing |= event_bit(e);
}

// Rule (d): leaves to a write with an explicit timestamp the cells in which it wins; of a range
// delete, too: it holds for the range as such only where it wins in all of it. False: in none.
bool judge_explicit(const State& state, const Scope& scope, Action& action) {
  const bool stays = action.operation == Kind::put && (action.flags & kExpires) == 0;
  const Mask wins = cells_it_wins(state, scope, action.replica, action.what, action.timestamp,
                                  stays ? Strength::stays : Strength::defeats_expiring);
  if (wins == action.what) return true;
  const bool is_range = (action.flags & kScoped) != 0;
  if (is_range && wins != 0 && scope.mutant == Mutant::explicit_range_as_one) return true;
  if (is_range) action.flags &= static_cast<std::uint8_t>(~kScoped);
  action.what = wins;
  return wins != 0;
}

}  // namespace

bool write(State& state, const Scope& scope, const Action& asked) {
  Action action = asked;
  const int r = action.replica;
  const bool blind = action.peer == kNobody;
  const int mints = replaces(action) ? 2 : 1;
  if (state.events + mints > scope.operations || !coordinates(state, r)) return false;
  ReadContext client{};
  if (!blind && !take_client_context(state, scope, action, client)) return false;
  const Replica& replica = replica_of(state, r);
  if (replica.lacks_range != 0 && action.what >> kCellsPerTable != 0) return false;
  if (is_explicit(action)) {
    const bool raised = scope.mutant == Mutant::explicit_is_raised;
    if (!judge_explicit(state, scope, action)) return false;
    if (!raised && forbids_explicit(state, scope, r, client, action.timestamp)) return false;
  }
  const ReadContext read = context_of_write(state, scope, action, client);
  const int timestamp = timestamp_of_write(state, scope, action, client, read.context);
  if ((minted_by(state, bit(replica.actor)) & ~replica.clock) != 0) state.dot_minted_twice = 1;
  if ((action.flags & kQuorum) != 0 && newest(state).members == config_of(state, replica).members &&
      (state.acked & ~state.lost & ~read.context) != 0) {
    state.delete_missed_acknowledged = 1;
  }
  const Mask touched = replaces(action) ? row_of(action.what) : action.what;
  if (is_explicit(action) && timestamp != action.timestamp) state.explicit_timestamp_raised = 1;
  if (scope.policy == Policy::lww && scope.mutant != Mutant::no_timestamp_raise &&
      below_unstable_past(state, read.past, touched, timestamp - (replaces(action) ? 1 : 0))) {
    state.timestamp_below_past = 1;
  }
  const int e = add_event(state, r, action, action.what, timestamp, read);
  if (replaces(action)) add_scope_beneath(state, scope, r, e, read);
  apply_mutation(state, scope, r, e);
  return true;
}

bool deliver(State& state, const Scope& scope, const Action& action) {
  const int r = action.replica;
  const int e = action.what;
  const Event& event = event_of(state, e);
  Replica& replica = replica_of(state, r);
  if (replica.phase == Phase::absent || replica.phase == Phase::stopped) return false;
  if (state.slot_of_actor[event.actor] == r) return false;
  adopt(state, scope, r, event.epoch);
  if (replica.phase == Phase::stopped || fenced(state, scope, r, event.actor)) return false;
  if (has(seen_by(state, replica), e)) return false;
  apply_mutation(state, scope, r, e);
  return true;
}

void acknowledge(State& state, const Scope& scope) {
  for (int e = 0; e < state.events; ++e) {
    if (has(state.acked, e)) continue;
    Event& event = state.event[static_cast<unsigned>(e)];
    each(state.config[event.epoch].members, [&](int r) {
      const Replica& replica = replica_of(state, r);
      if (!has(replica.clock, e) || replica.epoch != event.epoch || !coordinates(state, r)) return;
      const bool minted_here = replica.actor == event.actor;
      if (!minted_here && state.slot_of_actor[event.actor] == r) return;
      if (!fenced(state, scope, r, event.actor)) event.acks |= bit(r);
    });
    const int members = std::popcount(state.config[event.epoch].members);
    if (std::popcount(event.acks) <= members / 2) continue;
    // Once promised, who promised no longer matters.
    state.acked |= event_bit(e);
    event.acks = static_cast<Mask>(~0U);
  }
}

}  // namespace helenus::explore
