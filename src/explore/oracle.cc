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

std::string difference(const State& state, Events got, Events want) {
  const Events lost = without(want, got);
  const Events extra = without(got, want);
  std::string text = fmt::format("a reader sees {} where {} is right", names_of(state, got),
                                 names_of(state, want));
  if (lost != 0) text += fmt::format("; lost {}", names_of(state, lost));
  if (extra != 0) text += fmt::format("; {} should not be there", names_of(state, extra));
  return text;
}

// One look at a state. What several checks ask for is worked out once: this runs for every state.
class Inspection {
 public:
  Inspection(const State& state, const Scope& scope) : state_(state), scope_(scope) {
    for (int e = 0; e < state.events; ++e) {
      each(event_of(state, e).cells, [&](int cell) { touching_[at(cell)] |= event_bit(e); });
    }
    for (int r = 0; r < kReplicasMax; ++r) {
      if (!is_read(state, r)) continue;
      readable_ |= bit(r);
      for (int cell = 0; cell < cells_of(r); ++cell) {
        whole_[at(r)][at(cell)] = read_cell(state, replica(r), cell);
        sent_[at(r)][at(cell)] = filled(state, scope, r, whole_[at(r)][at(cell)]);
      }
    }
  }

  std::optional<Violation> run() const {
    for (int r = 0; r < kReplicasMax; ++r) {
      const Phase phase = replica(r).phase;
      if (phase == Phase::absent || phase == Phase::stopped) continue;
      if (auto violation = check_claims(r)) return violation;
      if (!has(readable_, r)) continue;
      if (auto violation = check_cells(r)) return violation;
      for (int other = 0; other < r; ++other) {
        if (!has(readable_, other) || replica(other).epoch != replica(r).epoch) continue;
        if (auto violation = check_merged(other, r)) return violation;
      }
    }
    return check_quorums();
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  const Replica& replica(int r) const { return replica_of(state_, r); }
  int cells_of(int r) const {
    return (replica(r).lacks_range != 0 ? 1 : scope_.tables) * kCellsPerTable;
  }
  // Once every member's wall clock has passed the expiry, a clock that is behind (a joiner's, say)
  // may see the value or not.
  int judged_at(int wall) const { return state_.expiry_passed != 0 ? 1 : wall; }
  Events wanted(int cell, Events applied, int wall) const {
    return visible(state_, scope_, maximal(state_, cell, applied), wall);
  }

  std::optional<Violation> check_claims(int r) const {
    const Replica& it = replica(r);
    Events unfounded = 0;
    const int cells = it.lacks_range != 0 ? kCellsPerTable : kCells;
    for (int cell = 0; cell < cells; ++cell) {
      unfounded |= without(it.clock & touching_[at(cell)], it.reflected[at(cell)]);
    }
    if (unfounded == 0) return std::nullopt;
    const int e = std::countr_zero(unfounded);
    Mask missing = 0;
    each(event_of(state_, e).cells, [&](int cell) {
      if (cell < cells && !has(it.reflected[at(cell)], e)) missing |= bit(cell);
    });
    return Violation{
        Invariant::i1,
        fmt::format("the clock of {} claims {}, which its {} do not reflect", name_of_replica(r),
                    name_of_event(state_, e), names_of_cells(missing))};
  }

  std::optional<Violation> check_cells(int r) const {
    const Replica& it = replica(r);
    const int wall = judged_at(it.wall);
    for (int cell = 0; cell < cells_of(r); ++cell) {
      const Events got = visible(state_, scope_, whole_[at(r)][at(cell)].versions, wall);
      const Events want = wanted(cell, it.applied[at(cell)], wall);
      if (got == want) continue;
      return Violation{Invariant::i2,
                       fmt::format("at {}, {}: {}", name_of_replica(r), names_of_cells(bit(cell)),
                                   difference(state_, got, want))};
    }
    return std::nullopt;
  }

  std::optional<Violation> check_merged(int a, int b) const {
    const int walls[] = {judged_at(replica(a).wall), judged_at(replica(b).wall)};
    for (int cell = 0; cell < std::min(cells_of(a), cells_of(b)); ++cell) {
      const auto applied =
          static_cast<Events>(replica(a).applied[at(cell)] | replica(b).applied[at(cell)]);
      if (applied == 0) continue;
      const Fragment both = merged(sent_[at(a)][at(cell)], sent_[at(b)][at(cell)]);
      const Events versions = standing(state_, both.versions);
      for (int i = 0; i < (walls[0] == walls[1] ? 1 : 2); ++i) {
        const Events got = visible(state_, scope_, versions, walls[i]);
        const Events want = wanted(cell, applied, walls[i]);
        if (got == want) continue;
        return Violation{Invariant::i2_merged,
                         fmt::format("a read of {} and {} together, {}: {}", name_of_replica(a),
                                     name_of_replica(b), names_of_cells(bit(cell)),
                                     difference(state_, got, want))};
      }
    }
    return std::nullopt;
  }

  // What was promised and these replicas together do not reflect. A node that does not hold the
  // range of a mutation is no replica of it, nor part of a quorum (P11).
  Events missed_by(Mask replicas) const {
    const Events promised = without(state_.acked, state_.lost);
    bool range_lacks = false;
    each(replicas, [&](int r) { range_lacks = range_lacks || replica(r).lacks_range != 0; });
    Events missed = 0;
    Events of_lacked_range = 0;
    for (int cell = 0; cell < kCells; ++cell) {
      Events reflected = 0;
      each(replicas, [&](int r) { reflected |= replica(r).reflected[at(cell)]; });
      missed |= without(promised & touching_[at(cell)], reflected);
      if (range_lacks && cell >= kCellsPerTable) of_lacked_range |= touching_[at(cell)];
    }
    return without(missed, of_lacked_range);
  }

  std::optional<Violation> check_quorums() const {
    const Mask members = newest(state_).members;
    Mask readable = 0;
    each(members, [&](int r) {
      const bool current = replica(r).epoch + 1 == state_.epochs;
      if (current && replica(r).phase == Phase::active) readable |= bit(r);
    });
    const int quorum = std::popcount(members) / 2 + 1;
    for (unsigned some = 1; some < 1U << kReplicasMax; ++some) {
      if ((some & ~unsigned{readable}) != 0 || std::popcount(some) != quorum) continue;
      const Events missed = missed_by(static_cast<Mask>(some));
      if (missed == 0) continue;
      return Violation{Invariant::a1,
                       fmt::format("{} was acknowledged and the read quorum {} does not reflect it",
                                   name_of_event(state_, std::countr_zero(missed)),
                                   names_of_replicas(static_cast<Mask>(some)))};
    }
    return std::nullopt;
  }

  const State& state_;
  const Scope& scope_;
  // The events of each cell.
  std::array<Events, kCells> touching_{};
  Mask readable_ = 0;
  // Of each readable replica: what it holds of each cell, and what it would send of it.
  std::array<std::array<Fragment, kCells>, kReplicasMax> whole_;
  std::array<std::array<Fragment, kCells>, kReplicasMax> sent_;
};

}  // namespace

Events maximal(const State& state, int cell, Events applied) {
  Events here = 0;
  Events superseded = 0;
  each(applied, [&](int e) {
    if (!has(event_of(state, e).cells, cell)) return;
    here |= event_bit(e);
    superseded |= event_of(state, e).past;
  });
  return without(standing(state, here), superseded);
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
  if (state.explicit_timestamp_raised != 0) {
    return Violation{Invariant::d, "an explicit timestamp was raised"};
  }
  return Inspection(state, scope).run();
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
      if (scope_.announces) for_each_pair(ActionKind::announce);
      for_each_pair(ActionKind::reconcile);
      storage();
      state_.reconciles_left = before.reconciles_left;
      state_.freezes_left = before.freezes_left;
      if (std::memcmp(&before, &state_, sizeof before) == 0) break;
    }
    return state_;
  }

 private:
  // Steps that cannot be taken are many: what is sure not to be possible is not tried.
  bool is_there(std::uint8_t r) const {
    const Phase phase = state_.replica[r].phase;
    return phase != Phase::absent && phase != Phase::stopped;
  }
  void attempt(const Action& action) {
    next_ = state_;
    if (step(next_, scope_, action)) state_ = next_;
  }
  void for_each_pair(ActionKind kind) {
    for (std::uint8_t r = 0; r < kReplicasMax; ++r) {
      if (!is_there(r)) continue;
      for (std::uint8_t peer = 0; peer < kReplicasMax; ++peer) {
        if (r != peer && is_there(peer)) attempt({.kind = kind, .replica = r, .peer = peer});
      }
    }
  }
  void ring() {
    for (std::uint8_t r = 0; r < kReplicasMax; ++r) {
      while (is_there(r) && state_.replica[r].epoch + 1 < state_.epochs) {
        attempt({.kind = ActionKind::adopt, .replica = r});
      }
    }
    if (newest(state_).pending == 0) return;
    for_each_pair(ActionKind::install);
    for (std::uint8_t r = 0; r < kReplicasMax; ++r) {
      attempt({.kind = ActionKind::promote, .replica = r});
    }
  }
  void storage() {
    for (std::uint8_t r = 0; r < kReplicasMax; ++r) {
      if (!is_there(r)) continue;
      for (std::uint8_t t = 0; t < scope_.tables; ++t) {
        for (int twice = 0; twice < 2; ++twice) {
          compact_all(r, t);
          const Table& table = state_.replica[r].table[t];
          if (table.is_frozen != 0) attempt({.kind = ActionKind::flush, .replica = r, .what = t});
          if (!is_empty(table.memtable)) {
            attempt({.kind = ActionKind::freeze, .replica = r, .what = t});
          }
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

  State next_;
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
