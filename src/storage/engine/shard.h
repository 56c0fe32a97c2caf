// Shard: a fixed part of a data folder that one core owns at a time: some tablets, and for every
// table one TableStore. Which core owns which shard is decided at every start, so a node may be
// started with another number of cores; files never move between shards.
//
//   DIRECTORY/shard-0003/manifest       in the first data directory
//   DIRECTORY/shard-0003/0000000017.sst in any of them
//
// The manifest makes every change atomic. A file is written and synced, its name made durable, and
// only then entered; what is no longer named is removed after the manifest that does not name it
// is durable. What is found at a start and not named is a leftover and is removed.
//
// Core affinity: the core that opened it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/btree_map.h>

#include "base/log.h"
#include "base/result.h"
#include "runtime/runtime.h"
#include "runtime/semaphore.h"
#include "runtime/task.h"
#include "storage/compaction/merge_writer.h"
#include "storage/engine/engine_options.h"
#include "storage/engine/tablet.h"
#include "storage/manifest/manifest.h"
#include "storage/mutations/mutation_file.h"
#include "storage/mutations/operation_screen.h"
#include "storage/sstable/sstable_blocks.h"
#include "storage/table/table_store.h"

namespace helenus::storage {

// What the shards of a core share. Outlives them.
struct ShardEnvironment {
  runtime::Runtime& runtime;
  const EngineOptions& options;
  SstableShared& sstables;
  base::Logger& log;
};

// A mutation file of a shard, and what of it somebody may still ask for.
struct LiveMutationFile {
  std::shared_ptr<const MutationFile> file;
  // Of its dots those that are not stable; tablets without any are not in it.
  absl::btree_map<TabletId, causality::Clock> live;

  // Of the tablets in `live`.
  causality::OperationTime newest_operation() const;
};

// Mutations of a tablet that are to go into a file; ascending by dot.
struct TabletBatch {
  TabletId tablet;
  std::vector<KeptMutation> mutations;
};

// The part of an edit that concerns a new file: `files` ascend by number.
void enter_file(std::vector<SstableRecord>& files, const SstableRecord& file);

class Shard {
 public:
  // Makes the folders of an empty shard, durably. One that is there already, and empty, is taken.
  static runtime::Task<base::Result<void>> create(ShardEnvironment environment, ShardNumber number);
  // Reads the manifest and changes nothing. Errors: corrupt; unsupported; of the file system; each
  // names the file.
  static runtime::Task<base::Result<std::unique_ptr<Shard>>> load(ShardEnvironment environment,
                                                                  ShardNumber number);
  // Whether every file that the manifest names is there; changes nothing. Errors: not_found, naming
  // file and manifest; of the file system.
  runtime::Task<base::Result<void>> check_files();
  // The rest of opening: removes leftovers, opens every file. Errors: the same. Called once, before
  // anything else.
  runtime::Task<base::Result<void>> open_files();
  // Whether a file that fails so cannot be read now or later, by this program.
  static bool is_damage(const base::Error& error);

  Shard(ShardEnvironment environment, ShardNumber number);
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  static constexpr std::string_view kNamePrefix = "shard-";

  ShardNumber number() const { return number_; }
  // Of its folder, in every data directory.
  std::string name() const { return fmt::format("{}{:04}", kNamePrefix, number_.value()); }
  const ManifestState& manifest() const { return manifest_; }

  Tablet* tablet(TabletId id);
  TableStore* table(TableId id);
  // Ascending by id.
  const absl::btree_map<TabletId, std::unique_ptr<Tablet>>& tablets() const { return tablets_; }
  const absl::btree_map<TableId, std::shared_ptr<TableStore>>& tables() const { return tables_; }
  Tablet& add_tablet(TabletId id, const TabletRecord& record);
  // Its mutations are no longer kept.
  void remove_tablet(TabletId id);
  std::shared_ptr<TableStore> add_table(TableId id, TableOptions options);
  void remove_table(TableId id);
  // The index derives entries by its definition.
  void tell_index(TableStore& index) const;

  // What the tablets have seen, and what may be concluded from it, now.
  Clocks clocks() const;
  Knowledge knowledge() const;
  // Their parts of the key space, ascending.
  std::vector<TabletRange> tablet_ranges() const;
  FreezeNumber next_freeze() { return FreezeNumber{next_freeze_++}; }

  // Changes the manifest; returns when the change is durable. Changes happen one after the other.
  // After an error the manifest on the disk may have it or not: the caller keeps the files of both
  // and tries again, or stops for good.
  using Edit = std::function<void(ManifestState&)>;
  runtime::Task<base::Result<void>> install(Edit edit);

  // Writes the merge of `source` into a new file and opens it; null if nothing was left of it. The
  // file and its name are durable, and nobody knows of it yet.
  struct Written {
    std::shared_ptr<const Sstable> file;
    MergeCounts counts;
  };
  runtime::Task<base::Result<Written>> write_file(const TableStore& table, EntrySource& source,
                                                  MergePlan plan, WriteThrottle* throttle,
                                                  runtime::StopToken stop);
  // ---- Damaged files (TableStore::set_aside) ----
  // Whether the tablet may have something in the file. Of what was there before the tablet was made
  // it has nothing.
  bool has_part_in(const KeyRange& tablet, const SstableRecord& file) const;
  // The part of an edit that concerns them: they are remembered.
  void enter_set_aside(ManifestState& state) const;
  // Nobody's keys in `range`: nothing is to be found of them in the files that are set aside.
  void enter_empty_range(ManifestState& state, const KeyRange& range) const;
  // Those in which no tablet has a part.
  using AsideFile = std::pair<std::shared_ptr<TableStore>, std::shared_ptr<const Sstable>>;
  std::vector<AsideFile> unneeded_aside() const;

  // From now on no file of a table is removed, until that is let go as often. What should have been
  // goes then.
  void keep_files() { ++files_kept_; }
  runtime::Task<void> let_files_go();
  // Those who hold them open go on reading. Errors are logged: a start removes what is left.
  runtime::Task<void> remove_files(std::vector<std::shared_ptr<const Sstable>> files);

  // ---- The mutation log's files (shard_mutations.cc) ----
  // Ascending by number.
  const std::vector<LiveMutationFile>& mutation_files() const { return mutation_files_; }
  std::uint64_t mutation_file_bytes() const;
  // Another number each time that a file has come or gone.
  std::uint64_t mutation_file_changes() const { return mutation_file_changes_; }
  // Tells the screen the operation ids in them. Requires: no file comes or goes meanwhile.
  runtime::Task<base::Result<void>> walk_operations(OperationScreen& screen) const;
  // What the sets of their dots take of memory, about. Gaps cost: a set is kept as ranges.
  std::size_t mutation_dots_bytes() const;
  // Writes a file that nobody knows of yet; null if the batches are empty. Batches ascend by
  // tablet.
  runtime::Task<base::Result<std::shared_ptr<const MutationFile>>> write_mutations(
      std::vector<TabletBatch> batches, FreezeNumber freeze, runtime::StopToken stop);
  // The same of what is kept in these files.
  runtime::Task<base::Result<std::shared_ptr<const MutationFile>>> merge_mutations(
      std::vector<std::shared_ptr<const MutationFile>> inputs, WriteThrottle* throttle,
      runtime::StopToken stop);
  // The manifest names it now; or no longer.
  void add_mutation_file(std::shared_ptr<const MutationFile> file);
  void drop_mutation_file(FileNumber number);
  runtime::Task<void> remove_mutation_file(std::shared_ptr<const MutationFile> file);
  // The tablet has collected what is stable. Whether a file had any of it.
  bool collect_mutations(const Tablet& tablet);
  // Those that could not be opened. Of each the tablets that may have a part in it are stopped
  // (Tablet::lost_mutations); when none is any more, they go.
  const std::vector<SstableRecord>& unreadable_mutation_files() const {
    return unreadable_mutations_;
  }
  bool needs_unreadable_mutations() const;
  void enter_unreadable_mutations(ManifestState& state) const;
  runtime::Task<void> remove_unreadable_mutations();
  // Damaged ones are not merged any more; whoever asks for their mutations is told.
  bool mutation_file_aside(FileNumber number) const { return mutations_aside_.contains(number); }
  void set_mutation_file_aside(FileNumber number) { mutations_aside_.insert(number); }

  // How often a file was given to another directory, since one was in trouble.
  std::uint64_t directories_passed_over() const { return directories_passed_over_; }

  static std::string name_of(FileNumber file);
  std::string path_of(const SstableRecord& record) const;
  std::string manifest_path() const { return directory(0) + "/manifest"; }

 private:
  std::string directory(std::size_t index) const;
  runtime::Task<base::Result<void>> remove_leftovers();
  runtime::Task<base::Result<std::shared_ptr<SstableReader>>> open_reader(SstableRecord record);
  runtime::Task<base::Result<std::shared_ptr<const Sstable>>> open_file(SstableRecord record);
  runtime::Task<base::Result<std::shared_ptr<const MutationFile>>> open_mutation_file(
      SstableRecord record);
  runtime::Task<base::Result<void>> open_mutation_files();
  void stop_tablets_in(const SstableRecord& mutation_file, const base::Error& why);
  runtime::Task<base::Result<std::shared_ptr<const MutationFile>>> finish_mutation_file(
      SstableRecord record, std::unique_ptr<SstableWriter> writer, MutationFileMetadata metadata);
  runtime::Task<base::Result<std::unique_ptr<SstableWriter>>> begin_mutation_file(
      SstableRecord& record, WriteThrottle* throttle, runtime::StopToken stop);
  base::Result<bool> keep_copied(base::ByteView key, MutationFileMetadata& metadata);
  runtime::Task<base::Result<void>> copy_kept(
      std::vector<std::shared_ptr<const MutationFile>> inputs, SstableWriter& writer,
      MutationFileMetadata& metadata, runtime::StopToken stop);
  // Makes the name of a finished file durable; returns its whole record.
  runtime::Task<base::Result<SstableRecord>> finish_file(SstableRecord record,
                                                         SstableStatistics statistics);
  runtime::Task<void> remove_file(SstableRecord record);
  // The data directory with the most free space; among equals, one after the other. One that does
  // not say how much it has is passed over, and so is for a while one that a file could not be
  // written to, as long as there are others. Error: of the last, if none says it.
  runtime::Task<base::Result<std::uint32_t>> choose_directory(FileNumber file);
  // A file could not be written to the directory; if that may lie in the directory, the next ones
  // go elsewhere. No more than a preference: the error may be of what was read.
  void avoid_directory(std::uint32_t directory, const base::Error& error);
  bool is_avoided(std::uint32_t directory) const;
  runtime::Task<base::Result<Written>> write_file_to(SstableRecord record, const TableStore& table,
                                                     EntrySource& source, MergePlan plan,
                                                     WriteThrottle* throttle,
                                                     runtime::StopToken stop);

  ShardEnvironment environment_;
  const ShardNumber number_;
  ManifestState manifest_;  // as it is on the disk
  std::uint64_t next_file_ = 1;
  std::uint64_t next_freeze_ = 1;
  absl::btree_map<TabletId, std::unique_ptr<Tablet>> tablets_;
  absl::btree_map<TableId, std::shared_ptr<TableStore>> tables_;
  std::vector<LiveMutationFile> mutation_files_;
  std::uint64_t mutation_file_changes_ = 0;
  FileSet mutations_aside_;
  std::vector<SstableRecord> unreadable_mutations_;
  runtime::Semaphore install_turn_;
  std::size_t files_kept_ = 0;                // by so many
  std::vector<SstableRecord> removed_later_;  // when nobody keeps them
  // By directory; shorter if the others are not avoided.
  std::vector<runtime::MonotonicTime> avoided_until_;
  std::uint64_t directories_passed_over_ = 0;
};

}  // namespace helenus::storage
