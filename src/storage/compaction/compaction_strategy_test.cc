// Tables that are written to and merged by a rule until it has nothing to do: what is picked keeps
// to the rule's laws at every step, and it comes to an end in the shape that the rule promises.
#include "storage/compaction/compaction_strategy.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"

namespace helenus::storage {
namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;

// A file with the keys from `first` to `last`, which are numbers here.
struct ModelFile {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  std::uint32_t level = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::int64_t newest = 0;
  std::string first_key = {};
  std::string last_key = {};
};

class ModelTable {
 public:
  ModelTable(CompactionStrategy strategy, std::uint64_t seed)
      : strategy_(strategy), random_(seed) {}

  void flush(std::uint64_t bytes, std::int64_t newest) {
    const std::uint64_t a = random_.below(kKeys);
    const std::uint64_t b = random_.below(kKeys);
    add({.bytes = bytes, .first = std::min(a, b), .last = std::max(a, b), .newest = newest});
  }
  void add(ModelFile file) {
    file.number = next_++;
    file.first_key = fmt::format("{:08}", file.first);
    file.last_key = fmt::format("{:08}", file.last);
    files_[file.number] = file;
  }
  std::vector<CompactionCandidate> candidates(const std::set<std::uint64_t>& busy = {}) const {
    std::vector<CompactionCandidate> candidates;
    for (const auto& [number, file] : files_) {
      candidates.push_back({.number = FileNumber{number},
                            .bytes = file.bytes,
                            .busy = busy.contains(number),
                            .level = file.level,
                            .newest_write = file.newest,
                            .key_first = base::as_bytes(file.first_key),
                            .key_last = base::as_bytes(file.last_key)});
    }
    return candidates;
  }
  CompactionPick pick(const std::set<std::uint64_t>& busy = {}) const {
    return pick_compaction(candidates(busy), strategy_, CompactionOptions());
  }
  // Merges; half of what overlaps goes.
  void merge(const CompactionPick& pick) {
    std::uint64_t bytes = 0;
    std::uint64_t first = UINT64_MAX;
    std::uint64_t last = 0;
    std::int64_t newest = INT64_MIN;
    for (const FileNumber number : pick.files) {
      const ModelFile& file = files_.at(number.value());
      bytes += file.bytes;
      first = std::min(first, file.first);
      last = std::max(last, file.last);
      newest = std::max(newest, file.newest);
      files_.erase(number.value());
    }
    written_ += bytes;
    const std::uint64_t outputs =
        std::min<std::uint64_t>(bytes / pick.file_bytes_max + 1, last - first + 1);
    const std::uint64_t step = (last - first + 1) / outputs;
    for (std::uint64_t i = 0; i < outputs; ++i) {
      add({.bytes = bytes / outputs,
           .level = pick.level,
           .first = first + i * step,
           .last = i + 1 == outputs ? last : first + (i + 1) * step - 1,
           .newest = newest});
    }
  }
  const std::map<std::uint64_t, ModelFile>& files() const { return files_; }
  std::uint64_t written() const { return written_; }
  std::uint64_t bytes_of_level(std::uint32_t level) const {
    std::uint64_t bytes = 0;
    for (const auto& [number, file] : files_) bytes += file.level == level ? file.bytes : 0;
    return bytes;
  }
  std::size_t files_of_level(std::uint32_t level) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        files_, [&](const auto& each) { return each.second.level == level; }));
  }
  bool is_disjoint(std::uint32_t level) const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
    for (const auto& [number, file] : files_) {
      if (file.level == level) spans.emplace_back(file.first, file.last);
    }
    std::ranges::sort(spans);
    for (std::size_t i = 1; i < spans.size(); ++i) {
      if (spans[i].first <= spans[i - 1].second) return false;
    }
    return true;
  }
  std::uint64_t draw(std::uint64_t bound) { return random_.below(bound); }

 private:
  static constexpr std::uint64_t kKeys = 1'000'000;
  const CompactionStrategy strategy_;
  base::Prng random_;
  std::uint64_t next_ = 1;
  std::uint64_t written_ = 0;
  std::map<std::uint64_t, ModelFile> files_;
};

CompactionStrategy leveled() {
  return {.rule = CompactionRule::leveled, .file_bytes = 4 * kMib, .fanout = 4};
}

void expect_leveled_shape(const ModelTable& table, const CompactionStrategy& strategy) {
  RC_ASSERT(table.files_of_level(0) < strategy.level_zero_files);
  for (std::uint32_t level = 1; level < kLevelMax; ++level) {
    RC_ASSERT(table.is_disjoint(level));
    RC_ASSERT(table.bytes_of_level(level) <= level_bytes_max(level, strategy));
  }
}

RC_GTEST_PROP(CompactionStrategyLaws, LevelsNeverOverlapAndComeToRest, (std::uint64_t seed)) {
  const CompactionStrategy strategy = leveled();
  ModelTable table(strategy, seed);
  for (int flush = 0; flush < 20; ++flush) {
    table.flush(kMib + table.draw(12 * kMib), 0);
    for (int merges = 0;; ++merges) {
      RC_ASSERT(merges < 200);
      const CompactionPick pick = table.pick();
      if (pick.empty()) break;
      RC_ASSERT(pick.level > 0U);
      RC_ASSERT(std::ranges::is_sorted(pick.files));
      // While one of them is busy nothing is picked: what comes of it may overlap.
      const std::set<std::uint64_t> busy = {pick.files.front().value()};
      RC_ASSERT(table.pick(busy).empty());
      table.merge(pick);
      RC_ASSERT(table.is_disjoint(pick.level));
    }
    expect_leveled_shape(table, strategy);
  }
}

// What was merged by size lies in level 0, however large.
RC_GTEST_PROP(CompactionStrategyLaws, WhatWasMergedBySizeIsLaidOutInLevels, (std::uint64_t seed)) {
  const CompactionStrategy strategy = leveled();
  ModelTable table(strategy, seed);
  for (int file = 0; file < 3; ++file) table.flush(30 * kMib + table.draw(30 * kMib), 0);
  for (int merges = 0;; ++merges) {
    RC_ASSERT(merges < 500);
    const CompactionPick pick = table.pick();
    if (pick.empty()) break;
    table.merge(pick);
  }
  RC_ASSERT(table.files_of_level(0) == 0U);
  expect_leveled_shape(table, strategy);
}

CompactionStrategy hourly() {
  return {.rule = CompactionRule::time_window, .window = std::chrono::hours(1)};
}

constexpr std::int64_t kHourMicroseconds = std::int64_t{3600} * 1'000'000;

RC_GTEST_PROP(CompactionStrategyLaws, WindowsAreNeverMergedWithOneAnother, (std::uint64_t seed)) {
  const CompactionStrategy strategy = hourly();
  ModelTable table(strategy, seed);
  std::int64_t now = 0;
  for (int flush = 0; flush < 100; ++flush) {
    now += static_cast<std::int64_t>(table.draw(static_cast<std::uint64_t>(kHourMicroseconds / 2)));
    // Now and then something of long ago.
    const auto late =
        table.draw(10) == 0
            ? static_cast<std::int64_t>(table.draw(static_cast<std::uint64_t>(1 + now)))
            : now;
    table.flush(kMib + table.draw(32 * kMib), late);
    for (int merges = 0;; ++merges) {
      RC_ASSERT(merges < 100);
      const auto candidates = table.candidates();
      const CompactionPick pick = table.pick();
      if (pick.empty()) break;
      RC_ASSERT(pick.files.size() >= 2U);
      std::set<std::int64_t> windows;
      for (const CompactionCandidate& file : candidates) {
        if (!std::ranges::binary_search(pick.files, file.number)) continue;
        windows.insert(window_of(file, strategy));
      }
      RC_ASSERT(windows.size() == 1U);
      table.merge(pick);
    }
    std::map<std::int64_t, std::size_t> by_window;
    for (const CompactionCandidate& file : table.candidates())
      ++by_window[window_of(file, strategy)];
    for (const auto& [window, files] : by_window) {
      RC_ASSERT(files == 1U || window == by_window.rbegin()->first);
    }
  }
}

TEST(CompactionStrategy, AWindowHasTheMomentsFromItsBeginningToTheNextOne) {
  const auto window = [](std::int64_t microseconds) {
    return window_of({.number = FileNumber{1}, .newest_write = microseconds}, hourly());
  };
  EXPECT_EQ(window(0), 0);
  EXPECT_EQ(window(kHourMicroseconds - 1), 0);
  EXPECT_EQ(window(kHourMicroseconds), 1);
  EXPECT_EQ(window(-1), -1);
  EXPECT_EQ(window(-kHourMicroseconds), -1);
  EXPECT_EQ(window(-kHourMicroseconds - 1), -2);
  EXPECT_LE(window(INT64_MIN), window(INT64_MIN + 1));
  EXPECT_LE(window(INT64_MAX - 1), window(INT64_MAX));
}

TEST(CompactionStrategy, WhatIsNotEnabledIsNotMerged) {
  for (const CompactionRule rule :
       {CompactionRule::size_tiered, CompactionRule::leveled, CompactionRule::time_window}) {
    ModelTable on({.rule = rule}, 1);
    ModelTable off({.rule = rule, .enabled = false}, 1);
    for (int file = 0; file < 40; ++file) {
      on.flush(kMib, 0);
      off.flush(kMib, 0);
    }
    EXPECT_FALSE(on.pick().empty()) << name_of(rule);
    EXPECT_TRUE(off.pick().empty()) << name_of(rule);
    EXPECT_EQ(compaction_backlog_bytes(off.candidates(), {.rule = rule, .enabled = false}, {}), 0U);
  }
}

TEST(CompactionStrategy, ATableSaysHowManyFilesOfASizeAreMerged) {
  ModelTable few({.files_min = 2, .files_max = 3}, 1);
  for (int file = 0; file < 5; ++file) few.flush(kMib, 0);
  EXPECT_EQ(few.pick().files.size(), 3U);
  ModelTable many({.files_min = 6}, 1);
  for (int file = 0; file < 5; ++file) many.flush(kMib, 0);
  EXPECT_TRUE(many.pick().empty());
}

TEST(CompactionStrategy, LevelsGrowUntilTheyHoldAnything) {
  const CompactionStrategy strategy = leveled();
  EXPECT_EQ(level_bytes_max(1, strategy), 16 * kMib);
  EXPECT_EQ(level_bytes_max(2, strategy), 64 * kMib);
  EXPECT_EQ(level_for(1, strategy), 1U);
  EXPECT_EQ(level_for(16 * kMib, strategy), 1U);
  EXPECT_EQ(level_for(16 * kMib + 1, strategy), 2U);
  EXPECT_EQ(level_for(UINT64_MAX, strategy), kLevelMax);
  EXPECT_EQ(level_bytes_max(kLevelMax, {.fanout = 1000}), UINT64_MAX);
}

}  // namespace
}  // namespace helenus::storage
