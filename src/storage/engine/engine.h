// Engine: the tables that one core keeps, on its disks.
//
//   auto engine = co_await Engine::open(runtime, options);            recovers what there is
//   co_await engine->create_table(table, {...});
//   co_await engine->create_tablet(tablet, range, actor);
//   co_await engine->write(table, tablet, partition, mutation, ...);   appends, reads nothing
//   co_await engine->read_row(table, tablet, partition, row, until);   merges fragments
//   co_await engine->stop();
//
// The unit is the dotted fragment (causality/dot_store.h): a write mints a dot or takes a peer's,
// becomes one record of the commit log and one fragment in a memtable; reads and compactions merge
// fragments in any order.
//
// What must never lie (theory S1, S3, S4, S6):
//   - Nothing derived from a record leaves before the record is as durable as the sync mode
//     promises: write() returns then, a read that saw it waits for it, durable_clock() leaves its
//     dot out.
//   - A file is entered into the manifest only after the log is synced up to its freeze, with the
//     dots of the memtable it was made of. Recovery joins them with the dots of the records it
//     replays, so no dot is ever minted twice and none is forgotten; and the manifest claims only
//     what is in files, so that it stays true without the log (directory_set.h).
//   - A mutation that some peer may lack is kept until it is stable (mutation_log.h): in the log
//     and in memory, then in a file that enters the manifest with the flush that lets its record
//     go.
//   - A record is replayed exactly if its table has not got it in its files. By position and not by
//     dot: a version that was dropped as stable would come back otherwise.
//   - A stop that may have lost acknowledged records leaves every tablet in doubt: it mints nothing
//     until it is given a new actor id.
//   - What cannot be read is an error that names file and offset, never an empty answer.
//
// Trouble. A failure of the commit log or of the manifest ends writing for good (fatal_error());
// reads go on. A flush that fails is tried again; writes are refused with its error when memory is
// full. A disk that is nearly full refuses writes of data before what deletes, smaller manifests
// and a start need is touched (disk_reserve.h). A compaction that fails is tried again, too; a
// damaged file is set aside, and everything else goes on without it.
//
// Core affinity: the core whose Runtime opened it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/delta.h"
#include "runtime/maybe_task.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "storage/engine/engine_options.h"
#include "storage/engine/engine_statistics.h"
#include "storage/engine/engine_types.h"
#include "storage/engine/tablet.h"
#include "storage/engine/tablet_snapshot.h"
#include "storage/log/commit_log.h"
#include "storage/read/table_cursor.h"

namespace helenus::storage {

class Engine {
  struct Private {
    explicit Private() = default;
  };

 public:
  // An engine that has the folder to itself.
  // Errors: invalid_argument; locked; corrupt; unsupported; of the file system.
  static runtime::Task<base::Result<std::unique_ptr<Engine>>> open(runtime::Runtime& runtime,
                                                                   EngineOptions options);
  // The same in two steps, for several cores: Engines (engines.h) does both. The options are the
  // same in both.
  static runtime::Task<base::Result<OpenedFolder>> open_folder(runtime::Runtime& runtime,
                                                               EngineOptions options,
                                                               std::uint32_t cores);
  static runtime::Task<base::Result<std::unique_ptr<Engine>>> open(runtime::Runtime& runtime,
                                                                   EngineOptions options,
                                                                   CoreShare share);
  // For open().
  Engine(Private, runtime::Runtime& runtime, EngineOptions options);
  // Requires: stopped, or the core has halted.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Refuses newcomers, waits for those inside, ends background work and seals the log. What is in
  // memtables is replayed at the next start. Errors: the log's failure. Called once.
  runtime::Task<base::Result<void>> stop();

  const EngineOpenReport& report() const;
  // Its core's.
  runtime::Runtime& runtime() const { return runtime_; }

  // ---- Tables and tablets ----
  // Durable when they return. A dropped table's id is not used again as long as a peer may lack one
  // of its mutations: they are known by it. Errors: already_exists; not_found; invalid_argument;
  // fatal_error().
  runtime::Task<base::Result<void>> create_table(TableId table, TableOptions options);
  // Files that are written from now on are of these options; the policy stays what it is. After an
  // error some shards may have them. Writes nothing when nothing changes.
  runtime::Task<base::Result<void>> alter_table(TableId table, TableOptions options);
  // Its data is gone at once.
  runtime::Task<base::Result<void>> drop_table(TableId table);
  // Requires: no other tablet's range overlaps.
  runtime::Task<base::Result<void>> create_tablet(TabletId tablet, KeyRange range,
                                                  causality::ActorId actor);
  // The same for several, with one edit of the manifest for each shard. After an error some shards
  // may have theirs.
  runtime::Task<base::Result<void>> create_tablets(std::vector<TabletInfo> tablets);
  // Takes the tablet away with all its data, from disk, too; nobody finds it from the first step
  // on. A start goes on with what was left undone, and until it is done no tablet may have its
  // keys. A damaged file keeps what it has, for nobody to read. Errors: not_found; flush_error()
  // and fatal_error().
  runtime::Task<base::Result<void>> drop_tablet(TabletId tablet);
  // The same for several.
  runtime::Task<base::Result<void>> drop_tablets(std::vector<TabletId> tablets);
  std::vector<TabletInfo> tablets() const;
  // Ascending; only what its first shard has.
  std::vector<TableId> tables() const;
  // Indexes that answer nobody yet, in some shard of this core; ascending (table_indexer.h).
  std::vector<TableId> indexes_being_built() const;
  std::vector<TabletId> tablets_in_doubt() const;
  // Gives a tablet a new name to mint under. Errors: invalid_argument if the name was used before.
  runtime::Task<base::Result<void>> reincarnate(TabletId tablet, causality::ActorId actor);
  // The same for several, with one edit of the manifest for each shard. After an error some shards
  // may have theirs.
  runtime::Task<base::Result<void>> reincarnate(std::vector<TabletName> names);
  // What the tablet's other members and pending ones have seen; see causality::stability. None at
  // all: the tablet has no other replica. What is stable goes from the mutation log.
  void set_watermarks(TabletId tablet, std::vector<std::optional<causality::Watermark>> watermarks);
  // The dots whose records are staged: what a write in this step would take as its context.
  base::Result<causality::Clock> staged_clock(TabletId tablet) const;
  // Merges may have dropped what had expired before it (R8), since the start. Asked after a read it
  // holds for what was read.
  causality::WallTime dropped_before(TabletId tablet) const;
  // The dots whose records are durable.
  base::Result<causality::Clock> durable_clock(TabletId tablet);
  // Those whose records survive a power loss, whatever the sync mode: what peers may take for a
  // watermark (R4). It may lag behind, until it is asked for again.
  base::Result<causality::Clock> synced_clock(TabletId tablet);
  // The tablets whose synced_clock() may have grown since the last call, ascending. For one taker.
  // Costs nothing where nothing was written.
  std::vector<TabletId> take_changed_clocks();

  // ---- The mutation log (mutation_log.h; mutation_keeper.h, mutation_reader.h) ----
  // The durable mutations that a peer with this clock lacks, about `bytes_max` of them and at least
  // one. Errors: not_found; corrupt, naming the file; io_error, timeout, cancelled, closed.
  runtime::Task<base::Result<MissingMutations>> missing_mutations(TabletId tablet,
                                                                  causality::Clock peer,
                                                                  std::size_t bytes_max,
                                                                  runtime::Until until);
  // The dots that missing_mutations() can give. The oldest of an actor is where its first range
  // begins; a peer that lacks an older one is behind the cap.
  base::Result<causality::Clock> kept_mutations(TabletId tablet) const;
  // Whether there were others, which the cap took.
  bool has_shed_mutations(TabletId tablet) const;
  // These dots are of mutations of tables that were dropped, as a peer says (MissingMutations) or
  // as the schema does when one comes for such a table. They count as seen, and peers are told the
  // same; durable when it returns. Errors: not_found; invalid_argument (dots of this replica's own
  // actor that it has not minted, or closed actors); fatal_error().
  runtime::Task<base::Result<void>> cover(TabletId tablet, causality::Clock dots);
  // ---- Copies of tablets (tablet_transfer.h) ----
  // All that the tablet has now, with the clock of this very step, which is synced when it returns.
  // Whoever holds one keeps the engine from stopping. Errors: not_found; unavailable while an index
  // is being built; what stops the tablet;
  // timeout, cancelled, closed, the log's failure.
  runtime::Task<base::Result<std::shared_ptr<const TabletSnapshot>>> snapshot(TabletId tablet,
                                                                              runtime::Until until);
  // Takes what another replica has of the tablet: afterwards this one has what either had, and has
  // seen what either has seen. All of it or nothing, durable when it returns. One at a time for a
  // tablet. Errors: not_found; already_exists (another is under way); invalid_argument (it claims
  // what only this replica can have minted); unavailable (a table that is not here); those of the
  // feed, of reading, of writing files; no_space; cancelled, closed, fatal_error().
  runtime::Task<base::Result<IngestReport>> ingest(TabletId tablet, TabletFeed& feed,
                                                   runtime::StopToken stop);
  // ---- Operation ids (operation_record.h) ----
  // Whether the mutation's id may be known: find_operation() tells. Errors: invalid_argument if it
  // is older than the window, or from the future. Requires: the mutation has one.
  base::Result<bool> may_know_operation(const causality::Mutation& mutation);
  // The mutation that an id has made in the tablet; exact for ids above the floor. It is durable
  // when its position is. Errors: as missing_mutations().
  runtime::Task<base::Result<std::optional<KnownOperation>>> find_operation(
      TabletId tablet, causality::OperationId operation, runtime::Until until);
  // The same as far as memory tells, in this step.
  base::Result<std::optional<KnownOperation>> find_operation_in_memory(
      TabletId tablet, const causality::OperationId& operation) const;
  // For an explicit timestamp (rule (d), causality::explicit_write_applies): the largest timestamp
  // of the unstable mutations of one cell; kTimestampMin if there are none. Reads the mutation log
  // where memory does not settle it. Whoever mints by it keeps other writes of the row away
  // meanwhile. Errors: as missing_mutations(); unavailable if mutations were cut off that might be
  // of the cell.
  runtime::Task<base::Result<causality::Timestamp>> covered_floor(TableId table, TabletId tablet,
                                                                  base::Bytes partition,
                                                                  base::Bytes row,
                                                                  causality::ColumnId column,
                                                                  runtime::Until until);

  // ---- Writing ----
  // Waits until there is room for a write of about that many bytes to the table; at once unless
  // disk or compaction have fallen behind. Errors: overloaded (the disk is full: write_refusal());
  // flush_error() (memory is full, and flushes fail); no_space, timeout, cancelled, closed,
  // fatal_error().
  runtime::MaybeTask<base::Result<void>> admit(TableId table, TabletId tablet, std::size_t bytes,
                                               WriteKind kind, const runtime::Until& until);
  // Mints a dot for the mutation, logs and applies it, all in this step.
  // Errors: invalid_argument; not_found; unavailable (the tablet is in doubt); overloaded (no more
  // operation ids are kept); what the log says when it takes no record; fatal_error().
  base::Result<Staged> stage(TableId table, TabletId tablet, base::ByteView partition,
                             causality::Mutation mutation, causality::Epoch epoch,
                             Timestamps timestamps = Timestamps::raised);
  // The same for a delta that was minted elsewhere.
  base::Result<Staged> stage(TableId table, TabletId tablet, base::ByteView partition,
                             causality::Delta delta);
  // Whether stage() would refuse the mutation for what it is, so that of several none is staged.
  // Changes nothing. What it does not tell is whether the log has room. Costs a copy of the
  // mutation. Errors: invalid_argument; not_found; unavailable; fatal_error().
  base::Result<void> check(TableId table, TabletId tablet, base::ByteView partition,
                           const causality::Mutation& mutation, causality::Epoch epoch);
  // Waits until what was staged is durable. Errors: as CommitLog::durable.
  CommitLog::Durable when_durable(LogPosition position, runtime::Until until);
  runtime::Task<base::Result<void>> durable(std::optional<LogPosition> position,
                                            runtime::Until until);
  // The same of all that is staged now.
  runtime::Task<base::Result<void>> durable_so_far(runtime::Until until);
  // All three. Returns the delta that peers need.
  runtime::Task<base::Result<causality::Delta>> write(TableId table, TabletId tablet,
                                                      base::Bytes partition,
                                                      causality::Mutation mutation,
                                                      causality::Epoch epoch, runtime::Until until);

  // ---- Reading ----
  // One row, with the ranges it lies in, and the clock it may be shown with.
  runtime::MaybeTask<base::Result<RowRead>> read_row(TableId table, TabletId tablet,
                                                     base::Bytes partition, base::Bytes row,
                                                     runtime::Until until);
  // The rows of the tablet. The engine outlives the cursor.
  base::Result<std::unique_ptr<TableCursor>> cursor(TableId table, TabletId tablet,
                                                    SstableCursorOptions options);
  // What a context made of a row must carry that a cursor has shown now (RowRead::floor).
  base::Result<causality::Timestamp> row_floor(TableId table, TabletId tablet,
                                               base::ByteView partition, base::ByteView row);
  // The same for all rows of a partition.
  base::Result<causality::Timestamp> partition_floor(TableId table, TabletId tablet,
                                                     base::ByteView partition);
  // The number of the last write that was staged: while it is the same nothing was written.
  std::uint64_t last_write() const;
  // Waits until everything a cursor has shown is durable.
  runtime::Task<base::Result<void>> wait_durable(const ReadTrace& trace, runtime::Until until);

  // ---- Maintenance ----
  // Writes what the table has in memory into files.
  runtime::Task<base::Result<void>> flush(TableId table, runtime::Until until);
  // Reads all files of the table, so that what is damaged is known: it is set aside. Errors:
  // not_found; the first damage that was met, or is known; io_error, cancelled, closed.
  runtime::Task<base::Result<void>> verify(TableId table, runtime::Until until);
  // The same of the mutations that are kept for peers; a damaged file is not merged any more.
  runtime::Task<base::Result<void>> verify_mutations(runtime::Until until);
  // Somebody could not read something of the table: it is verified in the background.
  void suspect(TableId table);
  // Of which a part cannot be read, from files of tables or of mutations; ascending.
  std::vector<TabletId> damaged_tablets() const;
  // Keeps what these tables have now, and these tablets of them, under the name
  // (table_snapshots.h): all tablets of a keyspace that are of this core, and all its tables.
  // Indexes come along. Errors: corrupt (a file is damaged), unavailable (try again),
  // already_exists; of flushes and of the file system. What was linked until then is the caller's
  // to remove.
  runtime::Task<base::Result<SnapshotSize>> make_snapshot(std::string name,
                                                          std::vector<TableId> tables,
                                                          std::vector<TabletId> tablets,
                                                          runtime::Until until);
  // Takes back what a snapshot has of one tablet. After an error a tablet that was to be made anew
  // may have nothing, or not be there: it is to be asked again before anything is served.
  runtime::Task<base::Result<RestoreReport>> restore(std::string name, RestoreOrder order,
                                                     runtime::StopToken stop);
  // Flushes, and merges all files of the table into one a shard.
  runtime::Task<base::Result<void>> compact(TableId table, runtime::Until until);

  // What ended writing for good, if something did.
  const std::optional<base::Error>& fatal_error() const;
  // Why flushes fail at the moment, if they do.
  const std::optional<base::Error>& flush_error() const;
  // Why writes of data are refused for now, if they are: no_space, the disk is full; flush_error(),
  // if memory is full as well.
  std::optional<base::Error> write_refusal() const;
  // Gives up some of what is kept of the disk, for a small file that must be written and found no
  // space. Whether there is more room now.
  runtime::Task<bool> make_room();
  EngineStatistics statistics() const;
  // Of each table; ascending.
  std::vector<TableStatistics> table_statistics() const;
  const CommitLog& log() const;

 private:
  // Recovery, write path, read path, flushing, compaction, mutation logs, changes of the schema:
  // each is a class with a header of its own, which says what it owns, borrows and keeps to.
  struct Parts;
  void start_background();
  void begin_indexing();

  runtime::Runtime& runtime_;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace helenus::storage
