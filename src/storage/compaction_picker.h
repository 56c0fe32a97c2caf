// CompactionPicker: which sstables to merge next. Size-tiered: files of about the same size are
// merged once there are enough of them, so that every byte is rewritten a number of times that
// grows with the logarithm of the table. Pure: sizes in, a choice out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "storage/manifest.h"

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

struct CompactionCandidate {
  FileNumber number;
  std::uint64_t bytes = 0;
  bool busy = false;  // is being merged already
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

}  // namespace helenus::storage
