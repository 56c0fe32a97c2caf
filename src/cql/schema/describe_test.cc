// Stories about DESCRIBE.
#include "cql/schema/describe.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/parser/parser.h"
#include "cql/schema/schema_story_test_support.h"
#include "cql/schema/system_schema.h"

namespace helenus::cql {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SchemaStory;
using ::testing::StartsWith;

class DescribeTest : public ::testing::Test {
 protected:
  DescribeTest() {
    story_.prepare({testing::kCreateKeyspace, "CREATE TYPE outer (i int)",
                    "CREATE TYPE inner (i frozen<outer>)",
                    "CREATE TABLE t (k int PRIMARY KEY, v text)",
                    "CREATE TABLE \"Upper\" (k int PRIMARY KEY)"});
    all_ = story_.schema;
    const model::Schema system = make_system_schema();
    for (const auto& [name, keyspace] : system.keyspaces()) all_ = all_.with(*keyspace);
  }

  // Rows with their cells joined; the error alone if there is one.
  std::vector<std::string> told(std::string_view text, std::string_view keyspace = "") {
    const auto statement = parser::parse(text);
    if (!statement) return {"syntax: " + std::string(statement.error().context())};
    const auto description = describe(
        std::get<parser::Describe>(statement->node), all_, story_.schema, keyspace,
        {.cluster_name = "Test",
         .partitioner = "org.apache.cassandra.dht.Murmur3Partitioner",
         .snitch = "SimpleSnitch",
         .ranges = [](const model::Keyspace& of) {
           EXPECT_EQ(of.name, "ks");
           return std::vector<RangeOwners>{
               {.token = model::Token{-1}, .addresses = {"127.0.0.1:7000"}},
               {.token = model::Token{5}, .addresses = {"127.0.0.2:7000", "127.0.0.1:7000"}}};
         }});
    if (!description) return {description.error().to_string()};
    std::vector<std::string> rows;
    for (const auto& row : description->rows) {
      EXPECT_EQ(row.size(), description->columns.size());
      std::string& joined = rows.emplace_back();
      for (const base::Bytes& cell : row) {
        if (!joined.empty()) joined += "|";
        joined += cell.text();
      }
    }
    columns_.clear();
    for (const auto& column : description->columns) columns_.push_back(column.name);
    return rows;
  }

  SchemaStory story_;
  model::Schema all_;
  std::vector<std::string> columns_;
};

TEST_F(DescribeTest, ListsNames) {
  EXPECT_THAT(told("DESCRIBE KEYSPACES"), Contains("ks|keyspace|ks"));
  EXPECT_THAT(columns_, ElementsAre("keyspace_name", "type", "name"));
  EXPECT_THAT(told("DESC TABLES", "ks"), ElementsAre("ks|table|\"Upper\"", "ks|table|t"));
  EXPECT_THAT(told("DESC TABLES"), Contains("system|table|local"));
  EXPECT_THAT(told("DESC TYPES", "ks"), ElementsAre("ks|type|inner", "ks|type|outer"));
  EXPECT_THAT(told("DESC FUNCTIONS"), ElementsAre());
  EXPECT_THAT(told("DESC AGGREGATES", "ks"), ElementsAre());
}

TEST_F(DescribeTest, PrintsWhatMakesTheSchemaAgain) {
  const auto rows = told("DESCRIBE SCHEMA");
  EXPECT_THAT(columns_, ElementsAre("keyspace_name", "type", "name", "create_statement"));
  EXPECT_THAT(rows, ElementsAre(StartsWith("ks|keyspace|ks|CREATE KEYSPACE ks"),
                                StartsWith("ks|type|outer|CREATE TYPE ks.outer"),
                                StartsWith("ks|type|inner|CREATE TYPE ks.inner"),
                                StartsWith("ks|table|\"Upper\"|CREATE TABLE ks.\"Upper\""),
                                StartsWith("ks|table|t|CREATE TABLE ks.t")));
  SchemaStory again;
  for (const std::string& row : rows) {
    const std::string statement = row.substr(row.rfind('|') + 1);
    EXPECT_THAT(again.run(statement), StartsWith("created")) << statement;
  }
  EXPECT_EQ(again.schema.find_keyspace("ks")->types, story_.schema.find_keyspace("ks")->types);
  EXPECT_THAT(told("DESCRIBE FULL SCHEMA"), Contains(StartsWith("system|table|local|")));
}

TEST_F(DescribeTest, PrintsOneThing) {
  EXPECT_THAT(told("DESCRIBE TABLE ks.t"), ElementsAre(StartsWith("ks|table|t|CREATE TABLE ks.t")));
  EXPECT_THAT(told("DESCRIBE TABLE t", "ks"), ElementsAre(HasSubstr("CREATE TABLE ks.t")));
  EXPECT_THAT(told("DESCRIBE TYPE ks.inner"), ElementsAre(HasSubstr("CREATE TYPE ks.inner")));
  EXPECT_THAT(told("DESCRIBE KEYSPACE ks").size(), 5U);
  EXPECT_THAT(told("DESCRIBE ONLY KEYSPACE ks"), ElementsAre(HasSubstr("CREATE KEYSPACE ks")));
  EXPECT_THAT(told("DESCRIBE KEYSPACE", "ks").size(), 5U);
  EXPECT_THAT(told("DESCRIBE t", "ks"), ElementsAre(HasSubstr("CREATE TABLE ks.t")));
  EXPECT_THAT(told("DESCRIBE ks").size(), 5U);
  EXPECT_THAT(told("DESCRIBE TABLE system.local"), ElementsAre(HasSubstr("system.local")));
}

TEST_F(DescribeTest, VirtualTablesArePrintedInAComment) {
  EXPECT_THAT(
      told("DESCRIBE ONLY KEYSPACE system_virtual_schema"),
      ElementsAre("system_virtual_schema|keyspace|system_virtual_schema|/*\n"
                  "Warning: Keyspace system_virtual_schema is a virtual keyspace and cannot "
                  "be recreated with CQL.\nStructure, for reference:\n"
                  "VIRTUAL KEYSPACE system_virtual_schema;\n*/"));
  EXPECT_THAT(
      told("DESCRIBE TABLE helenus.metrics"),
      ElementsAre("helenus|table|metrics|/*\n"
                  "Warning: Table helenus.metrics is a virtual table and cannot be recreated "
                  "with CQL.\nStructure, for reference:\n"
                  "VIRTUAL TABLE helenus.metrics (\n    name text,\n    labels text,\n"
                  "    value double,\n    PRIMARY KEY (name, labels)\n"
                  ") WITH CLUSTERING ORDER BY (labels ASC)\n"
                  "    AND comment = 'what /metrics tells, of this node';\n*/"));
  EXPECT_THAT(told("DESCRIBE KEYSPACE helenus").size(), 7U);
}

TEST_F(DescribeTest, WhatIsNotThereIsAnError) {
  EXPECT_THAT(told("DESCRIBE TABLE ks.nosuch"),
              ElementsAre("0x2200: Table 'nosuch' not found in keyspace 'ks'"));
  EXPECT_THAT(told("DESCRIBE TABLE nosuch.t"),
              ElementsAre("0x2200: 'nosuch' not found in keyspaces"));
  EXPECT_THAT(told("DESCRIBE TABLE t"),
              ElementsAre("0x2200: No keyspace specified and no current keyspace"));
  EXPECT_THAT(told("DESCRIBE KEYSPACE"),
              ElementsAre("0x2200: No keyspace specified and no current keyspace"));
  EXPECT_THAT(told("DESCRIBE TYPE ks.nosuch"),
              ElementsAre("0x2200: User defined type 'nosuch' not found in 'ks'"));
  EXPECT_THAT(told("DESCRIBE nosuch", "ks"),
              ElementsAre("0x2200: 'nosuch' not found in keyspace 'ks'"));
  EXPECT_THAT(told("DESCRIBE INDEX ks.i"), ElementsAre(StartsWith("0x2200")));
  EXPECT_THAT(told("DESCRIBE MATERIALIZED VIEW ks.v"), ElementsAre(StartsWith("0x2200")));
  EXPECT_THAT(told("DESCRIBE FUNCTION ks.f"), ElementsAre(StartsWith("0x2200")));
  EXPECT_THAT(told("DESCRIBE AGGREGATE ks.a"), ElementsAre(StartsWith("0x2200")));
}

TEST_F(DescribeTest, TellsOfTheCluster) {
  EXPECT_THAT(told("DESCRIBE CLUSTER"), ElementsAre("Test|Murmur3Partitioner|SimpleSnitch"));
  EXPECT_THAT(columns_, ElementsAre("cluster", "partitioner", "snitch"));
  EXPECT_THAT(told("DESCRIBE CLUSTER", "ks"),
              ElementsAre(AllOf(HasSubstr("127.0.0.1:7000"), HasSubstr("127.0.0.2:7000"))));
  EXPECT_THAT(columns_, ElementsAre("cluster", "partitioner", "snitch", "range_ownership"));
}

}  // namespace
}  // namespace helenus::cql
