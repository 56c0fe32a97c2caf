// What clients do: minting a mutation, and a mutation on its way to the other replicas.
#include <algorithm>

#include "explore/parts.h"
#include "explore/rules.h"

namespace helenus::explore {

namespace {

bool touches(const Event& event, Mask cells) {
  return (event.cells & cells) != 0;
}

// Rule (b): the largest timestamp of unstable mutations of these cells in a replica's log, and of
// the versions it holds of them.
int floor_at(const State& state, int r, Mask cells, Events covered) {
  const Replica& replica = replica_of(state, r);
  int floor = 0;
  const auto raise = [&](int e) {
    if (has(covered, e) && touches(event_of(state, e), cells)) {
      floor = std::max(floor, int{event_of(state, e).timestamp});
    }
  };
  each(replica.log, raise);
  each(cells, [&](int cell) { each(read_cell(replica, cell).versions, raise); });
  return floor;
}

// What a client that read `cells` at `r` is given as its context, and what it truly saw.
struct ReadContext {
  Events context;
  Events past;
};

ReadContext context_of_read(const State& state, const Scope& scope, int r, Mask cells) {
  const Replica& replica = replica_of(state, r);
  const auto every = static_cast<Events>(~0U);
  Events common = every;
  Events common_past = every;
  Events any = 0;
  each(cells, [&](int cell) {
    const Fragment whole = read_cell(replica, cell);
    const auto known = static_cast<Events>(whole.versions | whole.context);
    common &= known;
    any |= known;
    common_past &= replica.reflected[static_cast<unsigned>(cell)];
  });
  if (scope.mutant == Mutant::row_context_by_union) common = any;
  return {static_cast<Events>(seen_by(state, replica) | common),
          static_cast<Events>(replica.clock | common_past)};
}

void acknowledge(State& state, int e, int r) {
  Event& event = state.event[static_cast<unsigned>(e)];
  event.acks |= bit(r);
  const int members = std::popcount(state.config[event.epoch].members);
  if (std::popcount(event.acks) <= members / 2) return;
  // Once promised, who promised no longer matters.
  state.acked |= event_bit(e);
  event.acks = static_cast<Mask>(~0U);
}

// Rule (d): the cells of an explicit-timestamp write that know nothing newer.
Mask cells_not_newer(const State& state, int r, Mask cells, int timestamp) {
  Mask kept = 0;
  const Events all = static_cast<Events>(~0U);
  each(cells, [&](int cell) {
    if (floor_at(state, r, bit(cell), all) < timestamp) kept |= bit(cell);
  });
  return kept;
}

// The premise of last-writer-wins: timestamps extend causality over all that is unstable in truth,
// that is, not yet seen by everyone who speaks. Who is silent has nothing of its own to compare.
bool below_unstable_past(const State& state, Events past, Mask cells, int timestamp) {
  Events everywhere = past;
  each(newest(state).members | newest(state).pending, [&](int r) {
    if (answers(state, r)) everywhere &= seen_by(state, replica_of(state, r));
  });
  bool below = false;
  each(without(past, everywhere), [&](int e) {
    const Event& seen = event_of(state, e);
    below = below || (touches(seen, cells) && seen.timestamp >= timestamp);
  });
  return below;
}

}  // namespace

bool write(State& state, const Scope& scope, const Action& action) {
  const int r = action.replica;
  const bool blind = action.peer == kNobody;
  const bool quorum = (action.flags & kQuorum) != 0;
  if (state.events >= scope.operations || !coordinates(state, r)) return false;
  if (!blind) {
    if (!answers(state, action.peer) || (quorum && action.peer == r)) return false;
    if (scope.mutant != Mutant::context_without_epoch) {
      adopt(state, r, replica_of(state, action.peer).epoch);
    }
    if (!coordinates(state, r)) return false;
  }
  Replica& replica = replica_of(state, r);
  Mask cells = action.what;
  if ((action.flags & kExplicit) != 0) {
    cells = cells_not_newer(state, r, cells, action.timestamp);
    if (cells == 0) return false;
  }
  ReadContext read{seen_by(state, replica), replica.clock};
  int floor = 0;
  if (!blind) {
    const ReadContext client = quorum ? ReadContext{seen_by(state, replica_of(state, action.peer)),
                                                    replica_of(state, action.peer).clock}
                                      : context_of_read(state, scope, action.peer, cells);
    floor = floor_at(state, action.peer, cells, client.context);
    const bool as_such = scope.policy != Policy::lww && !quorum;
    if (as_such || scope.mutant == Mutant::client_context_as_such) read = {0, 0};
    if (!(quorum && scope.mutant == Mutant::delete_by_own_clock)) {
      read.context |= client.context;
      read.past |= client.past;
    }
  }
  const Mask own = bit(replica.actor);
  if ((minted_by(state, own) & ~replica.clock) != 0) state.dot_minted_twice = 1;
  if (scope.mutant == Mutant::put_covers_own_dots) read.context |= minted_by(state, own);
  if (action.operation == Kind::increment) read = {0, 0};
  int timestamp = action.timestamp;
  if (scope.policy == Policy::lww && scope.mutant != Mutant::no_timestamp_raise) {
    if (scope.mutant == Mutant::context_without_floor) floor = 0;
    floor = std::max(floor, floor_at(state, r, cells, read.context));
    timestamp = std::max(timestamp, floor + 1);
  }
  if (quorum && newest(state).members == config_of(state, replica).members &&
      (state.acked & ~state.lost & ~read.context) != 0) {
    state.delete_missed_acknowledged = 1;
  }
  if (scope.policy == Policy::lww && scope.mutant != Mutant::no_timestamp_raise &&
      below_unstable_past(state, read.past, cells, timestamp)) {
    state.timestamp_below_past = 1;
  }
  const int e = state.events++;
  state.event[static_cast<unsigned>(e)] = {.actor = replica.actor,
                                           .kind = action.operation,
                                           .cells = cells,
                                           .scoped = (action.flags & kScoped) != 0,
                                           .timestamp = static_cast<std::uint8_t>(timestamp),
                                           .expires = (action.flags & kExpires) != 0,
                                           .epoch = replica.epoch,
                                           .acks = 0,
                                           .context = read.context,
                                           .past = read.past};
  apply_mutation(state, scope, r, e);
  acknowledge(state, e, r);
  return true;
}

bool deliver(State& state, const Scope& scope, const Action& action) {
  const int r = action.replica;
  const int e = action.what;
  const Event& event = event_of(state, e);
  Replica& replica = replica_of(state, r);
  if (replica.phase == Phase::absent || replica.phase == Phase::stopped) return false;
  if (state.slot_of_actor[event.actor] == r) return false;
  adopt(state, r, event.epoch);
  if (replica.phase == Phase::stopped || fenced(state, scope, r, event.actor)) return false;
  // S10: the sender's ring is this one's too, or it is acknowledged by nobody.
  const bool counts = replica.epoch == event.epoch && coordinates(state, r);
  if (has(seen_by(state, replica), e) && (!counts || has(event.acks, r))) return false;
  apply_mutation(state, scope, r, e);
  if (counts) acknowledge(state, e, r);
  return true;
}

}  // namespace helenus::explore
