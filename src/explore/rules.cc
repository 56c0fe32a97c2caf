#include "explore/rules.h"

#include <algorithm>
#include <optional>

namespace helenus::explore {

namespace {

bool hides(const State& state, int event) {
  return event_of(state, event).kind == Kind::remove;
}

}  // namespace

Events base_of(const State& state, Events clock, Mask closed) {
  Events base = 0;
  Mask broken = 0;
  for (int e = 0; e < state.events; ++e) {
    const int actor = event_of(state, e).actor;
    if (has(closed, actor) || (has(clock, e) && !has(broken, actor))) {
      base |= event_bit(e);
    } else {
      broken |= bit(actor);
    }
  }
  return base;
}

Events seen_by(const State& state, const Replica& replica) {
  if (replica.closed == 0) return replica.clock;
  return static_cast<Events>(replica.clock | minted_by(state, replica.closed));
}

Mask others_of(const State& state, int self) {
  const Config& config = config_of(state, replica_of(state, self));
  return static_cast<Mask>((config.members | config.pending) & ~bit(self));
}

Events stable_at(const State& state, const Scope& scope, int self) {
  const Replica& replica = replica_of(state, self);
  Mask others = others_of(state, self);
  if (scope.mutant == Mutant::drop_ignores_pending) others &= config_of(state, replica).members;
  if ((replica.pulled & others) != others) return 0;
  Events stable = base_of(state, replica);
  each(others, [&](int other) { stable &= replica.watermark[static_cast<unsigned>(other)]; });
  return stable;
}

namespace {

bool may_lose_tail(const State& state, const Scope& scope, int self) {
  return has(state.crashable, self) && scope.mutant != Mutant::unsynced_watermark;
}

}  // namespace

Events synced_clock(const State& state, const Scope& scope, int self) {
  const Replica& replica = replica_of(state, self);
  return may_lose_tail(state, scope, self) ? replica.clock_synced : replica.clock;
}

Events synced_base(const State& state, const Scope& scope, int self) {
  const Replica& replica = replica_of(state, self);
  return base_of(state, synced_clock(state, scope, self),
                 may_lose_tail(state, scope, self) ? replica.closed_synced : replica.closed);
}

bool expired_everywhere(const State& state, const Scope& scope, int self) {
  const Replica& replica = replica_of(state, self);
  if (scope.mutant == Mutant::expiry_by_one_wall_clock) return replica.wall != 0;
  const Mask others = others_of(state, self);
  return replica.wall != 0 && (replica.reported & others) == others;
}

Fragment merged(const Fragment& a, const Fragment& b) {
  const auto context = static_cast<Events>(a.context | b.context);
  return {without(static_cast<Events>(a.versions | b.versions), context), context};
}

Events standing(const State& state, Events versions) {
  Events overridden = 0;
  each(versions & state.replacing,
       [&](int e) { overridden |= event_bit(event_of(state, e).partner - 1); });
  return without(versions, overridden);
}

Fragment read_cell(const State& state, const Replica& replica, int cell) {
  const Table& table = replica.table[static_cast<unsigned>(cell / kCellsPerTable)];
  const auto slot = static_cast<unsigned>(cell % kCellsPerTable);
  Fragment whole{};
  const auto take = [&](const Layer& layer) {
    whole = merged(whole, layer[slot]);
    whole = merged(whole, layer[kScopeSlot]);
  };
  take(table.memtable);
  if (table.is_frozen) take(table.frozen);
  for (unsigned i = 0; i < table.sstables; ++i) take(table.sstable[i]);
  whole.versions = standing(state, whole.versions);
  return whole;
}

Fragment filled(const State& state, const Scope& scope, int sender, int cell) {
  return filled(state, scope, sender, read_cell(state, replica_of(state, sender), cell));
}

Fragment filled(const State& state, const Scope& scope, int sender, const Fragment& whole) {
  const Replica& replica = replica_of(state, sender);
  Events clock = seen_by(state, replica);
  if (scope.mutant == Mutant::fill_over_members) {
    Mask actors = 0;
    each(config_of(state, replica).members,
         [&](int member) { actors |= bit(replica_of(state, member).actor); });
    clock &= minted_by(state, actors);
  }
  return {whole.versions, without(static_cast<Events>(whole.context | clock), whole.versions)};
}

bool defeats(const State& state, int a, int b) {
  const Event& left = event_of(state, a);
  const Event& right = event_of(state, b);
  if (left.timestamp != right.timestamp) return left.timestamp > right.timestamp;
  if (hides(state, a) != hides(state, b)) return hides(state, a);
  if (left.expires != right.expires) return left.expires != 0;
  return a > b;
}

Events visible(const State& state, const Scope& scope, Events versions, int wall) {
  const auto shows = [&](int e) {
    return !hides(state, e) && !(event_of(state, e).expires != 0 && wall != 0);
  };
  Events seen = 0;
  if (scope.policy != Policy::lww) {
    each(versions, [&](int e) {
      if (shows(e)) seen |= event_bit(e);
    });
    return seen;
  }
  int best = -1;
  each(versions, [&](int e) {
    if (best < 0 || defeats(state, e, best)) best = e;
  });
  return best >= 0 && shows(best) ? event_bit(best) : Events{0};
}

void apply_mutation(State& state, const Scope& scope, int r, int e) {
  Replica& replica = replica_of(state, r);
  const Event& event = event_of(state, e);
  if (has(seen_by(state, replica), e)) return;
  const bool adds_version = event.kind != Kind::remove || scope.policy == Policy::lww;
  const Fragment fragment{adds_version ? event_bit(e) : Events{0}, event.context};
  const auto merge_into = [&](int table, int slot) {
    if (replica.lacks_range != 0 && table == 1) return;
    Fragment& held =
        replica.table[static_cast<unsigned>(table)].memtable[static_cast<unsigned>(slot)];
    held = merged(held, fragment);
    if (scope.mutant == Mutant::strip_at_insert) {
      held.context = without(held.context, base_of(state, replica));
    }
  };
  each(event.cells, [&](int cell) {
    if (replica.lacks_range != 0 && cell >= kCellsPerTable) return;
    if (event.scoped == 0) merge_into(cell / kCellsPerTable, cell % kCellsPerTable);
    replica.applied[static_cast<unsigned>(cell)] |= event_bit(e);
    replica.reflected[static_cast<unsigned>(cell)] |=
        static_cast<Events>(event_bit(e) | event.past);
  });
  if (event.scoped != 0) merge_into(std::countr_zero(event.cells) / kCellsPerTable, kScopeSlot);
  replica.log |= event_bit(e);
  replica.clock |= event_bit(e);
  if (event.partner != 0) apply_mutation(state, scope, r, event.partner - 1);
}

void adopt(State& state, const Scope& scope, int r, int epoch) {
  Replica& replica = replica_of(state, r);
  if (replica.epoch >= epoch) return;
  if (scope.mutant != Mutant::adopt_without_sync) sync_log(state, r);
  replica.epoch = static_cast<std::uint8_t>(epoch);
  replica.pulled = 0;
  replica.reconciled = 0;
  replica.reported = 0;
  replica.watermark = {};
  if (has(config_of(state, replica).removed, replica.actor)) replica.phase = Phase::stopped;
  const bool member = has(config_of(state, replica).members, r);
  if (member && replica.phase == Phase::installed) replica.phase = Phase::active;
}

void close_removed(State& state, const Scope& scope, int r) {
  Replica& replica = replica_of(state, r);
  const Mask others = others_of(state, r);
  const bool pulled_all = (replica.pulled & others) == others;
  if (pulled_all || scope.mutant == Mutant::close_early) {
    replica.closed |= config_of(state, replica).removed;
  }
}

void collect_log(State& state, int r) {
  Replica& replica = replica_of(state, r);
  const Mask others = others_of(state, r);
  if ((replica.pulled & others) != others) return;
  Events everywhere = replica.clock;
  each(others, [&](int other) { everywhere &= replica.watermark[static_cast<unsigned>(other)]; });
  replica.log = without(replica.log, everywhere);
  replica.capped &= replica.log;
}

void sync_log(State& state, int r) {
  if (!has(state.crashable, r)) return;
  Replica& replica = replica_of(state, r);
  for (Table& table : replica.table) {
    table.memtable_synced = table.memtable;
    table.frozen_synced = table.frozen;
  }
  replica.clock_synced = replica.clock;
  replica.log_synced = replica.log;
  replica.closed_synced = replica.closed;
  replica.applied_synced = replica.applied;
  replica.reflected_synced = replica.reflected;
}

bool is_empty(const Layer& layer) {
  return std::ranges::all_of(layer, [](const Fragment& f) { return f == Fragment{}; });
}

namespace {

// What may be dropped of concurrent versions: stable ones that show nothing for ever or are
// defeated, with all they defeat (c).
Events droppable(const State& state, const Scope& scope, Events versions, const Freeze& at) {
  const auto over = [&](int e) {
    return hides(state, e) || (event_of(state, e).expires != 0 && at.expired != 0);
  };
  Events dropped = 0;
  if (scope.policy != Policy::lww) {
    each(versions & at.stable, [&](int e) {
      if (over(e)) dropped |= event_bit(e);
    });
    return dropped;
  }
  int best = -1;
  each(versions, [&](int e) {
    if (best < 0 || defeats(state, e, best)) best = e;
  });
  int strongest = -1;
  each(versions & at.stable, [&](int e) {
    if (e == best && !over(e)) return;
    if (strongest < 0 || defeats(state, e, strongest)) strongest = e;
  });
  if (strongest < 0) return 0;
  each(versions, [&](int e) {
    if (e == strongest || defeats(state, strongest, e)) dropped |= event_bit(e);
  });
  return dropped;
}

}  // namespace

bool holds(const Layer& layer, int slot) {
  const Fragment none{};
  if (slot == kScopeSlot) return !is_empty(layer);
  return layer[static_cast<unsigned>(slot)] != none || layer[kScopeSlot] != none;
}

Instant instant_of(const MergePlan& plan, int slot) {
  const auto held = [&](const Layer* const* layers, int count) {
    return std::any_of(layers, layers + count,
                       [&](const Layer* layer) { return holds(*layer, slot); });
  };
  if (held(plan.older, plan.olders)) return Instant::none;
  return held(plan.newer, plan.newers) ? Instant::newest_freeze : Instant::now;
}

Freeze freeze_now(const State& state, const Scope& scope, int r) {
  const Replica& replica = replica_of(state, r);
  return {.clock = replica.clock,
          .base = base_of(state, replica),
          .stable = stable_at(state, scope, r),
          .closed = replica.closed,
          .expired = expired_everywhere(state, scope, r),
          .first = 0,
          .last = 0};
}

namespace {

// What a slot may be stripped and dropped by; nullopt when the merge does not hold all of it at any
// instant. What was known at the freeze is still true now, even if an epoch has begun since in
// which nothing is known to be stable yet: a cell and its scope must not be judged by different
// knowledge, or the scope's version goes and leaves behind what it defeated.
std::optional<Freeze> known_for(const Scope& scope, const MergePlan& plan, int slot) {
  const Instant instant = instant_of(plan, slot);
  const bool beside_older = scope.mutant == Mutant::strip_beside_older_fragment;
  if (instant == Instant::none && !beside_older) return std::nullopt;
  Freeze known = plan.at_freeze;
  if (instant == Instant::now) {
    known.base |= plan.now.base;
    known.stable |= plan.now.stable;
    known.expired |= plan.now.expired;
  }
  return known;
}

}  // namespace

Layer merge_layers(const State& state, const Scope& scope, const MergePlan& plan) {
  Layer out{};
  for (int i = 0; i < plan.inputs; ++i) {
    for (unsigned slot = 0; slot < kSlots; ++slot) {
      out[slot] = merged(out[slot], (*plan.input[i])[slot]);
    }
  }
  Fragment& scope_slot = out[kScopeSlot];
  for (int slot = 0; slot < kCellsPerTable; ++slot) {
    Fragment& cell = out[static_cast<unsigned>(slot)];
    cell.versions = standing(state, without(cell.versions, scope_slot.context));
    const std::optional<Freeze> at = known_for(scope, plan, slot);
    if (!at) continue;
    const Events whole = standing(state, merged(cell, scope_slot).versions);
    cell.versions = without(cell.versions, droppable(state, scope, whole, *at));
    // A scope's version cannot be taken out for one cell alone: the cell goes on naming it.
    Events spared = scope_slot.versions;
    if (scope.mutant == Mutant::strip_cell_under_scope) spared = 0;
    cell.context = without(cell.context, without(at->base, spared));
  }
  if (const std::optional<Freeze> at = known_for(scope, plan, kScopeSlot)) {
    scope_slot.versions = without(scope_slot.versions, at->stable);
    scope_slot.context = without(scope_slot.context, at->base);
  }
  return out;
}

bool fenced(const State& state, const Scope& scope, int receiver, int actor) {
  if (scope.mutant == Mutant::no_fence) return false;
  return has(config_of(state, replica_of(state, receiver)).removed, actor);
}

void take_object(State& state, int to, int from, int cell, const Fragment& object) {
  Replica& taker = replica_of(state, to);
  const Replica& giver = replica_of(state, from);
  Fragment& held = taker.table[static_cast<unsigned>(cell / kCellsPerTable)]
                       .memtable[static_cast<unsigned>(cell % kCellsPerTable)];
  // What the taker has seen is alive in its own store, or superseded: it is never added again.
  held = merged(held, {without(object.versions, seen_by(state, taker)), object.context});
  held.versions = standing(state, held.versions);
  const auto at = static_cast<unsigned>(cell);
  taker.applied[at] |= giver.applied[at];
  taker.reflected[at] |= giver.reflected[at];
}

void reconcile(State& state, const Scope& scope, int to, int from, Events claim, Events log) {
  Replica& taker = replica_of(state, to);
  const Replica& giver = replica_of(state, from);
  const Events seen = seen_by(state, taker);
  for (int cell = 0; cell < scope.tables * kCellsPerTable; ++cell) {
    Fragment object = filled(state, scope, from, cell);
    // S6: a bad block is an error, and nothing is installed.
    if (scope.mutant == Mutant::error_is_empty && cell == 0) {
      object = {0, static_cast<Events>(object.context | object.versions)};
    }
    take_object(state, to, from, cell, object);
  }
  // Scopes travel as they are: filled, a scope would name what is alive in its cells.
  for (int t = 0; t < scope.tables; ++t) {
    const Table& table = giver.table[static_cast<unsigned>(t)];
    Fragment whole = table.memtable[kScopeSlot];
    if (table.is_frozen != 0) whole = merged(whole, table.frozen[kScopeSlot]);
    for (unsigned i = 0; i < table.sstables; ++i) {
      whole = merged(whole, table.sstable[i][kScopeSlot]);
    }
    Fragment& held = taker.table[static_cast<unsigned>(t)].memtable[kScopeSlot];
    held = merged(held, {without(whole.versions, seen), whole.context});
  }
  taker.clock |= claim;
  taker.log |= static_cast<Events>(log & claim);
  taker.closed |= giver.closed;
}

}  // namespace helenus::explore
