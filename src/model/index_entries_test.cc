// Entries of indexes: where values lie, what an entry points at, and what definitions are refused.
#include "model/index_entries.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/element_key.h"
#include "model/partition_key.h"
#include "model/schema_codec.h"
#include "model/value.h"

namespace helenus::model {
namespace {

using base::Bytes;
using base::ByteView;
using causality::CellChange;
using causality::ColumnId;

// k, c, v int, m map<int, text>; v has id 3, m has id 4.
Table table_with(ColumnId column, IndexTarget target) {
  Table table;
  table.keyspace = "ks";
  table.name = "t";
  table.next_column_id = 5;
  const DataType number(TypeKind::int_);
  table.columns = {
      {.name = "k", .kind = ColumnKind::partition_key, .type = number, .id = ColumnId(1)},
      {.name = "c", .kind = ColumnKind::clustering, .type = number, .id = ColumnId(2)},
      {.name = "m", .type = *DataType::map_of(number, DataType::text()), .id = ColumnId(4)},
      {.name = "v", .type = number, .id = ColumnId(3)}};
  table.indexes = {{.name = "i", .id = {}, .column = column, .target = target, .options = {}}};
  EXPECT_TRUE(validate(table).has_value());
  return table;
}

IndexEntries entries_of(ColumnId column, IndexTarget target = IndexTarget::column) {
  const Table table = table_with(column, target);
  const Keyspace keyspace{.name = "ks", .replication = {}, .tables = {}, .types = {}};
  auto read = IndexEntries::read(IndexEntries::define(keyspace, table, table.indexes.front()));
  EXPECT_TRUE(read.has_value()) << read.error().to_string();
  return *std::move(read);
}

Bytes row_of(std::int32_t number) {
  const ClusteringColumn column{.type = DataType(TypeKind::int_)};
  const Bytes value = int_value(number);
  const ByteView view = value;
  return encode_clustering({&column, 1}, {&view, 1}).value();
}

Bytes partition_of_text(const std::string& key) {
  return make_partition(KeyspaceNumber(1), Token{5}, base::as_bytes(key));
}

CellChange cell_of(Bytes row, std::uint32_t column, Bytes value) {
  CellChange cell;
  cell.row = std::move(row);
  cell.column = ColumnId(column);
  cell.value = std::move(value);
  return cell;
}

const Bytes kFrom = first_key_of(KeyspaceNumber(1));

std::vector<IndexedCell> derived(const IndexEntries& entries, const Bytes& partition,
                                 const CellChange& cell) {
  std::vector<IndexedCell> into;
  entries.derive(kFrom, partition, {&cell, 1}, into);
  return into;
}

TEST(IndexEntries, ACellOfTheColumnPointsAtItsRow) {
  const IndexEntries entries = entries_of(ColumnId(3));
  const Bytes partition = partition_of_text("p");
  const auto made = derived(entries, partition, cell_of(row_of(7), 3, int_value(42)));
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made.front().partition,
            IndexEntries::partition_of(kFrom, entries.encode(int_value(42)).value()));
  const auto there = IndexEntries::candidate_of(made.front().cell.row, made.front().cell.column);
  ASSERT_TRUE(there.has_value());
  EXPECT_EQ(*there, (IndexCandidate{.what = IndexCandidate::What::row,
                                    .partition = partition,
                                    .clustering = row_of(7)}));
}

TEST(IndexEntries, OtherCellsAndDeletesHaveNone) {
  const IndexEntries entries = entries_of(ColumnId(3));
  const Bytes partition = partition_of_text("p");
  EXPECT_TRUE(derived(entries, partition, cell_of(row_of(7), 9, int_value(42))).empty());
  CellChange deletion = cell_of(row_of(7), 3, {});
  deletion.kind = causality::VersionKind::deletion;
  EXPECT_TRUE(derived(entries, partition, deletion).empty());
  EXPECT_TRUE(derived(entries, partition, cell_of(row_of(7), 3, Bytes::copy_of("no int"))).empty());
}

TEST(IndexEntries, AnyCellOfARowTellsItsClusteringKey) {
  const IndexEntries entries = entries_of(ColumnId(2));
  const Bytes partition = partition_of_text("p");
  const std::vector<CellChange> cells = {
      cell_of(row_of(7), 0, {}), cell_of(row_of(7), 3, int_value(1)), cell_of({}, 3, int_value(1))};
  std::vector<IndexedCell> into;
  entries.derive(kFrom, partition, cells, into);
  ASSERT_EQ(into.size(), 1U) << "a row has one, a static row none";
  EXPECT_EQ(into.front().partition,
            IndexEntries::partition_of(kFrom, entries.encode(int_value(7)).value()));
}

TEST(IndexEntries, ElementsAreFoundByKeyByValueAndByBoth) {
  const Bytes partition = partition_of_text("p");
  const DataType number(TypeKind::int_);
  const Bytes name = element_name(number, int_value(5)).value();
  const Bytes key = joined_key(row_of(7), element_suffix(ColumnId(4), name));
  const CellChange cell = cell_of(key, 4, Bytes::copy_of("five"));
  const auto expect_at = [&](IndexTarget target, const Bytes& encoded) {
    const auto made = derived(entries_of(ColumnId(4), target), partition, cell);
    ASSERT_EQ(made.size(), 1U);
    EXPECT_EQ(made.front().partition, IndexEntries::partition_of(kFrom, encoded));
    const auto there = IndexEntries::candidate_of(made.front().cell.row, made.front().cell.column);
    EXPECT_EQ(there->clustering, row_of(7));
  };
  const IndexEntries by_key = entries_of(ColumnId(4), IndexTarget::keys);
  expect_at(IndexTarget::keys, by_key.encode(int_value(5)).value());
  const IndexEntries by_value = entries_of(ColumnId(4), IndexTarget::values);
  expect_at(IndexTarget::values, by_value.encode(base::as_bytes("five")).value());
  const IndexEntries by_both = entries_of(ColumnId(4), IndexTarget::entries);
  expect_at(IndexTarget::entries, by_both.encode(int_value(5), base::as_bytes("five")).value());
}

TEST(IndexEntries, WhatIsTooLongIsCutAndStillPointsThere) {
  const Bytes partition = partition_of_text(std::string(kRoutingKeySizeMax, 'x'));
  const auto made =
      derived(entries_of(ColumnId(3)), partition, cell_of(row_of(7), 3, int_value(42)));
  ASSERT_EQ(made.size(), 1U);
  const auto there = IndexEntries::candidate_of(made.front().cell.row, made.front().cell.column);
  ASSERT_TRUE(there.has_value());
  EXPECT_EQ(there->what, IndexCandidate::What::prefix);
  EXPECT_EQ(there->partition.size(), IndexEntries::kCandidateSizeMax);
  EXPECT_TRUE(base::as_text(partition).starts_with(base::as_text(there->partition)));
}

RC_GTEST_PROP(IndexEntriesLaws, EntriesLieInTheOrderOfTheirValues,
              (std::int32_t a, std::int32_t b)) {
  const IndexEntries entries = entries_of(ColumnId(3));
  const Bytes first = IndexEntries::partition_of(kFrom, entries.encode(int_value(a)).value());
  const Bytes second = IndexEntries::partition_of(kFrom, entries.encode(int_value(b)).value());
  RC_ASSERT((first < second) == (a < b));
  RC_ASSERT((first == second) == (a == b));
}

RC_GTEST_PROP(IndexEntriesLaws, NoBytesBreakIt, (std::vector<std::uint8_t> bytes)) {
  const ByteView view(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  RC_ASSERT(bytes.size() > 40 || !IndexEntries::read(view).has_value());
  std::ignore = IndexEntries::candidate_of(view, ColumnId(7));
  std::vector<IndexedCell> into;
  const CellChange cell = cell_of(Bytes::copy_of(view), 4, Bytes::copy_of(view));
  for (const IndexTarget target : {IndexTarget::keys, IndexTarget::values, IndexTarget::entries}) {
    entries_of(ColumnId(4), target).derive(view, view, {&cell, 1}, into);
  }
  entries_of(ColumnId(2)).derive(view, view, {&cell, 1}, into);
}

TEST(IndexEntries, ASchemaWithIndexesIsReadAsItWasWritten) {
  Keyspace keyspace{.name = "ks", .replication = {{"class", "x"}}, .tables = {}, .types = {}};
  Table table = table_with(ColumnId(3), IndexTarget::column);
  table.indexes.front().is_custom = true;
  table.indexes.front().options = {{"class_name", "sai"}};
  keyspace.tables.emplace("t", std::make_shared<const Table>(table));
  const Schema schema = Schema().with(keyspace);
  const Bytes bytes = encode(schema);
  const auto read = decode_schema(bytes);
  ASSERT_TRUE(read.has_value()) << read.error().to_string();
  EXPECT_EQ(*read, schema);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto part = decode_schema(bytes.view().first(size));
    EXPECT_TRUE(!part.has_value() || *part != schema) << size;
  }
}

}  // namespace
}  // namespace helenus::model
