#include "explore/birth.h"

#include <algorithm>

#include "explore/parts.h"
#include "explore/rules.h"

namespace helenus::explore {

namespace {

int largest_timestamp(const State& state, unsigned events, Mask cells) {
  int largest = 0;
  each(events, [&](int e) {
    const Event& event = event_of(state, e);
    if (touches(event, cells)) largest = std::max(largest, int{event.timestamp});
  });
  return largest;
}

// The largest timestamp of what a context covers, as far as the replica it comes from can tell.
int floor_of_context(const State& state, int r, Mask cells, Events covered) {
  const Replica& replica = replica_of(state, r);
  Events known = replica.log;
  each(cells, [&](int cell) { known |= read_cell(state, replica, cell).versions; });
  return largest_timestamp(state, known & covered, cells);
}

}  // namespace

int floor_of_log(const State& state, int r, Mask cells, Events covered) {
  return largest_timestamp(state, replica_of(state, r).log & covered, cells);
}

ReadContext context_of_read(const State& state, const Scope& scope, int r, Mask cells) {
  const Replica& replica = replica_of(state, r);
  const auto every = static_cast<Events>(~0U);
  Events common = every;
  Events common_past = every;
  Events any = 0;
  each(cells, [&](int cell) {
    const Fragment whole = read_cell(state, replica, cell);
    const auto known = static_cast<Events>(whole.versions | whole.context);
    common &= known;
    any |= known;
    common_past &= replica.reflected[static_cast<unsigned>(cell)];
  });
  if (scope.mutant == Mutant::row_context_by_union) common = any;
  const auto context = static_cast<Events>(seen_by(state, replica) | common);
  return {.context = context,
          .past = static_cast<Events>(replica.clock | common_past),
          .floor = floor_of_context(state, r, cells, context)};
}

ReadContext context_of_clock(const State& state, int r, Mask cells) {
  const Replica& replica = replica_of(state, r);
  const Events seen = seen_by(state, replica);
  return {.context = seen, .past = replica.clock, .floor = floor_of_context(state, r, cells, seen)};
}

bool would_defeat(int timestamp, Strength strength, const Event& known) {
  if (known.timestamp != timestamp) return known.timestamp < timestamp;
  if (known.expires != 0 && strength == Strength::stays) return false;
  return known.kind != Kind::remove;
}

Mask cells_it_wins(const State& state, const Scope& scope, int r, Mask cells, int timestamp,
                   Strength strength) {
  const bool by_log = scope.mutant != Mutant::explicit_ignores_log;
  Mask kept = 0;
  each(cells, [&](int cell) {
    bool applies = true;
    bool ties = false;
    const Events alive = read_cell(state, replica_of(state, r), cell).versions;
    each(alive, [&](int e) {
      const Event& known = event_of(state, e);
      applies = applies && would_defeat(timestamp, strength, known);
      ties = ties || known.timestamp == timestamp;
    });
    each(by_log ? without(replica_of(state, r).log, alive) : 0U, [&](int e) {
      const Event& known = event_of(state, e);
      if (!touches(known, bit(cell))) return;
      applies = applies && (known.timestamp < timestamp || (ties && known.timestamp == timestamp));
    });
    if (applies) kept |= bit(cell);
  });
  return kept;
}

bool forbids_explicit(const State& state, const Scope& scope, int r, const ReadContext& client,
                      int timestamp) {
  if (scope.mutant == Mutant::explicit_ignores_context) return false;
  // A context that the replica has seen adds nothing to the write, and its floor nothing to what
  // the replica knows of each cell.
  if ((client.context & ~seen_by(state, replica_of(state, r))) == 0) return false;
  if (scope.mutant == Mutant::explicit_ties_with_context) return timestamp < client.floor;
  return timestamp <= client.floor;
}

namespace {

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

}  // namespace

bool below_unstable_past(const State& state, Events past, Mask cells, int timestamp) {
  Events everywhere = past;
  each(newest(state).members | newest(state).pending, [&](int r) {
    if (answers(state, r)) everywhere &= seen_by(state, replica_of(state, r));
  });
  bool below = false;
  each(without(past, everywhere), [&](int e) {
    const Event& seen = event_of(state, e);
    const bool older =
        touches(seen, cells) && !would_defeat(timestamp, Strength::defeats_expiring, seen);
    below = below || (older && may_surface(state, e));
  });
  return below;
}

}  // namespace helenus::explore
