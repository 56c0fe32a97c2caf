#include "storage/engine/table_snapshots.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/files.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

// How often the freeze is tried again, since a merge ended meanwhile.
constexpr int kAttemptsMax = 8;

// What a snapshot has of a tablet, as what another replica gives.
class FeedOfSnapshot final : public TabletFeed {
 public:
  FeedOfSnapshot(std::shared_ptr<const TabletSnapshot> from,
                 const absl::btree_map<TableId, TableId>& tables)
      : from_(std::move(from)), claim_(from_->claim()) {
    claim_.tables.clear();
    for (const auto& [then, now] : tables) {
      claim_.tables.push_back(now);
      then_.emplace(now, then);
    }
    std::ranges::sort(claim_.tables);
  }

  const TabletClaim& claim() const override { return claim_; }
  std::unique_ptr<EntrySource> entries(TableId table) override {
    return from_->entries(then_.at(table), Until::forever());
  }

 private:
  const std::shared_ptr<const TabletSnapshot> from_;
  TabletClaim claim_;
  absl::btree_map<TableId, TableId> then_;
};

bool may_have_some(const KeyRange& range, const SstableRecord& file) {
  return base::compare(file.key_last, range.from) >= 0 &&
         (!range.to || base::compare(file.key_first, *range.to) < 0);
}

}  // namespace

TableSnapshots::TableSnapshots(EngineState& state, Flusher& flusher, SchemaChanges& schema,
                               TabletTransfer& transfer)
    : state_(state), flusher_(flusher), schema_(schema), transfer_(transfer) {}

std::string TableSnapshots::folder(std::size_t directory, const std::string& name,
                                   const Shard& shard) const {
  return fmt::format("{}/{}", snapshot_folder(state_.options.data_directories[directory], name),
                     shard.name());
}

// ---- Making ----

std::vector<TableSnapshots::Part> TableSnapshots::parts_of(
    const std::vector<TableId>& tables) const {
  std::vector<Part> parts;
  for (const auto& shard : state_.shards) {
    Part part{.shard = shard.get(), .tables = {}};
    for (const auto& [id, table] : shard->tables()) {
      const TableId of = table->is_index() ? table->options().index->table : id;
      if (std::ranges::find(tables, of) != tables.end()) part.tables.push_back(table);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

Task<Result<void>> TableSnapshots::wait_for_merges(const std::vector<Part>& parts, Until until) {
  const auto is_busy = [](const std::shared_ptr<TableStore>& table) {
    return std::ranges::any_of(table->sstables(),
                               [&](const auto& file) { return table->busy(file->record.number); });
  };
  while (std::ranges::any_of(
      parts, [&](const Part& part) { return std::ranges::any_of(part.tables, is_busy); })) {
    CO_TRY_VOID(state_.check_writable());
    CO_TRY_VOID(co_await state_.signals.files_changed.wait(until));
  }
  co_return {};
}

Result<void> TableSnapshots::freeze_table(Part& part, const std::shared_ptr<TableStore>& table) {
  if (table->dropped()) return Error(Errc::not_found, "table {}", table->id());
  if (!table->files_aside().empty()) {
    return Error(table->files_aside().begin()->second).within("no snapshot of a damaged file");
  }
  if (table->is_index() && !table->index_is_built()) {
    return Error(Errc::unavailable, "no snapshot while index {} is being built", table->id());
  }
  flusher_.freeze(*part.shard, table);
  for (const auto& file : table->sstables()) part.files[table->id()].insert(file->record.number);
  for (const FrozenMemtable& frozen : table->frozen()) {
    part.freezes[table->id()].insert(frozen.at.number);
  }
  return {};
}

Result<void> TableSnapshots::freeze(std::vector<Part>& parts,
                                    const std::vector<TabletId>& tablets) {
  for (Part& part : parts) {
    part.manifest = {};
    part.manifest.node = state_.options.node;
    part.files.clear();
    part.freezes.clear();
  }
  for (const TabletId id : tablets) {
    const Tablet* tablet = state_.find_tablet(id);
    if (tablet == nullptr) return Error(Errc::not_found, "tablet {}", id);
    if (tablet->lost_mutations) return tablet->lost_mutations->why;
    if (tablet->awaited != nullptr || state_.restoring.contains(id)) {
      return Error(Errc::unavailable, "no snapshot while a copy of tablet {} is being taken", id);
    }
    const Shard* shard = state_.shard_of(id);
    const auto part = std::ranges::find(parts, shard, &Part::shard);
    part->manifest.tablets.emplace(id,
                                   TabletRecord{.range = tablet->range,
                                                .actor = tablet->actor,
                                                .clock = tablet->clock,
                                                .shed_largest = tablet->floors.of_everything()});
  }
  for (Part& part : parts) {
    // An index before its table: its entries follow from what is there (flusher.h).
    for (const bool indexes : {true, false}) {
      for (const auto& table : part.tables) {
        if (table->is_index() == indexes) TRY_VOID(freeze_table(part, table));
      }
    }
  }
  return {};
}

Task<Result<void>> TableSnapshots::wait_for_flushes(const std::vector<Part>& parts, Until until) {
  const auto waits = [](const Part& part) {
    return std::ranges::any_of(part.tables, [&](const std::shared_ptr<TableStore>& table) {
      const auto freezes = part.freezes.find(table->id());
      return freezes != part.freezes.end() && !freezes->second.empty() &&
             !table->frozen().empty() &&
             table->frozen().front().at.number <= *freezes->second.rbegin();
    });
  };
  while (std::ranges::any_of(parts, waits)) {
    CO_TRY_VOID(state_.check_writable());
    if (state_.flush_error) co_return *state_.flush_error;
    CO_TRY_VOID(co_await state_.signals.files_changed.wait(until));
  }
  co_return {};
}

bool TableSnapshots::take_files(Part& part) {
  part.manifest.tables.clear();
  for (const auto& table : part.tables) {
    if (table->dropped()) return false;
    TableRecord record{
        .options = table->options(), .sstables = {}, .index_is_built = table->index_is_built()};
    const FileSet& before = part.files[table->id()];
    const auto& freezes = part.freezes[table->id()];
    std::size_t kept = 0;
    for (const auto& file : table->sstables()) {
      const SstableRecord& its = file->record;
      const bool was_there = before.contains(its.number);
      const bool was_frozen =
          its.freeze_first == its.freeze_last && freezes.contains(its.freeze_first);
      // Of later.
      if (!was_there && !was_frozen && !freezes.empty() && its.freeze_first > *freezes.rbegin()) {
        continue;
      }
      if (!was_there && !was_frozen) return false;
      if (was_there) ++kept;
      record.sstables.push_back(its);
      part.manifest.next_file =
          std::max(part.manifest.next_file, FileNumber{its.number.value() + 1});
      part.manifest.next_freeze =
          std::max(part.manifest.next_freeze, FreezeNumber{its.freeze_last.value() + 1});
    }
    if (kept != before.size()) return false;
    part.manifest.tables.emplace(table->id(), std::move(record));
  }
  return true;
}

Task<Result<SnapshotSize>> TableSnapshots::link(const std::string& name, const Part& part) {
  SnapshotSize size;
  for (std::size_t i = 0; i < state_.options.data_directories.size(); ++i) {
    CO_TRY_VOID(
        co_await runtime::make_directories_durably(state_.runtime, folder(i, name, *part.shard)));
  }
  for (const auto& [id, table] : part.manifest.tables) {
    for (const SstableRecord& file : table.sstables) {
      const std::string to = fmt::format("{}/{}", folder(file.directory, name, *part.shard),
                                         Shard::name_of(file.number));
      CO_TRY_VOID(co_await state_.runtime.files.link(part.shard->path_of(file), to));
      ++size.files;
      size.bytes += file.bytes;
    }
  }
  for (std::size_t i = 0; i < state_.options.data_directories.size(); ++i) {
    CO_TRY_VOID(co_await state_.runtime.files.sync_directory(folder(i, name, *part.shard)));
  }
  CO_TRY_VOID(co_await write_manifest(state_.runtime, folder(0, name, *part.shard) + "/manifest",
                                      part.manifest));
  co_return size;
}

Task<Result<SnapshotSize>> TableSnapshots::make(std::string name, std::vector<TableId> tables,
                                                std::vector<TabletId> tablets, Until until) {
  CO_TRY(const auto pass, state_.gate.enter());
  std::vector<Part> parts = parts_of(tables);
  std::vector<std::unique_ptr<TableStore::WantedWhole>> wanted;
  for (const Part& part : parts) {
    for (const auto& table : part.tables) {
      wanted.push_back(std::make_unique<TableStore::WantedWhole>(*table));
    }
  }
  bool has_files = false;
  for (int attempt = 0; attempt < kAttemptsMax && !has_files; ++attempt) {
    CO_TRY_VOID(co_await wait_for_merges(parts, until));
    CO_TRY_VOID(freeze(parts, tablets));
    CO_TRY_VOID(co_await wait_for_flushes(parts, until));
    has_files = std::ranges::all_of(parts, [](Part& part) { return take_files(part); });
  }
  if (!has_files) {
    co_return Error(Errc::unavailable, "files of the tables change all the time; try again");
  }
  // In the step that took them.
  for (const Part& part : parts) part.shard->keep_files();
  wanted.clear();
  state_.signals.compaction_work.wake_all();
  Result<SnapshotSize> size = SnapshotSize();
  for (const Part& part : parts) {
    if (size) {
      auto linked = co_await link(name, part);
      if (linked) {
        size->add(*linked);
      } else {
        size = std::move(linked).error();
      }
    }
    co_await part.shard->let_files_go();
  }
  co_return size;
}

// ---- Restoring ----

Task<Result<ManifestState>> TableSnapshots::read_part(const std::string& name, TabletId tablet) {
  const Shard* shard = state_.shard_of(tablet);
  if (shard == nullptr) co_return Error(Errc::not_found, "tablet {} on this core", tablet);
  co_return co_await read_manifest(state_.runtime, folder(0, name, *shard) + "/manifest");
}

Task<Result<SstableList>> TableSnapshots::open_files(const std::string& name, TabletId tablet,
                                                     const KeyRange& range,
                                                     const TableRecord& table) {
  SstableList files;
  const Shard& shard = *state_.shard_of(tablet);
  for (const SstableRecord& record : table.sstables) {
    if (!may_have_some(range, record)) continue;
    if (record.directory >= state_.options.data_directories.size()) {
      co_return Error(Errc::invalid_argument,
                      "the snapshot has a file in data directory {}, and only {} are given",
                      record.directory, state_.options.data_directories.size());
    }
    auto file = std::make_shared<Sstable>();
    const std::string path =
        fmt::format("{}/{}", folder(record.directory, name, shard), Shard::name_of(record.number));
    CO_TRY(file->reader,
           co_await SstableReader::open(state_.runtime, state_.sstables, path,
                                        {.direct = state_.options.direct_reads}, Until::forever()));
    if (file->reader->file_size() != record.bytes) {
      co_return Error(Errc::corrupt, "{}: has {} bytes, the snapshot says {}", path,
                      file->reader->file_size(), record.bytes);
    }
    auto metadata = decode_sstable_metadata(file->reader->metadata());
    if (!metadata) co_return std::move(metadata).error().within(path);
    file->metadata = *std::move(metadata);
    file->record = record;
    files.push_back(std::move(file));
  }
  co_return files;
}

Task<Result<std::shared_ptr<const TabletSnapshot>>> TableSnapshots::open(
    const std::string& name, const RestoreOrder& order, const ManifestState& part,
    const TabletRecord& record) {
  CO_TRY(auto pass, state_.gate.enter());
  TabletClaim claim{
      .clock = record.clock, .floor = record.shed_largest, .dropped_before = order.dropped_before};
  TabletSnapshot::Views views;
  for (const auto& [then, now] : order.tables) {
    const auto table = part.tables.find(then);
    if (table == part.tables.end()) continue;
    CO_TRY(SstableList files, co_await open_files(name, order.tablet, record.range, table->second));
    if (files.empty()) continue;
    views.emplace(then, TableView(std::make_shared<Memtable>(table->second.options.policy), {},
                                  std::make_shared<const SstableList>(std::move(files))));
  }
  co_return std::make_shared<const TabletSnapshot>(std::move(pass), std::move(claim), record.range,
                                                   std::move(views));
}

Task<Result<void>> TableSnapshots::empty(const RestoreOrder& order, const KeyRange& range) {
  auto dropped = co_await schema_.drop_tablets({order.tablet});
  // An attempt before this one came so far.
  if (!dropped && !dropped.failed_with(Errc::not_found)) co_return dropped;
  co_return co_await schema_.create_tablet(order.tablet, range, *order.anew_as);
}

Task<Result<RestoreReport>> TableSnapshots::restore(std::string name, RestoreOrder order,
                                                    runtime::StopToken stop) {
  CO_TRY(const auto pass, state_.gate.enter());
  CO_TRY(const ManifestState part, co_await read_part(name, order.tablet));
  const auto record = part.tablets.find(order.tablet);
  if (record == part.tablets.end()) co_return RestoreReport{};
  const Tablet* tablet = state_.find_tablet(order.tablet);
  if (tablet != nullptr && tablet->range != record->second.range) {
    co_return Error(Errc::unsupported,
                    "the snapshot is of another ring: tablet {} has other keys now", order.tablet);
  }
  RestoreReport report{.was_in_snapshot = true};
  if (!order.anew_as && tablet != nullptr && tablet->clock.covers(record->second.clock)) {
    co_return report;
  }
  // Before anything goes: what cannot be opened is told while all is as it was.
  CO_TRY(const auto opened, co_await open(name, order, part, record->second));
  FeedOfSnapshot feed(opened, order.tables);
  if (!order.anew_as) {
    CO_TRY(report.taken, co_await transfer_.ingest(order.tablet, feed, std::move(stop)));
    co_return report;
  }
  // After an error it still answers nobody.
  state_.restoring.insert(order.tablet);
  CO_TRY_VOID(co_await empty(order, record->second.range));
  CO_TRY(report.taken, co_await transfer_.ingest(order.tablet, feed, std::move(stop)));
  state_.restoring.erase(order.tablet);
  co_return report;
}

}  // namespace helenus::storage
