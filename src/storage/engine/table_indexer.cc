#include "storage/engine/table_indexer.h"

#include <algorithm>

#include "runtime/take_turn.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;

std::vector<TableIndexer::Job> TableIndexer::jobs() const {
  std::vector<Job> jobs;
  for (const auto& shard : state_.shards) {
    for (const auto& [id, index] : shard->tables()) {
      if (!index->is_index() || index->index_is_built() || !index->derives_entries()) continue;
      const auto table = shard->tables().find(index->options().index->table);
      if (table == shard->tables().end()) continue;
      jobs.push_back({.shard = shard.get(), .index = index, .table = table->second});
    }
  }
  return jobs;
}

Task<void> TableIndexer::build_loop() {
  while (state_.goes_on()) {
    const std::vector<Job> waiting = jobs();
    if (waiting.empty()) {
      if (!co_await state_.signals.index_work.wait({.stop = state_.stop.token()})) co_return;
      continue;
    }
    bool failed = false;
    for (const Job& job : waiting) {
      if (job.index->dropped()) continue;
      const Result<void> built = co_await build(job);
      if (!state_.goes_on()) co_return;
      if (built || job.index->dropped()) continue;
      failed = true;
      state_.logger.warn("an index could not be built and is tried again",
                         base::kv("index", job.index->id()), base::kv("error", built.error()));
    }
    if (failed) co_await state_.pause_after_failure();
  }
}

Task<Result<void>> TableIndexer::build(Job job) {
  const TableStore& table = *job.table;
  const bool has_rows =
      !table.active().empty() || !table.frozen().empty() || !table.sstables().empty();
  if (has_rows) {
    std::vector<TabletId> tablets;
    for (const auto& [id, tablet] : job.shard->tablets()) tablets.push_back(id);
    for (const TabletId tablet : tablets) CO_TRY_VOID(co_await build_tablet(job, tablet));
    CO_TRY_VOID(co_await flusher_.flush(job.index->id(), {.stop = state_.stop.token()}));
  }
  if (job.index->dropped()) co_return {};
  CO_TRY_VOID(co_await manifests_.install_until_done(*job.shard, [&](ManifestState& state) {
    const auto record = state.tables.find(job.index->id());
    if (!job.index->dropped() && record != state.tables.end()) {
      record->second.index_is_built = true;
    }
  }));
  CO_TRY_VOID(co_await manifests_.note_generations());
  job.index->set_index_built();
  state_.wake_everybody();
  if (has_rows) {
    state_.logger.info("an index is built", base::kv("index", job.index->id()),
                       base::kv("of", table.id()), base::kv("shard", job.shard->name()));
  }
  co_return {};
}

Task<Result<void>> TableIndexer::build_tablet(const Job& job, TabletId tablet) {
  CO_TRY(auto pass, state_.gate.enter());
  const Tablet* found = job.shard->tablet(tablet);
  if (found == nullptr || found->dropping) co_return {};
  SstableCursorOptions options;
  options.until = {.stop = state_.stop.token()};
  TableCursor cursor(std::move(pass), job.table->view(), found->range, found->durable,
                     state_.staged.durable_sequence(), options);
  DerivedEntry last;
  CO_TRY_VOID(co_await cursor.seek_first());
  for (std::size_t rows = 1; cursor.valid(); ++rows) {
    // It may have gone meanwhile.
    found = job.shard->tablet(tablet);
    if (found == nullptr || found->dropping || job.index->dropped()) co_return {};
    CO_TRY_VOID(add_row(job, *found, cursor, last));
    if (rows % kRowsPerTurn == 0) CO_TRY_VOID(co_await pause(job, tablet));
    CO_TRY_VOID(co_await cursor.next());
  }
  co_return {};
}

Result<void> TableIndexer::add_row(const Job& job, const Tablet& tablet, TableCursor& cursor,
                                   DerivedEntry& last) {
  TRY(const auto stored, cursor.read());
  ++state_.statistics.index_rows_read;
  for (const auto& [row, cells] : stored.rows()) {
    for (const auto& [column, cell] : cells.cells()) {
      for (const causality::Version& version : cell.versions()) {
        const causality::CellChange change{.row = row,
                                           .column = column,
                                           .kind = version.kind,
                                           .expires = version.expires,
                                           .value = version.value};
        const std::size_t before = job.index->active_bytes();
        job.index->apply_entries(tablet.id, tablet.range.from, cursor.partition(),
                                 {.dot = version.dot,
                                  .context = {},
                                  .timestamp = version.timestamp,
                                  .cells = {&change, 1}},
                                 state_.staged.last_sequence(), &last);
        state_.memory.memtables += job.index->active_bytes() - before;
      }
    }
  }
  return {};
}

Task<Result<void>> TableIndexer::pause(const Job& job, TabletId tablet) {
  if (Tablet* found = job.shard->tablet(tablet); found != nullptr && !job.index->dropped()) {
    flusher_.freeze_if_due({.shard = job.shard, .table = job.index.get(), .tablet = found});
  }
  while (state_.memory.bytes() >= state_.options.memtable_bytes_max) {
    if (state_.flush_error) co_return *state_.flush_error;
    CO_TRY_VOID(co_await state_.signals.room_changed.wait({.stop = state_.stop.token()}));
  }
  co_return co_await runtime::take_turn(state_.runtime, {.stop = state_.stop.token()});
}

}  // namespace helenus::storage
