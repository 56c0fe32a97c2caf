// What valid metadata is, and who decides on the next one.
#include "metadata/cluster_metadata.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metadata/metadata_test_support.h"

namespace helenus::metadata {
namespace {

using base::Errc;
using testing::a_cluster;
using testing::a_node;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::node_id;
using ::testing::SizeIs;
using testing::with_keyspace;

// What validate() says of a cluster of three nodes with a keyspace and something wrong.
template <class Spoil>
std::string complaint(Spoil spoil) {
  ClusterMetadata metadata = with_keyspace(a_cluster(3), "shop", 2);
  spoil(metadata);
  const auto valid = validate(metadata);
  if (valid) return "valid";
  EXPECT_EQ(valid.error().code(), Errc::invalid_argument);
  return std::string(valid.error().context());
}

TEST(ClusterMetadata, NodesAndAddressesAreThereOnce) {
  EXPECT_EQ(complaint([](auto&) {}), "valid");
  EXPECT_THAT(complaint([](auto& it) { it.nodes.push_back(it.nodes.back()); }),
              HasSubstr("is there twice"));
  EXPECT_THAT(complaint([](auto& it) { std::ranges::reverse(it.nodes); }),
              HasSubstr("not in order"));
  EXPECT_THAT(complaint([](auto& it) {
                it.nodes[1].description.node_address = it.nodes[0].description.node_address;
              }),
              HasSubstr("same address 10.0.0.1:7000"));
  EXPECT_THAT(complaint([](auto& it) { it.nodes.clear(); }), HasSubstr("0 nodes"));
  EXPECT_THAT(complaint([](auto& it) { it.cluster_name = std::string(129, 'x'); }),
              HasSubstr("129 bytes"));
  EXPECT_THAT(complaint([](auto& it) { it.nodes[0].description.rack.clear(); }), HasSubstr("rack"));
}

TEST(ClusterMetadata, TokensAreThereOnceAndHaveAnOwner) {
  EXPECT_THAT(complaint([](auto& it) { it.tablets[1].token = it.tablets[0].token; }),
              HasSubstr("is there twice"));
  EXPECT_THAT(complaint([](auto& it) { it.tablets[1].owner = node_id(9); }),
              HasSubstr("belongs to nobody"));
  EXPECT_THAT(complaint([](auto& it) { it.tablets[1].next_owner = node_id(9); }),
              HasSubstr("will belong to nobody"));
  EXPECT_THAT(complaint([](auto& it) { it.tablets[1].next_owner = it.tablets[1].owner; }),
              HasSubstr("to the same"));
  EXPECT_THAT(complaint([](auto& it) { it.tablets[1].next_owner = it.tablets[0].owner; }),
              HasSubstr("nobody joins or goes"));
  EXPECT_THAT(complaint([](auto& it) { it.tablets.clear(); }), HasSubstr("0 tokens"));
  EXPECT_THAT(complaint([](auto& it) {
                it.tablets[0].token = ring::Position::of_bytes(base::as_bytes("short"));
              }),
              HasSubstr("5 bytes"));
}

TEST(ClusterMetadata, StatesOfNodesFitTogetherAndToTheirTokens) {
  EXPECT_THAT(complaint([](auto& it) { it.nodes[0].state = NodeState::joining; }),
              HasSubstr("belongs to a node that joins"));
  EXPECT_THAT(complaint([](auto& it) { it.nodes[0].state = NodeState::leaving; }),
              HasSubstr("will belong to nobody"));
  EXPECT_THAT(complaint([](auto& it) {
                it.nodes[0].state = NodeState::leaving;
                it.nodes[1].state = NodeState::removing;
              }),
              HasSubstr("1 leave and 1 are being removed"));
}

TEST(ClusterMetadata, EpochsWereGiven) {
  EXPECT_THAT(complaint([](auto& it) { it.tablets[0].epoch = Epoch(3); }),
              HasSubstr("was not given"));
  EXPECT_THAT(complaint([](auto& it) { it.tablets[0].epoch = Epoch(0); }),
              HasSubstr("was not given"));
  EXPECT_THAT(complaint([](auto& it) { it.epoch = Epoch(kEpochMax + 1); }), HasSubstr("epoch"));
}

TEST(ClusterMetadata, OnlyWhatIsUnderWayIsJoint) {
  EXPECT_THAT(complaint([](auto& it) { it.joint = it.epoch; }), HasSubstr("nothing is under way"));
  EXPECT_THAT(complaint([](auto& it) { it.joint = Epoch(9); }), HasSubstr("was not given"));
}

TEST(ClusterMetadata, WhoCameToATabletIsAReplicaOfIt) {
  const auto with_newcomer = [](ReplicaPlace place, Epoch epoch) {
    return complaint([&](auto& it) { it.keyspaces.begin()->second.came.emplace(place, epoch); });
  };
  EXPECT_THAT(with_newcomer({99, NodeNumber(1)}, Epoch(2)), HasSubstr("is no replica"));
  EXPECT_THAT(with_newcomer({0, NodeNumber(9)}, Epoch(2)), HasSubstr("is no replica"));
  std::size_t replicas = 0;
  for (const std::uint32_t node : {1U, 2U, 3U}) {
    // The keyspace is as old as the last epoch.
    const std::string told = with_newcomer({0, NodeNumber(node)}, Epoch(2));
    if (told.find("is no replica") == std::string::npos) ++replicas;
    EXPECT_NE(told, "valid");
  }
  EXPECT_EQ(replicas, 2U);
}

TEST(ClusterMetadata, ReplicasThatComeAreToldAndCountOnlyFromAJointChangeOn) {
  const ClusterMetadata before = with_keyspace(a_cluster(3), "shop", 1);
  const ClusterMetadata joining = *begin_join(before, a_node(4));
  ClusterMetadata untold = joining;
  untold.keyspaces.begin()->second.came.clear();
  EXPECT_FALSE(may_follow(untold, before));
  const ClusterMetadata joint = *join_sets(joining, joining.epoch);
  ClusterMetadata renamed = joint;
  renamed.keyspaces.begin()->second.came.begin()->second = joint.epoch;
  EXPECT_TRUE(validate(renamed));
  EXPECT_FALSE(may_follow(renamed, joining));
  // One swap of the sets, without the document in between.
  ClusterMetadata swapped = *finish_change(joint, joint.epoch);
  EXPECT_TRUE(may_follow(swapped, joint));
  EXPECT_FALSE(may_follow(swapped, joining));
}

TEST(ClusterMetadata, KeyspacesAreThoseOfTheSchema) {
  EXPECT_THAT(complaint([](auto& it) { it.keyspaces.clear(); }), HasSubstr("of 0 keyspaces"));
  EXPECT_THAT(complaint([](auto& it) {
                it.keyspaces.begin()->second.replication.next = ring::SimpleStrategy{.factor = 3};
              }),
              HasSubstr("not replicated as the schema says"));
  EXPECT_THAT(complaint([](auto& it) {
                Replication& replication = it.keyspaces.begin()->second.replication;
                replication.next = replication.present;
              }),
              HasSubstr("to the same"));
}

TEST(ClusterMetadata, ARemovedNodeIsNotHere) {
  EXPECT_THAT(complaint([](auto& it) { it.removed = {node_id(1)}; }), HasSubstr("was removed"));
  EXPECT_THAT(complaint([](auto& it) { it.removed = {node_id(8), node_id(8)}; }),
              HasSubstr("removed twice"));
  EXPECT_THAT(complaint([](auto& it) { it.removed.resize(kRemovedMax + 1); }),
              HasSubstr("4097 removed"));
}

TEST(ClusterMetadata, NumbersWereGivenOnce) {
  EXPECT_THAT(complaint([](auto& it) { it.nodes[0].number = it.nodes[1].number; }),
              HasSubstr("is that of two nodes"));
  EXPECT_THAT(complaint([](auto& it) { it.nodes[0].number = it.next.node; }),
              HasSubstr("number 4 of a node was not given"));
  EXPECT_THAT(complaint([](auto& it) { it.nodes[0].number = NodeNumber(0); }),
              HasSubstr("was not given"));
  EXPECT_THAT(complaint([](auto& it) { it.keyspaces.begin()->second.number = it.next.keyspace; }),
              HasSubstr("of a keyspace was not given"));
  EXPECT_THAT(complaint([](auto& it) { it.keyspaces.begin()->second.began = Epoch(9); }),
              HasSubstr("began in an epoch that was not given"));
  EXPECT_THAT(complaint([](auto& it) { it.storage.emplace(base::Uuid(), StorageId(1)); }),
              HasSubstr("1 storage ids, a schema of 0 tables"));
  EXPECT_THAT(complaint([](auto& it) { it.next.storage = StorageId(kNumberMax + 1); }),
              HasSubstr("no number is left"));
}

TEST(ClusterMetadata, OnlyWhatKeepsNumbersMayFollow) {
  const ClusterMetadata before = with_keyspace(a_cluster(3), "shop", 1);
  const auto may_follow_if = [&](auto change) {
    ClusterMetadata next = before;
    change(next);
    return may_follow(next, before);
  };
  EXPECT_TRUE(may_follow_if([](auto&) {}));
  EXPECT_FALSE(may_follow_if([](auto& it) { it.next.node = NodeNumber(3); }));
  EXPECT_FALSE(may_follow_if([](auto& it) { std::swap(it.nodes[0].number, it.nodes[1].number); }));
  EXPECT_FALSE(may_follow_if([](auto& it) { it.keyspaces.begin()->second.began = Epoch(1); }));
  EXPECT_FALSE(may_follow_if([](auto& it) { it.keyspaces["mart"] = it.keyspaces["shop"]; }));
  EXPECT_FALSE(may_follow_if([](auto& it) {
    it.secret.bytes = base::Secret(std::array<std::byte, ClusterSecret::kSize>{std::byte{1}});
  }));
}

TEST(ClusterMetadata, OnlyWhatKeepsEpochsMayFollow) {
  const ClusterMetadata before = with_keyspace(a_cluster(3), "shop", 1);
  const auto after = begin_join(before, a_node(4));
  ASSERT_TRUE(after);
  EXPECT_TRUE(may_follow(*after, before));
  EXPECT_FALSE(may_follow(before, *after));
  ClusterMetadata silent = *after;
  for (Tablet& tablet : silent.tablets) tablet.epoch = Epoch(1);
  EXPECT_FALSE(may_follow(silent, before));
  ClusterMetadata elsewhere = before;
  elsewhere.cluster_name = "Carthage";
  EXPECT_FALSE(may_follow(elsewhere, before));
  EXPECT_FALSE(may_follow(a_cluster(3, 9), before));
}

TEST(ClusterMetadata, AcceptorsAreAnOddNumberAndStayWhereTheyCan) {
  EXPECT_THAT(choose_acceptors(a_cluster(1), {}), SizeIs(1));
  EXPECT_THAT(choose_acceptors(a_cluster(2), {}), SizeIs(1));
  EXPECT_THAT(choose_acceptors(a_cluster(4), {}), SizeIs(3));
  EXPECT_THAT(choose_acceptors(a_cluster(7), {}), SizeIs(5));
  EXPECT_THAT(choose_acceptors(a_cluster(4), {node_id(2), node_id(4), node_id(9)}),
              ElementsAre(node_id(1), node_id(2), node_id(4)));
}

TEST(ClusterMetadata, AcceptorsComeFromDifferentDatacentresAndRacks) {
  const auto metadata = found({.cluster_name = "Troy",
                               .tokens = ring::evenly_spread_tokens(8),
                               .nodes = {a_node(1, "r1", "east"), a_node(2, "r1", "east"),
                                         a_node(3, "r2", "east"), a_node(4, "r1", "west")}});
  ASSERT_TRUE(metadata);
  EXPECT_THAT(choose_acceptors(*metadata, {}), ElementsAre(node_id(1), node_id(3), node_id(4)));
}

TEST(ClusterMetadata, WhoGoesDecidesNoMore) {
  const auto leaving = begin_leave(a_cluster(4), node_id(1));
  ASSERT_TRUE(leaving);
  EXPECT_THAT(choose_acceptors(*leaving, {node_id(1), node_id(2), node_id(3)}),
              ElementsAre(node_id(2), node_id(3), node_id(4)));
}

}  // namespace
}  // namespace helenus::metadata
