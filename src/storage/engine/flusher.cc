#include "storage/engine/flusher.h"

#include <algorithm>
#include <utility>

#include "runtime/dawdle.h"
#include "storage/read/entry_source.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

Flusher::Flusher(EngineState& state, DiskReserve& reserve, ManifestChanges& manifests,
                 MutationKeeper& mutations)
    : state_(state), reserve_(reserve), manifests_(manifests), mutations_(mutations) {
  reserve_.while_full([this] { freeze_all(); });
}

// ---- Freezing ----

void Flusher::freeze(Shard& shard, const std::shared_ptr<TableStore>& table) {
  for (const auto& index : table->indexes()) freeze(shard, index);
  if (table->active().empty() || table->dropped()) return;
  table->freeze({.number = shard.next_freeze(),
                 .log_end = state_.log->tail(),
                 .sequence = state_.staged.last_sequence(),
                 .knowledge = shard.knowledge()});
  queue_.push_back({.shard = &shard, .table = table});
  state_.signals.flush_work.wake_all();
}

void Flusher::freeze_if_due(const TableOfTablet& found) {
  const Memtable& memtable = found.table->active();
  if (found.table->active_bytes() >= state_.options.memtable_bytes_flush ||
      memtable.key_count() >= state_.options.memtable_keys_flush ||
      memtable.largest_key_bytes() >= kKeyBytesFlush ||
      state_.runtime.buggify("storage.freeze_early")) {
    freeze(*found.shard, found.shard->tables().at(found.table->id()));
  } else {
    freeze_for_room();
  }
}

void Flusher::freeze_for_room() {
  if (state_.memory.bytes() >= state_.options.memtable_bytes_max / 2 && queue_.empty())
    freeze_largest();
}

void Flusher::freeze_largest() {
  Shard* largest_shard = nullptr;
  std::shared_ptr<TableStore> largest;
  for (const auto& shard : state_.shards) {
    for (const auto& [id, table] : shard->tables()) {
      if (largest != nullptr && table->active_bytes() <= largest->active_bytes()) continue;
      largest = table;
      largest_shard = shard.get();
    }
  }
  if (largest != nullptr) freeze(*largest_shard, largest);
}

void Flusher::freeze_all() {
  if (!queue_.empty()) return;
  for (const auto& shard : state_.shards) {
    for (const auto& [id, table] : shard->tables()) freeze(*shard, table);
  }
}

Task<void> Flusher::log_pressure_loop() {
  while (true) {
    const auto streams = co_await state_.log->wait_for_pressure({.stop = state_.stop.token()});
    if (!streams) co_return;
    for (const TableId stream : *streams) {
      Shard& shard = *state_.shard_numbered(shard_of_stream(stream).value());
      const auto at = shard.tables().find(table_of_stream(stream));
      if (at != shard.tables().end()) freeze(shard, at->second);
    }
    const bool flushed =
        (co_await state_.signals.files_changed.wait({.stop = state_.stop.token()})).has_value();
    if (!flushed) co_return;
  }
}

// ---- Flushing ----

Task<void> Flusher::flush_loop() {
  while (state_.goes_on()) {
    if (queue_.empty()) {
      if (!co_await state_.signals.flush_work.wait({.stop = state_.stop.token()})) co_return;
      continue;
    }
    const FlushJob job = queue_.front();
    const Result<void> flushed = job.table->dropped() ? Result<void>() : co_await flush_oldest(job);
    if (flushed) {
      queue_.pop_front();
      state_.flush_error.reset();
      // Writers may wait for more than this one has given.
      freeze_for_room();
      state_.wake_everybody();
      continue;
    }
    if (!state_.goes_on()) co_return;
    const bool more_room =
        flushed.failed_with(Errc::no_space) && co_await reserve_.give_up_for_deletes();
    if (more_room) continue;
    ++state_.statistics.flush_failures;
    state_.logger.warn("a flush failed and is tried again", base::kv("error", flushed.error()));
    state_.flush_error = flushed.error();
    state_.wake_everybody();
    co_await state_.pause_after_failure();
  }
}

Task<Result<void>> Flusher::flush_oldest(FlushJob job) {
  Shard& shard = *job.shard;
  TableStore& table = *job.table;
  const std::shared_ptr<const Memtable> memtable = table.frozen().front().memtable;
  const Clocks dots = table.frozen().front().dots;
  const FreezeState at = table.frozen().front().at;
  const std::size_t bytes = table.frozen().front().bytes;
  // S1: what the file depends on, the clocks of the freeze, is durable before it is entered.
  if (auto synced = co_await state_.log->sync_to(at.log_end, {.stop = state_.stop.token()});
      !synced) {
    if (!synced.failed_with(Errc::cancelled)) state_.fail(synced.error());
    co_return synced;
  }
  CO_TRY(auto written, co_await write_frozen(shard, table, memtable, at));
  const auto batches = MutationKeeper::mutations_of(shard, table.id(), at.sequence);
  auto mutations = co_await shard.write_mutations(batches, at.number, state_.stop.token());
  if (!mutations) {
    if (written.file != nullptr) co_await shard.remove_files({written.file});
    co_return std::move(mutations).error();
  }
  if (state_.runtime.buggify("storage.late_manifest")) {
    static_cast<void>(
        co_await runtime::dawdle(state_.runtime, state_.options.retry_delay, state_.stop.token()));
  }
  bool entered = false;
  CO_TRY_VOID(co_await manifests_.install_until_done(shard, [&](ManifestState& state) {
    // An earlier try may have found no space, and the table may have been dropped since. One that
    // was dropped may have been made anew under the same id.
    entered = false;
    const auto record = state.tables.find(table.id());
    if (table.dropped() || record == state.tables.end()) return;
    entered = true;
    if (written.file != nullptr) enter_file(record->second.sstables, written.file->record);
    record->second.flushed.add(state_.log->core(), at.log_end);
    if (!table.is_index()) join_clocks(state, dots);
    MutationKeeper::enter_mutations(state, shard, mutations->get());
  }));
  ++state_.statistics.flushes;
  state_.statistics.keys_gone += written.counts.keys_gone;
  state_.statistics.partitions_unsettled += written.counts.partitions_unsettled;
  if (written.file != nullptr) {
    state_.statistics.flushed_bytes += written.file->record.bytes;
    reserve_.note_written(written.file->record.bytes);
  }
  if (*mutations != nullptr) reserve_.note_written((*mutations)->record.bytes);
  if (!entered) {
    // Whoever dropped the table writes its mutations into a file of their own.
    if (written.file != nullptr) co_await shard.remove_files({written.file});
    if (*mutations != nullptr) co_await shard.remove_mutation_file(*mutations);
    co_return {};
  }
  mutations_.moved_to_file(shard, batches, *std::move(mutations));
  // One that was dropped since is no longer in the account; its files go with the rest of it.
  if (!table.dropped()) state_.memory.memtables -= bytes;
  table.replace_oldest_frozen(std::move(written.file));
  // The flush is done; should this fail, writing has ended.
  if (co_await manifests_.note_generations()) state_.log->needed_from(table.stream(), at.log_end);
  co_return {};
}

Task<Result<Shard::Written>> Flusher::write_frozen(Shard& shard, const TableStore& table,
                                                   std::shared_ptr<const Memtable> memtable,
                                                   const FreezeState& at) {
  MergePlan plan{.table = table.id(),
                 .policy = table.options().policy,
                 .freeze_first = at.number,
                 .freeze_last = at.number,
                 .knowledge = at.knowledge,
                 .tablets = shard.tablet_ranges(),
                 .others = {},
                 .ranges_bytes_max = state_.options.merge_ranges_bytes_max,
                 .counters = table.counters()};
  for (const auto& file : table.sstables()) {
    if (file->record.freeze_first <= at.number) plan.others.push_back(file);
  }
  const auto source = entries_of(std::move(memtable));
  co_return co_await shard.write_file(table, *source, std::move(plan), nullptr,
                                      state_.stop.token());
}

Task<Result<void>> Flusher::flush(TableId table, Until until) {
  CO_TRY(const auto pass, state_.gate.enter());
  // What is frozen later is not waited for: others may write faster than this ever ends.
  std::vector<std::pair<Shard*, FreezeNumber>> last_freezes;
  bool found = false;
  for (const auto& shard : state_.shards) {
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
      CO_TRY_VOID(state_.check_writable());
      const TableStore* store = shard->table(table);
      if (store == nullptr || store->frozen().empty()) break;
      if (store->frozen().front().at.number > last) break;
      if (state_.flush_error) co_return *state_.flush_error;
      CO_TRY_VOID(co_await state_.signals.files_changed.wait(until));
    }
  }
  co_return {};
}

}  // namespace helenus::storage
