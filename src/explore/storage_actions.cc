// What a replica does with its own data: sync, freeze, flush, compact; and its wall clock.
#include <algorithm>

#include "explore/parts.h"
#include "explore/rules.h"

namespace helenus::explore {

bool sync(State& state, const Action& action) {
  if (!has(state.crashable, action.replica)) return false;
  sync_log(state, action.replica);
  return true;
}

bool freeze(State& state, const Scope& scope, const Action& action) {
  const int r = action.replica;
  Replica& replica = replica_of(state, r);
  Table& table = replica.table[action.what];
  if (state.freezes_left == 0 || table.is_frozen != 0 || is_empty(table.memtable)) return false;
  --state.freezes_left;
  table.frozen = table.memtable;
  table.frozen_synced = table.memtable_synced;
  table.memtable = {};
  table.memtable_synced = {};
  table.is_frozen = 1;
  table.frozen_at = freeze_now(state, scope, r);
  table.frozen_at.first = table.frozen_at.last = ++table.freezes;
  if (has(state.crashable, r)) {
    for (unsigned cell = 0; cell < kCellsPerTable; ++cell) {
      table.frozen_applied[cell] = replica.applied[action.what * kCellsPerTable + cell];
      table.frozen_reflected[cell] = replica.reflected[action.what * kCellsPerTable + cell];
    }
  }
  return true;
}

namespace {

// S1: the log is synced up to everything the sstable depends on, then the edit that installs it
// carries the clock at freeze, and recovery joins it.
void make_durable_for_install(State& state, const Scope& scope, int r, int t) {
  if (!has(state.crashable, r)) return;
  if (scope.mutant != Mutant::sstable_before_log_sync) return sync_log(state, r);
  Replica& replica = replica_of(state, r);
  const Table& table = replica.table[static_cast<unsigned>(t)];
  replica.clock_synced |= table.frozen_at.clock;
  replica.closed_synced |= table.frozen_at.closed;
  for (unsigned slot = 0; slot < kCellsPerTable; ++slot) {
    const unsigned cell = static_cast<unsigned>(t * kCellsPerTable) + slot;
    replica.applied_synced[cell] |= table.frozen_applied[slot];
    replica.reflected_synced[cell] |= table.frozen_reflected[slot];
  }
}

// What strips and drops go by: the instant of the newest input's freeze, unless a mutant looks at
// the clock on the wall of now.
Freeze known_at(const State& state, const Scope& scope, int r, const Freeze& at, bool flush) {
  Freeze instant = at;
  const bool by_current = flush ? scope.mutant == Mutant::strip_by_current_clock_at_flush
                                : scope.mutant == Mutant::strip_by_current_clock_at_compaction;
  if (by_current) instant.base = base_of(state, replica_of(state, r));
  if (scope.mutant == Mutant::drop_by_current_stability) {
    instant.stable = stable_at(state, scope, r);
  }
  return instant;
}

void remove_sstable(Table& table, unsigned index) {
  for (unsigned i = index; i + 1 < table.sstables; ++i) {
    table.sstable[i] = table.sstable[i + 1];
    table.sstable_at[i] = table.sstable_at[i + 1];
  }
  --table.sstables;
  table.sstable[table.sstables] = {};
  table.sstable_at[table.sstables] = {};
}

}  // namespace

MergePlan plan_of_flush(const Table& table) {
  MergePlan plan{};
  plan.input[plan.inputs++] = &table.frozen;
  for (unsigned i = 0; i < table.sstables; ++i) plan.older[plan.olders++] = &table.sstable[i];
  plan.newer[plan.newers++] = &table.memtable;
  return plan;
}

MergePlan plan_of_compaction(const Table& table, unsigned inputs) {
  const auto newest_input = static_cast<unsigned>(std::bit_width(inputs)) - 1;
  MergePlan plan{};
  for (unsigned i = 0; i < table.sstables; ++i) {
    if (has(inputs, static_cast<int>(i))) {
      plan.input[plan.inputs++] = &table.sstable[i];
    } else if (table.sstable_at[i].first <= table.sstable_at[newest_input].last) {
      plan.older[plan.olders++] = &table.sstable[i];
    } else {
      plan.newer[plan.newers++] = &table.sstable[i];
    }
  }
  plan.newer[plan.newers++] = &table.frozen;
  plan.newer[plan.newers++] = &table.memtable;
  return plan;
}

bool flush(State& state, const Scope& scope, const Action& action) {
  Replica& replica = replica_of(state, action.replica);
  Table& table = replica.table[action.what];
  if (table.is_frozen == 0 || table.sstables == kSstablesMax) return false;
  make_durable_for_install(state, scope, action.replica, action.what);
  MergePlan plan = plan_of_flush(table);
  plan.at_freeze = known_at(state, scope, action.replica, table.frozen_at, true);
  plan.now = freeze_now(state, scope, action.replica);
  const Layer out = merge_layers(state, scope, plan);
  if (!is_empty(out)) {
    table.sstable[table.sstables] = out;
    table.sstable_at[table.sstables] = table.frozen_at;
    ++table.sstables;
  }
  table.frozen = {};
  table.frozen_synced = {};
  table.frozen_at = {};
  table.frozen_applied = {};
  table.frozen_reflected = {};
  table.is_frozen = 0;
  return true;
}

bool compact(State& state, const Scope& scope, const Action& action) {
  Table& table = replica_of(state, action.replica).table[action.what];
  if (action.flags == 0 || action.flags >> table.sstables != 0) return false;
  const unsigned newest_input = static_cast<unsigned>(std::bit_width(action.flags)) - 1;
  // What a compaction writes spans the freezes of all its inputs.
  Freeze span = table.sstable_at[newest_input];
  if (scope.mutant != Mutant::compaction_forgets_oldest_freeze) {
    each(action.flags, [&](int i) {
      span.first = std::min(span.first, table.sstable_at[static_cast<unsigned>(i)].first);
    });
  }
  MergePlan plan = plan_of_compaction(table, action.flags);
  plan.at_freeze = known_at(state, scope, action.replica, span, false);
  plan.now = freeze_now(state, scope, action.replica);
  const Layer out = merge_layers(state, scope, plan);
  if (plan.inputs == 1 && out == table.sstable[newest_input]) return false;
  table.sstable[newest_input] = out;
  table.sstable_at[newest_input] = span;
  if (is_empty(out)) remove_sstable(table, newest_input);
  for (unsigned i = newest_input; i-- > 0;) {
    if (has(action.flags, static_cast<int>(i))) remove_sstable(table, i);
  }
  return true;
}

// Freeze, flush and a compaction of everything in one step: what is known now counts.
bool merge_all(State& state, const Scope& scope, const Action& action) {
  if (!scope.one_layer) return false;
  Layer& held = replica_of(state, action.replica).table[action.what].memtable;
  MergePlan plan{};
  plan.input[plan.inputs++] = &held;
  plan.at_freeze = plan.now = freeze_now(state, scope, action.replica);
  const Layer out = merge_layers(state, scope, plan);
  if (out == held) return false;
  held = out;
  sync_log(state, action.replica);
  return true;
}

bool tick(State& state, const Scope& scope, const Action& action) {
  Replica& replica = replica_of(state, action.replica);
  if (!scope.expiring || replica.wall != 0 || replica.phase == Phase::absent) return false;
  replica.wall = 1;
  return true;
}

}  // namespace helenus::explore
