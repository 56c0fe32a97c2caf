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

// Whether a mutation that is minted now would defeat a known one: the larger timestamp; then empty
// beats value; then the larger bytes, which the one minted later has. Two deletes are the same.
bool would_defeat(int timestamp, const Event& known) {
  if (known.timestamp != timestamp) return known.timestamp < timestamp;
  return known.kind != Kind::remove;
}

// Rule (d): the cells of an explicit-timestamp write in which it defeats all that is known; see
// causality::explicit_write_applies.
Mask cells_not_newer(const State& state, int r, const Action& action) {
  Mask kept = 0;
  each(action.what, [&](int cell) {
    bool applies = true;
    bool ties = false;
    const Events alive = read_cell(replica_of(state, r), cell).versions;
    each(alive, [&](int e) {
      const Event& known = event_of(state, e);
      applies = applies && would_defeat(action.timestamp, known);
      ties = ties || known.timestamp == action.timestamp;
    });
    each(without(replica_of(state, r).log, alive), [&](int e) {
      const Event& known = event_of(state, e);
      if (!touches(known, bit(cell))) return;
      applies = applies && (known.timestamp < action.timestamp ||
                            (ties && known.timestamp == action.timestamp));
    });
    if (applies) kept |= bit(cell);
  });
  return kept;
}

// Whether a mutation is in the clock of a replica of the newest ring, or may still come into one:
// none of them refuses it yet. A mutation that went with its only holder (a tail lost in a crash, a
// member removed) survives in the contexts of those who had seen it, and nowhere else: it hid
// nothing from anybody who is left, is refused by all of them (S9), and so can never be compared
// with anything again. A timestamp below that of such a mutation is below nothing.
bool may_surface(const State& state, int e) {
  bool may = false;
  each(newest(state).members | newest(state).pending, [&](int r) {
    const Replica& replica = replica_of(state, r);
    if (replica.phase == Phase::absent || replica.phase == Phase::stopped) return;
    const bool refused = has(config_of(state, replica).removed, event_of(state, e).actor);
    may = may || has(replica.clock, e) || !refused;
  });
  return may;
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
    const bool older = touches(seen, cells) && !would_defeat(timestamp, seen);
    below = below || (older && may_surface(state, e));
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
  if (replica.lacks_range != 0 && cells >> kCellsPerTable != 0) return false;
  const bool is_explicit = (action.flags & kExplicit) != 0;
  if (is_explicit) {
    cells = cells_not_newer(state, r, action);
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
  const bool raises = !is_explicit && scope.mutant != Mutant::no_timestamp_raise;
  if (scope.policy == Policy::lww && raises) {
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
