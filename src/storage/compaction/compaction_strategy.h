// CompactionStrategy: by what rule the files of a table are merged, as the table says; and the pure
// pickers of the rules beside size-tiered (compaction_picker.h).
//
//   size-tiered   files of about the same size: few bytes are rewritten, many files may hold a key
//   leveled       files of a level above 0 do not overlap, and each level is `fanout` times as
//   large
//                 as the one before: few files hold a key, more bytes are rewritten
//   time-window   files of one window of time, by the newest write in them: what is old is not
//                 rewritten, and what expires goes with its file
//
// A level and a window decide which files are merged, and nothing else: whatever is merged is
// merged right (merge_writer.h), so a change of the rule needs no rewriting, and takes effect with
// the next merge.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "runtime/time.h"
#include "storage/compaction/compaction_picker.h"
#include "storage/manifest/manifest.h"
#include "storage/table/compaction_candidate.h"

namespace helenus::storage {

// What to merge, and the level of what comes of it.
struct CompactionPick {
  std::vector<FileNumber> files = {};  // ascending; empty: nothing
  std::uint32_t level = 0;
  // Files that come of it are about as large, if they are to be more than one.
  std::uint64_t file_bytes_max = UINT64_MAX;
  bool empty() const { return files.empty(); }
};

inline constexpr std::uint32_t kLevelMax = 8;

// Leveled. Law: never while a file is busy, nor with one; with a file of level n > 0 go all of
// level n + 1 that overlap what is merged, so that files of a level above 0 never overlap. Merges
// come to an end, with each level at most `fanout` times as large as the one before, but for the
// last, and few files in level 0.
CompactionPick pick_leveled(std::span<const CompactionCandidate> files,
                            const CompactionStrategy& strategy);
// What a level may have. Requires: above 0.
std::uint64_t level_bytes_max(std::uint32_t level, const CompactionStrategy& strategy);
// The level that all of so many bytes go to.
std::uint32_t level_for(std::uint64_t bytes, const CompactionStrategy& strategy);

// Which window the newest write of a file is in; from 1970 on.
std::int64_t window_of(const CompactionCandidate& file, const CompactionStrategy& strategy);
// Time-window. Law: never a busy file, never two of different windows; those of the newest window
// by size, of an older one all together. Merges come to an end with one file for each older window.
CompactionPick pick_time_window(std::span<const CompactionCandidate> files,
                                const CompactionStrategy& strategy, const CompactionOptions& sizes);

// What the table's rule says.
CompactionPick pick_compaction(std::span<const CompactionCandidate> files,
                               const CompactionStrategy& strategy,
                               const CompactionOptions& options);
// The node's settings of sizes, with what the table says of them.
CompactionOptions sizes_of(const CompactionStrategy& strategy, const CompactionOptions& options);
// Bytes that wait to be rewritten by the rule, about: the backlog that back-pressure goes by.
std::uint64_t compaction_backlog_bytes(std::span<const CompactionCandidate> files,
                                       const CompactionStrategy& strategy,
                                       const CompactionOptions& options);

std::string_view name_of(CompactionRule rule);

}  // namespace helenus::storage
