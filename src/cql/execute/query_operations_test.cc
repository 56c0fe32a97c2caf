// Stories about operation ids over requests: a request that comes again takes effect once.
#include <algorithm>
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/codec.h"
#include "base/uuid.h"
#include "cql/execute/query_story_test_support.h"
#include "model/value.h"
#include "runtime/contract/world.h"

namespace helenus::cql::testing {
namespace {

using base::Bytes;
using protocol::ErrorCode;
using runtime::Task;
using ::testing::HasSubstr;

// A UUIDv7 of the node's time and so many milliseconds.
Bytes operation_at(QueryStory& story, std::uint64_t number, std::int64_t ahead_ms = 0) {
  const auto now = story.runtime().clock.wall_now().since_origin() / std::chrono::milliseconds(1);
  causality::OperationId id{};
  base::store_be(id.data(), static_cast<std::uint64_t>(now + ahead_ms) << 16 | 0x7000U);
  base::store_be(id.data() + 8, number | std::uint64_t{1} << 63);
  return Bytes::copy_of(id);
}

How as_operation(Bytes id) {
  How how;
  how.operation = std::move(id);
  return how;
}

Task<std::string> counted(QueryStory& story, int key) {
  co_return (co_await story.run(fmt::format("SELECT n FROM c WHERE k = {}", key))).text();
}

Task<void> begin_counters(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE c (k int PRIMARY KEY, n counter)");
}

Task<void> counts_once(QueryStory& story) {
  co_await begin_counters(story);
  const How once = as_operation(operation_at(story, 1));
  const How other = as_operation(operation_at(story, 2));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ((co_await story.run("UPDATE c SET n = n + 5 WHERE k = 1", once)).text(), "");
  }
  co_await story.run("UPDATE c SET n = n + 5 WHERE k = 1", other);
  EXPECT_EQ(co_await counted(story, 1), "10");
  // Without an id each counts.
  co_await story.must("UPDATE c SET n = n - 1 WHERE k = 1");
  co_await story.must("UPDATE c SET n = n - 1 WHERE k = 1");
  EXPECT_EQ(co_await counted(story, 1), "8");
  co_await story.restart();
  co_await story.run("UPDATE c SET n = n + 5 WHERE k = 1", once);
  co_await story.run("UPDATE c SET n = n + 5 WHERE k = 1", other);
  EXPECT_EQ(co_await counted(story, 1), "8");
}
TEST(Operations, OfOneIdCountOnceAfterARestartToo) {
  tell(counts_once);
}

Task<void> counts_a_batch_once(QueryStory& story) {
  co_await begin_counters(story);
  const char* const batch =
      "BEGIN COUNTER BATCH UPDATE c SET n = n + 1 WHERE k = 1; UPDATE c SET n = n + 1 WHERE k = 2; "
      "UPDATE c SET n = n + 1 WHERE k = 3; UPDATE c SET n = n + 1 WHERE k = 1; APPLY BATCH";
  const How how = as_operation(operation_at(story, 1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ((co_await story.run(batch, how)).text(), "");
  EXPECT_EQ(co_await counted(story, 1), "2");
  EXPECT_EQ(co_await counted(story, 2), "1");
  EXPECT_EQ(co_await counted(story, 3), "1");
}
TEST(Operations, OfABatchCountOnceInEachOfItsPartitions) {
  tell(counts_a_batch_once);
}

Task<void> takes_ids_in_statements(QueryStory& story) {
  co_await begin_counters(story);
  const Bytes id = operation_at(story, 1);
  causality::OperationId octets{};
  std::ranges::copy(id.view(), octets.begin());
  const std::string as_uuid = base::Uuid(octets).to_string();
  for (const std::string& text : {as_uuid, "0x" + base::to_hex(id)}) {
    co_await story.must(fmt::format("UPDATE c USING OPERATION {} SET n = n + 1 WHERE k = 1", text));
  }
  EXPECT_EQ(co_await counted(story, 1), "1");
  const Told prepared =
      co_await story.prepare("UPDATE c USING OPERATION ? SET n = n + 1 WHERE k = 1");
  const Bytes statement = std::get<protocol::PreparedResult>(prepared.message).id;
  EXPECT_EQ((co_await story.execute(statement, {protocol::Value::of(id)})).text(), "");
  EXPECT_EQ((co_await story.execute(statement, {protocol::Value::unset()})).text(), "");
  EXPECT_EQ(co_await counted(story, 1), "2");
  EXPECT_THAT((co_await story.execute(statement, {protocol::Value::null()})).text(),
              HasSubstr("null value of operation"));
  EXPECT_THAT((co_await story.execute(statement, {protocol::Value::of(id)},
                                      as_operation(operation_at(story, 2))))
                  .text(),
              HasSubstr("one of them, please"));
  co_await story.must(fmt::format(
      "BEGIN COUNTER BATCH USING OPERATION {} UPDATE c SET n = n + 1 WHERE k = 1; APPLY BATCH",
      as_uuid));
  EXPECT_EQ(co_await counted(story, 1), "2");
  EXPECT_THAT(
      (co_await story.run(fmt::format("BEGIN COUNTER BATCH UPDATE c USING OPERATION {} SET n = n + "
                                      "1 WHERE k = 1; APPLY BATCH",
                                      as_uuid)))
          .text(),
      HasSubstr("of a whole BATCH"));
}
TEST(Operations, AreNamedByStatementsToo) {
  tell(takes_ids_in_statements);
}

Task<void> refuses_what_is_no_id(QueryStory& story) {
  co_await begin_counters(story);
  const auto refused = [&](Bytes id, const char* words) -> Task<void> {
    const Told told =
        co_await story.run("UPDATE c SET n = n + 1 WHERE k = 1", as_operation(std::move(id)));
    EXPECT_TRUE(told.error && told.error->code == ErrorCode::invalid) << told.text();
    EXPECT_THAT(told.text(), HasSubstr(words));
  };
  co_await refused(Bytes::copy_of("short"), "has 16 bytes, and this one has 5");
  co_await refused(Bytes(), "has 16 bytes, and this one has 0");
  const Bytes good = operation_at(story, 1);
  std::string version_4(good.text());
  version_4[6] = 0x4c;
  co_await refused(Bytes::copy_of(version_4), "of version 4");
  co_await refused(operation_at(story, 1, 3'600'000), "ms in the future");
  co_await refused(operation_at(story, 1, -3'600'000), "took effect is not known");
  How behind = as_operation(operation_at(story, 1, -3'600'000));
  behind.timestamp_us = 1000;
  EXPECT_THAT((co_await story.run("UPDATE c SET n = n + 1 WHERE k = 1", behind)).text(),
              HasSubstr("the clock of the client is behind"));
  EXPECT_EQ((co_await story.run("SELECT n FROM c")).text(), "");
  // The same id for something else.
  const How how = as_operation(good);
  EXPECT_EQ((co_await story.run("UPDATE c SET n = n + 1 WHERE k = 1", how)).text(), "");
  EXPECT_THAT((co_await story.run("UPDATE c SET n = n + 2 WHERE k = 1", how)).text(),
              HasSubstr("another operation"));
  // A read has no use for it.
  EXPECT_EQ((co_await story.run("SELECT n FROM c", as_operation(Bytes::copy_of("x")))).text(), "1");
}
TEST(Operations, ThatAreNoneAreRefused) {
  tell(refuses_what_is_no_id);
}

Task<void> writes_once(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v text)");
  How how = as_operation(operation_at(story, 1));
  how.context = Bytes();
  const Told first = co_await story.run("INSERT INTO t (k, v) VALUES (1, 'a')", how);
  co_await story.must("UPDATE t SET v = 'b' WHERE k = 1");
  // The same answer, and the later write stays.
  const Told again = co_await story.run("INSERT INTO t (k, v) VALUES (1, 'a')", how);
  EXPECT_TRUE(first.context.has_value());
  EXPECT_TRUE(again.context.has_value());
  EXPECT_EQ((co_await story.run("SELECT v FROM t WHERE k = 1")).text(), "'b'");
  how.context.reset();
  how.timestamp_us = 5;
  const How late = as_operation(operation_at(story, 2));
  for (int i = 0; i < 2; ++i) {
    co_await story.run(
        "BEGIN BATCH UPDATE t USING TIMESTAMP 99999999999999999 SET v = 'c' WHERE "
        "k = 1; UPDATE t USING TIMESTAMP 99999999999999999 SET v = 'd' WHERE k = 2; "
        "APPLY BATCH",
        late);
  }
  EXPECT_EQ((co_await story.run("SELECT v FROM t WHERE k = 1")).text(), "'c'");
  EXPECT_EQ((co_await story.run("SELECT v FROM t WHERE k = 2")).text(), "'d'");
}
TEST(Operations, OfPlainRowsTakeEffectOnceAndAreAnsweredAlike) {
  tell(writes_once);
}

}  // namespace
}  // namespace helenus::cql::testing
