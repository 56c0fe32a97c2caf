// A session on a machine of its own and nodes on others: statements, prepared ones, pages,
// deadlines, restarts, and what nodes tell of each other.
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "client/pager.h"
#include "client/session.h"
#include "model/value.h"
#include "node/nodes_test_support.h"
#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "runtime/when_all.h"
#include "sim/function_process.h"
#include "sim/world.h"

namespace helenus::client {
namespace {

using base::Errc;
using cql::protocol::ErrorCode;
using cql::protocol::StatusChangeKind;
using runtime::Address;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;
using namespace std::chrono_literals;

constexpr std::uint16_t kCqlPort = 9042;

class ClientNodeTest : public ::testing::Test {
 protected:
  using Story = std::function<Task<void>(Runtime&, Session&)>;

  explicit ClientNodeTest(std::size_t count = 1)
      : client_machine_(world_.add_machine({.name = "client"}, {})),
        nodes_(world_, std::vector<std::uint16_t>(count, 1), count) {
    for (std::size_t i = 0; i < count; ++i) {
      nodes_.machine(i).start();
      options_.contact_points.push_back(address(i));
    }
    const auto all_up = [&] {
      for (std::size_t i = 0; i < count; ++i) {
        if (!nodes_.is_up(i)) return false;
      }
      return true;
    };
    EXPECT_TRUE(world_.run_until(all_up, 2min));
  }
  ~ClientNodeTest() override {
    nodes_.stop_all();
    if (HasFailure()) {
      for (const std::string& line : world_.log().lines()) fmt::print("{}\n", line);
    }
  }

  // Connects to every node, tells the story, and stops.
  void tell(Story story) {
    client_machine_.set_process(sim::FunctionProcess::factory(
        [this, story = std::move(story)](Runtime& rt, StopToken) { return connected(rt, story); }));
    client_machine_.start();
    EXPECT_TRUE(world_.run_until([&] { return !client_machine_.is_up(); }, 1h)) << "waits for ever";
  }
  Address address(std::size_t i = 0) const { return nodes_.machine(i).address(kCqlPort); }
  sim::Machine& machine(std::size_t i = 0) { return nodes_.machine(i); }

  static Task<RequestResult<ResultSet>> query(Runtime& rt, Session& session, std::string text,
                                              Route route = {}, runtime::Duration wait = 30s) {
    return session.execute(Query{.text = std::move(text)}, {}, std::move(route),
                           Until::after(rt, wait));
  }
  // Makes ks.t (k int, c int, v text).
  static Task<bool> make_table(Runtime& rt, Session& session) {
    for (const std::string text :
         {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
          "'replication_factor': 1}",
          "CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))"}) {
      const auto made = co_await query(rt, session, text);
      EXPECT_TRUE(made.has_value()) << made.error().to_string();
      if (!made || !made->schema_change()) co_return false;
    }
    co_return true;
  }
  static Task<RequestResult<ResultSet>> insert(Runtime& rt, Session& session, Prepared prepared,
                                               int k, int c, std::string v) {
    return session.execute(
        Execution{.prepared = std::move(prepared),
                  .values = {model::int_value(k), model::int_value(c), model::text_value(v)}},
        {}, {}, Until::after(rt, 30s));
  }
  static Task<RequestResult<Prepared>> prepare_insert(Runtime& rt, Session& session) {
    return session.prepare("INSERT INTO ks.t (k, c, v) VALUES (?, ?, ?)", {},
                           Until::after(rt, 30s));
  }

  sim::World world_{1};
  sim::Machine& client_machine_;
  node::testing::SimulatedNodes nodes_;
  SessionOptions options_;

 private:
  Task<void> connected(Runtime& rt, Story story) {
    Session session(rt, options_);
    CO_ASSERT_OK(co_await session.start(Until::after(rt, 1min)));
    for (const Address& node : options_.contact_points) {
      CO_ASSERT_OK(co_await session.wait_connected(node, Until::after(rt, 1min)));
    }
    co_await story(rt, session);
    co_await session.stop();
  }
};

TEST_F(ClientNodeTest, WritesAndReadsByPreparedStatements) {
  options_.connection.compression = cql::protocol::Compression::lz4;
  tell([](Runtime& rt, Session& session) -> Task<void> {
    const bool made = co_await make_table(rt, session);
    CO_ASSERT_TRUE(made);
    const auto prepared = co_await prepare_insert(rt, session);
    CO_ASSERT_TRUE(prepared.has_value());
    EXPECT_EQ((*prepared)->markers.size(), 3U);
    EXPECT_EQ((*prepared)->partition_key_markers, std::vector<std::uint16_t>{0});
    const std::string large(5000, 'x');
    const auto written = co_await insert(rt, session, *prepared, 1, 2, large);
    EXPECT_TRUE(written.has_value());
    const Batch batch{
        .type = Batch::Type::unlogged,
        .statements = {
            Query{.text = "INSERT INTO ks.t (k, c) VALUES (?, 3)", .values = {model::int_value(1)}},
            Execution{.prepared = *prepared,
                      .values = {model::int_value(1), model::int_value(4), BoundValue::unset()}}}};
    const auto batched = co_await session.execute(batch, {}, {}, Until::after(rt, 30s));
    EXPECT_TRUE(batched.has_value()) << batched.error().to_string();

    const auto read = co_await query(rt, session, "SELECT c, v FROM ks.t WHERE k = 1");
    CO_ASSERT_TRUE(read.has_value());
    CO_ASSERT_TRUE(read->size() == 3U);
    EXPECT_EQ(read->row(0).get<std::int64_t>("c"), 2);
    EXPECT_EQ(read->row(0).get<std::string>("v"), large);
    EXPECT_EQ(read->row(1).get<int>("c"), 3);
    EXPECT_TRUE(read->row(1).cell("v")->is_null());
    EXPECT_TRUE(read->row(2).cell("v")->is_null());
  });
}

TEST_F(ClientNodeTest, GivesBackTheContextOfARead) {
  tell([](Runtime& rt, Session& session) -> Task<void> {
    const bool made = co_await make_table(rt, session);
    CO_ASSERT_TRUE(made);
    CO_ASSERT_TRUE(
        (co_await query(rt, session, "INSERT INTO ks.t (k, c, v) VALUES (1, 1, 'a')")).has_value());
    RequestOptions options;
    options.payload = {{.key = "helenus-context", .value = base::Bytes()}};
    const auto read =
        co_await session.execute(Query{.text = "SELECT v FROM ks.t WHERE k = 1 AND c = 1"}, options,
                                 {}, Until::after(rt, 30s));
    CO_ASSERT_TRUE(read.has_value());
    const auto context = read->payload("helenus-context");
    CO_ASSERT_TRUE(context.has_value());
    options.payload = {{.key = "helenus-context", .value = *context}};
    const auto written =
        co_await session.execute(Query{.text = "UPDATE ks.t SET v = 'b' WHERE k = 1 AND c = 1"},
                                 options, {}, Until::after(rt, 30s));
    EXPECT_TRUE(written.has_value()) << written.error().to_string();
  });
}

TEST_F(ClientNodeTest, ErrorsKeepTheirCodesAndDetails) {
  tell([](Runtime& rt, Session& session) -> Task<void> {
    const auto syntax = co_await query(rt, session, "SELEKT");
    EXPECT_TRUE(syntax.failed_with(ErrorCode::syntax_error));
    EXPECT_TRUE(syntax.failed_with(Fate::answered));
    const bool made = co_await make_table(rt, session);
    CO_ASSERT_TRUE(made);
    const auto again = co_await query(rt, session, "CREATE TABLE ks.t (k int PRIMARY KEY)");
    CO_ASSERT_TRUE(again.failed_with(ErrorCode::already_exists));
    EXPECT_FALSE(again.error().may_have_happened());
    const auto& details =
        std::get<cql::protocol::AlreadyExistsDetails>(again.error().answer()->details);
    EXPECT_EQ(details.keyspace, "ks");
    EXPECT_EQ(details.table, "t");
  });
}

TEST_F(ClientNodeTest, PagesThroughAThousandRows) {
  tell([](Runtime& rt, Session& session) -> Task<void> {
    const bool made = co_await make_table(rt, session);
    CO_ASSERT_TRUE(made);
    const auto prepared = co_await prepare_insert(rt, session);
    CO_ASSERT_TRUE(prepared.has_value());
    std::vector<Task<RequestResult<ResultSet>>> writes;
    for (int i = 0; i < 1000; ++i) {
      writes.push_back(insert(rt, session, *prepared, i % 7, i, std::to_string(i)));
    }
    const auto written = co_await runtime::when_all(std::move(writes));
    for (const auto& write : written) EXPECT_TRUE(write.has_value()) << write.error().to_string();
    Pager pager(session, Query{.text = "SELECT c, v FROM ks.t"}, {.page_size = 64}, {});
    std::set<int> seen;
    std::size_t pages = 0;
    while (!pager.done()) {
      const auto page = co_await pager.next(Until::after(rt, 30s));
      CO_ASSERT_TRUE(page.has_value());
      EXPECT_LE(page->size(), 64U);
      ++pages;
      for (const Row row : page->rows()) {
        const auto c = row.get<int>("c");
        CO_ASSERT_TRUE(c.has_value());
        EXPECT_EQ(row.get<std::string>("v"), std::to_string(*c));
        EXPECT_TRUE(seen.insert(*c).second) << *c;
      }
    }
    EXPECT_EQ(seen.size(), 1000U);
    EXPECT_GE(pages, 16U);
  });
}

TEST_F(ClientNodeTest, ADeadlinePassesWhileTheNodeIsPaused) {
  tell([this](Runtime& rt, Session& session) -> Task<void> {
    const bool made = co_await make_table(rt, session);
    CO_ASSERT_TRUE(made);
    machine().pause();
    const auto before = rt.clock.now();
    const auto late = co_await query(rt, session, "INSERT INTO ks.t (k, c) VALUES (1, 1)", {}, 2s);
    EXPECT_TRUE(late.failed_with(Fate::unknown));
    EXPECT_TRUE(late.failed_with(Errc::timeout));
    EXPECT_EQ(rt.clock.now() - before, 2s);
    machine().resume();
    const auto read = co_await query(rt, session, "SELECT c FROM ks.t WHERE k = 1");
    CO_ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->size(), 1U) << "what timed out happened all the same";
  });
}

TEST_F(ClientNodeTest, FindsANodeAgainThatWasKilledAndTellsItItsStatements) {
  tell([this](Runtime& rt, Session& session) -> Task<void> {
    const bool made = co_await make_table(rt, session);
    CO_ASSERT_TRUE(made);
    const auto prepared = co_await prepare_insert(rt, session);
    CO_ASSERT_TRUE(prepared.has_value());
    EXPECT_TRUE((co_await insert(rt, session, *prepared, 1, 1, "before")).has_value());
    machine().kill();
    std::ignore = co_await runtime::sleep_for(rt, 1s, {});
    const auto down = co_await insert(rt, session, *prepared, 1, 2, "down");
    EXPECT_TRUE(down.failed_with(Fate::not_sent));
    EXPECT_TRUE(down.failed_with(Errc::unavailable));
    machine().start();
    CO_ASSERT_OK(co_await session.wait_connected(address(), Until::after(rt, 2min)));
    const auto after = co_await insert(rt, session, *prepared, 1, 3, "after");
    EXPECT_TRUE(after.has_value()) << after.error().to_string();
    const auto read = co_await query(rt, session, "SELECT v FROM ks.t WHERE k = 1");
    CO_ASSERT_TRUE(read.has_value());
    CO_ASSERT_TRUE(read->size() == 2U);
    EXPECT_EQ(read->row(0).get<std::string>("v"), "before");
    EXPECT_EQ(read->row(1).get<std::string>("v"), "after");
  });
}

class ThreeNodesTest : public ClientNodeTest {
 protected:
  ThreeNodesTest() : ClientNodeTest(3) {}
};

TEST_F(ThreeNodesTest, AsksEachNodeByNameAndHearsWhoIsUp) {
  tell([this](Runtime& rt, Session& session) -> Task<void> {
    std::set<std::string> names;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto local =
          co_await query(rt, session, "SELECT host_id FROM system.local", {.node = address(i)});
      CO_ASSERT_TRUE(local.has_value());
      names.insert(local->row(0).get<base::Uuid>("host_id").value().to_string());
    }
    EXPECT_EQ(names.size(), 3U);

    // The others have to see it up before they can see it down.
    std::ignore = co_await runtime::sleep_for(rt, 10s, {});
    EXPECT_EQ(session.nodes()[2].reported, StatusChangeKind::up);
    machine(2).kill();
    std::ignore = co_await runtime::sleep_for(rt, 2min, {});
    EXPECT_FALSE(session.nodes()[2].connected);
    EXPECT_EQ(session.nodes()[2].reported, StatusChangeKind::down);
    for (int i = 0; i < 6; ++i) {
      const auto read = co_await query(rt, session, "SELECT host_id FROM system.local");
      EXPECT_TRUE(read.has_value());
    }
    machine(2).start();
    CO_ASSERT_OK(co_await session.wait_connected(address(2), Until::after(rt, 2min)));
    std::ignore = co_await runtime::sleep_for(rt, 1min, {});
    EXPECT_EQ(session.nodes()[2].reported, StatusChangeKind::up);
  });
}

}  // namespace
}  // namespace helenus::client
