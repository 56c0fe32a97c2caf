// What an engine has done and how it stands, for people and for dashboards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/histogram.h"
#include "storage/ids/table_id.h"
#include "storage/log/commit_log.h"
#include "storage/manifest/manifest.h"
#include "storage/sstable/block_cache.h"
#include "storage/sstable/sstable_blocks.h"

namespace helenus::storage {

// A merge that is under way.
struct RunningCompaction {
  TableId table;
  CompactionRule rule = CompactionRule::size_tiered;
  bool collects = false;  // for the sake of what is deleted or expired
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint32_t level = 0;  // of what comes of it
  std::uint64_t keys = 0;   // of the files
  std::uint64_t keys_done = 0;
};

struct EngineStatistics {
  // Writing.
  std::uint64_t writes = 0;
  std::uint64_t write_bytes = 0;      // of records, as the log takes them
  std::uint64_t user_bytes = 0;       // of keys and values in them
  std::uint64_t writes_repeated = 0;  // deltas that had been applied before
  std::uint64_t writes_delayed = 0;   // that waited for room
  std::uint64_t writes_refused = 0;   // as the disk is full, or memory is and flushes fail
  // Reading rows.
  std::uint64_t reads = 0;
  std::uint64_t reads_from_memtables = 0;  // that found the row there, among others
  std::uint64_t reads_from_sstables = 0;
  std::uint64_t reads_found_nothing = 0;
  // That would have been looked into, but for a delete that had seen all they could say.
  std::uint64_t sstables_superseded = 0;
  std::uint64_t reads_waited_for_log = 0;  // that saw a write before it was durable
  base::Histogram blocks_per_read;         // read from the disk
  base::Histogram sstables_per_read;       // looked into, past their filters
  std::uint64_t index_rows_read = 0;       // that were brought into indexes made after them
  std::uint64_t indexes_being_built = 0;   // by core
  std::uint64_t index_entries_stale = 0;   // that merges left out
  // Flushes and compactions.
  std::uint64_t flushes = 0;
  std::uint64_t flushed_bytes = 0;
  std::uint64_t flush_failures = 0;
  std::uint64_t compactions = 0;
  std::uint64_t compacted_bytes_read = 0;
  std::uint64_t compacted_bytes_written = 0;
  std::uint64_t compaction_failures = 0;
  std::uint64_t collections = 0;  // compactions for the sake of deletes and expired values alone
  std::uint64_t keys_gone = 0;    // that flushes and compactions found nothing left of
  // That files were not given to, as they did not say how much room they have or could not be
  // written to a short while ago.
  std::uint64_t directories_passed_over = 0;
  // That were merged and not judged, since their ranges exceeded merge_ranges_bytes_max.
  std::uint64_t partitions_unsettled = 0;

  std::uint64_t log_bytes_written = 0;

  // Mutation logs.
  std::uint64_t mutations_moved = 0;  // to files, since they were not stable when flushed
  std::uint64_t mutation_bytes_written = 0;
  std::uint64_t mutation_files_shed = 0;  // given up over the cap

  // Writes with operation ids, where they are minted.
  std::uint64_t operations = 0;                  // that made a mutation
  std::uint64_t operation_screen_hits = 0;       // ids of which the filter said "perhaps known"
  std::uint64_t operation_false_positives = 0;   // ... and the mutation log did not know them
  std::uint64_t operation_duplicates = 0;        // ... and it did: nothing was minted
  std::uint64_t operations_expired = 0;          // refused: older than the window
  std::uint64_t operations_from_the_future = 0;  // refused
  std::uint64_t operations_refused = 0;          // over the cap of the mutation log

  // As it stands.
  std::size_t disks_full = 0;            // cores that refuse writes of data for that
  std::uint64_t disk_reserve_bytes = 0;  // kept of disks for deletes, changes and the next start
  std::size_t memtable_bytes = 0;
  std::size_t memtables_waiting = 0;  // to be flushed
  std::size_t sstables = 0;
  std::size_t sstables_set_aside = 0;  // damaged ones among them
  std::uint64_t sstable_bytes = 0;
  std::size_t sstable_resident_bytes = 0;  // indexes and filters kept in memory
  // Of counters, in files, that may be added to totals when they are stable.
  std::uint64_t increments_unfolded = 0;
  std::uint64_t compaction_backlog_bytes = 0;
  std::size_t compactions_running = 0;
  std::size_t mutations_in_memory = 0;
  std::size_t mutation_memory_bytes = 0;
  std::size_t mutation_dots_bytes = 0;  // of the sets of dots of mutation files
  std::size_t timestamp_floor_bytes = 0;
  std::size_t mutation_files = 0;
  std::uint64_t mutation_file_bytes = 0;
  std::uint64_t operations_remembered = 0;  // ids that the filter answers for
  std::uint64_t operation_filter_bytes = 0;
  std::size_t tablets_holding_operations = 0;  // whose mutation logs wait for the window
  // That mint nothing until they have a new actor; that do nothing, as a mutation file is damaged.
  std::size_t tablets_in_doubt = 0;
  std::size_t tablets_stopped = 0;

  SstableCounters sstable_counters;
  BlockCache::Counters cache_counters;
  CommitLogUsage log_usage;

  // Adds what another core's engine tells.
  void add(const EngineStatistics& other);

  // Bytes that went to files for each byte of keys and values: those of the log, with all that it
  // adds to fill its blocks, of flushes, of compactions and of mutation files.
  double write_amplification() const {
    if (user_bytes == 0) return 0;
    return static_cast<double>(log_bytes_written + flushed_bytes + compacted_bytes_written +
                               mutation_bytes_written) /
           static_cast<double>(user_bytes);
  }
};

// One table, as it stands.
struct TableStatistics {
  TableId table = {};
  std::size_t sstables = 0;
  std::size_t sstables_set_aside = 0;
  std::uint64_t sstable_bytes = 0;
  // Rows and their like: keys of the files and of memtables. One that lies in several counts in
  // each.
  std::uint64_t sstable_keys = 0;
  // Deletes in files, of cells and ranges, and contexts with nothing beside them: they go when they
  // are stable.
  std::uint64_t sstable_deletes = 0;
  // Increments of counters in files that are not folded yet.
  std::uint64_t sstable_increments = 0;
  std::uint64_t memtable_keys = 0;
  std::size_t sstable_resident_bytes = 0;
  std::size_t memtable_bytes = 0;  // of frozen ones, too
  // How its files are merged, what of them waits for it, about, and what is under way.
  CompactionRule compaction_rule = CompactionRule::size_tiered;
  std::uint64_t compaction_backlog_bytes = 0;
  std::vector<RunningCompaction> compactions = {};

  // Adds what another core's engine tells of the same table.
  void add(const TableStatistics& other);
};

}  // namespace helenus::storage
