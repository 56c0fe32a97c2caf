// Rows as callers read them: by name and index, as numbers and texts, and what is no value.
#include "client/result_set.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/codec.h"
#include "cql/protocol/primitives.h"
#include "model/value.h"

namespace helenus::client {
namespace {

using base::Bytes;
using base::Errc;
using model::DataType;
using model::TypeKind;

struct Column {
  std::string name;
  DataType type;
  model::OptionalBytes value;
};

cql::protocol::RowsResult rows_of(const std::vector<Column>& columns, std::uint32_t row_count = 1) {
  cql::protocol::RowsResult rows;
  rows.column_count = static_cast<std::uint32_t>(columns.size());
  rows.row_count = row_count;
  base::Buffer cells;
  base::Encoder out(cells);
  for (const Column& column : columns) {
    rows.columns.push_back(
        {.keyspace = "k", .table = "t", .name = column.name, .type = column.type});
  }
  for (std::uint32_t row = 0; row < row_count; ++row) {
    for (const Column& column : columns) {
      std::optional<base::ByteView> value;
      if (column.value) value = column.value->view();
      cql::protocol::put_bytes(out, value);
    }
  }
  rows.rows = std::move(cells).freeze();
  return rows;
}

base::Result<ResultSet> result_of(cql::protocol::RowsResult rows) {
  return ResultSet::of({.stream = 0, .prefix = {}, .message = std::move(rows)});
}

// The result of one row; it is kept, since rows borrow.
ResultSet one_row(const std::vector<Column>& columns) {
  auto result = result_of(rows_of(columns));
  EXPECT_TRUE(result.has_value());
  return *std::move(result);
}

TEST(ResultSet, NumbersOfEverySizeAreIntegers) {
  const ResultSet result = one_row({
      {"tinyint", DataType(TypeKind::tinyint), model::tinyint_value(-1)},
      {"smallint", DataType(TypeKind::smallint), model::smallint_value(-300)},
      {"int", DataType(TypeKind::int_), model::int_value(1 << 30)},
      {"bigint", DataType(TypeKind::bigint), model::bigint_value(std::int64_t{1} << 40)},
      {"counter", DataType(TypeKind::counter), model::bigint_value(5)},
      {"varint", DataType(TypeKind::varint), model::varint_value(-129)},
      {"timestamp", DataType(TypeKind::timestamp), model::bigint_value(1000)},
      {"date", DataType(TypeKind::date), model::date_value(-3)},
  });
  const Row row = result.row(0);
  const std::vector<std::int64_t> wanted = {-1, -300, 1 << 30, std::int64_t{1} << 40,
                                            5,  -129, 1000,    -3};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(row.get<std::int64_t>(i), wanted[i]) << result.columns()[i].name;
  }
  EXPECT_EQ(row.get<std::int8_t>("tinyint"), std::int8_t{-1});
  EXPECT_TRUE(row.get<std::int8_t>("smallint").failed_with(Errc::invalid_argument));
  EXPECT_TRUE(row.get<std::uint64_t>("tinyint").failed_with(Errc::invalid_argument));
}

TEST(ResultSet, TextsAndOthersAreReadAsWhatTheyAre) {
  const base::Uuid uuid = base::Uuid::from_random(1, 2);
  const ResultSet result = one_row({
      {"text", DataType::text(), model::text_value("it's")},
      {"blob", DataType(TypeKind::blob), Bytes::copy_of("\x01")},
      {"uuid", DataType(TypeKind::uuid), model::uuid_value(uuid)},
      {"boolean", DataType(TypeKind::boolean), model::boolean_value(true)},
      {"float", DataType(TypeKind::float_), model::float_value(0.5F)},
      {"double", DataType(TypeKind::double_), model::double_value(0.25)},
  });
  const Row row = result.row(0);
  EXPECT_EQ(row.get<std::string>("text"), "it's");
  EXPECT_EQ(row.cell("text")->to_text(), "'it''s'");
  EXPECT_EQ(row.get<Bytes>("blob"), Bytes::copy_of("\x01"));
  EXPECT_EQ(row.get<Bytes>("text"), Bytes::copy_of("it's")) << "any type has bytes";
  EXPECT_EQ(row.get<base::Uuid>("uuid"), uuid);
  EXPECT_EQ(row.get<bool>("boolean"), true);
  EXPECT_EQ(row.get<float>("float"), 0.5F);
  EXPECT_EQ(row.get<double>("float"), 0.5);
  EXPECT_EQ(row.get<double>("double"), 0.25);
  EXPECT_TRUE(row.get<std::string>("blob").failed_with(Errc::invalid_argument));
  EXPECT_TRUE(row.get<std::int64_t>("text").failed_with(Errc::invalid_argument));
  EXPECT_TRUE(row.get<bool>("nothing").failed_with(Errc::not_found));
  EXPECT_EQ(result.column_index("uuid"), 2U);
  EXPECT_EQ(result.column_index("nothing"), std::nullopt);
}

TEST(ResultSet, NullIsNoValueUnlessOneAsksForAnOptional) {
  const ResultSet result = one_row({{"null", DataType(TypeKind::int_), std::nullopt},
                                    {"seven", DataType(TypeKind::int_), model::int_value(7)}});
  const Row row = result.row(0);
  EXPECT_TRUE(row.cell(0).is_null());
  EXPECT_EQ(row.cell(0).to_text(), "null");
  EXPECT_TRUE(row.get<int>("null").failed_with(Errc::not_found));
  EXPECT_TRUE(row.get<Bytes>("null").failed_with(Errc::not_found));
  EXPECT_EQ(row.get<std::optional<int>>("null").value(), std::nullopt);
  EXPECT_EQ(row.get<std::optional<int>>("seven").value(), std::optional(7));
}

TEST(ResultSet, BytesThatAreNoValueAreAnError) {
  const Bytes odd = Bytes::copy_of("\xff\xff\xff");
  const Bytes none;
  const ResultSet result = one_row({
      {"int", DataType(TypeKind::int_), odd},
      {"text", DataType::text(), odd},
      {"uuid", DataType(TypeKind::uuid), odd},
      {"double", DataType(TypeKind::double_), odd},
      {"empty", DataType(TypeKind::varint), none},
      {"long", DataType(TypeKind::varint), Bytes::copy_of("123456789")},
  });
  const Row row = result.row(0);
  EXPECT_TRUE(row.get<int>("int").failed_with(Errc::invalid_argument));
  EXPECT_TRUE(row.get<std::string>("text").failed_with(Errc::invalid_argument));
  EXPECT_TRUE(row.get<base::Uuid>("uuid").failed_with(Errc::invalid_argument));
  EXPECT_TRUE(row.get<double>("double").failed_with(Errc::invalid_argument));
  EXPECT_TRUE(row.get<int>("empty").failed_with(Errc::invalid_argument));
  EXPECT_TRUE(row.get<int>("long").failed_with(Errc::invalid_argument));
}

TEST(ResultSet, GivesEveryRowInItsOrder) {
  auto rows = rows_of(
      {{"a", DataType(TypeKind::int_), model::int_value(1)}, {"b", DataType::text(), std::nullopt}},
      3);
  rows.paging_state = Bytes::copy_of("next");
  const auto result = result_of(std::move(rows));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->size(), 3U);
  std::size_t count = 0;
  for (const Row row : result->rows()) {
    EXPECT_EQ(row.get<int>("a"), 1);
    EXPECT_TRUE(row.cell(1).is_null());
    ++count;
  }
  EXPECT_EQ(count, 3U);
  EXPECT_EQ(result->paging_state(), Bytes::copy_of("next"));
}

TEST(ResultSet, RowsThatCannotBeReadAreRefused) {
  auto empty = rows_of({}, 0);
  EXPECT_EQ(result_of(empty)->size(), 0U);
  empty.row_count = 1'000'000'000;
  EXPECT_TRUE(result_of(std::move(empty)).failed_with(Errc::corrupt)) << "no columns";
  auto unnamed = rows_of({{"a", DataType(TypeKind::int_), std::nullopt}});
  unnamed.columns.clear();
  EXPECT_TRUE(result_of(std::move(unnamed)).failed_with(Errc::corrupt)) << "no types";
}

TEST(ResultSet, TellsWhatStandsBesideTheRows) {
  cql::protocol::DecodedResponse response;
  response.prefix = {.tracing = base::Uuid::from_random(3, 4),
                     .warnings = {"slow"},
                     .payload = {{.key = "helenus-context", .value = Bytes::copy_of("seen")},
                                 {.key = "nothing", .value = std::nullopt}}};
  response.message = cql::protocol::SetKeyspaceResult{.keyspace = "ks"};
  const auto used = ResultSet::of(response);
  ASSERT_TRUE(used.has_value());
  EXPECT_EQ(used->keyspace(), "ks");
  EXPECT_EQ(used->warnings(), std::vector<std::string>{"slow"});
  EXPECT_EQ(used->payload("helenus-context"), Bytes::copy_of("seen"));
  EXPECT_EQ(used->payload("nothing"), std::nullopt);
  EXPECT_EQ(used->payload("absent"), std::nullopt);
  EXPECT_EQ(used->tracing(), base::Uuid::from_random(3, 4));
  response.message =
      cql::protocol::SchemaChangeResult{.change = {.kind = cql::protocol::SchemaChangeKind::created,
                                                   .target = cql::protocol::SchemaTarget::keyspace,
                                                   .keyspace = "ks",
                                                   .name = "",
                                                   .argument_types = {}}};
  EXPECT_EQ(ResultSet::of(response)->schema_change()->keyspace, "ks");
}

}  // namespace
}  // namespace helenus::client
