// Flusher: freezes memtables and writes them into files, the oldest first.
//
//   freeze() ─▶ queue ─▶ flush_loop(): sync the log ─▶ write and sync files ─▶ manifest
//                                      ─▶ memory is free ─▶ note ─▶ the log may let go
//
// What must never lie (S1, S3):
//   - A file is entered into the manifest only after the log is synced up to its freeze, with the
//     dots of the memtable it was made of and no others: the manifest claims only what is in files,
//     so that it stays true without the log (directory_set.h).
//   - What a flush strips or drops it does by the knowledge of the freeze, when every file of the
//     table and every memtable frozen before was as old.
//   - Mutations of the memtable that some peer may lack enter the manifest by the same edit, in a
//     file of their own; only then may the log let their records go.
//   - Flushes are entered in the order of their freezes (table_store.h): one loop, one queue.
//   - Entries of an index are in files before the log lets go of the mutations that they follow
//     from, as they are in no log: an index is frozen before its table is. Its dots are its
//     table's, and do not enter the manifest with it.
//
// A flush that fails is tried again, and until it succeeds EngineState::flush_error says why. One
// that finds no space may have what is kept for deletes (disk_reserve.h).
//
// Owns: the queue. Borrows: the state, DiskReserve, ManifestChanges, MutationKeeper.
// Core affinity: the engine's.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include "base/result.h"
#include "runtime/task.h"
#include "storage/engine/disk_reserve.h"
#include "storage/engine/engine_state.h"
#include "storage/engine/manifest_changes.h"
#include "storage/engine/mutation_keeper.h"
#include "storage/engine/shard.h"
#include "storage/table/table_store.h"

namespace helenus::storage {

class Flusher {
 public:
  // A memtable in which one key has so much is flushed: with one record more, and merged, it fits
  // what a file takes under a key (kValueSizeMax).
  static constexpr std::size_t kKeyBytesFlush = std::size_t{64} << 20;

  Flusher(EngineState& state, DiskReserve& reserve, ManifestChanges& manifests,
          MutationKeeper& mutations);

  // ---- Background loops; each runs once ----
  runtime::Task<void> flush_loop();
  // Freezes what keeps the log from letting go of its oldest segments.
  runtime::Task<void> log_pressure_loop();

  // The table's active memtable takes no more writes, if it has any, in this step.
  void freeze(Shard& shard, const std::shared_ptr<TableStore>& table);
  // After a write: its memtable may be full, or memory.
  void freeze_if_due(const TableOfTablet& found);
  // As Engine::flush.
  runtime::Task<base::Result<void>> flush(TableId table, runtime::Until until);
  // Writes a frozen memtable into a file that nobody knows of yet. Every file of the table is as
  // old, but for one that a copy of a tablet brought since (tablet_transfer.h).
  runtime::Task<base::Result<Shard::Written>> write_frozen(Shard& shard, const TableStore& table,
                                                           std::shared_ptr<const Memtable> memtable,
                                                           const FreezeState& at);
  std::size_t memtables_waiting() const { return queue_.size(); }

 private:
  struct FlushJob {
    Shard* shard = nullptr;
    std::shared_ptr<TableStore> table;
  };

  void freeze_for_room();
  void freeze_largest();
  // A full disk: what memory and the log have may take less in files, and what is deleted there is
  // collected from files alone.
  void freeze_all();
  runtime::Task<base::Result<void>> flush_oldest(FlushJob job);

  EngineState& state_;
  DiskReserve& reserve_;
  ManifestChanges& manifests_;
  MutationKeeper& mutations_;
  std::deque<FlushJob> queue_;  // in the order of the freezes
};

}  // namespace helenus::storage
