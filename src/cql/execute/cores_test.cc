// Stories of a node with several cores: what one core was told, the others know.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/execute/query_story_test_support.h"
#include "runtime/contract/world.h"
#include "runtime/when_all.h"

namespace helenus::cql::testing {
namespace {

using runtime::Task;
using storage::testing::LogWorld;

constexpr std::uint16_t kCores = 3;

void tell_on_cores(const QueryStory::Body& body, QueryProcessorOptions options = {}) {
  LogWorld world(7, kCores);
  QueryStory::tell(world, body, options);
}

Task<void> make_table(QueryStory& story) {
  co_await story.must(
      "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  co_await story.must("USE ks");
  co_await story.must("CREATE TABLE t (k int PRIMARY KEY, v int)");
}

base::Bytes id_of(const Told& told) {
  const auto* prepared = std::get_if<protocol::PreparedResult>(&told.message);
  EXPECT_NE(prepared, nullptr) << told.text();
  return prepared == nullptr ? base::Bytes() : prepared->id;
}

protocol::Value value_of(const base::Bytes& bytes) {
  return {.kind = protocol::Value::Kind::bytes, .bytes = bytes.view()};
}

TEST(Cores, AStatementPreparedOnOneCoreIsExecutedOnAll) {
  tell_on_cores([](QueryStory& story) -> Task<void> {
    co_await make_table(story);
    for (std::size_t home = 0; home < kCores; ++home) {
      story.turn_to(home);
      // No two of them are the same statement.
      const std::string blanks(home, ' ');
      const base::Bytes insert =
          id_of(co_await story.prepare("INSERT INTO t (k, v) VALUES (?, ?)" + blanks));
      const base::Bytes select =
          id_of(co_await story.prepare("SELECT v FROM t WHERE k = ?" + blanks));
      for (int k = 0; k < 12; ++k) {
        const base::Bytes key = model::int_value(k);
        const base::Bytes value = model::int_value(k + static_cast<int>(home));
        const Told written = co_await story.execute(insert, {value_of(key), value_of(value)});
        EXPECT_FALSE(written.error.has_value()) << written.text();
        const Told read = co_await story.execute(select, {value_of(key)});
        EXPECT_EQ(read.text(), std::to_string(k + static_cast<int>(home)));
      }
    }
    for (std::size_t core = 0; core < kCores; ++core) {
      EXPECT_EQ(story.processor(core).prepared_count(), 2U * kCores) << core;
    }
    const Told unknown = co_await story.execute(base::Bytes::copy_of("0123456789abcdef"), {});
    CO_ASSERT_TRUE(unknown.error.has_value());
    EXPECT_EQ(unknown.error->code, protocol::ErrorCode::unprepared);
  });
}

// Each core drops it by itself when it has room for one alone, and gets it again from the others.
TEST(Cores, AStatementThatOneCoreDroppedIsGotFromAnother) {
  QueryProcessorOptions options;
  options.prepared.statements_max = 1;
  tell_on_cores(
      [](QueryStory& story) -> Task<void> {
        co_await make_table(story);
        story.turn_to(0);
        const base::Bytes first = id_of(co_await story.prepare("SELECT v FROM t WHERE k = 1"));
        story.turn_to(1);
        const base::Bytes second = id_of(co_await story.prepare("SELECT k FROM t WHERE k = 1"));
        for (int round = 0; round < 3; ++round) {
          story.turn_to(2);
          const Told told = co_await story.execute(first, {});
          EXPECT_FALSE(told.error.has_value()) << told.text();
          story.turn_to(2);
          const Told other = co_await story.execute(second, {});
          EXPECT_FALSE(other.error.has_value()) << other.text();
        }
      },
      options);
}

TEST(Cores, AnAlteredTableUnpreparesItsStatementsOnEveryCore) {
  tell_on_cores([](QueryStory& story) -> Task<void> {
    co_await make_table(story);
    const base::Bytes all = id_of(co_await story.prepare("SELECT * FROM t"));
    for (std::size_t core = 0; core < kCores; ++core) {
      story.turn_to(core);
      EXPECT_FALSE((co_await story.execute(all, {})).error.has_value());
    }
    co_await story.must("ALTER TABLE t ADD w int");
    for (std::size_t core = 0; core < kCores; ++core) {
      story.turn_to(core);
      const Told told = co_await story.execute(all, {});
      CO_ASSERT_TRUE(told.error.has_value());
      EXPECT_EQ(told.error->code, protocol::ErrorCode::unprepared) << core;
    }
    story.turn_to(1);
    EXPECT_EQ(id_of(co_await story.prepare("SELECT * FROM t")), all);
    for (std::size_t core = 0; core < kCores; ++core) {
      story.turn_to(core);
      EXPECT_FALSE((co_await story.execute(all, {})).error.has_value()) << core;
    }
  });
}

// Clients that were told of the old columns, and have not noticed, send the same id to any core.
TEST(Cores, RowsSayWhatTheyAreWhereverAStatementWithOtherColumnsWasPrepared) {
  tell_on_cores([](QueryStory& story) -> Task<void> {
    const std::string text = "SELECT v FROM t WHERE k = 1";
    How bare;
    bare.skip_metadata = true;
    co_await make_table(story);
    co_await story.must("INSERT INTO t (k, v) VALUES (1, 2)");
    story.turn_to(0);
    const base::Bytes id = id_of(co_await story.prepare(text));
    for (std::size_t core = 0; core < 2; ++core) {
      story.turn_to(core);
      EXPECT_TRUE((co_await story.execute(id, {}, bare)).columns.empty()) << core;
    }
    co_await story.must("ALTER TABLE t DROP v");
    co_await story.must("ALTER TABLE t ADD v blob");
    // The last core has never heard of it.
    story.turn_to(kCores - 1);
    EXPECT_EQ(id_of(co_await story.prepare(text)), id);
    for (std::size_t core = 0; core < kCores; ++core) {
      story.turn_to(core);
      const Told told = co_await story.execute(id, {}, bare);
      EXPECT_FALSE(told.error.has_value()) << told.text();
      EXPECT_EQ(told.columns.size(), 1U) << core;
    }
    // It is lent with what is known of it.
    co_await story.must("ALTER TABLE t ADD w int");
    for (std::size_t core = 0; core < kCores; ++core) {
      story.turn_to(core);
      EXPECT_EQ((co_await story.execute(id, {}, bare)).columns.size(), 1U) << core;
    }
  });
}

TEST(Cores, ATraceIsReadOnAnyCore) {
  tell_on_cores([](QueryStory& story) -> Task<void> {
    co_await make_table(story);
    How traced;
    traced.tracing = true;
    story.turn_to(0);
    const base::Bytes id = id_of(co_await story.prepare("SELECT v FROM t WHERE k = 1"));
    for (std::size_t core = 0; core < kCores; ++core) {
      story.turn_to(core);
      const Told told = co_await story.execute(id, {}, traced);
      CO_ASSERT_TRUE(told.tracing.has_value());
      const std::string where = " WHERE session_id = " + told.tracing->to_string();
      for (std::size_t reader = 0; reader < kCores; ++reader) {
        story.turn_to(reader);
        const Told session =
            co_await story.run("SELECT parameters FROM system_traces.sessions" + where);
        EXPECT_THAT(session.text(), ::testing::HasSubstr("'SELECT v FROM t WHERE k = 1'"))
            << core << " read on " << reader;
        story.turn_to(reader);
        const Told events = co_await story.run("SELECT activity FROM system_traces.events" + where);
        EXPECT_EQ(events.rows.size(), 2U) << core << " read on " << reader;
      }
    }
    EXPECT_EQ((co_await story.run("SELECT count(*) FROM system_traces.sessions")).text(),
              std::to_string(kCores));
  });
}

TEST(Cores, ABatchOverAllTabletsIsReadByOneScan) {
  tell_on_cores([](QueryStory& story) -> Task<void> {
    co_await make_table(story);
    for (std::size_t core = 0; core < kCores; ++core) {
      std::string batch = "BEGIN BATCH ";
      for (int k = 0; k < 40; ++k) {
        batch += fmt::format("INSERT INTO t (k, v) VALUES ({}, {}); ", k, core);
      }
      story.turn_to(core);
      co_await story.must(batch + "APPLY BATCH");
      const Told scanned = co_await story.run("SELECT token(k), v FROM t");
      EXPECT_EQ(scanned.rows.size(), 40U);
      std::vector<std::int64_t> tokens;
      for (const auto& row : scanned.rows) {
        tokens.push_back(std::stoll(row[0]));
        EXPECT_EQ(row[1], std::to_string(core));
      }
      EXPECT_TRUE(std::ranges::is_sorted(tokens));
    }
    // One of its partitions is refused for what it is: none is written.
    const std::string refused = fmt::format(
        "BEGIN BATCH INSERT INTO t (k, v) VALUES (100, 1); INSERT INTO t (k, v) VALUES "
        "(101, 1) USING TIMESTAMP {}; APPLY BATCH",
        std::numeric_limits<std::int64_t>::min());
    EXPECT_TRUE((co_await story.run(refused)).error.has_value());
    EXPECT_EQ((co_await story.run("SELECT v FROM t WHERE k = 100")).text(), "");
  });
}

// A mutation of a partition's static column and of two of its rows, again and again.
Task<void> write_numbers(QueryStory& story, bool& done) {
  for (int number = 1; number <= 150; ++number) {
    co_await story.must(
        fmt::format("BEGIN UNLOGGED BATCH UPDATE g SET s = {0} WHERE k = 1; UPDATE g SET v = {0} "
                    "WHERE k = 1 AND c IN (1, 2); APPLY BATCH",
                    number));
  }
  done = true;
}

Task<void> read_numbers(QueryStory& story, std::string where, const bool& done, int& reads) {
  while (!done) {
    const Told told = co_await story.run("SELECT s, v FROM g WHERE k = 1 AND " + where);
    EXPECT_FALSE(told.error.has_value()) << told.text();
    for (const auto& row : told.rows) {
      EXPECT_EQ(row[0], row[1]) << where;
      EXPECT_EQ(row[0], told.rows[0][0]) << where;
    }
    ++reads;
  }
}

// Rows that a statement names are of one moment, and so is the static row beside them.
TEST(Cores, NamedRowsOfAPartitionShowAMutationWholeOrNotAtAll) {
  tell_on_cores([](QueryStory& story) -> Task<void> {
    co_await make_table(story);
    co_await story.must("CREATE TABLE g (k int, c int, s int static, v int, PRIMARY KEY (k, c))");
    bool done = false;
    int reads = 0;
    std::vector<Task<void>> tasks;
    tasks.push_back(write_numbers(story, done));
    tasks.push_back(read_numbers(story, "c = 1", done, reads));
    tasks.push_back(read_numbers(story, "c IN (1, 2)", done, reads));
    tasks.push_back(read_numbers(story, "c IN (1, 2) ORDER BY c DESC", done, reads));
    co_await runtime::when_all(std::move(tasks));
    EXPECT_GT(reads, 100);
    const Told told = co_await story.run("SELECT c, s, v FROM g WHERE k = 1 AND c IN (0, 1, 2, 3)");
    EXPECT_EQ(told.text(), "1, 150, 150; 2, 150, 150");
  });
}

// Writers on all cores, while tables come, change, are emptied and go. Whatever a writer is told,
// it is an answer that a client knows; and what is acknowledged after a change sees the change.
Task<void> write_on(QueryStory& story, std::size_t core, const bool* done) {
  Session session;
  session.keyspace = "ks";
  for (int k = 0; !*done; ++k) {
    const std::string text = fmt::format("INSERT INTO r (k, v) VALUES ({}, {})", k, core);
    protocol::QueryRequest query;
    query.text = text;
    query.parameters.consistency = protocol::Consistency::one;
    protocol::Request request;
    request.message = std::move(query);
    const Told told = co_await story.send_to(core, std::move(request), session);
    if (told.error) {
      EXPECT_THAT(told.error->code,
                  ::testing::AnyOf(protocol::ErrorCode::invalid, protocol::ErrorCode::write_failure,
                                   protocol::ErrorCode::server_error))
          << told.text();
    }
    std::ignore = co_await runtime::sleep_for(story.runtime(), std::chrono::milliseconds(1), {});
  }
}

Task<void> change_tables(QueryStory& story, bool& done) {
  for (int round = 0; round < 3; ++round) {
    co_await story.must("CREATE TABLE r (k int PRIMARY KEY, v int)");
    for (std::size_t core = 0; core < kCores; ++core) {
      // Every core knows it by now: ks.r is written and read through any of them.
      story.turn_to(core);
      co_await story.must("INSERT INTO r (k, v) VALUES (-1, 0)");
    }
    co_await story.must("ALTER TABLE r ADD w int");
    co_await story.must("UPDATE r SET w = 1 WHERE k = -1");
    co_await story.must("TRUNCATE r");
    for (std::size_t core = 0; core < kCores; ++core) {
      story.turn_to(core);
      EXPECT_EQ((co_await story.run("SELECT v FROM r WHERE k = -1")).text(), "") << core;
    }
    co_await story.must("DROP TABLE r");
    const Told gone = co_await story.run("SELECT v FROM r");
    EXPECT_TRUE(gone.error.has_value());
  }
  done = true;
}

TEST(Cores, ChangesOfTheSchemaRaceWithWritesOnAllCores) {
  tell_on_cores([](QueryStory& story) -> Task<void> {
    co_await make_table(story);
    bool done = false;
    std::vector<Task<void>> tasks;
    tasks.push_back(change_tables(story, done));
    for (std::size_t core = 0; core < kCores; ++core) tasks.push_back(write_on(story, core, &done));
    co_await runtime::when_all(std::move(tasks));
  });
}

TEST(Cores, ChangesAskedOnAllCoresAtOnceAllHappen) {
  tell_on_cores([](QueryStory& story) -> Task<void> {
    co_await make_table(story);
    struct Maker {
      static Task<void> make(QueryStory& story, int number) {
        co_await story.must(fmt::format("CREATE TABLE c{} (k int PRIMARY KEY)", number));
        co_await story.must(fmt::format("INSERT INTO c{} (k) VALUES (1)", number));
      }
    };
    std::vector<Task<void>> makers;
    for (int number = 0; number < 9; ++number) makers.push_back(Maker::make(story, number));
    co_await runtime::when_all(std::move(makers));
    for (std::size_t core = 0; core < kCores; ++core) {
      story.turn_to(core);
      const Told told = co_await story.run(
          "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ks'");
      EXPECT_EQ(told.rows.size(), 10U) << core;
    }
  });
}

// What was acknowledged by any core is there after a power loss, on another number of cores.
TEST(Cores, ARestartOnOtherCoresFindsWhatWasAcknowledged) {
  LogWorld world(3, kCores);
  QueryStory::tell(world, [](QueryStory& story) -> Task<void> {
    co_await make_table(story);
    for (int k = 0; k < 60; ++k) {
      co_await story.must(fmt::format("INSERT INTO t (k, v) VALUES ({}, {})", k, k));
    }
  });
  world.machine().power_loss();
  QueryStory::tell(
      world,
      [](QueryStory& story) -> Task<void> {
        EXPECT_EQ(story.cores(), 2U);
        for (int k = 0; k < 60; ++k) {
          const Told told = co_await story.run(fmt::format("SELECT v FROM ks.t WHERE k = {}", k));
          EXPECT_EQ(told.text(), std::to_string(k));
        }
      },
      {}, 2);
}

}  // namespace
}  // namespace helenus::cql::testing
