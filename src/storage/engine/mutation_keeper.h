// MutationKeeper: keeps the mutations that some peer may lack, and lets go what none lacks any more
// (mutation_log.h).
//
//   keep() ─▶ memory ─▶ flush: a mutation file ─▶ merged ─▶ stable or shed: gone
//
// What must never lie (S1, S6, S7):
//   - A mutation that some peer may lack is kept until it is stable: in the log and in memory, then
//     in a file that enters the manifest with the flush that lets its record go.
//   - What is given up before it is stable is named (shed), in the manifest first: after a crash
//     the replica must not believe that it could give what it cannot, nor mint below what it no
//     longer remembers.
//   - Of mutations of dropped tables the dots stay known (cover).
//   - A mutation with an operation id is kept until its id lies below the floor, too, and never
//   shed
//     before (R15). The manifest gets the floor with every edit that lets a mutation go, so that a
//     start whose wall clock is behind refuses what was forgotten (C5).
//
// Owns: the account of what all this takes of memory: `mutations`, `floors` and `dots` of
// EngineState::memory, which nobody else adds to. Borrows: the state, and in it the mutation logs
// and floors of tablets and the mutation files of shards; ManifestChanges.
// Core affinity: the engine's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/clock.h"
#include "causality/delta.h"
#include "runtime/task.h"
#include "storage/engine/engine_state.h"
#include "storage/engine/manifest_changes.h"
#include "storage/engine/shard.h"
#include "storage/engine/tablet.h"
#include "storage/table/table_store.h"

namespace helenus::storage {

class MutationKeeper {
 public:
  MutationKeeper(EngineState& state, ManifestChanges& manifests);

  // Background loops; each runs once.
  runtime::Task<void> mutation_loop();
  runtime::Task<void> operation_loop();
  // At a start: the screen learns the ids that mutation files have.
  runtime::Task<void> find_operations();

  // ---- Keeping ----
  // The mutation was logged, as this record, and applied.
  void keep(Tablet& tablet, const TableStore& table, base::ByteView partition,
            const causality::Delta& delta, base::Bytes record, std::uint64_t sequence);
  // Whether mutations with ids take so much that none may be added: those above the floor are
  // never given up.
  bool is_full_of_operations() const;
  // The dots are of a dropped table: their mutations go, and they are remembered as covered.
  void cover(Tablet& tablet, const causality::Clock& dots);
  // As Engine::set_watermarks.
  void set_watermarks(TabletId tablet, std::vector<std::optional<causality::Watermark>> watermarks);
  // The tablet goes, with what it keeps. Its files are then without it: count_dots().
  void forget(const Tablet& tablet);
  // Mutation files came or went, or what of them is kept.
  void count_dots();

  // ---- Moving to files, with a flush ----
  // Those of the table in memory, up to that write.
  static std::vector<TabletBatch> mutations_of(const Shard& shard, TableId table,
                                               std::uint64_t sequence_last);
  static std::vector<TabletBatch> mutations_in_memory(const Shard& shard);
  // The part of an edit that concerns mutation logs: the new file, if there is one, and what is
  // left of what was shed.
  static void enter_mutations(ManifestState& state, const Shard& shard, const MutationFile* file);
  // The manifest has the file, if there is one: memory is freed.
  void moved_to_file(Shard& shard, const std::vector<TabletBatch>& batches,
                     std::shared_ptr<const MutationFile> file);

 private:
  // What has become releasable leaves the mutation log. Whether a file had any of it.
  bool collect(Tablet& tablet);
  // Folds floors until they take no more than they may.
  void bound_floors();
  // Does one thing that is to be done; false if there was none.
  runtime::Task<base::Result<bool>> tend_mutation_files();
  // What of it is not stable is shed.
  runtime::Task<base::Result<void>> give_up_mutation_file(Shard& shard, LiveMutationFile file);
  runtime::Task<base::Result<bool>> merge_mutation_files(Shard& shard);
  static runtime::Task<bool> is_damaged(std::shared_ptr<const MutationFile> file);
  Shard* shard_over_the_cap() const;
  // Null if each has an id above the floor.
  const LiveMutationFile* oldest_to_shed(const Shard& shard) const;

  EngineState& state_;
  ManifestChanges& manifests_;
};

}  // namespace helenus::storage
