#include "storage/memtable/memtable.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "causality/codec.h"
#include "causality/generators.h"
#include "storage/ids/row_key.h"

namespace helenus::storage {
namespace {

using causality::Delta;
using causality::PartitionStore;
using causality::Policy;

base::Bytes text(std::string_view letters) {
  return base::Bytes::copy_of(letters);
}

causality::CellChange put_of(std::string_view row, std::string_view value) {
  causality::CellChange change;
  change.row = text(row);
  change.value = text(value);
  return change;
}

std::string row_key(std::string_view partition, const base::Bytes& row) {
  return encode_key({base::as_bytes(partition), EntryKind::row, row});
}
std::string ranges_key(std::string_view partition) {
  return encode_key({base::as_bytes(partition), EntryKind::deleted_ranges, {}});
}

void apply(Memtable& memtable, std::string_view partition, const Delta& delta) {
  memtable.apply(base::as_bytes(partition), delta, causality::encoded(delta), 1);
}

// What the memtable knows of one cell: its row, and the ranges that the row lies in.
causality::CellStore cell_of(const Memtable& memtable, std::string_view partition,
                             const base::Bytes& row, causality::ColumnId column) {
  const Entry entry = memtable.find(base::as_bytes(row_key(partition, row)));
  causality::CellStore cell = entry.row().cell(column);
  cell.absorb(entry.row_deletes());
  const auto absorb_ranges = [&](std::string_view path) {
    const EntryKey key{base::as_bytes(partition), EntryKind::deleted_ranges, base::as_bytes(path)};
    const Entry deleted_ranges = memtable.find(base::as_bytes(encode_key(key)));
    for (const causality::RangeDelete& range_delete : deleted_ranges.deleted_ranges()) {
      if (range_delete.range.contains(row)) cell.absorb(range_delete.store);
    }
    return std::vector(deleted_ranges.depths().begin(), deleted_ranges.depths().end());
  };
  for (const RangeDepth depth : absorb_ranges("")) {
    if (has_digits(row, depth)) absorb_ranges(range_path(row, depth));
  }
  return cell;
}

RC_GTEST_PROP(Memtable, AnyOrderOfDeltasReadsAsTheDotStoreTheyMake, ()) {
  const Policy policy = *rc::gen::element(Policy::lww, Policy::siblings);
  const auto dots = *rc::gen::container<std::vector<causality::Dot>>(
      *rc::gen::inRange<std::size_t>(0, 60), causality::testing::any_dot());
  Memtable memtable(policy);
  std::map<std::string, PartitionStore> model;
  for (const causality::Dot& dot : dots) {
    const Delta delta = causality::testing::delta_of(dot);
    const std::string partition = dot.counter % 2 == 0 ? "p" : "q";
    apply(memtable, partition, delta);
    model[partition].absorb(causality::fragment_of(delta, policy));
  }
  for (const auto& [partition, store] : model) {
    for (const char* row : {"a", "b", "c", "d"}) {
      for (const std::uint32_t column : {0U, 1U}) {
        RC_ASSERT(cell_of(memtable, partition, text(row), causality::ColumnId{column}) ==
                  store.cell(text(row), causality::ColumnId{column}));
      }
    }
  }
}

RC_GTEST_PROP(Memtable, CursorWalksTheKeysInOrderBothWays, ()) {
  Memtable memtable(Policy::lww);
  std::set<std::string> keys;
  const auto rows = *rc::gen::container<std::vector<std::string>>(
      rc::gen::container<std::string>(rc::gen::element('a', 'b', '\0', '\xff')));
  Delta delta = causality::testing::delta_of({causality::actor_of(1, 1), 1});
  delta.deleted_ranges.clear();
  for (const std::string& row : rows) {
    delta.cells.assign(1, put_of(row, "v"));
    apply(memtable, "p", delta);
    keys.insert(row_key("p", text(row)));
  }
  RC_ASSERT(memtable.key_count() == keys.size());
  Memtable::Cursor cursor(memtable);
  cursor.seek_first();
  for (const std::string& key : keys) {
    RC_ASSERT(cursor.valid());
    RC_ASSERT(base::as_text(cursor.key()) == key);
    RC_ASSERT(cursor.partition_size() == 1U);
    cursor.next();
  }
  RC_ASSERT(!cursor.valid());
  cursor.seek_last();
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    RC_ASSERT(cursor.valid() && base::as_text(cursor.key()) == *key);
    cursor.previous();
  }
  RC_ASSERT(!cursor.valid());
  const std::string probe = row_key("p", text(*rc::gen::element<std::string>("", "a", "b", "bb")));
  cursor.seek(base::as_bytes(probe));
  const auto at_or_after = keys.lower_bound(probe);
  RC_ASSERT(cursor.valid() == (at_or_after != keys.end()));
  if (cursor.valid()) RC_ASSERT(base::as_text(cursor.key()) == *at_or_after);
}

TEST(Memtable, AHotRowIsMergedInPlaceAndReadsTheSame) {
  Memtable memtable(Policy::lww);
  PartitionStore model;
  causality::Clock clock;
  for (int write = 0; write < 1000; ++write) {
    causality::Mutation mutation;
    mutation.timestamp = causality::Timestamp{write};
    mutation.cells.push_back(put_of("hot", std::to_string(write)));
    const auto delta = causality::mint(clock, causality::actor_of(1, 1), causality::Epoch{1},
                                       Policy::lww, mutation, causality::kTimestampMin);
    ASSERT_TRUE(delta.has_value());
    apply(memtable, "p", *delta);
    model.absorb(causality::fragment_of(*delta, Policy::lww));
  }
  const auto cell = cell_of(memtable, "p", text("hot"), causality::ColumnId{0});
  EXPECT_EQ(cell, model.cell(text("hot"), causality::ColumnId{0}));
  ASSERT_EQ(cell.versions().size(), 1U);
  EXPECT_EQ(cell.versions().front().value.text(), "999");
  EXPECT_EQ(memtable.key_count(), 1U);
}

Delta put_minted(causality::Clock& clock, std::string_view row, std::string value) {
  causality::Mutation mutation;
  mutation.timestamp = causality::Timestamp{1};
  mutation.cells.push_back(put_of(row, value));
  auto delta = causality::mint(clock, causality::actor_of(1, 1), causality::Epoch{1}, Policy::lww,
                               mutation, causality::kTimestampMin);
  ASSERT(delta.has_value());
  return *std::move(delta);
}

TEST(Memtable, ARowThatIsReadIsMergedSooner) {
  Memtable memtable(Policy::lww);
  causality::Clock clock;
  const std::string key = row_key("p", text("hot"));
  for (std::size_t write = 1; write <= Memtable::kFragmentsPerKeyMax; ++write) {
    apply(memtable, "p", put_minted(clock, "hot", "unread"));
    EXPECT_EQ(memtable.fragment_count(base::as_bytes(key)), write);
  }
  for (int write = 0; write < 100; ++write) {
    EXPECT_FALSE(memtable.find(base::as_bytes(key)).empty());
    apply(memtable, "p", put_minted(clock, "hot", "read"));
    EXPECT_LE(memtable.fragment_count(base::as_bytes(key)), Memtable::kFragmentsPerReadKeyMax);
  }
}

TEST(Memtable, ARowThatIsMostlyReadHasOneFragment) {
  Memtable memtable(Policy::lww);
  causality::Clock clock;
  const std::string key = row_key("p", text("hot"));
  for (int write = 0; write < 100; ++write) {
    apply(memtable, "p", put_minted(clock, "hot", std::to_string(write)));
    EXPECT_EQ(memtable.fragment_count(base::as_bytes(key)), 1U);
    for (int read = 0; read < Memtable::kReadsOfReadMostly; ++read) {
      EXPECT_FALSE(memtable.find(base::as_bytes(key)).empty());
    }
  }
  const auto cell = cell_of(memtable, "p", text("hot"), causality::ColumnId{0});
  ASSERT_EQ(cell.versions().size(), 1U);
  EXPECT_EQ(cell.versions().front().value.text(), "99");
}

TEST(Memtable, ALargeRowThatIsReadIsNotCopiedForEverySmallWrite) {
  Memtable memtable(Policy::lww);
  causality::Clock clock;
  constexpr std::size_t kLarge = 64 << 10;
  constexpr std::size_t kWrites = 200;
  const std::string key = row_key("p", text("large"));
  for (std::size_t write = 0; write < kWrites; ++write) {
    Delta delta = put_minted(clock, "large", std::string(write == 0 ? kLarge : 10, 'v'));
    delta.cells.front().column = causality::ColumnId(write == 0 ? 1 : 2);
    apply(memtable, "p", delta);
    EXPECT_FALSE(memtable.find(base::as_bytes(key)).empty());
  }
  EXPECT_LE(memtable.memory_bytes(), 2 * kLarge * (2 + kWrites / Memtable::kFragmentsPerKeyMax));
}

// Deletes of a window that moves on: none lies inside another, so that all of them stay.
TEST(Memtable, VeryManyRangesThatOverlapAreNotCopiedForEveryFew) {
  Memtable memtable(Policy::lww);
  constexpr std::uint64_t kRanges = 5000;
  std::size_t written = 0;
  for (std::uint64_t i = 1; i <= kRanges; ++i) {
    Delta delta;
    delta.dot = {causality::actor_of(1, 1), i};
    delta.deleted_ranges = {{text(fmt::format("1{:06}", i)), text(fmt::format("2{:06}", i))}};
    const auto bytes = causality::encoded(delta);
    written += bytes.size();
    memtable.apply(base::as_bytes("p"), delta, bytes, i);
  }
  EXPECT_LE(memtable.memory_bytes(), 20 * written);
}

// Whoever knows how keys are hashed in files can find as many as he likes that have one hash.
TEST(Memtable, KeysThatWereChosenToCollideHangInDifferentPlaces) {
  constexpr std::uint64_t kPlaces = 1024;
  std::vector<std::string> rows;
  for (std::uint64_t number = 0; rows.size() < 150; ++number) {
    std::string row = std::to_string(number);
    const std::string key = row_key("p", text(row));
    if (key_hash(base::as_bytes(key)) % kPlaces == 0) rows.push_back(std::move(row));
  }
  Memtable memtable(Policy::lww, 0x5eed);
  causality::Clock clock;
  for (const std::string& row : rows) apply(memtable, "p", put_minted(clock, row, "v"));
  for (const std::string& row : rows) {
    const std::string key = row_key("p", text(row));
    EXPECT_LE(memtable.places_searched(base::as_bytes(key)), 60U);
    EXPECT_TRUE(memtable.contains(base::as_bytes(key)));
  }
}

TEST(Memtable, TheFirstKeyTakesWhatIsReservedForMore) {
  Memtable memtable(Policy::lww);
  EXPECT_EQ(memtable.memory_bytes(), 0U);
  causality::Clock clock;
  apply(memtable, "p", put_minted(clock, "r", "v"));
  EXPECT_GE(memtable.memory_bytes(), Arena::kChunkMin + 256 * 2 * sizeof(void*));
}

// Keys are compared by their first bytes as a number: short ones, zeros and equal beginnings are
// where that could go wrong.
RC_GTEST_PROP(Memtable, KeysAscendAsBytesDo, ()) {
  const auto partitions = *rc::gen::container<std::set<std::string>>(rc::gen::withSize([](int) {
    return rc::gen::container<std::string>(
        rc::gen::element('\0', '\1', 'a', '\x7f', '\x80', '\xff'));
  }));
  Memtable memtable(Policy::lww);
  std::set<std::string> want;
  std::uint64_t counter = 0;
  for (const std::string& partition : partitions) {
    Delta delta;
    delta.dot = {causality::actor_of(1, 1), ++counter};
    delta.cells = {put_of("r", "v")};
    apply(memtable, partition, delta);
    want.insert(row_key(partition, text("r")));
  }
  Memtable::Cursor cursor(memtable);
  cursor.seek_first();
  for (const std::string& key : want) {
    RC_ASSERT(cursor.valid());
    RC_ASSERT(base::as_text(cursor.key()) == key);
    RC_ASSERT(!memtable.find(base::as_bytes(key)).empty());
    cursor.next();
  }
  RC_ASSERT(!cursor.valid());
}

TEST(Memtable, ACursorStandsThroughWrites) {
  Memtable memtable(Policy::lww);
  Delta delta = causality::testing::delta_of({causality::actor_of(1, 1), 1});
  delta.deleted_ranges.clear();
  const auto put = [&](std::string_view row) {
    delta.cells.assign(1, put_of(row, "v"));
    apply(memtable, "p", delta);
  };
  put("m");
  Memtable::Cursor cursor(memtable);
  cursor.seek_first();
  for (int number = 0; number < 500; ++number) put(std::to_string(number));
  put("z");
  EXPECT_EQ(base::as_text(cursor.key()), row_key("p", text("m")));
  cursor.next();
  ASSERT_TRUE(cursor.valid());
  EXPECT_EQ(base::as_text(cursor.key()), row_key("p", text("z")));
}

TEST(Memtable, ADeleteOfARowLiesWithTheRowAndOneOfARangeWithThePartition) {
  Memtable memtable(Policy::lww);
  Delta delta;
  delta.dot = {causality::actor_of(1, 1), 1};
  delta.deleted_ranges = {causality::range_of_row(text("a")), {text("b"), text("c")}};
  apply(memtable, "p", delta);
  EXPECT_TRUE(memtable.has_ranges());
  EXPECT_EQ(memtable.find(base::as_bytes(ranges_key("p"))).deleted_ranges().size(), 1U);
  const Entry row = memtable.find(base::as_bytes(row_key("p", text("a"))));
  EXPECT_EQ(row.row_deletes().versions().size(), 1U);
  EXPECT_TRUE(row.row().empty());
  EXPECT_EQ(memtable.key_count(), 2U);
  // A row whose key leaves no room for the partition's has no entry, and never had.
  delta.dot.counter = 2;
  delta.deleted_ranges = {causality::range_of_row(text(std::string(kRowKeySizeMax - 1, 'x')))};
  apply(memtable, "p", delta);
  EXPECT_EQ(memtable.find(base::as_bytes(ranges_key("p"))).deleted_ranges().size(), 2U);
}

TEST(Memtable, DeletesOfManyRowsAreSoManyAppends) {
  Memtable memtable(Policy::lww);
  Delta delta;
  for (std::uint64_t index = 1; index <= 20'000; ++index) {
    delta.dot = {causality::actor_of(1, 1), index};
    delta.deleted_ranges = {causality::range_of_row(text(fmt::format("{:06}", index)))};
    apply(memtable, "p", delta);
  }
  EXPECT_FALSE(memtable.has_ranges()) << "a read of a row looks for nothing else";
  EXPECT_EQ(memtable.key_count(), 20'000U);
  const Entry row = memtable.find(base::as_bytes(row_key("p", text("000007"))));
  EXPECT_EQ(row.row_deletes().versions().size(), 1U);
}

TEST(Memtable, ManyRangesOfAPartitionLieApartAndARowFindsItsOwn) {
  Memtable memtable(Policy::lww);
  constexpr std::uint32_t kRanges = 5000;
  for (std::uint32_t index = 0; index < kRanges; ++index) {
    Delta delta;
    delta.dot = {causality::actor_of(1, 1), index + 1};
    delta.deleted_ranges = {
        {text(fmt::format("{:06}", index)), text(fmt::format("{:06}", index + 1))}};
    apply(memtable, "p", delta);
  }
  const Entry first = memtable.find(base::as_bytes(ranges_key("p")));
  EXPECT_LT(first.deleted_ranges().size(), 40U);
  EXPECT_LT(first.depths().size(), 14U);
  for (std::uint32_t index = 0; index < kRanges; index += 7) {
    const base::Bytes row = text(fmt::format("{:06}x", index));
    const auto cell = cell_of(memtable, "p", row, causality::ColumnId{0});
    ASSERT_EQ(cell.versions().size(), 1U) << index;
    EXPECT_EQ(cell.versions().front().dot.counter, index + 1);
  }
}

}  // namespace
}  // namespace helenus::storage
