#include "storage/engine/mutation_keeper.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/sleep.h"

namespace helenus::storage {

using base::ByteView;
using base::Result;
using causality::Clock;
using runtime::Task;

MutationKeeper::MutationKeeper(EngineState& state, ManifestChanges& manifests)
    : state_(state), manifests_(manifests) {}

// ---- Keeping ----

void MutationKeeper::keep(Tablet& tablet, const TableStore& table, ByteView partition,
                          const causality::Delta& delta, base::Bytes record,
                          std::uint64_t sequence) {
  const bool ordered = table.options().policy == causality::Policy::lww;
  if (ordered) {
    const std::size_t floors_before = tablet.floors.memory_bytes();
    tablet.floors.add(table.id(), partition, delta);
    state_.memory.floors = state_.memory.floors + tablet.floors.memory_bytes() - floors_before;
    bound_floors();
  }
  if (delta.operation) {
    tablet.operations.note(causality::time_of(*delta.operation), tablet.clock, delta.dot);
    state_.operations.remember(*delta.operation);
  }
  const std::size_t bytes_before = tablet.mutations.memory_bytes();
  tablet.mutations.add({.dot = delta.dot,
                        .table = table.id(),
                        .timestamp = ordered ? delta.timestamp : causality::kTimestampMin,
                        .record = std::move(record),
                        .operation = delta.operation},
                       sequence);
  state_.memory.mutations += tablet.mutations.memory_bytes() - bytes_before;
}

void MutationKeeper::bound_floors() {
  while (state_.memory.floors > state_.aside_bytes_max()) {
    Tablet* largest = nullptr;
    for (const auto& shard : state_.shards) {
      for (const auto& [id, tablet] : shard->tablets()) {
        if (largest != nullptr && tablet->floors.memory_bytes() <= largest->floors.memory_bytes()) {
          continue;
        }
        largest = tablet.get();
      }
    }
    ASSERT(largest != nullptr && largest->floors.memory_bytes() > 0, "the account is wrong");
    state_.memory.floors -= largest->floors.memory_bytes();
    largest->floors.shrink();
    state_.memory.floors += largest->floors.memory_bytes();
  }
}

void MutationKeeper::count_dots() {
  state_.memory.dots = 0;
  for (const auto& shard : state_.shards) state_.memory.dots += shard->mutation_dots_bytes();
}

std::vector<TabletBatch> MutationKeeper::mutations_of(const Shard& shard, TableId table,
                                                      std::uint64_t sequence_last) {
  std::vector<TabletBatch> batches;
  for (const auto& [id, tablet] : shard.tablets()) {
    if (tablet->mutations.count_in_memory() == 0) continue;
    batches.push_back(
        {.tablet = id, .mutations = tablet->mutations.of_table(table, sequence_last)});
  }
  return batches;
}

std::vector<TabletBatch> MutationKeeper::mutations_in_memory(const Shard& shard) {
  std::vector<TabletBatch> batches;
  for (const auto& [id, tablet] : shard.tablets()) {
    bool all = false;
    batches.push_back(
        {.tablet = id,
         .mutations = tablet->mutations.in_memory(tablet->mutations.kept(), SIZE_MAX, all)});
  }
  return batches;
}

void MutationKeeper::enter_mutations(ManifestState& state, const Shard& shard,
                                     const MutationFile* file) {
  for (const auto& [id, tablet] : shard.tablets()) {
    const std::int64_t floor = tablet->operations.floor().value();
    if (floor > 0) {
      state.operation_floor = std::max(state.operation_floor, static_cast<std::uint64_t>(floor));
    }
    const auto record = state.tablets.find(id);
    if (record == state.tablets.end()) continue;  // it is being dropped
    record->second.shed = tablet->mutations.shed();
    if (record->second.shed.empty()) record->second.shed_largest = causality::kTimestampMin;
    record->second.covered =
        causality::subtract(record->second.covered, tablet->mutations.stable());
  }
  if (file == nullptr) return;
  enter_file(state.mutation_files, file->record);
}

void MutationKeeper::moved_to_file(Shard& shard, const std::vector<TabletBatch>& batches,
                                   std::shared_ptr<const MutationFile> file) {
  if (file == nullptr) return;
  for (const TabletBatch& batch : batches) {
    Tablet* owner = shard.tablet(batch.tablet);
    if (owner == nullptr) continue;  // it was dropped
    MutationLog& mutations = owner->mutations;
    const std::size_t bytes_before = mutations.memory_bytes();
    mutations.moved_to_file(batch.mutations);
    state_.memory.mutations -= bytes_before - mutations.memory_bytes();
    state_.statistics.mutations_moved += batch.mutations.size();
  }
  state_.statistics.mutation_bytes_written += file->record.bytes;
  shard.add_mutation_file(std::move(file));
  count_dots();
  state_.signals.mutation_work.wake_all();
}

void MutationKeeper::cover(Tablet& tablet, const Clock& dots) {
  const std::size_t bytes_before = tablet.mutations.memory_bytes();
  tablet.mutations.cover(dots);
  state_.memory.mutations -= bytes_before - tablet.mutations.memory_bytes();
}

void MutationKeeper::forget(const Tablet& tablet) {
  state_.memory.mutations -= tablet.mutations.memory_bytes();
  state_.memory.floors -= tablet.floors.memory_bytes();
}

void MutationKeeper::set_watermarks(TabletId tablet,
                                    std::vector<std::optional<causality::Watermark>> watermarks) {
  Tablet* replica = state_.find_tablet(tablet);
  if (replica == nullptr) return;
  replica->watermarks = std::move(watermarks);
  const Clock stable =
      replica->alone()
          ? replica->clock
          : causality::stability(replica->clock, causality::WallTime{0}, replica->watermarks).dots;
  const auto& lost = replica->lost_mutations;
  const bool found_again = lost && (replica->alone() || stable.covers(lost->among));
  if (found_again) replica->lost_mutations.reset();
  state_.memory.floors -= replica->floors.memory_bytes();
  if (replica->alone()) {
    replica->floors.clear();
  } else {
    replica->floors.collect(stable);
  }
  state_.memory.floors += replica->floors.memory_bytes();
  const bool in_files = collect(*replica);
  if (in_files || found_again) state_.signals.mutation_work.wake_all();
}

bool MutationKeeper::collect(Tablet& tablet) {
  const std::size_t bytes_before = tablet.mutations.memory_bytes();
  tablet.mutations.collect(tablet.releasable());
  state_.memory.mutations -= bytes_before - tablet.mutations.memory_bytes();
  const bool in_files = state_.shard_of(tablet.id)->collect_mutations(tablet);
  if (in_files) count_dots();
  return in_files;
}

// ---- Operation ids ----

Task<void> MutationKeeper::operation_loop() {
  constexpr std::int64_t kMarksPerWindow = 16;
  const OperationWindow& window = state_.options.operations;
  const std::chrono::milliseconds period(
      std::max<std::int64_t>(1, (window.window_ms + window.skew_ms) / kMarksPerWindow));
  while (state_.goes_on()) {
    state_.tell_operations();
    bool in_files = false;
    for (const auto& shard : state_.shards) {
      for (const auto& [id, tablet] : shard->tablets()) {
        if (!tablet->operations.holds()) continue;
        tablet->operations.mark(tablet->clock);
        tablet->operations.release(state_.operations.floor());
        in_files = collect(*tablet) || in_files;
      }
    }
    // Files whose last id has expired may be given up, and no other event says so.
    if (in_files || is_full_of_operations()) state_.signals.mutation_work.wake_all();
    if (!co_await runtime::sleep_for(state_.runtime, period, state_.stop.token())) co_return;
  }
}

Task<void> MutationKeeper::find_operations() {
  for (const auto& shard : state_.shards) {
    const auto walked = co_await shard->walk_operations(state_.operations);
    if (walked) continue;
    // Whoever looks an id up is told what is damaged; nobody takes one for new.
    state_.logger.error("the operation ids of a mutation file cannot be read",
                        base::kv("error", walked.error()));
    state_.operations.go_blind();
  }
}

bool MutationKeeper::is_full_of_operations() const {
  std::uint64_t bytes = 0;
  for (const auto& shard : state_.shards) bytes += shard->mutation_file_bytes();
  return bytes > state_.options.mutation_log_bytes_max;
}

// ---- Letting go ----

Task<void> MutationKeeper::mutation_loop() {
  while (state_.goes_on()) {
    const auto tended = co_await tend_mutation_files();
    if (!state_.goes_on()) co_return;
    if (!tended) {
      state_.logger.warn("mutation files could not be tended", base::kv("error", tended.error()));
      co_await state_.pause_after_failure();
    } else if (!*tended) {
      if (!co_await state_.signals.mutation_work.wait({.stop = state_.stop.token()})) co_return;
    }
  }
}

Task<Result<bool>> MutationKeeper::tend_mutation_files() {
  for (const auto& shard : state_.shards) {
    if (shard->unreadable_mutation_files().empty() || shard->needs_unreadable_mutations()) continue;
    CO_TRY_VOID(co_await manifests_.install_until_done(
        *shard, [&](ManifestState& state) { shard->enter_unreadable_mutations(state); }));
    co_await shard->remove_unreadable_mutations();
    co_return true;
  }
  for (const auto& shard : state_.shards) {
    const auto dead = std::ranges::find_if(
        shard->mutation_files(), [](const LiveMutationFile& each) { return each.live.empty(); });
    if (dead == shard->mutation_files().end()) continue;
    CO_TRY_VOID(co_await give_up_mutation_file(*shard, *dead));
    co_return true;
  }
  Shard* const over_cap = shard_over_the_cap();
  const LiveMutationFile* const oldest = over_cap == nullptr ? nullptr : oldest_to_shed(*over_cap);
  if (oldest != nullptr) {
    ++state_.statistics.mutation_files_shed;
    state_.logger.warn("the mutation log is over its cap and loses its oldest file",
                       base::kv("path", over_cap->path_of(oldest->file->record)));
    CO_TRY_VOID(co_await give_up_mutation_file(*over_cap, *oldest));
    co_return true;
  }
  for (const auto& shard : state_.shards) {
    CO_TRY(const bool merged, co_await merge_mutation_files(*shard));
    if (merged) co_return true;
  }
  co_return false;
}

const LiveMutationFile* MutationKeeper::oldest_to_shed(const Shard& shard) const {
  const LiveMutationFile* oldest = nullptr;
  for (const LiveMutationFile& each : shard.mutation_files()) {
    if (each.newest_operation() > state_.operations.floor()) continue;
    const bool is_older =
        oldest == nullptr || each.file->record.freeze_first < oldest->file->record.freeze_first;
    if (is_older) oldest = &each;
  }
  return oldest;
}

Shard* MutationKeeper::shard_over_the_cap() const {
  const auto largest_by = [&](const auto& bytes_of) {
    const auto at = std::ranges::max_element(state_.shards, {},
                                             [&](const auto& shard) { return bytes_of(*shard); });
    return at == state_.shards.end() ? nullptr : at->get();
  };
  std::uint64_t bytes = 0;
  for (const auto& shard : state_.shards) bytes += shard->mutation_file_bytes();
  if (bytes > state_.options.mutation_log_bytes_max) {
    return largest_by([](const Shard& shard) { return shard.mutation_file_bytes(); });
  }
  if (state_.memory.dots > state_.aside_bytes_max()) {
    return largest_by([](const Shard& shard) { return shard.mutation_dots_bytes(); });
  }
  return nullptr;
}

Task<Result<void>> MutationKeeper::give_up_mutation_file(Shard& shard, LiveMutationFile file) {
  const FileNumber number = file.file->record.number;
  CO_TRY_VOID(co_await manifests_.install_until_done(shard, [&](ManifestState& state) {
    enter_mutations(state, shard, nullptr);
    std::erase_if(state.mutation_files,
                  [&](const SstableRecord& record) { return record.number == number; });
    for (const auto& [id, dots] : file.live) {
      const auto record = state.tablets.find(id);
      if (record == state.tablets.end()) continue;
      record->second.shed = causality::join(record->second.shed, dots);
      record->second.shed_largest =
          std::max(record->second.shed_largest, file.file->metadata.at(id).largest);
    }
  }));
  for (const auto& [id, dots] : file.live) {
    if (Tablet* owner = shard.tablet(id); owner != nullptr) owner->mutations.shed(dots);
  }
  shard.drop_mutation_file(number);
  count_dots();
  co_await shard.remove_mutation_file(file.file);
  co_return {};
}

Task<bool> MutationKeeper::is_damaged(std::shared_ptr<const MutationFile> file) {
  const auto cursor = file->reader->cursor({.cache_use = CacheUse::bypass});
  auto moved = co_await cursor->seek_first();
  while (moved && cursor->valid()) {
    const base::ByteView key = cursor->key().bytes;
    if (!is_operation_key(key) && !decode_mutation_key(key)) co_return true;
    moved = co_await cursor->next();
  }
  co_return !moved && Shard::is_damage(moved.error());
}

Task<Result<bool>> MutationKeeper::merge_mutation_files(Shard& shard) {
  std::vector<CompactionCandidate> candidates;
  for (const LiveMutationFile& each : shard.mutation_files()) {
    if (shard.mutation_file_aside(each.file->record.number)) continue;
    candidates.push_back({.number = each.file->record.number, .bytes = each.file->record.bytes});
  }
  const auto picks = pick_size_tiered(candidates, state_.options.compaction);
  if (picks.empty()) co_return false;
  const FileSet picked(picks.begin(), picks.end());
  std::vector<std::shared_ptr<const MutationFile>> inputs;
  for (const LiveMutationFile& each : shard.mutation_files()) {
    if (picked.contains(each.file->record.number)) inputs.push_back(each.file);
  }
  auto merged =
      co_await shard.merge_mutations(inputs, &state_.compaction_rate, state_.stop.token());
  if (!merged) {
    const bool damaged = Shard::is_damage(merged.error());
    for (const auto& input : inputs) {
      if (!damaged || !co_await is_damaged(input)) continue;
      state_.logger.error("a damaged mutation file is set aside",
                          base::kv("error", merged.error()));
      shard.set_mutation_file_aside(input->record.number);
    }
    co_return std::move(merged).error();
  }
  CO_TRY_VOID(co_await manifests_.install_until_done(shard, [&](ManifestState& state) {
    std::erase_if(state.mutation_files,
                  [&](const SstableRecord& record) { return picked.contains(record.number); });
    enter_mutations(state, shard, merged->get());
  }));
  for (const auto& input : inputs) shard.drop_mutation_file(input->record.number);
  if (*merged != nullptr) {
    state_.statistics.mutation_bytes_written += (*merged)->record.bytes;
    shard.add_mutation_file(*std::move(merged));
  }
  count_dots();
  for (const auto& input : inputs) co_await shard.remove_mutation_file(input);
  co_return true;
}

}  // namespace helenus::storage
