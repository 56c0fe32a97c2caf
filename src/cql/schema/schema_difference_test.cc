// What clients are told of a schema that became another one.
#include "cql/schema/schema_difference.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/schema/schema_story_test_support.h"

namespace helenus::cql {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::SchemaStory;

std::vector<std::string> told(const model::Schema& before, const model::Schema& after) {
  std::vector<std::string> all;
  for (const protocol::SchemaChange& change : changes_between(before, after)) {
    all.push_back(SchemaStory::told(change));
  }
  return all;
}

TEST(SchemaDifference, EveryStatementIsToldByWhatItChanges) {
  struct Step {
    std::string_view statement;
    std::vector<std::string> events;
  };
  SchemaStory story;
  for (const Step& step : std::vector<Step>{
           {testing::kCreateKeyspace, {"created keyspace ks"}},
           {"CREATE TYPE u (a int)", {"created type ks.u"}},
           {"CREATE TABLE t (k int PRIMARY KEY, v frozen<u>)", {"created table ks.t"}},
           {"CREATE TABLE s (k int PRIMARY KEY)", {"created table ks.s"}},
           {"ALTER TABLE s ADD w int", {"updated table ks.s"}},
           {"ALTER TYPE u ADD b text", {"updated type ks.u", "updated table ks.t"}},
           {"ALTER KEYSPACE ks WITH durable_writes = false", {"updated keyspace ks"}},
           {"CREATE TABLE IF NOT EXISTS s (k int PRIMARY KEY)", {}},
           {"DROP TABLE t", {"dropped table ks.t"}},
           {"DROP TYPE u", {"dropped type ks.u"}},
           {"DROP KEYSPACE ks", {"dropped keyspace ks"}}}) {
    const model::Schema before = story.schema;
    story.prepare({step.statement});
    EXPECT_EQ(told(before, story.schema), step.events) << step.statement;
  }
}

TEST(SchemaDifference, ManyStatementsAtOnceAreToldInAnOrderThatCanBeFollowed) {
  SchemaStory story;
  story.prepare({testing::kCreateKeyspace, "CREATE TABLE t (k int PRIMARY KEY)"});
  const model::Schema before = story.schema;
  story.prepare({"DROP TABLE t", "CREATE TABLE t (k int PRIMARY KEY)",
                 "CREATE KEYSPACE a WITH replication = {'class': 'SimpleStrategy'}",
                 "CREATE TYPE a.u (x int)", "CREATE TABLE a.b (k int PRIMARY KEY, v frozen<u>)"});
  EXPECT_THAT(told(before, story.schema),
              ElementsAre("dropped table ks.t", "created keyspace a", "created type a.u",
                          "created table a.b", "created table ks.t"));
  EXPECT_THAT(told(story.schema, before),
              ElementsAre("dropped keyspace a", "dropped table ks.t", "created table ks.t"));
  EXPECT_THAT(told(before, before), IsEmpty());
}

}  // namespace
}  // namespace helenus::cql
