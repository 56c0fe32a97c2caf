// The named scopes and the state they begin with.
#include <algorithm>
#include <array>

#include "explore/scope.h"

namespace helenus::explore {

namespace {

// Designated initializers leave the rest at its default on purpose.
#pragma clang diagnostic ignored "-Wmissing-field-initializers"

constexpr std::array kScopes = {
    Scope{.name = "row-crash",
          .what = "3 replicas, 1 row of 2 cells, 3 operations, 1 crash with tail loss",
          .operations = 3,
          .crashes = 1,
          .pulls = 0,
          .quiescence_every = 64},
    Scope{.name = "two-rows",
          .what = "2 replicas, 2 rows in 2 memtables, 4 operations, 1 flush",
          .members = 2,
          .tables = 2,
          .cells = 1,
          .operations = 4,
          .freezes = 1,
          .pulls = 0,
          .quiescence_every = 64},
    Scope{.name = "lww-pending",
          .what = "2 members and a pending one, lww, 3 operations at skewed times, drops",
          .policy = Policy::lww,
          .members = 2,
          .cells = 1,
          .operations = 3,
          .timestamps = 2,
          .pulls = 2,
          .pending = true,
          .one_layer = true,
          .quiescence_every = 64},
    // The same with one operation less, small enough for the test suite.
    Scope{.name = "row-crash-small",
          .what = "3 replicas, 1 row of 2 cells, 2 operations, 1 crash with tail loss",
          .operations = 2,
          .crashes = 1,
          .pulls = 1},
    Scope{.name = "two-rows-small",
          .what = "2 replicas, 2 rows in 2 memtables, 3 operations, 1 flush",
          .members = 2,
          .tables = 2,
          .cells = 1,
          .operations = 3,
          .freezes = 1,
          .pulls = 1},
    Scope{.name = "lww-pending-small",
          .what = "2 members and a pending one, lww, 2 operations at skewed times, drops",
          .policy = Policy::lww,
          .members = 2,
          .cells = 1,
          .operations = 2,
          .timestamps = 2,
          .pulls = 3,
          .pending = true,
          .one_layer = true},
    // Large scopes, for random schedules.
    Scope{.name = "group",
          .what = "siblings: client contexts, storage, repair, delays, crashes",
          .tables = 2,
          .operations = 8,
          .crashes = 2,
          .freezes = 8,
          .repairs = 3,
          .delays = 3,
          .reconciles = 4,
          .client_contexts = true,
          .scoped_deletes = true,
          .quorum_deletes = true,
          .pages = true,
          .compactions = true},
    Scope{.name = "lww-group",
          .what = "lww: skewed and explicit timestamps, expiry, storage, repair, delays",
          .policy = Policy::lww,
          .operations = 8,
          .timestamps = 6,
          .freezes = 8,
          .repairs = 3,
          .delays = 3,
          .reconciles = 2,
          .client_contexts = true,
          .scoped_deletes = true,
          .quorum_deletes = true,
          .expiring = true,
          .explicit_timestamps = true,
          .pages = true,
          .compactions = true},
    Scope{.name = "counter-group",
          .what = "counters: increments and deletes, storage, repair, delays, crashes",
          .policy = Policy::counter,
          .operations = 8,
          .crashes = 1,
          .freezes = 6,
          .repairs = 2,
          .delays = 2,
          .reconciles = 2,
          .pages = true,
          .compactions = true},
    Scope{.name = "ring",
          .what = "siblings: removal, join, promotion, crashes, storage, delays",
          .operations = 7,
          .crashes = 1,
          .freezes = 4,
          .repairs = 2,
          .delays = 2,
          .removals = 1,
          .joins = 1,
          .reconciles = 2,
          .client_contexts = true,
          .pages = true,
          .compactions = true},
    Scope{.name = "lww-group-crash",
          .what = "lww: skewed and explicit timestamps, expiry, storage, repair, delays, crashes",
          .policy = Policy::lww,
          .operations = 8,
          .timestamps = 6,
          .crashes = 1,
          .freezes = 8,
          .repairs = 3,
          .delays = 3,
          .reconciles = 2,
          .client_contexts = true,
          .scoped_deletes = true,
          .quorum_deletes = true,
          .expiring = true,
          .explicit_timestamps = true,
          .pages = true,
          .compactions = true},
    Scope{.name = "lww-ring",
          .what = "lww: removal, join, promotion, crashes, storage, delays",
          .policy = Policy::lww,
          .operations = 7,
          .timestamps = 5,
          .crashes = 1,
          .freezes = 6,
          .repairs = 2,
          .delays = 2,
          .removals = 1,
          .joins = 1,
          .reconciles = 2,
          .client_contexts = true,
          .scoped_deletes = true,
          .expiring = true,
          .explicit_timestamps = true,
          .pages = true,
          .compactions = true},
    // Small scopes in which single mutants have short schedules.
    Scope{.name = "cell",
          .what = "3 replicas, 1 cell, 3 operations with client contexts",
          .cells = 1,
          .operations = 3,
          .client_contexts = true},
    Scope{.name = "cell-storage",
          .what = "2 replicas, 1 cell, 3 operations, 3 freezes, compactions",
          .members = 2,
          .cells = 1,
          .operations = 3,
          .freezes = 3,
          .client_contexts = true,
          .compactions = true},
    Scope{.name = "row-repair",
          .what = "2 replicas, 1 row of 2 cells, 3 operations, 1 read repair",
          .members = 2,
          .operations = 3,
          .repairs = 1,
          .client_contexts = true},
    Scope{.name = "row-repair-crash",
          .what = "2 replicas, 1 row of 2 cells, 2 operations, 1 read repair, 1 crash",
          .members = 2,
          .operations = 2,
          .crashes = 1,
          .repairs = 1},
    Scope{.name = "lww-cell",
          .what = "3 replicas, 1 cell, lww, 3 operations at skewed times, drops",
          .policy = Policy::lww,
          .cells = 1,
          .operations = 3,
          .timestamps = 3,
          .freezes = 1,
          .client_contexts = true,
          .compactions = true},
    Scope{.name = "lww-floor",
          .what = "3 replicas, 1 cell, lww, 3 operations with client contexts at 2 times, 1 flush",
          .policy = Policy::lww,
          .cells = 1,
          .operations = 3,
          .timestamps = 2,
          .freezes = 1,
          .client_contexts = true},
    Scope{.name = "lww-scope",
          .what = "2 replicas, 1 cell, lww, range deletes, 2 freezes",
          .policy = Policy::lww,
          .members = 2,
          .cells = 1,
          .operations = 2,
          .timestamps = 2,
          .freezes = 2,
          .scoped_deletes = true,
          .compactions = true},
    Scope{.name = "lww-expiry",
          .what = "2 replicas, 1 cell, lww, expiring values, 1 freeze",
          .policy = Policy::lww,
          .members = 2,
          .cells = 1,
          .operations = 2,
          .timestamps = 1,
          .freezes = 1,
          .expiring = true},
    Scope{.name = "two-rows-crash",
          .what = "2 replicas, 2 rows in 2 memtables, 2 operations, 1 freeze, 1 crash",
          .members = 2,
          .tables = 2,
          .cells = 1,
          .operations = 2,
          .crashes = 1,
          .freezes = 1},
    Scope{.name = "cell-crash",
          .what = "3 replicas, 1 cell, 2 operations, 1 crash",
          .cells = 1,
          .operations = 2,
          .crashes = 1},
    Scope{.name = "cell-ring",
          .what = "3 replicas and a joiner, 1 cell, 2 operations, removal, join",
          .cells = 1,
          .operations = 2,
          .removals = 1,
          .joins = 1,
          .client_contexts = true},
    Scope{.name = "cell-join",
          .what = "2 members and a joiner, 1 cell, 2 operations",
          .members = 2,
          .cells = 1,
          .operations = 2,
          .joins = 1},
    Scope{.name = "cell-remove",
          .what = "3 replicas, 1 cell, 3 operations, removal, 2 freezes",
          .cells = 1,
          .operations = 3,
          .freezes = 2,
          .removals = 1,
          .client_contexts = true},
    Scope{.name = "cell-delay",
          .what = "3 replicas, 1 cell, 3 operations, 1 delayed reply, 2 freezes",
          .cells = 1,
          .operations = 3,
          .freezes = 2,
          .delays = 1,
          .client_contexts = true},
    Scope{.name = "cell-cap",
          .what = "2 replicas, 1 cell, 2 operations, a capped mutation log",
          .members = 2,
          .cells = 1,
          .operations = 2,
          .reconciles = 2,
          .pages = true},
    Scope{.name = "cell-quorum",
          .what = "3 replicas, 1 cell, 2 operations, quorum deletes",
          .cells = 1,
          .operations = 2,
          .quorum_deletes = true},
    Scope{.name = "two-ranges",
          .what = "3 nodes, 2 ranges, one of them on 2 nodes, 2 operations",
          .tables = 2,
          .cells = 1,
          .operations = 2},
};

}  // namespace

std::span<const Scope> named_scopes() {
  return kScopes;
}

const Scope* find_scope(std::string_view name) {
  const auto at = std::ranges::find(kScopes, name, &Scope::name);
  return at == kScopes.end() ? nullptr : &*at;
}

State initial_state(const Scope& scope) {
  State state{};
  state.epochs = 1;
  state.actors = static_cast<std::uint8_t>(scope.members);
  for (int r = 0; r < scope.members; ++r) {
    Replica& replica = state.replica[static_cast<unsigned>(r)];
    replica.actor = static_cast<std::uint8_t>(r);
    replica.phase = Phase::active;
    state.config[0].members |= bit(r);
    state.slot_of_actor[static_cast<unsigned>(r)] = static_cast<std::uint8_t>(r);
  }
  if (scope.pending) {
    Replica& joiner = state.replica[static_cast<unsigned>(scope.members)];
    joiner.actor = state.actors++;
    joiner.phase = Phase::joining;
    state.config[0].pending = bit(scope.members);
    state.slot_of_actor[joiner.actor] = static_cast<std::uint8_t>(scope.members);
  }
  if (scope.mutant == Mutant::clock_per_node) state.replica[2].lacks_range = 1;
  // With one crash to come only the replica that will have it needs its durability tracked; which
  // one that is does not matter, for they are all alike.
  if (scope.crashes == 1) state.crashable = bit(0);
  if (scope.crashes > 1) state.crashable = state.config[0].members;
  state.crashes_left = static_cast<std::uint8_t>(scope.crashes);
  state.freezes_left = static_cast<std::uint8_t>(scope.freezes);
  state.repairs_left = static_cast<std::uint8_t>(scope.repairs);
  state.delays_left = static_cast<std::uint8_t>(scope.delays);
  state.removals_left = static_cast<std::uint8_t>(scope.removals);
  state.joins_left = static_cast<std::uint8_t>(scope.joins);
  state.pulls_left = static_cast<std::uint8_t>(scope.pulls);
  state.reconciles_left = static_cast<std::uint8_t>(scope.reconciles);
  return state;
}

}  // namespace helenus::explore
