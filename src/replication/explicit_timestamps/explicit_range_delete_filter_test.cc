// Where a delete of a range with an explicit timestamp wins, compared with what holds for each
// cell, there or not, one by one.
#include "replication/explicit_timestamps/explicit_range_delete_filter.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "causality/clock.h"
#include "causality/limits.h"
#include "causality/resolve.h"

namespace helenus::replication {
namespace {

using base::Bytes;
using causality::CellChange;
using causality::ColumnId;
using causality::Delta;
using causality::Mutation;
using causality::PartitionStore;
using causality::Policy;
using causality::RowKey;
using causality::RowRange;
using causality::Timestamp;
using causality::Version;
using causality::VersionKind;
using causality::WallTime;

constexpr int kRows = 8;
// The first two are written and named, the third is named and never written, the fourth neither.
constexpr std::uint32_t kWritten = 2;
constexpr std::uint32_t kNamed = 3;
constexpr std::uint32_t kColumns = 4;
constexpr WallTime kUntil{1000};

RowKey key(int number) {
  return number == 0 ? Bytes() : Bytes::copy_of(std::string(1, static_cast<char>('a' + number)));
}

RowColumns named() {
  const std::vector<ColumnId> columns = {ColumnId{0}, ColumnId{1}, ColumnId{2}};
  return {.of_rows = columns, .of_first = columns};
}

Version deletion_at(std::int64_t timestamp) {
  Version version;
  version.timestamp = Timestamp{timestamp};
  version.kind = VersionKind::deletion;
  version.expires = kUntil;
  return version;
}

RowRange random_range(base::Prng& prng) {
  if (prng.chance(0.3)) return causality::range_of_row(key(static_cast<int>(prng.below(kRows))));
  const auto bound = [&]() -> std::optional<RowKey> {
    if (prng.chance(0.25)) return std::nullopt;
    return key(static_cast<int>(prng.below(kRows)));
  };
  for (;;) {
    RowRange range{.from = bound(), .to = bound()};
    if (!range.from || !range.to || *range.from < *range.to) return range;
  }
}

// Without a timestamp of its own: it replaces whatever is there.
Mutation random_write(base::Prng& prng) {
  Mutation mutation;
  mutation.timestamp = Timestamp{static_cast<std::int64_t>(prng.between(10, 40))};
  if (prng.chance(0.6)) {
    mutation.deleted_ranges.push_back(random_range(prng));
    if (prng.chance(0.7)) mutation.remembered_until = kUntil;
    return mutation;
  }
  CellChange cell;
  cell.row = key(static_cast<int>(prng.below(kRows)));
  cell.column = ColumnId{static_cast<std::uint32_t>(prng.below(kWritten))};
  cell.kind = prng.chance(0.3) ? VersionKind::deletion : VersionKind::value;
  if (cell.kind == VersionKind::deletion) cell.expires = kUntil;
  mutation.cells.push_back(std::move(cell));
  return mutation;
}

class Replica {
 public:
  Delta write(Mutation mutation) {
    auto delta = causality::mint(clock_, causality::actor_of(1, 1), causality::Epoch{1},
                                 Policy::lww, std::move(mutation), causality::kTimestampMin);
    EXPECT_TRUE(delta.has_value()) << delta.error().to_string();
    return *std::move(delta);
  }
  void apply(const Delta& delta) { stored_.absorb(causality::fragment_of(delta, Policy::lww)); }
  // As a merge of all there is, of a replica that is alone.
  void merge() {
    stored_.apply_range_deletes();
    causality::drop_stable(stored_, Policy::lww, {.dots = clock_, .wall = WallTime{1}});
    stored_.strip(clock_);
  }
  const PartitionStore& stored() const { return stored_; }

 private:
  causality::Clock clock_;
  PartitionStore stored_;
};

// What storage shows of a row, as a cursor reads it.
PartitionStore row_of(const PartitionStore& stored, const RowKey& row) {
  PartitionStore read;
  if (const auto at = stored.rows().find(row); at != stored.rows().end()) {
    read.absorb(row, at->second);
  }
  for (const auto& range_delete : stored.range_deletes()) {
    if (range_delete.range.contains(row)) read.absorb(range_delete);
  }
  return read;
}

bool is_one_row(const RowRange& row_range) {
  return row_range.from && row_range == causality::range_of_row(*row_range.from);
}

FilteredRangeDelete judge(const PartitionStore& stored, const RowRange& row_range,
                          const Version& deletion, const BatchOverlay& before,
                          std::size_t ranges_max = ExplicitRangeDeleteFilter::kPiecesMax) {
  const RowColumns columns = named();
  ExplicitRangeDeleteFilter judgement(row_range, deletion, columns, before);
  std::vector<causality::RangeDelete> ranges;
  std::vector<RowKey> rows;
  for (const auto& [row, cells] : stored.rows()) rows.push_back(row);
  for (const auto& range_delete : stored.range_deletes()) {
    // A delete of exactly one row lies with the row.
    if (is_one_row(range_delete.range)) {
      rows.push_back(*range_delete.range.from);
    } else {
      ranges.push_back(range_delete);
    }
  }
  const causality::RangeIndex index(ranges);
  judgement.take_ranges(index);
  while (judgement.take_newer_range()) {
  }
  std::ranges::sort(rows);
  rows.erase(std::ranges::unique(rows).begin(), rows.end());
  for (const RowKey& row : rows) {
    if (row_range.contains(row)) judgement.take_row(row, row_of(stored, row));
  }
  while (judgement.take_row_of_overlay()) {
  }
  return std::move(judgement).finish(ranges_max, causality::kCellsPerMutationMax);
}

bool names(const FilteredRangeDelete& judged, const RowKey& row, ColumnId column) {
  return std::ranges::any_of(judged.deleted_ranges,
                             [&](const RowRange& s) { return s.contains(row); }) ||
         std::ranges::any_of(judged.cells, [&](const CellChange& cell) {
           return cell.row == row && cell.column == column;
         });
}

struct Case {
  Replica replica;
  BatchOverlay before;
  RowRange range;
  Version deletion;

  explicit Case(std::uint64_t seed) {
    base::Prng prng(seed);
    for (std::uint64_t i = prng.below(8); i > 0; --i) {
      replica.apply(replica.write(random_write(prng)));
      if (prng.chance(0.3)) replica.merge();
    }
    if (prng.chance(0.5)) {
      for (std::uint64_t i = prng.below(4); i > 0; --i) {
        before.lay(replica.write(random_write(prng)));
      }
    }
    range = random_range(prng);
    deletion = deletion_at(static_cast<std::int64_t>(prng.between(10, 40)));
  }
  bool wins_at(const RowKey& row, std::uint32_t column) const {
    const Version* const laid = before.find(row, ColumnId{column});
    if (laid != nullptr) return wins(deletion, *laid);
    return wins(deletion, replica.stored().cell(row, ColumnId{column}));
  }
  bool wins_in_row(const RowKey& row) const {
    for (std::uint32_t column = 0; column < kColumns; ++column) {
      if (!wins_at(row, column)) return false;
    }
    return true;
  }
};

TEST(ExplicitRangeDeleteFilter, NamesExactlyWhereItWins) {
  for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
    const Case test(seed);
    const FilteredRangeDelete judged =
        judge(test.replica.stored(), test.range, test.deletion, test.before);
    for (int number = 0; number < kRows; ++number) {
      const RowKey row = key(number);
      for (std::uint32_t column = 0; column < kColumns; ++column) {
        const bool named = names(judged, row, ColumnId{column});
        if (!test.range.contains(row) || !test.wins_at(row, column)) {
          ASSERT_FALSE(named) << seed << ": row " << number << ", column " << column;
        } else if (column < kNamed || test.wins_in_row(row)) {
          ASSERT_TRUE(named) << seed << ": row " << number << ", column " << column;
        }
      }
    }
    for (const CellChange& cell : judged.cells) {
      EXPECT_EQ(cell.expires, kUntil);
      EXPECT_EQ(cell.kind, VersionKind::deletion);
      for (const RowRange& row_range : judged.deleted_ranges)
        EXPECT_FALSE(row_range.contains(cell.row)) << seed;
    }
  }
}

// A mutation has no place for so many pieces.
TEST(ExplicitRangeDeleteFilter, DeletesCellByCellWhereTheRangeWouldFallToPieces) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const Case test(seed);
    const FilteredRangeDelete judged =
        judge(test.replica.stored(), test.range, test.deletion, test.before, 0);
    EXPECT_TRUE(judged.deleted_ranges.empty());
    for (int number = 0; number < kRows; ++number) {
      const RowKey row = key(number);
      for (std::uint32_t column = 0; column < kColumns; ++column) {
        const bool named = names(judged, row, ColumnId{column});
        const bool may = test.range.contains(row) && test.wins_at(row, column);
        if (!may) EXPECT_FALSE(named) << seed;
        const auto there = test.replica.stored().rows().find(row);
        const bool is_there =
            there != test.replica.stored().rows().end() &&
            !test.replica.stored().cell(row, ColumnId{column}).versions().empty() &&
            !there->second.cell(ColumnId{column}).empty();
        if (may && is_there) EXPECT_TRUE(named) << seed;
      }
    }
  }
}

// Nor for a cell of each of many rows that are not there.
TEST(ExplicitRangeDeleteFilter, LeavesColumnsOutThatAreNotThereWhereThereWouldBeTooMany) {
  constexpr std::size_t kMany = ExplicitRangeDeleteFilter::kAbsentMax / 2 + 1024;
  Replica replica;
  for (std::size_t i = 0; i < kMany; i += 1024) {
    Mutation mutation;
    mutation.timestamp = Timestamp{30};
    for (std::size_t j = i; j < i + 1024; ++j) {
      CellChange cell;
      cell.row = Bytes::copy_of(fmt::format("{:06}", j));
      mutation.cells.push_back(std::move(cell));
    }
    replica.apply(replica.write(std::move(mutation)));
  }
  const Version deletion = deletion_at(20);
  const auto few =
      judge(replica.stored(), {.from = {}, .to = Bytes::copy_of("000100")}, deletion, {});
  EXPECT_EQ(few.cells.size(), 200U);
  const auto judged = judge(replica.stored(), {}, deletion, {});
  EXPECT_TRUE(judged.cells.empty());
  EXPECT_TRUE(judged.deleted_ranges.empty());
}

// The older of two deletes of one place leaves the newer one as it is, through merges too, in
// whatever order they come and however large the ranges are; and a part that the newer one no
// longer holds for is the older one's.
TEST(ExplicitRangeDeleteFilter, TheNewestRememberedDeleteOfAPlaceStays) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    base::Prng prng(seed);
    Replica replica;
    // By rows: the newest timestamp that any delete of it had.
    std::vector<std::int64_t> newest(kRows, 0);
    for (std::uint64_t i = prng.between(1, 8); i > 0; --i) {
      const RowRange row_range = random_range(prng);
      const Version deletion = deletion_at(static_cast<std::int64_t>(prng.between(10, 40)));
      FilteredRangeDelete judged = judge(replica.stored(), row_range, deletion, {});
      for (int number = 0; number < kRows; ++number) {
        auto& last = newest[static_cast<std::size_t>(number)];
        if (row_range.contains(key(number))) last = std::max(last, deletion.timestamp.value());
      }
      if (judged.deleted_ranges.empty() && judged.cells.empty()) continue;
      Mutation mutation;
      mutation.timestamp = deletion.timestamp;
      mutation.timestamp_is_explicit = true;
      mutation.deleted_ranges = std::move(judged.deleted_ranges);
      mutation.cells = std::move(judged.cells);
      mutation.remembered_until = kUntil;
      replica.apply(replica.write(std::move(mutation)));
      if (prng.chance(0.5)) replica.merge();
    }
    for (int number = 0; number < kRows; ++number) {
      Version late;
      for (std::int64_t at = 5; at <= 45; ++at) {
        late.timestamp = Timestamp{at};
        ASSERT_EQ(wins(late, replica.stored().cell(key(number), ColumnId{0})),
                  at > newest[static_cast<std::size_t>(number)])
            << seed << ": row " << number << " at " << at;
      }
    }
  }
}

// Beyond the limit ranges are spared that need not be: never the other way round.
TEST(ExplicitRangeDeleteFilter, SparesMoreThanItMustWhereTooManyRangesOverlap) {
  constexpr int kRanges = 600;
  const auto bound = [](int number) { return Bytes::copy_of(fmt::format("r{:05}", number)); };
  Replica replica;
  // All around others that are inside them, the last ones older than the delete.
  for (int i = 0; i < kRanges; ++i) {
    Mutation mutation;
    mutation.timestamp = Timestamp{i + 1 < kRanges ? 30 : 10};
    mutation.deleted_ranges.push_back({.from = bound(i), .to = bound(10'000 - i)});
    mutation.remembered_until = kUntil;
    replica.apply(replica.write(std::move(mutation)));
  }
  const Version deletion = deletion_at(20);
  const FilteredRangeDelete judged = judge(replica.stored(), {}, deletion, {});
  for (const int number : {0, 1, 100, 599, 600, 5000, 9401, 9402, 9999, 10'000}) {
    const RowKey row = bound(number);
    if (!wins(deletion, replica.stored().cell(row, ColumnId{0}))) {
      EXPECT_FALSE(names(judged, row, ColumnId{0})) << number;
    }
  }
  EXPECT_TRUE(names(judged, bound(10'000), ColumnId{0}));
}

}  // namespace
}  // namespace helenus::replication
