#include "storage/compaction/compaction_picker.h"

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

// ---- Collection ----

CollectionCandidate file_with(std::uint64_t number, std::uint64_t expired, std::uint64_t deletes) {
  return {.number = FileNumber{number},
          .bytes = kMiB,
          .cells = 100,
          .collectable = {.expired = expired, .deletes = deletes}};
}

std::vector<std::uint64_t> collected(const std::vector<CollectionCandidate>& files,
                                     const CollectionTurn& turn = {.table = true}) {
  std::vector<std::uint64_t> numbers;
  for (const FileNumber file : pick_collection(files, {}, turn).files) {
    numbers.push_back(file.value());
  }
  return numbers;
}

TEST(CollectionPicker, TheFileInWhichMostHasExpiredGoesFirst) {
  EXPECT_EQ(collected({file_with(1, 30, 0), file_with(2, 60, 0), file_with(3, 0, 50)}, {}),
            std::vector<std::uint64_t>{2});
  EXPECT_TRUE(collected({file_with(1, 19, 0), file_with(2, 0, 0)}).empty());
}

TEST(CollectionPicker, WhatAMergeCouldNotImproveIsNotTakenAgainSoon) {
  CollectionCandidate file = file_with(1, 60, 0);
  file.left.expired = 60;
  EXPECT_TRUE(collected({file}).empty());
  file.collectable.expired = 79;
  EXPECT_TRUE(collected({file}).empty());
  file.collectable.expired = 80;
  EXPECT_EQ(collected({file}), std::vector<std::uint64_t>{1});
  CollectionCandidate deleted = file_with(1, 0, 50);
  deleted.left.deletes = 50;
  EXPECT_TRUE(collected({deleted}, {.table = true, .little = true}).empty());
  EXPECT_EQ(collected({deleted}, {.table = true, .little = true, .left = true}).size(), 1);
  deleted.collectable.deletes = 51;
  EXPECT_EQ(collected({deleted}, {.table = true, .little = true}).size(), 1);
}

TEST(CollectionPicker, DeletesTakeTheWholeTableOrNothing) {
  const CollectionTurn any{.table = true, .little = true, .left = true};
  EXPECT_EQ(collected({file_with(2, 0, 20), file_with(1, 0, 0)}),
            (std::vector<std::uint64_t>{1, 2}));
  EXPECT_TRUE(collected({file_with(1, 0, 20), file_with(2, 0, 0)}, {}).empty());
  EXPECT_TRUE(collected({file_with(1, 0, 19), file_with(2, 0, 0)}).empty());
  EXPECT_EQ(collected({file_with(1, 0, 1), file_with(2, 0, 0)}, any),
            (std::vector<std::uint64_t>{1, 2}));
  EXPECT_TRUE(collected({file_with(1, 0, 0)}, any).empty());
}

TEST(CollectionPicker, BusyFilesAreLetAloneAndTheirTableToo) {
  std::vector<CollectionCandidate> files = {file_with(1, 50, 0), file_with(2, 0, 100)};
  files[0].busy = true;
  EXPECT_TRUE(collected(files, {.table = true, .little = true, .left = true}).empty());
}

TEST(CollectionOptions, SaysWhatDoesNotFit) {
  EXPECT_TRUE(CollectionOptions().validate().has_value());
  EXPECT_FALSE(CollectionOptions{.share_min = 0.0}.validate().has_value());
  EXPECT_FALSE(CollectionOptions{.share_min = 1.1}.validate().has_value());
  EXPECT_FALSE(CollectionOptions{.interval = {}}.validate().has_value());
  EXPECT_FALSE(CollectionOptions{.slow_bytes_per_second = 0}.validate().has_value());
  EXPECT_EQ(CollectionOptions().slow_wait(0), CollectionOptions().interval);
  EXPECT_EQ(CollectionOptions().slow_wait(std::uint64_t{4} << 40), std::chrono::seconds(1 << 20));
}

// ---- What is counted ----

TEST(ExpiryHistogram, NeverSaysTooEarlyThatSomethingHasExpired) {
  ExpiryHistogram histogram;
  const auto expiry = [](int index) { return causality::WallTime{1000 + 37LL * index * index}; };
  for (int index = 0; index < 200; ++index) histogram.add(expiry(index));
  std::uint64_t expired = 0;
  for (int index = 0; index < 200; ++index) {
    EXPECT_LE(histogram.expired_by(expiry(index)), static_cast<std::uint64_t>(index) + 1);
    EXPECT_GE(histogram.expired_by(expiry(index)), expired);
    expired = histogram.expired_by(expiry(index));
  }
  EXPECT_EQ(histogram.expired_by(causality::WallTime{2 * expiry(200).value()}), 200);
  EXPECT_EQ(histogram.expired_by(causality::WallTime{999}), 0);
}

TEST(ExpiryHistogram, TakesAnyTime) {
  ExpiryHistogram histogram;
  for (const std::int64_t second : {INT64_MIN, INT64_C(-1), INT64_C(0), INT64_MAX}) {
    histogram.add(causality::WallTime{second});
  }
  for (int bit = 0; bit < 63; ++bit) histogram.add(causality::WallTime{std::int64_t{1} << bit});
  EXPECT_EQ(histogram.expired_by(causality::WallTime{INT64_MAX}), 67);
}

}  // namespace
}  // namespace helenus::storage
