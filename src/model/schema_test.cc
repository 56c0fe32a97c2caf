// Schemas: their invariants, their bytes and their CREATE statements.
#include "model/schema.h"

#include <fstream>
#include <functional>
#include <iterator>

#include <gtest/gtest.h>

#include "model/describe.h"
#include "model/schema_codec.h"
#include "model/schema_test_support.h"

namespace helenus::model {
namespace {

using base::Bytes;
using base::Errc;
using testing::sample_address;
using testing::sample_orders;
using testing::sample_schema;
using testing::sample_street;
using testing::sample_users;

TEST(Schema, FindsWhatIsThere) {
  const Schema schema = sample_schema();
  ASSERT_NE(schema.find_table("shop", "orders"), nullptr);
  EXPECT_EQ(schema.find_table("shop", "orders"), schema.find_table(sample_orders().id));
  EXPECT_EQ(schema.find_table("shop", "x"), nullptr);
  EXPECT_EQ(schema.find_table("x", "orders"), nullptr);
  EXPECT_EQ(schema.find_table(base::Uuid()), nullptr);
  EXPECT_EQ(schema.find_keyspace("shop")->find_type("street"), sample_street());
  EXPECT_FALSE(schema.find_keyspace("shop")->find_type("x"));
}

TEST(Schema, TheNextOneLeavesTheOneBeforeAsItWas) {
  const Schema before = sample_schema();
  const Schema without_users = before.without_table("shop", "users");
  EXPECT_NE(before.find_table("shop", "users"), nullptr);
  EXPECT_EQ(without_users.find_table("shop", "users"), nullptr);
  // What did not change is shared.
  EXPECT_EQ(before.find_table("shop", "orders"), without_users.find_table("shop", "orders"));
  EXPECT_EQ(without_users.with(sample_users()), before);
  EXPECT_EQ(before.without("shop").keyspaces().size(), 1U);
  EXPECT_EQ(before.without("x"), before);
  EXPECT_EQ(before.without_table("x", "y"), before);
}

TEST(Table, ColumnsAreGroupedByKind) {
  const Table table = sample_orders();
  EXPECT_EQ(table.partition_key().size(), 2U);
  EXPECT_EQ(table.clustering()[0].name, "at");
  EXPECT_EQ(table.static_columns()[0].name, "home");
  EXPECT_EQ(table.regular_columns().size(), 2U);
  EXPECT_EQ(table.find("price")->id, causality::ColumnId{8});
  EXPECT_EQ(table.find(causality::ColumnId{4})->name, "Item");
  EXPECT_EQ(table.find("old_home"), nullptr);
  EXPECT_EQ(table.find(kRowMarker), nullptr);
  EXPECT_TRUE(table.clustering_columns()[0].descending);
  EXPECT_FALSE(table.is_counter());
}

TEST(Table, SortingPutsColumnsWhereTheyBelong) {
  Table table = sample_orders();
  std::ranges::reverse(table.columns);
  ASSERT_FALSE(validate(table));
  sort_columns(table.columns);
  EXPECT_EQ(table, sample_orders());
}

TEST(Table, InvariantsAreChecked) {
  ASSERT_TRUE(validate(sample_orders()));
  const std::vector<std::function<void(Table&)>> offences = {
      [](Table& table) { table.columns.clear(); },
      [](Table& table) { table.columns[0].position = 1; },
      [](Table& table) { table.columns[6].position = 1; },
      [](Table& table) { std::swap(table.columns[5], table.columns[6]); },
      [](Table& table) { table.columns[6].name = "customer"; },
      [](Table& table) { table.columns[6].id = table.columns[5].id; },
      [](Table& table) { table.columns[6].id = table.dropped_columns[0].id; },
      [](Table& table) { table.columns[6].id = kRowMarker; },
      [](Table& table) { table.next_column_id = 8; },
      [](Table& table) { table.columns[0].type = *DataType::list_of(DataType::text()); },
      [](Table& table) { table.columns[2].type = DataType(TypeKind::duration); },
      [](Table& table) { table.columns[2].type = DataType(TypeKind::counter); },
      [](Table& table) { table.columns[6].type = DataType(TypeKind::counter); },
      [](Table& table) { table.columns[0].descending = true; },
      [](Table& table) {
        table.columns.erase(table.columns.begin() + 2, table.columns.begin() + 4);
      },
      [](Table& table) { table.options.gc_grace_seconds = -1; },
  };
  for (std::size_t index = 0; index < offences.size(); ++index) {
    Table table = sample_orders();
    offences[index](table);
    EXPECT_TRUE(validate(table).failed_with(Errc::invalid_argument)) << index;
  }
}

TEST(TableOptions, RangesAreThoseOfCassandra) {
  const auto refusal = [](const std::function<void(TableOptions&)>& change) {
    TableOptions options;
    change(options);
    const auto result = validate(options);
    return result ? std::string() : std::string(result.error().context());
  };
  EXPECT_EQ(refusal([](TableOptions&) {}), "");
  EXPECT_EQ(refusal([](TableOptions& options) { options.gc_grace_seconds = -1; }),
            "gc_grace_seconds must be greater than or equal to 0 (got -1)");
  EXPECT_EQ(refusal([](TableOptions& options) { options.bloom_filter_fp_chance = 0; }),
            "bloom_filter_fp_chance must be larger than 6.71E-5 and less than or equal to 1.0 "
            "(got 0.0)");
  EXPECT_EQ(refusal([](TableOptions& options) { options.crc_check_chance = 1.5; }),
            "crc_check_chance must be larger than or equal to 0 and smaller than or equal to 1.0 "
            "(got 1.5)");
  EXPECT_EQ(refusal([](TableOptions& options) { options.default_time_to_live = 630720001; }),
            "default_time_to_live must be less than or equal to 630720000 (got 630720001)");
  EXPECT_EQ(refusal([](TableOptions& options) { options.max_index_interval = 1; }),
            "max_index_interval must be greater than or equal to min_index_interval (128) (got 1)");
  EXPECT_NE(refusal([](TableOptions& options) { options.default_time_to_live = -1; }), "");
  EXPECT_NE(refusal([](TableOptions& options) { options.min_index_interval = 0; }), "");
  EXPECT_NE(refusal([](TableOptions& options) { options.memtable_flush_period_in_ms = -1; }), "");
  EXPECT_NE(refusal([](TableOptions& options) { options.delete_memory_seconds = -1; }), "");
}

TEST(TableOptions, OursAreReadByTheirWords) {
  EXPECT_EQ(parse_conflicts("siblings"), Conflicts::siblings);
  EXPECT_EQ(parse_causal_writes("quorum"), CausalWrites::quorum);
  EXPECT_TRUE(parse_conflicts("LWW").failed_with(Errc::invalid_argument));
  EXPECT_TRUE(parse_causal_writes("").failed_with(Errc::invalid_argument));
}

// ---- bytes

TEST(SchemaCodec, WhatIsWrittenIsRead) {
  const Schema schema = sample_schema();
  const auto back = decode_schema(encode(schema));
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(*back, schema);
  EXPECT_EQ(*decode_schema(encode(Schema())), Schema());
}

TEST(SchemaCodec, BytesOfTheFirstVersionAreReadForEver) {
  std::ifstream file(HELENUS_TESTDATA "/schema-v1", std::ios::binary);
  const std::string golden(std::istreambuf_iterator<char>(file), {});
  ASSERT_FALSE(golden.empty());
  const auto schema = decode_schema(base::as_bytes(golden));
  ASSERT_TRUE(schema) << schema.error().to_string();
  EXPECT_EQ(*schema, sample_schema());
  EXPECT_EQ(encode(sample_schema()).text(), golden);
}

TEST(SchemaCodec, EveryTruncationIsRefused) {
  const Bytes whole = encode(sample_schema());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(decode_schema(whole.view().first(size)).failed_with(Errc::corrupt)) << size;
  }
}

TEST(SchemaCodec, DamageIsRefusedOrAnotherSchema) {
  const Bytes whole = encode(sample_schema());
  for (std::size_t place = 1; place < whole.size(); ++place) {
    std::string damaged(whole.text());
    damaged[place] = static_cast<char>(damaged[place] ^ 0x11);
    const auto schema = decode_schema(base::as_bytes(damaged));
    if (schema) EXPECT_NE(*schema, sample_schema()) << place;
  }
}

TEST(SchemaCodec, VersionsFromTheFutureAreToldApart) {
  std::string newer(encode(sample_schema()).text());
  newer[0] = 2;
  EXPECT_TRUE(decode_schema(base::as_bytes(newer)).failed_with(Errc::unsupported));
  newer[0] = 0;
  EXPECT_TRUE(decode_schema(base::as_bytes(newer)).failed_with(Errc::corrupt));
  const std::string longer = std::string(encode(sample_schema()).text()) + "x";
  EXPECT_TRUE(decode_schema(base::as_bytes(longer)).failed_with(Errc::corrupt));
}

TEST(SchemaVersion, IsAFunctionOfTheContent) {
  const base::Uuid version = schema_version(sample_schema());
  EXPECT_EQ(version, schema_version(*decode_schema(encode(sample_schema()))));
  EXPECT_NE(version, schema_version(Schema()));
  EXPECT_NE(version, schema_version(sample_schema().without_table("shop", "users")));
  EXPECT_EQ(version.version(), 8U);
}

// ---- statements

TEST(Describe, KeyspacesPrintAsCassandraDoes) {
  const Schema schema = sample_schema();
  EXPECT_EQ(describe_keyspace(*schema.find_keyspace("shop")),
            "CREATE KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', "
            "'dc1': '3', 'dc2': '2'}  AND durable_writes = true;");
  EXPECT_EQ(describe_keyspace(*schema.find_keyspace("Empty")),
            "CREATE KEYSPACE \"Empty\" WITH replication = {'class': 'SimpleStrategy', "
            "'replication_factor': '1'}  AND durable_writes = false;");
}

TEST(Describe, APlainTablePrintsAsCassandraDoes) {
  Table table = sample_users();
  EXPECT_EQ(table.options.compaction["class"],
            "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy");
  EXPECT_EQ(table.options.compression["class"], "org.apache.cassandra.io.compress.LZ4Compressor");
  table.options.compaction["class"] = "Compaction";
  table.options.compression["class"] = "Compressor";
  EXPECT_EQ(describe_table(table), R"(CREATE TABLE shop.users (
    id int PRIMARY KEY,
    name text
) WITH additional_write_policy = '99p'
    AND bloom_filter_fp_chance = 0.01
    AND caching = {'keys': 'ALL', 'rows_per_partition': 'NONE'}
    AND cdc = false
    AND comment = ''
    AND compaction = {'class': 'Compaction', 'max_threshold': '32', 'min_threshold': '4'}
    AND compression = {'chunk_length_in_kb': '16', 'class': 'Compressor'}
    AND memtable = 'default'
    AND crc_check_chance = 1.0
    AND default_time_to_live = 0
    AND extensions = {}
    AND gc_grace_seconds = 864000
    AND max_index_interval = 2048
    AND memtable_flush_period_in_ms = 0
    AND min_index_interval = 128
    AND read_repair = 'BLOCKING'
    AND speculative_retry = '99p';)");
}

TEST(Describe, KeysOrdersAndOurOptionsArePrinted) {
  const std::string text = describe_table(sample_orders());
  EXPECT_TRUE(text.starts_with(R"(CREATE TABLE shop.orders (
    customer uuid,
    year smallint,
    at timestamp,
    "Item" text,
    home frozen<address> static,
    lines map<text, frozen<tuple<int, decimal>>>,
    price decimal,
    PRIMARY KEY ((customer, year), at, "Item")
) WITH CLUSTERING ORDER BY (at DESC, "Item" ASC)
    AND additional_write_policy = '99p'
)")) << text;
  EXPECT_TRUE(text.contains("\n    AND comment = 'what people''s carts became'\n"));
  EXPECT_TRUE(text.contains("\n    AND extensions = {'x': 0xcafe}\n"));
  EXPECT_TRUE(text.ends_with(R"(
    AND speculative_retry = '99p'
    AND causal_writes = 'quorum'
    AND conflicts = 'siblings'
    AND delete_memory = 7200
    AND filter = {'class': 'cuckoo'};)"))
      << text;
}

TEST(Describe, TypesPrintAsCassandraDoes) {
  EXPECT_EQ(describe_type(sample_street()),
            "CREATE TYPE shop.street (\n    name text,\n    \"Number\" int\n);");
  EXPECT_EQ(describe_type(sample_address()),
            "CREATE TYPE shop.address (\n    street frozen<street>,\n    tags set<text>\n);");
}

TEST(Describe, TypesComeBehindThoseTheyAreMadeOf) {
  const auto order = types_in_order_of_use(*sample_schema().find_keyspace("shop"));
  ASSERT_EQ(order.size(), 2U);
  EXPECT_EQ(order[0].name(), "street");
  EXPECT_EQ(order[1].name(), "address");
}

}  // namespace
}  // namespace helenus::model
