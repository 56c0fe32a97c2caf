// Stories about requests: prepared statements, batches, values by name, pages, contexts, restarts.
#include "cql/query_processor.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "causality/codec.h"
#include "cql/paging_state.h"
#include "cql/query_story_test_support.h"
#include "model/partition_key.h"
#include "ring/murmur3.h"
#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"

namespace helenus::cql::testing {
namespace {

using base::Bytes;
using protocol::BatchStatement;
using protocol::ErrorCode;
using protocol::PreparedResult;
using protocol::Value;
using runtime::Task;
using storage::testing::LogWorld;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Task<void> begin(QueryStory& story) {
  co_await story.must(
      "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  co_await story.must("USE ks");
}

ErrorCode code_of(const Told& told) {
  EXPECT_TRUE(told.error.has_value()) << told.text();
  return told.error ? told.error->code : ErrorCode::server_error;
}

PreparedResult prepared_of(const Told& told) {
  const auto* prepared = std::get_if<PreparedResult>(&told.message);
  EXPECT_NE(prepared, nullptr) << told.text();
  return prepared == nullptr ? PreparedResult() : *prepared;
}

void tell(const QueryStory::Body& body, QueryProcessorOptions options = {}) {
  LogWorld world;
  QueryStory::tell(world, body, options);
}

// ---- Prepared statements ----

Task<void> prepares_and_executes(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (a int, b text, c int, v text, PRIMARY KEY ((a, b), c))");
  const PreparedResult insert =
      prepared_of(co_await story.prepare("INSERT INTO t (c, b, a, v) VALUES (?, ?, ?, :value)"));
  EXPECT_THAT(insert.partition_key_markers, ElementsAre(2, 1));
  EXPECT_EQ(insert.markers.size(), 4U);
  EXPECT_EQ(insert.markers[0].name, "c");
  EXPECT_EQ(insert.markers[3].name, "value");
  EXPECT_TRUE(insert.columns.empty());
  const std::vector<Bytes> values = {model::int_value(7), model::text_value("b"),
                                     model::int_value(1), model::text_value("v")};
  std::vector<Value> bound;
  for (const Bytes& value : values) bound.push_back(Value::of(value.view()));
  const Told inserted = co_await story.execute(insert.id, bound);
  EXPECT_FALSE(inserted.error.has_value()) << inserted.text();

  const PreparedResult select =
      prepared_of(co_await story.prepare("SELECT v, c FROM t WHERE a = ? AND b = 'b'"));
  // Drivers cannot route by a key that is not bound.
  EXPECT_TRUE(select.partition_key_markers.empty());
  EXPECT_EQ(select.columns.size(), 2U);
  const Told selected = co_await story.execute(select.id, {Value::of(values[2].view())});
  EXPECT_EQ(selected.text(), "'v', 7");
  How how;
  how.skip_metadata = true;
  const Told bare = co_await story.execute(select.id, {Value::of(values[2].view())}, how);
  EXPECT_TRUE(bare.columns.empty());
  EXPECT_EQ(bare.rows.size(), 1U);
  // The same text in the same keyspace has the same id.
  const PreparedResult again =
      prepared_of(co_await story.prepare("SELECT v, c FROM t WHERE a = ? AND b = 'b'"));
  EXPECT_EQ(again.id, select.id);
}
TEST(Prepared, StatementsBindTheirKeysByMarkers) {
  tell(prepares_and_executes);
}

// A statement about one row by its key goes the short way, unless the request has a payload.
Task<void> is_answered_alike(QueryStory& story, std::string statement, std::vector<Value> values,
                             How how) {
  const PreparedResult prepared = prepared_of(co_await story.prepare(statement));
  const Told shortly = co_await story.execute(prepared.id, values, how);
  how.context = Bytes();
  const Told at_length = co_await story.execute(prepared.id, values, how);
  EXPECT_EQ(shortly.text(), at_length.text()) << statement;
  EXPECT_EQ(shortly.message, at_length.message) << statement;
}

std::vector<How> ways_to_ask() {
  std::vector<How> ways(5);
  ways[1].page_size = 1;
  ways[1].skip_metadata = true;
  ways[2].timestamp_us = std::numeric_limits<std::int64_t>::min();
  ways[3].consistency = protocol::Consistency::any;
  ways[4].consistency = protocol::Consistency::serial;
  return ways;
}

Task<void> answers_alike_both_ways(QueryStory& story) {
  co_await begin(story);
  co_await story.must(
      "CREATE TABLE t (k text, c int, s int STATIC, v text, w int, PRIMARY KEY (k, c))");
  const std::vector<std::string> of_values = {
      "INSERT INTO t (v, w, k, c) VALUES (?, ?, ?, ?)",
      "INSERT INTO t (v, s, k, c) VALUES (?, ?, ?, ?)",
      "UPDATE t USING TTL 100 SET v = ?, w = ? WHERE k = ? AND c = ?",
  };
  const std::string point = "SELECT w, c, v, k FROM t WHERE k = ? AND c = ?";
  const std::vector<std::string> of_keys = {
      "SELECT * FROM t WHERE k = ? AND c = ?", point,
      "DELETE v FROM t WHERE k = ? AND c = ?", point,
      "DELETE FROM t WHERE k = ? AND c = ?",   point,
  };
  const Bytes text = model::text_value("a");
  const Bytes number = model::int_value(1);
  const Bytes bad = Bytes::copy_of("\xff\xfe");
  const Bytes long_key = Bytes::copy_of(std::string(65'530, 'x'));
  const std::vector<Value> texts = {Value::of(text.view()),
                                    Value::null(),
                                    Value::unset(),
                                    Value::of(bad.view()),
                                    Value::of(long_key.view()),
                                    Value::of(base::ByteView())};
  const std::vector<Value> numbers = {Value::of(number.view()), Value::null(), Value::unset(),
                                      Value::of(bad.view())};
  const std::vector<How> ways = ways_to_ask();
  for (const How& how : ways) {
    for (const Value& key : texts) {
      for (const Value& row : numbers) {
        for (const std::string& statement : of_values) {
          for (const Value& value : numbers) {
            co_await is_answered_alike(story, statement, {texts[0], value, key, row}, how);
          }
        }
        for (const std::string& statement : of_keys) {
          co_await is_answered_alike(story, statement, {key, row}, how);
        }
      }
    }
    co_await is_answered_alike(story, point, {texts[0]}, how);
    co_await is_answered_alike(story, point, {texts[0], numbers[0], numbers[0]}, how);
  }
}
TEST(Prepared, AStatementAboutOneRowIsAnsweredAlikeByBothWays) {
  tell(answers_alike_both_ways);
}

Task<void> tells_unprepared(QueryStory& story) {
  co_await begin(story);
  const Bytes unknown = Bytes::copy_of("0123456789abcdef");
  const Told told = co_await story.execute(unknown, {});
  EXPECT_EQ(code_of(told), ErrorCode::unprepared);
  const auto* details = std::get_if<protocol::UnpreparedDetails>(&told.error->details);
  EXPECT_TRUE(details != nullptr && details->id == unknown);
  const Told odd = co_await story.execute(Bytes::copy_of("short"), {});
  EXPECT_EQ(code_of(odd), ErrorCode::unprepared);
}
TEST(Prepared, AnIdThatIsNotKnownIsToldWithIt) {
  tell(tells_unprepared);
}

Task<void> survives_schema_changes(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v int)");
  const PreparedResult all = prepared_of(co_await story.prepare("SELECT * FROM t"));
  const PreparedResult one = prepared_of(co_await story.prepare("SELECT v FROM t"));
  const PreparedResult write =
      prepared_of(co_await story.prepare("UPDATE t SET v = 1 WHERE k = 1"));
  co_await story.must("ALTER TABLE t ADD w int");
  // What a client knows of its columns still holds: planned again behind its back.
  EXPECT_FALSE((co_await story.execute(one.id, {})).error.has_value());
  EXPECT_FALSE((co_await story.execute(write.id, {})).error.has_value());
  // Here it does not.
  EXPECT_EQ(code_of(co_await story.execute(all.id, {})), ErrorCode::unprepared);
  const PreparedResult anew = prepared_of(co_await story.prepare("SELECT * FROM t"));
  EXPECT_EQ(anew.id, all.id);
  EXPECT_EQ(anew.columns.size(), 3U);
  EXPECT_EQ((co_await story.execute(anew.id, {})).text(), "1, 1, null");
  co_await story.must("TRUNCATE t");
  EXPECT_EQ((co_await story.execute(one.id, {})).text(), "");
  co_await story.must("DROP TABLE t");
  EXPECT_EQ(code_of(co_await story.execute(one.id, {})), ErrorCode::unprepared);
}
TEST(Prepared, SchemaChangesPlanAgainOrAskToPrepareAgain) {
  tell(survives_schema_changes);
}

// Two clients hold one prepared id; the second did not notice that the table has changed.
Task<void> shows_what_rows_are(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v int)");
  co_await story.must("INSERT INTO t (k, v) VALUES (1, 2)");
  const PreparedResult all = prepared_of(co_await story.prepare("SELECT * FROM t"));
  const PreparedResult one = prepared_of(co_await story.prepare("SELECT v FROM t"));
  How bare;
  bare.skip_metadata = true;
  const std::vector<std::string> before = {"k", "v"};
  EXPECT_EQ((co_await story.execute(all.id, {}, bare)).columns, before);
  EXPECT_TRUE((co_await story.execute(one.id, {}, bare)).columns.empty()) << "these cannot change";
  co_await story.must("ALTER TABLE t ADD a int");
  EXPECT_EQ(code_of(co_await story.execute(all.id, {}, bare)), ErrorCode::unprepared);
  EXPECT_EQ(code_of(co_await story.execute(all.id, {}, bare)), ErrorCode::unprepared)
      << "until it is prepared again";
  EXPECT_EQ(prepared_of(co_await story.prepare("SELECT * FROM t")).id, all.id);
  // The second client was told of k and v, and reads k, a and v as what they are.
  const Told told = co_await story.execute(all.id, {}, bare);
  const std::vector<std::string> after = {"k", "a", "v"};
  EXPECT_EQ(told.columns, after);
  EXPECT_EQ(told.text(), "1, null, 2");
  // A column that comes back with another type is another column, too.
  co_await story.must("ALTER TABLE t DROP v");
  EXPECT_EQ(code_of(co_await story.execute(one.id, {}, bare)), ErrorCode::unprepared);
  co_await story.must("ALTER TABLE t ADD v blob");
  EXPECT_EQ(code_of(co_await story.execute(one.id, {}, bare)), ErrorCode::unprepared);
  std::ignore = prepared_of(co_await story.prepare("SELECT v FROM t"));
  EXPECT_EQ((co_await story.execute(one.id, {}, bare)).columns.size(), 1U);
}
TEST(Prepared, RowsWhoseColumnsMayHaveChangedSayWhatTheyAre) {
  tell(shows_what_rows_are);
}

Task<void> evicts_the_oldest(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v int)");
  const PreparedResult first = prepared_of(co_await story.prepare("SELECT v FROM t"));
  const PreparedResult second = prepared_of(co_await story.prepare("SELECT k FROM t"));
  EXPECT_FALSE((co_await story.execute(first.id, {})).error.has_value());
  co_await story.prepare("SELECT k, v FROM t");
  EXPECT_EQ(story.processor().prepared_count(), 2U);
  EXPECT_EQ(story.processor().prepared_evicted(), 1U);
  EXPECT_FALSE((co_await story.execute(first.id, {})).error.has_value());
  EXPECT_EQ(code_of(co_await story.execute(second.id, {})), ErrorCode::unprepared);
}
TEST(Prepared, TheOnesUsedLongestAgoGoFirst) {
  QueryProcessorOptions options;
  options.prepared.statements_max = 2;
  tell(evicts_the_oldest, options);
}

Task<void> binds_by_name(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v text)");
  co_await story.must("INSERT INTO t (k, v) VALUES (1, 'one')");
  const Bytes key = model::int_value(1);
  protocol::QueryRequest query;
  query.text = "SELECT v FROM t WHERE k = :key";
  query.parameters.values.push_back(Value::null());
  query.parameters.values.push_back(Value::of(key.view()));
  query.parameters.names = {"other", "key"};
  protocol::Request request;
  request.message = query;
  EXPECT_EQ((co_await story.send(request)).text(), "'one'");
  // A column's name serves for a marker without one.
  query.text = "SELECT v FROM t WHERE k = ?";
  query.parameters.names = {"other", "k"};
  request.message = query;
  EXPECT_EQ((co_await story.send(request)).text(), "'one'");
  query.parameters.names = {"other", "another"};
  request.message = query;
  EXPECT_EQ(code_of(co_await story.send(request)), ErrorCode::invalid);
}
TEST(Query, ValuesMayComeByName) {
  tell(binds_by_name);
}

Task<void> refuses_bad_values(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v text, l list<int>)");
  const PreparedResult insert =
      prepared_of(co_await story.prepare("INSERT INTO t (k, v, l) VALUES (?, ?, ?)"));
  const Bytes key = model::int_value(1);
  const Bytes three = Bytes::copy_of("abc");
  const Bytes broken = Bytes::copy_of("\xff");
  const Told short_int =
      co_await story.execute(insert.id, {Value::of(three.view()), Value::null(), Value::null()});
  EXPECT_THAT(short_int.text(), HasSubstr("0x2200: Expected 4 or 0 byte int (3)"));
  const Told bad_text = co_await story.execute(
      insert.id, {Value::of(key.view()), Value::of(broken.view()), Value::null()});
  EXPECT_EQ(code_of(bad_text), ErrorCode::invalid);
  const Told bad_list = co_await story.execute(
      insert.id, {Value::of(key.view()), Value::null(), Value::of(three.view())});
  EXPECT_EQ(code_of(bad_list), ErrorCode::invalid);
  EXPECT_EQ((co_await story.run("SELECT * FROM t")).text(), "");
}
TEST(Query, BytesThatAreNoValueOfTheirTypeAreRefused) {
  tell(refuses_bad_values);
}

Task<void> refuses_levels(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v text)");
  How how;
  how.consistency = protocol::Consistency::any;
  EXPECT_THAT((co_await story.run("SELECT * FROM t", how)).text(),
              HasSubstr("ANY ConsistencyLevel is only supported for writes"));
  how.consistency = protocol::Consistency::serial;
  EXPECT_THAT((co_await story.run("INSERT INTO t (k) VALUES (1)", how)).text(),
              HasSubstr("You must use conditional updates for serializable writes"));
  EXPECT_FALSE((co_await story.run("SELECT * FROM t", how)).error.has_value());
  co_await story.run("USE ks");
  story.session().keyspace.clear();
  EXPECT_THAT((co_await story.run("SELECT * FROM t")).text(),
              HasSubstr("0x2200: No keyspace has been specified"));
}
TEST(Query, LevelsAndKeyspacesThatDoNotSuitAreRefused) {
  tell(refuses_levels);
}

// ---- Batches by opcode ----

Task<void> runs_batches(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))");
  const PreparedResult insert =
      prepared_of(co_await story.prepare("INSERT INTO t (k, c, v) VALUES (?, 1, ?)"));
  const Bytes one = model::int_value(1);
  const Bytes text = model::text_value("bound");
  protocol::BatchRequest batch;
  BatchStatement prepared;
  prepared.prepared = true;
  prepared.id = insert.id.view();
  prepared.values = {Value::of(one.view()), Value::of(text.view())};
  BatchStatement plain;
  plain.text = "INSERT INTO t (k, c, v) VALUES (2, 2, 'text')";
  batch.statements = {prepared, plain};
  batch.default_timestamp_us = 1234;
  protocol::Request request;
  request.message = batch;
  const Told told = co_await story.send(request);
  EXPECT_FALSE(told.error.has_value()) << told.text();
  EXPECT_EQ((co_await story.run("SELECT c, v, writetime(v) FROM t WHERE k IN (1, 2)")).text(),
            "1, 'bound', 1234; 2, 'text', 1234");

  BatchStatement select;
  select.text = "SELECT * FROM t";
  batch.statements = {select};
  request.message = batch;
  EXPECT_THAT((co_await story.send(request)).text(),
              HasSubstr("Invalid statement in batch: only UPDATE, INSERT and DELETE"));
  prepared.values.pop_back();
  batch.statements = {prepared};
  request.message = batch;
  EXPECT_THAT((co_await story.send(request)).text(),
              HasSubstr("There were 2 markers(?) in CQL but 1 bound variables"));
  const Bytes unknown = Bytes::copy_of("0123456789abcdef");
  prepared.id = unknown.view();
  batch.statements = {plain, prepared};
  request.message = batch;
  EXPECT_EQ(code_of(co_await story.send(request)), ErrorCode::unprepared);
  batch.statements.clear();
  request.message = batch;
  EXPECT_FALSE((co_await story.send(request)).error.has_value());
}
TEST(Batch, MixesPreparedAndPlainStatements) {
  tell(runs_batches);
}

// ---- Traces ----

Task<void> traces_requests(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v int)");
  EXPECT_FALSE((co_await story.run("SELECT * FROM t")).tracing.has_value());
  How traced;
  traced.tracing = true;
  const Told told = co_await story.run("SELECT v FROM t WHERE k = 1", traced);
  CO_ASSERT_TRUE(told.tracing.has_value());
  EXPECT_EQ(told.tracing->version(), 1);
  const std::string where = " WHERE session_id = " + told.tracing->to_string();
  EXPECT_EQ((co_await story.run("SELECT command, request, parameters, duration FROM "
                                "system_traces.sessions" +
                                where))
                .text(),
            "'QUERY', 'Execute CQL3 query', {'consistency_level': 'ONE', 'query': 'SELECT v FROM t "
            "WHERE k = 1'}, 0");
  const Told events = co_await story.run("SELECT activity FROM system_traces.events" + where);
  EXPECT_THAT(events.text(), ::testing::StartsWith("'Executing SELECT v FROM t WHERE k = 1'; "));
  // Errors are traced, too.
  const Told failed = co_await story.run("SELECT nothing FROM t", traced);
  EXPECT_TRUE(failed.error.has_value());
  CO_ASSERT_TRUE(failed.tracing.has_value());
  const Told why =
      co_await story.run("SELECT activity FROM system_traces.events WHERE session_id = " +
                         failed.tracing->to_string());
  EXPECT_THAT(why.text(), ::testing::HasSubstr("The request failed: Undefined column name"));
}
TEST(Tracing, GivesAnIdUnderWhichTheRequestIsTold) {
  tell(traces_requests);
}

Task<void> forgets_old_traces(QueryStory& story) {
  co_await begin(story);
  How traced;
  traced.tracing = true;
  const Told first = co_await story.run("USE ks", traced);
  for (std::size_t i = 0; i < Traces::kSessionsMax; ++i) co_await story.run("USE ks", traced);
  EXPECT_EQ((co_await story.run("SELECT count(*) FROM system_traces.sessions")).text(),
            std::to_string(Traces::kSessionsMax));
  CO_ASSERT_TRUE(first.tracing.has_value());
  EXPECT_EQ((co_await story.run("SELECT command FROM system_traces.sessions WHERE session_id = " +
                                first.tracing->to_string()))
                .text(),
            "");
}
TEST(Tracing, TheOldestAreForgotten) {
  tell(forgets_old_traces);
}

// ---- Trouble ----

TEST(Truncate, ThatFailsHasACodeOfItsOwnAndChangesNothing) {
  LogWorld world;
  QueryStory::tell(world, [&](QueryStory& story) -> Task<void> {
    co_await begin(story);
    co_await story.must("CREATE TABLE t (k int PRIMARY KEY)");
    co_await story.must("INSERT INTO t (k) VALUES (1)");
    world.disk().set_capacity(world.disk().used_bytes());
    EXPECT_EQ(code_of(co_await story.run("TRUNCATE t")), ErrorCode::truncate_error);
    world.disk().set_capacity(std::uint64_t{64} << 30);
    EXPECT_EQ((co_await story.run("SELECT k FROM t")).text(), "1");
    EXPECT_EQ(code_of(co_await story.run("TRUNCATE nothing")), ErrorCode::invalid);
  });
}

// ---- What a read may take ----

Task<void> lets_others_run(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int, c int, s int static, v int, PRIMARY KEY (k, c))");
  constexpr int kPartitions = 3000;
  for (int i = 0; i < kPartitions; ++i) {
    co_await story.must(fmt::format("UPDATE t SET s = 1 WHERE k = {}", i));
  }
  bool done = false;
  int turns = 0;
  runtime::TaskGroup others(story.runtime());
  others.spawn([](runtime::Runtime& runtime, const bool& over, int& count) -> Task<void> {
    while (!over) {
      ++count;
      std::ignore = co_await runtime::yield_now(runtime, {});
    }
  }(story.runtime(), done, turns));
  EXPECT_EQ((co_await story.run("SELECT k FROM t WHERE s = 2 ALLOW FILTERING")).text(), "");
  done = true;
  co_await others.join();
  EXPECT_GE(turns, kPartitions / 300);
}
TEST(Reading, PartitionsOfWhichNothingIsShownTakeTurns) {
  tell(lets_others_run);
}

Task<void> bounds_results(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))");
  const std::string large(100'000, 'x');
  for (int i = 0; i < 30; ++i) {
    co_await story.must(fmt::format("INSERT INTO t (k, c, v) VALUES (1, {}, '{}')", i, large));
  }
  EXPECT_EQ(code_of(co_await story.run("SELECT v FROM t WHERE k = 1")), ErrorCode::overloaded);
  How pages;
  pages.page_size = 5000;
  std::size_t rows = 0;
  do {
    const Told page = co_await story.run("SELECT v FROM t WHERE k = 1", pages);
    EXPECT_FALSE(page.error.has_value()) << page.text();
    EXPECT_LE(page.rows.size(), 6U) << "a page ends by its bytes";
    rows += page.rows.size();
    pages.paging_state = page.paging_state;
  } while (pages.paging_state);
  EXPECT_EQ(rows, 30U);
}
TEST(Reading, ResultsUnderWayAreBoundedByBytes) {
  QueryProcessorOptions options;
  options.execution.page_bytes_max = 500'000;
  options.execution.result_bytes_all_max = 2'000'000;
  tell(bounds_results, options);
}

// ---- Pages ----

Task<void> refuses_strange_states(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))");
  for (int i = 0; i < 5; ++i) {
    co_await story.must(fmt::format("INSERT INTO t (k, c) VALUES (1, {})", i));
  }
  How how;
  how.page_size = 2;
  const std::string text = "SELECT c FROM t WHERE k = 1";
  const Told first = co_await story.run(text, how);
  EXPECT_EQ(first.text(), "0; 1");
  EXPECT_TRUE(first.paging_state.has_value());
  if (!first.paging_state) co_return;
  how.paging_state = first.paging_state;
  EXPECT_EQ((co_await story.run(text, how)).text(), "2; 3");
  EXPECT_EQ(code_of(co_await story.run("SELECT c FROM t WHERE k = 2", how)),
            ErrorCode::protocol_error);
  const std::string good(first.paging_state->text());
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    how.paging_state = Bytes::copy_of(bad);
    EXPECT_EQ(code_of(co_await story.run(text, how)), ErrorCode::protocol_error) << i;
    how.paging_state = Bytes::copy_of(std::string_view(good).substr(0, i));
    if (i > 0) EXPECT_EQ(code_of(co_await story.run(text, how)), ErrorCode::protocol_error) << i;
  }
  // Rows that come or go meanwhile do no harm.
  how.paging_state = first.paging_state;
  co_await story.must("DELETE FROM t WHERE k = 1 AND c = 1");
  co_await story.must("DELETE FROM t WHERE k = 1 AND c = 2");
  EXPECT_EQ((co_await story.run(text, how)).text(), "3; 4");
}
TEST(Pages, AStateThatIsNotOfThisStatementIsRefused) {
  tell(refuses_strange_states);
}

TEST(Pages, AStateThatAClientMadeUpIsRefused) {
  PagingState state;
  state.statement = 7;
  state.rows_left = 3;
  state.after.partition = model::make_partition(model::Token{5}, model::int_value(1));
  state.after.clustering = Bytes::copy_of("row");
  state.after.rows_in_partition = 2;
  const auto decoded = decode_paging_state(encode(state), 7);
  EXPECT_TRUE(decoded.has_value() && *decoded == state);
  EXPECT_FALSE(decode_paging_state(encode(state), 8).has_value());
  const Bytes partition = state.after.partition;
  for (const std::string& odd : {std::string(), std::string("x"), std::string(70'000, 'p')}) {
    state.after.partition = Bytes::copy_of(odd);
    EXPECT_FALSE(decode_paging_state(encode(state), 7).has_value());
  }
  state.after.partition = partition;
  state.after.clustering = Bytes::copy_of(std::string(70'000, 'c'));
  EXPECT_FALSE(decode_paging_state(encode(state), 7).has_value());
}

Task<void> refuses_the_state_of_another_table(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY)");
  for (int i = 0; i < 4; ++i) co_await story.must(fmt::format("INSERT INTO t (k) VALUES ({})", i));
  How how;
  how.page_size = 1;
  how.paging_state = (co_await story.run("SELECT k FROM t", how)).paging_state;
  EXPECT_TRUE(how.paging_state.has_value());
  EXPECT_FALSE((co_await story.run("SELECT k FROM t", how)).error.has_value());
  co_await story.must("DROP TABLE t");
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY)");
  EXPECT_EQ(code_of(co_await story.run("SELECT k FROM t", how)), ErrorCode::protocol_error);
}
TEST(Pages, AStateOfAnotherTableOfThatNameIsRefused) {
  tell(refuses_the_state_of_another_table);
}

Task<void> writes_and_reads_a_page(QueryStory& story, std::optional<Bytes>& state) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v int)");
  for (int i = 0; i < 20; ++i) {
    co_await story.must(fmt::format("INSERT INTO t (k, v) VALUES ({}, {})", i, i));
  }
  How how;
  how.page_size = 7;
  state = (co_await story.run("SELECT k FROM ks.t", how)).paging_state;
}
Task<void> reads_the_rest(QueryStory& story, std::optional<Bytes>& state) {
  How how;
  how.page_size = 100;
  how.paging_state = state;
  const Told rest = co_await story.run("SELECT k FROM ks.t", how);
  EXPECT_EQ(rest.rows.size(), 13U) << rest.text();
  EXPECT_EQ((co_await story.run("SELECT count(*) FROM ks.t")).text(), "20");
}
TEST(Pages, AndDataSurviveARestart) {
  LogWorld world;
  std::optional<Bytes> state;
  QueryStory::tell(world, [&](QueryStory& story) { return writes_and_reads_a_page(story, state); });
  QueryStory::tell(world, [&](QueryStory& story) { return reads_the_rest(story, state); });
}

Task<void> cuts_by_bytes(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))");
  const std::string large(1000, 'x');
  for (int i = 0; i < 10; ++i) {
    co_await story.must(fmt::format("INSERT INTO t (k, c, v) VALUES (1, {}, '{}')", i, large));
  }
  How how;
  how.page_size = 100;
  const Told first = co_await story.run("SELECT c, v FROM t WHERE k = 1", how);
  EXPECT_EQ(first.rows.size(), 4U);
  EXPECT_TRUE(first.paging_state.has_value());
  // Without pages there is a limit on all.
  EXPECT_THAT((co_await story.run("SELECT c, v FROM t WHERE k = 1")).text(),
              HasSubstr("0x2200: The result has more than 8000 bytes"));
}
TEST(Pages, AreCutByBytesToo) {
  QueryProcessorOptions options;
  options.execution.page_bytes_max = 4000;
  options.execution.result_bytes_max = 8000;
  tell(cuts_by_bytes, options);
}

Task<void> scans_many_deleted_rows(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))");
  for (int i = 0; i < 600; ++i) {
    co_await story.must(fmt::format("INSERT INTO t (k, c) VALUES (1, {})", i));
    if (i < 590) co_await story.must(fmt::format("DELETE FROM t WHERE k = 1 AND c = {}", i));
  }
  const Told told = co_await story.run("SELECT c FROM t LIMIT 5");
  EXPECT_EQ(code_of(told), ErrorCode::read_timeout);
  EXPECT_EQ((co_await story.run("SELECT c FROM t WHERE k = 1 LIMIT 2")).text(), "590; 591");
}
TEST(Pages, AScanOfDeletedRowsEndsWithItsDeadline) {
  QueryProcessorOptions options;
  options.range_timeout = runtime::Duration(0);
  tell(scans_many_deleted_rows, options);
}

// ---- Causality ----

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
    if (i > 0) co_await refused(write, "no context of this node");
    bytes[i] = static_cast<char>(bytes[i] ^ 0x10);
    how.context = Bytes::copy_of(bytes);
    co_await refused(write, "no context of this node");
    co_await refused("SELECT v FROM t WHERE k = 1 AND c = 1", "no context of this node");
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

// ---- Limits ----

Task<void> plans_deep_calls(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v int)");
  co_await story.must("INSERT INTO t (k, v) VALUES (1, 1)");
  std::string deep = "now()";
  std::string wrong = "k";
  for (int i = 0; i < 30; ++i) {
    deep = fmt::format("toDate(toTimestamp({}))", deep);
    wrong = fmt::format("toDate(toTimestamp({}))", wrong);
  }
  const Told told = co_await story.run(fmt::format("SELECT {} FROM t", deep));
  EXPECT_EQ(told.rows.size(), 1U) << told.text();
  EXPECT_EQ(code_of(co_await story.run(fmt::format("SELECT {} FROM t", wrong))),
            ErrorCode::invalid);
  // The type of an argument chooses among functions of one name, and a function gives a literal
  // its type.
  const Told mixed = co_await story.run(
      "SELECT toUnixTimestamp(toDate('1970-01-02')), toUnixTimestamp(toTimestamp(toDate("
      "50554d6e-29bb-11e5-b345-feff819cdc9f))) FROM t");
  EXPECT_FALSE(mixed.error.has_value()) << mixed.text();
}
TEST(Limits, DeepCallsArePlannedInOnePass) {
  tell(plans_deep_calls);
}

// Were names looked for one by one, this would compare two thousand million of them.
Task<void> binds_many_names(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v frozen<list<int>>)");
  constexpr int kCount = 65'535;
  std::vector<std::string> names;
  std::vector<Bytes> values;
  for (int i = kCount; i-- > 0;) {
    names.push_back(fmt::format("n{}", i));
    values.push_back(model::int_value(i));
  }
  std::string markers;
  for (int i = 0; i < kCount; ++i) markers += fmt::format("{}:n{}", i == 0 ? "" : ",", i);
  const std::string text = fmt::format("INSERT INTO t (k, v) VALUES (1, [{}])", markers);
  protocol::QueryRequest query;
  query.text = text;
  for (const Bytes& value : values) query.parameters.values.push_back(Value::of(value.view()));
  query.parameters.names.assign(names.begin(), names.end());
  protocol::Request request;
  request.message = query;
  const Told told = co_await story.send(request);
  EXPECT_FALSE(told.error.has_value()) << told.text();
  EXPECT_THAT((co_await story.run("SELECT v FROM t")).text(), ::testing::StartsWith("[0, 1, 2,"));
}
TEST(Limits, AsManyNamedValuesAsThereMayBeAreBoundInOnePass) {
  tell(binds_many_names);
}

Task<void> refuses_long_names(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v text)");
  co_await story.must("INSERT INTO t (k, v) VALUES (1, 'a')");
  const std::string fits(65'535, 'x');
  const std::string longer(70'000, 'x');
  const Told widest = co_await story.run(fmt::format("SELECT k AS \"{}\" FROM t", fits));
  EXPECT_THAT(widest.columns, ElementsAre(fits));
  const std::vector<std::string> refused = {
      fmt::format("SELECT k AS \"{}\" FROM t", longer),
      fmt::format("SELECT '{}' FROM t", longer),
      fmt::format("SELECT (text)'{}' FROM t", longer),
      fmt::format("SELECT v FROM t WHERE k = :\"{}\"", longer),
      fmt::format("INSERT INTO t (k, v) VALUES (1, :\"{}\")", longer),
      fmt::format("CREATE TABLE u (k int PRIMARY KEY, \"{}\" int)", longer),
      fmt::format("CREATE TABLE \"{}\" (k int PRIMARY KEY)", longer),
      fmt::format("CREATE TYPE \"{}\" (f int)", longer),
      fmt::format("CREATE TYPE u (\"{}\" int)", longer),
      fmt::format("ALTER TABLE t ADD \"{}\" int", longer),
      fmt::format("ALTER TABLE t RENAME k TO \"{}\"", longer),
  };
  for (const std::string& text : refused) {
    const Told told = co_await story.prepare(text);
    const Told run = co_await story.run(text);
    EXPECT_TRUE(run.error.has_value()) << text.substr(0, 40);
    if (std::holds_alternative<PreparedResult>(told.message)) {
      EXPECT_TRUE(text.starts_with("CREATE") || text.starts_with("ALTER")) << text.substr(0, 40);
    }
  }
  co_await story.must("CREATE TYPE small (f int)");
  EXPECT_EQ(code_of(co_await story.run(fmt::format("ALTER TYPE small ADD \"{}\" int", longer))),
            ErrorCode::invalid);
  EXPECT_EQ(code_of(co_await story.run(fmt::format("ALTER TYPE small RENAME f TO \"{}\"", longer))),
            ErrorCode::invalid);
  EXPECT_EQ((co_await story.run("SELECT * FROM t")).text(), "1, 'a'");
}
TEST(Limits, NamesThatNoResultCanCarryAreRefused) {
  tell(refuses_long_names);
}

Task<void> charges_short_ways_and_virtual_tables(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v text)");
  for (const int size : {1000, 150'000}) {
    co_await story.must(fmt::format("INSERT INTO t (k, v) VALUES ({}, '{}')", size,
                                    std::string(static_cast<std::size_t>(size), 'x')));
  }
  const PreparedResult prepared =
      prepared_of(co_await story.prepare("SELECT v FROM t WHERE k = ?"));
  const auto read = [&](int key) -> Task<Told> {
    const Bytes bytes = model::int_value(key);
    co_return co_await story.execute(prepared.id,
                                     {{.kind = Value::Kind::bytes, .bytes = bytes.view()}}, How{});
  };
  EXPECT_EQ((co_await read(1000)).rows.size(), 1U);
  EXPECT_EQ(code_of(co_await read(150'000)), ErrorCode::overloaded);
  EXPECT_EQ(code_of(co_await story.run("SELECT v FROM t WHERE k = 150000")), ErrorCode::overloaded);
  EXPECT_EQ(code_of(co_await story.run("SELECT * FROM system_schema.columns")),
            ErrorCode::overloaded);
  EXPECT_EQ(code_of(co_await story.run("SELECT * FROM system_traces.events")),
            ErrorCode::overloaded);
  // What was charged is given back.
  EXPECT_EQ((co_await story.run("SELECT * FROM system.local")).rows.size(), 1U);
  EXPECT_EQ((co_await read(1000)).rows.size(), 1U);
}
TEST(Limits, ResultsOfAllKindsAreCharged) {
  QueryProcessorOptions options;
  options.execution.result_bytes_all_max = std::size_t{100} << 10;
  tell(charges_short_ways_and_virtual_tables, options);
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
                       model::make_partition(ring::token_of(key), key).view(),
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
