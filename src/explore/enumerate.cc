// Which actions are worth trying in a state. `step` has the last word; this only leaves out what
// cannot happen, and what is the mirror image of something else:
//   - replicas that nothing has happened to yet are interchangeable, so only the first of them is
//     named, and a second one only together with the first;
//   - the two cells of a table are interchangeable until an operation tells them apart.
// Both are sound because no rule looks at the number of a replica or of a cell.
#include <algorithm>

#include "explore/action.h"
#include "explore/rules.h"

namespace helenus::explore {

namespace {

bool may_be_explicit(const Scope& scope, const Action& action) {
  if ((action.flags & kReplaces) != 0) return false;
  return (action.flags & kScoped) == 0 || scope.explicit_ranges;
}

class Enumerator {
 public:
  Enumerator(const State& state, const Scope& scope, const std::function<void(Action)>& emit)
      : state_(state), scope_(scope), emit_(emit) {
    for (int r = 0; r < kReplicasMax; ++r) {
      const Phase phase = replica(r).phase;
      if (phase != Phase::absent && phase != Phase::stopped) present_ |= bit(r);
      if (is_fresh(r)) fresh_ |= bit(r);
    }
    for (int t = 0; t < scope.tables; ++t) {
      for (int c = 0; c < scope.cells; ++c) cells_ |= bit(t * kCellsPerTable + c);
    }
  }

  void run(Writes which) {
    if (which == Writes::all) writes();
    deliveries();
    each(present_, [&](int r) {
      pairs(r);
      storage(r);
      alone(r);
    });
    ring_changes();
    for (std::uint8_t slot = 0; slot < kMessagesMax; ++slot) {
      const Message& message = state_.message[slot];
      if (message.kind == MessageKind::none) continue;
      emit_({.kind = ActionKind::receive, .replica = message.to, .what = slot});
      emit_({.kind = ActionKind::receive, .replica = message.to, .what = slot, .flags = 1});
    }
  }

 private:
  const Replica& replica(int r) const { return state_.replica[static_cast<unsigned>(r)]; }

  // Nothing has happened to this replica, and nobody remembers anything about it.
  bool is_fresh(int r) const {
    const Replica& it = replica(r);
    if (it.phase != Phase::active || has(state_.crashable, r) || it.actor != r) return false;
    if (it.clock != 0 || it.epoch != 0 || it.pulled != 0 || it.wall != 0) return false;
    if (it.lacks_range != 0) return false;
    for (const Events events : it.reflected) {
      if (events != 0) return false;
    }
    for (unsigned e = 0; e < state_.epochs; ++e) {
      if (!has(state_.config[e].members, r)) return false;
    }
    for (const Replica& other : state_.replica) {
      if (has(other.pulled, r) || has(other.reconciled, r)) return false;
    }
    return std::ranges::none_of(state_.message, [&](const Message& message) {
      return message.kind != MessageKind::none && (message.from == r || message.to == r);
    });
  }
  bool may_name(int r) const { return !has(fresh_, r) || std::countr_zero(fresh_) == r; }
  bool may_name(int r, int other) const {
    if (!may_name(r)) return false;
    const Mask rest = static_cast<Mask>(has(fresh_, r) ? fresh_ & ~bit(r) : fresh_);
    return !has(rest, other) || std::countr_zero(rest) == other;
  }

  bool mirrored(Mask cells) const {
    if (state_.events == 0 && (cells & 3U) == 0) return true;
    for (int t = 0; t < scope_.tables; ++t) {
      const unsigned shift = static_cast<unsigned>(t * kCellsPerTable);
      if ((cells >> shift & 3U) != 2) continue;
      const bool told_apart = std::any_of(
          state_.event.begin(), state_.event.begin() + state_.events, [&](const Event& event) {
            const unsigned both = event.cells >> shift & 3U;
            return both == 1 || both == 2;
          });
      const bool named = std::ranges::any_of(state_.message, [](const Message& message) {
        return message.kind == MessageKind::repair;
      });
      if (!told_apart && !named && scope_.repairs == state_.repairs_left) return true;
    }
    return false;
  }

  void writes() {
    if (state_.events >= scope_.operations) return;
    each(present_, [&](int r) {
      if (!may_name(r)) return;
      for (unsigned cells = 1; cells < 1U << kCells; ++cells) {
        if ((cells & ~unsigned{cells_}) != 0) continue;
        if (std::popcount(cells) > 1 && !scope_.multi_cell) continue;
        if (mirrored(static_cast<Mask>(cells))) continue;
        write_of(r, static_cast<Mask>(cells), 0);
        const bool one_row = cells < 1U << kCellsPerTable || cells % (1U << kCellsPerTable) == 0;
        if (scope_.replaces && one_row) write_of(r, static_cast<Mask>(cells), kReplaces);
      }
      for (int t = 0; scope_.scoped_deletes && t < scope_.tables; ++t) {
        const auto cells = static_cast<Mask>(cells_ & (3U << (t * kCellsPerTable)));
        write_of(r, cells, kScoped);
      }
    });
  }

  void write_of(int r, Mask cells, std::uint8_t flags) {
    for (const Kind kind : {Kind::put, Kind::remove}) {
      if (flags == kScoped && kind != Kind::remove) continue;
      if (flags == kReplaces && kind != Kind::put) continue;
      Action action{.kind = ActionKind::write,
                    .replica = static_cast<std::uint8_t>(r),
                    .what = cells,
                    .operation = kind,
                    .flags = flags};
      const int last = scope_.policy == Policy::lww ? scope_.timestamps : 0;
      for (int timestamp = last == 0 ? 0 : 1; timestamp <= last; ++timestamp) {
        action.timestamp = static_cast<std::uint8_t>(timestamp);
        with_contexts(action);
      }
    }
  }

  // Under the given context at the timestamp of a driver, and at an explicit one.
  void with_timestamps(Action action) {
    emit_(action);
    if (!scope_.explicit_timestamps || scope_.policy != Policy::lww) return;
    if (!may_be_explicit(scope_, action)) return;
    action.flags |= kExplicit;
    emit_(action);
  }

  void with_contexts(Action action) {
    action.peer = kNobody;
    with_timestamps(action);
    if (scope_.expiring && action.operation == Kind::put) {
      action.flags |= kExpires;
      emit_(action);
      action.flags &= static_cast<std::uint8_t>(~kExpires);
    }
    each(present_, [&](int peer) {
      if (!may_name(action.replica, peer)) return;
      action.peer = static_cast<std::uint8_t>(peer);
      if (scope_.client_contexts) with_timestamps(action);
      if (scope_.quorum_deletes && action.operation == Kind::remove && peer != action.replica) {
        action.flags |= kQuorum;
        with_timestamps(action);
        action.flags &= static_cast<std::uint8_t>(~kQuorum);
      }
    });
  }

  void deliveries() {
    const auto minted = static_cast<Events>((1U << state_.events) - 1);
    each(present_, [&](int r) {
      if (!may_name(r)) return;
      each(without(minted, seen_by(state_, replica(r))), [&](int e) {
        emit_({.kind = ActionKind::deliver,
               .replica = static_cast<std::uint8_t>(r),
               .what = static_cast<std::uint8_t>(e)});
      });
    });
  }

  void pairs(int r) {
    each(present_, [&](int other) {
      if (other == r || !may_name(r, other)) return;
      Action action{.kind = ActionKind::pull,
                    .replica = static_cast<std::uint8_t>(r),
                    .peer = static_cast<std::uint8_t>(other)};
      emit_(action);
      if (state_.delays_left > 0) {
        action.kind = ActionKind::send_reply;
        emit_(action);
      }
      if (scope_.announces) {
        action.kind = ActionKind::announce;
        emit_(action);
        action.kind = ActionKind::send_announcement;
        if (state_.delays_left > 0) emit_(action);
      }
      if (scope_.pages) {
        action.kind = ActionKind::pull_page;
        each(without(replica(other).log, replica(r).clock), [&](int e) {
          action.what = static_cast<std::uint8_t>(e);
          emit_(action);
        });
      }
      if (state_.repairs_left > 0) repairs(action);
      if (replica(r).phase == Phase::reentering || state_.reconciles_left > 0) {
        action = {.kind = ActionKind::reconcile, .replica = action.replica, .peer = action.peer};
        emit_(action);
      }
    });
  }

  void repairs(Action action) {
    each(cells_, [&](int cell) {
      action.what = static_cast<std::uint8_t>(cell);
      action.kind = ActionKind::repair;
      emit_(action);
      if (state_.delays_left == 0) return;
      action.kind = ActionKind::send_repair;
      emit_(action);
    });
  }

  void storage(int r) {
    if (!may_name(r)) return;
    for (std::uint8_t t = 0; t < scope_.tables; ++t) {
      const Table& table = replica(r).table[t];
      Action action{.kind = ActionKind::freeze, .replica = static_cast<std::uint8_t>(r), .what = t};
      if (state_.freezes_left > 0) emit_(action);
      action.kind = ActionKind::merge_all;
      if (scope_.one_layer) emit_(action);
      action.kind = ActionKind::flush;
      if (table.is_frozen != 0) emit_(action);
      action.kind = ActionKind::compact;
      for (unsigned inputs = 1; scope_.compactions && inputs < 1U << table.sstables; ++inputs) {
        action.flags = static_cast<std::uint8_t>(inputs);
        emit_(action);
      }
    }
  }

  void alone(int r) {
    if (!may_name(r)) return;
    const auto self = static_cast<std::uint8_t>(r);
    if (has(state_.crashable, r)) {
      emit_({.kind = ActionKind::sync, .replica = self});
      if (state_.crashes_left > 0) emit_({.kind = ActionKind::crash, .replica = self});
    }
    if (state_.crashes_left > 0 && has(newest(state_).pending, r)) {
      emit_({.kind = ActionKind::crash, .replica = self});
    }
    if (scope_.expiring) emit_({.kind = ActionKind::tick, .replica = self});
    if (state_.reconciles_left > 0) emit_({.kind = ActionKind::cap_log, .replica = self});
    if (replica(r).epoch + 1 < state_.epochs) {
      emit_({.kind = ActionKind::adopt, .replica = self});
    }
  }

  void ring_changes() {
    for (std::uint8_t r = 0; r < kReplicasMax; ++r) {
      if (state_.removals_left > 0 && may_name(r)) {
        emit_({.kind = ActionKind::remove, .replica = r});
      }
      if (state_.joins_left > 0 && r == scope_.members) {
        emit_({.kind = ActionKind::join, .replica = r});
      }
      if (!has(newest(state_).pending, r)) continue;
      emit_({.kind = ActionKind::promote, .replica = r});
      each(newest(state_).members, [&](int member) {
        const auto peer = static_cast<std::uint8_t>(member);
        if (has(fresh_, member) && std::countr_zero(fresh_) != member) return;
        emit_({.kind = ActionKind::install, .replica = r, .peer = peer});
        if (state_.delays_left == 0) return;
        emit_({.kind = ActionKind::start_scan, .replica = r, .peer = peer});
      });
    }
    for (std::uint8_t r = 0; r < kReplicasMax; ++r) {
      if (replica(r).lacks_range == 0) continue;
      each(present_, [&](int peer) {
        emit_({.kind = ActionKind::gain_range,
               .replica = r,
               .peer = static_cast<std::uint8_t>(peer)});
      });
    }
  }

  const State& state_;
  const Scope& scope_;
  const std::function<void(Action)>& emit_;
  Mask present_ = 0;
  Mask fresh_ = 0;
  Mask cells_ = 0;
};

}  // namespace

void each_action(const State& state, const Scope& scope, Writes writes,
                 const std::function<void(Action)>& emit) {
  Enumerator(state, scope, emit).run(writes);
}

Action random_write(const Scope& scope, base::Prng& random) {
  const auto below = [&](int bound) {
    return static_cast<std::uint8_t>(random.below(static_cast<std::uint64_t>(bound)));
  };
  Action action{.kind = ActionKind::write, .replica = below(kReplicasMax)};
  const int table = below(scope.tables);
  action.operation = below(2) == 0 ? Kind::remove : Kind::put;
  if (scope.policy == Policy::lww) {
    action.timestamp = static_cast<std::uint8_t>(1 + below(scope.timestamps));
  }
  Mask all = 0;
  for (int cell = 0; cell < scope.cells; ++cell) all |= bit(table * kCellsPerTable + cell);
  const bool removes = action.operation == Kind::remove;
  if (scope.scoped_deletes && removes && below(4) == 0) {
    action.what = all;
    action.flags = kScoped;
  } else {
    action.what = bit(table * kCellsPerTable + below(scope.cells));
    if (scope.multi_cell && below(2) == 0) action.what |= all;
    if (scope.multi_cell && scope.tables > 1 && below(4) == 0) {
      action.what |= bit((1 - table) * kCellsPerTable + below(scope.cells));
    }
  }
  if (scope.client_contexts && below(2) == 0) action.peer = below(kReplicasMax);
  if (scope.quorum_deletes && removes && action.peer == kNobody && below(2) == 0) {
    action.peer = static_cast<std::uint8_t>((action.replica + 1 + below(2)) % 3);
    action.flags |= kQuorum;
  }
  if (scope.expiring && action.operation == Kind::put && below(3) == 0) action.flags |= kExpires;
  const bool one_row = (action.what & ~all) == 0;
  if (scope.replaces && one_row && action.operation == Kind::put && below(4) == 0) {
    action.flags |= kReplaces;
  }
  if (scope.explicit_timestamps && may_be_explicit(scope, action) && below(3) == 0) {
    action.flags |= kExplicit;
  }
  return action;
}

}  // namespace helenus::explore
