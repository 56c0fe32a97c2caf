#include "explore/symmetry.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace helenus::explore {

namespace {

template <std::size_t N>
std::uint8_t named(const std::array<std::uint8_t, N>& names, std::uint8_t old) {
  return old < N ? names[old] : old;
}

// A mask under new names; bits that have no name stay (an acknowledgement by all is all ones).
template <std::size_t N>
unsigned renamed_mask(const std::array<std::uint8_t, N>& names, unsigned mask) {
  unsigned result = mask & ~((1U << N) - 1);
  each(mask & ((1U << N) - 1), [&](int old) { result |= 1U << names[static_cast<unsigned>(old)]; });
  return result;
}

// Renames a state. One object a renaming, so that no function has more than the names and the old.
class Renamer {
 public:
  explicit Renamer(const Renaming& names) : names_(names) {
    for (unsigned cell = 0; cell < kCells; ++cell) {
      const unsigned table = cell / kCellsPerTable;
      cell_[cell] = static_cast<std::uint8_t>(names.table[table] * kCellsPerTable +
                                              names.slot[table][cell % kCellsPerTable]);
    }
  }

  State run(const State& old) const {
    State state = old;
    for (unsigned e = 0; e < old.events; ++e) state.event[names_.event[e]] = event(old.event[e]);
    for (unsigned r = 0; r < kReplicasMax; ++r) {
      if (old.replica[r].phase == Phase::absent) {
        state.replica[names_.replica[r]] = old.replica[r];
      } else {
        replica(old.replica[r], state.replica[names_.replica[r]]);
      }
    }
    for (unsigned e = 0; e < old.epochs; ++e) {
      state.config[e] = {.members = replicas(old.config[e].members),
                         .pending = replicas(old.config[e].pending),
                         .removed = actors(old.config[e].removed)};
    }
    for (Message& message : state.message) {
      if (message.kind != MessageKind::none) message = renamed_message(message);
    }
    for (unsigned actor = 0; actor < old.actors; ++actor) {
      state.slot_of_actor[names_.actor[actor]] = named(names_.replica, old.slot_of_actor[actor]);
    }
    state.replacing = events(old.replacing);
    state.acked = events(old.acked);
    state.lost = events(old.lost);
    state.crashable = replicas(old.crashable);
    return state;
  }

  Action run(Action action) const {
    action.replica = named(names_.replica, action.replica);
    action.peer = named(names_.replica, action.peer);
    switch (action.kind) {
      case ActionKind::write:
        action.what = static_cast<std::uint8_t>(renamed_mask(cell_, action.what));
        break;
      case ActionKind::deliver:
      case ActionKind::pull_page:
        action.what = named(names_.event, action.what);
        break;
      case ActionKind::repair:
      case ActionKind::send_repair:
        action.what = named(cell_, action.what);
        break;
      case ActionKind::freeze:
      case ActionKind::flush:
      case ActionKind::compact:
      case ActionKind::merge_all:
        action.what = named(names_.table, action.what);
        break;
      default:
        break;
    }
    return action;
  }

 private:
  Events events(Events old) const {
    return static_cast<Events>(old == 0 ? 0 : renamed_mask(names_.event, old));
  }
  Mask replicas(Mask old) const { return static_cast<Mask>(renamed_mask(names_.replica, old)); }
  Mask actors(Mask old) const { return static_cast<Mask>(renamed_mask(names_.actor, old)); }

  Event event(Event old) const {
    old.actor = named(names_.actor, old.actor);
    old.cells = static_cast<Mask>(renamed_mask(cell_, old.cells));
    old.acks = replicas(old.acks);
    old.context = events(old.context);
    old.past = events(old.past);
    if (old.partner != 0) {
      old.partner = static_cast<std::uint8_t>(names_.event[old.partner - 1U] + 1);
    }
    return old;
  }
  Layer layer(const Layer& old, unsigned table) const {
    Layer result{};
    for (unsigned slot = 0; slot < kSlots; ++slot) {
      const unsigned to = slot == kScopeSlot ? slot : names_.slot[table][slot];
      result[to] = {events(old[slot].versions), events(old[slot].context)};
    }
    return result;
  }
  Freeze freeze(Freeze old) const {
    old.clock = events(old.clock);
    old.base = events(old.base);
    old.stable = events(old.stable);
    old.closed = actors(old.closed);
    return old;
  }
  Table table(const Table& old, unsigned t) const {
    Table result = old;
    result.memtable = layer(old.memtable, t);
    result.memtable_synced = layer(old.memtable_synced, t);
    if (old.is_frozen != 0) {
      result.frozen = layer(old.frozen, t);
      result.frozen_synced = layer(old.frozen_synced, t);
      result.frozen_at = freeze(old.frozen_at);
      for (unsigned slot = 0; slot < kCellsPerTable; ++slot) {
        result.frozen_applied[names_.slot[t][slot]] = events(old.frozen_applied[slot]);
        result.frozen_reflected[names_.slot[t][slot]] = events(old.frozen_reflected[slot]);
      }
    }
    for (unsigned i = 0; i < old.sstables; ++i) {
      result.sstable[i] = layer(old.sstable[i], t);
      result.sstable_at[i] = freeze(old.sstable_at[i]);
    }
    return result;
  }
  void replica(const Replica& old, Replica& result) const {
    result = old;
    for (unsigned t = 0; t < kTables; ++t) {
      result.table[names_.table[t]] = table(old.table[t], t);
    }
    for (unsigned cell = 0; cell < kCells; ++cell) {
      result.applied[cell_[cell]] = events(old.applied[cell]);
      result.reflected[cell_[cell]] = events(old.reflected[cell]);
      result.applied_synced[cell_[cell]] = events(old.applied_synced[cell]);
      result.reflected_synced[cell_[cell]] = events(old.reflected_synced[cell]);
    }
    for (unsigned r = 0; r < kReplicasMax; ++r) {
      result.watermark[names_.replica[r]] = events(old.watermark[r]);
    }
    result.clock = events(old.clock);
    result.log = events(old.log);
    result.capped = events(old.capped);
    result.clock_synced = events(old.clock_synced);
    result.log_synced = events(old.log_synced);
    result.closed = actors(old.closed);
    result.closed_synced = actors(old.closed_synced);
    result.pulled = replicas(old.pulled);
    result.reconciled = replicas(old.reconciled);
    result.reported = replicas(old.reported);
    result.actor = named(names_.actor, old.actor);
  }
  Message renamed_message(Message old) const {
    old.from = named(names_.replica, old.from);
    old.to = named(names_.replica, old.to);
    old.from_actor = named(names_.actor, old.from_actor);
    old.to_actor = named(names_.actor, old.to_actor);
    if (old.kind == MessageKind::repair) old.cell = named(cell_, old.cell);
    old.served = events(old.served);
    old.clock = events(old.clock);
    old.base = events(old.base);
    return old;
  }

  const Renaming& names_;
  std::array<std::uint8_t, kCells> cell_{};
};

Mask live_replicas(const State& state) {
  Mask live = 0;
  for (int r = 0; r < kReplicasMax; ++r) {
    const Phase phase = replica_of(state, r).phase;
    if (phase != Phase::absent && phase != Phase::stopped) live |= bit(r);
  }
  return live;
}

Events versions_in(const Layer& layer) {
  Events versions = 0;
  for (const Fragment& slot : layer) versions |= slot.versions;
  return versions;
}
Events contexts_in(const Layer& layer) {
  Events contexts = 0;
  for (const Fragment& slot : layer) contexts |= slot.context;
  return contexts;
}

// A merge goes by the freeze of its newest input, and looks there only for what is in its inputs.
void forget_in_freeze(Freeze& at, Events versions, Events contexts, const State& state) {
  at.clock = 0;
  at.closed = 0;
  at.base &= contexts;
  at.stable &= versions;
  bool expiring = false;
  each(versions, [&](int e) { expiring = expiring || event_of(state, e).expires != 0; });
  if (!expiring) at.expired = 0;
}

// What is in a mutation log, or may come into one again: a crash may lose it, a joiner lack it.
Events logged_or_not_everywhere(const State& state) {
  if (state.crashes_left != 0 || state.joins_left != 0) return static_cast<Events>(~0U);
  Events logged = 0;
  auto everywhere = static_cast<Events>(~0U);
  each(live_replicas(state), [&](int r) {
    logged |= replica_of(state, r).log;
    everywhere &= replica_of(state, r).clock;
  });
  for (const Message& message : state.message) logged |= message.served;
  return static_cast<Events>(logged | ~everywhere);
}

// Watermarks matter for what is alive here and for what may be in a log: a reconcile may bring the
// entry of another's log here.
void forget_in_replica(const State& state, const Scope& scope, Events logged, Replica& replica) {
  Events alive = logged;
  for (Table& table : replica.table) {
    Events versions = 0;
    Events contexts = 0;
    for (unsigned i = 0; i < table.sstables; ++i) {
      versions |= versions_in(table.sstable[i]);
      contexts |= contexts_in(table.sstable[i]);
      forget_in_freeze(table.sstable_at[i], versions, contexts, state);
    }
    versions |= versions_in(table.frozen);
    contexts |= contexts_in(table.frozen);
    if (table.is_frozen != 0) forget_in_freeze(table.frozen_at, versions, contexts, state);
    table.frozen_applied = {};
    table.frozen_reflected = {};
    alive |= static_cast<Events>(versions | versions_in(table.memtable));
  }
  for (Events& watermark : replica.watermark) watermark &= alive;
  if (scope.client_contexts) return;
  for (int cell = 0; cell < kCells; ++cell) {
    Events touching = 0;
    for (int e = 0; e < state.events; ++e) {
      if (has(event_of(state, e).cells, cell)) touching |= event_bit(e);
    }
    replica.reflected[static_cast<unsigned>(cell)] &= touching;
    replica.reflected_synced[static_cast<unsigned>(cell)] &= touching;
  }
}

// A promise about a mutation that nobody can lose any more is kept whatever happens.
bool is_safe(const State& state, const Scope& scope, int e) {
  if (scope.quorum_deletes || state.crashes_left != 0 || state.joins_left != 0) return false;
  bool safe = true;
  each(live_replicas(state), [&](int r) {
    each(event_of(state, e).cells, [&](int cell) {
      safe = safe && has(replica_of(state, r).reflected[static_cast<unsigned>(cell)], e);
    });
  });
  return safe;
}

void forget_in_event(const State& state, const Scope& scope, Event& event, int oldest_epoch,
                     bool promised) {
  const auto by_all = static_cast<Mask>(~0U);
  if (promised) event.acks = by_all;
  if (event.epoch < oldest_epoch && event.acks != by_all) event.acks = 0;
  if (event.epoch < oldest_epoch || (event.acks == by_all && event.epoch == oldest_epoch)) {
    event.epoch = 0;
  }
  if (scope.client_contexts) return;
  Events touching = 0;
  for (int e = 0; e < state.events; ++e) {
    if ((event_of(state, e).cells & event.cells) != 0) touching |= event_bit(e);
  }
  event.past &= touching;
}

// Numbers about a replica that are the same under all names.
std::uint64_t signature_of(const State& state, int r) {
  const Replica& replica = replica_of(state, r);
  std::uint64_t signature = static_cast<std::uint64_t>(replica.phase);
  const auto add = [&](unsigned number) { signature = signature * 31 + number; };
  const auto count = [&](unsigned mask) { add(static_cast<unsigned>(std::popcount(mask))); };
  add(replica.epoch);
  add(replica.wall);
  count(replica.clock);
  count(replica.log);
  count(replica.pulled);
  count(replica.clock_synced);
  unsigned minted = 0;
  for (int e = 0; e < state.events; ++e) {
    const Event& event = event_of(state, e);
    if (event.actor != replica.actor) continue;
    const auto width = static_cast<unsigned>(std::popcount(event.cells));
    minted += 1 + 16U * event.timestamp + 256U * static_cast<unsigned>(event.kind) + 1024U * width;
  }
  add(minted);
  unsigned held = 0;
  unsigned freezes = 0;
  for (const Table& table : replica.table) {
    for (const Fragment& slot : table.memtable) {
      held +=
          static_cast<unsigned>(std::popcount(slot.versions) + 16 * std::popcount(slot.context));
    }
    freezes += table.freezes;
  }
  add(held);
  add(freezes);
  for (int other = 0; other < kReplicasMax; ++other) {
    const Replica& peer = replica_of(state, other);
    signature += has(peer.pulled, r) ? 1009 : 0;
    signature +=
        65537U * static_cast<unsigned>(std::popcount(peer.watermark[static_cast<unsigned>(r)]));
  }
  return signature;
}

// Whether the order of two mutations means something.
bool ordered(const Event& a, const Event& b, const Scope& scope) {
  if (a.actor == b.actor) return true;
  return scope.policy == Policy::lww && a.timestamp == b.timestamp &&
         (a.kind == Kind::remove) == (b.kind == Kind::remove);
}

}  // namespace

Renaming identity_renaming() {
  Renaming names{};
  std::iota(names.replica.begin(), names.replica.end(), std::uint8_t{0});
  std::iota(names.actor.begin(), names.actor.end(), std::uint8_t{0});
  std::iota(names.table.begin(), names.table.end(), std::uint8_t{0});
  for (auto& slots : names.slot) std::iota(slots.begin(), slots.end(), std::uint8_t{0});
  std::iota(names.event.begin(), names.event.end(), std::uint8_t{0});
  return names;
}

State renamed(const State& state, const Renaming& names) {
  return Renamer(names).run(state);
}

Action renamed(const Action& action, const Renaming& names) {
  return Renamer(names).run(action);
}

State without_the_forgotten(const State& state, const Scope& scope) {
  if (scope.mutant != Mutant::none) return state;
  State result = state;
  const Mask live = live_replicas(state);
  int oldest_epoch = state.epochs - 1;
  each(live,
       [&](int r) { oldest_epoch = std::min(oldest_epoch, int{replica_of(state, r).epoch}); });
  const Events logged = logged_or_not_everywhere(state);
  for (Replica& replica : result.replica) {
    if (replica.phase == Phase::absent) continue;
    if (replica.phase != Phase::stopped) {
      forget_in_replica(state, scope, logged, replica);
    } else {
      const std::uint8_t actor = replica.actor;
      replica = {};
      replica.phase = Phase::stopped;
      replica.actor = actor;
    }
  }
  for (unsigned e = 0; e < state.events; ++e) {
    const bool safe = is_safe(state, scope, static_cast<int>(e));
    if (safe) result.acked |= event_bit(static_cast<int>(e));
    forget_in_event(state, scope, result.event[e], oldest_epoch, safe);
  }
  for (int e = 0; e < oldest_epoch; ++e) result.config[static_cast<unsigned>(e)] = {};
  return result;
}

Renaming with_events_in_normal_form(const State& state, const Scope& scope, Renaming names) {
  Events placed = 0;
  for (std::uint8_t place = 0; place < state.events; ++place) {
    int best = -1;
    std::uint8_t best_actor = 0;
    for (int e = 0; e < state.events; ++e) {
      if (has(placed, e)) continue;
      bool waits = false;
      for (int before = 0; before < e && !waits; ++before) {
        waits = !has(placed, before) && ordered(event_of(state, before), event_of(state, e), scope);
      }
      const std::uint8_t actor = names.actor[event_of(state, e).actor];
      if (waits || (best >= 0 && best_actor <= actor)) continue;
      best = e;
      best_actor = actor;
    }
    placed |= event_bit(best);
    names.event[static_cast<unsigned>(best)] = place;
  }
  return names;
}

Symmetry::Symmetry(const Scope& scope) : scope_(scope) {
  const State begin = initial_state(scope);
  // Nodes that hold different ranges are not alike.
  const bool cells_alike = scope.mutant != Mutant::clock_per_node;
  std::vector<Renaming> some;
  Renaming names = identity_renaming();
  const auto members = static_cast<std::ptrdiff_t>(scope.members);
  do {
    bool alike = true;
    for (int r = 0; r < scope.members; ++r) {
      const int to = names.replica[static_cast<unsigned>(r)];
      alike = alike && has(begin.crashable, r) == has(begin.crashable, to) &&
              replica_of(begin, r).lacks_range == replica_of(begin, to).lacks_range;
      names.actor[static_cast<unsigned>(r)] = static_cast<std::uint8_t>(to);
    }
    if (!alike) continue;
    some.push_back(names);
    for (unsigned r = 0; r < static_cast<unsigned>(scope.members); ++r) {
      alike_[r] |= bit(names.replica[r]);
    }
  } while (std::next_permutation(names.replica.begin(), names.replica.begin() + members));
  const auto multiply = [&](bool applies, const auto& change) {
    if (!applies) return;
    const std::size_t size = some.size();
    for (std::size_t i = 0; i < size; ++i) {
      Renaming other = some[i];
      change(other);
      some.push_back(other);
    }
  };
  for (unsigned t = 0; t < static_cast<unsigned>(scope.tables); ++t) {
    multiply(scope.cells > 1, [&](Renaming& it) { std::swap(it.slot[t][0], it.slot[t][1]); });
  }
  multiply(scope.tables > 1 && cells_alike,
           [](Renaming& it) { std::swap(it.table[0], it.table[1]); });
  renamings_ = std::move(some);
}

bool Symmetry::in_order_of_signatures(
    const Renaming& names, const std::array<std::uint64_t, kReplicasMax>& signatures) const {
  for (unsigned a = 0; a < kReplicasMax; ++a) {
    for (unsigned b = 0; b < kReplicasMax; ++b) {
      if (!has(alike_[a], static_cast<int>(b)) || signatures[a] >= signatures[b]) continue;
      if (names.replica[a] > names.replica[b]) return false;
    }
  }
  return true;
}

base::Hash128 Symmetry::fingerprint(const State& whole) const {
  const State state = without_the_forgotten(whole, scope_);
  std::array<std::uint64_t, kReplicasMax> signatures{};
  for (int r = 0; r < scope_.members; ++r) {
    signatures[static_cast<unsigned>(r)] = signature_of(state, r);
  }
  std::optional<base::Hash128> smallest;
  for (const Renaming& names : renamings_) {
    if (!in_order_of_signatures(names, signatures)) continue;
    const State other = renamed(state, with_events_in_normal_form(state, scope_, names));
    const base::Hash128 hash = base::hash128(std::as_bytes(std::span(&other, 1)));
    if (!smallest || std::pair(hash.high, hash.low) < std::pair(smallest->high, smallest->low)) {
      smallest = hash;
    }
  }
  return *smallest;
}

}  // namespace helenus::explore
