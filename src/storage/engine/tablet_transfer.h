// TabletTransfer: gives all that a tablet has to another replica, and takes what another one gives
// (R12, R19). It is the way in which a replica gets what no mutation log has any more.
//
//   source     freeze the tablet's tables ─▶ sync the log ─▶ entries, with the clock of the freeze
//   receiver   entries ─▶ files aside ─▶ what else can be had is pulled ─▶ freeze here
//              ─▶ the difference (tablet_difference.h) ─▶ files aside ─▶ one edit of the manifest
//
// What must never lie:
//   - What is claimed is exactly what was shipped (S4). The source's views and its clock are of one
//     step, and the views never see what is written later. What is shown is synced before it
//     leaves.
//   - All or nothing (ADR 0014). Files, clock and the account of mutations that are not kept enter
//     the manifest by one edit, and memory in one step after it. Until then nobody knows of the
//     files, and a start removes them.
//   - What was compared does not change. The difference is made from what was here when the tables
//     were frozen. What is minted here meanwhile, or comes from others, has dots beyond the claim
//     and is as any later write; a dot that the claim has and that was not here then is refused
//     until the copy is in (Tablet::awaited). Else a version that the source has superseded could
//     come behind the comparison, and would stay for ever.
//   - The manifest claims what is in files (manifest.h): only dots that had not been seen here
//   enter
//     its clock; of those that had, the log was synced first (S1).
//   - The mutations of these dots are not kept here: they are named as shed, with the source's
//   floor
//     for their timestamps, so that rule (b) holds and no peer waits for them in vain. Both are in
//     memory before the edit, since any other edit writes what memory says of it.
//   - A file of a copy has fragments of all ages. It counts as old as the moment its writing began,
//     and says nothing of what was known then: so no merge goes by a knowledge that is newer than
//     some fragment outside it. Flushes of memtables that were frozen before leave it out, as what
//     came later.
//   - Counters that were compared are not folded until the copy is in (causality/counter.h), nor
//     later in a merge without it (merge_writer.h).
//   - Ids of operations that the source has seen are refused here from then on: what they have made
//     is in the copy, and is not known by them (C8).
//   - A replica's own dots that it has not minted it does not take (S13).
//
// After an error nothing has changed, but for space on the disk: files that cannot be removed now
// go with the next start.
//
// Borrows: the state, DiskReserve, ManifestChanges, Flusher. Core affinity: the engine's.
#pragma once

#include <memory>
#include <vector>

#include <absl/container/btree_map.h>

#include "base/result.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "storage/engine/disk_reserve.h"
#include "storage/engine/engine_state.h"
#include "storage/engine/flusher.h"
#include "storage/engine/manifest_changes.h"
#include "storage/engine/tablet_snapshot.h"

namespace helenus::storage {

class TabletTransfer {
 public:
  TabletTransfer(EngineState& state, DiskReserve& reserve, ManifestChanges& manifests,
                 Flusher& flusher);

  // As Engine's.
  runtime::Task<base::Result<std::shared_ptr<const TabletSnapshot>>> snapshot(TabletId tablet,
                                                                              runtime::Until until);
  runtime::Task<base::Result<IngestReport>> ingest(TabletId tablet, TabletFeed& feed,
                                                   runtime::StopToken stop);

 private:
  using File = std::shared_ptr<const Sstable>;
  using Files = absl::btree_map<TableId, File>;

  // A copy that is being taken.
  struct Ingest {
    TabletId tablet;
    TabletFeed* feed = nullptr;
    runtime::StopToken stop;
    Files received = {};
    std::shared_ptr<const TabletSnapshot> here = nullptr;
    LogPosition log_end = {};
    causality::Clock unseen = {};  // what the claim has and was not seen here
    std::vector<std::unique_ptr<TableStore::FoldingHeld>> folding_held = {};
    Files differences = {};
    std::shared_ptr<const causality::Clock> awaited = nullptr;
    IngestReport report = {};
  };

  // In this step.
  base::Result<std::shared_ptr<const TabletSnapshot>> freeze(TabletId tablet);
  base::Result<void> check_indexes(TabletId tablet) const;
  base::Result<void> check_claim(const Tablet& tablet, const TabletClaim& claim) const;
  runtime::Task<base::Result<void>> take(Ingest& ingest);
  runtime::Task<base::Result<void>> receive(Ingest& ingest);
  // From then on no counter of the shard is folded, until the copy is in or given up.
  runtime::Task<base::Result<void>> hold_folding(Ingest& ingest);
  // Freezes what is here, and writes the difference.
  runtime::Task<base::Result<void>> compare(Ingest& ingest);
  runtime::Task<base::Result<void>> install(Ingest& ingest);
  // Returns the dots.
  causality::Clock note_shed(Tablet& tablet, const Ingest& ingest);
  // Memory has what the manifest has.
  void enter(Ingest& ingest);
  runtime::Task<base::Result<File>> write(const Ingest& ingest, TableStore& table,
                                          EntrySource& source);
  runtime::Task<void> remove(const Ingest& ingest, const Files& files);

  EngineState& state_;
  DiskReserve& reserve_;
  ManifestChanges& manifests_;
  Flusher& flusher_;
};

}  // namespace helenus::storage
