#include "storage/engine/engine.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "causality/content_size.h"
#include "runtime/sleep.h"

namespace helenus::storage {

using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

Engine::Engine(Private, runtime::Runtime& runtime, EngineOptions options)
    : runtime_(runtime),
      options_(std::move(options)),
      log_lines_(runtime.logger("storage.engine")),
      file_reads_(runtime, options_.file_reads_max, SIZE_MAX),
      sstables_(options_.block_cache_bytes),
      schema_turn_(runtime, 1, SIZE_MAX),
      note_turn_(runtime, 1, SIZE_MAX),
      compaction_rate_(runtime, options_.compaction_bytes_per_second, stop_.token()),
      flush_work_(runtime),
      compaction_work_(runtime),
      mutation_work_(runtime),
      purge_work_(runtime),
      room_changed_(runtime),
      files_changed_(runtime),
      gate_(runtime),
      tasks_(runtime) {
  sstables_.reads = &file_reads_;
}

Engine::~Engine() {
  ASSERT(tasks_.empty() || runtime_.executor.halted(), "an engine is stopped before it goes");
}

Task<Result<void>> Engine::stop() {
  stop_.request_stop();
  wake_everybody();
  co_await gate_.close();
  co_await tasks_.join();
  Result<void> stopped;
  if (log_ != nullptr) stopped = co_await log_->stop();
  if (log_directory_ != nullptr) {
    auto closed = co_await log_directory_->close();
    if (stopped && !closed) stopped = std::move(closed);
  }
  locks_.clear();
  co_return stopped;
}

// ---- Tables and tablets ----

Shard* Engine::shard_numbered(std::uint64_t number) const {
  return number % cores_ == core_ ? shards_[number / cores_].get() : nullptr;
}

Tablet* Engine::find_tablet(TabletId tablet) const {
  Shard* shard = shard_of(tablet);
  Tablet* found = shard == nullptr ? nullptr : shard->tablet(tablet);
  return found == nullptr || found->dropping ? nullptr : found;
}

Result<Engine::Place> Engine::find(TableId table, TabletId tablet) {
  Place place{.shard = shard_of(tablet)};
  if (place.shard == nullptr) return Error(Errc::not_found, "tablet {} on this core", tablet);
  place.table = place.shard->table(table);
  if (place.table == nullptr) return Error(Errc::not_found, "table {}", table);
  place.tablet = find_tablet(tablet);
  if (place.tablet == nullptr) return Error(Errc::not_found, "tablet {}", tablet);
  if (place.tablet->lost_mutations) return place.tablet->lost_mutations->why;
  return place;
}

Task<Result<void>> Engine::create_table(TableId table, TableOptions options) {
  CO_TRY(const auto pass, gate_.enter());
  CO_TRY_VOID(check_writable());
  CO_TRY(const auto turn, co_await schema_turn_.acquire(1, {.stop = stop_.token()}));
  if (table.value() > kTableIdMax) co_return Error(Errc::invalid_argument, "table {}", table);
  if (options.filter) CO_TRY_VOID(validate(*options.filter));
  for (const auto& shard : shards_) {
    if (shard->table(table) != nullptr) co_return Error(Errc::already_exists, "table {}", table);
  }
  // Records of an earlier table of that name may still lie in the logs: they are not of this one.
  TableRecord record{.options = options, .flushed = {}, .sstables = {}};
  record.flushed.add_before(log_incarnation_);
  record.flushed.add(log_->core(), log_->tail());
  for (const auto& shard : shards_ | std::views::reverse) {
    CO_TRY_VOID(co_await install_until_done(
        *shard, [=](ManifestState& state) { state.tables[table] = record; }));
  }
  CO_TRY_VOID(co_await note_generations());
  for (const auto& shard : shards_) shard->add_table(table, options);
  co_return {};
}

Task<Result<void>> Engine::alter_table(TableId table, TableOptions options) {
  CO_TRY(const auto pass, gate_.enter());
  CO_TRY_VOID(check_writable());
  CO_TRY(const auto turn, co_await schema_turn_.acquire(1, {.stop = stop_.token()}));
  if (options.filter) CO_TRY_VOID(validate(*options.filter));
  bool found = false;
  for (const auto& shard : shards_) {
    TableStore* store = shard->table(table);
    if (store == nullptr) continue;
    found = true;
    options.policy = store->options().policy;
    if (store->options() == options) continue;
    CO_TRY_VOID(co_await install_until_done(
        *shard, [=](ManifestState& state) { state.tables[table].options = options; }));
    CO_TRY_VOID(co_await note_generations());
    store->set_options(options);
  }
  if (!found) co_return Error(Errc::not_found, "table {}", table);
  co_return {};
}

namespace {

Clocks dots_of(const std::vector<TabletBatch>& batches) {
  Clocks clocks;
  for (const TabletBatch& batch : batches) {
    for (const KeptMutation& mutation : batch.mutations) clocks[batch.tablet].add(mutation.dot);
  }
  return clocks;
}

}  // namespace

Task<Result<void>> Engine::drop_table(TableId table) {
  CO_TRY(const auto pass, gate_.enter());
  CO_TRY_VOID(check_writable());
  CO_TRY(const auto turn, co_await schema_turn_.acquire(1, {.stop = stop_.token()}));
  bool found = false;
  for (const auto& shard : shards_) {
    const auto at = shard->tables().find(table);
    if (at == shard->tables().end()) continue;
    found = true;
    const std::shared_ptr<TableStore> store = at->second;
    store->set_dropped();
    shard->remove_table(table);
    memtable_bytes_ -= store->active_bytes();
    for (const FrozenMemtable& frozen : store->frozen()) memtable_bytes_ -= frozen.bytes;
    // Its records go from the log without having been flushed; their dots were minted all the same.
    const Clocks dropped = store->dots_in_memory();
    // And peers may lack them still: of these only the dots are left. Of what is in mutation files
    // it shows when they are given.
    const Clocks covered = dots_of(mutations_of(*shard, table, last_sequence_));
    CO_TRY_VOID(co_await log_->sync_to(log_->tail(), {.stop = stop_.token()}));
    CO_TRY_VOID(co_await install_until_done(*shard, [&](ManifestState& state) {
      state.tables.erase(table);
      join_clocks(state, dropped);
      enter_mutations(state, *shard, nullptr);
      for (const auto& [id, dots] : covered) {
        const auto tablet = state.tablets.find(id);
        if (tablet == state.tablets.end()) continue;
        tablet->second.covered = causality::join(tablet->second.covered, dots);
      }
    }));
    for (const auto& [id, dots] : covered) {
      if (Tablet* owner = shard->tablet(id); owner != nullptr) cover(*owner, dots);
    }
    CO_TRY_VOID(co_await note_generations());
    log_->forget_table(store->stream());
    co_await shard->remove_files(store->sstables());
  }
  wake_everybody();
  if (!found) co_return Error(Errc::not_found, "table {}", table);
  co_return {};
}

namespace {

bool overlaps(const KeyRange& a, const KeyRange& b) {
  const bool a_first = a.to && *a.to <= b.from;
  const bool b_first = b.to && *b.to <= a.from;
  return !a_first && !b_first;
}

// Whether memtables have mutations of such a tablet.
bool has_in_memory(const Shard& shard, TabletId tablet) {
  return std::ranges::any_of(shard.tables(),
                             [&](const auto& each) { return each.second->has_in_memory(tablet); });
}

}  // namespace

Task<Result<void>> Engine::create_tablet(TabletId tablet, KeyRange range,
                                         causality::ActorId actor) {
  CO_TRY(const auto pass, gate_.enter());
  CO_TRY_VOID(check_writable());
  CO_TRY(const auto turn, co_await schema_turn_.acquire(1, {.stop = stop_.token()}));
  if (range.to && *range.to <= range.from) {
    co_return Error(Errc::invalid_argument, "the range of tablet {} is empty", tablet);
  }
  Shard* own = shard_of(tablet);
  if (own == nullptr) {
    co_return Error(Errc::invalid_argument, "tablet {} belongs to another core", tablet);
  }
  Shard& shard = *own;
  if (shard.tablet(tablet) != nullptr) co_return Error(Errc::already_exists, "tablet {}", tablet);
  for (const auto& [id, other] : shard.tablets()) {
    if (overlaps(range, other->range)) {
      co_return Error(Errc::invalid_argument, "tablet {} overlaps tablet {}", tablet, id);
    }
  }
  for (const KeyRange& dropped : shard.manifest().dropped_ranges) {
    if (overlaps(range, dropped)) {
      co_return Error(Errc::unavailable,
                      "what a dropped tablet had where tablet {} is to be, is not "
                      "gone yet",
                      tablet);
    }
  }
  // The flush of what an earlier tablet of this id had would give its dots to the new one: dots
  // without data. take_away() has flushed it.
  ASSERT(!has_in_memory(shard, tablet), "tablet {} was dropped before it was flushed", tablet);
  const TabletRecord record{.range = std::move(range), .actor = actor, .clock = {}};
  CO_TRY_VOID(co_await install_until_done(shard, [&, tablet, record](ManifestState& state) {
    state.tablets.emplace(tablet, record);
    shard.enter_empty_range(state, record.range);
  }));
  CO_TRY_VOID(co_await note_generations());
  shard.add_tablet(tablet, record);
  co_return {};
}

Task<Result<void>> Engine::drop_tablet(TabletId tablet) {
  CO_TRY(const auto pass, gate_.enter());
  CO_TRY(const KeyRange range, co_await take_away(tablet));
  const Shard& shard = *shard_of(tablet);
  while (std::ranges::find(shard.manifest().dropped_ranges, range) !=
         shard.manifest().dropped_ranges.end()) {
    CO_TRY_VOID(check_writable());
    CO_TRY_VOID(co_await files_changed_.wait({.stop = stop_.token()}));
  }
  co_return {};
}

// The tablet is gone when it returns; its data is not.
Task<Result<KeyRange>> Engine::take_away(TabletId tablet) {
  CO_TRY_VOID(check_writable());
  CO_TRY(const auto turn, co_await schema_turn_.acquire(1, {.stop = stop_.token()}));
  Tablet* replica = find_tablet(tablet);
  if (replica == nullptr) co_return Error(Errc::not_found, "tablet {}", tablet);
  Shard& shard = *shard_of(tablet);
  const KeyRange range = replica->range;
  replica->dropping = true;
  // Its records leave the log first: a start that does not know the tablet could not replay them.
  std::vector<TableId> tables;
  for (const auto& [id, table] : shard.tables()) tables.push_back(id);
  for (const TableId table : tables) {
    auto flushed = co_await flush(table, {.stop = stop_.token()});
    if (flushed) continue;
    replica->dropping = false;
    co_return std::move(flushed).error();
  }
  replica->lost_mutations.reset();
  CO_TRY_VOID(co_await install_until_done(shard, [&](ManifestState& state) {
    state.tablets.erase(tablet);
    shard.enter_unreadable_mutations(state);
    const auto at = std::ranges::lower_bound(state.dropped_ranges, range.from, {}, &KeyRange::from);
    state.dropped_ranges.insert(at, range);
  }));
  CO_TRY_VOID(co_await note_generations());
  advance_durable();
  for (Pending& pending : pending_) {
    if (pending.tablet == replica) pending.tablet = nullptr;
  }
  mutation_bytes_ -= replica->mutations.memory_bytes();
  floor_bytes_ -= replica->floors.memory_bytes();
  const bool was_in_doubt = replica->in_doubt;
  shard.remove_tablet(tablet);
  count_dots();
  wake_everybody();
  if (was_in_doubt) CO_TRY_VOID(co_await clear_tail_doubt());
  co_return range;
}

std::vector<TabletInfo> Engine::tablets() const {
  std::vector<TabletInfo> tablets;
  for (const auto& shard : shards_) {
    for (const auto& [id, tablet] : shard->tablets()) {
      if (tablet->dropping) continue;
      tablets.push_back({.id = id, .range = tablet->range, .actor = tablet->actor});
    }
  }
  return tablets;
}

std::vector<TabletId> Engine::tablets_in_doubt() const {
  std::vector<TabletId> doubtful;
  for (const auto& shard : shards_) {
    for (const auto& [id, tablet] : shard->tablets()) {
      if (tablet->in_doubt) doubtful.push_back(id);
    }
  }
  return doubtful;
}

Task<Result<void>> Engine::reincarnate(TabletId tablet, causality::ActorId actor) {
  CO_TRY(const auto pass, gate_.enter());
  CO_TRY_VOID(check_writable());
  CO_TRY(const auto turn, co_await schema_turn_.acquire(1, {.stop = stop_.token()}));
  Tablet* replica = find_tablet(tablet);
  if (replica == nullptr) co_return Error(Errc::not_found, "tablet {}", tablet);
  if (actor == replica->actor || replica->clock.max_of(actor) > 0 ||
      replica->clock.is_closed(actor)) {
    co_return Error(Errc::invalid_argument, "actor {} has been used before", actor);
  }
  CO_TRY_VOID(co_await install_until_done(
      *shard_of(tablet), [=](ManifestState& state) { state.tablets[tablet].actor = actor; }));
  CO_TRY_VOID(co_await note_generations());
  replica->actor = actor;
  if (std::exchange(replica->in_doubt, false)) CO_TRY_VOID(co_await clear_tail_doubt());
  co_return {};
}

// A doubt is over when no tablet has it any more. Where others share the folder, they see to it.
Task<Result<void>> Engine::clear_tail_doubt() {
  if (log_directory_ == nullptr || !tablets_in_doubt().empty()) co_return {};
  co_return co_await log_directory_->clear_tail_doubt();
}

Result<causality::Clock> Engine::staged_clock(TabletId tablet) const {
  const Tablet* replica = find_tablet(tablet);
  if (replica == nullptr) return Error(Errc::not_found, "tablet {}", tablet);
  return replica->clock;
}

Result<causality::Clock> Engine::durable_clock(TabletId tablet) {
  const Tablet* replica = find_tablet(tablet);
  if (replica == nullptr) return Error(Errc::not_found, "tablet {}", tablet);
  advance_durable();
  return replica->durable;
}

// ---- Writing ----

Result<void> Engine::check_writable() const {
  if (fatal_error()) return *fatal_error();
  if (gate_.closed()) return Error(Errc::closed, "the engine has stopped");
  return {};
}

bool Engine::must_wait(const TableStore& table) const {
  return memory_bytes() >= options_.memtable_bytes_max ||
         table.sstables().size() >= options_.sstables_max;
}

MaybeTask<Result<void>> Engine::admit(TableId table, TabletId tablet, std::size_t bytes,
                                      const Until& until) {
  if (auto writable = check_writable(); !writable) return writable;
  if (flush_error_) return Result<void>(*flush_error_);
  const auto place = find(table, tablet);
  if (!place) return Result<void>(place.error());
  if (!must_wait(*place->table) && log_->has_room(bytes) &&
      place->table->sstables().size() <= options_.sstables_slow) {
    return Result<void>();
  }
  return admit_waiting(table, tablet, bytes, until);
}

Task<Result<void>> Engine::admit_waiting(TableId table, TabletId tablet, std::size_t bytes,
                                         Until until) {
  CO_TRY(const auto pass, gate_.enter());
  ++statistics_.writes_delayed;
  CO_TRY(const auto place, find(table, tablet));
  const std::size_t files = place.table->sstables().size();
  if (files > options_.sstables_slow && files < options_.sstables_max) {
    // The nearer to the limit, the slower: up to ten milliseconds a write.
    const auto over = static_cast<std::int64_t>(files - options_.sstables_slow);
    const auto span = static_cast<std::int64_t>(options_.sstables_max - options_.sstables_slow);
    CO_TRY_VOID(co_await runtime::sleep_for(
        runtime_, std::chrono::microseconds(10'000 * over / span), until.stop));
  }
  while (true) {
    CO_TRY_VOID(check_writable());
    if (flush_error_) co_return *flush_error_;
    CO_TRY(const auto now, find(table, tablet));
    if (must_wait(*now.table)) {
      CO_TRY_VOID(co_await room_changed_.wait(until));
    } else if (!log_->has_room(bytes)) {
      CO_TRY_VOID(co_await log_->room(bytes, until));
    } else {
      co_return {};
    }
  }
}

namespace {

// Whether some keys of the partition's rows would lie behind the range's end (KeyRange).
bool is_cut_by(const KeyRange& range, ByteView partition) {
  return range.to && partition.size() < range.to->size() &&
         base::equal(range.to->view().first(partition.size()), partition);
}

}  // namespace

Result<Engine::Place> Engine::find_for_write(TableId table, TabletId tablet, ByteView partition) {
  TRY_VOID(check_writable());
  TRY(const auto place, find(table, tablet));
  if (partition.empty()) return Error(Errc::invalid_argument, "the partition key is empty");
  if (!place.tablet->range.contains(partition)) {
    return Error(Errc::invalid_argument, "the partition key is not of tablet {}", tablet);
  }
  if (is_cut_by(place.tablet->range, partition)) {
    return Error(Errc::invalid_argument,
                 "the partition key is a proper prefix of the bound of tablet {}", tablet);
  }
  return place;
}

namespace {

// What the record of a mutation takes, about: what it holds, and something for its context.
std::size_t size_estimate(ByteView partition, const causality::Mutation& mutation) {
  constexpr std::size_t kContextBytes = 256;
  std::size_t bytes = kContextBytes + partition.size();
  for (const causality::CellChange& cell : mutation.cells) {
    bytes += cell.row.size() + cell.value.size() + 16;
  }
  return bytes;
}

Result<void> check_key_sizes(ByteView partition, std::span<const causality::CellChange> cells) {
  std::size_t row_size = 0;
  for (const causality::CellChange& cell : cells) row_size = std::max(row_size, cell.row.size());
  if (partition.size() + 1 + row_size > kRowKeySizeMax) {
    return Error(Errc::invalid_argument, "a key of {} bytes, of at most {}",
                 partition.size() + 1 + row_size, kRowKeySizeMax);
  }
  return {};
}

}  // namespace

Result<causality::Delta> Engine::mint(const Place& place, TableId table, ByteView partition,
                                      causality::Mutation mutation, causality::Epoch epoch,
                                      causality::Clock& clock) {
  TRY_VOID(check_key_sizes(partition, mutation.cells));
  if (place.tablet->in_doubt) {
    return Error(Errc::unavailable, "tablet {} may have lost writes and has no new actor yet",
                 place.tablet->id);
  }
  const causality::Policy policy = place.table->options().policy;
  causality::Timestamp floor = causality::kTimestampMin;
  // An explicit timestamp was judged cell by cell (covered_floor()); the rest is up to mint.
  if (policy == causality::Policy::lww && !mutation.timestamp_is_explicit) {
    floor = place.tablet->floors.of(table, partition, mutation.cells, mutation.deleted_ranges);
  }
  return causality::mint(clock, place.tablet->actor, epoch, policy, std::move(mutation), floor);
}

Result<void> Engine::check(TableId table, TabletId tablet, ByteView partition,
                           const causality::Mutation& mutation, causality::Epoch epoch) {
  TRY(const auto place, find_for_write(table, tablet, partition));
  causality::Clock clock = place.tablet->clock;
  TRY(const auto delta, mint(place, table, partition, mutation, epoch, clock));
  record_.clear();
  encode_mutation(place.tablet->id, Replication::peers, partition, delta, record_);
  if (record_.size() > options_.log.record_size_max) {
    return Error(Errc::invalid_argument, "a record of {} bytes, at most {} are allowed",
                 record_.size(), options_.log.record_size_max);
  }
  return {};
}

Result<Staged> Engine::stage(TableId table, TabletId tablet, ByteView partition,
                             causality::Mutation mutation, causality::Epoch epoch,
                             Timestamps timestamps) {
  TRY(const auto place, find_for_write(table, tablet, partition));
  if (timestamps == Timestamps::as_given) mutation.timestamp_is_explicit = true;
  TRY(auto delta, mint(place, table, partition, std::move(mutation), epoch, place.tablet->clock));
  auto position = append(place, partition, delta);
  if (!position) {
    // The dot has left no trace: it is the next one again.
    place.tablet->clock.remove(delta.dot);
    return std::move(position).error();
  }
  return Staged{.delta = std::move(delta), .position = *position};
}

Result<Staged> Engine::stage(TableId table, TabletId tablet, ByteView partition,
                             causality::Delta delta) {
  TRY(const auto place, find_for_write(table, tablet, partition));
  TRY_VOID(check_key_sizes(partition, delta.cells));
  if (delta.dot.actor == place.tablet->actor && !place.tablet->clock.contains(delta.dot)) {
    return Error(Errc::invalid_argument, "dot {} is of this replica, which has not minted it",
                 delta.dot);
  }
  if (place.tablet->clock.contains(delta.dot)) {
    ++statistics_.writes_repeated;
    return Staged{.delta = std::move(delta),
                  .position = last_position_,
                  .applied = causality::Applied::before};
  }
  TRY(const auto position, append(place, partition, delta));
  return Staged{.delta = std::move(delta), .position = position};
}

// Logs and applies, without a suspension in between: store, then log, then clock, and only then may
// the memtable be frozen, since the clocks at its freeze must have every dot in it.
Result<LogPosition> Engine::append(const Place& place, ByteView partition,
                                   const causality::Delta& delta) {
  record_.clear();
  const Replication replication = place.tablet->alone() ? Replication::none : Replication::peers;
  const std::size_t delta_offset =
      encode_mutation(place.tablet->id, replication, partition, delta, record_);
  TRY(const auto position, log_->stage(place.table->stream(), record_.view()));
  const std::uint64_t sequence = ++last_sequence_;
  apply(*place.table, place.tablet->id, partition, delta, record_.view().subspan(delta_offset),
        sequence);
  if (replication == Replication::peers) {
    keep(*place.tablet, *place.table, partition, delta, base::Bytes::copy_of(record_.view()),
         sequence);
  }
  place.tablet->clock.add(delta.dot);
  advance_durable();
  pending_.push_back(
      {.sequence = sequence, .position = position, .tablet = place.tablet, .dot = delta.dot});
  last_position_ = position;
  ++statistics_.writes;
  statistics_.write_bytes += record_.size();
  statistics_.user_bytes +=
      partition.size() + causality::content_size(delta.cells, delta.deleted_ranges);
  freeze_if_due(place);
  return position;
}

void Engine::apply(TableStore& table, TabletId tablet, ByteView partition,
                   const causality::Delta& delta, ByteView encoded, std::uint64_t sequence) {
  const std::size_t bytes_before = table.active_bytes();
  table.active().apply(partition, delta, encoded, sequence);
  table.note_applied(tablet, delta.dot);
  memtable_bytes_ += table.active_bytes() - bytes_before;
}

void Engine::advance_durable() {
  const LogPosition durable = log_->durable_position();
  while (!pending_.empty() && pending_.front().position < durable) {
    const Pending& oldest = pending_.front();
    if (oldest.tablet != nullptr) oldest.tablet->durable.add(oldest.dot);
    durable_sequence_ = oldest.sequence;
    pending_.pop_front();
  }
}

Task<Result<causality::Delta>> Engine::write(TableId table, TabletId tablet, base::Bytes partition,
                                             causality::Mutation mutation, causality::Epoch epoch,
                                             Until until) {
  CO_TRY(const auto pass, gate_.enter());
  CO_TRY_VOID(co_await admit(table, tablet, size_estimate(partition, mutation), until));
  CO_TRY(auto staged, stage(table, tablet, partition, std::move(mutation), epoch));
  CO_TRY_VOID(co_await log_->durable(*staged.position, until));
  co_return std::move(staged.delta);
}

Task<Result<void>> Engine::durable(std::optional<LogPosition> position, Until until) {
  if (!position) co_return {};
  co_return co_await log_->durable(*position, std::move(until));
}

// ---- Reading ----

TableView Engine::view_of(const Place& place) {
  if (place.table->files_aside().empty()) return place.table->view();
  // Of damaged files only those in which the tablet has a part: they may answer with errors.
  auto files = std::make_shared<SstableList>(place.table->sstables());
  std::erase_if(*files, [&](const auto& file) {
    return place.table->aside(file->record.number) &&
           !place.shard->has_part_in(place.tablet->range, file->record);
  });
  return place.table->view(std::move(files));
}

Task<Result<RowRead>> Engine::read_row(TableId table, TabletId tablet, base::Bytes partition,
                                       base::Bytes row, Until until) {
  CO_TRY(const auto pass, gate_.enter());
  CO_TRY(const auto place, find(table, tablet));
  advance_durable();
  // The view and the clock are of one moment (S4).
  const TableView view = view_of(place);
  RowRead read{.partition = {},
               .clock = place.tablet->durable,
               .floor = place.tablet->floors.of_row(table, partition, row)};
  const std::uint64_t sequence = last_sequence_;
  ReadTrace trace;
  const std::string key = encode_key({partition, EntryKind::row, row});
  CO_TRY(auto entry, co_await view.find_older(base::as_bytes(key), until, trace));
  RowRangeDeletes older;
  if (view.older_may_have_ranges()) {
    CO_TRY_VOID(co_await older.load_older(view, partition, row, until, trace));
  }
  // Writes may have come while it waited. What they did to the row and to ranges around it is read
  // in this one step.
  view.absorb_active(base::as_bytes(key), entry, trace);
  RowRangeDeletes active;
  if (view.active().has_ranges()) active.load_active(view, partition, row, trace);
  if (last_sequence_ != sequence) {
    CO_TRY(const auto place_now, find(table, tablet));
    read.floor = std::max(read.floor, place_now.tablet->floors.of_row(table, partition, row));
  }
  if (entry.empty()) ++statistics_.reads_found_nothing;
  read.partition = assemble_row(row, std::move(entry), older, active);
  ++statistics_.reads;
  if (trace.memtables_with_key > 0) ++statistics_.reads_from_memtables;
  if (trace.sstables_with_key > 0) ++statistics_.reads_from_sstables;
  statistics_.blocks_per_read.record(trace.blocks_read);
  statistics_.sstables_per_read.record(trace.sstables_in_range - trace.sstables_filtered);
  if (trace.sequence > durable_sequence_) CO_TRY_VOID(co_await wait_durable(trace, until));
  co_return read;
}

Result<std::unique_ptr<TableCursor>> Engine::cursor(TableId table, TabletId tablet,
                                                    SstableCursorOptions options) {
  TRY(auto pass, gate_.enter());
  TRY(const auto place, find(table, tablet));
  advance_durable();
  return std::make_unique<TableCursor>(std::move(pass), view_of(place), place.tablet->range,
                                       place.tablet->durable, std::move(options));
}

Result<causality::Timestamp> Engine::row_floor(TableId table, TabletId tablet, ByteView partition,
                                               ByteView row) {
  TRY(const auto place, find(table, tablet));
  return place.tablet->floors.of_row(table, partition, row);
}

Task<Result<void>> Engine::wait_durable(const ReadTrace& trace, Until until) {
  const std::uint64_t sequence = trace.sequence;
  advance_durable();
  if (sequence <= durable_sequence_) co_return {};
  ASSERT(!pending_.empty() && pending_.front().sequence <= sequence);
  const LogPosition position = pending_[sequence - pending_.front().sequence].position;
  ++statistics_.reads_waited_for_log;
  co_return co_await log_->durable(position, std::move(until));
}

EngineStatistics Engine::statistics() const {
  EngineStatistics now = statistics_;
  now.memtable_bytes = memtable_bytes_;
  now.memtables_waiting = flush_queue_.size();
  now.mutation_memory_bytes = mutation_bytes_;
  now.mutation_dots_bytes = dots_bytes_;
  now.timestamp_floor_bytes = floor_bytes_;
  for (const auto& shard : shards_) {
    for (const auto& [id, tablet] : shard->tablets()) {
      now.mutations_in_memory += tablet->mutations.count_in_memory();
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
        if (!sstable->damage) now.sstable_resident_bytes += sstable->reader->resident_bytes();
      }
      now.compaction_backlog_bytes += compaction_backlog_bytes(
          table->compaction_candidates(runtime_.clock.now()), options_.compaction);
    }
  }
  now.compactions_running = compactions_running_;
  now.sstable_counters = sstables_.counters;
  now.cache_counters = sstables_.cache.counters();
  now.log_usage = log_->usage();
  now.log_bytes_written = log_->statistics().written_bytes;
  return now;
}

}  // namespace helenus::storage
