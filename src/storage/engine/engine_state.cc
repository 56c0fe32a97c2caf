#include "storage/engine/engine_state.h"

#include <algorithm>
#include <utility>

#include "runtime/sleep.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;

EngineSignals::EngineSignals(runtime::Runtime& runtime)
    : flush_work(runtime),
      compaction_work(runtime),
      mutation_work(runtime),
      purge_work(runtime),
      index_work(runtime),
      verify_work(runtime),
      room_changed(runtime),
      files_changed(runtime) {}

void EngineSignals::wake_everybody() {
  flush_work.wake_all();
  compaction_work.wake_all();
  mutation_work.wake_all();
  purge_work.wake_all();
  verify_work.wake_all();
  room_changed.wake_all();
  files_changed.wake_all();
}

EngineState::EngineState(runtime::Runtime& its_runtime, EngineOptions its_options)
    : runtime(its_runtime),
      options(std::move(its_options)),
      logger(runtime.logger("storage.engine")),
      file_reads(runtime, options.file_reads_max, SIZE_MAX),
      sstables(options.block_cache_bytes),
      operations(options.operations),
      compaction_rate(runtime, options.compaction_bytes_per_second, stop.token()),
      signals(runtime),
      gate(runtime) {
  sstables.reads = &file_reads;
}

Tablet* EngineState::find_tablet(TabletId tablet) const {
  Shard* shard = shard_of(tablet);
  Tablet* found = shard == nullptr ? nullptr : shard->tablet(tablet);
  return found == nullptr || found->dropping ? nullptr : found;
}

bool EngineState::has_indexes() const {
  for (const auto& shard : shards) {
    for (const auto& [id, table] : shard->tables()) {
      if (table->is_index()) return true;
    }
  }
  return false;
}

Result<TableOfTablet> EngineState::find(TableId table, TabletId tablet) const {
  TableOfTablet found{.shard = shard_of(tablet)};
  if (found.shard == nullptr) return Error(Errc::not_found, "tablet {} on this core", tablet);
  found.table = found.shard->table(table);
  if (found.table == nullptr) return Error(Errc::not_found, "table {}", table);
  found.tablet = find_tablet(tablet);
  if (found.tablet == nullptr) return Error(Errc::not_found, "tablet {}", tablet);
  if (found.tablet->lost_mutations) return found.tablet->lost_mutations->why;
  if (!restoring.empty() && restoring.contains(tablet)) {
    return Error(Errc::unavailable, "tablet {} is being restored from a snapshot", tablet);
  }
  return found;
}

std::vector<TabletId> EngineState::tablets_in_doubt() const {
  std::vector<TabletId> doubtful;
  for (const auto& shard : shards) {
    for (const auto& [id, tablet] : shard->tablets()) {
      if (tablet->in_doubt) doubtful.push_back(id);
    }
  }
  return doubtful;
}

namespace {

bool is_damaged(const Shard& shard, const Tablet& tablet) {
  if (tablet.lost_mutations) return true;
  return std::ranges::any_of(shard.tables(), [&](const auto& each) {
    const TableStore& table = *each.second;
    return !table.files_aside().empty() &&
           std::ranges::any_of(table.sstables(), [&](const auto& file) {
             return table.aside(file->record.number) &&
                    shard.has_part_in(tablet.range, file->record);
           });
  });
}

}  // namespace

std::vector<TabletId> EngineState::damaged_tablets() const {
  std::vector<TabletId> damaged;
  for (const auto& shard : shards) {
    for (const auto& [id, tablet] : shard->tablets()) {
      if (!tablet->dropping && is_damaged(*shard, *tablet)) damaged.push_back(id);
    }
  }
  std::ranges::sort(damaged);
  return damaged;
}

Result<void> EngineState::check_writable() const {
  if (fatal_error()) return *fatal_error();
  if (gate.closed()) return Error(Errc::closed, "the engine has stopped");
  return {};
}

void EngineState::fail(Error error) {
  if (own_fatal_error) return;
  logger.error("writing has ended", base::kv("error", error));
  own_fatal_error = std::move(error);
  wake_everybody();
}

Task<void> EngineState::pause_after_failure() {
  (void)co_await runtime::sleep_for(runtime, options.retry_delay, stop.token());
}

}  // namespace helenus::storage
