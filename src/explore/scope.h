// Scopes: how large a world is explored, and under which rules.
//
// A scope is a table policy and budgets: how many operations, crashes, freezes and so on a schedule
// may contain. Inside its budgets an exhaustive search takes every schedule; actions without a
// budget (deliveries, epoch adoption, syncs) may happen at any time and any number of times. The
// check of quiescence is not bound by them: it pulls, freezes and compacts as long as it helps.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "explore/mutant.h"
#include "explore/state.h"

namespace helenus::explore {

enum class Policy : std::uint8_t { siblings, lww };

inline constexpr int kUnlimited = 255;

struct Scope {
  std::string_view name;
  std::string_view what;
  Policy policy = Policy::siblings;
  int members = 3;
  // Tables in use; both share the replica's clock, each has its own memtable.
  int tables = 1;
  int cells = 2;  // per table
  int operations = 3;
  // Timestamps 1..timestamps are tried for each write; 1 stands for perfect wall clocks.
  int timestamps = 1;
  int crashes = 0;
  int freezes = 0;
  int repairs = 0;
  // Complete pulls; kUnlimited in large scopes.
  int pulls = kUnlimited;
  // Whether replicas tell one another their clocks, beside complete pulls (R5).
  bool announces = false;
  // Whether a replica that lost its tail comes back by pulling (R10), instead of by S14's
  // reconcile.
  bool reenters_by_pull = false;
  // Replies that travel: taken at one moment, delivered at a later one, or never, or twice.
  int delays = 0;
  int removals = 0;
  int joins = 0;
  // Whether a joiner is pending from the beginning, in a ring that all know.
  bool pending = false;
  // Reconciles beyond those that re-entry needs (a peer behind the log's cap).
  int reconciles = 0;
  // Operations beyond blind puts and deletes of cells.
  bool client_contexts = false;
  bool scoped_deletes = false;
  // Mutations that delete a row and write cells of it.
  bool replaces = false;
  bool quorum_deletes = false;
  bool expiring = false;
  bool explicit_timestamps = false;
  // Range deletes at explicit timestamps, too.
  bool explicit_ranges = false;
  bool multi_cell = true;
  // Pulls cut off after one mutation.
  bool pages = false;
  // Partial compactions; without it a flush is the only merge.
  bool compactions = false;
  // Storage is one layer that is merged in place, dropped from and stripped at any moment, instead
  // of an LSM tree. For scopes that are about other things.
  bool one_layer = false;
  // An exhaustive search checks quiescence in one of so many states; 0 for none.
  int quiescence_every = 1;
  Mutant mutant = Mutant::none;
};

// The named scopes, exhaustive ones first.
std::span<const Scope> named_scopes();
// nullptr when there is none of that name.
const Scope* find_scope(std::string_view name);

// The state every schedule begins with.
State initial_state(const Scope& scope);

}  // namespace helenus::explore
