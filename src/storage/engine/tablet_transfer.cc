#include "storage/engine/tablet_transfer.h"

#include <algorithm>
#include <utility>

#include "storage/engine/tablet_difference.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using causality::Clock;
using runtime::Task;
using runtime::Until;

TabletTransfer::TabletTransfer(EngineState& state, DiskReserve& reserve, ManifestChanges& manifests,
                               Flusher& flusher)
    : state_(state), reserve_(reserve), manifests_(manifests), flusher_(flusher) {}

// ---- Giving ----

namespace {

bool may_have_part(const KeyRange& range, const SstableRecord& file) {
  return base::compare(file.key_last, range.from) >= 0 &&
         (!range.to || base::compare(file.key_first, *range.to) < 0);
}

// What a table has of a tablet, without its active memtable.
std::optional<TableView> frozen_view(const Shard& shard, const TableStore& table,
                                     const Tablet& tablet) {
  auto files = std::make_shared<SstableList>(table.sstables());
  std::erase_if(*files, [&](const auto& file) {
    // Of damaged ones those in which the tablet has a part: reading them is an error.
    const bool is_others =
        table.aside(file->record.number) && !shard.has_part_in(tablet.range, file->record);
    return is_others || !may_have_part(tablet.range, file->record);
  });
  std::vector<std::shared_ptr<const Memtable>> memtables;
  for (const FrozenMemtable& frozen : table.frozen()) {
    if (frozen.dots.contains(tablet.id)) memtables.push_back(frozen.memtable);
  }
  if (files->empty() && memtables.empty()) return std::nullopt;
  return TableView(std::make_shared<Memtable>(table.options().policy), std::move(memtables),
                   std::move(files));
}

}  // namespace

Result<std::shared_ptr<const TabletSnapshot>> TabletTransfer::freeze(TabletId id) {
  TRY(auto pass, state_.gate.enter());
  const Tablet* tablet = state_.find_tablet(id);
  if (tablet == nullptr) return Error(Errc::not_found, "tablet {}", id);
  if (tablet->lost_mutations) return tablet->lost_mutations->why;
  Shard& shard = *state_.shard_of(id);
  TabletClaim claim{.clock = tablet->clock,
                    .floor = tablet->floors.of_everything(),
                    .dropped_before = tablet->dropped_before,
                    .newest_operation = tablet->operations.newest()};
  TabletSnapshot::Views views;
  for (const auto& [table_id, table] : shard.tables()) {
    if (table->has_in_memory(id)) flusher_.freeze(shard, table);
    claim.tables.push_back(table_id);
    if (auto view = frozen_view(shard, *table, *tablet)) views.emplace(table_id, *std::move(view));
  }
  return std::make_shared<const TabletSnapshot>(std::move(pass), std::move(claim), tablet->range,
                                                std::move(views));
}

// What an index lacks that is being built, its copy would lack for ever.
Result<void> TabletTransfer::check_indexes(TabletId tablet) const {
  if (state_.find_tablet(tablet) == nullptr) return Error(Errc::not_found, "tablet {}", tablet);
  for (const auto& [id, table] : state_.shard_of(tablet)->tables()) {
    if (!table->is_index() || table->index_is_built()) continue;
    return Error(Errc::unavailable, "no copy of tablet {} while index {} is being built", tablet,
                 id);
  }
  return {};
}

Task<Result<std::shared_ptr<const TabletSnapshot>>> TabletTransfer::snapshot(TabletId tablet,
                                                                             Until until) {
  CO_TRY_VOID(check_indexes(tablet));
  CO_TRY(auto taken, freeze(tablet));
  CO_TRY_VOID(co_await state_.log->sync_to(state_.log->tail(), std::move(until)));
  co_return taken;
}

// ---- Taking ----

Result<void> TabletTransfer::check_claim(const Tablet& tablet, const TabletClaim& claim) const {
  if (tablet.lost_mutations) return tablet.lost_mutations->why;
  if (claim.clock.max_of(tablet.actor) > tablet.clock.max_of(tablet.actor)) {
    return Error(Errc::invalid_argument,
                 "a copy of tablet {} has dots of actor {}, which has not "
                 "minted them",
                 tablet.id, tablet.actor);
  }
  return {};
}

Task<Result<IngestReport>> TabletTransfer::ingest(TabletId id, TabletFeed& feed,
                                                  runtime::StopToken stop) {
  CO_TRY(const auto pass, state_.gate.enter());
  CO_TRY_VOID(state_.check_writable());
  Tablet* tablet = state_.find_tablet(id);
  if (tablet == nullptr) co_return Error(Errc::not_found, "tablet {}", id);
  if (tablet->awaited != nullptr) {
    co_return Error(Errc::already_exists, "a copy of tablet {} is being taken", id);
  }
  CO_TRY_VOID(check_claim(*tablet, feed.claim()));
  Ingest ingest{.tablet = id, .feed = &feed, .stop = std::move(stop)};
  // Nothing is awaited yet: it is taken, that is all.
  tablet->awaited = ingest.awaited = std::make_shared<const Clock>();
  const auto taken = co_await take(ingest);
  tablet = state_.find_tablet(id);
  if (tablet != nullptr && tablet->awaited == ingest.awaited) tablet->awaited = nullptr;
  co_await remove(ingest, ingest.received);
  co_await remove(ingest, ingest.differences);
  if (!taken) co_return taken.error();
  co_return ingest.report;
}

Task<Result<void>> TabletTransfer::take(Ingest& ingest) {
  CO_TRY_VOID(co_await receive(ingest));
  CO_TRY_VOID(co_await ingest.feed->received());
  CO_TRY_VOID(co_await hold_folding(ingest));
  CO_TRY_VOID(co_await compare(ingest));
  if (ingest.unseen.empty()) co_return {};
  co_return co_await install(ingest);
}

Task<Result<TabletTransfer::File>> TabletTransfer::write(const Ingest& ingest, TableStore& table,
                                                         EntrySource& source) {
  if (reserve_.refuses(WriteKind::data)) co_return reserve_.refusal();
  Shard& shard = *state_.shard_of(ingest.tablet);
  const FreezeNumber number = shard.next_freeze();
  MergePlan plan{.table = table.id(),
                 .policy = table.options().policy,
                 .freeze_first = number,
                 .freeze_last = number,
                 .knowledge = {},
                 .tablets = {},
                 .others = {},
                 .ranges_bytes_max = state_.options.merge_ranges_bytes_max,
                 .counters = table.counters(),
                 .is_copy = table.counters() != nullptr};
  CO_TRY(auto written, co_await shard.write_file(table, source, std::move(plan),
                                                 &state_.compaction_rate, ingest.stop));
  if (written.file != nullptr) reserve_.note_written(written.file->record.bytes);
  co_return std::move(written.file);
}

Task<Result<void>> TabletTransfer::receive(Ingest& ingest) {
  Shard& shard = *state_.shard_of(ingest.tablet);
  for (const TableId id : ingest.feed->claim().tables) {
    const auto source = ingest.feed->entries(id);
    const auto at = shard.tables().find(id);
    if (at == shard.tables().end()) {
      CO_TRY_VOID(co_await source->seek({}));
      if (!source->valid()) continue;
      co_return Error(Errc::unavailable,
                      "a copy of tablet {} has rows of table {}, which is not "
                      "here",
                      ingest.tablet, id);
    }
    const std::shared_ptr<TableStore> table = at->second;
    CO_TRY(auto file, co_await write(ingest, *table, *source));
    if (file == nullptr) continue;
    ingest.report.bytes_received += file->record.bytes;
    ingest.received.emplace(id, std::move(file));
  }
  co_return {};
}

Task<Result<void>> TabletTransfer::hold_folding(Ingest& ingest) {
  struct Underway {
    std::shared_ptr<TableStore> table;
    FileSet merging;
    std::optional<FreezeNumber> last_frozen;
  };
  std::vector<Underway> all;
  for (const auto& [id, table] : state_.shard_of(ingest.tablet)->tables()) {
    if (table->counters() == nullptr) continue;
    ingest.folding_held.push_back(std::make_unique<TableStore::FoldingHeld>(table));
    Underway underway{.table = table, .merging = {}, .last_frozen = std::nullopt};
    if (!table->frozen().empty()) underway.last_frozen = table->frozen().back().at.number;
    for (const auto& file : table->sstables()) {
      if (table->busy(file->record.number)) underway.merging.insert(file->record.number);
    }
    all.push_back(std::move(underway));
  }
  // What began before goes by what was known then.
  const auto is_over = [](const Underway& underway) {
    const TableStore& table = *underway.table;
    if (table.dropped()) return true;
    const bool is_flushing = underway.last_frozen && !table.frozen().empty() &&
                             table.frozen().front().at.number <= *underway.last_frozen;
    if (is_flushing) return false;
    return std::ranges::none_of(underway.merging,
                                [&](FileNumber file) { return table.busy(file); });
  };
  while (!std::ranges::all_of(all, is_over)) {
    CO_TRY_VOID(state_.check_writable());
    CO_TRY_VOID(co_await state_.signals.files_changed.wait({.stop = ingest.stop}));
  }
  co_return {};
}

Task<Result<void>> TabletTransfer::compare(Ingest& ingest) {
  const TabletClaim& claim = ingest.feed->claim();
  CO_TRY(ingest.here, freeze(ingest.tablet));
  // Until the next wait the tablet is as it was frozen.
  Tablet* tablet = state_.find_tablet(ingest.tablet);
  if (tablet->awaited != ingest.awaited) {
    co_return Error(Errc::not_found, "tablet {} was made anew", ingest.tablet);
  }
  CO_TRY_VOID(check_claim(*tablet, claim));
  ingest.log_end = state_.log->tail();
  ingest.unseen = causality::subtract(claim.clock, tablet->clock);
  tablet->awaited = ingest.awaited = std::make_shared<const Clock>(ingest.unseen);
  if (ingest.unseen.empty()) co_return {};
  const Clock& clock = ingest.here->claim().clock;
  const bool nothing_in_common = causality::meet(claim.clock, clock).empty();
  Shard& shard = *state_.shard_of(ingest.tablet);
  for (const TableId id : claim.tables) {
    const auto at = shard.tables().find(id);
    if (at == shard.tables().end()) continue;  // it was dropped
    const std::shared_ptr<TableStore> table = at->second;
    const auto received = ingest.received.find(id);
    const bool has_theirs = received != ingest.received.end();
    const bool has_ours = ingest.here->may_have(id);
    if (!has_theirs && !has_ours) continue;
    if (!has_ours && nothing_in_common) {
      ingest.differences.emplace(id, received->second);
      ingest.received.erase(received);
      continue;
    }
    DifferenceOf of{.theirs = no_entries(),
                    .claim = claim.clock,
                    .ours = ingest.here->entries(id, {.stop = ingest.stop}),
                    .clock = clock};
    if (has_theirs) {
      const SstableReader& reader = *received->second->reader;
      of.theirs = entries_of(received->second->reader->cursor({.cache_use = CacheUse::bypass}),
                             reader.path());
    }
    const auto source = difference(state_.runtime, std::move(of), ingest.stop);
    CO_TRY(auto file, co_await write(ingest, *table, *source));
    if (file != nullptr) ingest.differences.emplace(id, std::move(file));
  }
  co_return {};
}

Clock TabletTransfer::note_shed(Tablet& tablet, const Ingest& ingest) {
  Clock dots;
  for (const causality::DotRange& each : causality::missing(Clock(), ingest.unseen).dots) {
    dots.add(each);
  }
  tablet.mutations.found_shed(dots);
  state_.operations.refuse_up_to(
      std::max(state_.operations.now(), ingest.feed->claim().newest_operation));
  state_.memory.floors -= tablet.floors.memory_bytes();
  tablet.floors.add(dots, ingest.feed->claim().floor);
  state_.memory.floors += tablet.floors.memory_bytes();
  return dots;
}

Task<Result<void>> TabletTransfer::install(Ingest& ingest) {
  CO_TRY_VOID(co_await state_.log->sync_to(ingest.log_end, {.stop = ingest.stop}));
  Tablet* tablet = state_.find_tablet(ingest.tablet);
  if (tablet == nullptr || tablet->awaited != ingest.awaited) {
    co_return Error(Errc::not_found, "tablet {}", ingest.tablet);
  }
  CO_TRY_VOID(state_.check_writable());
  const Clock shed = note_shed(*tablet, ingest);
  Shard& shard = *state_.shard_of(ingest.tablet);
  const causality::ActorId actor = tablet->actor;
  bool entered = false;
  auto installed = co_await manifests_.install_until_done(shard, [&](ManifestState& state) {
    entered = false;
    const auto record = state.tablets.find(ingest.tablet);
    // It may have been dropped since, and made anew.
    if (record == state.tablets.end() || record->second.actor != actor) return;
    entered = true;
    for (const auto& [id, file] : ingest.differences) {
      const auto table = state.tables.find(id);
      if (table != state.tables.end()) enter_file(table->second.sstables, file->record);
    }
    record->second.clock = causality::join(record->second.clock, ingest.unseen);
    record->second.shed = causality::join(record->second.shed, shed);
    record->second.shed_largest = std::max(record->second.shed_largest, ingest.feed->claim().floor);
  });
  if (!installed) {
    // The manifest on the disk may name them.
    ingest.differences.clear();
    co_return installed;
  }
  if (!entered) co_return Error(Errc::not_found, "tablet {} has changed", ingest.tablet);
  auto noted = co_await manifests_.note_generations();
  enter(ingest);
  co_return noted;
}

void TabletTransfer::enter(Ingest& ingest) {
  Shard& shard = *state_.shard_of(ingest.tablet);
  for (auto& [id, file] : std::exchange(ingest.differences, {})) {
    TableStore* table = shard.table(id);
    if (table == nullptr) continue;  // it was dropped
    ingest.report.bytes_installed += file->record.bytes;
    table->add_sstable(std::move(file));
  }
  ingest.report.dots = causality::missing(Clock(), ingest.unseen).dots.size();
  Tablet* tablet = state_.find_tablet(ingest.tablet);
  if (tablet == nullptr || tablet->awaited != ingest.awaited) return;
  tablet->clock = causality::join(tablet->clock, ingest.unseen);
  tablet->durable = causality::join(tablet->durable, ingest.unseen);
  tablet->dropped_before = std::max(tablet->dropped_before, ingest.feed->claim().dropped_before);
  state_.staged.note_changed(*tablet);
  state_.signals.compaction_work.wake_all();
}

Task<void> TabletTransfer::remove(const Ingest& ingest, const Files& files) {
  std::vector<File> list;
  for (const auto& [table, file] : files) list.push_back(file);
  co_await state_.shard_of(ingest.tablet)->remove_files(std::move(list));
}

}  // namespace helenus::storage
