#include "explore/counter_world.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/codec.h"
#include "causality/codec.h"
#include "causality/delta.h"

namespace helenus::explore {

using causality::CellStore;
using causality::Clock;
using causality::CounterAnswer;
using causality::Dot;
using causality::Stability;
using causality::Version;
using causality::VersionKind;
using causality::Versions;

namespace {

constexpr causality::ColumnId kColumn{1};

CounterReplica& at(CounterState& state, int r) {
  return state.replica[static_cast<std::size_t>(r)];
}
const CounterReplica& at(const CounterState& state, int r) {
  return state.replica[static_cast<std::size_t>(r)];
}

causality::ActorId actor_of_replica(int r) {
  return causality::actor_of(static_cast<std::uint32_t>(r + 1), 1);
}

// Whether peers may pull from it.
bool shows(const CounterReplica& replica) {
  return replica.phase == CounterPhase::member || replica.phase == CounterPhase::pending;
}

causality::OperationId name_of(int operation) {
  causality::OperationId id{};
  id[0] = static_cast<std::byte>(operation);
  id[6] = std::byte{0x70};
  return id;
}

CellStore fragment_of_event(const CounterEvent& event, const CounterScope& scope) {
  causality::Delta delta;
  delta.dot = event.dot;
  delta.context.dots = event.context;
  const bool is_named = event.operation != 0 && scope.mutant != CounterMutant::aliases_apart;
  if (is_named) delta.operation = name_of(event.operation);
  causality::CellChange change;
  change.column = kColumn;
  change.kind = event.deletes ? VersionKind::deletion : VersionKind::increment;
  change.amount = event.amount;
  delta.cells.push_back(std::move(change));
  return causality::row_fragment_of(std::move(delta), causality::Policy::counter).cell(kColumn);
}

template <class Goes>
void take_out(CellStore& cell, Goes goes) {
  std::vector<Dot> dots;
  for (const Version& version : cell.versions()) {
    if (goes(version)) dots.push_back(version.dot);
  }
  cell.forget(dots);
}

// What mutants make of a cell whenever it changes.
void spoil(CellStore& cell, const CounterScope& scope) {
  if (scope.mutant == CounterMutant::alias_revives) {
    take_out(cell, [](const Version& version) { return version.kind == VersionKind::dead; });
  } else if (scope.mutant == CounterMutant::delete_is_context) {
    take_out(cell, [](const Version& version) { return version.kind == VersionKind::reset; });
  } else if (scope.mutant == CounterMutant::reset_is_superseded) {
    take_out(cell, [&](const Version& version) {
      return version.kind == VersionKind::reset && cell.context().contains(version.dot);
    });
  }
}

void strip_by(const CounterState& state, CellStore& cell, const Clock& base,
              const CounterScope& scope) {
  const bool is_superseded = scope.mutant == CounterMutant::reset_is_superseded;
  if (scope.mutant != CounterMutant::context_stripped && !is_superseded) return cell.strip(base);
  Clock left = causality::subtract(cell.context(), base);
  for (const CounterEvent& event : state.events) {
    // What is left of the deletes keeps its context.
    if (is_superseded && cell.find(event.dot) != nullptr) {
      left = causality::join(left, event.context);
    }
  }
  cell = CellStore(Versions(cell.versions().begin(), cell.versions().end()), std::move(left));
}

void settle(const CounterState& state, CellStore& cell, const CounterKnowledge& known,
            const CounterScope& scope) {
  causality::fold(cell, known.stable);
  strip_by(state, cell, known.base, scope);
}

bool knows(const CounterState& state, const CounterReplica& replica, int operation) {
  return std::ranges::any_of(state.events, [&](const CounterEvent& event) {
    return event.operation == operation && replica.record.contains(event.dot);
  });
}

bool has_seen(const CounterState& state, const CounterReplica& replica, int operation) {
  return std::ranges::any_of(state.events, [&](const CounterEvent& event) {
    return event.operation == operation && replica.clock.contains(event.dot);
  });
}

void apply(CounterState& state, const CounterScope& scope, int r, const CounterEvent& event) {
  CounterReplica& replica = at(state, r);
  if (replica.clock.contains(event.dot)) return;
  replica.memtable.absorb(fragment_of_event(event, scope));
  spoil(replica.memtable, scope);
  replica.clock.add(event.dot);
  if (event.operation != 0) replica.record.add(event.dot);
}

bool mint(CounterState& state, const CounterScope& scope, int r, CounterEvent event) {
  event.dot = {actor_of_replica(r), at(state, r).clock.max_of(actor_of_replica(r)) + 1};
  state.events.push_back(event);
  apply(state, scope, r, event);
  return true;
}

std::int64_t next_amount(const CounterState& state) {
  std::int64_t amount = 1;
  for (std::size_t i = 0; i < state.events.size(); ++i) amount *= 7;
  return amount;
}

bool retry(CounterState& state, const CounterScope& scope, const CounterAction& action) {
  const int operation = action.what;
  const CounterReplica& replica = at(state, action.replica);
  if (replica.phase != CounterPhase::member || state.retries-- == 0) return false;
  if (knows(state, replica, operation)) {
    // C2: no new dot; it is answered when it is where the level wants it.
    if (scope.mutant != CounterMutant::duplicate_acknowledged_at_once) return false;
    state.answered |= 1U << operation;
    return true;
  }
  if (operation <= replica.floor && scope.mutant != CounterMutant::no_floor) return false;
  const auto first = std::ranges::find(state.events, operation, &CounterEvent::operation);
  ASSERT(first != state.events.end());
  return mint(state, scope, action.replica,
              {.dot = {}, .operation = operation, .amount = first->amount, .context = {}});
}

bool remove(CounterState& state, const CounterScope& scope, const CounterAction& action) {
  const CounterReplica& replica = at(state, action.replica);
  if (replica.phase != CounterPhase::member || state.deletes-- == 0) return false;
  Clock context = replica.clock;
  if (action.peer != action.replica) {
    const CounterReplica& peer = at(state, action.peer);
    if (!scope.united_deletes || peer.phase != CounterPhase::member) return false;
    if (replica.clock.covers(peer.clock)) return false;
    context = causality::join(context, peer.clock);
  }
  return mint(state, scope, action.replica,
              {.dot = {}, .deletes = true, .context = std::move(context)});
}

// Lets go of the record what may go: stable, and refused from now on (C2, C5).
void forget(CounterState& state, const CounterScope& scope, int r) {
  CounterReplica& replica = at(state, r);
  const Stability stable = counter_stability(state, scope, r);
  for (const CounterEvent& event : state.events) {
    const bool is_refused =
        event.operation <= replica.floor || scope.mutant == CounterMutant::no_floor;
    if (event.operation != 0 && is_refused && stable.dots.contains(event.dot)) {
      replica.record.remove(event.dot);
    }
  }
}

bool pull(CounterState& state, const CounterScope& scope, const CounterAction& action) {
  CounterReplica& replica = at(state, action.replica);
  const CounterReplica& peer = at(state, action.peer);
  if (action.replica == action.peer || !shows(replica) || !shows(peer)) return false;
  const bool hears = action.kind == CounterActionKind::hear;
  if (hears && scope.mutant != CounterMutant::gossiped_watermark) return false;
  if (state.pulls-- == 0) return false;
  const auto from = static_cast<std::size_t>(action.peer);
  const Clock watermark = causality::base(peer.clock);
  const auto bit = static_cast<std::uint8_t>(1U << action.peer);
  const bool is_old = replica.clock.covers(peer.clock) && replica.watermark[from] == watermark &&
                      (replica.pulled & bit) != 0;
  if (is_old) return false;
  if (!hears) {
    for (const CounterEvent& event : state.events) {
      if (peer.clock.contains(event.dot)) apply(state, scope, action.replica, event);
    }
    replica.pulled |= bit;
  }
  replica.watermark[from] = watermark;
  forget(state, scope, action.replica);
  return true;
}

CounterKnowledge knowledge_now(const CounterState& state, const CounterScope& scope, int r) {
  return {.base = causality::base(at(state, r).clock),
          .stable = counter_stability(state, scope, r)};
}

bool merge(CounterState& state, const CounterScope& scope, int r) {
  if (scope.fragments || !shows(at(state, r))) return false;
  const base::Hash128 before = digest_of(state);
  settle(state, at(state, r).memtable, knowledge_now(state, scope, r), scope);
  return digest_of(state) != before;
}

bool flush(CounterState& state, const CounterScope& scope, int r) {
  CounterReplica& replica = at(state, r);
  if (!scope.fragments || replica.memtable.empty() || replica.files.size() >= 3) return false;
  CounterFile file{.cell = replica.memtable, .at_freeze = knowledge_now(state, scope, r)};
  const bool whole = replica.files.empty() || scope.mutant == CounterMutant::fold_of_a_part;
  if (whole) settle(state, file.cell, file.at_freeze, scope);
  replica.memtable = {};
  if (!file.cell.empty()) replica.files.push_back(std::move(file));
  return true;
}

bool covers(const CounterKnowledge& a, const CounterKnowledge& b) {
  return a.base.covers(b.base) && a.stable.dots.covers(b.stable.dots);
}

// Merges `count` files from `first` on. See causality::merge_instant.
bool compact(CounterState& state, const CounterScope& scope, int r, std::size_t first,
             std::size_t count) {
  CounterReplica& replica = at(state, r);
  if (!scope.fragments || count == 0 || first + count > replica.files.size()) return false;
  const base::Hash128 before = digest_of(state);
  CounterFile merged{.cell = {}, .at_freeze = replica.files[first + count - 1].at_freeze};
  for (std::size_t i = first; i < first + count; ++i) merged.cell.absorb(replica.files[i].cell);
  spoil(merged.cell, scope);
  const auto is_copy = [&](std::size_t from, std::size_t to) {
    const auto begin = replica.files.begin();
    return std::any_of(begin + static_cast<std::ptrdiff_t>(from),
                       begin + static_cast<std::ptrdiff_t>(to),
                       [](const auto& f) { return f.is_copy; });
  };
  merged.is_copy = first > 0 && is_copy(first, first + count);
  const bool newer = first + count < replica.files.size() || !replica.memtable.empty();
  const CounterKnowledge now = knowledge_now(state, scope, r);
  if (first == 0 || scope.mutant == CounterMutant::fold_of_a_part) {
    const CounterKnowledge& known =
        newer || !covers(now, merged.at_freeze) ? merged.at_freeze : now;
    if (!is_copy(first + count, replica.files.size()) ||
        scope.mutant == CounterMutant::fold_before_copy) {
      settle(state, merged.cell, known, scope);
    }
  }
  const auto begin = replica.files.begin() + static_cast<std::ptrdiff_t>(first);
  replica.files.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
  if (!merged.cell.empty()) {
    replica.files.insert(replica.files.begin() + static_cast<std::ptrdiff_t>(first),
                         std::move(merged));
  }
  return digest_of(state) != before;
}

bool begin_join(CounterState& state, const CounterScope& scope) {
  const int joiner = scope.replicas - 1;
  if (!scope.joins || at(state, joiner).phase != CounterPhase::away) return false;
  at(state, joiner).phase = CounterPhase::silent;
  state.joining = true;
  for (CounterReplica& replica : state.replica) {
    replica.watermark = {};
    replica.pulled = 0;
  }
  return true;
}

// What mutants make of a difference.
void spoil_difference(CellStore& difference, const Clock& ours, const CounterScope& scope) {
  if (scope.mutant == CounterMutant::copy_without_seen) {
    take_out(difference, [&](const Version& version) {
      return version.kind != VersionKind::folded && ours.contains(version.dot);
    });
  } else if (scope.mutant == CounterMutant::copy_keeps_ours) {
    take_out(difference,
             [](const Version& version) { return version.kind == VersionKind::folded; });
  }
}

// C8, C10: the cell goes over whole, with its clock. The record stays: what the source's clock has
// the copy's owner refuses from now on, unless its own record has it.
void take_copy(CounterReplica& replica, const CounterReplica& source, const CounterState& state,
               const CounterScope& scope) {
  const CellStore theirs = read_counter(source);
  auto difference = causality::counter_difference(theirs, source.clock, read_counter(replica));
  ASSERT(difference, "what was folded here is not in the clock of {}", theirs);
  spoil_difference(*difference, replica.clock, scope);
  if (scope.fragments) {
    // Nothing is known of what lies in files of all ages.
    if (!replica.memtable.empty()) replica.files.push_back({.cell = replica.memtable});
    replica.memtable = {};
    if (!difference->empty()) {
      replica.files.push_back({.cell = *std::move(difference), .is_copy = true});
    }
  } else {
    replica.memtable.absorb(*std::move(difference));
  }
  replica.clock = causality::join(replica.clock, source.clock);
  if (scope.mutant == CounterMutant::copy_without_floor) return;
  replica.floor = std::max(replica.floor, source.floor);
  if (scope.mutant == CounterMutant::copy_with_floor_of_source) return;
  for (const CounterEvent& event : state.events) {
    if (source.clock.contains(event.dot)) replica.floor = std::max(replica.floor, event.operation);
  }
}

bool install(CounterState& state, const CounterScope& scope, const CounterAction& action) {
  CounterReplica& joiner = at(state, action.replica);
  const CounterReplica& source = at(state, action.peer);
  if (joiner.phase != CounterPhase::silent || source.phase != CounterPhase::member) return false;
  joiner.phase = CounterPhase::pending;
  take_copy(joiner, source, state, scope);
  forget(state, scope, action.replica);
  return true;
}

bool promote(CounterState& state, const CounterScope& scope, int r) {
  CounterReplica& joiner = at(state, r);
  if (joiner.phase != CounterPhase::pending) return false;
  for (int other = 0; other < scope.replicas; ++other) {
    const bool pulled = (joiner.pulled >> other & 1U) != 0;
    if (at(state, other).phase == CounterPhase::member && !pulled) return false;
  }
  joiner.phase = CounterPhase::member;
  state.joining = false;
  return true;
}

// What mutants make of answers: what all have that have seen it, as filled objects meet.
CellStore joined_by_dots(const std::vector<CounterAnswer>& answers) {
  Versions kept;
  Clock context;
  for (const CounterAnswer& answer : answers) {
    context = causality::join(context, answer.cell.context());
    for (const Version& version : answer.cell.versions()) {
      const bool stays = std::ranges::all_of(answers, [&](const CounterAnswer& other) {
        return other.cell.find(version.dot) != nullptr || !other.clock.contains(version.dot);
      });
      const bool is_there =
          std::ranges::any_of(kept, [&](const Version& one) { return one.dot == version.dot; });
      if (stays && !is_there) kept.push_back(version);
    }
  }
  for (const Version& version : kept) context.remove(version.dot);
  return CellStore(std::move(kept), std::move(context));
}

bool reconcile(CounterState& state, const CounterScope& scope, const CounterAction& action) {
  CounterReplica& replica = at(state, action.replica);
  const CounterReplica& peer = at(state, action.peer);
  if (action.replica == action.peer || state.reconciles-- == 0) return false;
  if (replica.phase != CounterPhase::member || peer.phase != CounterPhase::member) return false;
  if (scope.mutant == CounterMutant::reconcile_by_dots) {
    const CounterAnswer theirs{.cell = read_counter(peer), .clock = peer.clock};
    const CounterAnswer ours{.cell = read_counter(replica), .clock = replica.clock};
    replica.files.clear();
    replica.memtable = joined_by_dots({theirs, ours});
    replica.clock = causality::join(replica.clock, peer.clock);
    replica.record = causality::join(replica.record, peer.record);
    replica.floor = std::max(replica.floor, peer.floor);
  } else {
    take_copy(replica, peer, state, scope);
    forget(state, scope, action.replica);
  }
  return true;
}

bool answer(CounterState& state, const CounterScope& scope, int operation) {
  if ((state.answered >> operation & 1U) != 0) return false;
  int members = 0;
  int with = 0;
  for (int r = 0; r < scope.replicas; ++r) {
    if (at(state, r).phase != CounterPhase::member) continue;
    ++members;
    with += has_seen(state, at(state, r), operation) ? 1 : 0;
  }
  if (with <= members / 2) return false;
  state.answered |= 1U << operation;
  return true;
}

bool move_floor(CounterState& state, const CounterScope& scope, const CounterAction& action) {
  CounterReplica& replica = at(state, action.replica);
  if (!shows(replica) || state.floors-- == 0) return false;
  if (action.kind == CounterActionKind::lower_floor) {
    return scope.mutant == CounterMutant::floor_steps_back && replica.floor-- > 0;
  }
  if (replica.floor++ == state.operations) return false;
  forget(state, scope, action.replica);
  return true;
}

bool increment(CounterState& state, const CounterScope& scope, const CounterAction& action) {
  if (at(state, action.replica).phase != CounterPhase::member) return false;
  const bool named = action.kind == CounterActionKind::increment;
  if (named ? state.operations == scope.operations : state.plain-- == 0) return false;
  CounterEvent event{.dot = {}, .amount = next_amount(state), .context = {}};
  if (named) event.operation = ++state.operations;
  return mint(state, scope, action.replica, std::move(event));
}

bool deliver(CounterState& state, const CounterScope& scope, const CounterAction& action) {
  const auto event = static_cast<std::size_t>(action.what);
  if (event >= state.events.size()) return false;
  if (at(state, action.replica).phase == CounterPhase::away) return false;
  if (at(state, action.replica).clock.contains(state.events[event].dot)) return false;
  if (state.singles-- == 0) return false;
  const CounterEvent one = state.events[event];
  apply(state, scope, action.replica, one);
  return true;
}

}  // namespace

CellStore read_counter(const CounterReplica& replica) {
  CellStore cell = replica.memtable;
  for (const CounterFile& file : replica.files) cell.absorb(file.cell);
  return cell;
}

Stability counter_stability(const CounterState& state, const CounterScope& scope, int r) {
  const CounterReplica& replica = at(state, r);
  std::vector<std::optional<causality::Watermark>> others;
  for (int other = 0; other < scope.replicas; ++other) {
    const CounterPhase phase = at(state, other).phase;
    const bool ignored =
        phase != CounterPhase::member && scope.mutant == CounterMutant::fold_ignores_pending;
    if (other == r || phase == CounterPhase::away || ignored) continue;
    const auto& watermark = replica.watermark[static_cast<std::size_t>(other)];
    if (watermark) {
      others.emplace_back(causality::Watermark{.base = *watermark, .wall = {}});
    } else {
      others.emplace_back(std::nullopt);
    }
  }
  if (scope.mutant == CounterMutant::fold_by_own_clock) others.clear();
  return causality::stability(replica.clock, {}, others);
}

std::int64_t merged_value(const CounterScope& scope, const std::vector<CounterAnswer>& answers) {
  if (scope.mutant == CounterMutant::total_joined_by_dots) {
    return causality::counter_value(joined_by_dots(answers));
  }
  std::vector<CounterAnswer> taken = answers;
  if (scope.mutant == CounterMutant::context_filled) {
    for (CounterAnswer& answer : taken) {
      if (answer.cell.holds_reset()) answer.cell = causality::fill(answer.cell, answer.clock);
    }
  }
  std::int64_t value = causality::counter_value(causality::merge_counters(taken));
  if (scope.mutant != CounterMutant::totals_added) return value;
  for (std::size_t i = 1; i < taken.size(); ++i) {
    for (const Version& version : taken[i].cell.versions()) {
      if (version.kind == VersionKind::total) value += version.amount;
    }
  }
  return value;
}

CounterState initial_counter_state(const CounterScope& scope) {
  CounterState state;
  for (int r = 0; r < kCounterReplicasMax; ++r) {
    const bool away = r >= scope.replicas || (scope.joins && r == scope.replicas - 1);
    if (away) at(state, r).phase = CounterPhase::away;
  }
  state.retries = scope.retries;
  state.plain = scope.plain;
  state.deletes = scope.deletes;
  state.floors = scope.floors;
  state.singles = scope.singles;
  state.reconciles = scope.reconciles;
  state.pulls = scope.pulls;
  return state;
}

bool step(CounterState& state, const CounterScope& scope, const CounterAction& action) {
  using Kind = CounterActionKind;
  const int r = action.replica;
  switch (action.kind) {
    case Kind::increment:
    case Kind::plain:
      return increment(state, scope, action);
    case Kind::retry:
      return retry(state, scope, action);
    case Kind::remove:
      return remove(state, scope, action);
    case Kind::deliver:
      return deliver(state, scope, action);
    case Kind::pull:
    case Kind::hear:
      return pull(state, scope, action);
    case Kind::merge:
      return merge(state, scope, r);
    case Kind::flush:
      return flush(state, scope, r);
    case Kind::compact:
      return compact(state, scope, r, 0, at(state, r).files.size());
    case Kind::compact_two:
      return compact(state, scope, r, static_cast<std::size_t>(action.what), 2);
    case Kind::raise_floor:
    case Kind::lower_floor:
      return move_floor(state, scope, action);
    case Kind::answer:
      return answer(state, scope, action.what);
    case Kind::begin_join:
      return begin_join(state, scope);
    case Kind::install:
      return install(state, scope, action);
    case Kind::promote:
      return promote(state, scope, r);
    case Kind::reconcile:
      return reconcile(state, scope, action);
  }
  return false;
}

std::vector<CounterAction> counter_actions(const CounterState& state, const CounterScope& scope) {
  using Kind = CounterActionKind;
  std::vector<CounterAction> actions;
  for (int r = 0; r < scope.replicas; ++r) {
    for (const Kind kind : {Kind::increment, Kind::plain, Kind::merge, Kind::flush, Kind::compact,
                            Kind::raise_floor, Kind::promote}) {
      actions.push_back({.kind = kind, .replica = r});
    }
    if (scope.mutant == CounterMutant::floor_steps_back) {
      actions.push_back({.kind = Kind::lower_floor, .replica = r});
    }
    for (int pair = 0; pair < 2; ++pair) {
      actions.push_back({.kind = Kind::compact_two, .replica = r, .what = pair});
    }
    for (int operation = 1; operation <= state.operations; ++operation) {
      actions.push_back({.kind = Kind::retry, .replica = r, .what = operation});
    }
    for (int event = 0; event < static_cast<int>(state.events.size()); ++event) {
      actions.push_back({.kind = Kind::deliver, .replica = r, .what = event});
    }
    for (int peer = 0; peer < scope.replicas; ++peer) {
      for (const Kind kind : {Kind::remove, Kind::pull, Kind::install, Kind::reconcile}) {
        actions.push_back({.kind = kind, .replica = r, .peer = peer});
      }
      if (scope.mutant == CounterMutant::gossiped_watermark) {
        actions.push_back({.kind = Kind::hear, .replica = r, .peer = peer});
      }
    }
  }
  for (int operation = 1; operation <= state.operations; ++operation) {
    actions.push_back({.kind = Kind::answer, .what = operation});
  }
  actions.push_back({.kind = Kind::begin_join});
  return actions;
}

}  // namespace helenus::explore
