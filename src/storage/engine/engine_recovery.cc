#include "storage/engine/engine_recovery.h"

#include <algorithm>
#include <utility>

#include <absl/container/btree_set.h>

#include "causality/codec.h"
#include "runtime/files.h"
#include "runtime/random.h"
#include "storage/engine/engine_folder.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;

EngineRecovery::EngineRecovery(EngineState& state, DiskReserve& reserve, ManifestChanges& manifests,
                               MutationKeeper& mutations, Flusher& flusher, WritePath& writes)
    : state_(state),
      reserve_(reserve),
      manifests_(manifests),
      mutations_(mutations),
      flusher_(flusher),
      writes_(writes) {}

Task<Result<void>> EngineRecovery::open_alone() {
  CO_TRY_VOID(co_await lock_folder());
  CO_TRY(auto shares, co_await recover(1));
  const bool no_tablets = std::ranges::all_of(
      state_.shards, [](const auto& shard) { return shard->tablets().empty(); });
  if (state_.report.log.tail_may_be_lost && no_tablets)
    CO_TRY_VOID(co_await state_.log_directory->clear_tail_doubt());
  co_return co_await take_share(std::move(shares.front()));
}

Task<Result<OpenedFolder>> EngineRecovery::open_folder(std::uint32_t cores) {
  CO_TRY_VOID(co_await lock_folder());
  CO_TRY(auto shares, co_await recover(cores));
  co_return OpenedFolder{.locks = std::move(state_.locks),
                         .logs = std::move(state_.log_directory),
                         .shares = std::move(shares),
                         .report = state_.report,
                         .shards = state_.shard_count};
}

Task<Result<void>> EngineRecovery::open_share(CoreShare share) {
  state_.core = share.core;
  state_.cores = share.cores;
  state_.shard_count = share.shards;
  CO_TRY_VOID(co_await load_shards());
  CO_TRY_VOID(co_await open_shards());
  co_return co_await take_share(std::move(share));
}

Task<Result<void>> EngineRecovery::lock_folder() {
  for (const std::string& directory : state_.options.data_directories) {
    CO_TRY_VOID(co_await runtime::make_directories_durably(state_.runtime, directory));
    CO_TRY(auto lock, co_await state_.runtime.files.lock(directory + "/engine.lock"));
    state_.locks.push_back(std::move(lock));
  }
  co_return co_await runtime::make_directories_durably(state_.runtime,
                                                       state_.options.log_directory_or_default());
}

Task<Result<void>> EngineRecovery::find_folder() {
  const std::string path = state_.options.data_directories.front() + "/engine";
  auto file = co_await runtime::read_file(state_.runtime, path, kFolderFileSize);
  if (file.failed_with(Errc::not_found)) {
    state_.report.created = true;
    state_.shard_count = state_.options.shards;
    co_return {};
  }
  if (!file) co_return std::move(file).error();
  auto decoded = decode_folder_file(*file);
  if (!decoded) co_return std::move(decoded).error().within(path);
  state_.shard_count = *decoded;
  // A kill may have left its name in memory alone, and data must not outlive it.
  CO_TRY_VOID(
      co_await state_.runtime.files.sync_directory(state_.options.data_directories.front()));
  co_return co_await load_shards();
}

Task<Result<void>> EngineRecovery::make_folder() {
  const ShardEnvironment environment = state_.shard_environment();
  for (std::uint32_t number = 0; number < state_.shard_count; ++number) {
    CO_TRY_VOID(co_await Shard::create(environment, ShardNumber{number}));
  }
  const std::string path = state_.options.data_directories.front() + "/engine";
  CO_TRY_VOID(
      co_await runtime::replace_file(state_.runtime, path, encode_folder_file(state_.shard_count)));
  co_return co_await load_shards();
}

Task<Result<void>> EngineRecovery::load_shards() {
  const ShardEnvironment environment = state_.shard_environment();
  for (std::uint32_t number = state_.core; number < state_.shard_count; number += state_.cores) {
    CO_TRY(auto shard, co_await Shard::load(environment, ShardNumber{number}));
    if (const std::uint64_t floor = shard->manifest().operation_floor; floor > 0) {
      state_.operations.begin(causality::OperationTime{static_cast<std::int64_t>(floor)});
    }
    state_.shards.push_back(std::move(shard));
  }
  state_.tell_operations();
  mutations_.count_dots();
  co_return {};
}

Task<Result<void>> EngineRecovery::open_shards() {
  for (const auto& shard : state_.shards) {
    CO_TRY_VOID(co_await shard->open_files());
    for (const auto& [id, table] : shard->tables())
      state_.report.sstables += table->sstables().size();
  }
  co_return {};
}

// Of a folder that is there. One that is being made has no file yet that tells how many it has.
Task<Result<std::vector<std::string>>> EngineRecovery::find_strange_shards() {
  std::vector<std::string> strange;
  if (state_.report.created) co_return strange;
  const std::string& directory = state_.options.data_directories.front();
  CO_TRY(const auto entries, co_await state_.runtime.files.list(directory));
  absl::btree_set<std::string> known;
  for (const auto& shard : state_.shards) known.insert(shard->name());
  for (const runtime::DirectoryEntry& entry : entries) {
    const bool is_shard = entry.is_directory && entry.name.starts_with(Shard::kNamePrefix);
    if (is_shard && !known.contains(entry.name)) strange.push_back(directory + "/" + entry.name);
  }
  co_return strange;
}

Task<Result<DirectorySet>> EngineRecovery::inspect_directories() {
  DirectorySet set;
  set.node = state_.options.node;
  for (const std::string& directory : state_.options.data_directories) {
    DataDirectory found{.directory = directory, .marker = {}};
    CO_TRY(found.marker,
           co_await read_directory_marker(state_.runtime, directory, DirectoryKind::data));
    found.has_engine_file = (co_await state_.runtime.files.info(directory + "/engine")).has_value();
    set.data.push_back(std::move(found));
  }
  CommitLogDirectory& log = set.log;
  const LogOpenReport& report = state_.log_directory->report();
  log.directory = state_.options.log_directory_or_default();
  log.fresh = report.last_stop == LastStop::fresh;
  log.incarnation = report.incarnation;
  log.written = report.written;
  log.ends = report.ends;
  CO_TRY(log.marker,
         co_await read_directory_marker(state_.runtime, log.directory, DirectoryKind::logs));
  CO_TRY(log.generations, co_await read_generations(state_.runtime, log.directory));
  const auto of_start = co_await state_.runtime.files.info(generations_path(log.directory));
  log.has_generations = of_start.has_value() || !of_start.failed_with(Errc::not_found);
  CO_TRY(set.strange_shards, co_await find_strange_shards());
  for (const auto& shard : state_.shards) {
    const ManifestState& manifest = shard->manifest();
    ShardDirectory found{.manifest_path = shard->manifest_path(),
                         .generation = manifest.generation,
                         .log_reached = manifest.log_reached,
                         .untouched = manifest == ManifestState(),
                         .tablets = {}};
    for (const auto& [id, table] : manifest.tables) {
      found.incarnation = std::max(found.incarnation, table.flushed.incarnation());
    }
    for (const auto& [id, tablet] : manifest.tablets) found.tablets.push_back(id);
    found.node = manifest.node;
    set.shards.push_back(std::move(found));
  }
  co_return set;
}

Task<Result<void>> EngineRecovery::judge_directories(const DirectorySet& set) {
  CO_TRY_VOID(check_directory_set(set));
  if (state_.report.created && !set.log.fresh) {
    co_return Error(Errc::corrupt,
                    "{}: there are logs, and the data that they belong to is missing from {}",
                    set.log.directory, state_.options.data_directories.front());
  }
  const auto& accepted = state_.options.accept_lost_log_of_start;
  if (!log_is_lost(set)) {
    if (accepted) {
      state_.logger.warn(
          "accept_lost_log_of_start has no effect, since no log is lost: take it out",
          base::kv("accept_lost_log_of_start", *accepted));
    }
    co_return {};
  }
  const std::uint32_t last_start = last_known_start(set);
  if (state_.report.created || accepted != last_start) {
    co_return Error(Errc::corrupt,
                    "{}: the logs that belong to {} are missing; restore them, or give up what "
                    "only they had and open the rest with accept_lost_log_of_start: {}",
                    set.log.directory, state_.options.data_directories.front(), last_start);
  }
  state_.report.lost_log_accepted = true;
  state_.logger.error(
      "THE LOGS ARE LOST AND ACCEPTED AS LOST: writes that were acknowledged and are in no file "
      "are "
      "gone; every tablet must get a new actor; take accept_lost_log_of_start out of the "
      "configuration",
      base::kv("directory", set.log.directory), base::kv("start", last_start));
  state_.log_directory->doubt();
  co_return {};
}

Task<Result<std::vector<LogShare>>> EngineRecovery::begin_logs(DirectorySet set,
                                                               std::uint32_t cores) {
  const std::uint32_t written = set.log.fresh ? 0 : last_written_start(set.log);
  const std::uint64_t high = state_.runtime.random.next();
  DirectoryMarker marker{.folder = base::Uuid::from_random(high, state_.runtime.random.next())};
  for (const DataDirectory& data : set.data) {
    if (data.marker) marker = *data.marker;
  }
  if (set.log.marker) marker = *set.log.marker;
  marker.directories = static_cast<std::uint32_t>(set.data.size());
  marker.index = kLogDirectory;
  marker.start = written;
  marker.node = state_.options.node;
  CO_TRY_VOID(co_await write_directory_marker(state_.runtime, set.log.directory,
                                              DirectoryKind::logs, marker));
  CO_TRY(auto logs,
         co_await state_.log_directory->begin(cores, state_.options.log, last_known_start(set)));
  state_.log_incarnation = logs.front().first.id.incarnation;
  marker.start = state_.log_incarnation;
  for (marker.index = 0; marker.index < set.data.size(); ++marker.index) {
    CO_TRY_VOID(co_await write_directory_marker(state_.runtime, set.data[marker.index].directory,
                                                DirectoryKind::data, marker));
  }
  co_return logs;
}

Task<Result<std::vector<CoreShare>>> EngineRecovery::recover(std::uint32_t cores) {
  CO_TRY_VOID(co_await find_folder());
  CO_TRY(state_.log_directory,
         co_await LogDirectory::open(state_.runtime, state_.options.log_directory_or_default()));
  CO_TRY(const auto set, co_await inspect_directories());
  CO_TRY_VOID(co_await judge_directories(set));
  // The doubt is durable with the first log, from which on this folder is no longer as new.
  if (state_.options.was_used && set.log.fresh && !state_.report.lost_log_accepted) {
    state_.logger.error("the folder was used before, and nothing of it is there: it is lost",
                        base::kv("directory", state_.options.data_directories.front()));
    state_.log_directory->doubt();
  }
  for (const auto& shard : state_.shards) CO_TRY_VOID(co_await shard->check_files());
  CO_TRY_VOID(co_await DiskReserve::give_up_all(state_.runtime, state_.options));
  if (state_.report.created) CO_TRY_VOID(co_await make_folder());
  CO_TRY_VOID(co_await open_shards());
  state_.report.log = state_.log_directory->report();
  CO_TRY_VOID(co_await replay());
  state_.report.replayed = state_.log_directory->replayed();
  // From here on what was replayed is durable, and so is the end of every log.
  CO_TRY(auto logs, co_await begin_logs(set, cores));
  for (const auto& shard : state_.shards) CO_TRY_VOID(co_await flush_replayed(*shard, true));
  CO_TRY_VOID(co_await finish_schema_changes());
  CO_TRY_VOID(co_await runtime::replace_file(
      state_.runtime, generations_path(state_.options.log_directory_or_default()),
      encode_generations(manifests_.generations())));
  CO_TRY_VOID(co_await remove_generations_of_cores(state_.runtime,
                                                   state_.options.log_directory_or_default()));
  CO_TRY_VOID(co_await state_.log_directory->release(state_.log_directory->tables_unreleased()));
  std::vector<CoreShare> shares;
  for (LogShare& log : logs) {
    shares.push_back({.log = std::move(log),
                      .core = static_cast<std::uint32_t>(shares.size()),
                      .cores = cores,
                      .shards = state_.shard_count,
                      .report = state_.report});
  }
  state_.logger.info("opened", base::kv("last_stop", name_of(state_.report.log.last_stop)),
                     base::kv("cores", cores), base::kv("sstables", state_.report.sstables),
                     base::kv("records_replayed", state_.report.replayed.records),
                     base::kv("records_applied", state_.report.records_applied),
                     base::kv("tail_may_be_lost", state_.report.log.tail_may_be_lost));
  co_return shares;
}

Task<Result<void>> EngineRecovery::take_share(CoreShare share) {
  state_.report = share.report;
  state_.log_incarnation = share.log.first.id.incarnation;
  co_await reserve_.begin();
  CO_TRY(state_.log,
         co_await CommitLog::open(state_.runtime, std::move(share.log), state_.options.log));
  co_await mutations_.find_operations();
  if (!state_.report.log.tail_may_be_lost) co_return {};
  for (const auto& shard : state_.shards) {
    for (const auto& [id, tablet] : shard->tablets()) tablet->in_doubt = true;
  }
  co_return {};
}

Task<Result<void>> EngineRecovery::finish_schema_changes() {
  for (const auto& shard : state_.shards) {
    std::vector<std::shared_ptr<TableStore>> lost;
    for (const auto& [id, table] : shard->tables()) {
      if (state_.shards.front()->table(id) == nullptr) lost.push_back(table);
    }
    for (const auto& table : lost) {
      CO_TRY_VOID(
          co_await shard->install([&](ManifestState& state) { state.tables.erase(table->id()); }));
      shard->remove_table(table->id());
      co_await shard->remove_files(table->sstables());
    }
  }
  co_return {};
}

Task<Result<void>> EngineRecovery::replay() {
  while (true) {
    CO_TRY(const auto batch, co_await state_.log_directory->next_batch());
    if (!batch) co_return {};
    CO_TRY_VOID(replay(*batch));
    if (state_.memory.bytes() < state_.options.memtable_bytes_max / 2 && !holds_large_key())
      continue;
    for (const auto& shard : state_.shards) CO_TRY_VOID(co_await flush_replayed(*shard, false));
  }
}

bool EngineRecovery::holds_large_key() const {
  return std::ranges::any_of(state_.shards, [](const auto& shard) {
    return std::ranges::any_of(shard->tables(), [](const auto& each) {
      return each.second->active().largest_key_bytes() >= Flusher::kKeyBytesFlush;
    });
  });
}

Result<void> EngineRecovery::replay(const ReplayedBatch& batch) {
  RecordCursor records = batch.records;
  while (const auto record = records.next()) {
    const auto damaged = [&](const Error& error) {
      return Error(error).within(
          fmt::format("record at {} of core {}'s log", record->position, batch.core));
    };
    const ShardNumber number = shard_of_stream(record->table);
    if (number.value() >= state_.shard_count) {
      return damaged(
          Error(Errc::corrupt, "of shard {}, and there are {}", number, state_.shard_count));
    }
    Shard& shard = *state_.shards[number.value()];
    // A table that is not there was dropped.
    TableStore* table = shard.table(table_of_stream(record->table));
    if (table == nullptr) continue;
    const FlushedLog& flushed = shard.manifest().tables.at(table->id()).flushed;
    if (flushed.contains(batch.core, record->position)) continue;
    const auto bytes = base::Bytes::copy_of(record->bytes);
    const auto mutation = decode_mutation(bytes);
    if (!mutation) return damaged(mutation.error());
    const auto delta = causality::decode_delta(mutation->delta);
    if (!delta) return damaged(delta.error());
    Tablet* tablet = shard.tablet(mutation->tablet);
    if (tablet == nullptr) {
      return damaged(Error(Errc::corrupt, "of tablet {}, which is not there", mutation->tablet));
    }
    writes_.apply(*table, *tablet, mutation->partition, *delta, mutation->delta,
                  StagedWrites::kReplayed);
    if (mutation->replication == Replication::peers) {
      mutations_.keep(*tablet, *table, mutation->partition, *delta, bytes, StagedWrites::kReplayed);
    }
    tablet->clock.add(delta->dot);
    tablet->durable.add(delta->dot);
    ++state_.report.records_applied;
  }
  return {};
}

Task<Result<void>> EngineRecovery::flush_replayed(Shard& shard, bool final) {
  const Knowledge knowledge = final ? shard.knowledge() : Knowledge();
  for (const auto& [id, table] : shard.tables()) {
    if (table->active().empty()) continue;
    table->freeze({.number = shard.next_freeze(), .knowledge = knowledge});
    const FrozenMemtable& frozen = table->frozen().front();
    CO_TRY(auto written, co_await flusher_.write_frozen(shard, *table, frozen.memtable, frozen.at));
    state_.memory.memtables -= table->frozen().front().bytes;
    table->replace_oldest_frozen(std::move(written.file));
  }
  const auto batches = MutationKeeper::mutations_in_memory(shard);
  CO_TRY(auto mutations,
         co_await shard.write_mutations(batches, shard.next_freeze(), state_.stop.token()));
  mutations_.moved_to_file(shard, batches, std::move(mutations));
  if (!final) co_return {};
  co_return co_await shard.install([&](ManifestState& state) {
    for (auto& [id, table] : state.tables) {
      table.sstables.clear();
      for (const auto& file : shard.table(id)->sstables()) table.sstables.push_back(file->record);
      table.flushed.add_before(state_.log_incarnation);
    }
    state.mutation_files.clear();
    for (const LiveMutationFile& each : shard.mutation_files()) {
      state.mutation_files.push_back(each.file->record);
    }
    shard.enter_unreadable_mutations(state);
    MutationKeeper::enter_mutations(state, shard, nullptr);
    shard.enter_set_aside(state);
    join_clocks(state, shard.clocks());
  });
}

}  // namespace helenus::storage
