#include "storage/compaction/compaction_picker.h"

#include <algorithm>
#include <numeric>

namespace helenus::storage {

using base::Errc;
using base::Error;

namespace {

using Tier = std::vector<CompactionCandidate>;

std::uint64_t bytes_of(std::span<const CompactionCandidate> files) {
  return std::accumulate(files.begin(), files.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& file) { return sum + file.bytes; });
}

// Whether a file may join a tier of smaller ones: the mean stays within the ratio of both ends.
bool belongs(const Tier& tier, const CompactionCandidate& file, const CompactionOptions& options) {
  if (file.bytes <= options.small_bytes) return true;
  const double mean =
      static_cast<double>(bytes_of(tier) + file.bytes) / static_cast<double>(tier.size() + 1);
  const double smallest = static_cast<double>(std::max(tier.front().bytes, options.small_bytes));
  return static_cast<double>(file.bytes) <= mean * options.size_ratio_max &&
         mean <= smallest * options.size_ratio_max;
}

// Tiers from the smallest files to the largest; each ascends by size.
std::vector<Tier> tiers_of(std::span<const CompactionCandidate> files,
                           const CompactionOptions& options) {
  Tier sorted;
  std::ranges::copy_if(files, std::back_inserter(sorted),
                       [](const CompactionCandidate& file) { return !file.busy; });
  std::ranges::sort(sorted, {}, [](const CompactionCandidate& file) {
    return std::pair(file.bytes, file.number);
  });
  std::vector<Tier> tiers;
  for (const CompactionCandidate& file : sorted) {
    if (tiers.empty() || !belongs(tiers.back(), file, options)) tiers.emplace_back();
    tiers.back().push_back(file);
  }
  return tiers;
}

// What one merge would take of a tier; empty if the tier is not full.
std::span<const CompactionCandidate> choice_of(const Tier& tier, const CompactionOptions& options) {
  if (tier.size() < options.files_min) return {};
  return std::span(tier).first(std::min(tier.size(), options.files_max));
}

}  // namespace

base::Result<void> CompactionOptions::validate() const {
  if (files_min < 2) return Error(Errc::invalid_argument, "files_min {} is below 2", files_min);
  if (files_max < files_min) {
    return Error(Errc::invalid_argument, "files_max {} is below files_min {}", files_max,
                 files_min);
  }
  if (!(size_ratio_max > 1.0 && size_ratio_max <= 4.0)) {
    return Error(Errc::invalid_argument, "size_ratio_max {} is not above 1 and at most 4",
                 size_ratio_max);
  }
  return {};
}

std::vector<FileNumber> pick_size_tiered(std::span<const CompactionCandidate> files,
                                         const CompactionOptions& options) {
  std::vector<FileNumber> picked;
  double best = 0.0;
  for (const Tier& tier : tiers_of(files, options)) {
    const auto choice = choice_of(tier, options);
    if (choice.empty()) continue;
    // Every file that goes spares each read a look; every byte rewritten costs.
    const double gain = static_cast<double>(choice.size() - 1) /
                        static_cast<double>(bytes_of(choice) + options.small_bytes + 1);
    if (gain <= best) continue;
    best = gain;
    picked.clear();
    for (const CompactionCandidate& file : choice) picked.push_back(file.number);
  }
  std::ranges::sort(picked);
  return picked;
}

std::uint64_t compaction_backlog_bytes(std::span<const CompactionCandidate> files,
                                       const CompactionOptions& options) {
  std::uint64_t backlog = 0;
  Tier left;
  for (const CompactionCandidate& file : files) {
    if (file.busy) {
      backlog += file.bytes;
    } else {
      left.push_back(file);
    }
  }
  for (;;) {
    const std::vector<FileNumber> picked = pick_size_tiered(left, options);
    if (picked.empty()) return backlog;
    CompactionCandidate merged{.number = picked.back()};
    std::erase_if(left, [&](const CompactionCandidate& file) {
      if (!std::ranges::binary_search(picked, file.number)) return false;
      merged.bytes += file.bytes;
      return true;
    });
    backlog += merged.bytes;
    left.push_back(merged);
  }
}

base::Result<void> CollectionOptions::validate() const {
  if (!(share_min > 0.0 && share_min <= 1.0)) {
    return Error(Errc::invalid_argument, "share_min {} is not above 0 and at most 1", share_min);
  }
  if (interval < std::chrono::milliseconds(1) || interval > std::chrono::hours(24 * 7)) {
    return Error(Errc::invalid_argument, "interval is not between 1 ms and 7 days");
  }
  if (slow_bytes_per_second == 0) {
    return Error(Errc::invalid_argument, "slow_bytes_per_second is zero");
  }
  return {};
}

runtime::Duration CollectionOptions::slow_wait(std::uint64_t bytes) const {
  return std::max<runtime::Duration>(interval, std::chrono::seconds(bytes / slow_bytes_per_second));
}

namespace {

const CollectionCandidate* most_expired(std::span<const CollectionCandidate> files,
                                        const CollectionOptions& options) {
  const CollectionCandidate* best = nullptr;
  double best_share = 0.0;
  for (const CollectionCandidate& file : files) {
    if (file.busy || file.collectable.expired <= file.left.expired || file.cells == 0) continue;
    const auto expired = static_cast<double>(file.collectable.expired - file.left.expired);
    const double share = expired / static_cast<double>(file.cells);
    if (share < options.share_min || share <= best_share) continue;
    best = &file;
    best_share = share;
  }
  return best;
}

std::uint64_t weight_of(const Collectable& garbage) {
  return garbage.expired + 2 * garbage.deletes + garbage.increments;
}

}  // namespace

CollectionPick pick_collection(std::span<const CollectionCandidate> files,
                               const CollectionOptions& options, const CollectionTurn& turn) {
  if (const CollectionCandidate* file = most_expired(files, options); file != nullptr) {
    return {.extent = CollectionExtent::one_file, .files = {file->number}};
  }
  std::uint64_t cells = 0;
  std::uint64_t fresh = 0;
  std::uint64_t left = 0;
  for (const CollectionCandidate& file : files) {
    if (file.busy) return {};
    cells += file.cells;
    const std::uint64_t garbage = weight_of(file.collectable);
    const std::uint64_t old = std::min(garbage, weight_of(file.left));
    fresh += garbage - old;
    left += old;
  }
  if (!turn.table || fresh + left == 0) return {};
  const bool much = static_cast<double>(fresh) >= options.share_min * static_cast<double>(cells);
  const bool little = turn.little && (fresh > 0 || turn.left);
  if (!much && !little) return {};
  CollectionPick pick{.extent = much ? CollectionExtent::table : CollectionExtent::table_slowly};
  for (const CollectionCandidate& file : files) pick.files.push_back(file.number);
  std::ranges::sort(pick.files);
  return pick;
}

}  // namespace helenus::storage
