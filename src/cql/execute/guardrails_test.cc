// Stories about guardrails: what is warned of, and what is refused.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/execute/query_story_test_support.h"
#include "runtime/contract/world.h"

namespace helenus::cql::testing {
namespace {

using protocol::ErrorCode;
using runtime::Task;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void tell_guarded(const QueryStory::Body& body, const Guardrails& guardrails) {
  storage::testing::LogWorld world;
  QueryProcessorOptions options;
  options.guardrails = guardrails;
  QueryStory::tell(world, body, options);
}

Task<void> make_guarded_table(QueryStory& story) {
  co_await story.must(
      "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  co_await story.must("USE ks");
  co_await story.must(
      "CREATE TABLE t (k int PRIMARY KEY, v text, l list<int>, f frozen<list<int>>)");
}

Task<void> expect_warned(QueryStory& story, std::string text, std::string words) {
  const Told told = co_await story.run(text);
  EXPECT_FALSE(told.error.has_value()) << text << "\n  " << told.text();
  EXPECT_THAT(told.warnings, Contains(HasSubstr(words))) << text;
}

Task<void> expect_refused(QueryStory& story, std::string text, std::string words) {
  const Told told = co_await story.run(text);
  EXPECT_TRUE(told.error.has_value()) << text;
  if (!told.error) co_return;
  EXPECT_EQ(told.error->code, ErrorCode::invalid) << text;
  EXPECT_THAT(told.text(), HasSubstr(words)) << text;
}

Task<void> expect_quiet(QueryStory& story, std::string text) {
  const Told told = co_await story.run(text);
  EXPECT_FALSE(told.error.has_value()) << text << "\n  " << told.text();
  EXPECT_THAT(told.warnings, IsEmpty()) << text;
}

std::string batch_of(std::string_view kind, int partitions, std::size_t bytes_of_each) {
  std::string batch = fmt::format("BEGIN {} BATCH ", kind);
  for (int i = 0; i < partitions; ++i) {
    batch +=
        fmt::format("INSERT INTO t (k, v) VALUES ({}, '{}'); ", i, std::string(bytes_of_each, 'x'));
  }
  return batch + "APPLY BATCH";
}

Task<void> write_batches(QueryStory& story) {
  co_await make_guarded_table(story);
  co_await expect_quiet(story, batch_of("", 2, 2000));
  co_await expect_warned(story, batch_of("", 2, 3000), "Batch for [ks.t] is of size ");
  co_await expect_warned(story, batch_of("", 2, 3000), "exceeding specified threshold of 5120 by ");
  co_await expect_refused(story, batch_of("", 2, 30000), "Batch too large");
  // Of one partition it may be as large as a request.
  co_await expect_quiet(story, batch_of("", 1, 60000));
  co_await expect_quiet(story, batch_of("UNLOGGED", 10, 1));
  co_await expect_warned(story, batch_of("UNLOGGED", 11, 1),
                         "Unlogged batch covering 11 partitions detected against table [ks.t].");
  co_await expect_quiet(story, batch_of("", 11, 1));
}
TEST(Guardrails, LargeBatchesAreWarnedOfAndRefusedUnlessToldOtherwise) {
  tell_guarded(write_batches, {});
}

Task<void> write_large_batch(QueryStory& story) {
  co_await make_guarded_table(story);
  co_await expect_quiet(story, batch_of("UNLOGGED", 100, 3000));
}
TEST(Guardrails, ZeroIsNoLimit) {
  Guardrails none;
  none.batch_size_warn_threshold = 0;
  none.batch_size_fail_threshold = 0;
  none.unlogged_batch_across_partitions_warn_threshold = 0;
  tell_guarded(write_large_batch, none);
}

Task<void> select_much(QueryStory& story) {
  co_await make_guarded_table(story);
  co_await expect_quiet(story, "SELECT * FROM t WHERE k IN (1, 2)");
  co_await expect_warned(
      story, "SELECT * FROM t WHERE k IN (1, 2, 3)",
      "Guardrail partition_keys_in_select violated: Query with partition keys in "
      "IN clause on table t, with number of partition keys 3 exceeds warning "
      "threshold of 2.");
  co_await expect_refused(story, "SELECT * FROM t WHERE k IN (1, 2, 3, 4)",
                          "number of partition keys 4 exceeds fail threshold of 3.");
  How how;
  how.page_size = 11;
  const Told warned = co_await story.run("SELECT * FROM t WHERE k = 1", how);
  EXPECT_THAT(warned.warnings,
              Contains("Guardrail page_size violated: Query for table t with page size 11 exceeds "
                       "warning threshold of 10."));
  how.page_size = 21;
  const Told refused = co_await story.run("SELECT * FROM t", how);
  EXPECT_THAT(refused.text(), HasSubstr("page size 21 exceeds fail threshold of 20."));
  co_await expect_refused(
      story, "SELECT * FROM t WHERE v = 'x' ALLOW FILTERING",
      "Guardrail allow_filtering violated: Querying with ALLOW FILTERING is not "
      "allowed. ALLOW FILTERING can potentially visit all the data");
  co_await expect_quiet(story, "SELECT * FROM system.local WHERE rack = 'x' ALLOW FILTERING");
  co_await expect_refused(story, "SELECT count(*) FROM t GROUP BY k", "GROUP BY functionality");
}
TEST(Guardrails, SelectsAreHeldToPagesPartitionsAndIndexes) {
  Guardrails rails;
  rails.partition_keys_in_select_warn_threshold = 2;
  rails.partition_keys_in_select_fail_threshold = 3;
  rails.page_size_warn_threshold = 10;
  rails.page_size_fail_threshold = 20;
  rails.allow_filtering_enabled = false;
  rails.group_by_enabled = false;
  tell_guarded(select_much, rails);
}

Task<void> write_large_values(QueryStory& story) {
  co_await make_guarded_table(story);
  co_await expect_quiet(story, "INSERT INTO t (k, v, l) VALUES (1, 'four', [1, 2])");
  co_await expect_warned(
      story, "INSERT INTO t (k, v) VALUES (1, 'fives')",
      "Guardrail column_value_size violated: Value of column 'v' has size 5, this "
      "exceeds the warning threshold of 4.");
  co_await expect_refused(story, "UPDATE t SET v = 'longer' WHERE k = 1",
                          "this exceeds the failure threshold of 5.");
  co_await expect_warned(story, "UPDATE t SET l = l + [1, 2, 3] WHERE k = 1",
                         "Guardrail items_per_collection violated: Detected collection l with 3 "
                         "items, this exceeds the warning threshold of 2.");
  co_await expect_refused(story, "INSERT INTO t (k, f) VALUES (1, [1, 2, 3, 4])",
                          "Detected collection f with 4 items");
  co_await expect_refused(story, "INSERT INTO t JSON '{\"k\": 1, \"f\": [1, 2, 3, 4]}'",
                          "Detected collection f with 4 items");
  const Told prepared = co_await story.prepare("INSERT INTO t (k, v) VALUES (1, ?)");
  const auto& id = std::get<protocol::PreparedResult>(prepared.message).id;
  const std::string value = "longer";
  const Told refused =
      co_await story.execute(id, {protocol::Value::of(base::as_bytes(value))}, How());
  EXPECT_THAT(refused.text(), HasSubstr("Value of column 'v' has size 6"));
  co_await expect_refused(story, "UPDATE t USING TIMESTAMP 1 SET v = 'x' WHERE k = 1",
                          "Guardrail user_timestamps violated: User provided timestamps (USING "
                          "TIMESTAMP) is not allowed");
}
TEST(Guardrails, ValuesAreHeldToTheirSizes) {
  Guardrails rails;
  rails.column_value_size_warn_threshold = 4;
  rails.column_value_size_fail_threshold = 5;
  rails.items_per_collection_warn_threshold = 2;
  rails.items_per_collection_fail_threshold = 3;
  rails.user_timestamps_enabled = false;
  tell_guarded(write_large_values, rails);
}

Task<void> make_many(QueryStory& story) {
  co_await make_guarded_table(story);
  co_await expect_warned(story, "CREATE TABLE u (k int PRIMARY KEY, a int, b int, c int, d int)",
                         "Guardrail columns_per_table violated: The table u has 5 columns, this "
                         "exceeds the warning threshold of 4.");
  co_await expect_refused(story, "ALTER TABLE u ADD (e int, f int)",
                          "Tables cannot have more than 6 columns, but 7 provided for table u");
  co_await expect_warned(story, "CREATE TABLE w (k int PRIMARY KEY)",
                         "Guardrail tables violated: Creating table w, current number of tables 3 "
                         "exceeds warning threshold of 2.");
  co_await expect_refused(story, "CREATE TABLE x (k int PRIMARY KEY)",
                          "Cannot have more than 3 tables, aborting the creation of table x");
  co_await expect_quiet(story, "CREATE INDEX i ON t (v)");
  co_await expect_refused(story, "CREATE INDEX j ON t (l)",
                          "Tables cannot have more than 1 secondary indexes, aborting the creation "
                          "of secondary index j");
  co_await expect_refused(
      story,
      "CREATE KEYSPACE b WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
      "Cannot have more than 1 keyspaces, aborting the creation of keyspace b");
  co_await expect_refused(
      story, "CREATE TYPE y (a int, b int)",
      "User types cannot have more than 1 columns, but 2 provided for user type "
      "y.");
  co_await expect_refused(story, "DROP TABLE w", "DROP and TRUNCATE TABLE functionality");
  co_await expect_refused(story, "TRUNCATE w", "DROP and TRUNCATE TABLE functionality");
}
TEST(Guardrails, TheSchemaIsHeldToItsSize) {
  Guardrails rails;
  rails.columns_per_table_warn_threshold = 4;
  rails.columns_per_table_fail_threshold = 6;
  rails.tables_warn_threshold = 2;
  rails.tables_fail_threshold = 3;
  rails.secondary_indexes_per_table_fail_threshold = 1;
  rails.keyspaces_fail_threshold = 1;
  rails.fields_per_udt_fail_threshold = 1;
  rails.drop_truncate_table_enabled = false;
  tell_guarded(make_many, rails);
}

}  // namespace
}  // namespace helenus::cql::testing
