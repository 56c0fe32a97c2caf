// Nodes on a simulated machine, through starts, stops and crashes.
#include "node/node.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "runtime/event.h"
#include "runtime/files.h"
#include "runtime/sleep.h"
#include "runtime/when_all.h"
#include "sim/function_process.h"
#include "sim/world.h"

namespace helenus::node {
namespace {

using base::Errc;
using base::Result;
using runtime::Address;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;
using namespace std::chrono_literals;

const std::string kFolder = "/var/helenus/data";
const std::string kIdentityPath = kFolder + "/identity";

// Most stories are about identity and ports; those are quicker without a database.
Config config(std::uint16_t port = 7070) {
  return {.data_directory = kFolder,
          .admin_address = Address::v4({127, 0, 0, 1}, port),
          .with_database = false};
}

class NodeTest : public testing::Test {
 protected:
  using Story = std::function<Task<void>(Runtime&)>;

  explicit NodeTest(std::uint64_t seed = 1)
      : world_(seed), machine_(world_.add_machine({.name = "node"}, {})) {}

  // Runs the story on the machine to its end.
  void tell(Story story) {
    machine_.set_process(sim::FunctionProcess::factory(
        [story = std::move(story)](Runtime& rt, StopToken) { return story(rt); }));
    machine_.start();
    EXPECT_TRUE(world_.run_until([&] { return !machine_.is_up(); }, 1h)) << "waits for ever";
  }
  // Starts a node, asks for its identity and stops it.
  std::optional<Identity> identity() {
    std::optional<Identity> told;
    tell([&told](Runtime& rt) -> Task<void> {
      Node node(rt, config());
      const auto started = co_await node.start();
      EXPECT_TRUE(started.has_value()) << started.error().to_string();
      if (started) told = node.identity();
      co_await node.stop();
    });
    return told;
  }
  void put(std::string path, std::string content) {
    tell([path, content](Runtime& rt) -> Task<void> {
      const auto directory = runtime::directory_of(path);
      CO_ASSERT_OK(co_await runtime::make_directories_durably(rt, directory));
      CO_ASSERT_OK(co_await runtime::replace_file(rt, path, base::Bytes::copy_of(content)));
    });
  }
  std::string content_of(std::string path) {
    std::string content;
    tell([path, &content](Runtime& rt) -> Task<void> {
      const auto read = co_await runtime::read_file(rt, path, 1 << 20);
      CO_ASSERT_OK(read);
      content = read->text();
    });
    return content;
  }

  sim::World world_;
  sim::Machine& machine_;
};

Task<std::string> ask(Runtime& rt, Address address, std::string method, std::string path) {
  const auto until = Until::after(rt, 1min);
  const auto stream = co_await rt.transport.connect(address, until);
  if (!stream) co_return stream.error().to_string();
  const std::string request = method + " " + path + " HTTP/1.0\r\n\r\n";
  const auto sent = co_await (*stream)->write(base::as_bytes(request), until);
  EXPECT_TRUE(sent.has_value());
  std::string text;
  std::vector<std::byte> chunk(1024);
  for (;;) {
    const auto got = co_await (*stream)->read(chunk, until);
    if (!got || *got == 0) break;
    text += base::as_text(std::span(chunk).first(*got));
  }
  co_return text;
}

Task<std::string> get(Runtime& rt, Address address, std::string path) {
  return ask(rt, address, "GET", std::move(path));
}

Task<std::string> healthz(Runtime& rt, Address address) {
  return get(rt, address, "/healthz");
}

TEST_F(NodeTest, TellsItsHealthAndItsNameWhileItRuns) {
  tell([](Runtime& rt) -> Task<void> {
    Node node(rt, config(0));
    CO_ASSERT_OK(co_await node.start());
    const Address address = node.admin_address();
    EXPECT_NE(address.port(), 0);
    const auto up = co_await healthz(rt, address);
    EXPECT_TRUE(up.starts_with("HTTP/1.1 200 OK\r\n")) << up;
    EXPECT_TRUE(up.contains("\"status\":\"ok\"")) << up;
    EXPECT_TRUE(up.contains(node.identity().node.value().to_string())) << up;
    co_await node.stop();
    EXPECT_EQ(co_await healthz(rt, address), fmt::format("refused: connecting to {}", address));
  });
}

TEST_F(NodeTest, KeepsItsIdentity) {
  const auto first = identity();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->node.value().version(), 4U);
  EXPECT_EQ(identity(), first) << "after an orderly stop";
  machine_.start();
  world_.run_for(1ms);
  machine_.kill();
  EXPECT_EQ(identity(), first) << "after a crash";
  machine_.power_loss();
  EXPECT_EQ(identity(), first) << "after a power loss";
}

TEST_F(NodeTest, FoldersHaveIdentitiesOfTheirOwn) {
  tell([](Runtime& rt) -> Task<void> {
    Config first = config(1);
    first.data_directory = "/one";
    Config second = config(2);
    second.data_directory = "/two";
    Node one(rt, first);
    Node two(rt, second);
    CO_ASSERT_OK(co_await one.start());
    CO_ASSERT_OK(co_await two.start());
    EXPECT_NE(one.identity().node, two.identity().node);
    co_await two.stop();
    co_await one.stop();
  });
}

TEST_F(NodeTest, ASecondNodeOnTheFolderIsRefusedAndTheFirstGoesOn) {
  tell([](Runtime& rt) -> Task<void> {
    Node first(rt, config(1));
    Node second(rt, config(2));
    CO_ASSERT_OK(co_await first.start());
    const auto refused = co_await second.start();
    EXPECT_TRUE(refused.failed_with(Errc::locked));
    EXPECT_TRUE(refused.error().to_string().contains(kFolder)) << refused.error().to_string();
    co_await second.stop();
    const auto answer = co_await healthz(rt, first.admin_address());
    EXPECT_TRUE(answer.contains("200 OK")) << answer;
    co_await first.stop();

    Node third(rt, config(3));
    CO_ASSERT_OK(co_await third.start());
    EXPECT_EQ(third.identity(), first.identity());
    co_await third.stop();
  });
}

TEST_F(NodeTest, ABusyPortIsRefusedByNameAndTheFolderLetGo) {
  tell([](Runtime& rt) -> Task<void> {
    const auto busy = rt.transport.listen(config(1).admin_address);
    CO_ASSERT_OK(busy);
    Node refused(rt, config(1));
    const auto started = co_await refused.start();
    EXPECT_TRUE(started.failed_with(Errc::address_in_use));
    EXPECT_TRUE(started.error().to_string().contains("127.0.0.1:1")) << started.error().to_string();
    co_await refused.stop();

    Node next(rt, config(2));
    CO_ASSERT_OK(co_await next.start());
    co_await next.stop();
  });
}

TEST_F(NodeTest, MayBeStoppedWithoutAStartAndTwice) {
  tell([](Runtime& rt) -> Task<void> {
    Node node(rt, config());
    co_await node.stop();
    co_await node.stop();
  });
}

TEST_F(NodeTest, ADamagedIdentityIsRefusedAndLeftAsItIs) {
  ASSERT_TRUE(identity().has_value());
  const std::string whole = content_of(kIdentityPath);
  std::string flipped = whole;
  flipped[20] ^= 1;
  std::string newer = whole;
  newer[8] = 2;
  struct Row {
    std::string content;
    Errc expected;
  };
  for (const Row& row :
       {Row{"", Errc::corrupt}, Row{whole.substr(0, 36), Errc::corrupt},
        Row{flipped, Errc::corrupt}, Row{whole + "x", Errc::corrupt},
        Row{std::string(37, '\0'), Errc::corrupt}, Row{std::string(100'000, 'x'), Errc::corrupt},
        Row{newer, Errc::unsupported}}) {
    put(kIdentityPath, row.content);
    tell([&row](Runtime& rt) -> Task<void> {
      Node node(rt, config());
      const auto started = co_await node.start();
      EXPECT_TRUE(started.failed_with(row.expected));
      EXPECT_TRUE(started.error().to_string().contains(kIdentityPath))
          << started.error().to_string();
      co_await node.stop();
    });
    EXPECT_EQ(content_of(kIdentityPath), row.content);
  }
  put(kIdentityPath, whole);
  EXPECT_TRUE(identity().has_value());
}

TEST_F(NodeTest, AFolderOfAnotherReleaseIsRefusedWithWhatToDo) {
  ASSERT_TRUE(identity().has_value());
  std::string other = content_of(kIdentityPath);
  other[8] = 2;
  put(kIdentityPath, other);
  tell([](Runtime& rt) -> Task<void> {
    Node node(rt, config());
    const auto started = co_await node.start();
    EXPECT_TRUE(started.failed_with(Errc::unsupported));
    EXPECT_TRUE(started.error().to_string().contains(
        kIdentityPath +
        ": version 2 of its format, and this release reads version 1: start the release that wrote "
        "it, or this one with an empty folder"))
        << started.error().to_string();
    co_await node.stop();
  });
}

TEST_F(NodeTest, AnIdentityThatCannotBeReadIsNoReasonToMakeOne) {
  tell([](Runtime& rt) -> Task<void> {
    CO_ASSERT_OK(co_await rt.files.make_directories(kIdentityPath));
    Node node(rt, config());
    const auto started = co_await node.start();
    EXPECT_FALSE(started.has_value());
    co_await node.stop();
    const auto info = co_await rt.files.info(kIdentityPath);
    CO_ASSERT_OK(info);
    EXPECT_TRUE(info->is_directory);
  });
}

TEST_F(NodeTest, WhatACrashLeftBesideTheIdentityDoesNotMatter) {
  put(kIdentityPath + ".new", "half an ident");
  const auto first = identity();
  ASSERT_TRUE(first.has_value());
  put(kIdentityPath + ".new", "half an ident");
  EXPECT_EQ(identity(), first);
}

TEST_F(NodeTest, AFolderThatIsAFileIsRefused) {
  put(kFolder, "a file");
  tell([](Runtime& rt) -> Task<void> {
    Node node(rt, config());
    const auto started = co_await node.start();
    EXPECT_FALSE(started.has_value());
    co_await node.stop();
  });
  EXPECT_EQ(content_of(kFolder), "a file");
}

// ---- With a database ----

Config with_database(std::uint16_t cql_port = 9042) {
  Config with = config();
  with.with_database = true;
  with.cql_address = Address::v4({127, 0, 0, 1}, cql_port);
  with.commitlog_segment_mib = 32;
  with.commitlog_total_mib = 128;
  with.memtable_mib = 8;
  with.block_cache_mib = 1;
  return with;
}

TEST_F(NodeTest, ServesClientsAndTellsMetrics) {
  tell([](Runtime& rt) -> Task<void> {
    Node node(rt, with_database(0));
    CO_ASSERT_OK(co_await node.start());
    EXPECT_NE(node.cql_address().port(), 0);
    const auto client = co_await rt.transport.connect(node.cql_address(), Until::after(rt, 1s));
    CO_ASSERT_OK(client);
    const auto metrics = co_await get(rt, node.admin_address(), "/metrics");
    EXPECT_TRUE(metrics.contains("text/plain; version=0.0.4")) << metrics;
    EXPECT_TRUE(metrics.contains("\nhelenus_cql_connections ")) << metrics;
    // What a node keeps for itself is not among the rows.
    EXPECT_TRUE(metrics.contains("\nhelenus_storage_writes_total 0\n")) << metrics;
    const auto health = co_await healthz(rt, node.admin_address());
    EXPECT_TRUE(health.contains("\"status\":\"ok\"")) << health;
    const Address address = node.cql_address();
    co_await node.stop();
    const auto refused = co_await rt.transport.connect(address, Until::after(rt, 1s));
    EXPECT_TRUE(refused.failed_with(Errc::refused));
    co_await node.stop();
  });
}

TEST_F(NodeTest, ADrainedNodeServesNoClientsAndSaysSo) {
  tell([](Runtime& rt) -> Task<void> {
    Node node(rt, with_database());
    CO_ASSERT_OK(co_await node.start());
    const Address admin = node.admin_address();
    for (int times = 0; times < 2; ++times) {
      const auto drained = co_await ask(rt, admin, "POST", "/drain");
      EXPECT_TRUE(drained.ends_with("{\"done\":\"drain\",\"tables\":0}\n")) << drained;
    }
    const auto refused = co_await rt.transport.connect(node.cql_address(), Until::after(rt, 1s));
    EXPECT_TRUE(refused.failed_with(Errc::refused));
    const auto health = co_await healthz(rt, admin);
    EXPECT_TRUE(health.starts_with("HTTP/1.1 503 ")) << health;
    EXPECT_TRUE(health.contains("\"status\":\"drained\"")) << health;
    const auto status = co_await get(rt, admin, "/cluster");
    EXPECT_TRUE(status.contains("\"serves_clients\": false")) << status;
    EXPECT_TRUE((co_await get(rt, admin, "/tables")).contains("\"tables\": []"));
    co_await node.stop();
  });
}

Task<void> expect_answer(Runtime& rt, Address admin, std::string method, std::string path,
                         std::string status, std::string words) {
  const auto answer = co_await ask(rt, admin, std::move(method), path);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + status)) << path << answer;
  EXPECT_TRUE(answer.contains(words)) << path << answer;
}

TEST_F(NodeTest, AnOrderIsAPostAndNamesWhatIsThere) {
  tell([](Runtime& rt) -> Task<void> {
    Node node(rt, with_database());
    CO_ASSERT_OK(co_await node.start());
    const Address admin = node.admin_address();
    co_await expect_answer(rt, admin, "GET", "/drain", "405", "Allow: POST\r\n");
    co_await expect_answer(rt, admin, "POST", "/tables", "405", "Allow: GET, HEAD\r\n");
    co_await expect_answer(rt, admin, "POST", "/tables/flush", "200", "\"tables\":0");
    co_await expect_answer(rt, admin, "POST", "/tables/compact?keyspace=no", "404",
                           "there is no keyspace no");
    co_await expect_answer(rt, admin, "POST", "/drain?keyspace=no", "400", "of the whole node");
    co_await expect_answer(rt, admin, "GET", "/tables?keyspace=no", "404",
                           "there is no keyspace no");
    co_await expect_answer(rt, admin, "GET", "/tables?table=a%2Fb", "400", "no name of a table");
    co_await expect_answer(rt, admin, "GET", "/cluster/tablets", "200", "\"tablets\": []");
    co_await expect_answer(rt, admin, "GET", "/cluster/missing", "200", "\"peers\": []");
    co_await expect_answer(rt, admin, "POST", "/cluster/missing", "405", "Allow: GET, HEAD\r\n");
    co_await expect_answer(rt, admin, "GET", "/cluster/other", "404", "nothing at /cluster/other");
    EXPECT_TRUE((co_await healthz(rt, admin)).contains("\"status\":\"ok\""));
    co_await node.stop();
  });
}

TEST_F(NodeTest, StartsAgainAfterAStopAndAfterAPowerLoss) {
  const auto start = [](Runtime& rt) -> Task<void> {
    Node node(rt, with_database());
    CO_ASSERT_OK(co_await node.start());
    co_await node.stop();
  };
  tell(start);
  tell(start);
  machine_.power_loss();
  tell(start);
}

TEST_F(NodeTest, ABusyPortForOtherNodesIsRefusedByName) {
  tell([](Runtime& rt) -> Task<void> {
    const auto busy = rt.transport.listen(with_database().listen_address);
    CO_ASSERT_OK(busy);
    Node node(rt, with_database());
    const auto started = co_await node.start();
    EXPECT_TRUE(started.failed_with(Errc::address_in_use));
    EXPECT_TRUE(started.error().to_string().contains("7000")) << started.error().to_string();
    co_await node.stop();
  });
}

TEST_F(NodeTest, ABusyPortForClientsIsRefusedByName) {
  tell([](Runtime& rt) -> Task<void> {
    const auto busy = rt.transport.listen(with_database().cql_address);
    CO_ASSERT_OK(busy);
    Node node(rt, with_database());
    const auto started = co_await node.start();
    EXPECT_TRUE(started.failed_with(Errc::address_in_use));
    EXPECT_TRUE(started.error().to_string().contains("9042")) << started.error().to_string();
    co_await node.stop();
  });
}

TEST_F(NodeTest, FoldersOfTablesMayBeAddedAndNotSwapped) {
  tell([](Runtime& rt) -> Task<void> {
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{"/disk2"}, {"/disk2", "/disk3"}}) {
      Config config = with_database();
      config.more_data_directories = more;
      Node node(rt, config);
      CO_ASSERT_OK(co_await node.start());
      co_await node.stop();
      for (const std::string& folder : more) {
        CO_ASSERT_OK(co_await rt.files.info(folder + "/tables/shard-0000"));
      }
    }
    Config swapped = with_database();
    swapped.more_data_directories = {"/disk3", "/disk2"};
    Node node(rt, swapped);
    const auto refused = co_await node.start();
    EXPECT_TRUE(refused.failed_with(Errc::corrupt));
    EXPECT_TRUE(
        refused.error().to_string().contains("/disk3/tables: is data directory 2 of folder"))
        << refused.error().to_string();
    co_await node.stop();
  });
}

// ---- As one of a cluster ----

TEST_F(NodeTest, ANodeThatLostItsVoteIsRefused) {
  ASSERT_TRUE(identity().has_value());
  tell([](Runtime& rt) -> Task<void> {
    CO_ASSERT_OK(co_await rt.files.remove(kFolder + "/acceptor"));
    Node node(rt, with_database());
    const auto started = co_await node.start();
    EXPECT_TRUE(started.failed_with(Errc::not_found));
    EXPECT_TRUE(started.error().to_string().contains("/acceptor")) << started.error().to_string();
    co_await node.stop();
  });
}

TEST_F(NodeTest, ANodeRefusesToBeOfAnotherClusterOrInAnotherPlace) {
  tell([](Runtime& rt) -> Task<void> {
    Node node(rt, with_database());
    CO_ASSERT_OK(co_await node.start());
    co_await node.stop();
    Config renamed = with_database();
    renamed.cluster_name = "carthage";
    Config moved = with_database();
    moved.rack = "rack2";
    for (const auto& [other, word] :
         {std::pair(renamed, "\"Helenus\""), std::pair(moved, "\"rack1\"")}) {
      Node refused(rt, other);
      const auto started = co_await refused.start();
      EXPECT_TRUE(started.failed_with(Errc::refused));
      EXPECT_TRUE(started.error().to_string().contains(word)) << started.error().to_string();
      co_await refused.stop();
    }
  });
}

TEST_F(NodeTest, ANodeThatMovedTellsItsNewAddresses) {
  tell([](Runtime& rt) -> Task<void> {
    Node node(rt, with_database());
    CO_ASSERT_OK(co_await node.start());
    co_await node.stop();
    Config config = with_database(0);
    config.listen_address = Address::v4({127, 0, 0, 1}, 0);
    Node moved(rt, config);
    CO_ASSERT_OK(co_await moved.start());
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, 1s, {}));
    const auto& self = moved.cluster().metadata()->nodes.front().description;
    EXPECT_EQ(self.client_address, moved.cql_address());
    EXPECT_EQ(self.node_address, moved.cluster().node_address());
    EXPECT_NE(self.node_address.port(), 7000);
    EXPECT_NE(self.node_address.port(), 0);
    co_await moved.stop();
  });
}

TEST_F(NodeTest, AStartThatWaitsForOthersSaysSoAndEndsWhenAsked) {
  tell([](Runtime& rt) -> Task<void> {
    Config config = with_database();
    config.seeds = {config.listen_address, Address::v4({127, 0, 0, 2}, 7000)};
    Node node(rt, config);
    runtime::StopSource stop;
    std::vector<std::string> told;
    const auto look_and_stop = [](Runtime& there, Node& starting,
                                  runtime::StopSource& ends) -> Task<std::string> {
      std::ignore = co_await runtime::sleep_for(there, 10s, {});
      std::string health = co_await healthz(there, starting.admin_address());
      ends.request_stop();
      co_return health;
    };
    const auto [started, health] = co_await runtime::when_all(
        node.start(stop.token(), [&](const std::string& phase) { told.push_back(phase); }),
        look_and_stop(rt, node, stop));
    EXPECT_TRUE(started.failed_with(Errc::cancelled));
    EXPECT_TRUE(health.contains("\"status\":\"starting\"")) << health;
    EXPECT_TRUE(health.contains("\"phase\":\"waits for 127.0.0.2:7000")) << health;
    EXPECT_GE(told.size(), 3U);
    EXPECT_TRUE(told.back().starts_with("waits for 127.0.0.2:7000")) << told.back();
    co_await node.stop();
  });
}

// Starts the node and kills it (the power stays) when so many events have happened. Whatever was
// or was not on the disk by then, the identity that the next start tells survives a power loss.
// Returns whether the node was still starting when it was killed.
bool identity_survives(std::uint64_t seed, std::uint64_t events_before_kill) {
  struct Run final : NodeTest {
    explicit Run(std::uint64_t seed) : NodeTest(seed) {}
    void TestBody() override {}
    bool go(std::uint64_t events) {
      bool started = false;
      machine_.set_process(
          sim::FunctionProcess::factory([&started](Runtime& rt, StopToken) -> Task<void> {
            Node node(rt, config());
            CO_ASSERT_OK(co_await node.start());
            started = true;
            runtime::Event never(rt);
            const auto waited = co_await never.wait(Until::forever());
            EXPECT_TRUE(waited.has_value());
          }));
      machine_.start();
      for (; events > 0 && !started; --events) world_.step();
      machine_.kill();
      const auto told = identity();
      machine_.power_loss();
      EXPECT_EQ(identity(), told);
      return !started;
    }
  };
  return Run(seed).go(events_before_kill);
}

TEST(NodeCrash, AnIdentityThatWasToldIsNeverTakenBack) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (std::uint64_t events = 1; identity_survives(seed, events); ++events) {
      if (testing::Test::HasFailure()) FAIL() << "seed " << seed << ", " << events << " events";
    }
  }
}

}  // namespace
}  // namespace helenus::node
