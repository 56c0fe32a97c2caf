// Mutants: single rules broken on purpose, to prove that the explorer can fail.
//
// Each is either a rule as the DottedDB paper prints it (P1 to P12, docs/theory.md) or a plausible
// shortcut in an implementation of ours. A search of a mutant must end with a violation, of the
// promise that its rule keeps; and its schedule, under the rules as they are, must break nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "explore/invariant.h"

namespace helenus::explore {

enum class Mutant : std::uint8_t {
  none,
  put_covers_own_dots,         // P1
  replaced_by_empty_node,      // P2
  fill_over_members,           // P3
  sync_walks_members,          // P4
  same_actor_after_tail_loss,  // P5
  only_origins_close_gaps,     // P6
  clock_of_another_moment,     // P9
  error_is_empty,              // P10, S6
  clock_per_node,              // P11
  page_claims_whole_clock,     // P12
  strip_at_insert,
  strip_by_current_clock_at_flush,
  strip_by_current_clock_at_compaction,
  strip_beside_older_fragment,
  strip_cell_under_scope,
  no_timestamp_raise,
  context_without_floor,
  explicit_is_raised,
  explicit_ignores_context,
  explicit_ties_with_context,
  scope_as_old_as_cells,
  client_context_as_such,
  drop_ignores_pending,
  drop_by_current_stability,
  compaction_forgets_oldest_freeze,
  scan_claims_its_start,
  repair_of_one_cell,
  repair_adds_dot,
  row_context_by_union,
  sstable_before_log_sync,
  expiry_by_one_wall_clock,
  no_fence,
  close_early,
  promote_early,
  context_without_epoch,
  claim_everything,
  reenter_without_reconcile,
  delete_by_own_clock,
  watermark_without_covering,
  unsynced_watermark,
  adopt_without_sync,
  explicit_ignores_log,
  explicit_range_as_one,
};

struct MutantInfo {
  Mutant mutant;
  std::string_view name;
  // The broken rule, in one line.
  std::string_view breaks;
  // The scope in which it is to be found.
  std::string_view scope;
  // The promise that the broken rule is there to keep: found by breaking another, a mutant would
  // prove nothing about its rule.
  Invariant keeps;
  // Found by random schedules when an exhaustive search of the scope would be too large.
  bool random = false;
};

std::span<const MutantInfo> mutants();
const MutantInfo* find_mutant(std::string_view name);
const MutantInfo& info_of(Mutant mutant);

}  // namespace helenus::explore
