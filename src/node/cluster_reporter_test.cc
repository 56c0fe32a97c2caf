// Nodes on simulated machines, the first one of two cores, and drivers that listen to it: what they
// hear when others stop, crash, return and join, and what the tables say when they hear it.
#include "admin/cluster_reporter.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cql/server/server_test_support.h"
#include "node/nodes_test_support.h"
#include "runtime/when_all.h"
#include "sim/function_process.h"
#include "sim/world.h"

namespace helenus::node {
namespace {

using cql::TestClient;
using nlohmann::json;
using runtime::Address;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using namespace std::chrono_literals;
namespace protocol = cql::protocol;

constexpr std::size_t kListeners = 4;  // on both cores, as connections are spread

struct News {
  std::string event;           // "UP n2"
  std::size_t peers_then = 0;  // rows of system.peers_v2 when it came
};

class ReporterTest : public ::testing::Test {
 protected:
  // The first one has two cores; the fourth one is no seed.
  ReporterTest()
      : client_(world_.add_machine({.name = "client"}, {})),
        operator_(world_.add_machine({.name = "operator"}, {})),
        nodes_(world_, {2, 1, 1, 1}, 3),
        heard_(kListeners) {}
  ~ReporterTest() override {
    if (client_.is_up()) client_.kill();
    nodes_.stop_all();
  }

  void start(std::initializer_list<std::size_t> nodes) {
    for (const std::size_t i : nodes) nodes_.machine(i).start();
  }
  // Long enough for a start, and for gossip to spread.
  void settle() { world_.run_for(20s); }

  // What a node answers to GET.
  std::string get(std::size_t i, std::string path) {
    std::string answer;
    operator_.set_process(sim::FunctionProcess::factory(
        [&, address = nodes_.machine(i).address(7070)](Runtime& rt, const StopToken&) {
          return get_from(rt, address, path, answer);
        }));
    operator_.start();
    EXPECT_TRUE(world_.run_until([&] { return !operator_.is_up(); }, 1min));
    return answer;
  }
  json get_json(std::size_t i, std::string path) {
    const std::string answer = get(i, std::move(path));
    const json parsed = json::parse(answer.substr(answer.find("\r\n\r\n") + 4), nullptr, false);
    EXPECT_FALSE(parsed.is_discarded()) << answer;
    return parsed;
  }
  // "there here" by peer, ascending.
  std::vector<std::string> missing(std::size_t i) {
    std::vector<std::string> texts;
    const json told = get_json(i, "/cluster/missing");
    for (const json& peer : told["peers"]) {
      texts.push_back(
          fmt::format("{} {}", peer["missing_there"].get<int>(), peer["missing_here"].get<int>()));
    }
    std::ranges::sort(texts);
    return texts;
  }
  // Statements, one after the other, through the first node.
  void execute(const std::vector<std::string>& statements) {
    operator_.set_process(
        sim::FunctionProcess::factory([&](Runtime& rt, const StopToken&) -> Task<void> {
          return execute_on(rt, nodes_.machine(0).address(9042), statements);
        }));
    operator_.start();
    EXPECT_TRUE(world_.run_until([&] { return !operator_.is_up(); }, 1min));
  }
  static Task<void> execute_on(Runtime& rt, Address server,
                               const std::vector<std::string>& statements) {
    TestClient client(rt);
    const bool is_open = co_await client.open(server);
    EXPECT_TRUE(is_open);
    for (const std::string& statement : statements) {
      const std::string answer = co_await client.text_of(1, statement);
      EXPECT_THAT(answer, Not(AnyOf(StartsWith("error"), StartsWith("["), "not sent")))
          << statement;
    }
  }
  static Task<void> get_from(Runtime& rt, Address address, std::string path, std::string& text) {
    const auto until = Until::after(rt, 5s);
    const auto stream = co_await rt.transport.connect(address, until);
    if (!stream) co_return;
    const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
    std::ignore = co_await (*stream)->write(base::as_bytes(request), until);
    std::vector<std::byte> chunk(4096);
    for (;;) {
      const auto got = co_await (*stream)->read(chunk, until);
      if (!got || *got == 0) co_return;
      text += base::as_text(std::span(chunk).first(*got));
    }
  }

  // ---- Listeners ----

  // Begins to listen to the first node, and goes on.
  void listen() {
    client_.set_process(sim::FunctionProcess::factory(
        [this](Runtime& rt, StopToken stop) { return listen_all(rt, std::move(stop)); }));
    client_.start();
    EXPECT_TRUE(world_.run_until([&] { return registered_ == kListeners; }, 1min));
  }
  // What all listeners have heard since the last call of forget_heard(): so many events.
  std::vector<std::string> heard(std::size_t count) {
    const auto complete = [&] {
      return std::ranges::all_of(heard_, [&](const auto& news) { return news.size() >= count; });
    };
    EXPECT_TRUE(world_.run_until(complete, 2min)) << "not heard by all";
    world_.run_for(5s);
    std::vector<std::string> events;
    for (const News& news : heard_.front()) events.push_back(news.event);
    for (const auto& other : heard_) {
      std::vector<std::string> others;
      for (const News& news : other) others.push_back(news.event);
      EXPECT_EQ(others, events);
    }
    return events;
  }
  std::vector<std::size_t> peers_when_heard() {
    std::vector<std::size_t> counts;
    for (const auto& news : heard_) {
      for (const News& each : news) counts.push_back(each.peers_then);
    }
    return counts;
  }
  void forget_heard() {
    for (auto& news : heard_) news.clear();
  }

  Task<void> listen_all(Runtime& rt, StopToken stop) {
    std::vector<Task<void>> tasks;
    for (std::size_t i = 0; i < kListeners; ++i) tasks.push_back(listen_one(rt, i, stop));
    co_await runtime::when_all(std::move(tasks));
  }
  Task<void> listen_one(Runtime& rt, std::size_t number, StopToken stop) {
    const Address server = nodes_.machine(0).address(9042);
    TestClient client(rt);
    const bool is_open = co_await client.open(server);
    if (!is_open) co_return;
    const auto ready = co_await client.ask(
        1, protocol::RegisterRequest{.kinds = {protocol::EventKind::topology_change,
                                               protocol::EventKind::status_change}});
    EXPECT_EQ(TestClient::describe(ready), "READY");
    ++registered_;
    std::deque<protocol::Event> events;
    while (!stop.stop_requested()) {
      const auto response = co_await client.receive(1h);
      if (!response) co_return;
      events.push_back(std::get<protocol::Event>(response->message));
      while (!events.empty()) {
        const std::string text = text_of(events.front());
        events.pop_front();
        const std::size_t peers = co_await count_peers(client, events);
        heard_[number].push_back({.event = text, .peers_then = peers});
      }
    }
  }
  // As drivers do when they hear of something. Further events may come before the answer.
  static Task<std::size_t> count_peers(TestClient& client, std::deque<protocol::Event>& events) {
    const bool sent =
        co_await client.send(TestClient::query(2, "SELECT peer FROM system.peers_v2"));
    EXPECT_TRUE(sent);
    for (;;) {
      const auto response = co_await client.receive();
      if (!response) co_return 0;
      if (const auto* event = std::get_if<protocol::Event>(&response->message)) {
        events.push_back(*event);
      } else {
        co_return std::get<protocol::RowsResult>(response->message).row_count;
      }
    }
  }
  std::string text_of(const protocol::Event& event) const {
    const auto* topology = std::get_if<protocol::TopologyChange>(&event);
    const auto& node =
        topology != nullptr ? topology->node : std::get<protocol::StatusChange>(event).node;
    const auto name = topology != nullptr ? name_of(topology->kind)
                                          : name_of(std::get<protocol::StatusChange>(event).kind);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Address address = nodes_.machine(i).address(9042);
      if (base::equal(node.ip(), base::as_bytes(address.ip_bytes())) && node.port == 9042) {
        return fmt::format("{} n{}", name, i);
      }
    }
    return "of nobody";
  }

  sim::World world_{1};
  sim::Machine& client_;
  sim::Machine& operator_;
  testing::SimulatedNodes nodes_;
  std::size_t registered_ = 0;
  std::vector<std::vector<News>> heard_;  // by listener
};

TEST_F(ReporterTest, ListenersOnEveryCoreHearOfOthersAndFindThemInTheTables) {
  start({0, 1, 2});
  settle();
  listen();
  nodes_.machine(2).power_loss();
  EXPECT_THAT(heard(1), ElementsAre("DOWN n2"));
  EXPECT_THAT(peers_when_heard(), Each(2U)) << "who is down is still of the cluster";
  forget_heard();
  nodes_.machine(2).start();
  EXPECT_THAT(heard(1), ElementsAre("UP n2"));
  forget_heard();
  start({3});
  EXPECT_THAT(heard(2), ElementsAre("NEW_NODE n3", "UP n3"));
  EXPECT_THAT(peers_when_heard(), Each(3U)) << "drivers ask at once";
  forget_heard();
  nodes_.machine(1).request_stop();
  EXPECT_THAT(heard(1), ElementsAre("DOWN n1"));
}

TEST_F(ReporterTest, EveryNodeTellsOperatorsOfAll) {
  start({0, 1, 2});
  settle();
  const json first = get_json(0, "/cluster");
  ASSERT_EQ(first["nodes"].size(), 3U);
  for (const json& node : first["nodes"]) {
    EXPECT_EQ(node["state"], "normal");
    EXPECT_EQ(node["is_up"], true);
    EXPECT_TRUE(node["load_bytes"].is_number()) << "it was told by gossip";
    EXPECT_EQ(node["schema_version"], first["nodes"][0]["schema_version"]);
    EXPECT_GE(node["tokens"], 5);
  }
  const json second = get_json(1, "/cluster");
  EXPECT_NE(second["this_node"], first["this_node"]);
  EXPECT_EQ(get_json(2, "/cluster/ring")["tablets"], get_json(1, "/cluster/ring")["tablets"]);
  EXPECT_EQ(get_json(1, "/cluster/ring")["tablets"].size(), 16U);
  nodes_.machine(2).kill();
  // The detector takes eighteen rounds of gossip, and more if it has heard few.
  world_.run_for(40s);
  const json after = get_json(0, "/cluster");
  EXPECT_EQ(
      std::ranges::count_if(after["nodes"], [](const json& node) { return node["is_up"] == true; }),
      2);
}

TEST_F(ReporterTest, EveryNodeTellsWhatIsMissingWhere) {
  start({0, 1, 2});
  settle();
  execute(
      {"CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', "
       "'replication_factor': 3}",
       "CREATE TABLE ks.t (k int PRIMARY KEY, v int)"});
  settle();
  for (const std::size_t i : {0U, 1U, 2U}) EXPECT_THAT(missing(i), ElementsAre("0 0", "0 0"));
  nodes_.machine(2).power_loss();
  std::vector<std::string> writes;
  for (int k = 0; k < 5; ++k) {
    writes.push_back(fmt::format("INSERT INTO ks.t (k, v) VALUES ({}, 1)", k));
  }
  execute(writes);
  settle();
  EXPECT_THAT(missing(0), ElementsAre("0 0", "5 0"));
  EXPECT_THAT(missing(1), ElementsAre("0 0", "5 0"));
  const json peer = get_json(0, "/cluster/missing")["peers"][0];
  EXPECT_THAT(
      get(0, "/metrics"),
      HasSubstr(fmt::format("\nhelenus_replication_missing_there{{node=\"{}\"}} {}\n",
                            peer["host_id"].get<std::string>(), peer["missing_there"].get<int>())));
  start({2});
  settle();
  for (const std::size_t i : {0U, 1U, 2U}) EXPECT_THAT(missing(i), ElementsAre("0 0", "0 0"));
  EXPECT_THAT(get(2, "/metrics"), HasSubstr("\nhelenus_replication_mutations_pulled_total 5\n"));
}

TEST_F(ReporterTest, WhatCannotBeToldIsToldSo) {
  start({0});
  settle();
  const json starting = get_json(0, "/cluster");
  EXPECT_EQ(starting["status"], "starting");
  EXPECT_THAT(starting["phase"].get<std::string>(), HasSubstr("to say whether there is a cluster"));
  EXPECT_THAT(get(0, "/cluster"), HasSubstr("HTTP/1.1 503"));
  start({1, 2});
  settle();
  EXPECT_THAT(get(0, "/cluster/ring?keyspace=nothing"), HasSubstr("HTTP/1.1 404"));
  EXPECT_EQ(get_json(0, "/cluster?keyspace=nothing")["error"],
            "not found: there is no keyspace nothing");
  EXPECT_THAT(get(0, "/cluster?keyspace=%20"), HasSubstr("HTTP/1.1 400"));
}

}  // namespace
}  // namespace helenus::node
