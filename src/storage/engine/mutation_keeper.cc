// The engine's mutation logs: what is kept for peers, given to them, and let go.
#include <algorithm>
#include <utility>

#include "causality/codec.h"
#include "storage/engine/engine.h"

namespace helenus::storage {

using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using causality::Clock;
using causality::Timestamp;
using runtime::Task;
using runtime::Until;

// ---- Keeping ----

void Engine::keep(Tablet& tablet, const TableStore& table, ByteView partition,
                  const causality::Delta& delta, base::Bytes record, std::uint64_t sequence) {
  const bool ordered = table.options().policy == causality::Policy::lww;
  if (ordered) {
    const std::size_t floors_before = tablet.floors.memory_bytes();
    tablet.floors.add(table.id(), partition, delta);
    floor_bytes_ = floor_bytes_ + tablet.floors.memory_bytes() - floors_before;
    bound_floors();
  }
  const std::size_t bytes_before = tablet.mutations.memory_bytes();
  tablet.mutations.add({.dot = delta.dot,
                        .table = table.id(),
                        .timestamp = ordered ? delta.timestamp : causality::kTimestampMin,
                        .record = std::move(record)},
                       sequence);
  mutation_bytes_ += tablet.mutations.memory_bytes() - bytes_before;
}

void Engine::bound_floors() {
  while (floor_bytes_ > aside_bytes_max()) {
    Tablet* largest = nullptr;
    for (const auto& shard : shards_) {
      for (const auto& [id, tablet] : shard->tablets()) {
        if (largest != nullptr && tablet->floors.memory_bytes() <= largest->floors.memory_bytes()) {
          continue;
        }
        largest = tablet.get();
      }
    }
    ASSERT(largest != nullptr && largest->floors.memory_bytes() > 0, "the account is wrong");
    floor_bytes_ -= largest->floors.memory_bytes();
    largest->floors.shrink();
    floor_bytes_ += largest->floors.memory_bytes();
  }
}

void Engine::count_dots() {
  dots_bytes_ = 0;
  for (const auto& shard : shards_) dots_bytes_ += shard->mutation_dots_bytes();
}

std::vector<TabletBatch> Engine::mutations_of(const Shard& shard, TableId table,
                                              std::uint64_t sequence_last) {
  std::vector<TabletBatch> batches;
  for (const auto& [id, tablet] : shard.tablets()) {
    if (tablet->mutations.count_in_memory() == 0) continue;
    batches.push_back(
        {.tablet = id, .mutations = tablet->mutations.of_table(table, sequence_last)});
  }
  return batches;
}

std::vector<TabletBatch> Engine::mutations_in_memory(const Shard& shard) {
  std::vector<TabletBatch> batches;
  for (const auto& [id, tablet] : shard.tablets()) {
    bool all = false;
    batches.push_back(
        {.tablet = id,
         .mutations = tablet->mutations.in_memory(tablet->mutations.kept(), SIZE_MAX, all)});
  }
  return batches;
}

// The part of an edit that concerns mutation logs: the new file, if there is one, and what is left
// of what was shed.
void Engine::enter_mutations(ManifestState& state, const Shard& shard, const MutationFile* file) {
  for (const auto& [id, tablet] : shard.tablets()) {
    const auto record = state.tablets.find(id);
    if (record == state.tablets.end()) continue;  // it is being dropped
    record->second.shed = tablet->mutations.shed();
    if (record->second.shed.empty()) record->second.shed_largest = causality::kTimestampMin;
    record->second.covered =
        causality::subtract(record->second.covered, tablet->mutations.stable());
  }
  if (file == nullptr) return;
  const auto at = std::ranges::lower_bound(state.mutation_files, file->record.number, {},
                                           &SstableRecord::number);
  state.mutation_files.insert(at, file->record);
}

void Engine::moved_to_file(Shard& shard, const std::vector<TabletBatch>& batches,
                           std::shared_ptr<const MutationFile> file) {
  if (file == nullptr) return;
  for (const TabletBatch& batch : batches) {
    Tablet* owner = shard.tablet(batch.tablet);
    if (owner == nullptr) continue;  // it was dropped
    MutationLog& mutations = owner->mutations;
    const std::size_t bytes_before = mutations.memory_bytes();
    mutations.moved_to_file(batch.mutations);
    mutation_bytes_ -= bytes_before - mutations.memory_bytes();
    statistics_.mutations_moved += batch.mutations.size();
  }
  statistics_.mutation_bytes_written += file->record.bytes;
  shard.add_mutation_file(std::move(file));
  count_dots();
  mutation_work_.wake_all();
}

void Engine::cover(Tablet& tablet, const Clock& dots) {
  const std::size_t bytes_before = tablet.mutations.memory_bytes();
  tablet.mutations.cover(dots);
  mutation_bytes_ -= bytes_before - tablet.mutations.memory_bytes();
}

Task<Result<void>> Engine::cover(TabletId tablet, Clock dots) {
  CO_TRY(const auto pass, gate_.enter());
  CO_TRY_VOID(check_writable());
  CO_TRY(const auto turn, co_await schema_turn_.acquire(1, {.stop = stop_.token()}));
  Tablet* replica = find_tablet(tablet);
  if (replica == nullptr) co_return Error(Errc::not_found, "tablet {}", tablet);
  if (!dots.closed().empty()) {
    co_return Error(Errc::invalid_argument, "closed actors are not closed by what they minted");
  }
  const Clock unseen = causality::subtract(dots, replica->clock);
  if (unseen.empty()) co_return {};
  if (unseen.max_of(replica->actor) > 0) {
    co_return Error(Errc::invalid_argument,
                    "dots of actor {} are of this replica, which has not "
                    "minted them",
                    replica->actor);
  }
  CO_TRY_VOID(co_await install_until_done(*shard_of(tablet), [=](ManifestState& state) {
    TabletRecord& record = state.tablets[tablet];
    record.clock = causality::join(record.clock, unseen);
    record.covered = causality::join(record.covered, unseen);
  }));
  CO_TRY_VOID(co_await note_generations());
  replica->clock = causality::join(replica->clock, unseen);
  replica->durable = causality::join(replica->durable, unseen);
  cover(*replica, unseen);
  co_return {};
}

void Engine::set_watermarks(TabletId tablet,
                            std::vector<std::optional<causality::Watermark>> watermarks) {
  Tablet* replica = find_tablet(tablet);
  if (replica == nullptr) return;
  replica->watermarks = std::move(watermarks);
  const Clock stable =
      replica->alone()
          ? replica->clock
          : causality::stability(replica->clock, causality::WallTime{0}, replica->watermarks).dots;
  const auto& lost = replica->lost_mutations;
  if (lost && (replica->alone() || stable.covers(lost->among))) replica->lost_mutations.reset();
  const std::size_t bytes_before = replica->mutations.memory_bytes();
  replica->mutations.collect(stable);
  mutation_bytes_ -= bytes_before - replica->mutations.memory_bytes();
  floor_bytes_ -= replica->floors.memory_bytes();
  if (replica->alone()) {
    replica->floors.clear();
  } else {
    replica->floors.collect(stable);
  }
  floor_bytes_ += replica->floors.memory_bytes();
  shard_of(tablet)->collect_mutations(*replica);
  count_dots();
  mutation_work_.wake_all();
}

// ---- Giving ----

Result<Clock> Engine::kept_mutations(TabletId tablet) const {
  const Tablet* replica = find_tablet(tablet);
  if (replica == nullptr) return Error(Errc::not_found, "tablet {}", tablet);
  return replica->mutations.kept();
}

namespace {

Clock clock_of(const std::vector<causality::DotRange>& ranges) {
  Clock clock;
  for (const causality::DotRange& range : ranges) clock.add(range);
  return clock;
}

Result<LoggedMutation> logged(const KeptMutation& kept) {
  TRY(auto record, decode_mutation(kept.record));
  return LoggedMutation{.dot = kept.dot,
                        .table = kept.table,
                        .partition = base::Bytes::copy_of(record.partition),
                        .delta = std::move(record.delta)};
}

// What a shard's files have of these dots of a tablet, one walk a file.
std::vector<MutationFileWalk> walks_of(const Shard& shard, TabletId tablet, const Clock& wanted,
                                       const Until& until) {
  std::vector<MutationFileWalk> walks;
  for (const LiveMutationFile& each : shard.mutation_files()) {
    const auto at = each.live.find(tablet);
    if (at == each.live.end()) continue;
    const Clock dots = causality::meet(at->second, wanted);
    if (!dots.empty()) walks.emplace_back(each.file, tablet, dots, until);
  }
  return walks;
}

}  // namespace

Task<Result<MissingMutations>> Engine::missing_mutations(TabletId tablet, Clock peer,
                                                         std::size_t bytes_max, Until until) {
  CO_TRY(const auto pass, gate_.enter());
  const Tablet* found = find_tablet(tablet);
  if (found == nullptr) co_return Error(Errc::not_found, "tablet {}", tablet);
  if (found->lost_mutations) co_return found->lost_mutations->why;
  advance_durable();
  const Tablet& replica = *found;
  MissingMutations answer;
  auto lacking = causality::missing(peer, replica.durable);
  answer.closed = std::move(lacking.closed);
  answer.withheld =
      causality::join(causality::subtract(clock_of(lacking.dots), replica.mutations.kept()),
                      causality::subtract(replica.mutations.shed(), peer));
  answer.withheld = causality::subtract(answer.withheld, replica.mutations.covered());
  answer.covered =
      causality::meet(causality::subtract(replica.mutations.covered(), peer), replica.durable);
  const Clock wanted =
      causality::meet(causality::subtract(replica.mutations.kept(), peer), replica.durable);
  // What is in memory and which files there are is of one moment; reading them may take a while.
  bool all_in_memory = false;
  const auto memory = replica.mutations.in_memory(wanted, bytes_max, all_in_memory);
  auto walks = walks_of(*shard_of(tablet), tablet, wanted, until);
  for (MutationFileWalk& walk : walks) CO_TRY_VOID(co_await walk.next());
  std::size_t bytes = 0;
  auto next_in_memory = memory.begin();
  while (true) {
    const KeptMutation* least = next_in_memory == memory.end() ? nullptr : &*next_in_memory;
    for (const MutationFileWalk& walk : walks) {
      const auto& current = walk.current();
      if (current && (least == nullptr || current->dot < least->dot)) least = &*current;
    }
    answer.complete = least == nullptr && all_in_memory;
    if (least == nullptr || (bytes >= bytes_max && bytes > 0)) co_return answer;
    const causality::Dot dot = least->dot;
    bytes += least->record.size();
    if (shard_of(tablet)->table(least->table) == nullptr) {
      answer.covered.add(dot);  // its table was dropped
    } else {
      CO_TRY(auto mutation, logged(*least));
      answer.mutations.push_back(std::move(mutation));
    }
    // A start that was cut short may have left a mutation in two places.
    if (next_in_memory != memory.end() && next_in_memory->dot == dot) ++next_in_memory;
    for (MutationFileWalk& walk : walks) {
      if (walk.current() && walk.current()->dot == dot) CO_TRY_VOID(co_await walk.next());
    }
  }
}

namespace {

// The timestamp at which the mutation says something of the cell; none if it does not.
std::optional<Timestamp> timestamp_at(const causality::Delta& delta, const base::Bytes& row,
                                      causality::ColumnId column) {
  const auto cell = [&](const causality::CellChange& change) {
    return change.row == row && change.column == column;
  };
  if (std::ranges::any_of(delta.cells, cell)) return delta.timestamp;
  const auto row_range = [&](const causality::RowRange& each) { return each.contains(row); };
  if (std::ranges::any_of(delta.deleted_ranges, row_range))
    return causality::timestamp_of_range_deletes(delta);
  return std::nullopt;
}

}  // namespace

namespace {

// The largest timestamp at which mutations say something of one cell.
class CellFloor {
 public:
  CellFloor(TableId table, base::Bytes partition, base::Bytes row, causality::ColumnId column)
      : table_(table), partition_(std::move(partition)), row_(std::move(row)), column_(column) {}

  Timestamp floor() const { return floor_; }
  const Clock& seen() const { return seen_; }
  void set_seen(const Clock& dots) { seen_ = causality::join(seen_, dots); }

  Result<void> take(const KeptMutation& kept) {
    if (kept.table != table_) return {};
    TRY(const auto record, decode_mutation(kept.record));
    if (!base::equal(record.partition, partition_)) return {};
    TRY(const auto delta, causality::decode_delta(record.delta));
    floor_ = std::max(floor_, timestamp_at(delta, row_, column_).value_or(floor_));
    return {};
  }
  // What is in memory and was not seen before.
  Result<void> take(const MutationLog& mutations) {
    bool all = false;
    const Clock unseen = causality::subtract(mutations.kept(), seen_);
    for (const KeptMutation& kept : mutations.in_memory(unseen, SIZE_MAX, all)) {
      seen_.add(kept.dot);
      if (kept.timestamp > floor_) TRY_VOID(take(kept));
    }
    return {};
  }

 private:
  const TableId table_;
  const base::Bytes partition_;
  const base::Bytes row_;
  const causality::ColumnId column_;
  Timestamp floor_ = causality::kTimestampMin;
  Clock seen_;
};

// A file of the tablet's mutations that may raise the floor.
const LiveMutationFile* file_above(const Shard& shard, TabletId tablet, const CellFloor& cell) {
  for (const LiveMutationFile& each : shard.mutation_files()) {
    const auto live = each.live.find(tablet);
    if (live == each.live.end() || cell.seen().covers(live->second)) continue;
    if (each.file->metadata.at(tablet).largest > cell.floor()) return &each;
  }
  return nullptr;
}

}  // namespace

// Exact at the moment it returns: reading files takes a while, in which mutations come and go to
// files, so it ends with a step in which memory has nothing unseen and no file that matters is
// left.
Task<Result<Timestamp>> Engine::covered_floor(TableId table, TabletId tablet, base::Bytes partition,
                                              base::Bytes row, causality::ColumnId column,
                                              Until until) {
  CO_TRY(const auto pass, gate_.enter());
  CellFloor cell(table, partition, row, column);
  while (true) {
    CO_TRY(const auto place, find(table, tablet));
    // Most of the time there is nothing of the row.
    const Timestamp at_most = place.tablet->floors.of_row(table, partition, row);
    if (at_most == causality::kTimestampMin) co_return at_most;
    if (!place.tablet->mutations.shed().empty()) {
      co_return Error(Errc::unavailable, "the mutation log of tablet {} was cut off", tablet);
    }
    CO_TRY_VOID(cell.take(place.tablet->mutations));
    if (cell.floor() >= at_most) co_return cell.floor();
    const LiveMutationFile* file = file_above(*place.shard, tablet, cell);
    if (file == nullptr) co_return cell.floor();
    const Clock dots = causality::subtract(file->live.at(tablet), cell.seen());
    MutationFileWalk walk(file->file, tablet, dots, until);
    CO_TRY_VOID(co_await walk.next());
    while (walk.current()) {
      CO_TRY_VOID(cell.take(*walk.current()));
      CO_TRY_VOID(co_await walk.next());
    }
    cell.set_seen(dots);
  }
}

// ---- Letting go ----

Task<void> Engine::mutation_loop() {
  while (!stop_.token().stop_requested() && !fatal_error_) {
    const auto tended = co_await tend_mutation_files();
    if (stop_.token().stop_requested() || fatal_error_) co_return;
    if (!tended) {
      log_lines_.warn("mutation files could not be tended", base::kv("error", tended.error()));
      co_await pause_after_failure();
    } else if (!*tended) {
      if (!co_await mutation_work_.wait({.stop = stop_.token()})) co_return;
    }
  }
}

// Does one thing that is to be done; false if there was none.
Task<Result<bool>> Engine::tend_mutation_files() {
  for (const auto& shard : shards_) {
    if (shard->unreadable_mutation_files().empty() || shard->needs_unreadable_mutations()) continue;
    CO_TRY_VOID(co_await install_until_done(
        *shard, [&](ManifestState& state) { shard->enter_unreadable_mutations(state); }));
    co_await shard->remove_unreadable_mutations();
    co_return true;
  }
  for (const auto& shard : shards_) {
    const auto dead = std::ranges::find_if(
        shard->mutation_files(), [](const LiveMutationFile& each) { return each.live.empty(); });
    if (dead == shard->mutation_files().end()) continue;
    CO_TRY_VOID(co_await give_up_mutation_file(*shard, *dead));
    co_return true;
  }
  if (Shard* shard = shard_over_the_cap(); shard != nullptr) {
    const auto oldest = std::ranges::min_element(
        shard->mutation_files(), {},
        [](const LiveMutationFile& each) { return each.file->record.freeze_first; });
    ++statistics_.mutation_files_shed;
    log_lines_.warn("the mutation log is over its cap and loses its oldest file",
                    base::kv("path", shard->path_of(oldest->file->record)));
    CO_TRY_VOID(co_await give_up_mutation_file(*shard, *oldest));
    co_return true;
  }
  for (const auto& shard : shards_) {
    CO_TRY(const bool merged, co_await merge_mutation_files(*shard));
    if (merged) co_return true;
  }
  co_return false;
}

Shard* Engine::shard_over_the_cap() const {
  const auto largest_by = [&](const auto& bytes_of) {
    const auto at =
        std::ranges::max_element(shards_, {}, [&](const auto& shard) { return bytes_of(*shard); });
    return at == shards_.end() ? nullptr : at->get();
  };
  std::uint64_t bytes = 0;
  for (const auto& shard : shards_) bytes += shard->mutation_file_bytes();
  if (bytes > options_.mutation_log_bytes_max) {
    return largest_by([](const Shard& shard) { return shard.mutation_file_bytes(); });
  }
  if (dots_bytes_ > aside_bytes_max()) {
    return largest_by([](const Shard& shard) { return shard.mutation_dots_bytes(); });
  }
  return nullptr;
}

// What of it is not stable is shed. The manifest says so first: after a crash the replica must not
// believe that it could give what it cannot, nor mint below what it no longer remembers.
Task<Result<void>> Engine::give_up_mutation_file(Shard& shard, LiveMutationFile file) {
  const FileNumber number = file.file->record.number;
  CO_TRY_VOID(co_await install_until_done(shard, [&](ManifestState& state) {
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

Task<bool> Engine::is_damaged(std::shared_ptr<const MutationFile> file) {
  const auto cursor = file->reader->cursor({.cache_use = CacheUse::bypass});
  auto moved = co_await cursor->seek_first();
  while (moved && cursor->valid()) {
    if (!decode_mutation_key(cursor->key().bytes)) co_return true;
    moved = co_await cursor->next();
  }
  co_return !moved && Shard::is_damage(moved.error());
}

Task<Result<bool>> Engine::merge_mutation_files(Shard& shard) {
  std::vector<CompactionCandidate> candidates;
  for (const LiveMutationFile& each : shard.mutation_files()) {
    if (shard.mutation_file_aside(each.file->record.number)) continue;
    candidates.push_back({.number = each.file->record.number, .bytes = each.file->record.bytes});
  }
  const auto picks = pick_size_tiered(candidates, options_.compaction);
  if (picks.empty()) co_return false;
  const FileSet picked(picks.begin(), picks.end());
  std::vector<std::shared_ptr<const MutationFile>> inputs;
  for (const LiveMutationFile& each : shard.mutation_files()) {
    if (picked.contains(each.file->record.number)) inputs.push_back(each.file);
  }
  auto merged = co_await shard.merge_mutations(inputs, &compaction_rate_, stop_.token());
  if (!merged) {
    const bool damaged = Shard::is_damage(merged.error());
    for (const auto& input : inputs) {
      if (!damaged || !co_await is_damaged(input)) continue;
      log_lines_.error("a damaged mutation file is set aside", base::kv("error", merged.error()));
      shard.set_mutation_file_aside(input->record.number);
    }
    co_return std::move(merged).error();
  }
  CO_TRY_VOID(co_await install_until_done(shard, [&](ManifestState& state) {
    std::erase_if(state.mutation_files,
                  [&](const SstableRecord& record) { return picked.contains(record.number); });
    enter_mutations(state, shard, merged->get());
  }));
  for (const auto& input : inputs) shard.drop_mutation_file(input->record.number);
  if (*merged != nullptr) {
    statistics_.mutation_bytes_written += (*merged)->record.bytes;
    shard.add_mutation_file(*std::move(merged));
  }
  count_dots();
  for (const auto& input : inputs) co_await shard.remove_mutation_file(input);
  co_return true;
}

}  // namespace helenus::storage
