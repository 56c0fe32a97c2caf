// What worlds of counters are walked: named scopes, and mutants, which break one rule on purpose.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace helenus::explore {

enum class CounterMutant : std::uint8_t {
  none,
  aliases_apart,
  gossiped_watermark,
  no_floor,
  floor_steps_back,
  fold_ignores_pending,
  copy_without_floor,
  copy_with_floor_of_source,
  copy_without_seen,
  copy_keeps_ours,
  fold_before_copy,
  duplicate_acknowledged_at_once,
  alias_revives,
  context_stripped,
  context_filled,
  delete_is_context,
  reset_is_superseded,
  totals_added,
  total_joined_by_dots,
  fold_by_own_clock,
  fold_of_a_part,
  reconcile_by_dots,
};

struct CounterMutantInfo {
  CounterMutant mutant;
  std::string_view name;
  // The broken rule, in one line.
  std::string_view breaks;
  // The scope in which it is to be found, by random schedules.
  std::string_view scope;
};

struct CounterScope {
  std::string_view name;
  std::string_view what;
  int replicas = 3;
  // What is minted at the most: operations with an id, further dots of them, increments without an
  // id, deletes.
  int operations = 0;
  int retries = 0;
  int plain = 0;
  int deletes = 0;
  int floors = 0;               // steps of floors
  int singles = 0;              // mutations that arrive alone, before what was minted before them
  int reconciles = 0;           // whole copies from a peer
  int pulls = 0;                // complete pulls
  bool united_deletes = false;  // deletes that unite the clock of another replica
  bool joins = false;           // the last replica joins
  bool fragments = false;       // memtable and files; else every merge holds all and is now
  CounterMutant mutant = CounterMutant::none;
};

std::span<const CounterScope> counter_scopes();
const CounterScope* find_counter_scope(std::string_view name);
std::span<const CounterMutantInfo> counter_mutants();
const CounterMutantInfo* find_counter_mutant(std::string_view name);

}  // namespace helenus::explore
