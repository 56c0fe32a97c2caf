// Stories about statements that name very many rows: all that IN may name, and no more.
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/execute/query_story_test_support.h"
#include "runtime/task_group.h"

namespace helenus::cql::testing {
namespace {

using protocol::ErrorCode;
using runtime::Task;
using ::testing::HasSubstr;

// As docs/cql.md says.
constexpr int kKeysOfIn = 10'000;

std::string keys(int from, int to) {
  std::vector<int> numbers(static_cast<std::size_t>(to - from));
  std::iota(numbers.begin(), numbers.end(), from);
  return fmt::format("({})", fmt::join(numbers, ", "));
}

Task<void> expect_count(QueryStory& story, std::string where, int count) {
  const Told told = co_await story.run("SELECT count(*) FROM t WHERE k = 1" + where);
  EXPECT_EQ(told.text(), std::to_string(count)) << where;
}

Task<void> make_rows(QueryStory& story) {
  co_await begin(story);
  co_await story.must(
      "CREATE TABLE t (k int, c int, s int static, v1 int, v2 int, v3 int, v4 int, v5 int, v6 int, "
      "v7 int, v8 int, PRIMARY KEY (k, c))");
  co_await story.must("INSERT INTO t (k, c, v1) VALUES (1, 10000, 1)");
  co_await story.must(
      "UPDATE t SET v1 = 1, v2 = 2, v3 = 3, v4 = 4, v5 = 5, v6 = 6, v7 = 7, v8 = 8 WHERE k = 1 AND "
      "c IN " +
      keys(0, kKeysOfIn));
}

Task<void> write_all_that_in_names(QueryStory& story) {
  co_await make_rows(story);
  co_await expect_count(story, "", kKeysOfIn + 1);
  EXPECT_EQ((co_await story.run("SELECT v1, v8 FROM t WHERE k = 1 AND c = 9999")).text(), "1, 8");
  co_await story.must("DELETE v1 FROM t WHERE k = 1 AND c IN " + keys(0, kKeysOfIn));
  EXPECT_EQ((co_await story.run("SELECT v1, v8 FROM t WHERE k = 1 AND c = 77")).text(), "null, 8");
  co_await story.must("DELETE FROM t WHERE k = 1 AND c IN " + keys(0, 5000));
  co_await expect_count(story, "", kKeysOfIn - 5000 + 1);
  co_await expect_count(story, " AND c < 5000", 0);
  co_await story.must("DELETE FROM t WHERE k = 1 AND c IN " + keys(0, kKeysOfIn));
  co_await expect_count(story, "", 1);
  co_await story.restart();
  co_await expect_count(story, "", 1);
}
// Binding a long value is work of many turns: others are answered between them. The last element is
// none, so that it is refused without a wait for the disk.
Task<void> bind_a_long_set(QueryStory& story, std::string insert, bool& is_over) {
  constexpr int kElements = 3000;
  std::vector<base::Bytes> numbers;
  for (int i = kElements; i > 0; --i) numbers.push_back(model::int_value(i));
  numbers.push_back(model::smallint_value(0));
  const base::Bytes set = model::compose_list(numbers);
  const auto prepared = prepared_of(co_await story.prepare(insert));
  const Told told = co_await story.execute(prepared.id, {protocol::Value::of(set.view())});
  EXPECT_EQ(told.text(), "0x2200: Expected 4 or 0 byte int (2)");
  is_over = true;
}

Task<void> reads_beside_a_long_value(QueryStory& story) {
  constexpr int kMany = 20;
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v set<int>, f frozen<set<int>>)");
  co_await story.must("CREATE TABLE u (k int PRIMARY KEY, v int)");
  co_await story.must("INSERT INTO u (k, v) VALUES (1, 7)");
  for (const std::string column : {"v", "f"}) {
    bool is_over = false;
    runtime::TaskGroup others(story.runtime());
    others.spawn(bind_a_long_set(story, fmt::format("INSERT INTO t (k, {}) VALUES (1, ?)", column),
                                 is_over));
    int reads = 0;
    while (reads < kMany) {
      EXPECT_EQ((co_await story.run("SELECT v FROM u WHERE k = 1")).text(), "7");
      if (is_over) break;
      ++reads;
    }
    EXPECT_EQ(reads, kMany) << column;
    co_await others.join();
  }
}
TEST(LargeWrites, OthersAreAnsweredWhileALongValueIsBound) {
  tell(reads_beside_a_long_value);
}

// What says that it has more elements than a request may change is not looked through.
Task<void> refuses_at_once(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v set<int>, l list<int>)");
  const base::Bytes many =
      model::compose_list(std::vector<base::Bytes>(200'001, model::int_value(1)));
  for (const std::string assignment : {"v = ?", "v = v + ?", "v = v - ?", "l = ?", "l = ? + l"}) {
    const auto prepared =
        prepared_of(co_await story.prepare("UPDATE t SET " + assignment + " WHERE k = 1"));
    const Told told = co_await story.execute(prepared.id, {protocol::Value::of(many.view())});
    EXPECT_EQ(told.text(), "0x2200: Batch too large") << assignment;
  }
}
TEST(LargeWrites, ACollectionOfMoreElementsThanARequestMayChangeIsRefused) {
  tell(refuses_at_once);
}

TEST(LargeWrites, OneStatementWritesAndDeletesAllThatInNames) {
  tell(write_all_that_in_names);
}

Task<void> write_with_timestamps(QueryStory& story) {
  co_await make_rows(story);
  // Older than what is there, but for the rows that are written anew.
  co_await story.must("DELETE FROM t USING TIMESTAMP 10 WHERE k = 1 AND c IN " +
                      keys(0, kKeysOfIn));
  co_await expect_count(story, "", kKeysOfIn + 1);
  co_await story.must("DELETE FROM t USING TIMESTAMP 9000000000000000 WHERE k = 1 AND c IN " +
                      keys(0, 5000));
  co_await expect_count(story, "", kKeysOfIn - 5000 + 1);
  co_await story.must(
      "UPDATE t USING TIMESTAMP 8000000000000000 SET v1 = 1, v2 = 2 WHERE k = 1 "
      "AND c IN " +
      keys(0, kKeysOfIn));
  co_await expect_count(story, " AND c < 5000", 0);
  EXPECT_EQ((co_await story.run("SELECT v1, v2, v3 FROM t WHERE k = 1 AND c = 7000")).text(),
            "1, 2, 3");
  co_await story.must("DELETE FROM t USING TIMESTAMP 9000000000000000 WHERE k = 1 AND c >= 5000");
  co_await expect_count(story, "", 0);
}
TEST(LargeWrites, SoDoThoseWithTimestampsOfTheirOwn) {
  tell(write_with_timestamps);
}

Task<void> refuse_more(QueryStory& story) {
  co_await make_rows(story);
  const Told told =
      co_await story.run("DELETE FROM t WHERE k = 1 AND c IN " + keys(0, kKeysOfIn + 1));
  EXPECT_EQ(code_of(told), ErrorCode::invalid);
  EXPECT_THAT(told.text(), HasSubstr("10000"));
  // More rows than one mutation deletes, though each statement names no more than it may.
  std::string batch = "BEGIN UNLOGGED BATCH ";
  for (int i = 0; i < 7; ++i) {
    batch +=
        "DELETE FROM t WHERE k = 1 AND c IN " + keys(i * kKeysOfIn, (i + 1) * kKeysOfIn) + "; ";
  }
  const Told too_many = co_await story.run(batch + "APPLY BATCH");
  EXPECT_EQ(code_of(too_many), ErrorCode::invalid);
  EXPECT_THAT(too_many.text(), HasSubstr("65536"));
  co_await expect_count(story, "", kKeysOfIn + 1);
}
TEST(LargeWrites, MoreThanThatIsInvalidAndChangesNothing) {
  tell(refuse_more);
}

// Of which each is found by its name, and must not be named twice.
Task<void> name_many_columns(QueryStory& story) {
  co_await begin(story);
  std::vector<std::string> names(5000);
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = fmt::format("c{}", i);
  const std::string half =
      fmt::format("{} int", fmt::join(names.begin(), names.begin() + 2500, " int, "));
  const std::string rest =
      fmt::format("{} int", fmt::join(names.begin() + 2500, names.end(), " int, "));
  co_await story.must(fmt::format("CREATE TABLE t (k int PRIMARY KEY, {})", half));
  co_await story.must(fmt::format("ALTER TABLE t ADD ({})", rest));
  EXPECT_EQ(code_of(co_await story.run("ALTER TABLE t ADD (x int, c7 int)")), ErrorCode::invalid);
  EXPECT_EQ(code_of(co_await story.run("ALTER TABLE t ADD (x int, x int)")), ErrorCode::invalid);
  std::string ones;
  for (std::size_t i = 0; i < names.size(); ++i) ones += fmt::format(", {}", i);
  const std::string all = fmt::format("{}", fmt::join(names, ", "));
  co_await story.must(fmt::format("INSERT INTO t (k, {}) VALUES (1{})", all, ones));
  EXPECT_EQ((co_await story.run("SELECT c0, c2499, c4999 FROM t WHERE k = 1")).text(),
            "0, 2499, 4999");
  const Told twice =
      co_await story.run(fmt::format("INSERT INTO t (k, {}, c9) VALUES (1{}, 1)", all, ones));
  EXPECT_THAT(twice.text(), HasSubstr("Multiple definitions found for column c9"));
  co_await story.must(
      fmt::format("ALTER TABLE t DROP ({})", fmt::join(names.begin() + 1, names.end(), ", ")));
  EXPECT_EQ((co_await story.run("SELECT * FROM t WHERE k = 1")).text(), "1, 0");
  const Told gone = co_await story.run("ALTER TABLE t DROP (c0, c0)");
  EXPECT_EQ(code_of(gone), ErrorCode::invalid);
}
TEST(LargeWrites, AStatementNamesManyColumns) {
  tell(name_many_columns);
}

}  // namespace
}  // namespace helenus::cql::testing
