#include "storage/engine/engine.h"

#include <utility>

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>

#include "runtime/executor.h"
#include "runtime/task_group.h"
#include "storage/compaction/compaction_picker.h"
#include "storage/engine/compactor.h"
#include "storage/engine/disk_reserve.h"
#include "storage/engine/engine_pressure.h"
#include "storage/engine/engine_recovery.h"
#include "storage/engine/engine_state.h"
#include "storage/engine/flusher.h"
#include "storage/engine/manifest_changes.h"
#include "storage/engine/mutation_keeper.h"
#include "storage/engine/mutation_reader.h"
#include "storage/engine/operation_record.h"
#include "storage/engine/read_path.h"
#include "storage/engine/schema_changes.h"
#include "storage/engine/table_indexer.h"
#include "storage/engine/table_snapshots.h"
#include "storage/engine/tablet_transfer.h"
#include "storage/engine/write_path.h"

namespace helenus::storage {

using base::ByteView;
using base::Result;
using causality::Clock;
using causality::Timestamp;
using runtime::Task;
using runtime::Until;

// Each is declared after those it borrows.
struct Engine::Parts {
  Parts(runtime::Runtime& runtime, EngineOptions options)
      : state(runtime, std::move(options)),
        reserve(state),
        manifests(state, reserve),
        mutations(state, manifests),
        flusher(state, reserve, manifests, mutations),
        compactor(state, reserve, manifests, flusher),
        operations(state),
        writes(state, reserve, mutations, flusher, operations),
        reads(state),
        mutation_reader(state),
        schema(state, manifests, mutations, flusher),
        transfer(state, reserve, manifests, flusher),
        snapshots(state, flusher, schema, transfer),
        indexes(state, manifests, flusher),
        pressure(state),
        tasks(runtime, runtime::Priority::background) {
    runtime.executor.background_share().add(pressure);
  }

  EngineRecovery recovery() { return {state, reserve, manifests, mutations, flusher, writes}; }

  EngineState state;
  DiskReserve reserve;
  ManifestChanges manifests;
  MutationKeeper mutations;
  Flusher flusher;
  Compactor compactor;
  OperationRecord operations;
  WritePath writes;
  ReadPath reads;
  MutationReader mutation_reader;
  SchemaChanges schema;
  TabletTransfer transfer;
  TableSnapshots snapshots;
  TableIndexer indexes;
  bool is_indexing = false;
  EnginePressure pressure;
  runtime::TaskGroup tasks;
};

Engine::Engine(Private, runtime::Runtime& runtime, EngineOptions options)
    : runtime_(runtime), parts_(std::make_unique<Parts>(runtime, std::move(options))) {}

Engine::~Engine() {
  ASSERT(parts_->tasks.empty() || runtime_.executor.halted(),
         "an engine is stopped before it goes");
}

// ---- Opening and stopping ----

Task<Result<std::unique_ptr<Engine>>> Engine::open(runtime::Runtime& runtime,
                                                   EngineOptions options) {
  CO_TRY_VOID(options.validate());
  auto engine = std::make_unique<Engine>(Private(), runtime, std::move(options));
  EngineRecovery recovery = engine->parts_->recovery();
  auto opened = co_await recovery.open_alone();
  if (!opened) {
    // What was begun is given back; the error that matters is the first one.
    (void)co_await engine->stop();
    co_return std::move(opened).error();
  }
  engine->start_background();
  co_return engine;
}

Task<Result<OpenedFolder>> Engine::open_folder(runtime::Runtime& runtime, EngineOptions options,
                                               std::uint32_t cores) {
  CO_TRY_VOID(options.validate());
  const auto engine = std::make_unique<Engine>(Private(), runtime, std::move(options));
  EngineRecovery recovery = engine->parts_->recovery();
  auto folder = co_await recovery.open_folder(cores);
  // Its shards go with it: each core opens its own from what is on disk.
  (void)co_await engine->stop();
  co_return folder;
}

Task<Result<std::unique_ptr<Engine>>> Engine::open(runtime::Runtime& runtime, EngineOptions options,
                                                   CoreShare share) {
  CO_TRY_VOID(options.validate());
  auto engine = std::make_unique<Engine>(Private(), runtime, std::move(options));
  EngineRecovery recovery = engine->parts_->recovery();
  auto opened = co_await recovery.open_share(std::move(share));
  if (!opened) {
    (void)co_await engine->stop();
    co_return std::move(opened).error();
  }
  engine->start_background();
  co_return engine;
}

void Engine::start_background() {
  Parts& parts = *parts_;
  parts.tasks.spawn(parts.reserve.watch_loop());
  parts.tasks.spawn(parts.flusher.flush_loop());
  parts.tasks.spawn(parts.flusher.log_pressure_loop());
  parts.tasks.spawn(parts.mutations.mutation_loop());
  parts.tasks.spawn(parts.mutations.operation_loop());
  parts.tasks.spawn(parts.compactor.purge_loop());
  if (parts.state.has_indexes()) begin_indexing();
  parts.tasks.spawn(parts.compactor.verify_loop());
  for (std::size_t index = 0; index < parts.state.options.compactions_max; ++index) {
    parts.tasks.spawn(parts.compactor.compaction_loop());
  }
}

// An engine without indexes has nobody who waits for some.
void Engine::begin_indexing() {
  if (!parts_->state.goes_on() || std::exchange(parts_->is_indexing, true)) return;
  parts_->tasks.spawn(parts_->indexes.build_loop());
}

Task<Result<void>> Engine::stop() {
  EngineState& state = parts_->state;
  state.stop.request_stop();
  state.wake_everybody();
  co_await state.gate.close();
  co_await parts_->tasks.join();
  Result<void> stopped;
  if (state.log != nullptr) stopped = co_await state.log->stop();
  if (state.log_directory != nullptr) {
    auto closed = co_await state.log_directory->close();
    if (stopped && !closed) stopped = std::move(closed);
  }
  state.locks.clear();
  co_return stopped;
}

// ---- Tables and tablets ----

Task<Result<void>> Engine::create_table(TableId table, TableOptions options) {
  if (options.index) begin_indexing();
  return parts_->schema.create_table(table, options);
}

Task<Result<void>> Engine::alter_table(TableId table, TableOptions options) {
  return parts_->schema.alter_table(table, options);
}

Task<Result<void>> Engine::drop_table(TableId table) {
  return parts_->schema.drop_table(table);
}

Task<Result<void>> Engine::create_tablet(TabletId tablet, KeyRange range,
                                         causality::ActorId actor) {
  return parts_->schema.create_tablet(tablet, std::move(range), actor);
}

Task<Result<void>> Engine::create_tablets(std::vector<TabletInfo> tablets) {
  return parts_->schema.create_tablets(std::move(tablets));
}

Task<Result<void>> Engine::drop_tablet(TabletId tablet) {
  return parts_->schema.drop_tablets(std::vector(1, tablet));
}

Task<Result<void>> Engine::drop_tablets(std::vector<TabletId> tablets) {
  return parts_->schema.drop_tablets(std::move(tablets));
}

std::vector<TableId> Engine::tables() const {
  std::vector<TableId> tables;
  if (parts_->state.shards.empty()) return tables;
  for (const auto& [id, table] : parts_->state.shards.front()->tables()) tables.push_back(id);
  return tables;
}

std::vector<TableId> Engine::indexes_being_built() const {
  absl::btree_set<TableId> unbuilt;
  for (const auto& shard : parts_->state.shards) {
    for (const auto& [id, table] : shard->tables()) {
      if (table->is_index() && !table->index_is_built()) unbuilt.insert(id);
    }
  }
  return {unbuilt.begin(), unbuilt.end()};
}

std::vector<TabletInfo> Engine::tablets() const {
  return parts_->schema.tablets();
}

std::vector<TabletId> Engine::tablets_in_doubt() const {
  return parts_->state.tablets_in_doubt();
}

Task<Result<void>> Engine::reincarnate(TabletId tablet, causality::ActorId actor) {
  return parts_->schema.reincarnate(std::vector<TabletName>{{.id = tablet, .actor = actor}});
}

Task<Result<void>> Engine::reincarnate(std::vector<TabletName> names) {
  return parts_->schema.reincarnate(std::move(names));
}

void Engine::set_watermarks(TabletId tablet,
                            std::vector<std::optional<causality::Watermark>> watermarks) {
  parts_->mutations.set_watermarks(tablet, std::move(watermarks));
}

Result<Clock> Engine::staged_clock(TabletId tablet) const {
  return parts_->reads.staged_clock(tablet);
}

bool Engine::has_shed_mutations(TabletId tablet) const {
  return parts_->mutation_reader.has_shed_mutations(tablet);
}

causality::WallTime Engine::dropped_before(TabletId tablet) const {
  return parts_->reads.dropped_before(tablet);
}

Result<Clock> Engine::durable_clock(TabletId tablet) {
  return parts_->reads.durable_clock(tablet);
}

Result<Clock> Engine::synced_clock(TabletId tablet) {
  return parts_->reads.synced_clock(tablet);
}

std::vector<TabletId> Engine::take_changed_clocks() {
  return parts_->reads.take_changed_clocks();
}

// ---- The mutation log ----

Task<Result<MissingMutations>> Engine::missing_mutations(TabletId tablet, Clock peer,
                                                         std::size_t bytes_max, Until until) {
  return parts_->mutation_reader.missing_mutations(tablet, std::move(peer), bytes_max,
                                                   std::move(until));
}

Result<Clock> Engine::kept_mutations(TabletId tablet) const {
  return parts_->mutation_reader.kept_mutations(tablet);
}

Task<Result<void>> Engine::cover(TabletId tablet, Clock dots) {
  return parts_->schema.cover(tablet, std::move(dots));
}

Task<Result<std::shared_ptr<const TabletSnapshot>>> Engine::snapshot(TabletId tablet, Until until) {
  return parts_->transfer.snapshot(tablet, std::move(until));
}

Task<Result<IngestReport>> Engine::ingest(TabletId tablet, TabletFeed& feed,
                                          runtime::StopToken stop) {
  return parts_->transfer.ingest(tablet, feed, std::move(stop));
}

Result<bool> Engine::may_know_operation(const causality::Mutation& mutation) {
  return parts_->operations.judge(mutation);
}

Task<Result<std::optional<KnownOperation>>> Engine::find_operation(TabletId tablet,
                                                                   causality::OperationId operation,
                                                                   Until until) {
  return parts_->operations.find(tablet, operation, std::move(until));
}

Result<std::optional<KnownOperation>> Engine::find_operation_in_memory(
    TabletId tablet, const causality::OperationId& operation) const {
  return parts_->operations.find_in_memory(tablet, operation);
}

Task<Result<Timestamp>> Engine::covered_floor(TableId table, TabletId tablet, base::Bytes partition,
                                              base::Bytes row, causality::ColumnId column,
                                              Until until) {
  return parts_->mutation_reader.covered_floor(table, tablet, std::move(partition), std::move(row),
                                               column, std::move(until));
}

// ---- Writing ----

runtime::MaybeTask<Result<void>> Engine::admit(TableId table, TabletId tablet, std::size_t bytes,
                                               WriteKind kind, const Until& until) {
  return parts_->writes.admit(table, tablet, bytes, kind, until);
}

Result<Staged> Engine::stage(TableId table, TabletId tablet, ByteView partition,
                             causality::Mutation mutation, causality::Epoch epoch,
                             Timestamps timestamps) {
  return parts_->writes.stage(table, tablet, partition, std::move(mutation), epoch, timestamps);
}

Result<Staged> Engine::stage(TableId table, TabletId tablet, ByteView partition,
                             causality::Delta delta) {
  return parts_->writes.stage(table, tablet, partition, std::move(delta));
}

Result<void> Engine::check(TableId table, TabletId tablet, ByteView partition,
                           const causality::Mutation& mutation, causality::Epoch epoch) {
  return parts_->writes.check(table, tablet, partition, mutation, epoch);
}

Task<Result<void>> Engine::durable(std::optional<LogPosition> position, Until until) {
  return parts_->writes.durable(position, std::move(until));
}

CommitLog::Durable Engine::when_durable(LogPosition position, Until until) {
  return parts_->state.log->durable(position, std::move(until));
}

Task<Result<void>> Engine::durable_so_far(Until until) {
  return parts_->writes.durable(parts_->state.staged.last_position(), std::move(until));
}

Task<Result<causality::Delta>> Engine::write(TableId table, TabletId tablet, base::Bytes partition,
                                             causality::Mutation mutation, causality::Epoch epoch,
                                             Until until) {
  return parts_->writes.write(table, tablet, std::move(partition), std::move(mutation), epoch,
                              std::move(until));
}

// ---- Reading ----

runtime::MaybeTask<Result<RowRead>> Engine::read_row(TableId table, TabletId tablet,
                                                     base::Bytes partition, base::Bytes row,
                                                     Until until) {
  return parts_->reads.read_row(table, tablet, std::move(partition), std::move(row),
                                std::move(until));
}

Result<std::unique_ptr<TableCursor>> Engine::cursor(TableId table, TabletId tablet,
                                                    SstableCursorOptions options) {
  return parts_->reads.cursor(table, tablet, std::move(options));
}

Result<Timestamp> Engine::row_floor(TableId table, TabletId tablet, ByteView partition,
                                    ByteView row) {
  return parts_->reads.row_floor(table, tablet, partition, row);
}

Result<Timestamp> Engine::partition_floor(TableId table, TabletId tablet, ByteView partition) {
  return parts_->reads.partition_floor(table, tablet, partition);
}

std::uint64_t Engine::last_write() const {
  return parts_->state.staged.last_sequence();
}

Task<Result<void>> Engine::wait_durable(const ReadTrace& trace, Until until) {
  return parts_->reads.wait_durable(trace.sequence, std::move(until));
}

// ---- Maintenance ----

Task<Result<void>> Engine::flush(TableId table, Until until) {
  return parts_->flusher.flush(table, std::move(until));
}

Task<Result<void>> Engine::compact(TableId table, Until until) {
  return parts_->compactor.compact(table, std::move(until));
}

Task<Result<void>> Engine::verify(TableId table, Until until) {
  return parts_->compactor.verify(table, std::move(until));
}

Task<Result<void>> Engine::verify_mutations(Until until) {
  return parts_->compactor.verify_mutations(std::move(until));
}

void Engine::suspect(TableId table) {
  parts_->compactor.suspect(table);
}

std::vector<TabletId> Engine::damaged_tablets() const {
  return parts_->state.damaged_tablets();
}

std::string snapshot_folder(const std::string& data_directory, const std::string& name) {
  return data_directory + "/snapshots/" + name;
}

Task<Result<SnapshotSize>> Engine::make_snapshot(std::string name, std::vector<TableId> tables,
                                                 std::vector<TabletId> tablets, Until until) {
  return parts_->snapshots.make(std::move(name), std::move(tables), std::move(tablets),
                                std::move(until));
}

Task<Result<RestoreReport>> Engine::restore(std::string name, RestoreOrder order,
                                            runtime::StopToken stop) {
  return parts_->snapshots.restore(std::move(name), std::move(order), std::move(stop));
}

const EngineOpenReport& Engine::report() const {
  return parts_->state.report;
}

const std::optional<base::Error>& Engine::fatal_error() const {
  return parts_->state.fatal_error();
}

const std::optional<base::Error>& Engine::flush_error() const {
  return parts_->state.flush_error;
}

std::optional<base::Error> Engine::write_refusal() const {
  const EngineState& state = parts_->state;
  if (parts_->reserve.full()) {
    return base::Error(base::Errc::no_space, "{}", parts_->reserve.refusal().context());
  }
  const bool no_room = state.memory.bytes() >= state.options.memtable_bytes_max;
  return no_room ? state.flush_error : std::nullopt;
}

Task<bool> Engine::make_room() {
  return parts_->reserve.make_room();
}

const CommitLog& Engine::log() const {
  return *parts_->state.log;
}

EngineStatistics Engine::statistics() const {
  const EngineState& state = parts_->state;
  EngineStatistics now = state.statistics;
  now.memtable_bytes = state.memory.memtables;
  now.memtables_waiting = parts_->flusher.memtables_waiting();
  now.disks_full = parts_->reserve.full() ? 1 : 0;
  now.disk_reserve_bytes = parts_->reserve.bytes_held();
  now.mutation_memory_bytes = state.memory.mutations;
  now.mutation_dots_bytes = state.memory.dots;
  now.timestamp_floor_bytes = state.memory.floors;
  now.operations_remembered = state.operations.size();
  now.operation_filter_bytes = state.operations.memory_bytes();
  for (const auto& shard : state.shards) {
    for (const auto& [id, tablet] : shard->tablets()) {
      now.mutations_in_memory += tablet->mutations.count_in_memory();
      now.tablets_holding_operations += tablet->operations.holds() ? 1 : 0;
      now.tablets_in_doubt += tablet->in_doubt ? 1 : 0;
      now.tablets_stopped += tablet->lost_mutations ? 1 : 0;
    }
    now.directories_passed_over += shard->directories_passed_over();
    now.mutation_files += shard->mutation_files().size();
    now.mutation_file_bytes += shard->mutation_file_bytes();
    for (const auto& [id, table] : shard->tables()) {
      now.sstables += table->sstables().size();
      now.sstables_set_aside += table->files_aside().size();
      for (const auto& sstable : table->sstables()) {
        now.sstable_bytes += sstable->record.bytes;
        for (const auto& [tablet, garbage] : sstable->metadata.garbage) {
          now.increments_unfolded += garbage.increments;
        }
        if (!sstable->damage) now.sstable_resident_bytes += sstable->reader->resident_bytes();
      }
      now.compaction_backlog_bytes +=
          compaction_backlog_bytes(table->compaction_candidates(runtime_.clock.now()),
                                   table->options().compaction, state.options.compaction);
    }
  }
  now.indexes_being_built = indexes_being_built().size();
  now.compactions_running = parts_->compactor.running();
  now.sstable_counters = state.sstables.counters;
  now.cache_counters = state.sstables.cache.counters();
  now.log_usage = state.log->usage();
  now.log_bytes_written = state.log->statistics().written_bytes;
  return now;
}

std::vector<TableStatistics> Engine::table_statistics() const {
  absl::btree_map<TableId, TableStatistics> by_table;
  for (const auto& shard : parts_->state.shards) {
    for (const auto& [id, table] : shard->tables()) {
      TableStatistics& sum = by_table[id];
      sum.table = id;
      sum.compaction_rule = table->options().compaction.rule;
      sum.compaction_backlog_bytes +=
          compaction_backlog_bytes(table->compaction_candidates(runtime_.clock.now()),
                                   table->options().compaction, parts_->state.options.compaction);
      sum.sstables += table->sstables().size();
      sum.sstables_set_aside += table->files_aside().size();
      for (const auto& sstable : table->sstables()) {
        sum.sstable_bytes += sstable->record.bytes;
        sum.sstable_keys += sstable->record.keys;
        for (const auto& [tablet, garbage] : sstable->metadata.garbage) {
          sum.sstable_deletes += garbage.deletes;
          sum.sstable_increments += garbage.increments;
        }
        if (!sstable->damage) sum.sstable_resident_bytes += sstable->reader->resident_bytes();
      }
      sum.memtable_keys += table->active().key_count();
      sum.memtable_bytes += table->active_bytes();
      for (const FrozenMemtable& frozen : table->frozen()) {
        sum.memtable_keys += frozen.memtable->key_count();
        sum.memtable_bytes += frozen.bytes;
      }
    }
  }
  for (const RunningCompaction& running : parts_->compactor.running_compactions()) {
    const auto table = by_table.find(running.table);
    if (table != by_table.end()) table->second.compactions.push_back(running);
  }
  std::vector<TableStatistics> tables;
  for (const auto& [id, table] : by_table) tables.push_back(table);
  return tables;
}

}  // namespace helenus::storage
