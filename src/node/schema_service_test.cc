// Nodes on simulated machines that become a cluster and change its schema together: from several
// sides at once, through stops and crashes, and what they refuse. Through faults they do so in the
// scenario cluster-schema.
#include "cql/agreement/schema_service.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/server/server_test_support.h"
#include "node/node.h"
#include "node/nodes_test_support.h"
#include "runtime/sleep.h"
#include "runtime/when_all.h"
#include "sim/function_process.h"
#include "sim/lost_folder.h"
#include "sim/process.h"
#include "sim/world.h"

namespace helenus::node {
namespace {

using base::Errc;
using cql::TestClient;
using runtime::Address;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;
using namespace std::chrono_literals;
namespace protocol = cql::protocol;

const std::string kCreateKeyspace =
    "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'NetworkTopologyStrategy', "
    "'replication_factor': 3}";
const std::string kCreateTable = "CREATE TABLE ks.t (k int PRIMARY KEY, v int)";
const std::string kInsert = "INSERT INTO ks.t (k, v) VALUES (1, 1)";
const std::string kSelect = "SELECT v FROM ks.t WHERE k = 1";
const std::string kSchemaVersion = "SELECT schema_version FROM system.local";
const std::string kSchemaVersionOfPeer = "SELECT schema_version FROM system.peers_v2";

// What a statement is answered with: "done", the first cell in hexadecimal, or "2200: ...".
std::string told(const base::Result<protocol::DecodedResponse>& answer) {
  if (!answer) return answer.error().to_string();
  if (const auto* error = std::get_if<protocol::ErrorMessage>(&answer->message)) {
    return fmt::format("{:04x}: {}", static_cast<int>(error->code), error->message);
  }
  const auto* rows = std::get_if<protocol::RowsResult>(&answer->message);
  if (rows == nullptr) return "done";
  if (rows->row_count == 0) return "no rows";
  return base::to_hex(*protocol::CellCursor(*rows).next());
}

class NodesTest : public ::testing::Test {
 protected:
  // The first `seeds` of them are seeds of all.
  explicit NodesTest(std::size_t size = 3, std::size_t seeds = 3, std::uint64_t seed = 1)
      : world_(seed),
        client_(world_.add_machine({.name = "client"}, {})),
        nodes_(world_, std::vector<std::uint16_t>(size, 1), seeds) {}
  ~NodesTest() override {
    nodes_.stop_all();
    if (HasFailure()) {
      for (const std::string& line : world_.log().lines()) fmt::print("{}\n", line);
    }
  }

  std::unique_ptr<sim::Process> make_process(Runtime& runtime, std::size_t i) {
    return nodes_.make_process(runtime, i);
  }
  const std::vector<sim::MachineId>& ids() const { return nodes_.ids(); }
  sim::Machine& machine(std::size_t i) { return nodes_.machine(i); }
  Config& config(std::size_t i) { return nodes_.config(i); }
  Node& node(std::size_t i) { return nodes_.node(i); }
  bool is_up(std::size_t i) const { return nodes_.is_up(i); }
  const std::optional<base::Error>& start_error(std::size_t i) { return nodes_.start_error(i); }

  void start(std::initializer_list<std::size_t> order) {
    for (const std::size_t i : order) {
      machine(i).start();
      world_.run_for(2s);
    }
  }
  void expect_up(std::initializer_list<std::size_t> nodes) {
    const auto all_up = [&] {
      return std::ranges::all_of(nodes, [&](std::size_t i) { return is_up(i); });
    };
    ASSERT_TRUE(world_.run_until(all_up, 2min));
  }
  void start_and_expect_up(std::initializer_list<std::size_t> order) {
    start(order);
    expect_up(order);
  }
  void stop(std::size_t i) {
    machine(i).request_stop();
    ASSERT_TRUE(world_.run_until([&] { return !machine(i).is_up(); }, 1min));
  }
  void run_until_refused(std::size_t i) {
    ASSERT_TRUE(world_.run_until([&] { return start_error(i).has_value(); }, 2min));
  }

  // On clients of several nodes at once.
  std::vector<std::string> ask_at_once(
      const std::vector<std::pair<std::size_t, std::string>>& questions,
      model::Consistency level = model::Consistency::one) {
    std::vector<std::string> answers(questions.size());
    client_.set_process(sim::FunctionProcess::factory([&](Runtime& rt, StopToken) -> Task<void> {
      std::vector<Task<void>> tasks;
      for (std::size_t i = 0; i < questions.size(); ++i) {
        tasks.push_back(ask_one(rt, machine(questions[i].first).address(9042), questions[i].second,
                                level, answers[i]));
      }
      co_await runtime::when_all(std::move(tasks));
    }));
    client_.start();
    EXPECT_TRUE(world_.run_until([&] { return !client_.is_up(); }, 1h)) << "waits for ever";
    return answers;
  }
  std::string ask(std::size_t i, const std::string& text,
                  model::Consistency level = model::Consistency::one) {
    return ask_at_once({{i, text}}, level).front();
  }
  // Right now: nobody waits for anything.
  void expect_one_schema(std::initializer_list<std::size_t> nodes) {
    std::vector<std::pair<std::size_t, std::string>> questions;
    for (const std::size_t i : nodes) questions.emplace_back(i, kSchemaVersion);
    const auto versions = ask_at_once(questions);
    for (const std::string& version : versions) EXPECT_EQ(version, versions.front());
    EXPECT_EQ(versions.front().size(), 32U) << versions.front();
  }

  sim::World world_;

 private:
  static Task<void> ask_one(Runtime& rt, Address address, std::string text,
                            model::Consistency level, std::string& answer) {
    TestClient client(rt);
    const bool is_open = co_await client.open(address);
    if (!is_open) co_return;
    protocol::QueryRequest query{.text = text, .parameters = {}};
    query.parameters.consistency = level;
    EXPECT_TRUE(co_await client.send(TestClient::frame(1, query)));
    answer = told(co_await client.receive(2min));
  }

  sim::Machine& client_;
  testing::SimulatedNodes nodes_;
};

TEST_F(NodesTest, ChangeTheSchemaTogetherAndServeRows) {
  start_and_expect_up({2, 0, 1});
  EXPECT_EQ(ask(1, kCreateKeyspace), "done");
  EXPECT_EQ(ask(1, kSchemaVersionOfPeer), ask(1, kSchemaVersion));
  expect_one_schema({0, 1, 2});
  EXPECT_EQ(ask(2, kCreateTable), "done");
  expect_one_schema({0, 1, 2});
  EXPECT_EQ(ask(0, "ALTER TABLE ks.t ADD w int"), "done");
  expect_one_schema({0, 1, 2});
  for (const std::size_t i : {0U, 1U, 2U}) {
    EXPECT_THAT(ask(i, kCreateTable), StartsWith("2400: "));
    EXPECT_EQ(ask(i, kInsert, model::Consistency::quorum), "done");
    EXPECT_EQ(ask((i + 1) % 3, kSelect, model::Consistency::quorum), "00000001");
    EXPECT_EQ(ask((i + 2) % 3, "TRUNCATE ks.t"), "done");
    EXPECT_EQ(ask(i, kSelect), "no rows");
    EXPECT_THAT(ask(i, "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ks'"),
                base::to_hex(base::as_bytes("t")));
  }
  EXPECT_EQ(node(0).cluster().metadata()->keyspaces.size(), 1U);
  // So that the tokens of contexts that one node gives are good on every other.
  for (const std::size_t i : {1U, 2U}) {
    EXPECT_EQ(node(i).database().catalog().context_secret().reveal(),
              node(0).cluster().metadata()->secret.bytes.reveal());
  }
  EXPECT_EQ(ask(2, "DROP KEYSPACE ks"), "done");
  expect_one_schema({0, 1, 2});
  EXPECT_THAT(ask(0, kSelect), StartsWith("2200: keyspace ks does not exist"));
}

TEST_F(NodesTest, StatementsFromSeveralNodesAtOnceHaveOneOrder) {
  start_and_expect_up({0, 1, 2});
  EXPECT_THAT(ask_at_once({{0, kCreateKeyspace}, {1, kCreateKeyspace}, {2, kCreateKeyspace}}),
              UnorderedElementsAre("done", "done", "done"));
  expect_one_schema({0, 1, 2});
  const auto answers = ask_at_once({{0, kCreateTable}, {1, kCreateTable}, {2, kCreateTable}});
  EXPECT_THAT(answers, UnorderedElementsAre("done", StartsWith("2400: "), StartsWith("2400: ")));
  expect_one_schema({0, 1, 2});
  std::vector<std::pair<std::size_t, std::string>> many;
  for (std::size_t i = 0; i < 9; ++i) {
    many.emplace_back(i % 3, fmt::format("CREATE TABLE ks.t{} (k int PRIMARY KEY)", i));
  }
  EXPECT_THAT(ask_at_once(many), Each("done"));
  expect_one_schema({0, 1, 2});
  for (const std::size_t i : {0U, 1U, 2U}) {
    const auto tables = node(i).cluster().metadata()->schema.find_keyspace("ks")->tables;
    EXPECT_EQ(tables.size(), 10U);
  }
}

TEST_F(NodesTest, WhoIsDownDuringAChangeLearnsOfItWhenItIsBack) {
  start_and_expect_up({0, 1, 2});
  EXPECT_EQ(ask(0, kCreateKeyspace), "done");
  machine(2).power_loss();
  EXPECT_EQ(ask(0, kCreateTable), "done");
  EXPECT_EQ(ask(1, "CREATE TABLE ks.u (k int PRIMARY KEY)"), "done");
  machine(2).start();
  expect_up({2});
  // Before its first client is there.
  EXPECT_EQ(node(2).cluster().applied_version(), node(0).cluster().version());
  expect_one_schema({0, 1, 2});
  EXPECT_THAT(ask(2, kCreateTable), StartsWith("2400: "));
}

TEST_F(NodesTest, WhoIsDownTellsATableThatWasMadeAgainUnderItsIdFromTheOldOne) {
  const std::string id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
  const std::string create = kCreateTable + " WITH id = '" + id + "'";
  const base::Uuid table = *base::Uuid::parse(id);
  const auto storage = [&](std::size_t i) {
    return node(i).database().catalog().snapshot()->storage_of(table);
  };
  start_and_expect_up({0, 1, 2});
  EXPECT_EQ(ask(0, kCreateKeyspace), "done");
  EXPECT_EQ(ask(1, create), "done");
  const auto before = storage(2);
  EXPECT_TRUE(before.has_value());
  machine(2).power_loss();
  EXPECT_EQ(ask(0, "DROP TABLE ks.t"), "done");
  EXPECT_EQ(ask(1, create), "done");
  start_and_expect_up({2});
  EXPECT_GT(storage(2), before);
  for (const std::size_t i : {0U, 1U}) EXPECT_EQ(storage(i), storage(2));
}

TEST_F(NodesTest, ComeBackInAnyOrderWithTheirSchema) {
  start_and_expect_up({0, 1, 2});
  EXPECT_EQ(ask(0, kCreateKeyspace), "done");
  EXPECT_EQ(ask(1, kCreateTable), "done");
  const std::string version = ask(0, kSchemaVersion);
  for (const std::size_t i : {1U, 0U, 2U}) machine(i).power_loss();
  for (const std::size_t i : {2U, 0U, 1U}) {
    start_and_expect_up({i});
    EXPECT_EQ(ask(i, kSchemaVersion), version);
  }
  for (const std::size_t i : {0U, 1U, 2U}) EXPECT_EQ(ask(i, kSelect), "no rows");
  EXPECT_EQ(ask(2, "DROP TABLE ks.t"), "done");
  expect_one_schema({0, 1, 2});
}

TEST_F(NodesTest, AStatementThatIsNotUnderstoodByTheRingIsRefusedEverywhere) {
  start_and_expect_up({0, 1, 2});
  EXPECT_THAT(ask(1,
                  "CREATE KEYSPACE a WITH replication = {'class': 'SimpleStrategy', "
                  "'replication_factor': 1000}"),
              StartsWith("2200: "));
  EXPECT_EQ(node(1).cluster().metadata()->keyspaces.size(), 0U);
}

// Drivers reconnect at once, and take an UNAVAILABLE at its word.
TEST_F(NodesTest, WhoIsBackServesQuorumsFromItsFirstRequestOn) {
  start_and_expect_up({0, 1, 2});
  EXPECT_EQ(ask(0, kCreateKeyspace), "done");
  EXPECT_EQ(ask(0, kCreateTable), "done");
  const auto come_back = [&] {
    machine(0).kill();
    machine(0).start();
    expect_up({0});
  };
  come_back();
  EXPECT_EQ(ask(0, kInsert, model::Consistency::quorum), "done");
  machine(1).power_loss();
  come_back();
  EXPECT_EQ(ask(0, kInsert, model::Consistency::quorum), "done");
  // Alone it serves as well, what it can.
  machine(2).power_loss();
  come_back();
  EXPECT_THAT(ask(0, kInsert, model::Consistency::quorum), StartsWith("1000: "));
  EXPECT_EQ(ask(0, kInsert), "done");
}

TEST_F(NodesTest, AMinorityChangesNothingAndSaysSo) {
  start_and_expect_up({0, 1, 2});
  EXPECT_EQ(ask(0, kCreateKeyspace), "done");
  machine(0).power_loss();
  machine(1).power_loss();
  EXPECT_THAT(ask(2, kCreateTable), StartsWith("0000: The schema"));
  start_and_expect_up({1});
  const model::NodeId first = node(1).identity().node;
  const auto sees_it = [&] {
    const auto* seen = node(2).cluster().gossip().view().find(first);
    return seen != nullptr && seen->up;
  };
  EXPECT_TRUE(world_.run_until(sees_it, 1min));
  EXPECT_THAT(ask(2, "CREATE TABLE IF NOT EXISTS ks.t (k int PRIMARY KEY, v int)"), "done");
  expect_one_schema({1, 2});
}

// A process that is killed loses nothing that the system has; and yet it cannot know.
TEST_F(NodesTest, WhoAcknowledgesBeforeItIsOnTheDiskReentersAfterAKill) {
  for (std::size_t i = 0; i < 3; ++i) config(i).commitlog_sync = storage::LogSyncMode::periodic;
  start_and_expect_up({0, 1, 2});
  EXPECT_EQ(ask(1, kCreateKeyspace), "done");
  EXPECT_EQ(ask(1, kCreateTable), "done");
  EXPECT_EQ(ask(0, kInsert), "done");
  const auto names = [&](std::size_t i) {
    return metadata::began_on(*node(i).cluster().metadata()->find(node(i).identity().node),
                              node(i).cluster().metadata()->keyspaces.find("ks")->second, 0);
  };
  const causality::Epoch before = names(0);
  machine(0).kill();
  start_and_expect_up({0});
  EXPECT_GT(names(0), before);
  EXPECT_FALSE(node(0).cluster().metadata()->find(node(0).identity().node)->in_doubt);
  EXPECT_THAT(world_.log().lines(),
              Contains(AllOf(HasSubstr(" n0 "), HasSubstr("this node has re-entered"))));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(ask(i, kSelect), "00000001");
  EXPECT_EQ(ask(0, kInsert), "done");
  // An orderly stop loses nothing.
  const causality::Epoch second = names(0);
  stop(0);
  start_and_expect_up({0});
  EXPECT_EQ(names(0), second);
}

// A power cut: all are in doubt, and re-enter together; one that stays away is waited for.
TEST_F(NodesTest, WhoAreAllInDoubtReenterTogetherAndWaitForTheLastOne) {
  for (std::size_t i = 0; i < 3; ++i) config(i).commitlog_sync = storage::LogSyncMode::periodic;
  start_and_expect_up({0, 1, 2});
  EXPECT_EQ(ask(1, kCreateKeyspace), "done");
  EXPECT_EQ(ask(1, kCreateTable), "done");
  EXPECT_EQ(ask(0, kInsert), "done");
  world_.run_for(3s);  // beyond the period of the log
  for (std::size_t i = 0; i < 3; ++i) machine(i).power_loss();
  start({0, 1});
  world_.run_for(20s);
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_FALSE(is_up(i));
    EXPECT_THAT(node(i).phase(), AllOf(HasSubstr("re-enters"), HasSubstr("which is down")));
  }
  start({2});
  expect_up({0, 1, 2});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(ask(i, kSelect), "00000001");
}

// Whoever has lost all that it had, and falls again before the others have heard of it.
TEST_F(NodesTest, WhoHasLostItsDataReentersHoweverOftenItFallsBefore) {
  start_and_expect_up({0, 1, 2});
  EXPECT_EQ(ask(1, kCreateKeyspace), "done");
  EXPECT_EQ(ask(1, kCreateTable), "done");
  EXPECT_EQ(ask(0, kInsert, model::Consistency::all), "done");
  const auto names = [&] {
    return metadata::began_on(*node(1).cluster().metadata()->find(node(0).identity().node),
                              node(1).cluster().metadata()->keyspaces.find("ks")->second, 0);
  };
  const causality::Epoch before = names();
  machine(0).power_loss();
  sim::lose_folder(machine(0).disk(), "/data/tables");
  sim::lose_folder(machine(0).disk(), "/data/commitlog");
  // Nobody is there to give new names: it makes its tablets and asks, until it is killed.
  machine(2).power_loss();
  machine(1).power_loss();
  for (int life = 0; life < 2; ++life) {
    start({0});
    const auto asks = [&] { return node(0).phase().contains("asks for new names"); };
    EXPECT_TRUE(world_.run_until(asks, 1min)) << node(0).phase();
    machine(0).kill();
  }
  start_and_expect_up({0, 1, 2});
  EXPECT_GT(names(), before);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(ask(i, kSelect), "00000001");
}

class StrangerTest : public NodesTest {
 protected:
  StrangerTest() : NodesTest(4, 3) {}
};

TEST_F(StrangerTest, IsRefusedWithAReasonInBothLogs) {
  config(3).cluster_name = "carthage";
  start_and_expect_up({0, 1, 2});
  start({3});
  world_.run_for(10s);
  EXPECT_FALSE(is_up(3));
  EXPECT_THAT(node(3).phase(), HasSubstr("troy"));
  EXPECT_EQ(node(0).cluster().metadata()->nodes.size(), 3U);
  const auto said_by = [](std::string name) {
    return AllOf(HasSubstr(" " + name + " "), HasSubstr("carthage"), HasSubstr("troy"));
  };
  EXPECT_THAT(world_.log().lines(), Contains(said_by("n3")));
  EXPECT_THAT(world_.log().lines(), Contains(said_by("n0")));
  stop(3);
}

TEST_F(StrangerTest, JoinsAndServesWhatThereWas) {
  start_and_expect_up({0, 1, 2});
  EXPECT_EQ(ask(0, kCreateKeyspace), "done");
  EXPECT_EQ(ask(0, kCreateTable), "done");
  EXPECT_EQ(ask(0, kInsert), "done");
  start_and_expect_up({3});
  const auto metadata = node(3).cluster().metadata();
  EXPECT_EQ(metadata->nodes.size(), 4U);
  EXPECT_FALSE(metadata::change_is_under_way(*metadata));
  EXPECT_EQ(ask(3, kSelect), "00000001");
  EXPECT_EQ(ask(3,
                "ALTER KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
                "'replication_factor': 4}"),
            "done");
  EXPECT_TRUE(world_.run_until(
      [&] { return !metadata::change_is_under_way(*node(3).cluster().metadata()); }, 1min));
  for (const std::size_t i : {0U, 1U, 2U, 3U}) EXPECT_EQ(ask(i, kSelect), "00000001");
}

// ---- A node alone ----

class LonelyTest : public NodesTest {
 protected:
  LonelyTest() : NodesTest(2, 1) {}
};

TEST_F(LonelyTest, ServesRowsOverLives) {
  start_and_expect_up({0});
  EXPECT_EQ(ask(0, kCreateKeyspace), "done");
  EXPECT_EQ(ask(0, kCreateTable), "done");
  EXPECT_EQ(ask(0, kInsert), "done");
  EXPECT_EQ(ask(0, kSelect), "00000001");
  machine(0).power_loss();
  start_and_expect_up({0});
  EXPECT_EQ(ask(0, kSelect), "00000001");
  EXPECT_EQ(ask(0,
                "ALTER KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
                "'replication_factor': 2}"),
            "done");
  EXPECT_FALSE(metadata::change_is_under_way(*node(0).cluster().metadata()));
  const auto before = node(0).cluster().metadata();
  EXPECT_EQ(ask(0, "TRUNCATE ks.t"), "done");
  EXPECT_EQ(ask(0, kSelect), "no rows");
  EXPECT_EQ(node(0).cluster().metadata()->storage.begin()->second, before->next.storage);
  machine(0).power_loss();
  start_and_expect_up({0});
  EXPECT_EQ(ask(0, kSelect), "no rows");
}

TEST_F(LonelyTest, ServesRowsWithAnotherOneThatComes) {
  start_and_expect_up({0});
  EXPECT_EQ(ask(0, kCreateKeyspace), "done");
  EXPECT_EQ(ask(0, kCreateTable), "done");
  EXPECT_EQ(ask(0, kInsert), "done");
  EXPECT_EQ(ask(0, "DROP KEYSPACE ks"), "done");
  start_and_expect_up({1});
  EXPECT_EQ(ask(1, kCreateKeyspace), "done");
  EXPECT_EQ(ask(1, kCreateTable), "done");
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_EQ(ask(i, kInsert), "done");
    world_.run_for(100ms);  // at ONE the other one may have it a moment later
    EXPECT_EQ(ask(1 - i, kSelect), "00000001");
  }
}

TEST_F(LonelyTest, ASchemaThatIsTooLargeIsRefusedAndTheOldOneStays) {
  start_and_expect_up({0});
  EXPECT_EQ(ask(0, kCreateKeyspace), "done");
  EXPECT_EQ(ask(0, kCreateTable), "done");
  // Nine of them are more than the metadata may have.
  const std::string comment(1'000'000, 'x');
  const auto create = [&](int i) {
    return ask(
        0, fmt::format("CREATE TABLE ks.t{} (k int PRIMARY KEY) WITH comment = '{}'", i, comment));
  };
  for (int i = 0; i < 8; ++i) EXPECT_EQ(create(i), "done");
  EXPECT_THAT(create(8), HasSubstr("too large"));
  EXPECT_EQ(node(0).cluster().metadata()->schema.find_keyspace("ks")->tables.size(), 9U);
  EXPECT_EQ(ask(0, kInsert), "done");
  EXPECT_EQ(ask(0, "DROP TABLE ks.t0"), "done");
  EXPECT_EQ(create(8), "done");
}

}  // namespace
}  // namespace helenus::node
