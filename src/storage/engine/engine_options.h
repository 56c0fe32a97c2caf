// What a storage engine can be told. Limits on everything; validate() says what does not fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/uuid.h"
#include "runtime/time.h"
#include "storage/compaction/compaction_picker.h"
#include "storage/entry/derived_entry.h"
#include "storage/log/log_options.h"
#include "storage/mutations/mutation_record.h"
#include "storage/mutations/operation_screen.h"
#include "storage/sstable/filter_options.h"
#include "storage/sstable/sstable_format.h"

namespace helenus::storage {

struct EngineOptions {
  static constexpr std::size_t kDataDirectoriesMax = 64;

  // Files are spread over them by free space; the first one also holds what is small.
  std::vector<std::string> data_directories;
  // The commit log's folder; "commitlog" in the first data directory if empty.
  std::string log_directory;
  CommitLogOptions log = {};

  // Into how many parts the data is divided, each of them owned by one core at a time. Fixed when
  // the folder is made; a later open goes by what the folder says.
  std::uint32_t shards = 8;

  // All memtables together, those being flushed too, and the mutations that peers may need. When it
  // is reached, writes wait. Timestamp floors and the dots of mutation files are part of it, each
  // no more than an eighth: beyond that floors become coarser, and the oldest mutation file is
  // given up as it is over mutation_log_bytes_max.
  std::size_t memtable_bytes_max = std::size_t{256} << 20;
  // One memtable is flushed when it has this many bytes or keys.
  std::size_t memtable_bytes_flush = std::size_t{64} << 20;
  std::size_t memtable_keys_flush = 4'000'000;
  std::size_t block_cache_bytes = std::size_t{256} << 20;

  std::size_t block_bytes = kDataBlockBytesDefault;
  // Of files of tables that are not told otherwise.
  FilterOptions filter = {};
  // Reads past the page cache.
  bool direct_reads = false;
  // How many reads of a core's files may be under way at once, those of compactions among them; one
  // more waits for its turn. A disk gives no more beyond some dozens, and each has its memory.
  std::size_t file_reads_max = 64;

  CompactionOptions compaction = {};
  CollectionOptions collection = {};
  // How many compactions may run at once.
  std::size_t compactions_max = 2;
  // What the deletes of ranges of one partition may take of memory, about, while it is merged: a
  // kilobyte or so each, once for each flush and compaction that runs. A partition with more of
  // them is merged without being freed of what is deleted (merge_writer.h).
  std::size_t merge_ranges_bytes_max = std::size_t{64} << 20;
  // What compactions together may write; zero is no limit. Flushes are not limited: they free
  // memory that writes wait for.
  std::uint64_t compaction_bytes_per_second = 0;
  // When a table of a shard has more files than the first, writes to it are slowed down; at the
  // second they wait.
  std::size_t sstables_slow = 96;
  std::size_t sstables_max = 256;

  // Wrong on purpose, for tests that must find it: writes keep their timestamps (rule (b)).
  bool keeps_timestamps = false;

  // What mutation logs may take on disk, of all tablets of a core. Beyond it the oldest file of the
  // shard that has most is given up, and peers that need it take a copy of the tablet.
  std::uint64_t mutation_log_bytes_max = std::uint64_t{4} << 30;

  // For how long operation ids are known (operation_screen.h). A mutation with an id stays in the
  // mutation log as long; where they take more than mutation_log_bytes_max, ids are refused.
  OperationWindow operations = {};

  // The log directory is empty and the data is there: go on with what the data directories have, if
  // the last start that they know of is this one; the refusal without it names the number. What was
  // acknowledged and is in no file is lost, and every tablet is in doubt; what the tablets then
  // claim to have seen is in files (directory_set.h). It is for one start and one loss: the start
  // that accepts is a later one, so that left on it accepts nothing more.
  std::optional<std::uint32_t> accept_lost_log_of_start = {};

  // Who opens the folder knows that it was opened before. If no log was ever begun in it, all that
  // it had is lost, and it is in doubt.
  bool was_used = false;

  // Whose folder it is: one that was another node's is refused. None: nobody's in particular.
  std::optional<base::Uuid> node = {};

  // What is kept of the disk for deletes alone, beside what the next start needs (disk_reserve.h);
  // no more than a part of a small disk, and at least a segment of the log and a bit. Zero: nothing
  // is kept, and nothing refused before there is no space.
  std::uint64_t disk_reserve_bytes = 0;

  // How entries of indexes follow from mutations; without it there are none.
  ReadIndexDefinition read_index_definition = {};

  // How long after a failed flush or compaction the next try begins.
  runtime::Duration retry_delay = std::chrono::seconds(1);

  // Errors: invalid_argument, naming the option.
  base::Result<void> validate() const;
  std::string log_directory_or_default() const {
    return log_directory.empty() ? data_directories.front() + "/commitlog" : log_directory;
  }
};

}  // namespace helenus::storage
