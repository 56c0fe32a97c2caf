// CompactionPicker: which sstables to merge next. Size-tiered: files of about the same size are
// merged once there are enough of them, so that every byte is rewritten a number of times that
// grows with the logarithm of the table. And by what may be dropped: files with enough garbage are
// merged for its sake alone. Pure: figures in, a choice out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "runtime/time.h"
#include "storage/table/compaction_candidate.h"

namespace helenus::storage {

struct CompactionOptions {
  // A tier is merged when it has this many files ...
  std::size_t files_min = 4;
  // ... and at most this many at once.
  std::size_t files_max = 32;
  // Files of one tier differ from their mean by no more than this factor, either way.
  double size_ratio_max = 1.5;
  // Files below this count as equally small.
  std::uint64_t small_bytes = std::uint64_t{4} << 20;

  // Errors: invalid_argument, naming the option.
  base::Result<void> validate() const;
};

// The files to merge, ascending by number; empty if there is nothing worth merging. Law: never a
// busy file; never two files that differ in size by more than size_ratio_max squared, unless both
// are small; between files_min and files_max of them.
// Among tiers that are full the one whose merge reduces the number of files most for the bytes it
// rewrites is taken, and of a long tier its smallest files.
std::vector<FileNumber> pick_size_tiered(std::span<const CompactionCandidate> files,
                                         const CompactionOptions& options);

// Bytes that size-tiered merging would rewrite before it came to rest, merges under way included:
// the backlog that back-pressure goes by.
std::uint64_t compaction_backlog_bytes(std::span<const CompactionCandidate> files,
                                       const CompactionOptions& options);

// When deletes and expired values are reason enough to merge (garbage.h). What is rewritten for
// them is bounded: at least a share of it goes, or the table's turn comes so rarely that a merge
// in vain does not matter.
struct CollectionOptions {
  // A file is rewritten when this share of its cells has expired, a table when this share of all of
  // its cells has expired or is deleted, or there are as many increments to fold.
  double share_min = 0.2;
  // How often tables are looked through; a table is not merged for its garbage more often.
  runtime::Duration interval = std::chrono::minutes(1);
  // Where there is less garbage, if only a little, tables are merged, too, but no more bytes than
  // this: with so little of each second a core gives back all space in the end.
  std::uint64_t slow_bytes_per_second = std::uint64_t{4} << 20;

  // Errors: invalid_argument, naming the option.
  base::Result<void> validate() const;
  // How long after a merge for little garbage of so many bytes the next may come.
  runtime::Duration slow_wait(std::uint64_t bytes) const;
};

enum class CollectionExtent : std::uint8_t {
  none,
  one_file,  // in which much has expired since it was last written for that reason
  table,     // much of it is garbage
  table_slowly,
};
struct CollectionPick {
  CollectionExtent extent = CollectionExtent::none;
  std::vector<FileNumber> files = {};  // ascending by number
};

// What to merge of one table for the sake of its garbage. Whether the table's turn has come, at
// all and for little garbage, is the caller's to say. Law: never a busy file, nor a table with one;
// nothing if nothing is collectable; what an earlier merge had to leave counts only as a little, so
// that a merge that improved nothing is not done again before another share_min is collectable.
// A delete counts twice: it hides at least something. It goes only with all it hides, so for
// deletes all files of the table are merged; then nothing that was collectable is left.
struct CollectionTurn {
  bool table = false;   // it has not been merged for garbage within the interval
  bool little = false;  // nor have so many bytes for little garbage
  // What was left may be tried again: the memtables are not those that stood in the way.
  bool left = false;
};
CollectionPick pick_collection(std::span<const CollectionCandidate> files,
                               const CollectionOptions& options, const CollectionTurn& turn);

}  // namespace helenus::storage
