#include "storage/engine/engine_statistics.h"

namespace helenus::storage {

namespace {

void add_to(SstableCounters& sum, const SstableCounters& other) {
  sum.data_blocks_read += other.data_blocks_read;
  sum.index_blocks_read += other.index_blocks_read;
  sum.bytes_read += other.bytes_read;
  sum.reads += other.reads;
  sum.reads_delayed += other.reads_delayed;
  sum.reads_shared += other.reads_shared;
  sum.filter_negatives += other.filter_negatives;
  sum.filter_positives += other.filter_positives;
  sum.filter_false_positives += other.filter_false_positives;
}

void add_to(BlockCache::Counters& sum, const BlockCache::Counters& other) {
  sum.hits += other.hits;
  sum.misses += other.misses;
  sum.insertions += other.insertions;
  sum.evictions += other.evictions;
  sum.ghost_hits += other.ghost_hits;
  sum.refusals += other.refusals;
}

void add_to(CommitLogUsage& sum, const CommitLogUsage& other) {
  sum.disk_bytes += other.disk_bytes;
  sum.disk_bytes_max += other.disk_bytes_max;
  sum.segments += other.segments;
  sum.spare_files += other.spare_files;
  sum.staged_bytes += other.staged_bytes;
  sum.waiters += other.waiters;
}

}  // namespace

void EngineStatistics::add(const EngineStatistics& other) {
  writes += other.writes;
  write_bytes += other.write_bytes;
  user_bytes += other.user_bytes;
  writes_repeated += other.writes_repeated;
  writes_delayed += other.writes_delayed;
  writes_refused += other.writes_refused;
  disks_full += other.disks_full;
  disk_reserve_bytes += other.disk_reserve_bytes;
  reads += other.reads;
  reads_from_memtables += other.reads_from_memtables;
  reads_from_sstables += other.reads_from_sstables;
  reads_found_nothing += other.reads_found_nothing;
  sstables_superseded += other.sstables_superseded;
  reads_waited_for_log += other.reads_waited_for_log;
  flushes += other.flushes;
  flushed_bytes += other.flushed_bytes;
  flush_failures += other.flush_failures;
  compactions += other.compactions;
  compacted_bytes_read += other.compacted_bytes_read;
  compacted_bytes_written += other.compacted_bytes_written;
  compaction_failures += other.compaction_failures;
  collections += other.collections;
  keys_gone += other.keys_gone;
  directories_passed_over += other.directories_passed_over;
  partitions_unsettled += other.partitions_unsettled;
  log_bytes_written += other.log_bytes_written;
  mutations_moved += other.mutations_moved;
  mutation_bytes_written += other.mutation_bytes_written;
  mutation_files_shed += other.mutation_files_shed;
  operations += other.operations;
  operation_screen_hits += other.operation_screen_hits;
  operation_false_positives += other.operation_false_positives;
  operation_duplicates += other.operation_duplicates;
  operations_expired += other.operations_expired;
  operations_from_the_future += other.operations_from_the_future;
  operations_refused += other.operations_refused;
  operations_remembered += other.operations_remembered;
  operation_filter_bytes += other.operation_filter_bytes;
  tablets_holding_operations += other.tablets_holding_operations;
  memtable_bytes += other.memtable_bytes;
  memtables_waiting += other.memtables_waiting;
  index_rows_read += other.index_rows_read;
  indexes_being_built += other.indexes_being_built;
  index_entries_stale += other.index_entries_stale;
  sstables += other.sstables;
  sstables_set_aside += other.sstables_set_aside;
  sstable_bytes += other.sstable_bytes;
  sstable_resident_bytes += other.sstable_resident_bytes;
  increments_unfolded += other.increments_unfolded;
  compaction_backlog_bytes += other.compaction_backlog_bytes;
  compactions_running += other.compactions_running;
  mutations_in_memory += other.mutations_in_memory;
  mutation_memory_bytes += other.mutation_memory_bytes;
  mutation_files += other.mutation_files;
  mutation_file_bytes += other.mutation_file_bytes;
  mutation_dots_bytes += other.mutation_dots_bytes;
  tablets_in_doubt += other.tablets_in_doubt;
  tablets_stopped += other.tablets_stopped;
  timestamp_floor_bytes += other.timestamp_floor_bytes;
  blocks_per_read.merge(other.blocks_per_read);
  sstables_per_read.merge(other.sstables_per_read);
  add_to(sstable_counters, other.sstable_counters);
  add_to(cache_counters, other.cache_counters);
  add_to(log_usage, other.log_usage);
}

void TableStatistics::add(const TableStatistics& other) {
  sstables += other.sstables;
  sstables_set_aside += other.sstables_set_aside;
  sstable_bytes += other.sstable_bytes;
  sstable_keys += other.sstable_keys;
  sstable_deletes += other.sstable_deletes;
  sstable_increments += other.sstable_increments;
  memtable_keys += other.memtable_keys;
  sstable_resident_bytes += other.sstable_resident_bytes;
  memtable_bytes += other.memtable_bytes;
  if (other.table == table) compaction_rule = other.compaction_rule;
  compaction_backlog_bytes += other.compaction_backlog_bytes;
  compactions.insert(compactions.end(), other.compactions.begin(), other.compactions.end());
}

}  // namespace helenus::storage
