#include "replication/explicit_timestamps/range_cut.h"

#include <string>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace helenus::replication {
namespace {

using causality::RowKey;
using causality::RowRange;

RowKey key(int number) {
  return base::Bytes::copy_of(std::string(1, static_cast<char>('a' + number)));
}

std::optional<RowKey> random_bound(base::Prng& prng) {
  if (prng.chance(0.2)) return std::nullopt;
  return key(static_cast<int>(prng.below(12)));
}

RowRange random_range(base::Prng& prng) {
  for (;;) {
    RowRange row_range{.from = random_bound(prng), .to = random_bound(prng)};
    if (!row_range.from || !row_range.to || *row_range.from < *row_range.to) return row_range;
  }
}

TEST(RangeCut, LeavesExactlyWhatIsInNoHole) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    base::Prng prng(seed);
    const RowRange row_range = random_range(prng);
    std::vector<RowRange> holes;
    while (prng.chance(0.7)) holes.push_back(random_range(prng));
    const std::vector<RowRange> left = cut(row_range, holes);
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_TRUE(!left[i].from || !left[i].to || *left[i].from < *left[i].to) << seed;
      if (i > 0) EXPECT_TRUE(left[i - 1].to && *left[i - 1].to <= *left[i].from) << seed;
    }
    for (int number = -1; number < 13; ++number) {
      const RowKey row = number < 0 ? RowKey() : key(number);
      const auto holds = [&](const RowRange& range) { return range.contains(row); };
      const bool wanted = row_range.contains(row) && std::ranges::none_of(holes, holds);
      EXPECT_EQ(std::ranges::count_if(left, holds), wanted ? 1 : 0) << seed;
    }
  }
}

TEST(RangeCut, ARangeWithoutHolesStaysAsItIs) {
  EXPECT_EQ(cut(RowRange{}, {}), std::vector{RowRange{}});
  EXPECT_EQ(cut(causality::range_of_row(key(1)), {RowRange{.from = key(5), .to = {}}}),
            std::vector{causality::range_of_row(key(1))});
  EXPECT_TRUE(cut(causality::range_of_row(key(1)), {RowRange{}}).empty());
}

TEST(RangeCut, JoinedRangesHoldWhatAnyOfThemHolds) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    base::Prng prng(seed);
    std::vector<RowRange> deleted_ranges;
    while (prng.chance(0.8)) deleted_ranges.push_back(random_range(prng));
    const std::vector<RowRange> apart = joined(deleted_ranges);
    for (std::size_t i = 1; i < apart.size(); ++i) {
      EXPECT_TRUE(apart[i - 1].to && apart[i].from && *apart[i - 1].to < *apart[i].from) << seed;
    }
    for (int number = -1; number < 13; ++number) {
      const RowKey row = number < 0 ? RowKey() : key(number);
      const auto holds = [&](const RowRange& range) { return range.contains(row); };
      EXPECT_EQ(std::ranges::any_of(apart, holds), std::ranges::any_of(deleted_ranges, holds))
          << seed;
    }
    const RowRange other = random_range(prng);
    const auto overlaps = [&](const RowRange& range) { return range.overlaps(other); };
    EXPECT_EQ(overlaps_any(other, apart), std::ranges::any_of(deleted_ranges, overlaps)) << seed;
  }
}

}  // namespace
}  // namespace helenus::replication
