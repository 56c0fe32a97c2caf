// Clusters in a few words, and what drivers and operators are told of them.
#include "admin/cluster_report.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

#include "membership/phi_detector.h"
#include "metadata/metadata_test_support.h"
#include "metadata/transitions.h"
#include "ring/placement.h"

namespace helenus::admin {
namespace {

using base::Errc;
using consensus::Version;
using cql::protocol::Event;
using cql::protocol::Inet;
using metadata::ClusterMetadata;
using metadata::testing::a_cluster;
using metadata::testing::a_node;
using metadata::testing::node_id;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const base::Uuid kSchema = *base::Uuid::parse("11111111-2222-8333-8444-555555555555");

Heard well(membership::Generation generation = 1) {
  return {.is_alive = true,
          .serves_clients = true,
          .generation = generation,
          .schema_version = kSchema,
          .metadata_version = 5,
          .load_bytes = 1000};
}

// As node 1 knows it, all nodes well.
struct Story {
  explicit Story(std::uint8_t nodes, std::size_t tokens = 8) : metadata(a_cluster(nodes, tokens)) {
    for (std::uint8_t i = 1; i <= nodes; ++i) heard[node_id(i)] = well();
  }
  ClusterMoment now() const {
    return {.metadata = metadata, .version = version, .heard = heard, .self = node_id(1)};
  }
  void join(std::uint8_t number) {
    auto next = metadata::begin_join(metadata, a_node(number));
    ASSERT_TRUE(next) << next.error().to_string();
    metadata = *std::move(next);
  }
  void finish() {
    auto next = metadata::finish_change(metadata, metadata.epoch);
    ASSERT_TRUE(next) << next.error().to_string();
    metadata = *std::move(next);
  }

  ClusterMetadata metadata;
  HeardByNode heard;
  Version version{5};
};

std::string text_of(const Inet& inet) {
  return fmt::format("{}:{}", std::to_integer<int>(inet.ip().back()), inet.port);
}

// "NEW_NODE 3:9042": the last octet of the address, and the port.
std::vector<std::string> texts_of(const std::optional<PeerNews::News>& news) {
  std::vector<std::string> texts;
  if (!news) return texts;
  for (const Event& event : news->events) {
    if (const auto* topology = std::get_if<cql::protocol::TopologyChange>(&event)) {
      texts.push_back(fmt::format("{} {}", name_of(topology->kind), text_of(topology->node)));
    } else {
      const auto& status = std::get<cql::protocol::StatusChange>(event);
      texts.push_back(fmt::format("{} {}", name_of(status.kind), text_of(status.node)));
    }
  }
  return texts;
}

TEST(PeersOf, EveryTokenIsOneNodesAndOthersAreByHostId) {
  Story story(3, 8);
  const cql::ClusterPeers peers = peers_of(story.now());
  ASSERT_THAT(peers.others, SizeIs(2));
  EXPECT_EQ(peers.others[0].host_id, node_id(2).value());
  EXPECT_EQ(peers.others[1].host_id, node_id(3).value());
  EXPECT_EQ(peers.others[0].cql_address, a_node(2).client_address);
  EXPECT_EQ(peers.others[0].node_address, a_node(2).node_address);
  EXPECT_EQ(peers.others[0].data_center, "dc1");
  EXPECT_EQ(peers.others[0].rack, "r2");
  EXPECT_TRUE(peers.others[0].is_up);
  EXPECT_FALSE(peers.own_tokens.empty());
  EXPECT_EQ(peers.own_tokens.size() + peers.others[0].tokens.size() + peers.others[1].tokens.size(),
            8U);
  for (const metadata::Tablet& tablet : story.metadata.tablets) {
    const auto& whose = tablet.owner == node_id(1)   ? peers.own_tokens
                        : tablet.owner == node_id(2) ? peers.others[0].tokens
                                                     : peers.others[1].tokens;
    EXPECT_THAT(whose, ::testing::Contains(tablet.token.token()));
    EXPECT_TRUE(std::ranges::is_sorted(whose));
  }
}

TEST(PeersOf, ANewcomerIsNoPeerUntilItOwnsItsTokens) {
  Story story(2);
  story.join(3);
  story.heard[node_id(3)] = well();
  EXPECT_THAT(peers_of(story.now()).others, SizeIs(1));
  story.finish();
  const auto peers = peers_of(story.now());
  ASSERT_THAT(peers.others, SizeIs(2));
  EXPECT_FALSE(peers.others[1].tokens.empty());
}

TEST(PeersOf, UpIsAliveAndServingAndNotFencedOff) {
  Story story(3);
  story.heard[node_id(2)].serves_clients = false;
  story.heard[node_id(3)].is_alive = false;
  auto peers = peers_of(story.now());
  EXPECT_FALSE(peers.others[0].is_up);
  EXPECT_FALSE(peers.others[1].is_up);
  story.heard.clear();
  EXPECT_FALSE(peers_of(story.now()).others[0].is_up) << "nothing was heard of it";

  Story removal(3);
  auto next = metadata::begin_removal(removal.metadata, node_id(2), metadata::DataLoss::accepted);
  ASSERT_TRUE(next);
  removal.metadata = *std::move(next);
  peers = peers_of(removal.now());
  ASSERT_THAT(peers.others, SizeIs(2)) << "its tokens are nobody else's yet";
  EXPECT_FALSE(peers.others[0].is_up);
}

// By them drivers know when a change of the schema is everywhere.
TEST(PeersOf, ThoseThatAreBehindOrAheadAreToldWithTheSchemaTheyHold) {
  Story story(3);
  const base::Uuid older = *base::Uuid::parse("99999999-2222-8333-8444-555555555555");
  for (const std::uint64_t version : {4U, 5U, 6U}) {
    story.heard[node_id(2)].metadata_version = version;
    story.heard[node_id(2)].schema_version = older;
    const auto peers = peers_of(story.now());
    EXPECT_TRUE(peers.others[0].is_up);
    EXPECT_EQ(peers.others[0].schema_version, older) << "at version " << version;
    EXPECT_EQ(peers.others[1].schema_version, kSchema);
  }
  story.heard[node_id(2)].is_alive = false;
  EXPECT_EQ(peers_of(story.now()).others[0].schema_version, older);
  story.heard[node_id(2)].schema_version.reset();
  EXPECT_TRUE(peers_of(story.now()).others[0].schema_version.is_nil()) << "it has not said";
}

TEST(PeersOf, AnOrderedRingTellsNoTokens) {
  Story story(2);
  metadata::Founding founding{.cluster_name = "Troy",
                              .partitioner = ring::Partitioner::ordered,
                              .tokens = ring::evenly_spread_tokens(8),
                              .nodes = {a_node(1), a_node(2)}};
  story.metadata = *metadata::found(std::move(founding));
  const auto peers = peers_of(story.now());
  EXPECT_THAT(peers.own_tokens, IsEmpty());
  EXPECT_THAT(peers.others[0].tokens, IsEmpty());
}

TEST(RangesOf, AreThoseOfTheMetadata) {
  Story story(3);
  story.metadata = metadata::testing::with_keyspace(story.metadata, "ks", 2);
  const cql::ClusterPeers peers = peers_of(story.now());
  cql::PeerFacts self;
  self.host_id = node_id(1).value();
  self.node_address = a_node(1).node_address;
  self.data_center = "dc1";
  self.rack = "r1";
  const auto& keyspace = *story.metadata.schema.find_keyspace("ks");
  const auto ranges = ranges_of(peers, self, keyspace);
  const auto replicas =
      metadata::replicas_of(story.metadata, story.metadata.keyspaces.at("ks").replication);
  ASSERT_THAT(ranges, SizeIs(8));
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_EQ(ranges[i].token, story.metadata.tablets[i].token.token());
    std::vector<std::string> addresses;
    for (const model::NodeId id : replicas[i].members) {
      addresses.push_back(story.metadata.find(id)->description.node_address.to_string());
    }
    EXPECT_EQ(ranges[i].addresses, addresses);
  }
  model::Keyspace local = keyspace;
  local.replication = {{"class", "org.apache.cassandra.locator.LocalStrategy"}};
  EXPECT_THAT(ranges_of(peers, self, local), IsEmpty());
}

TEST(PeerNews, WhoWasThereAtTheStartIsNoNews) {
  Story story(3);
  story.heard[node_id(3)].is_alive = false;
  PeerNews news(story.now());
  EXPECT_THAT(news.peers()->others, SizeIs(2));
  EXPECT_FALSE(news.take(story.now()).has_value());
  story.heard[node_id(3)].is_alive = true;
  EXPECT_THAT(texts_of(news.take(story.now())), ElementsAre("UP 3:9042"));
}

TEST(PeerNews, AStopIsDownAndAReturnIsUp) {
  Story story(3);
  PeerNews news(story.now());
  story.heard[node_id(2)].is_alive = false;
  EXPECT_THAT(texts_of(news.take(story.now())), ElementsAre("DOWN 2:9042"));
  EXPECT_FALSE(news.take(story.now()).has_value());
  story.heard[node_id(2)] = well(2);
  story.heard[node_id(2)].serves_clients = false;
  EXPECT_THAT(texts_of(news.take(story.now())), IsEmpty()) << "it cannot be connected to yet";
  story.heard[node_id(2)].serves_clients = true;
  const auto up = news.take(story.now());
  EXPECT_THAT(texts_of(up), ElementsAre("UP 2:9042"));
  EXPECT_TRUE(up->peers->others[0].is_up);
}

TEST(PeerNews, ARestartThatWasNotMissedIsDownAndUp) {
  Story story(2);
  PeerNews news(story.now());
  story.heard[node_id(2)] = well(2);
  EXPECT_THAT(texts_of(news.take(story.now())), ElementsAre("DOWN 2:9042", "UP 2:9042"));
  EXPECT_FALSE(news.take(story.now()).has_value());
}

TEST(PeerNews, ANewNodeIsInTheTablesBeforeItIsAnnounced) {
  Story story(2);
  PeerNews news(story.now());
  story.join(3);
  story.heard[node_id(3)] = well();
  story.heard[node_id(3)].serves_clients = false;
  EXPECT_THAT(texts_of(news.take(story.now())), IsEmpty());
  story.finish();
  const auto shown = news.take(story.now());
  ASSERT_TRUE(shown.has_value()) << "the ring has changed";
  EXPECT_THAT(shown->peers->others, SizeIs(2));
  EXPECT_THAT(shown->events, IsEmpty()) << "nobody could connect to it";
  story.heard[node_id(3)].serves_clients = true;
  const auto announced = news.take(story.now());
  EXPECT_THAT(texts_of(announced), ElementsAre("NEW_NODE 3:9042", "UP 3:9042"));
  EXPECT_THAT(announced->peers->others, SizeIs(2));
}

TEST(PeerNews, WhoLeavesIsRemovedAndWhoMovesIsAnotherOne) {
  Story story(3);
  PeerNews news(story.now());
  story.metadata = *metadata::begin_leave(story.metadata, node_id(3));
  EXPECT_THAT(texts_of(news.take(story.now())), IsEmpty());
  story.finish();
  EXPECT_THAT(texts_of(news.take(story.now())), ElementsAre("REMOVED_NODE 3:9042"));
  const auto moved = runtime::Address::v4({10, 0, 0, 9}, 9042);
  story.metadata =
      *metadata::change_addresses(story.metadata, node_id(2), a_node(2).node_address, moved);
  EXPECT_THAT(texts_of(news.take(story.now())),
              ElementsAre("REMOVED_NODE 2:9042", "NEW_NODE 9:9042", "UP 9:9042"));
}

// Whoever counts along has the nodes that are up; see the law in the header.
RC_GTEST_PROP(PeerNews, WhoeverCountsAlongKnowsWhoIsUp, ()) {
  Story story(4);
  PeerNews news(story.now());
  std::map<std::string, bool> up;
  for (const cql::PeerFacts& peer : news.peers()->others) {
    up[fmt::format("{}:9042", static_cast<int>(peer.cql_address.ip_bytes().back()))] = true;
  }
  const auto changes = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(2, 5), rc::gen::inRange(0, 4)));
  for (const auto& [number, change] : changes) {
    Heard& heard = story.heard[node_id(static_cast<std::uint8_t>(number))];
    if (change == 0) heard.is_alive = !heard.is_alive;
    if (change == 1) heard.serves_clients = !heard.serves_clients;
    if (change == 2) ++heard.generation;
    if (change == 3) heard.load_bytes = heard.load_bytes.value_or(0) + 1;
    for (const std::string& text : texts_of(news.take(story.now()))) {
      const std::string address = text.substr(text.find(' ') + 1);
      RC_ASSERT(up.contains(address));
      RC_ASSERT(up[address] == text.starts_with("DOWN"));
      up[address] = text.starts_with("UP");
    }
    for (const cql::PeerFacts& peer : news.peers()->others) {
      const int octet = static_cast<int>(peer.cql_address.ip_bytes().back());
      RC_ASSERT(up.at(fmt::format("{}:9042", octet)) == peer.is_up);
    }
  }
}

TEST(HeardBy, WhatWasSaidIsTakenAndWhatDoesNotDecodeIsNot) {
  using membership::StateKey;
  membership::MembershipConfig config;
  config.cluster = "Troy";
  config.self = node_id(1);
  membership::Membership membership(
      config, std::make_unique<membership::PhiDetector>(membership::PhiConfig{}));
  ASSERT_TRUE(membership.set(StateKey::load, membership::encode_load(77)));
  ASSERT_TRUE(membership.set(StateKey::serves_clients, membership::encode_serves_clients(true)));
  ASSERT_TRUE(membership.set(StateKey::metadata_version, membership::encode_metadata_version(9)));
  ASSERT_TRUE(membership.set(StateKey::schema_version, base::Bytes::copy_of("short")));
  const HeardByNode heard = heard_by(membership);
  ASSERT_THAT(heard, SizeIs(1));
  const Heard& self = heard.at(node_id(1));
  EXPECT_TRUE(self.is_alive && self.serves_clients);
  EXPECT_EQ(self.load_bytes, 77U);
  EXPECT_EQ(self.metadata_version, 9U);
  EXPECT_FALSE(self.schema_version.has_value());
  EXPECT_EQ(self.generation, 1U);
}

// ---- JSON ----

TEST(ClusterJson, TellsEveryNodeAndHowItIs) {
  Story story(3);
  story.metadata.nodes[2].description.rack = "r\xff";
  story.heard[node_id(2)].is_alive = false;
  story.heard.erase(node_id(3));
  const auto text = cluster_json(story.now(), "");
  ASSERT_TRUE(text);
  const json told = json::parse(*text);
  EXPECT_EQ(told["cluster_name"], "Troy");
  EXPECT_EQ(told["partitioner"], "org.apache.cassandra.dht.Murmur3Partitioner");
  EXPECT_EQ(told["this_node"], node_id(1).value().to_string());
  EXPECT_EQ(told["metadata_version"], 5);
  EXPECT_EQ(told["change_under_way"], false);
  ASSERT_EQ(told["nodes"].size(), 3U);
  EXPECT_EQ(told["nodes"][0]["is_up"], true);
  EXPECT_EQ(told["nodes"][0]["state"], "normal");
  EXPECT_EQ(told["nodes"][0]["node_address"], "10.0.0.1:7000");
  EXPECT_EQ(told["nodes"][0]["client_address"], "10.0.0.1:9042");
  EXPECT_EQ(told["nodes"][0]["load_bytes"], 1000);
  EXPECT_EQ(told["nodes"][0]["schema_version"], kSchema.to_string());
  EXPECT_EQ(told["nodes"][1]["is_up"], false);
  EXPECT_TRUE(told["nodes"][2]["load_bytes"].is_null());
  EXPECT_TRUE(told["nodes"][2]["schema_version"].is_null());
  EXPECT_EQ(told["nodes"][2]["rack"], "r\xef\xbf\xbd") << "JSON is of Unicode";
  double owns = 0;
  std::size_t tokens = 0;
  for (const json& node : told["nodes"]) {
    owns += node["owns"].get<double>();
    tokens += node["tokens"].get<std::size_t>();
  }
  EXPECT_NEAR(owns, 1.0, 1e-9);
  EXPECT_EQ(tokens, 8U);
}

TEST(ClusterJson, OfAKeyspaceANodeOwnsWhatItHolds) {
  Story story(3);
  story.metadata = metadata::testing::with_keyspace(story.metadata, "ks", 2);
  const json told = json::parse(*cluster_json(story.now(), "ks"));
  EXPECT_EQ(told["keyspace"], "ks");
  EXPECT_THAT(told["keyspaces"], ElementsAre("ks"));
  double owns = 0;
  for (const json& node : told["nodes"]) owns += node["owns"].get<double>();
  EXPECT_NEAR(owns, 2.0, 1e-9);
  EXPECT_TRUE(cluster_json(story.now(), "other").failed_with(Errc::not_found));
  EXPECT_TRUE(ring_json(story.now(), "other").failed_with(Errc::not_found));
}

TEST(ClusterJson, ARingOfOneTokenIsAllItsOwners) {
  Story story(1, 1);
  EXPECT_EQ(json::parse(*cluster_json(story.now(), ""))["nodes"][0]["owns"], 1.0);
}

TEST(RingJson, TellsTheReplicasThatThePlacementGives) {
  Story story(3);
  story.metadata = metadata::testing::with_keyspace(story.metadata, "ks", 2);
  const json told = json::parse(*ring_json(story.now(), "ks"));
  ASSERT_EQ(told["tablets"].size(), 8U);
  const ring::Placement placement(metadata::present_ring(story.metadata),
                                  ring::SimpleStrategy{.factor = 2});
  for (std::uint32_t i = 0; i < 8; ++i) {
    const json& tablet = told["tablets"][i];
    EXPECT_EQ(tablet["token"],
              ring::to_text(story.metadata.partitioner, story.metadata.tablets[i].token));
    const auto replicas = placement.replicas_of(i);
    EXPECT_THAT(tablet["replicas"].get<std::vector<std::uint32_t>>(),
                ::testing::ElementsAreArray(replicas.begin(), replicas.end()));
    EXPECT_EQ(tablet["owner"], tablet["replicas"][0]);
    EXPECT_FALSE(tablet.contains("next_owner") || tablet.contains("pending"));
  }
}

TEST(RingJson, TellsWhatIsToBecome) {
  Story story(2);
  story.metadata = metadata::testing::with_keyspace(story.metadata, "ks", 1);
  story.join(3);
  const json told = json::parse(*ring_json(story.now(), "ks"));
  EXPECT_EQ(told["change_under_way"], true);
  EXPECT_EQ(told["nodes"][2]["state"], "joining");
  std::size_t moving = 0;
  for (const json& tablet : told["tablets"]) {
    if (!tablet.contains("next_owner")) continue;
    ++moving;
    EXPECT_EQ(tablet["next_owner"], 2);
    EXPECT_THAT(tablet["pending"], ElementsAre(2));
  }
  EXPECT_GT(moving, 0U);
  const json without = json::parse(*ring_json(story.now(), ""));
  EXPECT_FALSE(without["tablets"][0].contains("replicas"));
}

TEST(TabletsJson, TellsWhatThisNodeHoldsAndWithWhom) {
  Story story(3);
  story.metadata = metadata::testing::with_keyspace(story.metadata, "ks", 2);
  const json ring = json::parse(*ring_json(story.now(), "ks"));
  const json told = json::parse(*tablets_json(story.now(), ""));
  std::vector<std::string> ends;
  std::string before = ring["tablets"].back()["token"];
  std::size_t here = 0;
  for (const json& tablet : ring["tablets"]) {
    const auto replicas = tablet["replicas"].get<std::vector<int>>();
    if (std::ranges::find(replicas, 0) != replicas.end()) {
      ASSERT_LT(here, told["tablets"].size());
      const json& held = told["tablets"][here++];
      EXPECT_EQ(held["keyspace"], "ks");
      EXPECT_EQ(held["from"], before);
      EXPECT_EQ(held["to"], tablet["token"]);
      EXPECT_EQ(held["replicas"], tablet["replicas"]);
      EXPECT_EQ(held["is_pending"], false);
    }
    before = tablet["token"];
  }
  EXPECT_EQ(told["tablets"].size(), here);
  EXPECT_EQ(told["tablets"], json::parse(*tablets_json(story.now(), "ks"))["tablets"]);
  EXPECT_TRUE(tablets_json(story.now(), "other").failed_with(Errc::not_found));
}

TEST(TabletsJson, WhoReceivesDataHoldsATablet) {
  Story story(2);
  story.metadata = metadata::testing::with_keyspace(story.metadata, "ks", 1);
  story.join(3);
  const ClusterMoment moment{.metadata = story.metadata,
                             .version = story.version,
                             .heard = story.heard,
                             .self = node_id(3)};
  const json told = json::parse(*tablets_json(moment, "ks"));
  ASSERT_GT(told["tablets"].size(), 0U);
  EXPECT_EQ(told["tablets"][0]["is_pending"], true);
}

TEST(MissingJson, TellsOfEveryPeerWhatTheReportHas) {
  const Story story(2);
  replication::AntiEntropyReport report;
  report.peers = {{.node = node_id(2), .tablets = 8, .lacking_there = 5, .lacking_here = 7},
                  {.node = node_id(9), .tablets = 1, .lacking_there = 1, .lacking_here = 0}};
  const json told = json::parse(missing_json(story.now(), report));
  EXPECT_EQ(told["this_node"], node_id(1).value().to_string());
  ASSERT_EQ(told["peers"].size(), 2U);
  EXPECT_EQ(told["peers"][0], json({{"host_id", node_id(2).value().to_string()},
                                    {"node_address", "10.0.0.2:7000"},
                                    {"tablets", 8},
                                    {"missing_there", 5},
                                    {"missing_here", 7}}));
  EXPECT_TRUE(told["peers"][1]["node_address"].is_null()) << "the metadata do not know it any more";
}

TEST(NameIn, IsOfTheParameterAskedFor) {
  EXPECT_EQ(name_in("keyspace=a&table=b", "table"), "b");
  EXPECT_EQ(name_in("tables=b", "table"), "");
  EXPECT_TRUE(name_in("table=b%20", "table").failed_with(Errc::invalid_argument));
}

TEST(KeyspaceIn, IsANameOrNothing) {
  EXPECT_EQ(keyspace_in(""), "");
  EXPECT_EQ(keyspace_in("a=b&c"), "");
  EXPECT_EQ(keyspace_in("keyspace=Music_1"), "Music_1");
  EXPECT_EQ(keyspace_in("a=b&keyspace=ks&keyspace=other"), "ks");
  EXPECT_EQ(keyspace_in("keyspace="), "");
  EXPECT_TRUE(keyspace_in("keyspace=%20").failed_with(Errc::invalid_argument));
  EXPECT_TRUE(keyspace_in("keyspace=" + std::string(49, 'a')).failed_with(Errc::invalid_argument));
}

TEST(ErrorJson, SaysWhatIsWrong) {
  EXPECT_EQ(json::parse(error_json(base::Error(Errc::not_found, "no \"x\"")))["error"],
            "not found: no \"x\"");
}

TEST(StartingJson, SaysWhatIsWaitedFor) {
  const json told = json::parse(starting_json("waits for \"10.0.0.1:7000\""));
  EXPECT_EQ(told["status"], "starting");
  EXPECT_THAT(told["phase"].get<std::string>(), HasSubstr("10.0.0.1:7000"));
}

}  // namespace
}  // namespace helenus::admin
