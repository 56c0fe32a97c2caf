// Stories about requests: prepared statements, values by name, batches, traces.
#include "cql/execute/query_processor.h"

#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/execute/query_story_test_support.h"
#include "runtime/contract/world.h"
#include "storage/engine/file_filters_test_support.h"

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

// Drivers bind values by these names, and find replicas by the markers of the partition key.
Task<void> names_markers(QueryStory& story) {
  co_await begin(story);
  co_await story.must(
      "CREATE TABLE t (k int, a int, b text, l list<int>, s set<int>, m map<text, int>, PRIMARY "
      "KEY "
      "(k, a, b))");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"SELECT * FROM t WHERE k = ? AND (a, b) = (?, ?)", "k a b, k 0"},
      {"SELECT * FROM t WHERE k = ? AND (a, b) > ?", "k (a,b), k 0"},
      {"SELECT * FROM t WHERE k = ? AND (a, b) IN ((?, ?), (?, ?))", "k a b a b, k 0"},
      {"SELECT * FROM t WHERE k = ? AND (a, b) IN (?, ?)", "k (a,b) (a,b), k 0"},
      {"SELECT * FROM t WHERE (a, b) IN ? AND k = ?", "in(a,b) k, k 1"},
      {"SELECT * FROM t WHERE k IN ?", "in(k), "},
      {"SELECT * FROM t WHERE k IN (?, ?)", "k k, "},
      {"SELECT * FROM t WHERE token(k) > token(?)", "arg0(system.token), "},
      {"SELECT * FROM t WHERE token(k) > ?", "partition key token, "},
      {"SELECT * FROM t WHERE l CONTAINS ? AND m CONTAINS ? AND m CONTAINS KEY ? AND m[?] = ? "
       "ALLOW "
       "FILTERING",
       "value(l) value(m) key(m) key(m) value(m), "},
      {"UPDATE t SET l[?] = ?, m[?] = ?, s = s + ? WHERE k = ? AND a = 1 AND b = 'b'",
       "idx(l) value(l) key(m) value(m) s k, k 5"},
      {"SELECT * FROM t WHERE k = ? LIMIT ?", "k [limit], k 0"},
  };
  for (const auto& [statement, expected] : cases) {
    const PreparedResult prepared = prepared_of(co_await story.prepare(statement));
    std::vector<std::string> names;
    for (const auto& marker : prepared.markers) names.push_back(marker.name);
    std::string told = fmt::format("{}, ", fmt::join(names, " "));
    for (const std::uint16_t marker : prepared.partition_key_markers) {
      told += fmt::format("k {}", marker);
    }
    EXPECT_EQ(told, expected) << statement;
  }
}
TEST(Prepared, MarkersHaveTheNamesThatDriversBindBy) {
  tell(names_markers);
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

Task<void> refuses_batches_without_replicas(QueryStory& story) {
  co_await begin(story);
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY)");
  co_await story.must(
      "CREATE KEYSPACE three WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
      "3}");
  co_await story.must("CREATE TABLE three.t (k int PRIMARY KEY)");
  protocol::BatchRequest batch;
  batch.consistency = protocol::Consistency::quorum;
  for (const char* text : {"INSERT INTO t (k) VALUES (1)", "INSERT INTO three.t (k) VALUES (1)"}) {
    BatchStatement statement;
    statement.text = text;
    batch.statements.push_back(statement);
  }
  protocol::Request request;
  request.message = batch;
  const Told told = co_await story.send(request);
  EXPECT_EQ(code_of(told), ErrorCode::unavailable);
  EXPECT_EQ(std::get<protocol::UnavailableDetails>(told.error->details),
            (protocol::UnavailableDetails{protocol::Consistency::quorum, 2, 1}));
  EXPECT_EQ((co_await story.run("SELECT * FROM t")).text(), "") << "nothing of it is there";
  batch.consistency = protocol::Consistency::local_one;
  request.message = batch;
  EXPECT_FALSE((co_await story.send(request)).error.has_value());
  EXPECT_EQ((co_await story.run("SELECT * FROM three.t")).text(), "1");
}
TEST(Batch, IsRefusedAsAWholeWhereReplicasAreMissing) {
  tell(refuses_batches_without_replicas);
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

// ---- Filters of files ----

// The filters of all files of tables whose filter is a consistent cuckoo.
Task<storage::testing::FileFilters> consistent_filters(QueryStory& story) {
  storage::testing::FileFilters all{.kind = storage::FilterKind::consistent_cuckoo};
  const auto files = co_await storage::testing::filters_in(
      story.runtime(), {"/data/shard-0000", "/data/shard-0001"});
  EXPECT_TRUE(files.has_value()) << files.error().to_string();
  for (const auto& [path, file] : *files) {
    if (file.kind != all.kind) continue;
    all.keys += file.keys;
    all.bytes += file.bytes;
  }
  co_return all;
}

Task<void> merge_files_of(QueryStory& story, std::string table) {
  const auto snapshot = story.catalog().snapshot();
  const auto storage = *snapshot->storage_of(snapshot->schema().find_table("ks", table)->id);
  const auto until = runtime::Until::forever();
  EXPECT_TRUE((co_await story.coordinator().flush(storage, until)).has_value());
  EXPECT_TRUE((co_await story.coordinator().compact(storage, until)).has_value());
}

// As a user does it and an operator sees it: the memory of indexes and filters is what
// helenus.metrics has as helenus_storage_sstable_resident_bytes.
Task<void> shrinks_filters(QueryStory& story) {
  constexpr int kRows = 2000;
  constexpr int kLeft = kRows / 5;
  co_await begin(story);
  co_await story.must(
      "CREATE TABLE t (p int, c int, v int, PRIMARY KEY (p, c)) "
      "WITH filter = {'class': 'consistent_cuckoo'}");
  for (int row = 0; row < kRows; ++row) {
    co_await story.must(fmt::format("INSERT INTO t (p, c, v) VALUES (1, {}, 0)", row));
  }
  co_await merge_files_of(story, "t");
  const auto full = co_await consistent_filters(story);
  const auto resident_full = story.coordinator().statistics_here().sstable_resident_bytes;
  EXPECT_GE(full.keys, kRows);
  EXPECT_GE(full.bytes, kRows * sizeof(std::uint32_t));
  for (int row = 0; row < kRows; ++row) {
    if (row % (kRows / kLeft) == 0) continue;
    co_await story.must(fmt::format("DELETE FROM t WHERE p = 1 AND c = {}", row));
  }
  co_await merge_files_of(story, "t");
  const auto left = co_await consistent_filters(story);
  const auto resident_left = story.coordinator().statistics_here().sstable_resident_bytes;
  EXPECT_LE(left.keys, kLeft + 1) << "the rows, and the partition";
  EXPECT_LE(left.bytes, full.bytes / 4);
  EXPECT_LE(resident_left + full.bytes - left.bytes, resident_full);
  EXPECT_EQ((co_await story.run("SELECT count(*) FROM t WHERE p = 1")).text(),
            fmt::format("{}", kLeft));
  EXPECT_EQ((co_await story.run("SELECT v FROM t WHERE p = 1 AND c = 7")).text(), "");
  EXPECT_EQ((co_await story.run("SELECT v FROM t WHERE p = 1 AND c = 10")).text(), "0");
}

TEST(Filters, OfATableShrinkAsItsRowsAreDeleted) {
  LogWorld world;
  QueryStory::tell(world, shrinks_filters, {}, 1);
}

}  // namespace
}  // namespace helenus::cql::testing
