// Stories about what reads take and give: pages, results, limits.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/execute/paging_state.h"
#include "cql/execute/query_story_test_support.h"
#include "cql/parser/limits.h"
#include "model/partition_key.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"

namespace helenus::cql::testing {
namespace {

using base::Bytes;
using protocol::ErrorCode;
using protocol::PreparedResult;
using protocol::Value;
using runtime::Task;
using storage::testing::LogWorld;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  options.limits.node.result_bytes_max = 2'000'000;
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
  EXPECT_EQ(code_of(co_await story.run("SELECT c FROM t WHERE k = 2", how)), ErrorCode::invalid);
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
  state.after.partition = model::make_partition({}, model::Token{5}, model::int_value(1));
  state.after.clustering = Bytes::copy_of("row");
  state.after.rows_in_partition = 2;
  const auto decoded = decode_paging_state(encode(state), 7);
  EXPECT_TRUE(decoded.has_value() && *decoded == state);
  EXPECT_TRUE(decode_paging_state(encode(state), 8).failed_with(ErrorCode::invalid));
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
  EXPECT_EQ(code_of(co_await story.run("SELECT k FROM t", how)), ErrorCode::invalid);
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
  options.timeouts.range = runtime::Duration(0);
  tell(scans_many_deleted_rows, options);
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

Task<void> refuses_long_texts(QueryStory& story) {
  co_await begin(story);
  std::string text = "SELECT * FROM system.local";
  text.resize(parser::kStatementBytesMax, ' ');
  EXPECT_FALSE((co_await story.run(text)).error.has_value());
  text += ' ';
  EXPECT_THAT((co_await story.run(text)).text(), HasSubstr("0x2200: a statement of 1048577 bytes"));
  EXPECT_EQ(code_of(co_await story.prepare(text)), ErrorCode::invalid);
}
TEST(Limits, ATextThatIsTooLongIsInvalid) {
  tell(refuses_long_texts);
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
  options.limits.node.result_bytes_max = std::size_t{100} << 10;
  tell(charges_short_ways_and_virtual_tables, options);
}

}  // namespace
}  // namespace helenus::cql::testing
