// EngineState: what the parts of an engine share. Each part's header says what it does with it.
//
//   part             job                                            changes here
//   EngineRecovery   opens a folder, replays the logs               what is found at a start
//   WritePath        admits, mints, logs, applies                   staged, memory.memtables
//   ReadPath         merges what memory and files have              what is known to be synced
//   Flusher          freezes memtables, writes them into files      memory.memtables, flush_error
//   Compactor        merges files, purges what dropped tablets had  -
//   MutationKeeper   keeps and lets go what a peer may lack         the rest of memory, operations
//   MutationReader   gives what a peer lacks                        -
//   OperationRecord  finds what an operation id has made            -
//   TableIndexer     brings into an index what was there before    memory.memtables
//   SchemaChanges    tables and tablets come and go                 memory.memtables, staged
//   ManifestChanges  the manifest of a shard is changed             flush_error
// All of them count in `statistics` and wake whoever waits in `signals`.
//
// Order. A part knows those below it and none above:
//
//   SchemaChanges  Compactor  WritePath  TableIndexer    ReadPath, MutationReader
//         └────────────┼──────────┴──────────┘             know the state alone
//                   Flusher   OperationRecord (the state alone)
//               MutationKeeper
//               ManifestChanges
//
// Invariants:
//   - Shards, the log and what is known of the folder are set while the engine is opened, by
//     EngineRecovery, and stay.
//   - own_fatal_error is set once, by fail(), and stays: from then on the manifest is not changed
//     and nothing is staged. Reads go on.
//   - A background loop goes on while goes_on(), and ends at its next wait otherwise.
//
// Lifetime: outlives the parts and every task of theirs. Core affinity: the engine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <absl/container/btree_set.h>

#include "base/log.h"
#include "base/result.h"
#include "runtime/file_system.h"
#include "runtime/gate.h"
#include "runtime/runtime.h"
#include "runtime/semaphore.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/wait_queue.h"
#include "storage/compaction/rate_limiter.h"
#include "storage/engine/engine_options.h"
#include "storage/engine/engine_statistics.h"
#include "storage/engine/engine_types.h"
#include "storage/engine/shard.h"
#include "storage/engine/staged_writes.h"
#include "storage/engine/tablet.h"
#include "storage/log/commit_log.h"
#include "storage/log/log_directory.h"
#include "storage/mutations/operation_screen.h"

namespace helenus::storage {

// What counts against EngineOptions::memtable_bytes_max.
struct EngineMemory {
  std::size_t memtables = 0;  // active and frozen ones
  std::size_t mutations = 0;  // kept for peers and not yet in files
  std::size_t floors = 0;     // timestamp floors of tablets
  std::size_t dots = 0;       // the sets of dots of mutation files

  std::size_t bytes() const { return memtables + mutations + floors + dots; }
};

// Who waits for what.
struct EngineSignals {
  explicit EngineSignals(runtime::Runtime& runtime);
  // But whoever builds indexes: nothing that goes or ends makes work for them.
  void wake_everybody();

  runtime::WaitQueue flush_work;
  runtime::WaitQueue compaction_work;
  runtime::WaitQueue mutation_work;
  runtime::WaitQueue purge_work;
  runtime::WaitQueue index_work;
  runtime::WaitQueue verify_work;
  runtime::WaitQueue room_changed;   // writers that wait for room
  runtime::WaitQueue files_changed;  // whoever waits for a flush, a merge or a purge
};

// A table in the shard of one of its tablets.
struct TableOfTablet {
  Shard* shard = nullptr;
  TableStore* table = nullptr;
  Tablet* tablet = nullptr;
};

struct EngineState {
  EngineState(runtime::Runtime& runtime, EngineOptions options);
  EngineState(const EngineState&) = delete;
  EngineState& operator=(const EngineState&) = delete;

  // Null if it is another core's.
  Shard* shard_numbered(std::uint64_t number) const {
    return number % cores == core ? shards[number / cores].get() : nullptr;
  }
  Shard* shard_of(TabletId tablet) const { return shard_numbered(tablet.value() % shard_count); }
  // Null if there is none, or if it is being dropped.
  Tablet* find_tablet(TabletId tablet) const;
  // Errors: not_found; why the tablet is stopped (Tablet::lost_mutations).
  base::Result<TableOfTablet> find(TableId table, TabletId tablet) const;
  std::vector<TabletId> tablets_in_doubt() const;
  bool has_indexes() const;
  // Those of which a part is in a file that cannot be read; ascending.
  std::vector<TabletId> damaged_tablets() const;
  ShardEnvironment shard_environment() { return {runtime, options, sstables, logger}; }

  // Errors: fatal_error(); closed.
  base::Result<void> check_writable() const;
  // What ended writing, here or in the log.
  const std::optional<base::Error>& fatal_error() const {
    return own_fatal_error || log == nullptr ? own_fatal_error : log->fatal_error();
  }
  // Ends writing for good.
  void fail(base::Error error);
  void wake_everybody() { signals.wake_everybody(); }
  // Takes note of what the log has made durable since.
  void advance_durable() { staged.advance(log->durable_position()); }
  // The screen knows what time it is.
  void tell_operations() {
    operations.tell(runtime.clock.wall_now().since_origin().count(),
                    runtime.clock.now().since_origin().count());
  }
  // What floors, and dots, may take of memory each: a flush frees neither, so that writes never
  // wait for it.
  std::size_t aside_bytes_max() const { return options.memtable_bytes_max / 8; }

  // ---- For background loops ----
  bool goes_on() const { return !stop.token().stop_requested() && !own_fatal_error; }
  // After a failure, before the next try.
  runtime::Task<void> pause_after_failure();

  runtime::Runtime& runtime;
  const EngineOptions options;
  base::Logger logger;
  runtime::Semaphore file_reads;
  SstableShared sstables;

  // What was found, or made, at the start.
  EngineOpenReport report;
  // Where the engine has the folder to itself.
  std::vector<std::unique_ptr<runtime::FileLock>> locks;
  std::unique_ptr<LogDirectory> log_directory;
  // The shards of the folder; of these every cores'th is this core's, from number `core` on.
  std::uint32_t shard_count = 0;
  std::uint32_t core = 0;
  std::uint32_t cores = 1;
  std::vector<std::unique_ptr<Shard>> shards;
  std::unique_ptr<CommitLog> log;
  std::uint32_t log_incarnation = 0;

  // Tablets that are made anew from a snapshot: nobody finds them who would read or write rows.
  absl::btree_set<TabletId> restoring;
  std::optional<base::Error> own_fatal_error;
  // Why flushes fail at the moment, or wait for space.
  std::optional<base::Error> flush_error;
  EngineMemory memory;
  StagedWrites staged;
  // Brought up to date by tell_operations().
  OperationScreen operations;
  EngineStatistics statistics;

  runtime::StopSource stop;
  RateLimiter compaction_rate;
  EngineSignals signals;
  runtime::Gate gate;
};

}  // namespace helenus::storage
