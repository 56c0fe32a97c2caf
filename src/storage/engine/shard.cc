#include "storage/engine/shard.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <absl/container/btree_set.h>

#include "base/codec.h"
#include "runtime/clock.h"
#include "runtime/file_system.h"
#include "runtime/files.h"
#include "runtime/random.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;

namespace {

constexpr std::string_view kSstableSuffix = ".sst";

std::string shard_directory(const std::string& parent, ShardNumber number) {
  return fmt::format("{}/shard-{:04}", parent, number.value());
}

std::string sstable_name(FileNumber number) {
  return fmt::format("{:010}{}", number.value(), kSstableSuffix);
}

causality::WallTime wall_seconds(runtime::WallTime now) {
  return causality::WallTime{std::chrono::floor<std::chrono::seconds>(now.since_origin()).count()};
}

}  // namespace

void enter_file(std::vector<SstableRecord>& files, const SstableRecord& file) {
  const auto at = std::ranges::lower_bound(files, file.number, {}, &SstableRecord::number);
  files.insert(at, file);
}

Task<Result<void>> Shard::create(ShardEnvironment environment, ShardNumber number) {
  for (const std::string& parent : environment.options.data_directories) {
    CO_TRY_VOID(co_await runtime::make_directories_durably(environment.runtime,
                                                           shard_directory(parent, number)));
  }
  const auto data_without_folder = [](const std::string& path) {
    return Error(Errc::corrupt, "{}: there is data, and the file that tells of it is missing",
                 path);
  };
  for (const std::string& parent : environment.options.data_directories) {
    const std::string directory = shard_directory(parent, number);
    CO_TRY(const auto entries, co_await environment.runtime.files.list(directory));
    for (const runtime::DirectoryEntry& entry : entries) {
      const std::string path = directory + "/" + entry.name;
      if (entry.name.ends_with(kSstableSuffix)) co_return data_without_folder(path);
    }
  }
  const std::string path =
      shard_directory(environment.options.data_directories.front(), number) + "/manifest";
  const auto there = co_await read_manifest(environment.runtime, path);
  if (there != ManifestState() && !there.failed_with(Errc::not_found)) {
    co_return data_without_folder(path);
  }
  co_return co_await write_manifest(environment.runtime, path, ManifestState());
}

Shard::Shard(ShardEnvironment environment, ShardNumber number)
    : environment_(environment), number_(number), install_turn_(environment.runtime, 1, SIZE_MAX) {}

std::string Shard::directory(std::size_t index) const {
  return shard_directory(environment_.options.data_directories[index], number_);
}

std::string Shard::name_of(FileNumber file) {
  return sstable_name(file);
}

std::string Shard::path_of(const SstableRecord& record) const {
  return directory(record.directory) + "/" + sstable_name(record.number);
}

Task<Result<std::unique_ptr<Shard>>> Shard::load(ShardEnvironment environment, ShardNumber number) {
  auto shard = std::make_unique<Shard>(environment, number);
  auto manifest = co_await read_manifest(environment.runtime, shard->manifest_path());
  if (manifest.failed_with(Errc::not_found)) {
    co_return Error(Errc::corrupt, "{}: the manifest is missing", shard->directory(0));
  }
  if (!manifest) co_return std::move(manifest).error();
  shard->manifest_ = *std::move(manifest);
  shard->next_file_ = shard->manifest_.next_file.value();
  shard->next_freeze_ = shard->manifest_.next_freeze.value();
  co_return shard;
}

bool Shard::is_damage(const Error& error) {
  return error.code() == Errc::corrupt || error.code() == Errc::unsupported;
}

namespace {

// What whoever is told of a file that cannot be opened is to do.
Error with_remedy(const Error& error) {
  const std::string_view later =
      error.code() == Errc::unsupported ? "open it with the program that wrote it, or " : "";
  return {error.code(), "{}; {}drop the tablets that have a part in it and make them anew",
          error.context(), later};
}

}  // namespace

Task<Result<void>> Shard::open_files() {
  // After a kill the manifest may be one whose name is not durable yet. The files that only the one
  // before names must not go as long as a power loss could bring it back.
  CO_TRY_VOID(co_await environment_.runtime.files.sync_directory(directory(0)));
  CO_TRY_VOID(co_await remove_leftovers());
  for (const auto& [id, record] : manifest_.tablets) add_tablet(id, record);
  for (const auto& [id, record] : manifest_.tables) {
    const auto table = add_table(id, record.options);
    if (record.index_is_built) table->set_index_built();
    for (const SstableRecord& file : record.sstables) {
      auto sstable = co_await open_file(file);
      if (sstable && (*sstable)->metadata.table != id) {
        sstable = Error(Errc::corrupt, "{}: is of table {}, not {}", path_of(file),
                        (*sstable)->metadata.table, id);
      }
      if (sstable && manifest_.set_aside.contains(file.number)) {
        table->set_aside(file.number,
                         Error(Errc::corrupt, "{}: was found damaged before", path_of(file)));
      }
      if (!sstable && is_damage(sstable.error())) {
        // Everything else can be served. One that is missing is another matter: directory_set.h.
        sstable = with_remedy(std::move(sstable).error());
        environment_.log.error("a damaged file is set aside", base::kv("error", sstable.error()));
        table->set_aside(file.number, sstable.error());
        sstable = std::make_shared<const Sstable>(
            Sstable{.record = file, .metadata = {}, .reader = {}, .damage = sstable.error()});
      }
      if (!sstable) co_return std::move(sstable).error();
      table->add_sstable(*std::move(sstable));
    }
  }
  co_return co_await open_mutation_files();
}

// What is missing was not removed by us: names leave the manifest first. And what it does not name
// may be what is missing elsewhere: nothing is a leftover before this has been looked at.
Task<Result<void>> Shard::check_files() {
  std::vector<SstableRecord> files = manifest_.mutation_files;
  for (const auto& [id, table] : manifest_.tables) {
    files.insert(files.end(), table.sstables.begin(), table.sstables.end());
  }
  for (const SstableRecord& file : files) {
    if (file.directory >= environment_.options.data_directories.size()) continue;
    const auto info = co_await environment_.runtime.files.info(path_of(file));
    if (info) continue;
    if (!info.failed_with(Errc::not_found)) co_return info.error();
    co_return Error(Errc::not_found,
                    "{} is missing, and {} names it: restore the file, or all directories from the "
                    "same backup",
                    path_of(file), manifest_path());
  }
  co_return {};
}

Task<Result<void>> Shard::remove_leftovers() {
  std::vector<SstableRecord> files = manifest_.mutation_files;
  for (const auto& [id, table] : manifest_.tables) {
    files.insert(files.end(), table.sstables.begin(), table.sstables.end());
  }
  absl::btree_set<std::string> named;
  for (const SstableRecord& file : files) {
    if (file.directory >= environment_.options.data_directories.size()) {
      co_return Error(
          Errc::invalid_argument, "{}: a file lies in data directory {}, and only {} are given",
          manifest_path(), file.directory, environment_.options.data_directories.size());
    }
    named.insert(path_of(file));
  }
  for (std::size_t index = 0; index < environment_.options.data_directories.size(); ++index) {
    // A data directory that was added since the folder was made has no place for the shard yet.
    CO_TRY_VOID(co_await runtime::make_directories_durably(environment_.runtime, directory(index)));
    CO_TRY(const auto entries, co_await environment_.runtime.files.list(directory(index)));
    for (const runtime::DirectoryEntry& entry : entries) {
      const std::string path = directory(index) + "/" + entry.name;
      const bool leftover = entry.name == "manifest.new" ||
                            (entry.name.ends_with(kSstableSuffix) && !named.contains(path));
      if (!leftover) continue;
      environment_.log.info("removes a file that no manifest names", base::kv("path", path));
      CO_TRY_VOID(co_await environment_.runtime.files.remove(path));
    }
  }
  co_return {};
}

Task<Result<std::shared_ptr<SstableReader>>> Shard::open_reader(SstableRecord record) {
  const std::string path = path_of(record);
  CO_TRY(auto reader,
         co_await SstableReader::open(environment_.runtime, environment_.sstables, path,
                                      {.direct = environment_.options.direct_reads},
                                      runtime::Until::forever()));
  if (reader->file_size() != record.bytes) {
    co_return Error(Errc::corrupt, "{}: has {} bytes, the manifest says {}", path,
                    reader->file_size(), record.bytes);
  }
  co_return reader;
}

Task<Result<std::shared_ptr<const Sstable>>> Shard::open_file(SstableRecord record) {
  auto sstable = std::make_shared<Sstable>();
  CO_TRY(sstable->reader, co_await open_reader(record));
  auto metadata = decode_sstable_metadata(sstable->reader->metadata());
  if (!metadata) co_return std::move(metadata).error().within(path_of(record));
  sstable->metadata = *std::move(metadata);
  sstable->record = std::move(record);
  co_return sstable;
}

Clocks Shard::clocks() const {
  Clocks clocks;
  for (const auto& [id, tablet] : tablets_) {
    clocks.emplace_hint(clocks.end(), id, tablet->clock);
  }
  return clocks;
}

Tablet* Shard::tablet(TabletId id) {
  const auto at = tablets_.find(id);
  return at == tablets_.end() ? nullptr : at->second.get();
}

TableStore* Shard::table(TableId id) {
  const auto at = tables_.find(id);
  return at == tables_.end() ? nullptr : at->second.get();
}

Tablet& Shard::add_tablet(TabletId id, const TabletRecord& record) {
  auto tablet = std::make_unique<Tablet>(Tablet{.id = id,
                                                .range = record.range,
                                                .actor = record.actor,
                                                .clock = record.clock,
                                                .durable = record.clock});
  tablet->mutations.found_shed(record.shed);
  tablet->mutations.cover(record.covered);
  tablet->floors.add(record.shed, record.shed_largest);
  return *tablets_.emplace(id, std::move(tablet)).first->second;
}

void Shard::remove_tablet(TabletId id) {
  for (LiveMutationFile& each : mutation_files_) each.live.erase(id);
  tablets_.erase(id);
}

std::shared_ptr<TableStore> Shard::add_table(TableId id, TableOptions options) {
  std::array<std::byte, sizeof(std::uint64_t)> seed;
  environment_.runtime.random.fill_secret(seed);
  auto table =
      std::make_shared<TableStore>(id, number_, options, base::load_le<std::uint64_t>(seed.data()));
  if (options.index) {
    tell_index(*table);
    const auto of = tables_.find(options.index->table);
    if (of != tables_.end()) of->second->add_index(table);
  }
  for (const auto& [other, index] : tables_) {
    if (index->is_index() && index->options().index->table == id) table->add_index(index);
  }
  return tables_.emplace(id, std::move(table)).first->second;
}

void Shard::remove_table(TableId id) {
  const auto at = tables_.find(id);
  if (at == tables_.end()) return;
  if (at->second->is_index()) {
    const auto of = tables_.find(at->second->options().index->table);
    if (of != tables_.end()) of->second->remove_index(id);
  }
  tables_.erase(at);
}

void Shard::tell_index(TableStore& index) const {
  const auto& read = environment_.options.read_index_definition;
  if (read != nullptr) index.derive_entries_by(read(index.options().index->definition));
}

Knowledge Shard::knowledge() const {
  const causality::WallTime now = wall_seconds(environment_.runtime.clock.wall_now());
  Knowledge knowledge;
  for (const auto& [id, tablet] : tablets_) {
    const auto known = knowledge.emplace_hint(knowledge.end(), id, tablet->knowledge(now));
    const auto wall = known->second.stable.wall;
    if (wall) tablet->dropped_before = std::max(tablet->dropped_before, *wall);
  }
  return knowledge;
}

std::vector<TabletRange> Shard::tablet_ranges() const {
  std::vector<TabletRange> ranges;
  for (const auto& [id, tablet] : tablets_) ranges.push_back({.id = id, .range = tablet->range});
  std::ranges::sort(ranges, {}, [](const TabletRange& tablet) { return tablet.range.from; });
  return ranges;
}

namespace {

bool has_file(const ManifestState& state, FileNumber number) {
  return std::ranges::any_of(state.tables, [&](const auto& table) {
    return std::ranges::find(table.second.sstables, number, &SstableRecord::number) !=
           table.second.sstables.end();
  });
}

}  // namespace

Task<Result<void>> Shard::install(Edit edit) {
  CO_TRY(const auto turn, co_await install_turn_.acquire(1, runtime::Until::forever()));
  ManifestState next = manifest_;
  next.next_file = FileNumber{next_file_};
  next.next_freeze = FreezeNumber{next_freeze_};
  edit(next);
  absl::erase_if(next.set_aside, [&](const auto& aside) { return !has_file(next, aside.first); });
  ++next.generation;
  next.node = environment_.options.node;
  CO_TRY_VOID(co_await write_manifest(environment_.runtime, manifest_path(), next));
  manifest_ = std::move(next);
  co_return {};
}

namespace {

// The keys of entries compare with bounds as their partitions' do (KeyRange).
bool overlaps(const KeyRange& range, const SstableRecord& file) {
  return file.key_last >= range.from && (!range.to || file.key_first < *range.to);
}

}  // namespace

bool Shard::has_part_in(const KeyRange& tablet, const SstableRecord& file) const {
  if (!overlaps(tablet, file)) return false;
  const auto at = manifest_.set_aside.find(file.number);
  return at == manifest_.set_aside.end() ||
         std::ranges::none_of(at->second, [&](const KeyRange& empty) {
           return empty.from <= tablet.from &&
                  (!empty.to || (tablet.to && *tablet.to <= *empty.to));
         });
}

void Shard::enter_set_aside(ManifestState& state) const {
  for (const auto& [id, table] : tables_) {
    for (const auto& [number, why] : table->files_aside()) state.set_aside.try_emplace(number);
  }
}

void Shard::enter_empty_range(ManifestState& state, const KeyRange& range) const {
  enter_set_aside(state);
  for (auto& [number, empty] : state.set_aside) {
    // Tablets do not overlap, and those that were there before are gone.
    std::erase_if(empty, [&](const KeyRange& each) {
      const bool before = each.to && *each.to <= range.from;
      const bool behind = range.to && *range.to <= each.from;
      return !before && !behind;
    });
    const auto at = std::ranges::lower_bound(empty, range.from, {}, &KeyRange::from);
    empty.insert(at, range);
  }
}

std::vector<Shard::AsideFile> Shard::unneeded_aside() const {
  std::vector<AsideFile> unneeded;
  for (const auto& [id, table] : tables_) {
    for (const auto& file : table->sstables()) {
      if (!table->aside(file->record.number)) continue;
      const bool needed = std::ranges::any_of(tablets_, [&](const auto& tablet) {
        return has_part_in(tablet.second->range, file->record);
      });
      if (!needed) unneeded.emplace_back(table, file);
    }
  }
  return unneeded;
}

Task<Result<std::uint32_t>> Shard::choose_directory(FileNumber file) {
  const auto& directories = environment_.options.data_directories;
  if (directories.size() == 1) co_return 0;
  struct Choice {
    std::uint32_t directory;
    bool trusted;
    std::uint64_t free_bytes;
  };
  std::optional<Choice> best;
  std::optional<Error> silence;
  const auto first = static_cast<std::uint32_t>(file.value() % directories.size());
  for (std::uint32_t step = 0; step < directories.size(); ++step) {
    const auto index = static_cast<std::uint32_t>((first + step) % directories.size());
    auto space = co_await environment_.runtime.files.space(directories[index]);
    const bool trusted = space.has_value() && !is_avoided(index);
    if (!trusted) ++directories_passed_over_;
    if (!space) {
      environment_.log.warn("a data directory is passed over",
                            base::kv("directory", directories[index]),
                            base::kv("error", space.error()));
      silence = std::move(space).error();
      continue;
    }
    const Choice choice{index, trusted, space->free_bytes};
    const auto rank = [](const Choice& of) { return std::pair(of.trusted, of.free_bytes); };
    if (!best || rank(choice) > rank(*best)) best = choice;
  }
  if (!best) co_return *std::move(silence);
  co_return best->directory;
}

void Shard::avoid_directory(std::uint32_t directory, const Error& error) {
  constexpr auto kAvoidedFor = std::chrono::minutes(1);
  const bool of_directory = error.code() == Errc::no_space || error.code() == Errc::io_error ||
                            error.code() == Errc::permission_denied;
  if (!of_directory || environment_.options.data_directories.size() == 1) return;
  environment_.log.warn("new files go to other data directories for a while",
                        base::kv("directory", environment_.options.data_directories[directory]),
                        base::kv("error", error));
  if (avoided_until_.size() <= directory) avoided_until_.resize(directory + 1);
  avoided_until_[directory] = environment_.runtime.clock.now() + kAvoidedFor;
}

bool Shard::is_avoided(std::uint32_t directory) const {
  return directory < avoided_until_.size() &&
         environment_.runtime.clock.now() < avoided_until_[directory];
}

Task<Result<Shard::Written>> Shard::write_file(const TableStore& table, EntrySource& source,
                                               MergePlan plan, WriteThrottle* throttle,
                                               runtime::StopToken stop) {
  SstableRecord record{.number = FileNumber{next_file_++},
                       .freeze_first = plan.freeze_first,
                       .freeze_last = plan.freeze_last,
                       .level = plan.level};
  CO_TRY(record.directory, co_await choose_directory(record.number));
  auto written =
      co_await write_file_to(record, table, source, std::move(plan), throttle, std::move(stop));
  if (!written) avoid_directory(record.directory, written.error());
  co_return written;
}

Task<Result<Shard::Written>> Shard::write_file_to(SstableRecord record, const TableStore& table,
                                                  EntrySource& source, MergePlan plan,
                                                  WriteThrottle* throttle,
                                                  runtime::StopToken stop) {
  const SstableWriter::Options options{
      .compression = table.options().compression,
      .block_bytes = environment_.options.block_bytes,
      .filter = chosen(environment_.options.filter, table.options().filter),
      .throttle = throttle,
      .stop = stop};
  CO_TRY(auto writer,
         co_await SstableWriter::create(environment_.runtime, path_of(record), options));
  MergeWriter merge(environment_.runtime, std::move(plan));
  if (auto merged = co_await merge.run(source, *writer, stop); !merged) {
    co_await writer->discard();
    co_return std::move(merged).error();
  }
  if (writer->key_count() == 0) {
    co_await writer->discard();
    co_return Written{.file = nullptr, .counts = merge.counts()};
  }
  CO_TRY(auto statistics, co_await writer->finish(encode(merge.metadata())));
  auto settled = co_await finish_file(record, std::move(statistics));
  auto file = settled ? co_await open_file(*std::move(settled))
                      : Result<std::shared_ptr<const Sstable>>(std::move(settled).error());
  if (!file) {
    // The next try writes another one: this one would take its space in vain.
    (void)co_await environment_.runtime.files.remove(path_of(record));
    co_return std::move(file).error();
  }
  co_return Written{.file = *std::move(file), .counts = merge.counts()};
}

Task<Result<SstableRecord>> Shard::finish_file(SstableRecord record, SstableStatistics statistics) {
  CO_TRY_VOID(co_await environment_.runtime.files.sync_directory(directory(record.directory)));
  CO_TRY(const auto info, co_await environment_.runtime.files.info(path_of(record)));
  record.bytes = info.size;
  record.keys = statistics.key_count;
  record.key_first = statistics.first_key;
  record.key_last = statistics.last_key;
  co_return record;
}

Task<void> Shard::remove_files(std::vector<std::shared_ptr<const Sstable>> files) {
  for (const auto& file : files) co_await remove_file(file->record);
}

Task<void> Shard::let_files_go() {
  ASSERT(files_kept_ > 0);
  if (--files_kept_ > 0) co_return;
  for (const SstableRecord& file : std::exchange(removed_later_, {})) co_await remove_file(file);
}

Task<void> Shard::remove_file(SstableRecord record) {
  if (files_kept_ > 0) {
    removed_later_.push_back(std::move(record));
    co_return;
  }
  const auto removed = co_await environment_.runtime.files.remove(path_of(record));
  if (!removed) {
    environment_.log.warn("a file could not be removed", base::kv("error", removed.error()));
  }
}

}  // namespace helenus::storage
