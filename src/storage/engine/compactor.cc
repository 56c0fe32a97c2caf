// What an engine does by itself: freezing, flushing, compacting, and what follows from failures.
#include <algorithm>
#include <utility>

#include "runtime/files.h"
#include "runtime/sleep.h"
#include "storage/engine/engine.h"
#include "storage/read/merged_entries.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

void insert_file(std::vector<SstableRecord>& files, const SstableRecord& file) {
  const auto at = std::ranges::lower_bound(files, file.number, {}, &SstableRecord::number);
  files.insert(at, file);
}

}  // namespace

void Engine::start_background() {
  tasks_.spawn(flush_loop());
  tasks_.spawn(log_pressure_loop());
  tasks_.spawn(mutation_loop());
  tasks_.spawn(purge_loop());
  for (std::size_t index = 0; index < options_.compactions_max; ++index) {
    tasks_.spawn(compaction_loop());
  }
}

void Engine::wake_everybody() {
  flush_work_.wake_all();
  compaction_work_.wake_all();
  mutation_work_.wake_all();
  purge_work_.wake_all();
  room_changed_.wake_all();
  files_changed_.wake_all();
}

void Engine::fail(Error error) {
  if (fatal_error_) return;
  log_lines_.error("writing has ended", base::kv("error", error));
  fatal_error_ = std::move(error);
  wake_everybody();
}

// ---- Freezing ----

void Engine::freeze(Shard& shard, const std::shared_ptr<TableStore>& table) {
  if (table->active().empty() || table->dropped()) return;
  table->freeze({.number = shard.next_freeze(),
                 .log_end = log_->tail(),
                 .sequence = last_sequence_,
                 .knowledge = shard.knowledge()});
  flush_queue_.push_back({.shard = &shard, .table = table});
  flush_work_.wake_all();
}

void Engine::freeze_if_due(const Place& place) {
  const Memtable& memtable = place.table->active();
  if (place.table->active_bytes() >= options_.memtable_bytes_flush ||
      memtable.key_count() >= options_.memtable_keys_flush ||
      memtable.largest_key_bytes() >= kKeyBytesFlush || runtime_.buggify("storage.freeze_early")) {
    freeze(*place.shard, place.shard->tables().at(place.table->id()));
  } else {
    freeze_for_room();
  }
}

void Engine::freeze_for_room() {
  if (memory_bytes() >= options_.memtable_bytes_max / 2 && flush_queue_.empty()) freeze_largest();
}

void Engine::freeze_largest() {
  Shard* largest_shard = nullptr;
  std::shared_ptr<TableStore> largest;
  for (const auto& shard : shards_) {
    for (const auto& [id, table] : shard->tables()) {
      if (largest != nullptr && table->active_bytes() <= largest->active_bytes()) continue;
      largest = table;
      largest_shard = shard.get();
    }
  }
  if (largest != nullptr) freeze(*largest_shard, largest);
}

Task<void> Engine::log_pressure_loop() {
  while (true) {
    const auto streams = co_await log_->wait_for_pressure({.stop = stop_.token()});
    if (!streams) co_return;
    for (const TableId stream : *streams) {
      Shard& shard = *shard_numbered(shard_of_stream(stream).value());
      const auto at = shard.tables().find(table_of_stream(stream));
      if (at != shard.tables().end()) freeze(shard, at->second);
    }
    const bool flushed = (co_await files_changed_.wait({.stop = stop_.token()})).has_value();
    if (!flushed) co_return;
  }
}

// ---- Flushing ----

Task<void> Engine::flush_loop() {
  while (!stop_.token().stop_requested() && !fatal_error_) {
    if (flush_queue_.empty()) {
      if (!co_await flush_work_.wait({.stop = stop_.token()})) co_return;
      continue;
    }
    const FlushJob job = flush_queue_.front();
    const Result<void> flushed = job.table->dropped() ? Result<void>() : co_await flush_oldest(job);
    if (flushed) {
      flush_queue_.pop_front();
      flush_error_.reset();
      // Writers may wait for more than this one has given.
      freeze_for_room();
      wake_everybody();
      continue;
    }
    if (stop_.token().stop_requested() || fatal_error_) co_return;
    ++statistics_.flush_failures;
    log_lines_.warn("a flush failed and is tried again", base::kv("error", flushed.error()));
    flush_error_ = flushed.error();
    wake_everybody();
    co_await pause_after_failure();
  }
}

Task<void> Engine::pause_after_failure() {
  (void)co_await runtime::sleep_for(runtime_, options_.retry_delay, stop_.token());
}

Task<Result<void>> Engine::flush_oldest(FlushJob job) {
  Shard& shard = *job.shard;
  TableStore& table = *job.table;
  const std::shared_ptr<const Memtable> memtable = table.frozen().front().memtable;
  const Clocks dots = table.frozen().front().dots;
  const FreezeState at = table.frozen().front().at;
  const std::size_t bytes = table.frozen().front().bytes;
  // S1: what the file depends on, the clocks of the freeze, is durable before it is entered.
  if (auto synced = co_await log_->sync_to(at.log_end, {.stop = stop_.token()}); !synced) {
    if (!synced.failed_with(Errc::cancelled)) fail(synced.error());
    co_return synced;
  }
  CO_TRY(auto written, co_await write_frozen(shard, table, memtable, at));
  const auto batches = mutations_of(shard, table.id(), at.sequence);
  auto mutations = co_await shard.write_mutations(batches, at.number, stop_.token());
  if (!mutations) {
    if (written.file != nullptr) co_await shard.remove_files({written.file});
    co_return std::move(mutations).error();
  }
  bool entered = false;
  CO_TRY_VOID(co_await install_until_done(shard, [&](ManifestState& state) {
    // An earlier try may have found no space, and the table may have been dropped since. One that
    // was dropped may have been made anew under the same id.
    entered = false;
    const auto record = state.tables.find(table.id());
    if (table.dropped() || record == state.tables.end()) return;
    entered = true;
    if (written.file != nullptr) insert_file(record->second.sstables, written.file->record);
    record->second.flushed.add(log_->core(), at.log_end);
    join_clocks(state, dots);
    enter_mutations(state, shard, mutations->get());
  }));
  ++statistics_.flushes;
  statistics_.keys_gone += written.counts.keys_gone;
  statistics_.partitions_unsettled += written.counts.partitions_unsettled;
  if (written.file != nullptr) statistics_.flushed_bytes += written.file->record.bytes;
  if (!entered) {
    // Whoever dropped the table writes its mutations into a file of their own.
    if (written.file != nullptr) co_await shard.remove_files({written.file});
    if (*mutations != nullptr) co_await shard.remove_mutation_file(*mutations);
    co_return {};
  }
  moved_to_file(shard, batches, *std::move(mutations));
  // One that was dropped since is no longer in the account; its files go with the rest of it.
  if (!table.dropped()) memtable_bytes_ -= bytes;
  table.replace_oldest_frozen(std::move(written.file));
  // The flush is done; should this fail, writing has ended.
  if (co_await note_generations()) log_->needed_from(table.stream(), at.log_end);
  co_return {};
}

// Writes a frozen memtable into a file that nobody knows of yet. Every file of the table is as old.
Task<Result<Shard::Written>> Engine::write_frozen(Shard& shard, const TableStore& table,
                                                  std::shared_ptr<const Memtable> memtable,
                                                  const FreezeState& at) {
  MergePlan plan{.table = table.id(),
                 .policy = table.options().policy,
                 .freeze_first = at.number,
                 .freeze_last = at.number,
                 .knowledge = at.knowledge,
                 .tablets = shard.tablet_ranges(),
                 .others = table.sstables(),
                 .ranges_bytes_max = options_.merge_ranges_bytes_max};
  const auto source = entries_of(std::move(memtable));
  co_return co_await shard.write_file(table, *source, std::move(plan), nullptr, stop_.token());
}

// Changes the manifest. While there is no space it waits and tries again: nothing is lost, and
// neither the old nor the new files are touched. Any other failure leaves in doubt what the next
// start will find, and ends writing.
Task<Result<void>> Engine::install_until_done(Shard& shard, Shard::Edit edit) {
  bool waited = false;
  while (true) {
    const auto installed = co_await shard.install([&](ManifestState& state) {
      edit(state);
      state.log_reached = {.core = log_->core(), .position = log_->synced_position()};
    });
    if (installed) {
      if (waited) flush_error_.reset();
      if (waited) wake_everybody();
      co_return {};
    }
    if (!installed.failed_with(Errc::no_space)) {
      fail(Error(installed.error()).within("changing the manifest"));
      co_return *fatal_error_;
    }
    log_lines_.warn("no space for the manifest", base::kv("error", installed.error()));
    waited = true;
    flush_error_ = installed.error();
    wake_everybody();
    CO_TRY_VOID(co_await runtime::sleep_for(runtime_, options_.retry_delay, stop_.token()));
  }
}

Generations Engine::generations() const {
  Generations generations;
  for (const auto& shard : shards_) {
    generations[shard->number().value()] = shard->manifest().generation;
  }
  return generations;
}

// Tells the log directory which manifests there are (directory_set.h): before the log lets go what
// they have, and before anybody builds on a change of tables or tablets. Waits while there is no
// space; any other failure ends writing.
Task<Result<void>> Engine::note_generations() {
  const Generations wanted = generations();
  CO_TRY(const auto turn, co_await note_turn_.acquire(1, {.stop = stop_.token()}));
  const auto is_noted = [&](const auto& entry) {
    const auto at = noted_generations_.find(entry.first);
    return at != noted_generations_.end() && at->second >= entry.second;
  };
  const std::string path = generations_path(options_.log_directory_or_default(), core_);
  bool waited = false;
  while (!std::ranges::all_of(wanted, is_noted)) {
    Generations now = generations();
    const auto written = co_await runtime::replace_file(runtime_, path, encode_generations(now));
    if (written) {
      noted_generations_ = std::move(now);
      if (waited) flush_error_.reset();
      if (waited) wake_everybody();
      continue;
    }
    if (!written.failed_with(Errc::no_space)) {
      fail(Error(written.error()).within("noting the generations of manifests"));
      co_return *fatal_error_;
    }
    waited = true;
    flush_error_ = written.error();
    wake_everybody();
    CO_TRY_VOID(co_await runtime::sleep_for(runtime_, options_.retry_delay, stop_.token()));
  }
  co_return {};
}

Task<Result<void>> Engine::flush(TableId table, Until until) {
  CO_TRY(const auto pass, gate_.enter());
  // What is frozen later is not waited for: others may write faster than this ever ends.
  std::vector<std::pair<Shard*, FreezeNumber>> last_freezes;
  bool found = false;
  for (const auto& shard : shards_) {
    const auto at = shard->tables().find(table);
    if (at == shard->tables().end()) continue;
    found = true;
    freeze(*shard, at->second);
    const auto& frozen = at->second->frozen();
    if (!frozen.empty()) last_freezes.emplace_back(shard.get(), frozen.back().at.number);
  }
  if (!found) co_return Error(Errc::not_found, "table {}", table);
  for (const auto& [shard, last] : last_freezes) {
    while (true) {
      CO_TRY_VOID(check_writable());
      const TableStore* store = shard->table(table);
      if (store == nullptr || store->frozen().empty()) break;
      if (store->frozen().front().at.number > last) break;
      if (flush_error_) co_return *flush_error_;
      CO_TRY_VOID(co_await files_changed_.wait(until));
    }
  }
  co_return {};
}

// ---- Compaction ----

FileSet Engine::CompactionJob::numbers() const {
  FileSet numbers;
  for (const auto& input : inputs) numbers.insert(input->record.number);
  return numbers;
}

Engine::CompactionJob Engine::begin_job(Shard& shard, const std::shared_ptr<TableStore>& table,
                                        const std::vector<FileNumber>& files) {
  const FileSet picked(files.begin(), files.end());
  CompactionJob job{.shard = &shard, .table = table, .inputs = {}};
  for (const auto& sstable : table->sstables()) {
    if (!picked.contains(sstable->record.number)) continue;
    job.inputs.push_back(sstable);
    table->set_busy(sstable->record.number);
  }
  return job;
}

std::optional<Engine::CompactionJob> Engine::pick_compaction() {
  Shard* best_shard = nullptr;
  std::shared_ptr<TableStore> best;
  std::vector<FileNumber> best_files;
  std::uint64_t best_backlog = 0;
  for (const auto& shard : shards_) {
    for (const auto& [id, table] : shard->tables()) {
      // Whoever wants all of its files waits until none is busy.
      if (table->is_wanted_whole()) continue;
      const auto candidates = table->compaction_candidates(runtime_.clock.now());
      const std::uint64_t backlog = compaction_backlog_bytes(candidates, options_.compaction);
      if (best != nullptr && backlog <= best_backlog) continue;
      auto picks = pick_size_tiered(candidates, options_.compaction);
      if (picks.empty()) continue;
      best_shard = shard.get();
      best = table;
      best_files = std::move(picks);
      best_backlog = backlog;
    }
  }
  if (best != nullptr) return begin_job(*best_shard, best, best_files);
  return pick_collection();
}

// Tables are looked through one interval after there was nothing to do.
std::optional<Engine::CompactionJob> Engine::pick_collection() {
  const runtime::MonotonicTime now = runtime_.clock.now();
  if (now < next_collection_) return std::nullopt;
  for (const auto& shard : shards_) {
    if (shard->tables().empty()) continue;
    const Knowledge knowledge = shard->knowledge();
    for (const auto& [id, table] : shard->tables()) {
      if (table->is_wanted_whole()) continue;
      const CollectionPick pick = pick_collection(*table, knowledge);
      if (pick.extent == CollectionExtent::none) continue;
      CompactionJob job = begin_job(*shard, table, pick.files);
      job.collects = pick.extent;
      return job;
    }
  }
  next_collection_ = now + options_.collection.interval;
  return std::nullopt;
}

CollectionPick Engine::pick_collection(TableStore& table, const Knowledge& knowledge) {
  const runtime::MonotonicTime now = runtime_.clock.now();
  const auto candidates = table.collection_candidates(knowledge, now);
  std::uint64_t bytes = 0;
  for (const CollectionCandidate& file : candidates) bytes += file.bytes;
  const CollectionTurn turn{
      .table = now >= table.collected_at() + options_.collection.interval,
      .little = now >= next_slow_collection_ &&
                now >= table.collected_at() + options_.collection.slow_wait(bytes),
      .left = table.flushed_since_collection()};
  CollectionPick pick = storage::pick_collection(candidates, options_.collection, turn);
  if (pick.extent == CollectionExtent::table_slowly) {
    next_slow_collection_ = now + options_.collection.slow_wait(bytes);
  }
  if (pick.extent == CollectionExtent::one_file) {
    // Until it is known what the rewrite left: a failure must not lead to another try at once.
    const auto file =
        std::ranges::find(candidates, pick.files.front(), &CollectionCandidate::number);
    table.set_garbage_left(file->number, file->collectable);
  } else if (pick.extent != CollectionExtent::none) {
    table.set_collected_at(now);
  }
  return pick;
}

Task<void> Engine::compaction_loop() {
  while (!stop_.token().stop_requested() && !fatal_error_) {
    auto job = pick_compaction();
    if (!job) {
      const Until until{.deadline = next_collection_, .stop = stop_.token()};
      const auto woken = co_await compaction_work_.wait(until);
      if (!woken && !woken.failed_with(Errc::timeout)) co_return;
      continue;
    }
    const auto compacted = co_await compact_files(std::move(*job));
    if (compacted) continue;
    if (stop_.token().stop_requested() || fatal_error_) co_return;
    co_await pause_after_failure();
  }
}

MergePlan Engine::plan_of(const CompactionJob& job) {
  const Sstable& first = *job.inputs.front();
  MergePlan plan{.table = job.table->id(),
                 .policy = job.table->options().policy,
                 .freeze_first = first.record.freeze_first,
                 .freeze_last = first.record.freeze_last,
                 .knowledge = first.metadata.at_last_freeze,
                 .tablets = job.shard->tablet_ranges(),
                 .gone = job.shard->manifest().dropped_ranges,
                 .others = {},
                 .knowledge_now = job.shard->knowledge(),
                 .inputs = job.numbers(),
                 .store = job.table};
  for (const auto& input : job.inputs) {
    if (input->record.freeze_last > plan.freeze_last) {
      plan.knowledge = input->metadata.at_last_freeze;
      plan.freeze_last = input->record.freeze_last;
    }
    plan.freeze_first = std::min(plan.freeze_first, input->record.freeze_first);
  }
  for (const auto& other : job.table->sstables()) {
    const bool older = other->record.freeze_first <= plan.freeze_last;
    if (older && !plan.inputs.contains(other->record.number)) plan.others.push_back(other);
  }
  return plan;
}

// Requires: the plan was made in this step.
Task<Result<Shard::Written>> Engine::write_compacted(const CompactionJob& job, MergePlan plan) {
  plan.ranges_bytes_max = options_.merge_ranges_bytes_max;
  // S1: what the file depends on, the clocks of now, is durable before it is entered.
  if (auto synced = co_await log_->sync_to(log_->tail(), {.stop = stop_.token()}); !synced) {
    if (!synced.failed_with(Errc::cancelled)) fail(synced.error());
    co_return std::move(synced).error();
  }
  std::vector<std::unique_ptr<EntrySource>> sources;
  for (const auto& input : job.inputs) {
    sources.push_back(
        entries_of(input->reader->cursor({.cache_use = CacheUse::bypass}), input->reader->path()));
  }
  MergedEntries merged(std::move(sources));
  co_return co_await job.shard->write_file(*job.table, merged, std::move(plan), &compaction_rate_,
                                           stop_.token());
}

Task<Result<void>> Engine::compact_files(CompactionJob job) {
  ++compactions_running_;
  auto written = co_await write_compacted(job, plan_of(job));
  --compactions_running_;
  if (written) co_return co_await replace_compacted(std::move(job), *std::move(written));
  ++statistics_.compaction_failures;
  if (!stop_.token().stop_requested()) {
    log_lines_.warn("a compaction failed", base::kv("error", written.error()));
  }
  const bool may_be_damaged = Shard::is_damage(written.error());
  for (const auto& input : job.inputs) {
    const FileNumber number = input->record.number;
    if (may_be_damaged || written.failed_with(Errc::io_error)) {
      const auto readable = co_await read_through(input);
      if (!readable && Shard::is_damage(readable.error())) {
        CO_TRY_VOID(co_await set_aside(*job.shard, *job.table, number, readable.error()));
      } else if (!readable) {
        job.table->rest(number, runtime_.clock.now(), options_.retry_delay);
      }
    } else if (written.failed_with(Errc::invalid_argument)) {
      // Together they hold more under one key than a file can.
      job.table->rest(number, runtime_.clock.now(), options_.retry_delay);
    }
    job.table->clear_busy(number);
  }
  wake_everybody();
  co_return std::move(written).error();
}

// The file stays as it is: whoever reads what it has is told, and it is not merged any more. The
// manifest says so, too, since what is decided about its keys from now on is decided without it.
Task<Result<void>> Engine::set_aside(Shard& shard, TableStore& table, FileNumber file,
                                     base::Error why) {
  log_lines_.error("a damaged file is set aside", base::kv("error", why));
  table.set_aside(file, std::move(why));
  return install_until_done(shard,
                            [&shard](ManifestState& state) { shard.enter_set_aside(state); });
}

Task<Result<void>> Engine::read_through(std::shared_ptr<const Sstable> file) {
  const auto entries =
      entries_of(file->reader->cursor({.cache_use = CacheUse::bypass}), file->reader->path());
  CO_TRY_VOID(co_await entries->seek({}));
  while (entries->valid()) {
    Entry entry;
    CO_TRY_VOID(entries->absorb_into(entry));
    CO_TRY_VOID(co_await entries->next());
  }
  co_return {};
}

// Enters the output of a compaction in the place of its inputs, and removes these.
Task<Result<void>> Engine::replace_compacted(CompactionJob job, Shard::Written written) {
  TableStore& table = *job.table;
  const FileSet inputs = job.numbers();
  bool entered = false;
  CO_TRY_VOID(co_await install_until_done(*job.shard, [&](ManifestState& state) {
    // An earlier try may have found no space, and the table may have been dropped since. One that
    // was dropped may have been made anew under the same id.
    entered = false;
    const auto record = state.tables.find(table.id());
    if (table.dropped() || record == state.tables.end()) return;
    entered = true;
    std::erase_if(record->second.sstables,
                  [&](const SstableRecord& file) { return inputs.contains(file.number); });
    if (written.file != nullptr) insert_file(record->second.sstables, written.file->record);
  }));
  ++statistics_.compactions;
  for (const auto& input : job.inputs) statistics_.compacted_bytes_read += input->record.bytes;
  statistics_.keys_gone += written.counts.keys_gone;
  statistics_.partitions_unsettled += written.counts.partitions_unsettled;
  if (written.file != nullptr) statistics_.compacted_bytes_written += written.file->record.bytes;
  if (!entered) {
    if (written.file != nullptr) co_await job.shard->remove_files({written.file});
    co_return {};
  }
  if (job.collects != CollectionExtent::none) ++statistics_.collections;
  if (job.collects != CollectionExtent::none && written.file != nullptr) {
    table.set_garbage_left(written.file->record.number,
                           collectable(written.file->metadata, job.shard->knowledge()));
  }
  table.replace_sstables(inputs, std::move(written.file));
  co_await job.shard->remove_files(std::move(job.inputs));
  wake_everybody();
  co_return {};
}

Task<Result<void>> Engine::compact(TableId table, Until until) {
  CO_TRY(const auto pass, gate_.enter());
  CO_TRY_VOID(co_await flush(table, until));
  for (const auto& shard : shards_) CO_TRY_VOID(co_await compact_shard(*shard, table, until));
  for (const auto& shard : shards_) {
    const TableStore* store = shard->table(table);
    if (store != nullptr && !store->files_aside().empty()) {
      co_return store->files_aside().begin()->second;
    }
  }
  co_return {};
}

// Merges all files of the table in the shard into one, but for those that are set aside.
Task<Result<void>> Engine::compact_shard(Shard& shard, TableId table, Until until) {
  const auto at = shard.tables().find(table);
  if (at == shard.tables().end()) co_return {};
  const std::shared_ptr<TableStore> store = at->second;
  Result<void> merged;
  {
    const TableStore::WantedWhole wanted(*store);
    merged = co_await merge_whole(shard, store, std::move(until));
  }
  compaction_work_.wake_all();
  co_return merged;
}

Task<Result<void>> Engine::merge_whole(Shard& shard, std::shared_ptr<TableStore> store,
                                       Until until) {
  while (true) {
    CO_TRY_VOID(check_writable());
    if (store->dropped()) co_return {};
    const auto busy = [&](const auto& file) { return store->busy(file->record.number); };
    if (std::ranges::any_of(store->sstables(), busy)) {
      CO_TRY_VOID(co_await files_changed_.wait(until));
      continue;
    }
    CompactionJob job{.shard = &shard, .table = store, .inputs = store->sstables()};
    std::erase_if(job.inputs, [&](const auto& file) { return store->aside(file->record.number); });
    if (job.inputs.empty()) co_return {};
    for (const auto& input : job.inputs) store->set_busy(input->record.number);
    const std::size_t aside_before = store->files_aside().size();
    auto compacted = co_await compact_files(std::move(job));
    // The others are merged without one that was found damaged.
    if (compacted || store->files_aside().size() == aside_before) co_return compacted;
  }
}

// ---- What dropped tablets leave behind ----

Shard* Engine::shard_to_purge() const {
  const auto at = std::ranges::find_if(
      shards_, [](const auto& shard) { return !shard->manifest().dropped_ranges.empty(); });
  return at == shards_.end() ? nullptr : at->get();
}

Task<void> Engine::purge_loop() {
  while (!stop_.token().stop_requested() && !fatal_error_) {
    Shard* shard = shard_to_purge();
    if (shard == nullptr) {
      if (!co_await purge_work_.wait({.stop = stop_.token()})) co_return;
      continue;
    }
    const auto purged = co_await purge(*shard);
    files_changed_.wake_all();
    if (purged) continue;
    if (stop_.token().stop_requested() || fatal_error_) co_return;
    log_lines_.warn("a dropped tablet's data is not gone yet", base::kv("error", purged.error()));
    co_await pause_after_failure();
  }
}

// Every file that was there when a range was dropped is merged once more, without the range. What
// is in memory has nothing of it: it was flushed before. Files that are set aside keep what they
// have of it, and nobody will ever ask them (create_tablet); those that no tablet needs any more
// go.
Task<Result<void>> Engine::purge(Shard& shard) {
  const std::vector<KeyRange> ranges = shard.manifest().dropped_ranges;
  std::vector<TableId> tables;
  for (const auto& [id, table] : shard.tables()) tables.push_back(id);
  for (const TableId table : tables) {
    CO_TRY_VOID(co_await compact_shard(shard, table, {.stop = stop_.token()}));
  }
  const auto unneeded = shard.unneeded_aside();
  CO_TRY_VOID(co_await install_until_done(shard, [&](ManifestState& state) {
    shard.enter_set_aside(state);
    for (const auto& [table, file] : unneeded) {
      const auto record = state.tables.find(table->id());
      if (table->dropped() || record == state.tables.end()) continue;
      std::erase_if(record->second.sstables,
                    [&](const SstableRecord& each) { return each.number == file->record.number; });
    }
    std::erase_if(state.dropped_ranges, [&](const KeyRange& range) {
      return std::ranges::find(ranges, range) != ranges.end();
    });
  }));
  for (const auto& [table, file] : unneeded) {
    if (!table->dropped()) table->replace_sstables({file->record.number}, nullptr);
    co_await shard.remove_files({file});
  }
  co_return {};
}

}  // namespace helenus::storage
