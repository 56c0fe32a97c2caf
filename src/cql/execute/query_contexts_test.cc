// Stories about causal contexts over requests.
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "causality/dot_store.h"
#include "cql/execute/query_story_test_support.h"
#include "cql/plan/row_reader.h"
#include "model/partition_key.h"
#include "ring/murmur3.h"
#include "runtime/contract/world.h"

namespace helenus::cql::testing {
namespace {

using base::Bytes;
using protocol::ErrorCode;
using runtime::Task;

Task<void> keeps_siblings(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v text) WITH conflicts = 'siblings'");
  How blind;
  blind.context = Bytes();
  co_await story.must("INSERT INTO t (k, v) VALUES (1, 'a')");
  const Told read = co_await story.run("SELECT v FROM t WHERE k = 1");
  EXPECT_EQ(read.text(), "'a'");
  EXPECT_TRUE(read.context.has_value());
  // Two writers who had both seen 'a' and not each other.
  How seen;
  seen.context = read.context;
  const Told first = co_await story.run("UPDATE t SET v = 'c' WHERE k = 1", seen);
  EXPECT_TRUE(first.context.has_value()) << first.text();
  co_await story.run("UPDATE t SET v = 'b' WHERE k = 1", seen);
  // A reader of CQL sees the later one; its context names both.
  const Told both = co_await story.run("SELECT v FROM t WHERE k = 1");
  EXPECT_EQ(both.text(), "'b'");
  seen.context = first.context;
  co_await story.run("UPDATE t SET v = null WHERE k = 1", seen);
  EXPECT_EQ((co_await story.run("SELECT v FROM t WHERE k = 1")).text(), "'b'");
  seen.context = both.context;
  co_await story.run("UPDATE t SET v = 'merged' WHERE k = 1", seen);
  EXPECT_EQ((co_await story.run("SELECT v FROM t WHERE k = 1")).text(), "'merged'");
  seen.context = Bytes::copy_of("nonsense");
  EXPECT_EQ(code_of(co_await story.run("SELECT v FROM t WHERE k = 1", seen)), ErrorCode::invalid);
}
TEST(Contexts, TravelInTheCustomPayload) {
  tell(keeps_siblings);
}

Task<void> gives_contexts_when_asked(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v text)");
  co_await story.must("INSERT INTO t (k, v) VALUES (1, 'a')");
  EXPECT_FALSE((co_await story.run("SELECT v FROM t WHERE k = 1")).context.has_value());
  How asked;
  asked.context = Bytes();
  EXPECT_TRUE((co_await story.run("SELECT v FROM t WHERE k = 1", asked)).context.has_value());
  EXPECT_FALSE((co_await story.run("SELECT v FROM t", asked)).context.has_value());
}
TEST(Contexts, AreGivenWhenAskedFor) {
  tell(gives_contexts_when_asked);
}

Task<void> refuses_contexts_of_elsewhere(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))");
  co_await story.must("CREATE TABLE u (k int, c int, v text, PRIMARY KEY (k, c))");
  co_await story.must("INSERT INTO t (k, c, v) VALUES (1, 1, 'a')");
  How how;
  how.context = Bytes();
  const Told read = co_await story.run("SELECT v FROM t WHERE k = 1 AND c = 1", how);
  CO_ASSERT_TRUE(read.context.has_value());
  const Bytes good = *read.context;
  const auto refused = [&](const char* text, const char* words) -> Task<void> {
    const Told told = co_await story.run(text, how);
    EXPECT_EQ(code_of(told), ErrorCode::invalid) << text;
    EXPECT_THAT(told.text(), ::testing::HasSubstr(words)) << text;
  };
  const char* const write = "INSERT INTO t (k, c, v) VALUES (1, 1, 'b')";
  how.context = good;
  co_await refused("INSERT INTO u (k, c, v) VALUES (1, 1, 'b')", "another table");
  co_await refused("INSERT INTO t (k, c, v) VALUES (2, 1, 'b')", "another partition");
  co_await refused(
      "BEGIN BATCH INSERT INTO t (k, c, v) VALUES (1, 1, 'b'); "
      "INSERT INTO t (k, c, v) VALUES (2, 1, 'b'); APPLY BATCH",
      "another partition");
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bytes(good.text());
    how.context = Bytes::copy_of(std::string_view(bytes).substr(0, i));
    if (i > 0) co_await refused(write, "no context of this cluster");
    bytes[i] = static_cast<char>(bytes[i] ^ 0x10);
    how.context = Bytes::copy_of(bytes);
    co_await refused(write, "no context of this cluster");
    co_await refused("SELECT v FROM t WHERE k = 1 AND c = 1", "no context of this cluster");
  }
  EXPECT_EQ((co_await story.run("SELECT v FROM t")).text(), "'a'");
  EXPECT_EQ((co_await story.run("SELECT v FROM u")).text(), "");
  // Another row of its partition may be written under it.
  how.context = good;
  EXPECT_EQ((co_await story.run("INSERT INTO t (k, c, v) VALUES (1, 2, 'b')", how)).text(), "");
  EXPECT_EQ((co_await story.run(write, how)).text(), "");
  co_await story.must("TRUNCATE t");
  co_await refused(write, "truncated");
}
TEST(Contexts, OfElsewhereOrMadeUpAreRefused) {
  tell(refuses_contexts_of_elsewhere);
}

Task<void> orders_by_causality(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v text)");
  How how;
  how.timestamp_us = 1000;
  co_await story.run("INSERT INTO t (k, v) VALUES (1, 'first')", how);
  // A driver whose clock is behind does not lose what it writes afterwards.
  how.timestamp_us = 10;
  co_await story.run("INSERT INTO t (k, v) VALUES (1, 'second')", how);
  EXPECT_EQ((co_await story.run("SELECT v FROM t WHERE k = 1")).text(), "'second'");
}
TEST(Contexts, AClientsClockDoesNotOverruleWhatHappenedBefore) {
  tell(orders_by_causality);
}

// A delete that every replica has seen is gone, and what it deleted may not have come to all of
// them: in no version of the row, it is in its floor.
TEST(Contexts, CarryTheTimeOfWhatTheirReaderSawDeleted) {
  auto table = std::make_shared<model::Table>();
  const RowLayout layout(table, {});
  const RowReader reader(layout, causality::WallTime{1});
  storage::RowRead read;
  read.floor = causality::Timestamp{1000};
  EXPECT_EQ(reader.context_of(read, {}).floor, causality::Timestamp{1000});
  // What is there counts as well.
  causality::Version version;
  version.dot = {causality::actor_of(1, 1), 1};
  version.timestamp = causality::Timestamp{2000};
  read.partition.absorb({}, model::kRowMarker, causality::CellStore({version}, {}));
  EXPECT_EQ(reader.context_of(read, {}).floor, causality::Timestamp{2000});
}

// A read sees what is in memory, and waits for it; the clock it is shown with was taken before.
TEST(Contexts, HaveSeenEveryVersionThatIsShown) {
  auto table = std::make_shared<model::Table>();
  table->columns.push_back({.name = "v",
                            .kind = model::ColumnKind::regular,
                            .type = model::DataType::text(),
                            .id = causality::ColumnId{1}});
  table->next_column_id = 2;
  const RowLayout layout(table, {false});
  const RowReader reader(layout, causality::WallTime{1});
  storage::RowRead read;
  causality::Version version;
  version.dot = {causality::actor_of(1, 1), 7};
  version.timestamp = causality::Timestamp{2000};
  read.partition.absorb({}, causality::ColumnId{1}, causality::CellStore({version}, {}));
  EXPECT_TRUE(reader.context_of(read, {}).dots.contains(version.dot));
}

Task<void> refuses_other_epochs(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v text)");
  for (const std::uint32_t epoch : {2U, 1'000'000U}) {
    How how;
    causality::Context context;
    context.epoch = causality::Epoch{epoch};
    const base::Bytes key = base::Bytes::copy_of(std::string("\0\0\0\1", 4));
    const auto catalog = story.catalog().snapshot();
    how.context = seal(context, *catalog->storage_of(catalog->schema().find_table("ks", "t")->id),
                       model::make_partition({}, ring::token_of(key), key).view(),
                       story.catalog().context_secret());
    EXPECT_EQ(code_of(co_await story.run("INSERT INTO t (k, v) VALUES (1, 'a')", how)),
              ErrorCode::invalid);
    EXPECT_EQ(
        code_of(co_await story.run("INSERT INTO t (k, v) VALUES (1, 'a') USING TIMESTAMP 5", how)),
        ErrorCode::invalid);
    EXPECT_EQ(code_of(co_await story.run("BEGIN BATCH INSERT INTO t (k, v) VALUES (1, 'a'); "
                                         "INSERT INTO t (k, v) VALUES (2, 'b'); APPLY BATCH",
                                         how)),
              ErrorCode::invalid);
  }
  EXPECT_EQ((co_await story.run("SELECT v FROM t")).text(), "");
}
TEST(Contexts, OfAnEpochThatIsNotHereYetAreRefused) {
  tell(refuses_other_epochs);
}

}  // namespace
}  // namespace helenus::cql::testing
