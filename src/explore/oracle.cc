#include "explore/oracle.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "explore/action.h"
#include "explore/rules.h"
#include "explore/story.h"

namespace helenus::explore {

namespace {

// Replicas that clients and peers may read from.
bool is_read(const State& state, int r) {
  const Replica& replica = replica_of(state, r);
  return (replica.phase == Phase::active || replica.phase == Phase::installed) &&
         !has(state.config[replica.epoch].removed, replica.actor);
}

// Once every member's wall clock has passed the expiry, a clock that is behind (a joiner's, say)
// may see the value or not.
int judged_at(const State& state, int wall) {
  return state.expiry_passed != 0 ? 1 : wall;
}

Events wanted(const State& state, const Scope& scope, int cell, Events applied, int wall) {
  return visible(state, scope, maximal(state, cell, applied), wall);
}

std::string difference(const State& state, Events got, Events want) {
  const Events lost = without(want, got);
  const Events extra = without(got, want);
  std::string text = fmt::format("a reader sees {} where {} is right", names_of(state, got),
                                 names_of(state, want));
  if (lost != 0) text += fmt::format("; lost {}", names_of(state, lost));
  if (extra != 0) text += fmt::format("; {} should not be there", names_of(state, extra));
  return text;
}

std::optional<Violation> check_claims(const State& state, int r) {
  const Replica& replica = replica_of(state, r);
  for (int e = 0; e < state.events; ++e) {
    if (!has(replica.clock, e)) continue;
    Mask missing = 0;
    each(event_of(state, e).cells, [&](int cell) {
      if (replica.lacks_range != 0 && cell >= kCellsPerTable) return;
      if (!has(replica.reflected[static_cast<unsigned>(cell)], e)) missing |= bit(cell);
    });
    if (missing != 0) {
      return Violation{
          Invariant::i1,
          fmt::format("the clock of {} claims {}, which its {} do not reflect", name_of_replica(r),
                      name_of_event(state, e), names_of_cells(missing))};
    }
  }
  return std::nullopt;
}

std::optional<Violation> check_cells(const State& state, const Scope& scope, int r) {
  const Replica& replica = replica_of(state, r);
  const int cells = (replica.lacks_range != 0 ? 1 : scope.tables) * kCellsPerTable;
  for (int cell = 0; cell < cells; ++cell) {
    const Events applied = replica.applied[static_cast<unsigned>(cell)];
    const int wall = judged_at(state, replica.wall);
    const Events got = visible(state, scope, read_cell(replica, cell).versions, wall);
    const Events want = wanted(state, scope, cell, applied, wall);
    if (got == want) continue;
    return Violation{Invariant::i2,
                     fmt::format("at {}, {}: {}", name_of_replica(r), names_of_cells(bit(cell)),
                                 difference(state, got, want))};
  }
  return std::nullopt;
}

std::optional<Violation> check_merged(const State& state, const Scope& scope, int a, int b) {
  const Replica& left = replica_of(state, a);
  const Replica& right = replica_of(state, b);
  const bool range_lacks = left.lacks_range != 0 || right.lacks_range != 0;
  const int cells = (range_lacks ? 1 : scope.tables) * kCellsPerTable;
  for (int cell = 0; cell < cells; ++cell) {
    const auto applied = static_cast<Events>(left.applied[static_cast<unsigned>(cell)] |
                                             right.applied[static_cast<unsigned>(cell)]);
    if (applied == 0) continue;
    const Fragment both = merged(filled(state, scope, a, cell), filled(state, scope, b, cell));
    for (const int wall : {judged_at(state, left.wall), judged_at(state, right.wall)}) {
      const Events got = visible(state, scope, both.versions, wall);
      const Events want = wanted(state, scope, cell, applied, wall);
      if (got == want) continue;
      return Violation{
          Invariant::i2_merged,
          fmt::format("a read of {} and {} together, {}: {}", name_of_replica(a),
                      name_of_replica(b), names_of_cells(bit(cell)), difference(state, got, want))};
    }
  }
  return std::nullopt;
}

bool reflects(const State& state, Mask replicas, int e) {
  bool all = true;
  each(event_of(state, e).cells, [&](int cell) {
    bool some = false;
    each(replicas, [&](int r) {
      some = some || has(replica_of(state, r).reflected[static_cast<unsigned>(cell)], e);
    });
    all = all && some;
  });
  return all;
}

// A node that does not hold the range of a mutation is no replica of it, nor part of a quorum
// (P11).
bool lacks_range_of(const State& state, Mask replicas, int e) {
  if (event_of(state, e).cells >> kCellsPerTable == 0) return false;
  bool lacks = false;
  each(replicas, [&](int r) { lacks = lacks || replica_of(state, r).lacks_range != 0; });
  return lacks;
}

std::optional<Violation> check_quorums(const State& state) {
  const Mask members = newest(state).members;
  Mask readable = 0;
  each(members, [&](int r) {
    const bool current = replica_of(state, r).epoch + 1 == state.epochs;
    if (current && replica_of(state, r).phase == Phase::active) readable |= bit(r);
  });
  const int quorum = std::popcount(members) / 2 + 1;
  const Events promised = without(state.acked, state.lost);
  for (unsigned some = 1; some < 1U << kReplicasMax; ++some) {
    if ((some & ~unsigned{readable}) != 0 || std::popcount(some) != quorum) continue;
    for (int e = 0; e < state.events; ++e) {
      if (!has(promised, e) || lacks_range_of(state, static_cast<Mask>(some), e)) continue;
      if (reflects(state, static_cast<Mask>(some), e)) continue;
      return Violation{
          Invariant::a1,
          fmt::format("{} was acknowledged and the read quorum {} does not reflect it",
                      name_of_event(state, e), names_of_replicas(static_cast<Mask>(some)))};
    }
  }
  return std::nullopt;
}

}  // namespace

Events maximal(const State& state, int cell, Events applied) {
  Events here = 0;
  Events superseded = 0;
  each(applied, [&](int e) {
    if (!has(event_of(state, e).cells, cell)) return;
    here |= event_bit(e);
    superseded |= event_of(state, e).past;
  });
  return without(here, superseded);
}

std::optional<Violation> check(const State& state, const Scope& scope) {
  if (state.dot_minted_twice != 0) {
    return Violation{Invariant::i0, "one dot was minted for two mutations"};
  }
  if (state.delete_missed_acknowledged != 0) {
    return Violation{Invariant::s2, "a quorum delete did not cover an acknowledged write"};
  }
  if (state.timestamp_below_past != 0) {
    return Violation{Invariant::t, "a write is older by time than an unstable one it had seen"};
  }
  for (int r = 0; r < kReplicasMax; ++r) {
    const Phase phase = replica_of(state, r).phase;
    if (phase == Phase::absent || phase == Phase::stopped) continue;
    if (auto violation = check_claims(state, r)) return violation;
    if (!is_read(state, r)) continue;
    if (auto violation = check_cells(state, scope, r)) return violation;
    for (int other = 0; other < r; ++other) {
      if (!is_read(state, other)) continue;
      if (replica_of(state, other).epoch != replica_of(state, r).epoch) continue;
      if (auto violation = check_merged(state, scope, other, r)) return violation;
    }
  }
  return check_quorums(state);
}

namespace {

// Everything that happens by itself when nothing fails, until nothing changes any more.
class Settler {
 public:
  Settler(const State& state, const Scope& scope) : state_(state), scope_(scope) {
    state_.message = {};
    state_.freezes_left = 255;
    state_.reconciles_left = 255;
    state_.pulls_left = kUnlimited;
    scope_.compactions = true;
    for (Replica& replica : state_.replica) {
      if (scope_.expiring && replica.phase != Phase::absent) replica.wall = 1;
    }
  }

  const State& run() {
    for (int round = 0; round < 16; ++round) {
      const State before = state_;
      state_.reconciles_left = 255;
      state_.freezes_left = 255;
      ring();
      for_each_pair(ActionKind::pull);
      for_each_pair(ActionKind::reconcile);
      storage();
      state_.reconciles_left = before.reconciles_left;
      state_.freezes_left = before.freezes_left;
      if (std::memcmp(&before, &state_, sizeof before) == 0) break;
    }
    return state_;
  }

 private:
  void attempt(const Action& action) {
    State next = state_;
    if (step(next, scope_, action)) state_ = next;
  }
  void for_each_pair(ActionKind kind) {
    for (std::uint8_t r = 0; r < kReplicasMax; ++r) {
      for (std::uint8_t peer = 0; peer < kReplicasMax; ++peer) {
        if (r != peer) attempt({.kind = kind, .replica = r, .peer = peer});
      }
    }
  }
  void ring() {
    for (std::uint8_t r = 0; r < kReplicasMax; ++r) {
      for (int e = 0; e < state_.epochs; ++e) attempt({.kind = ActionKind::adopt, .replica = r});
    }
    for_each_pair(ActionKind::install);
    for (std::uint8_t r = 0; r < kReplicasMax; ++r) {
      attempt({.kind = ActionKind::promote, .replica = r});
    }
  }
  void storage() {
    for (std::uint8_t r = 0; r < kReplicasMax; ++r) {
      for (std::uint8_t t = 0; t < scope_.tables; ++t) {
        for (int twice = 0; twice < 2; ++twice) {
          compact_all(r, t);
          attempt({.kind = ActionKind::flush, .replica = r, .what = t});
          attempt({.kind = ActionKind::freeze, .replica = r, .what = t});
        }
        compact_all(r, t);
      }
      if (has(state_.crashable, r)) attempt({.kind = ActionKind::sync, .replica = r});
    }
  }
  void compact_all(std::uint8_t r, std::uint8_t t) {
    const unsigned sstables = state_.replica[r].table[t].sstables;
    if (sstables == 0) return;
    attempt({.kind = ActionKind::compact,
             .replica = r,
             .what = t,
             .flags = static_cast<std::uint8_t>((1U << sstables) - 1)});
  }

  State state_;
  Scope scope_;
};

std::optional<std::string> not_at_rest(const State& state, const Scope& scope, int r) {
  const Replica& replica = replica_of(state, r);
  const std::string name = name_of_replica(r);
  if (replica.log != 0) {
    return fmt::format("the mutation log of {} still holds {}", name, names_of(state, replica.log));
  }
  for (int t = 0; t < scope.tables; ++t) {
    const Table& table = replica.table[static_cast<unsigned>(t)];
    if (!is_empty(table.memtable) || table.is_frozen != 0 || table.sstables > 1) {
      return fmt::format("{} did not come to rest", name);
    }
    for (const Fragment& slot : table.sstable[0]) {
      if (slot.context != 0) {
        return fmt::format("a context that names {} is left at {}", names_of(state, slot.context),
                           name);
      }
      const bool one_at_most = scope.policy != Policy::lww || std::popcount(slot.versions) <= 1;
      if (!one_at_most) return fmt::format("{} did not drop what lost", name);
    }
  }
  return std::nullopt;
}

std::optional<std::string> differ(const State& state, const Scope& scope, int a, int b) {
  const Replica& left = replica_of(state, a);
  const Replica& right = replica_of(state, b);
  const auto pair = [&] {
    return fmt::format("{} and {}", name_of_replica(a), name_of_replica(b));
  };
  if (seen_by(state, left) != seen_by(state, right)) {
    return fmt::format("the clocks of {} differ: {} and {}", pair(),
                       names_of(state, seen_by(state, left)),
                       names_of(state, seen_by(state, right)));
  }
  for (int t = 0; t < scope.tables; ++t) {
    const auto at = static_cast<unsigned>(t);
    if (left.table[at].sstable[0] != right.table[at].sstable[0]) {
      return fmt::format("with equal clocks {} hold different bytes", pair());
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Violation> check_quiescence(const State& state, const Scope& scope) {
  if (scope.mutant == Mutant::clock_per_node) return std::nullopt;
  const State end = Settler(state, scope).run();
  if (auto violation = check(end, scope)) {
    violation->what = "when all has come to rest, " + violation->what;
    return violation;
  }
  const Config& config = newest(end);
  if (config.pending != 0 && end.epochs == kEpochsMax) return std::nullopt;
  const auto q = [](std::string what) { return Violation{Invariant::q, std::move(what)}; };
  if (config.pending != 0) return q("a join never ends");
  int first = -1;
  std::optional<Violation> violation;
  each(config.members, [&](int r) {
    if (violation) return;
    const Replica& replica = replica_of(end, r);
    if (replica.phase != Phase::active || replica.epoch + 1 != end.epochs) {
      violation = q(fmt::format("{} never takes part again", name_of_replica(r)));
      return;
    }
    if (const auto what = not_at_rest(end, scope, r)) violation = q(*what);
    if (first < 0) first = r;
    if (violation || first == r) return;
    if (const auto what = differ(end, scope, first, r)) violation = q(*what);
  });
  return violation;
}

}  // namespace helenus::explore
