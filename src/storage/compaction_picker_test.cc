#include "storage/compaction_picker.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"

namespace helenus::storage {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

std::vector<CompactionCandidate> files_of(std::vector<std::uint64_t> mebibytes) {
  std::vector<CompactionCandidate> files;
  for (const std::uint64_t size : mebibytes) {
    files.push_back({.number = FileNumber{files.size() + 1}, .bytes = size * kMiB});
  }
  return files;
}

std::vector<std::uint64_t> picked(const std::vector<CompactionCandidate>& files) {
  std::vector<std::uint64_t> numbers;
  for (const FileNumber number : pick_size_tiered(files, {})) numbers.push_back(number.value());
  return numbers;
}

TEST(CompactionPicker, WaitsForATierToFill) {
  EXPECT_TRUE(picked({}).empty());
  EXPECT_TRUE(picked(files_of({64, 64, 64})).empty());
  EXPECT_EQ(picked(files_of({64, 64, 64, 64})), (std::vector<std::uint64_t>{1, 2, 3, 4}));
}

TEST(CompactionPicker, LeavesFilesOfOtherSizesAlone) {
  EXPECT_EQ(picked(files_of({64, 1000, 60, 70, 8000, 66})),
            (std::vector<std::uint64_t>{1, 3, 4, 6}));
  EXPECT_TRUE(picked(files_of({10, 100, 1000, 10000})).empty());
}

TEST(CompactionPicker, SmallFilesAreAllAlike) {
  EXPECT_EQ(picked(files_of({0, 1, 2, 4})).size(), 4U);
}

TEST(CompactionPicker, PrefersTheMergeThatSparesMostForItsBytes) {
  EXPECT_EQ(picked(files_of({500, 500, 500, 500, 16, 16, 16, 16})),
            (std::vector<std::uint64_t>{5, 6, 7, 8}));
}

TEST(CompactionPicker, TakesAtMostSoManyAndNoneThatIsBusy) {
  EXPECT_EQ(picked(files_of(std::vector<std::uint64_t>(100, 64))).size(), 32U);
  auto files = files_of({64, 64, 64, 64});
  files[1].busy = true;
  EXPECT_TRUE(picked(files).empty());
}

RC_GTEST_PROP(CompactionPicker, NeverMergesFilesOfVeryDifferentSize, ()) {
  const CompactionOptions options;
  std::vector<CompactionCandidate> files;
  for (const auto exponent : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 400))) {
    files.push_back({.number = FileNumber{files.size() + 1},
                     .bytes = static_cast<std::uint64_t>(std::pow(1.1, exponent)),
                     .busy = *rc::gen::inRange(0, 10) == 0});
  }
  const auto choice = pick_size_tiered(files, options);
  if (choice.empty()) return;
  RC_ASSERT(choice.size() >= options.files_min && choice.size() <= options.files_max);
  RC_ASSERT(std::ranges::is_sorted(choice));
  std::uint64_t least = UINT64_MAX;
  std::uint64_t most = 0;
  for (const FileNumber number : choice) {
    const CompactionCandidate& file = files[number.value() - 1];
    RC_ASSERT(!file.busy);
    least = std::min(least, std::max(file.bytes, options.small_bytes));
    most = std::max(most, std::max(file.bytes, options.small_bytes));
  }
  RC_ASSERT(static_cast<double>(most) <=
            static_cast<double>(least) * options.size_ratio_max * options.size_ratio_max * 1.0001);
}

TEST(CompactionPicker, ALongLifeKeepsFilesAndRewritesFew) {
  // 4096 flushes of 64 MiB, merged whenever the picker says so.
  std::map<FileNumber, std::uint64_t> files;
  std::uint64_t next = 1;
  std::uint64_t rewritten = 0;
  for (int flush = 0; flush < 4096; ++flush) {
    files[FileNumber{next++}] = 64 * kMiB;
    for (;;) {
      std::vector<CompactionCandidate> candidates;
      for (const auto& [number, bytes] : files) candidates.push_back({number, bytes, false});
      const auto choice = pick_size_tiered(candidates, {});
      if (choice.empty()) break;
      std::uint64_t merged = 0;
      for (const FileNumber number : choice) {
        merged += files[number];
        files.erase(number);
      }
      rewritten += merged;
      files[FileNumber{next++}] = merged;
    }
  }
  EXPECT_LE(files.size(), 3U * 7U) << "at most three in each of about log4(4096) + 1 tiers";
  EXPECT_LE(rewritten, 4096ULL * 64 * kMiB * 6) << "each byte once a tier";
}

TEST(CompactionPicker, BacklogCountsWhatWillBeRewritten) {
  EXPECT_EQ(compaction_backlog_bytes(files_of({64, 64, 64}), {}), 0U);
  EXPECT_EQ(compaction_backlog_bytes(files_of({64, 64, 64, 64}), {}), 256 * kMiB);
  auto files = files_of({64, 64});
  files[0].busy = true;
  EXPECT_EQ(compaction_backlog_bytes(files, {}), 64 * kMiB);
  // All sixteen go in one merge.
  EXPECT_EQ(compaction_backlog_bytes(files_of(std::vector<std::uint64_t>(16, 64)), {}),
            16 * 64 * kMiB);
}

TEST(CompactionOptions, SaysWhatDoesNotFit) {
  EXPECT_TRUE(CompactionOptions().validate().has_value());
  EXPECT_FALSE(CompactionOptions{.files_min = 1}.validate().has_value());
  EXPECT_FALSE((CompactionOptions{.files_min = 8, .files_max = 4}).validate().has_value());
  EXPECT_FALSE(CompactionOptions{.size_ratio_max = 1.0}.validate().has_value());
}

}  // namespace
}  // namespace helenus::storage
