// Stories about changes of the schema. The words are Cassandra's.
#include "cql/schema/schema_change.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/schema/schema_story_test_support.h"
#include "cql/schema/system_schema.h"

namespace helenus::cql {
namespace {

using model::OptionMap;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kCreateKeyspace;
using ::testing::Pair;
using testing::SchemaStory;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

SchemaStory story_with(std::initializer_list<std::string_view> statements = {}) {
  SchemaStory story;
  story.prepare({kCreateKeyspace});
  story.prepare(statements);
  return story;
}

struct Refusal {
  std::string_view statement;
  std::string_view words;
};

void expect_refused(SchemaStory& story, const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    EXPECT_THAT(story.run(refusal.statement), HasSubstr(std::string(refusal.words)))
        << refusal.statement;
  }
}

// ---- Keyspaces ----

TEST(KeyspaceChange, CreatesAltersAndDrops) {
  SchemaStory story;
  EXPECT_EQ(story.run(kCreateKeyspace), "created keyspace ks");
  EXPECT_THAT(story.schema.find_keyspace("ks")->replication,
              UnorderedElementsAre(Pair("class", "org.apache.cassandra.locator.SimpleStrategy"),
                                   Pair("replication_factor", "1")));
  EXPECT_EQ(story.run("ALTER KEYSPACE ks WITH durable_writes = false"), "updated keyspace ks");
  EXPECT_FALSE(story.schema.find_keyspace("ks")->durable_writes);
  EXPECT_EQ(story.run("ALTER KEYSPACE ks WITH durable_writes = false"), "nothing");
  EXPECT_EQ(story.run("DROP KEYSPACE ks"), "dropped keyspace ks");
  EXPECT_TRUE(story.schema.keyspaces().empty());
}

TEST(KeyspaceChange, IfSaysThatNothingIsToBeDone) {
  SchemaStory story;
  EXPECT_EQ(story.run("DROP KEYSPACE IF EXISTS ks"), "nothing");
  EXPECT_EQ(story.run("ALTER KEYSPACE IF EXISTS ks WITH durable_writes = true"), "nothing");
  story.prepare({kCreateKeyspace});
  EXPECT_EQ(story.run("CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'Other'}"),
            "nothing");
}

TEST(KeyspaceChange, OneFactorStandsForEveryDataCentre) {
  SchemaStory story;
  story.prepare(
      {"CREATE KEYSPACE ks WITH replication = "
       "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}"});
  const OptionMap expected = {{"class", "org.apache.cassandra.locator.NetworkTopologyStrategy"},
                              {"dc1", "3"}};
  EXPECT_EQ(story.schema.find_keyspace("ks")->replication, expected);
  story.prepare(
      {"ALTER KEYSPACE ks WITH replication = "
       "{'class': 'NetworkTopologyStrategy', 'dc1': '2'}"});
  EXPECT_EQ(story.schema.find_keyspace("ks")->replication.at("dc1"), "2");
}

TEST(KeyspaceChange, BadKeyspacesAreRefused) {
  SchemaStory story = story_with();
  expect_refused(
      story,
      {{kCreateKeyspace, "0x2400: Cannot add existing keyspace \"ks\""},
       {"CREATE KEYSPACE a WITH durable_writes = true",
        "0x2200: Missing mandatory option 'replication'"},
       {"CREATE KEYSPACE a WITH replication = {'replication_factor': 1}",
        "0x2300: Missing replication strategy class"},
       {"CREATE KEYSPACE a WITH replication = {'class': 'NoStrategy'}",
        "0x2300: Unable to find replication strategy class "
        "'org.apache.cassandra.locator.NoStrategy'"},
       {"CREATE KEYSPACE a WITH replication = {'class': 'LocalStrategy'}",
        "0x2200: Unable to use given strategy class: LocalStrategy"},
       {"CREATE KEYSPACE a WITH replication = {'class': 'SimpleStrategy', 'dc1': 1}",
        "0x2300: Unrecognized strategy option {dc1} passed to SimpleStrategy for keyspace a"},
       {"CREATE KEYSPACE a WITH replication = {'class': 'NetworkTopologyStrategy', 'dc9': 1}",
        "0x2300: Unrecognized strategy option {dc9} passed to NetworkTopologyStrategy"},
       {"CREATE KEYSPACE a WITH replication = {'class': 'SimpleStrategy', "
        "'replication_factor': -1}",
        "0x2300: Replication factor must be non-negative, found -1"},
       {"CREATE KEYSPACE a WITH replication = {'class': 'SimpleStrategy', "
        "'replication_factor': 'x'}",
        "0x2300: For input string: \"x\""},
       {"CREATE KEYSPACE a WITH replication = 'SimpleStrategy'",
        "0x2000: Invalid value for property 'replication'. It should be a map."},
       {"CREATE KEYSPACE a WITH replication = {'class': 'SimpleStrategy'} AND paint = 'red'",
        "0x2000: Unknown property 'paint'"},
       {"CREATE KEYSPACE a WITH replication = {'class': 'SimpleStrategy'} AND durable_writes = 7",
        "0x2000: Invalid boolean value 7 for 'durable_writes'"},
       {"CREATE KEYSPACE \"a b\" WITH replication = {'class': 'SimpleStrategy'}",
        "0x2200: Keyspace name must not be empty"},
       {"DROP KEYSPACE nosuch", "0x2200: Keyspace 'nosuch' doesn't exist"},
       {"ALTER KEYSPACE nosuch WITH durable_writes = true",
        "0x2200: Keyspace 'nosuch' doesn't exist"}});
}

TEST(KeyspaceChange, KeyspacesOfTheSystemAreNobodysToChange) {
  SchemaStory story(make_system_schema());
  for (const std::string_view statement :
       {"DROP KEYSPACE system", "CREATE TABLE system_schema.t (k int PRIMARY KEY)",
        "DROP TABLE helenus.metrics", "ALTER TABLE system.local ADD x int",
        "CREATE TYPE system.t (a int)"}) {
    EXPECT_THAT(story.run(statement), StartsWith("0x2100")) << statement;
  }
}

// ---- CREATE TABLE ----

TEST(CreateTable, SortsColumnsAndGivesEachAnId) {
  SchemaStory story = story_with(
      {"CREATE TABLE t (z text, s int static, c2 timeuuid, k2 uuid, a list<int>, c1 int, k1 text, "
       "PRIMARY KEY ((k1, k2), c1, c2)) WITH CLUSTERING ORDER BY (c1 DESC)"});
  const model::Table& table = story.table("t");
  std::vector<std::string> told;
  for (const model::Column& column : table.columns) {
    told.push_back(fmt::format("{} {} {} {}{} {}", column.id, name_of(column.kind), column.position,
                               column.name, column.descending ? " desc" : "",
                               column.type.to_cql()));
  }
  EXPECT_THAT(told,
              ElementsAre("1 partition_key 0 k1 text", "2 partition_key 1 k2 uuid",
                          "3 clustering 0 c1 desc int", "4 clustering 1 c2 timeuuid",
                          "5 static 0 s int", "6 regular 0 a list<int>", "7 regular 0 z text"));
  EXPECT_EQ(table.next_column_id, 8U);
}

TEST(CreateTable, TakesEveryOptionAndShowsItAsCassandraDoes) {
  SchemaStory story = story_with(
      {"CREATE TABLE t (k int PRIMARY KEY) WITH additional_write_policy = '50ms' AND "
       "bloom_filter_fp_chance = 0.2 AND caching = {'keys': 'none', 'rows_per_partition': 10} AND "
       "cdc = true AND comment = 'it''s' AND "
       "compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'HOURS', "
       "'compaction_window_size': 2} AND "
       "compression = {'sstable_compression': 'ZstdCompressor', 'chunk_length_kb': 4} AND "
       "crc_check_chance = 0.5 AND default_time_to_live = 60 AND extensions = {'a': 'b'} AND "
       "gc_grace_seconds = 1 AND max_index_interval = 512 AND memtable = 'default' AND "
       "memtable_flush_period_in_ms = 7 AND min_index_interval = 64 AND read_repair = 'none' AND "
       "speculative_retry = 'MAX(99PERCENTILE, 10ms)' AND conflicts = 'siblings' AND "
       "filter = {'class': 'bloom', 'false_positive_rate': 0.001} AND causal_writes = 'quorum' AND "
       "delete_memory = 3600"});
  const model::TableOptions& options = story.table("t").options;
  EXPECT_EQ(options.additional_write_policy, "50ms");
  EXPECT_EQ(options.bloom_filter_fp_chance, 0.2);
  EXPECT_EQ(options.caching, (OptionMap{{"keys", "NONE"}, {"rows_per_partition", "10"}}));
  EXPECT_TRUE(options.cdc);
  EXPECT_EQ(options.comment, "it's");
  EXPECT_EQ(options.compaction,
            (OptionMap{{"class", "org.apache.cassandra.db.compaction.TimeWindowCompactionStrategy"},
                       {"compaction_window_size", "2"},
                       {"compaction_window_unit", "HOURS"},
                       {"max_threshold", "32"},
                       {"min_threshold", "4"}}));
  EXPECT_EQ(options.compression,
            (OptionMap{{"chunk_length_in_kb", "4"},
                       {"class", "org.apache.cassandra.io.compress.ZstdCompressor"}}));
  EXPECT_EQ(options.default_time_to_live, 60);
  EXPECT_EQ(options.read_repair, "NONE");
  EXPECT_EQ(options.speculative_retry, "MAX(99p,10ms)");
  EXPECT_EQ(options.conflicts, model::Conflicts::siblings);
  EXPECT_EQ(options.causal_writes, model::CausalWrites::quorum);
  EXPECT_EQ(options.filter, (OptionMap{{"class", "bloom"}, {"false_positive_rate", "0.001"}}));
  EXPECT_EQ(options.delete_memory_seconds, 3600);
}

TEST(CreateTable, DefaultsDependOnTheStrategyAsInCassandra) {
  SchemaStory story =
      story_with({"CREATE TABLE plain (k int PRIMARY KEY)",
                  "CREATE TABLE leveled (k int PRIMARY KEY) WITH compaction = "
                  "{'class': 'LeveledCompactionStrategy'} AND compression = {'enabled': false}"});
  EXPECT_EQ(story.table("plain").options, model::TableOptions());
  EXPECT_EQ(story.table("leveled").options.bloom_filter_fp_chance, 0.1);
  EXPECT_EQ(story.table("leveled").options.compression, (OptionMap{{"enabled", "false"}}));
}

TEST(CreateTable, BadKeysAreRefused) {
  SchemaStory story = story_with({"CREATE TYPE u (a int)"});
  expect_refused(
      story,
      {{"CREATE TABLE t (k int)",
        "0x2200: No PRIMARY KEY specifed for table 't' (exactly one required)"},
       {"CREATE TABLE t (k int PRIMARY KEY, c int PRIMARY KEY)",
        "0x2200: Multiple PRIMARY KEY specified for table 't' (exactly one required)"},
       {"CREATE TABLE t (k int, PRIMARY KEY (nosuch))",
        "0x2200: Unknown column 'nosuch' referenced in PRIMARY KEY for table 't'"},
       {"CREATE TABLE t (k int, PRIMARY KEY (k, k))",
        "0x2200: Duplicate column 'k' in PRIMARY KEY clause for table 't'"},
       {"CREATE TABLE t (k int, k text, PRIMARY KEY (k))",
        "0x2200: Duplicate column 'k' declaration for table 't'"},
       {"CREATE TABLE t (k list<int> PRIMARY KEY)",
        "0x2200: Invalid non-frozen collection type list<int> for PRIMARY KEY column 'k'"},
       {"CREATE TABLE t (k u PRIMARY KEY)",
        "0x2200: Invalid non-frozen user-defined type u for PRIMARY KEY column 'k'"},
       {"CREATE TABLE t (k counter PRIMARY KEY)",
        "0x2200: counter type is not supported for PRIMARY KEY column 'k'"},
       {"CREATE TABLE t (k duration PRIMARY KEY)",
        "0x2200: duration type is not supported for PRIMARY KEY column 'k'"},
       {"CREATE TABLE t (k int, c int static, PRIMARY KEY (k, c))",
        "0x2200: Static column 'c' cannot be part of the PRIMARY KEY"},
       {"CREATE TABLE t (k int, c int, d int, PRIMARY KEY (k, c, d)) WITH CLUSTERING ORDER BY "
        "(d ASC)",
        "0x2200: Missing CLUSTERING ORDER for column c"},
       {"CREATE TABLE t (k int, c int, d int, PRIMARY KEY (k, c, d)) WITH CLUSTERING ORDER BY "
        "(d ASC, c ASC)",
        "0x2200: The order of columns in the CLUSTERING ORDER directive must match"},
       {"CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY "
        "(v ASC)",
        "0x2200: Only clustering key columns can be defined in CLUSTERING ORDER directive"}});
}

TEST(CreateTable, BadColumnsAreRefused) {
  SchemaStory story = story_with({"CREATE TYPE u (a int, l list<int>)"});
  expect_refused(
      story,
      {{"CREATE TABLE t (k int PRIMARY KEY, s int static)",
        "0x2200: Static columns are only useful (and thus allowed)"},
       {"CREATE TABLE t (k int PRIMARY KEY, c counter, v int)",
        "0x2200: Cannot mix counter and non counter columns in the same table"},
       {"CREATE TABLE t (k int PRIMARY KEY, c counter) WITH default_time_to_live = 1",
        "0x2200: Cannot set default_time_to_live on a table with counters"},
       {"CREATE TABLE t (k int PRIMARY KEY, v list<list<int>>)",
        "0x2200: Non-frozen collections are not allowed inside collections: list<list<int>>"},
       {"CREATE TABLE t (k int PRIMARY KEY, v set<u>)",
        "0x2200: Non-frozen UDTs are not allowed inside collections"},
       {"CREATE TABLE t (k int PRIMARY KEY, v u)",
        "0x2200: Non-frozen UDTs with nested non-frozen collections are not supported"},
       {"CREATE TABLE t (k int PRIMARY KEY, v list<counter>)",
        "0x2200: Counters are not allowed inside collections"},
       {"CREATE TABLE t (k int PRIMARY KEY, v set<duration>)",
        "0x2200: Durations are not allowed inside sets"},
       {"CREATE TABLE t (k int PRIMARY KEY, v map<duration, int>)",
        "0x2200: Durations are not allowed as map keys"},
       {"CREATE TABLE t (k int PRIMARY KEY, v nosuch)", "0x2200: Unknown type ks.nosuch"},
       {"CREATE TABLE t (k int PRIMARY KEY, v other.u)",
        "0x2200: Statement on keyspace ks cannot refer to a user type in keyspace other"}});
}

TEST(CreateTable, BadPlacesAreRefused) {
  SchemaStory story = story_with({"CREATE TABLE t (k int PRIMARY KEY)"});
  expect_refused(
      story,
      {{"CREATE TABLE t (k int PRIMARY KEY)",
        "0x2400: Cannot add already existing table \"t\" to keyspace \"ks\""},
       {"CREATE TABLE nosuch.t (k int PRIMARY KEY)", "0x2200: Keyspace 'nosuch' doesn't exist"},
       {"CREATE TABLE \"a-b\" (k int PRIMARY KEY)", "0x2300: ks.a-b: Table name must not"},
       {"CREATE TABLE u (k int PRIMARY KEY) WITH COMPACT STORAGE", "0x2200"}});
  EXPECT_EQ(story.run("CREATE TABLE IF NOT EXISTS t (k text PRIMARY KEY)"), "nothing");
  story.keyspace.clear();
  EXPECT_THAT(story.run("CREATE TABLE u (k int PRIMARY KEY)"),
              StartsWith("0x2200: No keyspace has been specified."));
}

struct BadOption {
  std::string_view option;
  std::string_view words;
};

void expect_refused(const std::vector<BadOption>& options) {
  SchemaStory story = story_with();
  for (const BadOption& bad : options) {
    const std::string statement =
        fmt::format("CREATE TABLE t (k int PRIMARY KEY) WITH {}", bad.option);
    EXPECT_THAT(story.run(statement), StartsWith(std::string(bad.words))) << statement;
  }
}

TEST(CreateTable, BadOptionsAreRefused) {
  expect_refused(
      {{"paint = 'red'", "0x2000: Unknown property 'paint'"},
       {"gc_grace_seconds = 'long'", "0x2000: Invalid integer value long"},
       {"gc_grace_seconds = -1", "0x2300: gc_grace_seconds must be greater than or equal to 0"},
       {"gc_grace_seconds = {}", "0x2000"},
       {"bloom_filter_fp_chance = 'x'", "0x2000: Invalid double value x"},
       {"bloom_filter_fp_chance = 0", "0x2300: bloom_filter_fp_chance must be larger than"},
       {"crc_check_chance = 2", "0x2300: crc_check_chance must be"},
       {"default_time_to_live = -1", "0x2300: default_time_to_live must be greater"},
       {"default_time_to_live = 630720001", "0x2300: default_time_to_live must be less"},
       {"caching = {'keys': 'some'}", "0x2300: Invalid value 'some' for caching sub-option"},
       {"caching = {'rows_per_partition': 'few'}", "0x2300: Invalid value 'few' for caching"},
       {"caching = {'x': 'ALL'}", "0x2300: Invalid caching sub-options [x]"},
       {"compaction = {}", "0x2300: Missing sub-option 'class' for the 'compaction' option"},
       {"compaction = {'class': 'Nosuch'}", "0x2300: Unable to find compaction strategy class"},
       {"compaction = {'class': 'SizeTieredCompactionStrategy', 'fanout_size': 3}",
        "0x2300: Properties specified [fanout_size] are not understood by"},
       {"compaction = {'class': 'SizeTieredCompactionStrategy', 'min_threshold': 1}",
        "0x2300: Min compaction threshold cannot be less than 2 (got 1)"},
       {"compaction = {'class': 'SizeTieredCompactionStrategy', 'min_threshold': 40}",
        "0x2300: Min compaction threshold (got 40) cannot be greater than max"},
       {"compaction = {'class': 'SizeTieredCompactionStrategy', 'max_threshold': 0}",
        "0x2300: Disabling compaction by setting compaction thresholds to 0"},
       {"compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'maybe'}",
        "0x2300: 'enabled' should be either 'true' or 'false'"},
       {"compaction = {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': 0}",
        "0x2300: sstable_size_in_mb must be at least 1, but was 0"},
       {"compaction = {'class': 'TimeWindowCompactionStrategy', "
        "'compaction_window_unit': 'AGES'}",
        "0x2300: AGES is not valid for compaction_window_unit"},
       {"compression = {'chunk_length_in_kb': 4}",
        "0x2300: Missing sub-option 'class' for the 'compression' option."},
       {"compression = {'class': 'Nosuch'}",
        "0x2300: Could not create Compression for type "
        "org.apache.cassandra.io.compress.Nosuch"},
       {"compression = {'class': ''}", "0x2300: The 'class' option must not be empty"},
       {"compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 5}",
        "0x2300: chunk_length_in_kb must be a power of 2"},
       {"compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 0}",
        "0x2300: Invalid negative or null chunk_length_in_kb"},
       {"compression = {'class': 'LZ4Compressor', 'level': 5}",
        "0x2300: Unknown compression options level"},
       {"compression = {'class': 'LZ4Compressor', 'min_compress_ratio': 0.5}",
        "0x2300: min_compress_ratio can either be 0 or"},
       {"compression = {'class': 'ZstdCompressor', 'compression_level': 99}",
        "0x2300: ZstdCompressor.create() threw an error: java.lang.IllegalArgumentException "
        "compression_level=99 is invalid"},
       {"compression = {'class': 'ZstdCompressor', 'compression_level': -131073}", "0x2300"},
       {"compression = {'class': 'ZstdCompressor', 'compression_level': 'much'}",
        "0x2300: ZstdCompressor.create() threw an error: java.lang.NumberFormatException"},
       {"compression = {'class': 'LZ4Compressor', 'lz4_compressor_type': 'slow'}",
        "0x2300: LZ4Compressor.create() threw an error"},
       {"compression = {'class': 'LZ4Compressor', 'lz4_high_compressor_level': 18}",
        "0x2300: LZ4Compressor.create() threw an error"},
       {"compression = {'enabled': 'false', 'class': 'LZ4Compressor'}",
        "0x2300: If the 'enabled' option is set to false no other options"},
       {"speculative_retry = 'sometimes'", "0x2300: Invalid value sometimes for option"},
       {"speculative_retry = '100p'", "0x2300"},
       {"read_repair = 'eager'", "0x2300"},
       {"memtable = 'trie'", "0x2300"},
       {"conflicts = 'coin'", "0x2300"},
       {"causal_writes = 'all'", "0x2300"},
       {"delete_memory = -1", "0x2300"},
       {"id = 'x'", "0x2300: Invalid table id"}});
}

TEST(CreateTable, BadFiltersAreRefused) {
  expect_refused(
      {{"filter = {'class': 'sieve'}", "0x2300: Invalid filter sub-option 'class' = 'sieve'"},
       {"filter = {'bits_per_hash': 8}", "0x2300: Missing sub-option 'class'"},
       {"filter = {'class': 'bloom', 'bits': 8}", "0x2300: Invalid filter sub-option 'bits'"},
       {"filter = {'class': 'bloom', 'bits_per_hash': 'many'}",
        "0x2300: Invalid filter sub-option 'bits_per_hash' = 'many'"},
       {"filter = {'class': 'bloom', 'bits_per_hash': 8, 'false_positive_rate': 0.01}",
        "0x2300: Invalid filter sub-options 'false_positive_rate' and 'bits_per_hash'"},
       {"filter = {'class': 'cuckoo', 'false_positive_rate': 0.00001}",
        "0x2300: Invalid filter sub-option 'false_positive_rate' = '0.00001': class 'cuckoo' "
        "takes either false_positive_rate (0.00013 to 0.5)"},
       {"filter = {'class': 'consistent_cuckoo', 'false_positive_rate': 0.01}",
        "0x2300: Invalid filter sub-option 'false_positive_rate' = '0.01': class "
        "'consistent_cuckoo' has no others"},
       {"filter = {'class': 'consistent_cuckoo', 'bits_per_hash': 16}",
        "0x2300: Invalid filter sub-option 'bits_per_hash'"},
       {"filter = {'class': 'none', 'false_positive_rate': 0.01}",
        "0x2300: Invalid filter sub-option 'false_positive_rate'"}});
}

// ---- ALTER TABLE, DROP TABLE ----

TEST(AlterTable, AddsDropsAndAddsAgainWithoutReusingAnId) {
  SchemaStory story = story_with({"CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))"});
  EXPECT_EQ(story.run("ALTER TABLE t ADD (w int, s text static)"), "updated table ks.t");
  const auto first = story.table("t").find("w")->id;
  EXPECT_EQ(story.run("ALTER TABLE t DROP w"), "updated table ks.t");
  EXPECT_EQ(story.table("t").find("w"), nullptr);
  ASSERT_EQ(story.table("t").dropped_columns.size(), 1U);
  EXPECT_EQ(story.table("t").dropped_columns[0].dropped_at_us, 1'700'000'000'000'000);
  EXPECT_EQ(story.run("ALTER TABLE t ADD w int"), "updated table ks.t");
  EXPECT_GT(story.table("t").find("w")->id, first);
  story.prepare({"ALTER TABLE t DROP w USING TIMESTAMP 5"});
  ASSERT_EQ(story.table("t").dropped_columns.size(), 1U);
  EXPECT_EQ(story.table("t").dropped_columns[0].dropped_at_us, 5);
}

TEST(AlterTable, RenamesKeys) {
  SchemaStory story = story_with({"CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))"});
  const auto id = story.table("t").find("c")->id;
  EXPECT_EQ(story.run("ALTER TABLE t RENAME k TO key AND c TO at"), "updated table ks.t");
  EXPECT_EQ(story.table("t").find("at")->id, id);
  EXPECT_EQ(story.table("t").find("k"), nullptr);
}

TEST(AlterTable, ChangesOptionsAndKeepsTheOthers) {
  SchemaStory story = story_with(
      {"CREATE TABLE t (k int PRIMARY KEY) WITH comment = 'a' AND gc_grace_seconds = 9"});
  EXPECT_EQ(story.run("ALTER TABLE t WITH comment = 'b'"), "updated table ks.t");
  EXPECT_EQ(story.table("t").options.comment, "b");
  EXPECT_EQ(story.table("t").options.gc_grace_seconds, 9);
  EXPECT_EQ(story.run("ALTER TABLE t WITH comment = 'b'"), "nothing");
}

TEST(AlterTable, IfSaysThatNothingIsToBeDone) {
  SchemaStory story = story_with({"CREATE TABLE t (k int PRIMARY KEY, v int)"});
  EXPECT_EQ(story.run("ALTER TABLE IF EXISTS nosuch ADD v int"), "nothing");
  EXPECT_EQ(story.run("ALTER TABLE t ADD IF NOT EXISTS v int"), "nothing");
  EXPECT_EQ(story.run("ALTER TABLE t DROP IF EXISTS w"), "nothing");
  EXPECT_EQ(story.run("ALTER TABLE t RENAME IF EXISTS w TO x"), "nothing");
  EXPECT_EQ(story.run("DROP TABLE IF EXISTS nosuch"), "nothing");
  EXPECT_EQ(story.run("DROP TABLE IF EXISTS nosuch.t"), "nothing");
}

TEST(AlterTable, BadChangesAreRefused) {
  SchemaStory story = story_with(
      {"CREATE TYPE u (a int)", "CREATE TABLE t (k int PRIMARY KEY, v int, w u)",
       "CREATE TABLE c (k int PRIMARY KEY, n counter, m counter)", "ALTER TABLE c DROP m",
       "CREATE TABLE d (k int PRIMARY KEY, v text, w int)", "ALTER TABLE d DROP v",
       "ALTER TABLE c DROP n", "CREATE TABLE s (k int PRIMARY KEY) WITH conflicts = 'siblings'"});
  expect_refused(
      story,
      {{"ALTER TABLE nosuch ADD v int", "0x2200: Table 'ks.nosuch' doesn't exist"},
       {"ALTER TABLE t ADD v text", "0x2200: Column with name 'v' already exists"},
       {"ALTER TABLE t ADD s int static", "0x2200: Static columns are only useful"},
       {"ALTER TABLE t ADD n counter",
        "0x2300: ks.t: Cannot have a counter column (\"n\") in a non counter table"},
       {"ALTER TABLE c ADD x int",
        "0x2300: ks.c: Cannot have a non counter column (\"x\") in a counter table"},
       {"ALTER TABLE c ADD m counter", "0x2200: Cannot re-add previously dropped counter column m"},
       {"ALTER TABLE d ADD v int",
        "0x2200: Cannot re-add previously dropped column 'v' of type int, incompatible with "
        "previous type text"},
       {"ALTER TABLE t DROP nosuch", "0x2200: Column nosuch was not found in table 'ks.t'"},
       {"ALTER TABLE t DROP k", "0x2200: Cannot drop PRIMARY KEY column k"},
       {"ALTER TABLE t DROP w", "0x2200: Cannot drop non-frozen column w of user type u"},
       {"ALTER TABLE t RENAME v TO x", "0x2200: Cannot rename non PRIMARY KEY column v"},
       {"ALTER TABLE t RENAME k TO v", "0x2200: Cannot rename column k to v in table 'ks.t'"},
       {"ALTER TABLE t RENAME x TO y", "0x2200: Undefined column name x"},
       {"ALTER TABLE t ALTER v TYPE text", "0x2200: Altering column types is no longer supported"},
       {"ALTER TABLE t DROP COMPACT STORAGE",
        "0x2200: DROP COMPACT STORAGE is not supported: no table is compact"},
       {"ALTER TABLE t WITH id = 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'",
        "0x2300: Cannot alter table id."},
       {"ALTER TABLE s WITH conflicts = 'lww'", "0x2300: Cannot alter conflicts"},
       {"ALTER TABLE t WITH paint = 'red'", "0x2000: Unknown property 'paint'"},
       {"DROP TABLE nosuch", "0x2200: Table 'ks.nosuch' doesn't exist"}});
}

TEST(TableChange, AnIdOfATableOfTheSystemIsRefused) {
  SchemaStory story(make_system_schema());
  story.prepare({kCreateKeyspace});
  const model::TablePtr local = make_system_schema().find_table("system", "local");
  EXPECT_THAT(story.run(fmt::format("CREATE TABLE t (k int PRIMARY KEY) WITH id = {}", local->id)),
              HasSubstr("exists already"));
}

// ---- Types ----

TEST(TypeChange, AnAlteredTypeIsAlteredWhereverItIsUsed) {
  SchemaStory story =
      story_with({"CREATE TYPE inner (a int)", "CREATE TYPE outer (i frozen<inner>)",
                  "CREATE TABLE t (k int PRIMARY KEY, v list<frozen<outer>>)"});
  EXPECT_EQ(story.run("ALTER TYPE inner ADD b text"), "updated type ks.inner");
  EXPECT_EQ(story.run("ALTER TYPE inner RENAME a TO z"), "updated type ks.inner");
  const model::DataType& outer = story.table("t").find("v")->type.element();
  EXPECT_THAT(outer.parts()[0].field_names(), ElementsAre("z", "b"));
  EXPECT_EQ(story.run("ALTER TYPE inner ADD IF NOT EXISTS b text"), "nothing");
  EXPECT_EQ(story.run("DROP TABLE t"), "dropped table ks.t");
  EXPECT_EQ(story.run("DROP TYPE outer"), "dropped type ks.outer");
  EXPECT_EQ(story.run("DROP TYPE inner"), "dropped type ks.inner");
  EXPECT_EQ(story.run("DROP TYPE IF EXISTS inner"), "nothing");
}

TEST(TypeChange, BadTypesAreRefused) {
  SchemaStory story =
      story_with({"CREATE TYPE a (x int)", "CREATE TYPE b (y frozen<a>)", "CREATE TYPE c (z int)",
                  "CREATE TABLE t (k frozen<c> PRIMARY KEY)"});
  expect_refused(
      story,
      {{"CREATE TYPE a (x int)", "0x2200: A user type with name 'a' already exists"},
       {"CREATE TYPE d (x int, x text)", "0x2200: Duplicate field name 'x' in type 'd'"},
       {"CREATE TYPE d (x counter)", "0x2200: A user type cannot contain counters"},
       {"CREATE TYPE d (x a)", "0x2200: A user type cannot contain non-frozen UDTs"},
       {"CREATE TYPE nosuch.d (x int)", "0x2200: Keyspace 'nosuch' doesn't exist"},
       {"ALTER TYPE a ADD x int", "0x2200: Cannot add field x to type ks.a: a field with name x"},
       {"ALTER TYPE a ADD y frozen<b>", "as it would create a circular reference"},
       {"ALTER TYPE c ADD y int", "as the type is being used in partition key"},
       {"ALTER TYPE a RENAME nosuch TO y", "0x2200: Unkown field nosuch in user type ks.a"},
       {"ALTER TYPE a ALTER x TYPE text", "0x2200: Altering field types is no longer supported"},
       {"ALTER TYPE nosuch ADD x int", "0x2200: Type ks.nosuch doesn't exist"},
       {"DROP TYPE nosuch", "0x2200: Type 'ks.nosuch' doesn't exist"},
       {"DROP TYPE a", "0x2200: Cannot drop user type 'ks.a' as it is still used by user types b"},
       {"DROP TYPE c", "0x2200: Cannot drop user type 'ks.c' as it is still used by tables t"}});
}

// ---- What is not built ----

TEST(SchemaChange, WhatIsNotBuiltIsRefusedAndWhatIsNotThereNeedNotBeDropped) {
  SchemaStory story = story_with({"CREATE TABLE t (k int PRIMARY KEY, v int)"});
  for (const std::string_view statement :
       {"DROP INDEX i",
        "CREATE MATERIALIZED VIEW w AS SELECT * FROM t WHERE k IS NOT NULL PRIMARY KEY (k)",
        "DROP MATERIALIZED VIEW w",
        "CREATE FUNCTION f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'",
        "DROP FUNCTION f", "DROP AGGREGATE a", "CREATE TRIGGER g ON t USING 'x'",
        "DROP TRIGGER g ON t"}) {
    EXPECT_THAT(story.run(statement), StartsWith("0x2200")) << statement;
  }
  for (const std::string_view statement :
       {"DROP INDEX IF EXISTS i", "DROP MATERIALIZED VIEW IF EXISTS w", "DROP FUNCTION IF EXISTS f",
        "DROP AGGREGATE IF EXISTS a", "DROP TRIGGER IF EXISTS g ON t"}) {
    EXPECT_EQ(story.run(statement), "nothing") << statement;
  }
  EXPECT_EQ(story.run("SELECT * FROM t"), "no change of the schema");
}

}  // namespace
}  // namespace helenus::cql
