#include "explore/mutant.h"

#include <algorithm>
#include <array>

#include "base/assert.h"

namespace helenus::explore {

namespace {

constexpr std::array kMutants = {
    MutantInfo{Mutant::put_covers_own_dots, "P1-put-covers-own-dots",
               "a put's context covers every dot of its coordinator", "cell", Invariant::i2},
    MutantInfo{Mutant::replaced_by_empty_node, "P2-replaced-by-empty-node",
               "a failed node is replaced by an empty one that syncs", "cell-crash", Invariant::i1},
    MutantInfo{Mutant::fill_over_members, "P3-fill-over-members",
               "fill names only dots of current members", "ring", Invariant::i2, true},
    MutantInfo{Mutant::sync_walks_members, "P4-sync-walks-members",
               "sync sends only dots of current members", "cell-remove", Invariant::q},
    MutantInfo{Mutant::same_actor_after_tail_loss, "P5-same-actor-after-tail-loss",
               "a replica that lost its tail goes on counting", "cell-crash", Invariant::i0},
    MutantInfo{Mutant::only_origins_close_gaps, "P6-only-origins-close-gaps",
               "only live versions and the sender's own dots enter the clock", "cell-remove",
               Invariant::q},
    MutantInfo{Mutant::clock_of_another_moment, "P9-clock-of-another-moment",
               "objects are filled with a clock of another moment", "cell-delay", Invariant::i2,
               true},
    MutantInfo{Mutant::error_is_empty, "P10-error-is-empty",
               "a cell that cannot be read is sent as an empty one", "cell-crash", Invariant::i2},
    MutantInfo{Mutant::clock_per_node, "P11-clock-per-node", "one clock for all ranges of a node",
               "two-ranges", Invariant::i2},
    MutantInfo{Mutant::page_claims_whole_clock, "P12-page-claims-whole-clock",
               "a cut reply merges the whole clock", "cell-cap", Invariant::i1},
    MutantInfo{Mutant::strip_at_insert, "strip-at-insert",
               "contexts are stripped at memtable insert", "cell-storage", Invariant::i2},
    MutantInfo{Mutant::strip_by_current_clock_at_flush, "strip-now-at-flush",
               "a flush strips against the current clock", "cell-storage", Invariant::i2},
    MutantInfo{Mutant::strip_by_current_clock_at_compaction, "strip-now-at-compaction",
               "a partial compaction strips against the current clock", "cell-storage",
               Invariant::i2},
    MutantInfo{Mutant::strip_beside_older_fragment, "strip-beside-older-fragment",
               "a merge strips although an older sstable holds the key", "cell-storage",
               Invariant::i2},
    MutantInfo{Mutant::strip_cell_under_scope, "strip-cell-under-scope",
               "a cell stops naming the range delete it supersedes", "lww-scope", Invariant::i2},
    MutantInfo{Mutant::no_timestamp_raise, "no-timestamp-raise",
               "timestamps are taken as they come", "lww-cell", Invariant::i2, true},
    MutantInfo{Mutant::context_without_floor, "context-without-floor",
               "a client's context does not bring the timestamps it covers", "lww-floor",
               Invariant::t},
    MutantInfo{Mutant::explicit_is_raised, "explicit-is-raised",
               "an explicit timestamp is raised above its context's floor", "lww-explicit",
               Invariant::d},
    MutantInfo{Mutant::explicit_ignores_context, "explicit-ignores-context",
               "an explicit timestamp is judged without its context's floor", "lww-explicit",
               Invariant::t},
    MutantInfo{Mutant::explicit_ties_with_context, "explicit-ties-with-context",
               "an explicit timestamp may equal its context's floor", "lww-explicit", Invariant::t},
    MutantInfo{Mutant::scope_as_old_as_cells, "scope-as-old-as-cells",
               "a scope that a mutation writes into is deleted at the same time", "lww-replace",
               Invariant::i2},
    MutantInfo{Mutant::client_context_as_such, "client-context-as-such",
               "an lww table takes the client's context as it is", "lww-cell", Invariant::i2, true},
    MutantInfo{Mutant::drop_ignores_pending, "drop-ignores-pending",
               "stability does not count pending members", "lww-pending-small", Invariant::i2},
    MutantInfo{Mutant::drop_by_current_stability, "drop-by-current-stability",
               "a merge drops what is stable now, not at its freeze", "lww-cell", Invariant::i2},
    MutantInfo{Mutant::compaction_forgets_oldest_freeze, "compaction-forgets-oldest-freeze",
               "a compaction's output counts as frozen with its newest input", "group",
               Invariant::i2, true},
    MutantInfo{Mutant::scan_claims_its_start, "scan-claims-its-start",
               "a joiner takes objects newer than the clock it claims", "ring", Invariant::i2,
               true},
    MutantInfo{Mutant::repair_of_one_cell, "repair-of-one-cell",
               "read repair sends a cell without its mutation", "row-repair-crash", Invariant::i2},
    MutantInfo{Mutant::repair_adds_dot, "repair-adds-dot", "read repair of one cell adds the dot",
               "row-repair", Invariant::i1},
    MutantInfo{Mutant::row_context_by_union, "row-context-by-union",
               "the context of a row is the union of its cells' contexts", "row-repair",
               Invariant::i2},
    MutantInfo{Mutant::sstable_before_log_sync, "sstable-before-log-sync",
               "an sstable is installed before its log is synced", "two-rows-crash", Invariant::i1},
    MutantInfo{Mutant::expiry_by_one_wall_clock, "expiry-by-one-wall-clock",
               "a value is dropped when one wall clock says so", "lww-expiry", Invariant::i2},
    MutantInfo{Mutant::no_fence, "no-fence", "messages of removed actors are taken", "cell-ring",
               Invariant::i2},
    MutantInfo{Mutant::close_early, "close-early",
               "an actor is closed before all members were pulled from", "cell-ring",
               Invariant::i2},
    MutantInfo{Mutant::promote_early, "promote-early",
               "a joiner is promoted before it pulled from all", "ring", Invariant::a1, true},
    MutantInfo{Mutant::context_without_epoch, "context-without-epoch",
               "a context does not bring its epoch", "cell-ring", Invariant::i2},
    MutantInfo{Mutant::claim_everything, "claim-everything", "a reply claims what it cannot serve",
               "cell-join", Invariant::i1},
    MutantInfo{Mutant::reenter_without_reconcile, "reenter-without-reconcile",
               "a replica that lost its tail serves at once", "cell-crash", Invariant::a1},
    MutantInfo{Mutant::delete_by_own_clock, "delete-by-own-clock",
               "a quorum delete takes its minter's clock alone", "cell-quorum", Invariant::s2},
    MutantInfo{Mutant::watermark_without_covering, "watermark-without-covering",
               "a clock that was told is a watermark at once", "lww-announce", Invariant::i2},
    MutantInfo{Mutant::unsynced_watermark, "unsynced-watermark",
               "a watermark has dots that a loss of the log's tail takes back", "cell-reenter",
               Invariant::q},
    MutantInfo{Mutant::adopt_without_sync, "adopt-without-sync",
               "an epoch begins before all that was taken is synced", "cell-reenter-two",
               Invariant::i2},
    MutantInfo{Mutant::explicit_ignores_log, "explicit-ignores-log",
               "an explicit timestamp is judged by what is stored, without the mutation log",
               "lww-explicit-log", Invariant::t},
    MutantInfo{Mutant::explicit_range_as_one, "explicit-range-as-one",
               "a range delete at an explicit time holds in all of the range if it wins somewhere",
               "lww-explicit-range", Invariant::t},
};

}  // namespace

std::span<const MutantInfo> mutants() {
  return kMutants;
}

const MutantInfo* find_mutant(std::string_view name) {
  const auto at = std::ranges::find(kMutants, name, &MutantInfo::name);
  return at == kMutants.end() ? nullptr : &*at;
}

const MutantInfo& info_of(Mutant mutant) {
  const auto at = std::ranges::find(kMutants, mutant, &MutantInfo::mutant);
  ASSERT(at != kMutants.end());
  return *at;
}

}  // namespace helenus::explore
