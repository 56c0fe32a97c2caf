// Compactor: merges files: to have fewer of them, to be rid of what is deleted or expired
// (collection), because somebody asks for it, and to be rid of what dropped tablets had (purge).
//
//   pick ─▶ files are busy ─▶ merge into a file nobody knows ─▶ manifest ─▶ inputs go
//
// What must never lie (S1, S3, S6):
//   - The log is synced up to the begin of a merge before its output is entered: what the file
//     depends on, the clocks of that time, is durable.
//   - What a merge strips or drops is decided by merge_writer.h, by the knowledge of an instant at
//     which the merge has every fragment of a key.
//   - A damaged file is set aside, which the manifest remembers: it is read, with errors where it
//     cannot be, and is never merged again; everything else goes on without it.
//   - A merge leaves the room that memtables need, and what is kept of a full disk, alone
//     (disk_reserve.h). One that does not fit is not begun, or ends, and is tried again later.
//   - A stale entry of an index goes only by what its table has since the merge began
//     (live_entries.h).
//   - A dropped range leaves the manifest only after every file that was there when it was dropped
//     has been merged without it, or is set aside for nobody to read.
//
// A file is in at most one merge at a time (TableStore::busy). A merge that fails is tried again.
//
// Owns: when it next looks for garbage; how many merges run. Borrows: the state, ManifestChanges,
// Flusher. Core affinity: the engine's.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/result.h"
#include "runtime/clock.h"
#include "runtime/task.h"
#include "storage/compaction/compaction_picker.h"
#include "storage/compaction/compaction_strategy.h"
#include "storage/compaction/merge_writer.h"
#include "storage/engine/engine_state.h"
#include "storage/engine/flusher.h"
#include "storage/engine/manifest_changes.h"
#include "storage/engine/shard.h"
#include "storage/table/table_store.h"

namespace helenus::storage {

class Compactor {
 public:
  Compactor(EngineState& state, DiskReserve& reserve, ManifestChanges& manifests, Flusher& flusher);

  // ---- Background loops ----
  // As many as compactions may run at once.
  runtime::Task<void> compaction_loop();
  // Runs once.
  runtime::Task<void> purge_loop();

  // Reads tables through that are suspected. Runs once.
  runtime::Task<void> verify_loop();

  // As Engine's.
  runtime::Task<base::Result<void>> verify(TableId table, runtime::Until until);
  runtime::Task<base::Result<void>> verify_mutations(runtime::Until until);
  void suspect(TableId table);
  // As Engine::compact.
  runtime::Task<base::Result<void>> compact(TableId table, runtime::Until until);
  std::size_t running() const { return running_.size(); }
  std::vector<RunningCompaction> running_compactions() const;

 private:
  struct CompactionJob {
    Shard* shard = nullptr;
    std::shared_ptr<TableStore> table;
    SstableList inputs;
    CollectionExtent collects = CollectionExtent::none;  // why, if not to have fewer files
    // What comes of it: the level, and how large a file is, if there may be several.
    std::uint32_t level = 0;
    std::uint64_t file_bytes_max = UINT64_MAX;
    FileSet numbers() const;
  };

  struct Running {
    const CompactionJob* job = nullptr;
    std::shared_ptr<std::uint64_t> keys_done;
  };
  struct Merged {
    SstableList files;
    MergeCounts counts;
  };

  // On a full disk garbage is not waited with.
  CollectionOptions collection_options() const;
  runtime::MonotonicTime next_collection() const;
  std::optional<CompactionJob> pick_compaction();
  // On a full disk.
  std::optional<CompactionJob> pick_for_room();
  std::optional<CompactionJob> pick_collection();
  CollectionPick pick_collection(TableStore& table, const Knowledge& knowledge);
  static CompactionJob begin_job(Shard& shard, const std::shared_ptr<TableStore>& table,
                                 const std::vector<FileNumber>& files);
  static MergePlan plan_of(const CompactionJob& job);
  // The table by which stale entries of an index are told; null if the merge leaves them.
  static const TableStore* table_to_look_into(const CompactionJob& job);
  std::vector<TableId> indexes_of(TableId table) const;
  // Requires: the plan was made in this step.
  runtime::Task<base::Result<Merged>> write_compacted(const CompactionJob& job, MergePlan plan);
  // One file after the other, until the source has no more.
  runtime::Task<base::Result<Merged>> write_outputs(const CompactionJob& job, EntrySource& source,
                                                    MergePlan plan);
  // Where what comes of it goes, by the table's rule.
  static void place(CompactionJob& job);
  runtime::Task<base::Result<void>> compact_files(CompactionJob job);
  // The file stays as it is: whoever reads what it has is told, and it is not merged any more. The
  // manifest says so, too, since what is decided about its keys from now on is decided without it.
  runtime::Task<base::Result<void>> set_aside(Shard& shard, TableStore& table, FileNumber file,
                                              base::Error why);
  // Reads all of it; the first error.
  static runtime::Task<base::Result<void>> read_through(std::shared_ptr<const Sstable> file);
  // Enters the output of a compaction in the place of its inputs, and removes these.
  runtime::Task<base::Result<void>> replace_compacted(CompactionJob job, Merged merged);
  // Merges all files of the table in the shard into one, but for those that are set aside.
  runtime::Task<base::Result<void>> compact_shard(Shard& shard, TableId table,
                                                  runtime::Until until);
  runtime::Task<base::Result<void>> merge_whole(Shard& shard, std::shared_ptr<TableStore> store,
                                                runtime::Until until);
  // Every file that was there when a range was dropped is merged once more, without the range. What
  // is in memory has nothing of it: it was flushed before. Files that are set aside keep what they
  // have of it, and nobody will ever ask them (create_tablet); those that no tablet needs any more
  // go.
  runtime::Task<base::Result<void>> purge(Shard& shard);
  Shard* shard_to_purge() const;

  runtime::Task<base::Result<void>> verify_file(Shard& shard, std::shared_ptr<TableStore> table,
                                                std::shared_ptr<const Sstable> file,
                                                runtime::Until until);

  EngineState& state_;
  DiskReserve& reserve_;
  ManifestChanges& manifests_;
  Flusher& flusher_;
  std::list<Running> running_;
  std::set<TableId> suspects_;
  // When tables were last looked through for garbage in vain; when one was last merged for a little
  // of it, and how much that was.
  runtime::MonotonicTime looked_for_garbage_ = runtime::MonotonicTime::never();
  runtime::MonotonicTime collected_slowly_ = runtime::MonotonicTime::never();
  std::uint64_t collected_slowly_bytes_ = 0;
};

}  // namespace helenus::storage
