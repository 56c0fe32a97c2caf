#include "storage/engine/compactor.h"

#include <algorithm>
#include <utility>

#include "runtime/in_background.h"
#include "storage/engine/live_entries.h"
#include "storage/read/entry_source.h"
#include "storage/read/merged_entries.h"
#include "storage/verify/sstable_verify.h"

namespace helenus::storage {

using base::Errc;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

// How often garbage is looked for while the disk is full.
constexpr runtime::Duration kIntervalFull = std::chrono::milliseconds(500);

std::uint64_t bytes_picked(const std::vector<CompactionCandidate>& files,
                           const std::vector<FileNumber>& picked) {
  std::uint64_t bytes = 0;
  for (const CompactionCandidate& file : files) {
    if (std::ranges::binary_search(picked, file.number)) bytes += file.bytes;
  }
  return bytes;
}

}  // namespace

Compactor::Compactor(EngineState& state, DiskReserve& reserve, ManifestChanges& manifests,
                     Flusher& flusher)
    : state_(state), reserve_(reserve), manifests_(manifests), flusher_(flusher) {}

// ---- Picking ----

FileSet Compactor::CompactionJob::numbers() const {
  FileSet numbers;
  for (const auto& input : inputs) numbers.insert(input->record.number);
  return numbers;
}

Compactor::CompactionJob Compactor::begin_job(Shard& shard,
                                              const std::shared_ptr<TableStore>& table,
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

// What a delete hides in a file goes when they are merged, whatever lies in others. So the smallest
// files, those of deletes among them, are merged as far as there is room, and one more, for which
// there is room if enough of it goes. Each merge leaves fewer files, so it comes to an end.
std::optional<Compactor::CompactionJob> Compactor::pick_for_room() {
  const runtime::MonotonicTime now = state_.runtime.clock.now();
  for (const auto& shard : state_.shards) {
    if (shard->tables().empty()) continue;
    const Knowledge knowledge = shard->knowledge();
    for (const auto& [id, table] : shard->tables()) {
      if (table->is_wanted_whole() || now < table->collected_at() + kIntervalFull) continue;
      auto files = table->collection_candidates(knowledge, now);
      const bool has_garbage = std::ranges::any_of(
          files, [](const CollectionCandidate& file) { return !file.collectable.empty(); });
      std::erase_if(files, [](const CollectionCandidate& file) { return file.busy; });
      if (!has_garbage || files.size() < 2) continue;
      std::ranges::sort(files, {}, &CollectionCandidate::bytes);
      std::vector<FileNumber> picked;
      std::uint64_t bytes = 0;
      for (const CollectionCandidate& file : files) {
        picked.push_back(file.number);
        bytes += file.bytes;
        if (picked.size() >= 2 && !reserve_.has_room_for(bytes)) break;
      }
      table->set_collected_at(now);
      CompactionJob job = begin_job(*shard, table, picked);
      job.collects = CollectionExtent::table;
      return job;
    }
  }
  return std::nullopt;
}

std::optional<Compactor::CompactionJob> Compactor::pick_compaction() {
  if (reserve_.full()) {
    if (auto job = pick_for_room()) return job;
  }
  Shard* best_shard = nullptr;
  std::shared_ptr<TableStore> best;
  CompactionPick best_pick;
  std::uint64_t best_backlog = 0;
  for (const auto& shard : state_.shards) {
    for (const auto& [id, table] : shard->tables()) {
      // Whoever wants all of its files waits until none is busy.
      if (table->is_wanted_whole()) continue;
      const auto candidates = table->compaction_candidates(state_.runtime.clock.now());
      const CompactionStrategy& strategy = table->options().compaction;
      const std::uint64_t backlog =
          compaction_backlog_bytes(candidates, strategy, state_.options.compaction);
      if (best != nullptr && backlog <= best_backlog) continue;
      auto pick = storage::pick_compaction(candidates, strategy, state_.options.compaction);
      if (pick.empty() || !reserve_.has_room_for(bytes_picked(candidates, pick.files))) continue;
      best_shard = shard.get();
      best = table;
      best_pick = std::move(pick);
      best_backlog = backlog;
    }
  }
  if (best == nullptr) return pick_collection();
  CompactionJob job = begin_job(*best_shard, best, best_pick.files);
  job.level = best_pick.level;
  job.file_bytes_max = best_pick.file_bytes_max;
  return job;
}

CollectionOptions Compactor::collection_options() const {
  CollectionOptions options = state_.options.collection;
  if (reserve_.full()) options.interval = std::min(options.interval, kIntervalFull);
  return options;
}

runtime::MonotonicTime Compactor::next_collection() const {
  if (looked_for_garbage_.is_never()) return {};
  return looked_for_garbage_ + collection_options().interval;
}

// Tables are looked through one interval after there was nothing to do.
std::optional<Compactor::CompactionJob> Compactor::pick_collection() {
  const runtime::MonotonicTime now = state_.runtime.clock.now();
  if (now < next_collection()) return std::nullopt;
  for (const auto& shard : state_.shards) {
    if (shard->tables().empty()) continue;
    const Knowledge knowledge = shard->knowledge();
    for (const auto& [id, table] : shard->tables()) {
      if (table->is_wanted_whole()) continue;
      const CollectionPick pick = pick_collection(*table, knowledge);
      if (pick.extent == CollectionExtent::none) continue;
      CompactionJob job = begin_job(*shard, table, pick.files);
      job.collects = pick.extent;
      place(job);
      return job;
    }
  }
  looked_for_garbage_ = now;
  return std::nullopt;
}

// One file stays where it is; all of them are laid out anew.
void Compactor::place(CompactionJob& job) {
  const CompactionStrategy& strategy = job.table->options().compaction;
  if (strategy.rule != CompactionRule::leveled) return;
  if (job.inputs.size() == 1) {
    job.level = job.inputs.front()->record.level;
    return;
  }
  std::uint64_t bytes = 0;
  for (const auto& input : job.inputs) bytes += input->record.bytes;
  job.level = level_for(bytes, strategy);
  job.file_bytes_max = strategy.file_bytes;
}

CollectionPick Compactor::pick_collection(TableStore& table, const Knowledge& knowledge) {
  const runtime::MonotonicTime now = state_.runtime.clock.now();
  const CompactionStrategy& strategy = table.options().compaction;
  if (!strategy.enabled && !reserve_.full()) return {};
  const auto candidates = table.collection_candidates(knowledge, now);
  std::uint64_t bytes = 0;
  for (const CollectionCandidate& file : candidates) bytes += file.bytes;
  const CollectionOptions options = collection_options();
  // One by one, if at all (pick_for_room).
  if (candidates.size() > 1 && !reserve_.has_room_for(bytes)) return {};
  const bool slowly = collected_slowly_.is_never() ||
                      now >= collected_slowly_ + options.slow_wait(collected_slowly_bytes_);
  const CollectionTurn turn{
      .table = now >= table.collected_at() + options.interval,
      .little = slowly && now >= table.collected_at() + options.slow_wait(bytes),
      .left = table.flushed_since_collection()};
  CollectionPick pick = storage::pick_collection(candidates, options, turn);
  // Windows stay apart: what is over goes with its file.
  const bool keeps_windows = strategy.rule == CompactionRule::time_window && !reserve_.full();
  if (keeps_windows && pick.extent != CollectionExtent::one_file) return {};
  if (pick.extent == CollectionExtent::table_slowly) {
    collected_slowly_ = now;
    collected_slowly_bytes_ = bytes;
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

// ---- Merging ----

Task<void> Compactor::compaction_loop() {
  while (state_.goes_on()) {
    auto job = pick_compaction();
    if (!job) {
      const Until until{.deadline = next_collection(), .stop = state_.stop.token()};
      const auto woken = co_await state_.signals.compaction_work.wait(until);
      if (!woken && !woken.failed_with(Errc::timeout)) co_return;
      continue;
    }
    const auto compacted = co_await compact_files(std::move(*job));
    if (compacted) continue;
    if (!state_.goes_on()) co_return;
    co_await state_.pause_after_failure();
  }
}

MergePlan Compactor::plan_of(const CompactionJob& job) {
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
                 .store = job.table,
                 .file_bytes_max = job.file_bytes_max,
                 .level = job.level,
                 .counters = job.table->counters()};
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
  plan.is_copy = !plan.others.empty() && std::ranges::any_of(job.inputs, [](const auto& input) {
    return input->metadata.is_copy;
  });
  return plan;
}

Task<Result<Compactor::Merged>> Compactor::write_outputs(const CompactionJob& job,
                                                         EntrySource& source, MergePlan plan) {
  Merged merged;
  Result<void> outcome;
  do {
    auto written = co_await job.shard->write_file(*job.table, source, plan,
                                                  &reserve_.merge_throttle(), state_.stop.token());
    if (!written) {
      outcome = std::move(written).error();
      break;
    }
    if (written->file != nullptr) merged.files.push_back(std::move(written->file));
    merged.counts.keys_gone += written->counts.keys_gone;
    merged.counts.partitions_unsettled += written->counts.partitions_unsettled;
    plan.goes_on = true;
  } while (source.valid());
  if (outcome) co_return merged;
  co_await job.shard->remove_files(std::move(merged.files));
  co_return std::move(outcome).error();
}

Task<Result<Compactor::Merged>> Compactor::write_compacted(const CompactionJob& job,
                                                           MergePlan plan) {
  plan.ranges_bytes_max = state_.options.merge_ranges_bytes_max;
  // S1: what the file depends on, the clocks of now, is durable before it is entered.
  if (auto synced = co_await state_.log->sync_to(state_.log->tail(), {.stop = state_.stop.token()});
      !synced) {
    if (!synced.failed_with(Errc::cancelled)) state_.fail(synced.error());
    co_return std::move(synced).error();
  }
  std::vector<std::unique_ptr<EntrySource>> sources;
  for (const auto& input : job.inputs) {
    sources.push_back(
        entries_of(input->reader->cursor({.cache_use = CacheUse::bypass}), input->reader->path()));
  }
  MergedEntries merged(std::move(sources));
  if (const TableStore* const indexed = table_to_look_into(job); indexed != nullptr) {
    LiveEntries live(state_, *job.shard, *job.table, *indexed, merged);
    auto written = co_await write_outputs(job, live, std::move(plan));
    state_.statistics.index_entries_stale += live.stale();
    co_return written;
  }
  co_return co_await write_outputs(job, merged, std::move(plan));
}

// Of an index whose files are merged all together, so that each entry is looked for not too often.
const TableStore* Compactor::table_to_look_into(const CompactionJob& job) {
  const TableStore& index = *job.table;
  if (!index.is_index() || !index.index_is_built() || !index.derives_entries()) return nullptr;
  if (job.inputs.size() != index.sstables().size()) return nullptr;
  return job.shard->table(index.options().index->table);
}

Task<Result<void>> Compactor::compact_files(CompactionJob job) {
  MergePlan plan = plan_of(job);
  plan.keys_done = std::make_shared<std::uint64_t>(0);
  const auto running =
      running_.insert(running_.end(), Running{.job = &job, .keys_done = plan.keys_done});
  auto written = co_await write_compacted(job, std::move(plan));
  running_.erase(running);
  if (written) co_return co_await replace_compacted(std::move(job), *std::move(written));
  ++state_.statistics.compaction_failures;
  if (!state_.stop.token().stop_requested()) {
    state_.logger.warn("a compaction failed", base::kv("error", written.error()));
  }
  const bool may_be_damaged = Shard::is_damage(written.error());
  const FileNumber largest = (*std::ranges::max_element(job.inputs, {}, [](const auto& input) {
                               return input->record.bytes;
                             }))->record.number;
  for (const auto& input : job.inputs) {
    const FileNumber number = input->record.number;
    if (may_be_damaged || written.failed_with(Errc::io_error)) {
      const auto readable = co_await read_through(input);
      if (!readable && Shard::is_damage(readable.error())) {
        CO_TRY_VOID(co_await set_aside(*job.shard, *job.table, number, readable.error()));
      } else if (!readable) {
        job.table->rest(number, state_.runtime.clock.now(), state_.options.retry_delay);
      }
    } else if (written.failed_with(Errc::invalid_argument) ||
               (written.failed_with(Errc::no_space) && number == largest)) {
      // Together they hold more under one key than a file can. Or the disk has no room for it.
      job.table->rest(number, state_.runtime.clock.now(), state_.options.retry_delay);
    }
    job.table->clear_busy(number);
  }
  state_.wake_everybody();
  co_return std::move(written).error();
}

Task<Result<void>> Compactor::set_aside(Shard& shard, TableStore& table, FileNumber file,
                                        base::Error why) {
  state_.logger.error("a damaged file is set aside", base::kv("error", why));
  table.set_aside(file, std::move(why));
  return manifests_.install_until_done(
      shard, [&shard](ManifestState& state) { shard.enter_set_aside(state); });
}

Task<Result<void>> Compactor::read_through(std::shared_ptr<const Sstable> file) {
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

Task<Result<void>> Compactor::replace_compacted(CompactionJob job, Merged merged) {
  TableStore& table = *job.table;
  const FileSet inputs = job.numbers();
  bool entered = false;
  CO_TRY_VOID(co_await manifests_.install_until_done(*job.shard, [&](ManifestState& state) {
    // An earlier try may have found no space, and the table may have been dropped since. One that
    // was dropped may have been made anew under the same id.
    entered = false;
    const auto record = state.tables.find(table.id());
    if (table.dropped() || record == state.tables.end()) return;
    entered = true;
    std::erase_if(record->second.sstables,
                  [&](const SstableRecord& file) { return inputs.contains(file.number); });
    for (const auto& file : merged.files) enter_file(record->second.sstables, file->record);
  }));
  ++state_.statistics.compactions;
  std::uint64_t bytes_read = 0;
  for (const auto& input : job.inputs) bytes_read += input->record.bytes;
  state_.statistics.compacted_bytes_read += bytes_read;
  state_.statistics.keys_gone += merged.counts.keys_gone;
  state_.statistics.partitions_unsettled += merged.counts.partitions_unsettled;
  for (const auto& file : merged.files) {
    state_.statistics.compacted_bytes_written += file->record.bytes;
  }
  if (!entered) {
    co_await job.shard->remove_files(std::move(merged.files));
    co_return {};
  }
  if (job.collects != CollectionExtent::none) ++state_.statistics.collections;
  if (job.collects != CollectionExtent::none) {
    for (const auto& file : merged.files) {
      table.set_garbage_left(file->record.number,
                             collectable(file->metadata, job.shard->knowledge()));
    }
  }
  table.replace_sstables(inputs, std::move(merged.files));
  co_await job.shard->remove_files(std::move(job.inputs));
  reserve_.note_removed(bytes_read);
  state_.wake_everybody();
  co_return {};
}

std::vector<RunningCompaction> Compactor::running_compactions() const {
  std::vector<RunningCompaction> compactions;
  for (const Running& running : running_) {
    const CompactionJob& job = *running.job;
    RunningCompaction told{.table = job.table->id(),
                           .rule = job.table->options().compaction.rule,
                           .collects = job.collects != CollectionExtent::none,
                           .files = job.inputs.size(),
                           .level = job.level,
                           .keys_done = *running.keys_done};
    for (const auto& input : job.inputs) {
      told.bytes += input->record.bytes;
      told.keys += input->record.keys;
    }
    compactions.push_back(told);
  }
  return compactions;
}

std::vector<TableId> Compactor::indexes_of(TableId table) const {
  std::vector<TableId> indexes;
  for (const auto& shard : state_.shards) {
    const TableStore* store = shard->table(table);
    if (store == nullptr) continue;
    for (const auto& index : store->indexes()) indexes.push_back(index->id());
    break;
  }
  return indexes;
}

// ---- Reading all there is ----

void Compactor::suspect(TableId table) {
  if (suspects_.insert(table).second) state_.signals.verify_work.wake_all();
}

Task<void> Compactor::verify_loop() {
  while (state_.goes_on()) {
    if (suspects_.empty()) {
      if (!co_await state_.signals.verify_work.wait({.stop = state_.stop.token()})) co_return;
      continue;
    }
    const TableId table = *suspects_.begin();
    const auto verified = co_await verify(table, {.stop = state_.stop.token()});
    suspects_.erase(table);
    if (!verified && state_.goes_on()) {
      state_.logger.warn("a table cannot be read through", base::kv("table", table),
                         base::kv("error", verified.error()));
      co_await state_.pause_after_failure();
    }
  }
}

Task<Result<void>> Compactor::verify_file(Shard& shard, std::shared_ptr<TableStore> table,
                                          std::shared_ptr<const Sstable> file, Until until) {
  const auto is_here = [&] {
    return !table->dropped() && !table->aside(file->record.number) &&
           std::ranges::find(table->sstables(), file) != table->sstables().end();
  };
  // Merged away since, or known.
  if (!is_here()) co_return {};
  // From the disk, all of it: what is in the cache, or kept of an open file, was sound once.
  const auto readable = co_await verify_sstable(state_.runtime, state_.sstables,
                                                file->reader->path(), {}, std::move(until));
  if (readable || !is_here()) co_return {};
  const bool is_news = Shard::is_damage(readable.error()) && is_here();
  if (is_news) {
    CO_TRY_VOID(co_await set_aside(shard, *table, file->record.number, readable.error()));
  }
  co_return readable.error();
}

// What it meets first, after all of it was read.
Task<Result<void>> Compactor::verify(TableId table, Until until) {
  CO_TRY(const auto pass, state_.gate.enter());
  Result<void> outcome;
  bool is_here = false;
  std::size_t read = 0;
  std::uint64_t bytes = 0;
  for (const auto& shard : state_.shards) {
    const auto at = shard->tables().find(table);
    if (at == shard->tables().end()) continue;
    is_here = true;
    const std::shared_ptr<TableStore> store = at->second;
    const SstableList files = store->sstables();
    for (const auto& file : files) {
      if (until.stop.stop_requested()) co_return Error(Errc::cancelled);
      auto verified = verify_file(*shard, store, file, until);
      auto done = co_await runtime::in_background(state_.runtime, std::move(verified));
      if (!done && outcome) outcome = std::move(done);
      ++read;
      bytes += file->record.bytes;
    }
    if (outcome && !store->files_aside().empty()) outcome = store->files_aside().begin()->second;
  }
  state_.logger.info("files of a table were read through", base::kv("table", table),
                     base::kv("files", read), base::kv("bytes", bytes),
                     base::kv("sound", outcome.has_value()));
  if (!is_here) co_return Error(Errc::not_found, "table {}", table);
  co_return outcome;
}

Task<Result<void>> Compactor::verify_mutations(Until until) {
  CO_TRY(const auto pass, state_.gate.enter());
  Result<void> outcome;
  for (const auto& shard : state_.shards) {
    const auto is_here = [&](FileNumber number) {
      return std::ranges::any_of(shard->mutation_files(), [&](const LiveMutationFile& each) {
        return each.file->record.number == number;
      });
    };
    const std::vector<LiveMutationFile> files = shard->mutation_files();
    for (const LiveMutationFile& each : files) {
      if (until.stop.stop_requested()) co_return Error(Errc::cancelled);
      const FileNumber number = each.file->record.number;
      auto verified = verify_sstable(state_.runtime, state_.sstables,
                                     shard->path_of(each.file->record), {}, until);
      const auto done = co_await runtime::in_background(state_.runtime, std::move(verified));
      if (done || !is_here(number)) continue;
      if (Shard::is_damage(done.error()) && !shard->mutation_file_aside(number)) {
        state_.logger.error("a damaged mutation file is set aside",
                            base::kv("error", done.error()));
        shard->set_mutation_file_aside(number);
      }
      if (outcome) outcome = done.error();
    }
  }
  co_return outcome;
}

Task<Result<void>> Compactor::compact(TableId table, Until until) {
  CO_TRY(const auto pass, state_.gate.enter());
  CO_TRY_VOID(co_await flusher_.flush(table, until));
  for (const auto& shard : state_.shards) {
    auto merged = compact_shard(*shard, table, until);
    CO_TRY_VOID(co_await runtime::in_background(state_.runtime, std::move(merged)));
  }
  for (const TableId index : indexes_of(table)) {
    auto compacted = co_await compact(index, until);
    if (!compacted && !compacted.failed_with(Errc::not_found)) co_return compacted;
  }
  for (const auto& shard : state_.shards) {
    const TableStore* store = shard->table(table);
    if (store != nullptr && !store->files_aside().empty()) {
      co_return store->files_aside().begin()->second;
    }
  }
  co_return {};
}

Task<Result<void>> Compactor::compact_shard(Shard& shard, TableId table, Until until) {
  const auto at = shard.tables().find(table);
  if (at == shard.tables().end()) co_return {};
  const std::shared_ptr<TableStore> store = at->second;
  Result<void> merged;
  {
    const TableStore::WantedWhole wanted(*store);
    merged = co_await merge_whole(shard, store, std::move(until));
  }
  state_.signals.compaction_work.wake_all();
  co_return merged;
}

Task<Result<void>> Compactor::merge_whole(Shard& shard, std::shared_ptr<TableStore> store,
                                          Until until) {
  while (true) {
    CO_TRY_VOID(state_.check_writable());
    if (store->dropped()) co_return {};
    const auto busy = [&](const auto& file) { return store->busy(file->record.number); };
    if (std::ranges::any_of(store->sstables(), busy)) {
      CO_TRY_VOID(co_await state_.signals.files_changed.wait(until));
      continue;
    }
    CompactionJob job{.shard = &shard, .table = store, .inputs = store->sstables()};
    std::erase_if(job.inputs, [&](const auto& file) { return store->aside(file->record.number); });
    if (job.inputs.empty()) co_return {};
    for (const auto& input : job.inputs) store->set_busy(input->record.number);
    place(job);
    const std::size_t aside_before = store->files_aside().size();
    auto compacted = co_await compact_files(std::move(job));
    // The others are merged without one that was found damaged.
    if (compacted || store->files_aside().size() == aside_before) co_return compacted;
  }
}

// ---- What dropped tablets leave behind ----

Shard* Compactor::shard_to_purge() const {
  const auto at = std::ranges::find_if(
      state_.shards, [](const auto& shard) { return !shard->manifest().dropped_ranges.empty(); });
  return at == state_.shards.end() ? nullptr : at->get();
}

Task<void> Compactor::purge_loop() {
  while (state_.goes_on()) {
    Shard* shard = shard_to_purge();
    if (shard == nullptr) {
      if (!co_await state_.signals.purge_work.wait({.stop = state_.stop.token()})) co_return;
      continue;
    }
    const auto purged = co_await purge(*shard);
    state_.signals.files_changed.wake_all();
    if (purged) continue;
    if (!state_.goes_on()) co_return;
    state_.logger.warn("a dropped tablet's data is not gone yet",
                       base::kv("error", purged.error()));
    co_await state_.pause_after_failure();
  }
}

Task<Result<void>> Compactor::purge(Shard& shard) {
  const std::vector<KeyRange> ranges = shard.manifest().dropped_ranges;
  std::vector<TableId> tables;
  for (const auto& [id, table] : shard.tables()) tables.push_back(id);
  for (const TableId table : tables) {
    CO_TRY_VOID(co_await compact_shard(shard, table, {.stop = state_.stop.token()}));
  }
  const auto unneeded = shard.unneeded_aside();
  CO_TRY_VOID(co_await manifests_.install_until_done(shard, [&](ManifestState& state) {
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
    if (!table->dropped()) table->replace_sstables({file->record.number}, {});
    co_await shard.remove_files({file});
  }
  co_return {};
}

}  // namespace helenus::storage
