// What writes leave, compared with what storage makes of the same writes.
#include "replication/explicit_timestamps/batch_overlay.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "causality/clock.h"

namespace helenus::replication {
namespace {

using base::Bytes;
using causality::ColumnId;
using causality::Delta;
using causality::Policy;
using causality::RowRange;
using causality::Timestamp;
using causality::VersionKind;

constexpr int kRows = 8;
constexpr std::uint32_t kColumns = 2;

Bytes row(std::uint64_t number) {
  return number == 0 ? Bytes() : Bytes::copy_of(std::string(1, static_cast<char>('a' + number)));
}

std::optional<Bytes> maybe_row(base::Prng& prng) {
  if (prng.below(4) == 0) return std::nullopt;
  return row(prng.below(kRows));
}

causality::Mutation random_mutation(base::Prng& prng) {
  causality::Mutation mutation;
  mutation.timestamp = Timestamp{static_cast<std::int64_t>(prng.between(10, 40))};
  for (std::uint64_t i = prng.below(4); i > 0; --i) {
    RowRange row_range{.from = maybe_row(prng), .to = maybe_row(prng)};
    if (row_range.from && row_range.to && !(*row_range.from < *row_range.to)) row_range.to.reset();
    mutation.deleted_ranges.push_back(row_range);
  }
  for (int at = 0; at < kRows; ++at) {
    if (prng.below(4) != 0) continue;
    causality::CellChange cell;
    cell.row = row(static_cast<std::uint64_t>(at));
    cell.column = ColumnId{static_cast<std::uint32_t>(prng.below(kColumns))};
    cell.kind = prng.below(3) == 0 ? VersionKind::deletion : VersionKind::value;
    cell.value = Bytes::copy_of(std::to_string(prng.below(10)));
    mutation.cells.push_back(std::move(cell));
  }
  if (mutation.cells.empty() && mutation.deleted_ranges.empty())
    mutation.deleted_ranges.emplace_back();
  return mutation;
}

TEST(BatchOverlay, LeavesWhatStorageWouldHave) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    base::Prng prng(seed);
    causality::Clock clock;
    causality::PartitionStore storage;
    BatchOverlay overlay;
    for (std::uint64_t i = prng.between(1, 6); i > 0; --i) {
      const auto delta =
          causality::mint(clock, causality::actor_of(1, 1), causality::Epoch{1}, Policy::lww,
                          random_mutation(prng), causality::kTimestampMin);
      ASSERT_TRUE(delta.has_value()) << delta.error().to_string();
      storage.absorb(causality::fragment_of(*delta, Policy::lww));
      overlay.lay(*delta);
    }
    for (std::uint64_t at = 0; at < kRows; ++at) {
      for (std::uint32_t column = 0; column < kColumns; ++column) {
        const causality::CellStore stored = storage.cell(row(at), ColumnId{column});
        const causality::Version* const left = overlay.find(row(at), ColumnId{column});
        ASSERT_EQ(left == nullptr, stored.versions().empty()) << seed;
        if (left == nullptr) continue;
        ASSERT_EQ(stored.versions().size(), 1U) << seed;
        EXPECT_EQ(*left, stored.versions()[0]) << seed;
      }
    }
  }
}

TEST(BatchOverlay, KnowsWhatARangeHolds) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    base::Prng prng(seed);
    causality::Clock clock;
    BatchOverlay overlay;
    for (int i = 0; i < 4; ++i) {
      const auto delta =
          causality::mint(clock, causality::actor_of(1, 1), causality::Epoch{1}, Policy::lww,
                          random_mutation(prng), causality::kTimestampMin);
      ASSERT_TRUE(delta.has_value());
      overlay.lay(*delta);
    }
    RowRange row_range{.from = maybe_row(prng), .to = maybe_row(prng)};
    if (row_range.from && row_range.to && !(*row_range.from < *row_range.to)) row_range.to.reset();
    std::size_t written = 0;
    const auto [first, last] = overlay.written_in(row_range);
    for (auto cell = first; cell != last; ++cell) {
      EXPECT_TRUE(row_range.contains(cell->first.first)) << seed;
      EXPECT_EQ(overlay.find(cell->first.first, cell->first.second), &cell->second) << seed;
      ++written;
    }
    const auto ranges = overlay.deleted_in(row_range);
    for (std::size_t i = 1; i < ranges.size(); ++i) {
      EXPECT_TRUE(ranges[i - 1].range.to && *ranges[i - 1].range.to <= *ranges[i].range.from);
    }
    for (const auto& range : ranges) EXPECT_TRUE(range.range.overlaps(row_range)) << seed;
    for (std::uint64_t at = 0; at < kRows; ++at) {
      if (!row_range.contains(row(at))) continue;
      const causality::Version* const left = overlay.deleted_at(row(at));
      // No mutation writes this column: what is found here is a delete of the row.
      EXPECT_EQ(overlay.find(row(at), ColumnId{kColumns}), left) << seed;
      const auto range = std::ranges::find_if(
          ranges, [&](const auto& deleted) { return deleted.range.contains(row(at)); });
      EXPECT_EQ(range == ranges.end(), left == nullptr) << seed;
      if (left != nullptr && range != ranges.end()) EXPECT_EQ(range->version, *left) << seed;
      for (std::uint32_t column = 0; column < kColumns; ++column) {
        const causality::Version* const cell = overlay.find(row(at), ColumnId{column});
        if (cell != nullptr && cell != left) --written;
      }
    }
    EXPECT_EQ(written, 0U) << seed;
  }
}

}  // namespace
}  // namespace helenus::replication
