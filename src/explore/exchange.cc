// What replicas tell one another: pulls whole and cut off, replies that travel, read repair, and
// reconciling object by object.
#include <algorithm>

#include "explore/parts.h"
#include "explore/rules.h"

namespace helenus::explore {

namespace {

// What a member answers to a pull (S5): mutations the other lacks, and the clock they come from.
Message make_reply(const State& state, const Scope& scope, int to, int from) {
  const Replica& asker = replica_of(state, to);
  const Replica& replica = replica_of(state, from);
  Events served = without(replica.clock, seen_by(state, asker));
  served &= without(replica.log, replica.capped);
  if (scope.mutant == Mutant::sync_walks_members) {
    Mask actors = 0;
    each(config_of(state, replica).members,
         [&](int member) { actors |= bit(replica_of(state, member).actor); });
    served &= minted_by(state, actors);
  }
  Message reply{};
  reply.kind = MessageKind::pull_reply;
  reply.from = static_cast<std::uint8_t>(from);
  reply.to = static_cast<std::uint8_t>(to);
  reply.from_actor = replica.actor;
  reply.to_actor = asker.actor;
  reply.epoch = replica.epoch;
  reply.served = served;
  reply.clock = replica.clock;
  reply.base = synced_base(state, scope, from);
  reply.wall = replica.wall;
  return reply;
}

// P9: the objects as they are now, under the clock of the moment of the reply.
void take_objects_under_old_clock(State& state, const Message& reply) {
  Replica& replica = replica_of(state, reply.to);
  const Replica& sender = replica_of(state, reply.from);
  Mask cells = 0;
  each(reply.served, [&](int e) { cells |= event_of(state, e).cells; });
  each(cells, [&](int cell) {
    const Fragment now = read_cell(state, sender, cell);
    const auto context = static_cast<Events>(now.context | reply.clock);
    take_object(state, reply.to, reply.from, cell, {now.versions, without(context, now.versions)});
  });
  replica.clock |= reply.served;
  replica.log |= reply.served;
}

// P6: only versions that are alive, and the sender's own dots, enter the clock.
void keep_only_origin_dots(State& state, const Message& reply, Events before) {
  Replica& replica = replica_of(state, reply.to);
  Events alive = 0;
  for (int cell = 0; cell < kCells; ++cell) alive |= read_cell(state, replica, cell).versions;
  const Events own = minted_by(state, bit(replica_of(state, reply.from).actor));
  const Events kept = static_cast<Events>(before | (reply.served & (alive | own)));
  replica.clock &= kept;
  replica.log &= kept;
}

// Only a clock that was merged whole, in this epoch, becomes a watermark (c), (R5).
void take_watermark(State& state, const Scope& scope, const Message& told) {
  Replica& replica = replica_of(state, told.to);
  replica.watermark[told.from] |= told.base;
  replica.pulled |= bit(told.from);
  if (told.wall != 0) replica.reported |= bit(told.from);
  close_removed(state, scope, told.to);
  collect_log(state, told.to);
}

bool majority_answers(const State& state) {
  int answering = 0;
  each(newest(state).members, [&](int r) { answering += answers(state, r) ? 1 : 0; });
  return answering > std::popcount(newest(state).members) / 2;
}

// A re-entering replica answers another one only when no majority of members is left to ask.
bool answers_reentry(const State& state, int from) {
  const bool in_doubt = replica_of(state, from).phase == Phase::reentering;
  return answers(state, from) || (in_doubt && !majority_answers(state));
}

// Re-entry needs a majority of members beside the replica itself; all others when they are fewer.
bool has_reentered(const State& state, int r) {
  const Replica& replica = replica_of(state, r);
  const Mask members = config_of(state, replica).members;
  const int others = std::popcount(static_cast<Mask>(members & ~bit(r)));
  return std::popcount(static_cast<Mask>(replica.reconciled & members)) >=
         std::min(std::popcount(members) / 2 + 1, others);
}

void take_reply(State& state, const Scope& scope, const Message& reply) {
  Replica& replica = replica_of(state, reply.to);
  const Events before = replica.clock;
  if (scope.mutant == Mutant::clock_of_another_moment) {
    take_objects_under_old_clock(state, reply);
  } else {
    each(reply.served, [&](int e) { apply_mutation(state, scope, reply.to, e); });
  }
  if (scope.mutant == Mutant::only_origins_close_gaps) {
    keep_only_origin_dots(state, reply, before);
  }
  if (scope.mutant == Mutant::claim_everything || scope.mutant == Mutant::replaced_by_empty_node) {
    replica.clock |= reply.clock;
  }
  if ((reply.clock & ~seen_by(state, replica)) != 0 || reply.epoch != replica.epoch) return;
  take_watermark(state, scope, reply);
  if (replica.phase != Phase::reentering) return;
  replica.reconciled |= bit(reply.from);
  if (!has_reentered(state, reply.to)) return;
  replica.phase = Phase::active;
  replica.reconciled = 0;
}

bool may_pull(State& state, const Scope& scope, int to, int from) {
  const bool reenters = scope.reenters_by_pull && replica_of(state, to).phase == Phase::reentering;
  const auto speaks = [&] {
    return reenters ? answers_reentry(state, from) : answers(state, from);
  };
  if (to == from || !speaks()) return false;
  if (!answers(state, to) && !reenters && scope.mutant != Mutant::claim_everything) return false;
  if (!has(others_of(state, to), from) || !meet(state, scope, to, from)) return false;
  return speaks() && has(others_of(state, to), from) &&
         replica_of(state, to).phase != Phase::stopped;
}

// R5: the clock of a member as far as it is synced, and the base of it.
Message make_announcement(const State& state, const Scope& scope, int to, int from) {
  const Replica& sender = replica_of(state, from);
  Message told{};
  told.kind = MessageKind::announcement;
  told.from = static_cast<std::uint8_t>(from);
  told.to = static_cast<std::uint8_t>(to);
  told.from_actor = sender.actor;
  told.to_actor = replica_of(state, to).actor;
  told.epoch = sender.epoch;
  told.clock = synced_clock(state, scope, from);
  told.base = synced_base(state, scope, from);
  told.wall = sender.wall;
  return told;
}

// Whether it has become a watermark: what was told is here, exceptions too.
bool take_announcement(State& state, const Scope& scope, const Message& told) {
  const Replica& replica = replica_of(state, told.to);
  const bool covers = (told.clock & ~seen_by(state, replica)) == 0;
  if (!covers && scope.mutant != Mutant::watermark_without_covering) return false;
  if (!answers(state, told.to) || told.epoch != replica.epoch) return false;
  take_watermark(state, scope, told);
  return true;
}

bool may_announce(State& state, const Scope& scope, int to, int from) {
  if (!scope.announces || to == from || !answers(state, from) || !answers(state, to)) return false;
  if (!has(others_of(state, to), from) || !meet(state, scope, to, from)) return false;
  return answers(state, from) && answers(state, to) && has(others_of(state, to), from);
}

}  // namespace

bool pull(State& state, const Scope& scope, const Action& action) {
  if (state.pulls_left == 0) return false;
  if (!may_pull(state, scope, action.replica, action.peer)) return false;
  if (state.pulls_left != kUnlimited) --state.pulls_left;
  take_reply(state, scope, make_reply(state, scope, action.replica, action.peer));
  return true;
}

// A reply that was cut off after one mutation claims that one alone (S5).
bool pull_page(State& state, const Scope& scope, const Action& action) {
  if (!may_pull(state, scope, action.replica, action.peer)) return false;
  const Message reply = make_reply(state, scope, action.replica, action.peer);
  if (!has(reply.served, action.what)) return false;
  apply_mutation(state, scope, action.replica, action.what);
  if (scope.mutant == Mutant::page_claims_whole_clock) {
    replica_of(state, action.replica).clock |= reply.clock;
  }
  return true;
}

bool send_reply(State& state, const Scope& scope, const Action& action) {
  if (state.delays_left == 0 || !may_pull(state, scope, action.replica, action.peer)) return false;
  return post(state, make_reply(state, scope, action.replica, action.peer));
}

bool announce(State& state, const Scope& scope, const Action& action) {
  if (!may_announce(state, scope, action.replica, action.peer)) return false;
  return take_announcement(state, scope,
                           make_announcement(state, scope, action.replica, action.peer));
}

bool send_announcement(State& state, const Scope& scope, const Action& action) {
  if (state.delays_left == 0) return false;
  if (!may_announce(state, scope, action.replica, action.peer)) return false;
  return post(state, make_announcement(state, scope, action.replica, action.peer));
}

namespace {

// Read repair sends whole mutations, never a cell: those of the cell that the other lacks.
Message make_repair(const State& state, int to, int from, int cell) {
  const Replica& sender = replica_of(state, from);
  Message message{};
  message.kind = MessageKind::repair;
  message.from = static_cast<std::uint8_t>(from);
  message.to = static_cast<std::uint8_t>(to);
  message.from_actor = sender.actor;
  message.to_actor = replica_of(state, to).actor;
  message.epoch = sender.epoch;
  message.cell = static_cast<std::uint8_t>(cell);
  each(without(sender.log, sender.capped), [&](int e) {
    if (has(event_of(state, e).cells, cell)) message.served |= event_bit(e);
  });
  message.served = without(message.served, seen_by(state, replica_of(state, to)));
  return message;
}

void take_repair(State& state, const Scope& scope, const Message& repair) {
  const bool partial =
      scope.mutant == Mutant::repair_of_one_cell || scope.mutant == Mutant::repair_adds_dot;
  if (!partial) {
    each(repair.served, [&](int e) { apply_mutation(state, scope, repair.to, e); });
    return;
  }
  const Fragment object = filled(state, scope, repair.from, repair.cell);
  take_object(state, repair.to, repair.from, repair.cell, object);
  if (scope.mutant == Mutant::repair_adds_dot) {
    replica_of(state, repair.to).clock |= object.versions;
    replica_of(state, repair.to).log |= object.versions;
  }
}

bool may_repair(State& state, const Scope& scope, const Action& action) {
  const int to = action.replica;
  const int from = action.peer;
  return to != from && answers(state, to) && answers(state, from) && meet(state, scope, to, from) &&
         answers(state, to) && answers(state, from);
}

}  // namespace

bool repair(State& state, const Scope& scope, const Action& action) {
  if (state.repairs_left == 0 || !may_repair(state, scope, action)) return false;
  --state.repairs_left;
  take_repair(state, scope, make_repair(state, action.replica, action.peer, action.what));
  return true;
}

bool send_repair(State& state, const Scope& scope, const Action& action) {
  if (state.repairs_left == 0 || state.delays_left == 0) return false;
  if (!may_repair(state, scope, action)) return false;
  --state.repairs_left;
  return post(state, make_repair(state, action.replica, action.peer, action.what));
}

bool receive(State& state, const Scope& scope, const Action& action) {
  Message& slot = state.message[action.what];
  const Message message = slot;
  if (message.kind == MessageKind::none) return false;
  const bool keep = action.flags != 0;
  if (!keep) slot = {};
  const int to = message.to;
  const Replica& replica = replica_of(state, to);
  if (message.kind == MessageKind::scan) {
    const Action scan{.kind = ActionKind::install, .replica = message.to, .peer = message.from};
    if (!may_scan(state, scope, scan)) return !keep;
    reconcile(state, scope, to, message.from, message.clock, message.served);
    replica_of(state, to).phase = Phase::installed;
    return true;
  }
  // An answer to a life that is over is dropped (P14), and so is what a removed actor sent.
  adopt(state, scope, to, message.epoch);
  if (replica.actor != message.to_actor || replica.phase == Phase::stopped) return !keep;
  if (fenced(state, scope, to, message.from_actor)) return !keep;
  if (message.kind == MessageKind::pull_reply) {
    take_reply(state, scope, message);
  } else if (message.kind == MessageKind::announcement) {
    return take_announcement(state, scope, message) || !keep;
  } else {
    take_repair(state, scope, message);
  }
  return true;
}

bool take_reconcile(State& state, const Scope& scope, const Action& action) {
  const int to = action.replica;
  const int from = action.peer;
  if (to == from || !has(others_of(state, to), from)) return false;
  const Replica& source = replica_of(state, from);
  if (!answers_reentry(state, from) || !meet(state, scope, to, from)) return false;
  Replica& replica = replica_of(state, to);
  if (source.phase == Phase::stopped || replica.phase == Phase::stopped) return false;
  if (!has(config_of(state, replica).members, from)) return false;
  if (replica.phase == Phase::reentering) {
    if (scope.reenters_by_pull || has(replica.reconciled, from)) return false;
  } else {
    // A peer behind the log's cap: some dot it lacks cannot be served.
    const Events withheld =
        without(without(source.clock, seen_by(state, replica)), without(source.log, source.capped));
    if (!answers(state, to) || withheld == 0 || state.reconciles_left == 0) return false;
    --state.reconciles_left;
  }
  reconcile(state, scope, to, from, source.clock, source.log);
  replica.capped |= static_cast<Events>(source.capped & replica.log);
  replica.watermark[static_cast<unsigned>(from)] |= synced_base(state, scope, from);
  replica.pulled |= bit(from);
  if (source.wall != 0) replica.reported |= bit(from);
  replica.reconciled |= bit(from);
  if (replica.phase == Phase::reentering && has_reentered(state, to)) {
    replica.phase = Phase::active;
    replica.reconciled = 0;
  }
  if (replica.phase == Phase::active) replica.reconciled = 0;
  close_removed(state, scope, to);
  collect_log(state, to);
  return true;
}

bool cap_log(State& state, const Action& action) {
  Replica& replica = replica_of(state, action.replica);
  if (state.reconciles_left == 0 || replica.log == replica.capped) return false;
  --state.reconciles_left;
  replica.capped = replica.log;
  return true;
}

}  // namespace helenus::explore
