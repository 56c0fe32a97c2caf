#include "storage/compaction/compaction_strategy.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

namespace helenus::storage {

namespace {

using Candidates = std::vector<CompactionCandidate>;

std::uint64_t bytes_in(std::span<const CompactionCandidate> files) {
  return std::accumulate(files.begin(), files.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& file) { return sum + file.bytes; });
}

bool is_any_busy(std::span<const CompactionCandidate> files) {
  return std::ranges::any_of(files, &CompactionCandidate::busy);
}

std::vector<FileNumber> numbers_of(std::span<const CompactionCandidate> files) {
  std::vector<FileNumber> numbers;
  for (const CompactionCandidate& file : files) numbers.push_back(file.number);
  std::ranges::sort(numbers);
  return numbers;
}

// ---- Leveled ----

// The keys from the first of some files to the last.
struct Span {
  base::ByteView first;
  base::ByteView last;
};

Span span_of(std::span<const CompactionCandidate> files) {
  Span span{files.front().key_first, files.front().key_last};
  for (const CompactionCandidate& file : files.subspan(1)) {
    if (base::compare(file.key_first, span.first) < 0) span.first = file.key_first;
    if (base::compare(file.key_last, span.last) > 0) span.last = file.key_last;
  }
  return span;
}

void add_overlapping(Candidates& into, const Span& span, const Candidates& level) {
  for (const CompactionCandidate& file : level) {
    const bool is_apart = base::compare(file.key_last, span.first) < 0 ||
                          base::compare(file.key_first, span.last) > 0;
    if (!is_apart) into.push_back(file);
  }
}

using Levels = std::array<Candidates, kLevelMax + 1>;

Levels levels_of(std::span<const CompactionCandidate> files) {
  Levels levels;
  for (const CompactionCandidate& file : files) {
    levels[std::min(file.level, kLevelMax)].push_back(file);
  }
  for (Candidates& level : levels) std::ranges::sort(level, {}, &CompactionCandidate::number);
  return levels;
}

CompactionPick into_level(const Candidates& files, std::uint32_t level,
                          const CompactionStrategy& strategy) {
  return {.files = numbers_of(files), .level = level, .file_bytes_max = strategy.file_bytes};
}

bool is_level_zero_full(const Candidates& level, const CompactionStrategy& strategy) {
  return level.size() >= strategy.level_zero_files ||
         (!level.empty() && bytes_in(level) > strategy.level_zero_files * strategy.file_bytes);
}

CompactionPick pick_level_zero(const Levels& levels, const CompactionStrategy& strategy) {
  Candidates picked = levels[0];
  // The oldest: those behind them wait for the next turn.
  if (picked.size() > strategy.level_zero_files_max) picked.resize(strategy.level_zero_files_max);
  add_overlapping(picked, span_of(picked), levels[1]);
  return into_level(picked, 1, strategy);
}

// The file that brings least of the next level with it, for its size.
CompactionPick pick_from(std::uint32_t level, const Levels& levels,
                         const CompactionStrategy& strategy) {
  Candidates best;
  double best_cost = 0.0;
  for (const CompactionCandidate& file : levels[level]) {
    Candidates picked = {file};
    add_overlapping(picked, span_of(picked), levels[level + 1]);
    const double cost = static_cast<double>(bytes_in(picked)) / static_cast<double>(file.bytes + 1);
    if (!best.empty() && cost >= best_cost) continue;
    best = std::move(picked);
    best_cost = cost;
  }
  return into_level(best, level + 1, strategy);
}

}  // namespace

std::uint64_t level_bytes_max(std::uint32_t level, const CompactionStrategy& strategy) {
  std::uint64_t bytes = strategy.file_bytes;
  for (std::uint32_t i = 0; i < level; ++i) {
    if (bytes > UINT64_MAX / strategy.fanout) return UINT64_MAX;
    bytes *= strategy.fanout;
  }
  return bytes;
}

std::uint32_t level_for(std::uint64_t bytes, const CompactionStrategy& strategy) {
  std::uint32_t level = 1;
  while (level < kLevelMax && bytes > level_bytes_max(level, strategy)) ++level;
  return level;
}

CompactionPick pick_leveled(std::span<const CompactionCandidate> files,
                            const CompactionStrategy& strategy) {
  if (files.empty() || is_any_busy(files)) return {};
  const Levels levels = levels_of(files);
  std::uint32_t fullest = 0;
  double fullest_share = 1.0;
  for (std::uint32_t level = 1; level < kLevelMax; ++level) {
    const double share = static_cast<double>(bytes_in(levels[level])) /
                         static_cast<double>(level_bytes_max(level, strategy));
    if (share <= fullest_share) continue;
    fullest = level;
    fullest_share = share;
  }
  // Reads look into every file of level 0.
  if (is_level_zero_full(levels[0], strategy)) return pick_level_zero(levels, strategy);
  return fullest == 0 ? CompactionPick() : pick_from(fullest, levels, strategy);
}

// ---- Time-window ----

std::int64_t window_of(const CompactionCandidate& file, const CompactionStrategy& strategy) {
  const auto window =
      std::chrono::duration_cast<std::chrono::microseconds>(strategy.window).count();
  const std::int64_t newest = file.newest_write;
  const std::int64_t rest = ((newest % window) + window) % window;
  return newest < INT64_MIN + rest ? INT64_MIN / window : (newest - rest) / window;
}

CompactionPick pick_time_window(std::span<const CompactionCandidate> files,
                                const CompactionStrategy& strategy,
                                const CompactionOptions& sizes) {
  std::map<std::int64_t, Candidates> windows;
  for (const CompactionCandidate& file : files) {
    windows[window_of(file, strategy)].push_back(file);
  }
  if (windows.empty()) return {};
  const auto newest = std::prev(windows.end());
  if (auto picked = pick_size_tiered(newest->second, sizes); !picked.empty()) {
    return {.files = std::move(picked)};
  }
  for (auto window = newest; window != windows.begin();) {
    Candidates& its = (--window)->second;
    std::erase_if(its, &CompactionCandidate::busy);
    if (its.size() < 2) continue;
    std::ranges::sort(its, {}, &CompactionCandidate::bytes);
    if (its.size() > sizes.files_max) its.resize(sizes.files_max);
    return {.files = numbers_of(its)};
  }
  return {};
}

// ---- By the table's rule ----

CompactionOptions sizes_of(const CompactionStrategy& strategy, const CompactionOptions& options) {
  CompactionOptions sizes = options;
  if (strategy.files_min > 0) sizes.files_min = strategy.files_min;
  if (strategy.files_max > 0) sizes.files_max = strategy.files_max;
  if (strategy.small_bytes) sizes.small_bytes = *strategy.small_bytes;
  return sizes;
}

CompactionPick pick_compaction(std::span<const CompactionCandidate> files,
                               const CompactionStrategy& strategy,
                               const CompactionOptions& options) {
  if (!strategy.enabled) return {};
  switch (strategy.rule) {
    case CompactionRule::leveled:
      return pick_leveled(files, strategy);
    case CompactionRule::time_window:
      return pick_time_window(files, strategy, sizes_of(strategy, options));
    case CompactionRule::size_tiered:
      break;
  }
  return {.files = pick_size_tiered(files, sizes_of(strategy, options))};
}

std::uint64_t compaction_backlog_bytes(std::span<const CompactionCandidate> files,
                                       const CompactionStrategy& strategy,
                                       const CompactionOptions& options) {
  if (!strategy.enabled) return 0;
  if (strategy.rule != CompactionRule::leveled) {
    // Windows bound what is merged: at most as much as by size alone.
    return compaction_backlog_bytes(files, sizes_of(strategy, options));
  }
  const Levels levels = levels_of(files);
  std::uint64_t backlog = 0;
  if (is_level_zero_full(levels[0], strategy)) backlog += 2 * bytes_in(levels[0]);
  for (std::uint32_t level = 1; level < kLevelMax; ++level) {
    const std::uint64_t bytes = bytes_in(levels[level]);
    const std::uint64_t room = level_bytes_max(level, strategy);
    if (bytes > room) backlog += (bytes - room) * (strategy.fanout + 1);
  }
  return backlog;
}

std::string_view name_of(CompactionRule rule) {
  switch (rule) {
    case CompactionRule::leveled:
      return "leveled";
    case CompactionRule::time_window:
      return "time-window";
    case CompactionRule::size_tiered:
      break;
  }
  return "size-tiered";
}

}  // namespace helenus::storage
