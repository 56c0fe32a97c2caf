#include "explore/counter_scope.h"

#include <algorithm>
#include <array>

namespace helenus::explore {

namespace {

constexpr std::array kCounterScopes = {
    CounterScope{.name = "counter-two",
                 .what = "2 replicas, an operation tried again, a delete, a floor",
                 .replicas = 2,
                 .operations = 1,
                 .retries = 1,
                 .deletes = 1,
                 .floors = 1,
                 .singles = 1,
                 .pulls = 3},
    CounterScope{.name = "counter-deletes",
                 .what = "3 replicas, an increment, two deletes",
                 .plain = 1,
                 .deletes = 2,
                 .singles = 1,
                 .pulls = 2},
    CounterScope{.name = "counter-fragments",
                 .what = "2 replicas, memtables and files, an increment, a delete",
                 .replicas = 2,
                 .plain = 1,
                 .deletes = 1,
                 .singles = 1,
                 .pulls = 3,
                 .fragments = true},
    CounterScope{.name = "counter-copies",
                 .what = "2 replicas, two increments, a delete, two copies",
                 .replicas = 2,
                 .plain = 2,
                 .deletes = 1,
                 .reconciles = 2,
                 .pulls = 3},
    CounterScope{.name = "counter-wide",
                 .what = "2 replicas, two operations tried again, an increment, two deletes",
                 .replicas = 2,
                 .operations = 2,
                 .retries = 2,
                 .plain = 1,
                 .deletes = 2,
                 .floors = 2,
                 .singles = 2,
                 .pulls = 5},
    CounterScope{.name = "counter-aliases",
                 .what = "3 replicas, an operation tried again, a delete that unites clocks",
                 .operations = 1,
                 .retries = 1,
                 .deletes = 1,
                 .floors = 1,
                 .singles = 2,
                 .pulls = 3,
                 .united_deletes = true},
    CounterScope{.name = "counters",
                 .what = "operations tried again, deletes, storage, floors; for random schedules",
                 .operations = 3,
                 .retries = 3,
                 .plain = 2,
                 .deletes = 3,
                 .floors = 6,
                 .singles = 12,
                 .reconciles = 1,
                 .pulls = 40,
                 .united_deletes = true,
                 .fragments = true},
    CounterScope{.name = "counters-copies",
                 .what = "the same with many copies; for random schedules",
                 .operations = 3,
                 .retries = 3,
                 .plain = 3,
                 .deletes = 2,
                 .floors = 6,
                 .singles = 12,
                 .reconciles = 6,
                 .pulls = 40,
                 .united_deletes = true,
                 .fragments = true},
    CounterScope{.name = "counters-ring",
                 .what = "the same with a join; for random schedules",
                 .operations = 3,
                 .retries = 3,
                 .plain = 2,
                 .deletes = 2,
                 .floors = 6,
                 .singles = 12,
                 .pulls = 40,
                 .united_deletes = true,
                 .joins = true,
                 .fragments = true},
};

constexpr std::array kCounterMutants = {
    CounterMutantInfo{CounterMutant::aliases_apart, "aliases-apart",
                      "C3: only the replica that mints knows an operation again", "counters"},
    CounterMutantInfo{CounterMutant::gossiped_watermark, "gossiped-watermark",
                      "C6: a clock that was heard of counts as merged", "counters"},
    CounterMutantInfo{CounterMutant::no_floor, "no-floor",
                      "C2: a forgotten operation is not refused", "counters"},
    CounterMutantInfo{CounterMutant::floor_steps_back, "floor-steps-back",
                      "C5: the floor follows a wall clock that is set back", "counters"},
    CounterMutantInfo{CounterMutant::fold_ignores_pending, "fold-ignores-pending",
                      "C6: a replica that joins does not count", "counters-ring"},
    CounterMutantInfo{CounterMutant::copy_without_floor, "joiner-without-floor",
                      "C8: a copy raises no floor", "counters-ring"},
    CounterMutantInfo{CounterMutant::copy_with_floor_of_source, "joiner-without-record",
                      "C8: a copy has the source's floor, and not its record", "counters-ring"},
    CounterMutantInfo{CounterMutant::copy_without_seen, "copy-without-seen",
                      "C10: what was seen here is left out of a copy", "counters-copies"},
    CounterMutantInfo{CounterMutant::copy_keeps_ours, "copy-keeps-ours",
                      "C10: what a copy has seen and has not stays here", "counters-copies"},
    CounterMutantInfo{CounterMutant::fold_before_copy, "fold-before-copy",
                      "C10: files are folded without a newer one that was copied",
                      "counters-copies"},
    CounterMutantInfo{CounterMutant::duplicate_acknowledged_at_once,
                      "duplicate-acknowledged-at-once",
                      "C2: a known operation is acknowledged where it is known", "counters"},
    CounterMutantInfo{CounterMutant::alias_revives, "alias-revives-a-deleted-counter",
                      "C7: a deleted increment takes its operation's name along", "counters"},
    CounterMutantInfo{CounterMutant::context_stripped, "delete-stripped",
                      "R14: the context of a delete is stripped before it is stable", "counters"},
    CounterMutantInfo{CounterMutant::context_filled, "delete-filled",
                      "R14: the context of a delete is filled by whoever answers", "counters"},
    CounterMutantInfo{CounterMutant::delete_is_context, "delete-is-only-a-context",
                      "R14: a delete leaves no version", "counters"},
    CounterMutantInfo{CounterMutant::reset_is_superseded, "delete-is-superseded",
                      "R14: a delete goes with a later one, and its context is stripped",
                      "counters"},
    CounterMutantInfo{CounterMutant::totals_added, "totals-added",
                      "R14: the totals of all answers count", "counters"},
    CounterMutantInfo{CounterMutant::total_joined_by_dots, "total-joined-by-dots",
                      "R14: answers meet as filled objects do", "counters"},
    CounterMutantInfo{CounterMutant::fold_by_own_clock, "fold-by-the-own-clock",
                      "C6: what a replica has itself counts as stable", "counters"},
    CounterMutantInfo{CounterMutant::fold_of_a_part, "fold-of-a-part",
                      "R14: a merge that leaves a fragment out folds, too", "counters"},
    CounterMutantInfo{CounterMutant::reconcile_by_dots, "reconcile-by-dots",
                      "C10: a copy and what was there meet by dots", "counters"},
};

template <class Named>
const Named* find_in(std::span<const Named> all, std::string_view name) {
  const auto at = std::ranges::find(all, name, &Named::name);
  return at == all.end() ? nullptr : &*at;
}

}  // namespace

std::span<const CounterScope> counter_scopes() {
  return kCounterScopes;
}

const CounterScope* find_counter_scope(std::string_view name) {
  return find_in(counter_scopes(), name);
}

std::span<const CounterMutantInfo> counter_mutants() {
  return kCounterMutants;
}

const CounterMutantInfo* find_counter_mutant(std::string_view name) {
  return find_in(counter_mutants(), name);
}

}  // namespace helenus::explore
