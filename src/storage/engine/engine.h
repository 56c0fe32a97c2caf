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
// reads go on. A flush that fails is tried again; until it succeeds writes are refused with its
// error. A compaction that fails is tried again, too; a damaged file is set aside, and everything
// else goes on without it.
//
// Core affinity: the core whose Runtime opened it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/histogram.h"
#include "base/log.h"
#include "base/result.h"
#include "causality/delta.h"
#include "runtime/gate.h"
#include "runtime/runtime.h"
#include "runtime/semaphore.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/wait_queue.h"
#include "storage/compaction/rate_limiter.h"
#include "storage/engine/directory_set.h"
#include "storage/engine/engine_options.h"
#include "storage/engine/engine_statistics.h"
#include "storage/engine/shard.h"
#include "storage/entry/maybe_task.h"
#include "storage/log/commit_log.h"
#include "storage/log/log_directory.h"
#include "storage/read/table_cursor.h"

namespace helenus::storage {

// What opening found.
struct EngineOpenReport {
  LogOpenReport log;
  ReplaySummary replayed;
  std::uint64_t records_applied = 0;  // those that were not in files already
  std::size_t sstables = 0;
  bool created = false;
  bool lost_log_accepted = false;  // EngineOptions::accept_lost_log_of_start
};

// A mutation that has its place in the log.
struct Staged {
  causality::Delta delta;
  // Waiting for it waits for the mutation. None: it has been durable since before this start.
  std::optional<LogPosition> position;
  // A delta that had been applied before changes nothing.
  causality::Applied applied = causality::Applied::now;
};

// Whether a mutation's timestamp may be raised (theory §2).
enum class Timestamps : std::uint8_t {
  raised,    // above what it covers: rule (b)
  as_given,  // an explicit one: rule (d). Cells for which it does not apply were left out
};

// A mutation from the log, for a peer.
struct LoggedMutation {
  causality::Dot dot;
  TableId table;
  base::Bytes partition;
  base::Bytes delta;  // encoded: causality::decode_delta
};

// What a peer lacks, as far as one answer goes.
struct MissingMutations {
  // Ascending by dot, each once. Whole mutations: a dot here may be claimed with its data (S5).
  std::vector<LoggedMutation> mutations;
  // False: there is more. Ask again with these dots, and those covered, added to the peer's clock.
  bool complete = true;
  // What the peer lacks, this replica has seen and cannot give: the mutation log was cut off, or
  // the peer has lost what it had. Never empty in silence: the tablet must be reconciled key by
  // key.
  causality::Clock withheld;
  // What the peer lacks of tables that were dropped: there is nothing to give, and the dots count
  // as seen (Engine::cover).
  causality::Clock covered;
  // Marks of closed actors that the peer lacks: no data, and not for it to take from here (S9).
  std::vector<causality::ClosedActors> closed;
};

// A core's part of a folder: which shards are its own, and where its log begins.
struct CoreShare {
  LogShare log;
  std::uint32_t core = 0;
  std::uint32_t cores = 1;
  std::uint32_t shards = 0;  // of the folder
  EngineOpenReport report;
};

// A folder whose logs have been replayed, ready for the engines of all cores (engines.h). Kept by
// the core that opened it until they have stopped; then the logs are closed.
struct OpenedFolder {
  std::vector<std::unique_ptr<runtime::FileLock>> locks;
  std::unique_ptr<LogDirectory> logs;
  std::vector<CoreShare> shares;
  EngineOpenReport report;
  std::uint32_t shards = 0;
};

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

  const EngineOpenReport& report() const { return report_; }
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
  // Takes the tablet away with all its data, from disk, too; nobody finds it from the first step
  // on. A start goes on with what was left undone, and until it is done no tablet may have its
  // keys. A damaged file keeps what it has, for nobody to read. Errors: not_found; flush_error()
  // and fatal_error().
  runtime::Task<base::Result<void>> drop_tablet(TabletId tablet);
  std::vector<TabletInfo> tablets() const;
  std::vector<TabletId> tablets_in_doubt() const;
  // Gives a tablet a new name to mint under. Errors: invalid_argument if the name was used before.
  runtime::Task<base::Result<void>> reincarnate(TabletId tablet, causality::ActorId actor);
  // What the tablet's other members and pending ones have seen; see causality::stability. None at
  // all: the tablet has no other replica. What is stable goes from the mutation log.
  void set_watermarks(TabletId tablet, std::vector<std::optional<causality::Watermark>> watermarks);
  // The dots whose records are staged: what a write in this step would take as its context.
  base::Result<causality::Clock> staged_clock(TabletId tablet) const;
  // The dots whose records are durable.
  base::Result<causality::Clock> durable_clock(TabletId tablet);

  // ---- The mutation log (mutation_log.h; mutation_keeper.cc) ----
  // The durable mutations that a peer with this clock lacks, about `bytes_max` of them and at least
  // one. Errors: not_found; corrupt, naming the file; io_error, timeout, cancelled, closed.
  runtime::Task<base::Result<MissingMutations>> missing_mutations(TabletId tablet,
                                                                  causality::Clock peer,
                                                                  std::size_t bytes_max,
                                                                  runtime::Until until);
  // The dots that missing_mutations() can give. The oldest of an actor is where its first range
  // begins; a peer that lacks an older one is behind the cap.
  base::Result<causality::Clock> kept_mutations(TabletId tablet) const;
  // These dots are of mutations of tables that were dropped, as a peer says (MissingMutations) or
  // as the schema does when one comes for such a table. They count as seen, and peers are told the
  // same; durable when it returns. Errors: not_found; invalid_argument (dots of this replica's own
  // actor that it has not minted, or closed actors); fatal_error().
  runtime::Task<base::Result<void>> cover(TabletId tablet, causality::Clock dots);
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
  // disk or compaction have fallen behind. Errors: no_space, io_error (flushes fail), overloaded,
  // timeout, cancelled, closed, fatal_error().
  MaybeTask<base::Result<void>> admit(TableId table, TabletId tablet, std::size_t bytes,
                                      const runtime::Until& until);
  // Mints a dot for the mutation, logs and applies it, all in this step.
  // Errors: invalid_argument; not_found; unavailable (the tablet is in doubt); what the log says
  // when it takes no record; fatal_error().
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
  runtime::Task<base::Result<void>> durable(std::optional<LogPosition> position,
                                            runtime::Until until);
  // All three. Returns the delta that peers need.
  runtime::Task<base::Result<causality::Delta>> write(TableId table, TabletId tablet,
                                                      base::Bytes partition,
                                                      causality::Mutation mutation,
                                                      causality::Epoch epoch, runtime::Until until);

  // ---- Reading ----
  // One row, with the ranges it lies in, and the clock it may be shown with.
  runtime::Task<base::Result<RowRead>> read_row(TableId table, TabletId tablet,
                                                base::Bytes partition, base::Bytes row,
                                                runtime::Until until);
  // The rows of the tablet. The engine outlives the cursor.
  base::Result<std::unique_ptr<TableCursor>> cursor(TableId table, TabletId tablet,
                                                    SstableCursorOptions options);
  // What a context made of a row must carry that a cursor has shown now (RowRead::floor).
  base::Result<causality::Timestamp> row_floor(TableId table, TabletId tablet,
                                               base::ByteView partition, base::ByteView row);
  // Waits until everything a cursor has shown is durable.
  runtime::Task<base::Result<void>> wait_durable(const ReadTrace& trace, runtime::Until until);

  // ---- Maintenance ----
  // Writes what the table has in memory into files.
  runtime::Task<base::Result<void>> flush(TableId table, runtime::Until until);
  // Flushes, and merges all files of the table into one a shard.
  runtime::Task<base::Result<void>> compact(TableId table, runtime::Until until);

  // What ended writing for good, if something did.
  const std::optional<base::Error>& fatal_error() const {
    return fatal_error_ || log_ == nullptr ? fatal_error_ : log_->fatal_error();
  }
  // Why flushes fail at the moment, if they do.
  const std::optional<base::Error>& flush_error() const { return flush_error_; }
  EngineStatistics statistics() const;
  const CommitLog& log() const { return *log_; }

 private:
  struct Place {
    Shard* shard = nullptr;
    TableStore* table = nullptr;
    Tablet* tablet = nullptr;
  };
  // A record that is staged and not yet known to be durable.
  struct Pending {
    std::uint64_t sequence = 0;
    LogPosition position;
    Tablet* tablet = nullptr;
    causality::Dot dot;
  };
  struct CompactionJob {
    Shard* shard = nullptr;
    std::shared_ptr<TableStore> table;
    SstableList inputs;
    CollectionExtent collects = CollectionExtent::none;  // why, if not to have fewer files
    FileSet numbers() const;
  };
  struct FlushJob {
    Shard* shard = nullptr;
    std::shared_ptr<TableStore> table;
  };

  // Opening (engine_recovery.cc).
  runtime::Task<base::Result<void>> lock_folder();
  runtime::Task<base::Result<void>> find_folder();
  runtime::Task<base::Result<void>> make_folder();
  runtime::Task<base::Result<void>> load_shards();
  runtime::Task<base::Result<void>> open_shards();
  runtime::Task<base::Result<DirectorySet>> inspect_directories();
  runtime::Task<base::Result<void>> judge_directories(const DirectorySet& places);
  runtime::Task<base::Result<std::vector<LogShare>>> begin_logs(DirectorySet places,
                                                                std::uint32_t cores);
  runtime::Task<base::Result<std::vector<CoreShare>>> recover(std::uint32_t cores);
  runtime::Task<base::Result<void>> take_share(CoreShare share);
  runtime::Task<base::Result<void>> replay();
  base::Result<void> replay(const ReplayedBatch& batch);
  bool holds_large_key() const;
  runtime::Task<base::Result<void>> flush_replayed(Shard& shard, bool final);
  runtime::Task<base::Result<void>> finish_schema_changes();

  // Writing (engine.cc).
  // Null if it is another core's.
  Shard* shard_numbered(std::uint64_t number) const;
  Shard* shard_of(TabletId tablet) const { return shard_numbered(tablet.value() % shard_count_); }
  Tablet* find_tablet(TabletId tablet) const;
  base::Result<Place> find(TableId table, TabletId tablet);
  // What the table has for the tablet, now.
  static TableView view_of(const Place& place);
  base::Result<void> check_writable() const;
  base::Result<Place> find_for_write(TableId table, TabletId tablet, base::ByteView partition);
  // Mints with the place's actor, on `clock`.
  base::Result<causality::Delta> mint(const Place& place, TableId table, base::ByteView partition,
                                      causality::Mutation mutation, causality::Epoch epoch,
                                      causality::Clock& clock);
  base::Result<LogPosition> append(const Place& place, base::ByteView partition,
                                   const causality::Delta& delta);
  // Adds a fragment to the active memtable, and its bytes to the account.
  void apply(TableStore& table, TabletId tablet, base::ByteView partition,
             const causality::Delta& delta, base::ByteView encoded, std::uint64_t sequence);
  // What memtables, mutation logs, timestamp floors and the dots of mutation files take together.
  std::size_t memory_bytes() const {
    return memtable_bytes_ + mutation_bytes_ + floor_bytes_ + dots_bytes_;
  }
  // What floors, and dots, may take of it: a flush frees neither, so that writes never wait for it.
  std::size_t aside_bytes_max() const { return options_.memtable_bytes_max / 8; }
  bool must_wait(const TableStore& table) const;
  runtime::Task<base::Result<void>> admit_waiting(TableId table, TabletId tablet, std::size_t bytes,
                                                  runtime::Until until);
  void advance_durable();

  // Maintenance (compactor.cc).
  // A memtable in which one key has so much is flushed: with one record more, and merged, it fits
  // what a file takes under a key (kValueSizeMax).
  static constexpr std::size_t kKeyBytesFlush = std::size_t{64} << 20;
  void start_background();
  void freeze(Shard& shard, const std::shared_ptr<TableStore>& table);
  void freeze_if_due(const Place& place);
  void freeze_for_room();
  void freeze_largest();
  runtime::Task<void> flush_loop();
  runtime::Task<base::Result<void>> flush_oldest(FlushJob job);
  runtime::Task<base::Result<Shard::Written>> write_frozen(Shard& shard, const TableStore& table,
                                                           std::shared_ptr<const Memtable> memtable,
                                                           const FreezeState& at);
  runtime::Task<base::Result<void>> install_until_done(Shard& shard, Shard::Edit edit);
  Generations generations() const;
  runtime::Task<base::Result<void>> note_generations();

  // Mutation logs (mutation_keeper.cc).
  void keep(Tablet& tablet, const TableStore& table, base::ByteView partition,
            const causality::Delta& delta, base::Bytes record, std::uint64_t sequence);
  // Folds floors until they take no more than they may.
  void bound_floors();
  void count_dots();
  // Those of the table in memory, up to that write.
  static std::vector<TabletBatch> mutations_of(const Shard& shard, TableId table,
                                               std::uint64_t sequence_last);
  static std::vector<TabletBatch> mutations_in_memory(const Shard& shard);
  void cover(Tablet& tablet, const causality::Clock& dots);
  static void enter_mutations(ManifestState& state, const Shard& shard, const MutationFile* file);
  void moved_to_file(Shard& shard, const std::vector<TabletBatch>& batches,
                     std::shared_ptr<const MutationFile> file);
  runtime::Task<void> mutation_loop();
  runtime::Task<base::Result<bool>> tend_mutation_files();
  runtime::Task<base::Result<void>> give_up_mutation_file(Shard& shard, LiveMutationFile file);
  runtime::Task<base::Result<bool>> merge_mutation_files(Shard& shard);
  static runtime::Task<bool> is_damaged(std::shared_ptr<const MutationFile> file);
  Shard* shard_over_the_cap() const;

  runtime::Task<void> log_pressure_loop();
  runtime::Task<void> compaction_loop();
  std::optional<CompactionJob> pick_compaction();
  std::optional<CompactionJob> pick_collection();
  CollectionPick pick_collection(TableStore& table, const Knowledge& knowledge);
  static CompactionJob begin_job(Shard& shard, const std::shared_ptr<TableStore>& table,
                                 const std::vector<FileNumber>& files);
  static MergePlan plan_of(const CompactionJob& job);
  runtime::Task<base::Result<Shard::Written>> write_compacted(const CompactionJob& job,
                                                              MergePlan plan);
  runtime::Task<base::Result<void>> compact_files(CompactionJob job);
  runtime::Task<base::Result<void>> set_aside(Shard& shard, TableStore& table, FileNumber file,
                                              base::Error why);
  // Reads all of it; the first error.
  static runtime::Task<base::Result<void>> read_through(std::shared_ptr<const Sstable> file);
  runtime::Task<base::Result<void>> replace_compacted(CompactionJob job, Shard::Written written);
  runtime::Task<base::Result<void>> compact_shard(Shard& shard, TableId table,
                                                  runtime::Until until);
  runtime::Task<base::Result<void>> merge_whole(Shard& shard, std::shared_ptr<TableStore> store,
                                                runtime::Until until);
  runtime::Task<base::Result<KeyRange>> take_away(TabletId tablet);
  runtime::Task<base::Result<void>> clear_tail_doubt();
  runtime::Task<void> purge_loop();
  runtime::Task<base::Result<void>> purge(Shard& shard);
  Shard* shard_to_purge() const;
  runtime::Task<void> pause_after_failure();
  void fail(base::Error error);
  void wake_everybody();

  runtime::Runtime& runtime_;
  const EngineOptions options_;
  base::Logger log_lines_;
  runtime::Semaphore file_reads_;
  SstableShared sstables_;
  EngineOpenReport report_;
  // Where the engine has the folder to itself.
  std::vector<std::unique_ptr<runtime::FileLock>> locks_;
  std::unique_ptr<LogDirectory> log_directory_;
  // The shards of the folder; of these every cores_'th is this core's, from number core_ on.
  std::uint32_t shard_count_ = 0;
  std::uint32_t core_ = 0;
  std::uint32_t cores_ = 1;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::unique_ptr<CommitLog> log_;
  std::uint32_t log_incarnation_ = 0;

  std::optional<base::Error> fatal_error_;
  std::optional<base::Error> flush_error_;
  std::size_t memtable_bytes_ = 0;
  std::size_t mutation_bytes_ = 0;
  std::size_t floor_bytes_ = 0;
  std::size_t dots_bytes_ = 0;

  // Writes are numbered; those up to durable_sequence_ are durable. Replayed ones are number 1.
  std::uint64_t last_sequence_ = 1;
  std::uint64_t durable_sequence_ = 1;
  std::deque<Pending> pending_;  // ascending by sequence, without gaps
  std::optional<LogPosition> last_position_;
  base::Buffer record_;

  std::deque<FlushJob> flush_queue_;  // in the order of the freezes
  std::size_t compactions_running_ = 0;
  // When tables are next looked through for garbage, and when one may be merged for a little of it.
  runtime::MonotonicTime next_collection_;
  runtime::MonotonicTime next_slow_collection_;
  EngineStatistics statistics_;

  runtime::StopSource stop_;
  runtime::Semaphore schema_turn_;  // of whoever changes tables or tablets
  runtime::Semaphore note_turn_;    // of whoever writes the generations
  Generations noted_generations_;
  RateLimiter compaction_rate_;
  runtime::WaitQueue flush_work_;
  runtime::WaitQueue compaction_work_;
  runtime::WaitQueue mutation_work_;
  runtime::WaitQueue purge_work_;
  runtime::WaitQueue room_changed_;
  runtime::WaitQueue files_changed_;
  runtime::Gate gate_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::storage
