// EngineRecovery: opens an engine: makes or finds its folder, replays the logs, and flushes what
// they held.
//
//   EngineRecovery recovery(state, manifests, mutations, flusher, writes);
//   co_await recovery.open_alone();          a folder for one core
//
//   co_await recovery.open_folder(cores);    the same in two steps, for several cores (engines.h):
//   co_await recovery.open_share(share);     on one core, then on each
//
// What must never lie (S1, S6):
//   - Directories that do not fit together are refused before anything is changed
//     (directory_set.h); the order of the steps of begin_logs() and recover() is what that
//     comparison rests on.
//   - A record is replayed exactly if its table has not got it in its files. By position and not by
//     dot: a version that was dropped as stable would come back otherwise.
//   - The clocks of manifests are joined with the dots of the records that are replayed, so no dot
//     is ever minted twice and none is forgotten. What was replayed is in files, and entered,
//     before an old log goes.
//   - A stop that may have lost acknowledged records leaves every tablet in doubt.
//
// Owns: nothing; it is gone when the engine is open. Borrows: the state, whose first part it sets,
// and the parts that replayed records go through. After an error the state is to be stopped.
// Core affinity: the engine's.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "runtime/task.h"
#include "storage/engine/directory_set.h"
#include "storage/engine/disk_reserve.h"
#include "storage/engine/engine_state.h"
#include "storage/engine/engine_types.h"
#include "storage/engine/flusher.h"
#include "storage/engine/manifest_changes.h"
#include "storage/engine/mutation_keeper.h"
#include "storage/engine/write_path.h"
#include "storage/log/log_directory.h"

namespace helenus::storage {

class EngineRecovery {
 public:
  EngineRecovery(EngineState& state, DiskReserve& reserve, ManifestChanges& manifests,
                 MutationKeeper& mutations, Flusher& flusher, WritePath& writes);

  // Each is called once, and no other. Errors: as Engine::open.
  runtime::Task<base::Result<void>> open_alone();
  // The shards stay with the state and go with it: each core opens its own from what is on disk.
  runtime::Task<base::Result<OpenedFolder>> open_folder(std::uint32_t cores);
  runtime::Task<base::Result<void>> open_share(CoreShare share);

 private:
  runtime::Task<base::Result<void>> lock_folder();
  runtime::Task<base::Result<void>> find_folder();
  runtime::Task<base::Result<void>> make_folder();
  runtime::Task<base::Result<void>> load_shards();
  runtime::Task<base::Result<void>> open_shards();
  runtime::Task<base::Result<std::vector<std::string>>> find_strange_shards();
  runtime::Task<base::Result<DirectorySet>> inspect_directories();
  // Before anything is changed.
  runtime::Task<base::Result<void>> judge_directories(const DirectorySet& set);
  runtime::Task<base::Result<std::vector<LogShare>>> begin_logs(DirectorySet set,
                                                                std::uint32_t cores);
  runtime::Task<base::Result<std::vector<CoreShare>>> recover(std::uint32_t cores);
  runtime::Task<base::Result<void>> take_share(CoreShare share);
  runtime::Task<base::Result<void>> replay();
  base::Result<void> replay(const ReplayedBatch& batch);
  bool holds_large_key() const;
  // Writes what was replayed into files, all tables of the shard at once. Before the end of the
  // replay (`final` is false) they are not entered: the log is not yet known to be durable, and a
  // start that is cut short leaves them as leftovers instead of adding to the shard. Nothing is
  // stripped then. At the end all of them are entered by one edit, with the clocks and the position
  // in the logs: a dot that is in a file and in no clock might be minted again, should its record
  // be lost after all.
  runtime::Task<base::Result<void>> flush_replayed(Shard& shard, bool final);
  // A table is there if the first shard has it: that one is the last to get it and the first to
  // lose it. Where the last stop came in between, the others follow. After the replay, so that the
  // dots of its records are remembered.
  runtime::Task<base::Result<void>> finish_schema_changes();

  EngineState& state_;
  DiskReserve& reserve_;
  ManifestChanges& manifests_;
  MutationKeeper& mutations_;
  Flusher& flusher_;
  WritePath& writes_;
};

}  // namespace helenus::storage
