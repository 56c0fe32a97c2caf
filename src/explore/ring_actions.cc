// Crashes and re-entry, epochs, and who belongs to the group.
#include <algorithm>

#include "explore/parts.h"
#include "explore/rules.h"

namespace helenus::explore {

namespace {

bool commit(State& state, const Config& config) {
  if (state.epochs == kEpochsMax) return false;
  state.config[state.epochs++] = config;
  return true;
}

// What no member holds any more was acknowledged under periodic sync and is lost within its bound,
// or went with a removed member after the only other holder had lost it.
void note_losses(State& state) {
  for (int e = 0; e < state.events; ++e) {
    bool held = false;
    each(newest(state).members, [&](int r) {
      bool all = true;
      each(event_of(state, e).cells, [&](int cell) {
        all = all && has(replica_of(state, r).reflected[static_cast<unsigned>(cell)], e);
      });
      held = held || all;
    });
    if (!held) state.lost |= event_bit(e);
  }
}

void recover(Replica& replica) {
  for (Table& table : replica.table) {
    for (unsigned slot = 0; slot < kSlots; ++slot) {
      table.memtable[slot] = merged(table.memtable_synced[slot], table.frozen_synced[slot]);
    }
    table.frozen = {};
    table.frozen_at = {};
    table.frozen_applied = {};
    table.frozen_reflected = {};
    table.is_frozen = 0;
    table.memtable_synced = {};
    table.frozen_synced = {};
  }
  replica.clock = replica.clock_synced;
  replica.log = replica.log_synced;
  replica.capped &= replica.log;
  replica.closed = replica.closed_synced;
  replica.applied = replica.applied_synced;
  replica.reflected = replica.reflected_synced;
  replica.watermark = {};
  replica.pulled = 0;
  replica.reconciled = 0;
  replica.reported = 0;
}

void stop_tracking_durability(State& state) {
  state.crashable = 0;
  for (Replica& replica : state.replica) {
    for (Table& table : replica.table) {
      table.memtable_synced = {};
      table.frozen_synced = {};
      table.frozen_applied = {};
      table.frozen_reflected = {};
    }
    replica.clock_synced = 0;
    replica.log_synced = 0;
    replica.closed_synced = 0;
    replica.applied_synced = {};
    replica.reflected_synced = {};
  }
}

// A new actor for the replica, in a new epoch that fences the old one.
bool renew_actor(State& state, int r) {
  Replica& replica = replica_of(state, r);
  Config config = newest(state);
  config.removed |= bit(replica.actor);
  if (state.actors == kActorsMax || !commit(state, config)) return false;
  replica.actor = state.actors++;
  state.slot_of_actor[replica.actor] = static_cast<std::uint8_t>(r);
  replica.epoch = static_cast<std::uint8_t>(state.epochs - 1);
  return true;
}

// S8: a joiner that crashes throws its copy away and begins again: nobody has counted on it, but
// others may have taken its clock for a watermark.
bool crash_of_joiner(State& state, int r) {
  Replica& replica = replica_of(state, r);
  const bool joins = replica.phase == Phase::joining || replica.phase == Phase::installed;
  if (!joins || state.crashes_left == 0 || !has(newest(state).pending, r)) return false;
  --state.crashes_left;
  if (state.crashes_left == 0) stop_tracking_durability(state);
  const std::uint8_t actor = replica.actor;
  const std::uint8_t wall = replica.wall;
  replica = {};
  replica.actor = actor;
  replica.wall = wall;
  replica.phase = Phase::joining;
  return renew_actor(state, r);
}

}  // namespace

// S1, S14: the unsynced tail is lost; the replica comes back as a new actor, in a new epoch that
// fences the old one, and is silent until it has reconciled.
bool crash(State& state, const Scope& scope, const Action& action) {
  const int r = action.replica;
  Replica& replica = replica_of(state, r);
  if (has(newest(state).pending, r)) return crash_of_joiner(state, r);
  if (state.crashes_left == 0 || !has(state.crashable, r) || replica.phase != Phase::active) {
    return false;
  }
  if (!has(newest(state).members, r) || has(newest(state).removed, replica.actor)) return false;
  --state.crashes_left;
  recover(replica);
  if (scope.mutant == Mutant::replaced_by_empty_node) {
    replica.table = {};
    replica.clock = 0;
    replica.log = 0;
    replica.closed = 0;
    replica.applied = {};
    replica.reflected = {};
  }
  note_losses(state);
  if (state.crashes_left == 0) stop_tracking_durability(state);
  if (scope.mutant == Mutant::same_actor_after_tail_loss) {
    replica.phase = Phase::reentering;
    return true;
  }
  if (!renew_actor(state, r)) return false;
  replica.phase = Phase::reentering;
  // P2: it serves no client, and pulls and answers like any peer.
  if (scope.mutant == Mutant::replaced_by_empty_node) replica.phase = Phase::installed;
  if (scope.mutant == Mutant::reenter_without_reconcile) replica.phase = Phase::active;
  if (state.crashes_left != 0) sync_log(state, r);
  return true;
}

bool adopt_next(State& state, const Scope& scope, const Action& action) {
  const Replica& replica = replica_of(state, action.replica);
  if (replica.phase == Phase::absent || replica.phase == Phase::stopped) return false;
  if (replica.epoch + 1 >= state.epochs) return false;
  adopt(state, scope, action.replica, replica.epoch + 1);
  return true;
}

// An operator removes a member, dead or alive; it need not know.
bool remove(State& state, const Action& action) {
  Config config = newest(state);
  if (state.removals_left == 0 || !has(config.members, action.replica)) return false;
  if (std::popcount(config.members) < 3) return false;
  config.members &= static_cast<Mask>(~bit(action.replica));
  config.removed |= bit(replica_of(state, action.replica).actor);
  --state.removals_left;
  if (!commit(state, config)) return false;
  note_losses(state);
  return true;
}

bool join(State& state, const Scope& scope, const Action& action) {
  Config config = newest(state);
  Replica& replica = replica_of(state, action.replica);
  if (state.joins_left == 0 || config.pending != 0 || replica.phase != Phase::absent) return false;
  if (state.actors == kActorsMax) return false;
  config.pending |= bit(action.replica);
  if (!commit(state, config)) return false;
  --state.joins_left;
  replica.actor = state.actors++;
  state.slot_of_actor[replica.actor] = action.replica;
  replica.epoch = static_cast<std::uint8_t>(state.epochs - 1);
  replica.phase = scope.mutant == Mutant::claim_everything ? Phase::installed : Phase::joining;
  return true;
}

// S8: a joiner copies a member that is in the epoch which made it pending.
bool may_scan(State& state, const Scope& scope, const Action& action) {
  const Replica& replica = replica_of(state, action.replica);
  if (replica.phase != Phase::joining || !coordinates(state, action.peer)) return false;
  return meet(state, scope, action.replica, action.peer) && coordinates(state, action.peer) &&
         has(config_of(state, replica_of(state, action.peer)).pending, action.replica);
}

// S8, as first written, claimed the clock at the *start* of the scan while objects are read later
// and may be newer: effects without their dots. Now the scan ends with the mutations that arrived
// meanwhile and claims the clock at its end, which makes it one step: `install`.
bool start_scan(State& state, const Scope& scope, const Action& action) {
  if (scope.mutant != Mutant::scan_claims_its_start || state.delays_left == 0) return false;
  if (!may_scan(state, scope, action)) return false;
  const Replica& source = replica_of(state, action.peer);
  Message scan{};
  scan.kind = MessageKind::scan;
  scan.from = action.peer;
  scan.to = action.replica;
  scan.to_actor = replica_of(state, action.replica).actor;
  scan.epoch = source.epoch;
  scan.clock = source.clock;
  scan.served = source.log;
  return post(state, scan);
}

bool install(State& state, const Scope& scope, const Action& action) {
  if (!may_scan(state, scope, action)) return false;
  const Replica& source = replica_of(state, action.peer);
  reconcile(state, scope, action.replica, action.peer, source.clock, source.log);
  replica_of(state, action.replica).phase = Phase::installed;
  return true;
}

bool promote(State& state, const Scope& scope, const Action& action) {
  const Replica& replica = replica_of(state, action.replica);
  Config config = newest(state);
  if (!has(config.pending, action.replica) || replica.phase != Phase::installed) return false;
  if (replica.epoch + 1 != state.epochs) return false;
  const bool pulled_all = (replica.pulled & config.members) == config.members;
  if (!pulled_all && scope.mutant != Mutant::promote_early) return false;
  config.pending = 0;
  config.members |= bit(action.replica);
  return commit(state, config);
}

// P11: a node whose clock spans ranges it does not hold gains one, and streams it from a member.
bool gain_range(State& state, const Scope& scope, const Action& action) {
  Replica& replica = replica_of(state, action.replica);
  const Replica& source = replica_of(state, action.peer);
  if (replica.lacks_range == 0 || source.lacks_range != 0) return false;
  replica.lacks_range = 0;
  for (int cell = kCellsPerTable; cell < kCells; ++cell) {
    take_object(state, action.replica, action.peer, cell, filled(state, scope, action.peer, cell));
  }
  return true;
}

}  // namespace helenus::explore
