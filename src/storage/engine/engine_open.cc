// Opening an engine: making or finding its folder, replaying the logs, and flushing what they held.
#include <algorithm>
#include <utility>

#include "causality/codec.h"
#include "runtime/files.h"
#include "runtime/random.h"
#include "storage/engine/engine.h"
#include "storage/engine/engine_folder.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;

Task<Result<std::unique_ptr<Engine>>> Engine::open(runtime::Runtime& runtime,
                                                   EngineOptions options) {
  CO_TRY_VOID(options.validate());
  auto engine = std::make_unique<Engine>(Private(), runtime, std::move(options));
  auto opened = co_await engine->lock_folder();
  if (opened) {
    auto shares = co_await engine->recover(1);
    opened = shares ? co_await engine->take_share(std::move(shares->front()))
                    : Result<void>(std::move(shares).error());
  }
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
  auto locked = co_await engine->lock_folder();
  auto shares = locked ? co_await engine->recover(cores)
                       : Result<std::vector<CoreShare>>(std::move(locked).error());
  OpenedFolder folder;
  if (shares) {
    folder = {.locks = std::move(engine->locks_),
              .logs = std::move(engine->log_directory_),
              .shares = *std::move(shares),
              .report = engine->report_,
              .shards = engine->shard_count_};
  }
  // Its shards go with it: each core opens its own from what is on disk.
  (void)co_await engine->stop();
  if (!shares) co_return std::move(shares).error();
  co_return folder;
}

Task<Result<std::unique_ptr<Engine>>> Engine::open(runtime::Runtime& runtime, EngineOptions options,
                                                   CoreShare share) {
  CO_TRY_VOID(options.validate());
  auto engine = std::make_unique<Engine>(Private(), runtime, std::move(options));
  engine->core_ = share.core;
  engine->cores_ = share.cores;
  engine->shard_count_ = share.shards;
  auto opened = co_await engine->load_shards();
  if (opened) opened = co_await engine->open_shards();
  if (opened) opened = co_await engine->take_share(std::move(share));
  if (!opened) {
    (void)co_await engine->stop();
    co_return std::move(opened).error();
  }
  engine->start_background();
  co_return engine;
}

Task<Result<void>> Engine::lock_folder() {
  for (const std::string& directory : options_.data_directories) {
    CO_TRY_VOID(co_await runtime::make_directories_durably(runtime_, directory));
    CO_TRY(auto lock, co_await runtime_.files.lock(directory + "/engine.lock"));
    locks_.push_back(std::move(lock));
  }
  co_return co_await runtime::make_directories_durably(runtime_,
                                                       options_.log_directory_or_default());
}

Task<Result<void>> Engine::find_folder() {
  const std::string path = options_.data_directories.front() + "/engine";
  auto file = co_await runtime::read_file(runtime_, path, kFolderFileSize);
  if (file.failed_with(Errc::not_found)) {
    report_.created = true;
    shard_count_ = options_.shards;
    co_return {};
  }
  if (!file) co_return std::move(file).error();
  auto decoded = decode_folder_file(*file);
  if (!decoded) co_return std::move(decoded).error().within(path);
  shard_count_ = *decoded;
  // A kill may have left its name in memory alone, and data must not outlive it.
  CO_TRY_VOID(co_await runtime_.files.sync_directory(options_.data_directories.front()));
  co_return co_await load_shards();
}

Task<Result<void>> Engine::make_folder() {
  const ShardEnvironment environment{runtime_, options_, sstables_, log_lines_};
  for (std::uint32_t number = 0; number < shard_count_; ++number) {
    CO_TRY_VOID(co_await Shard::create(environment, ShardNumber{number}));
  }
  const std::string path = options_.data_directories.front() + "/engine";
  CO_TRY_VOID(co_await runtime::replace_file(runtime_, path, encode_folder_file(shard_count_)));
  co_return co_await load_shards();
}

Task<Result<void>> Engine::load_shards() {
  const ShardEnvironment environment{runtime_, options_, sstables_, log_lines_};
  for (std::uint32_t number = core_; number < shard_count_; number += cores_) {
    CO_TRY(auto shard, co_await Shard::load(environment, ShardNumber{number}));
    shards_.push_back(std::move(shard));
  }
  count_dots();
  co_return {};
}

Task<Result<void>> Engine::open_shards() {
  for (const auto& shard : shards_) {
    CO_TRY_VOID(co_await shard->open_files());
    for (const auto& [id, table] : shard->tables()) report_.sstables += table->sstables().size();
  }
  co_return {};
}

Task<Result<DirectorySet>> Engine::inspect_directories() {
  DirectorySet places;
  for (const std::string& directory : options_.data_directories) {
    DataDirectory place{.directory = directory, .marker = {}};
    CO_TRY(place.marker, co_await read_place_marker(runtime_, directory, PlaceKind::data));
    place.has_engine_file = (co_await runtime_.files.info(directory + "/engine")).has_value();
    places.data.push_back(std::move(place));
  }
  CommitLogDirectory& log = places.log;
  const LogOpenReport& report = log_directory_->report();
  log.directory = options_.log_directory_or_default();
  log.fresh = report.last_stop == LastStop::fresh;
  log.incarnation = report.incarnation;
  log.written = report.written;
  log.ends = report.ends;
  CO_TRY(log.marker, co_await read_place_marker(runtime_, log.directory, PlaceKind::logs));
  CO_TRY(log.generations, co_await read_generations(runtime_, log.directory));
  for (const auto& shard : shards_) {
    const ManifestState& manifest = shard->manifest();
    ShardDirectory place{.manifest_path = shard->manifest_path(),
                         .generation = manifest.generation,
                         .log_reached = manifest.log_reached,
                         .untouched = manifest == ManifestState()};
    for (const auto& [id, table] : manifest.tables) {
      place.incarnation = std::max(place.incarnation, table.flushed.incarnation());
    }
    places.shards.push_back(std::move(place));
  }
  co_return places;
}

// Before anything is changed: see directory_set.h.
Task<Result<void>> Engine::judge_directories(const DirectorySet& places) {
  CO_TRY_VOID(check_directory_set(places));
  if (report_.created && !places.log.fresh) {
    co_return Error(Errc::corrupt,
                    "{}: there are logs, and the data that they belong to is missing from {}",
                    places.log.directory, options_.data_directories.front());
  }
  const auto& accepted = options_.accept_lost_log_of_start;
  if (!log_is_lost(places)) {
    if (accepted) {
      log_lines_.warn("accept_lost_log_of_start has no effect, since no log is lost: take it out",
                      base::kv("accept_lost_log_of_start", *accepted));
    }
    co_return {};
  }
  const std::uint32_t last_start = last_known_start(places);
  if (report_.created || accepted != last_start) {
    co_return Error(Errc::corrupt,
                    "{}: the logs that belong to {} are missing; restore them, or give up what "
                    "only they had and open the rest with accept_lost_log_of_start: {}",
                    places.log.directory, options_.data_directories.front(), last_start);
  }
  report_.lost_log_accepted = true;
  log_lines_.error(
      "THE LOGS ARE LOST AND ACCEPTED AS LOST: writes that were acknowledged and are in no file "
      "are "
      "gone; every tablet must get a new actor; take accept_lost_log_of_start out of the "
      "configuration",
      base::kv("directory", places.log.directory), base::kv("start", last_start));
  log_directory_->doubt();
  co_return {};
}

// The order of the steps is what the comparison of places rests on.
Task<Result<std::vector<LogShare>>> Engine::begin_logs(DirectorySet places, std::uint32_t cores) {
  const std::uint32_t written = places.log.fresh ? 0 : last_written_start(places.log);
  const std::uint64_t high = runtime_.random.next();
  DirectoryMarker marker{.folder = base::Uuid::from_random(high, runtime_.random.next())};
  for (const DataDirectory& data : places.data) {
    if (data.marker) marker = *data.marker;
  }
  if (places.log.marker) marker = *places.log.marker;
  marker.places = static_cast<std::uint32_t>(places.data.size());
  marker.place = kLogPlace;
  marker.start = written;
  CO_TRY_VOID(co_await write_place_marker(runtime_, places.log.directory, PlaceKind::logs, marker));
  CO_TRY(auto logs, co_await log_directory_->begin(cores, options_.log, last_known_start(places)));
  log_incarnation_ = logs.front().first.id.incarnation;
  marker.start = log_incarnation_;
  for (marker.place = 0; marker.place < places.data.size(); ++marker.place) {
    CO_TRY_VOID(co_await write_place_marker(runtime_, places.data[marker.place].directory,
                                            PlaceKind::data, marker));
  }
  co_return logs;
}

Task<Result<std::vector<CoreShare>>> Engine::recover(std::uint32_t cores) {
  CO_TRY_VOID(co_await find_folder());
  CO_TRY(log_directory_,
         co_await LogDirectory::open(runtime_, options_.log_directory_or_default()));
  CO_TRY(const auto places, co_await inspect_directories());
  CO_TRY_VOID(co_await judge_directories(places));
  if (report_.created) CO_TRY_VOID(co_await make_folder());
  CO_TRY_VOID(co_await open_shards());
  report_.log = log_directory_->report();
  CO_TRY_VOID(co_await replay());
  report_.replayed = log_directory_->replayed();
  // From here on what was replayed is durable, and so is the end of every log.
  CO_TRY(auto logs, co_await begin_logs(places, cores));
  for (const auto& shard : shards_) CO_TRY_VOID(co_await flush_replayed(*shard, true));
  CO_TRY_VOID(co_await finish_schema_changes());
  CO_TRY_VOID(co_await runtime::replace_file(runtime_,
                                             generations_path(options_.log_directory_or_default()),
                                             encode_generations(generations())));
  CO_TRY_VOID(co_await remove_generations_of_cores(runtime_, options_.log_directory_or_default()));
  CO_TRY_VOID(co_await log_directory_->release(log_directory_->tables_unreleased()));
  const bool no_tablets =
      std::ranges::all_of(shards_, [](const auto& shard) { return shard->tablets().empty(); });
  if (report_.log.tail_may_be_lost && no_tablets)
    CO_TRY_VOID(co_await log_directory_->clear_tail_doubt());
  std::vector<CoreShare> shares;
  for (LogShare& log : logs) {
    shares.push_back({.log = std::move(log),
                      .core = static_cast<std::uint32_t>(shares.size()),
                      .cores = cores,
                      .shards = shard_count_,
                      .report = report_});
  }
  log_lines_.info("opened", base::kv("last_stop", name_of(report_.log.last_stop)),
                  base::kv("cores", cores), base::kv("sstables", report_.sstables),
                  base::kv("records_replayed", report_.replayed.records),
                  base::kv("records_applied", report_.records_applied),
                  base::kv("tail_may_be_lost", report_.log.tail_may_be_lost));
  co_return shares;
}

Task<Result<void>> Engine::take_share(CoreShare share) {
  report_ = share.report;
  log_incarnation_ = share.log.first.id.incarnation;
  CO_TRY(log_, co_await CommitLog::open(runtime_, std::move(share.log), options_.log));
  if (!report_.log.tail_may_be_lost) co_return {};
  for (const auto& shard : shards_) {
    for (const auto& [id, tablet] : shard->tablets()) tablet->in_doubt = true;
  }
  co_return {};
}

// A table is there if the first shard has it: that one is the last to get it and the first to lose
// it. Where the last stop came in between, the others follow. After the replay, so that the dots of
// its records are remembered.
Task<Result<void>> Engine::finish_schema_changes() {
  for (const auto& shard : shards_) {
    std::vector<std::shared_ptr<TableStore>> lost;
    for (const auto& [id, table] : shard->tables()) {
      if (shards_.front()->table(id) == nullptr) lost.push_back(table);
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

Task<Result<void>> Engine::replay() {
  while (true) {
    CO_TRY(const auto batch, co_await log_directory_->next_batch());
    if (!batch) co_return {};
    CO_TRY_VOID(replay(*batch));
    if (memory_bytes() < options_.memtable_bytes_max / 2 && !holds_large_key()) continue;
    for (const auto& shard : shards_) CO_TRY_VOID(co_await flush_replayed(*shard, false));
  }
}

bool Engine::holds_large_key() const {
  return std::ranges::any_of(shards_, [](const auto& shard) {
    return std::ranges::any_of(shard->tables(), [](const auto& each) {
      return each.second->active().largest_key_bytes() >= kKeyBytesFlush;
    });
  });
}

Result<void> Engine::replay(const ReplayedBatch& batch) {
  RecordCursor records = batch.records;
  while (const auto record = records.next()) {
    const auto damaged = [&](const Error& error) {
      return Error(error).within(
          fmt::format("record at {} of core {}'s log", record->position, batch.core));
    };
    const ShardNumber number = shard_of_stream(record->table);
    if (number.value() >= shard_count_) {
      return damaged(Error(Errc::corrupt, "of shard {}, and there are {}", number, shard_count_));
    }
    Shard& shard = *shards_[number.value()];
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
    apply(*table, tablet->id, mutation->partition, *delta, mutation->delta, 1);
    if (mutation->replication == Replication::peers) {
      keep(*tablet, *table, mutation->partition, *delta, bytes, 1);
    }
    tablet->clock.add(delta->dot);
    tablet->durable.add(delta->dot);
    ++report_.records_applied;
  }
  return {};
}

// Writes what was replayed into files, all tables of the shard at once. Before the end of the
// replay
// (`final` is false) they are not entered: the log is not yet known to be durable, and a start that
// is cut short leaves them as leftovers instead of adding to the shard. Nothing is stripped then.
// At the end all of them are entered by one edit, with the clocks and the position in the logs: a
// dot that is in a file and in no clock might be minted again, should its record be lost after all.
Task<Result<void>> Engine::flush_replayed(Shard& shard, bool final) {
  const Knowledge knowledge = final ? shard.knowledge() : Knowledge();
  for (const auto& [id, table] : shard.tables()) {
    if (table->active().empty()) continue;
    table->freeze({.number = shard.next_freeze(), .knowledge = knowledge});
    const FrozenMemtable& frozen = table->frozen().front();
    CO_TRY(auto written, co_await write_frozen(shard, *table, frozen.memtable, frozen.at));
    memtable_bytes_ -= table->frozen().front().bytes;
    table->replace_oldest_frozen(std::move(written.file));
  }
  const auto batches = mutations_in_memory(shard);
  CO_TRY(auto mutations,
         co_await shard.write_mutations(batches, shard.next_freeze(), stop_.token()));
  moved_to_file(shard, batches, std::move(mutations));
  if (!final) co_return {};
  co_return co_await shard.install([&](ManifestState& state) {
    for (auto& [id, table] : state.tables) {
      table.sstables.clear();
      for (const auto& file : shard.table(id)->sstables()) table.sstables.push_back(file->record);
      table.flushed.add_before(log_incarnation_);
    }
    state.mutation_files.clear();
    for (const LiveMutationFile& each : shard.mutation_files()) {
      state.mutation_files.push_back(each.file->record);
    }
    shard.enter_unreadable_mutations(state);
    enter_mutations(state, shard, nullptr);
    shard.enter_set_aside(state);
    join_clocks(state, shard.clocks());
  });
}

}  // namespace helenus::storage
