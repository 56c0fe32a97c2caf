// Who holds what, as the metadata say.
#include "replication/map/replica_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metadata/metadata_test_support.h"
#include "model/partition_key.h"

namespace helenus::replication {
namespace {

using metadata::testing::a_cluster;
using metadata::testing::node_id;
using metadata::testing::with_keyspace;
using model::Consistency;
using ::testing::IsNull;
using ::testing::SizeIs;

TEST(ReplicaMap, AKeyspaceHasItsOwnReplicasOfEveryTablet) {
  auto metadata = with_keyspace(a_cluster(4, 8), "one", 1);
  metadata = with_keyspace(metadata, "three", 3);
  const ReplicaMapPtr map = ReplicaMap::make(metadata, 7, node_id(1));
  EXPECT_EQ(map->version(), 7U);
  const KeyspaceMap* one = map->find("one");
  const KeyspaceMap* three = map->find("three");
  ASSERT_NE(one, nullptr);
  ASSERT_NE(three, nullptr);
  EXPECT_EQ(map->find(three->number()), three);
  EXPECT_EQ(one->tablet_count(), 8U);
  for (ring::TabletIndex i = 0; i < 8; ++i) {
    EXPECT_THAT(one->tablet(i).members, SizeIs(1));
    EXPECT_THAT(three->tablet(i).members, SizeIs(3));
    EXPECT_EQ(one->tablet(i).members[0].node, three->tablet(i).members[0].node);
  }
  EXPECT_THAT(map->find("none"), IsNull());
  EXPECT_THAT(map->find(metadata::KeyspaceNumber(9)), IsNull());
}

TEST(ReplicaMap, ReplicasOfTwoKeyspacesMintUnderDifferentNames) {
  auto metadata = with_keyspace(a_cluster(3), "first", 3);
  metadata = with_keyspace(metadata, "second", 3);
  const ReplicaMapPtr map = ReplicaMap::make(metadata, 1, node_id(1));
  const PlacedReplica* first = map->find("first")->tablet(0).find(node_id(2));
  const PlacedReplica* second = map->find("second")->tablet(0).find(node_id(2));
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(first->actor.node, causality::NodeNumber(2));
  EXPECT_EQ(first->actor.node, second->actor.node);
  EXPECT_LT(first->actor.incarnation, second->actor.incarnation);
  EXPECT_EQ(map->find("second")->tablet(0).epoch, causality::Epoch(3));
}

TEST(ReplicaMap, EveryPartitionLiesInTheTabletOfItsToken) {
  const auto metadata = with_keyspace(a_cluster(3, 16), "k", 2);
  const ReplicaMapPtr map = ReplicaMap::make(metadata, 1, node_id(1));
  const auto ring = metadata::present_ring(metadata);
  const auto check = [&](std::int64_t number) {
    const model::Token token(number);
    const metadata::KeyspaceNumber keyspace = map->find("k")->number();
    const base::Bytes partition = model::make_partition(keyspace, token, base::as_bytes("key"));
    const auto place = map->find_place(partition.view());
    ASSERT_TRUE(place.has_value());
    EXPECT_EQ(place->keyspace, map->find("k"));
    EXPECT_EQ(place->index, ring->tablet_at(ring::Position::of_token(token))) << number;
    const TabletBounds& bounds = place->keyspace->bounds(place->index);
    EXPECT_LE(bounds.from, partition);
    EXPECT_LT(partition, bounds.to);
  };
  for (const auto& tablet : metadata.tablets) {
    const std::int64_t token = tablet.token.token().value();
    check(token);
    if (token < INT64_MAX) check(token + 1);
    check(token - 1);
  }
  check(INT64_MIN + 1);
}

TEST(ReplicaMap, APartitionOfNoKeyspaceIsNowhere) {
  const ReplicaMapPtr map = ReplicaMap::make(with_keyspace(a_cluster(3), "k", 2), 1, node_id(1));
  const base::Bytes other =
      model::make_partition(metadata::KeyspaceNumber(99), model::Token(1), base::as_bytes("key"));
  EXPECT_FALSE(map->find_place(other.view()));
  EXPECT_FALSE(map->find_place(base::as_bytes("abc")));
}

TEST(ReplicaMap, TellsWhatIsHeldHere) {
  const auto metadata = with_keyspace(a_cluster(4, 8), "k", 2);
  std::size_t held = 0;
  for (std::uint8_t node = 1; node <= 4; ++node) {
    held += ReplicaMap::make(metadata, 1, node_id(node))->held_here().size();
  }
  EXPECT_EQ(held, 16U);
  EXPECT_THAT(ReplicaMap::make(metadata, 1, node_id(9))->held_here(), SizeIs(0));
}

TEST(ReplicaMap, LevelsAreThoseOfTheKeyspace) {
  const auto metadata = with_keyspace(a_cluster(3), "k", 3);
  const ReplicaMapPtr map = ReplicaMap::make(metadata, 1, node_id(1));
  const KeyspaceMap& k = *map->find("k");
  EXPECT_EQ(k.rule(k.tablet(0), Consistency::quorum).required(), 2U);
  EXPECT_EQ(k.rule(k.tablet(0), Consistency::all).required(), 3U);
}

TEST(ReplicaMap, AJointChangeHasTheMembersOfBothSets) {
  const auto before = with_keyspace(a_cluster(3, 9), "k", 2);
  const auto joining = *metadata::begin_join(before, metadata::testing::a_node(4));
  const auto joint = *metadata::join_sets(joining, joining.epoch);
  const ReplicaMapPtr pending = ReplicaMap::make(joining, 1, node_id(1));
  const ReplicaMapPtr both = ReplicaMap::make(joint, 2, node_id(1));
  std::size_t moving = 0;
  for (ring::TabletIndex i = 0; i < 9; ++i) {
    const PlacedTablet& tablet = both->find("k")->tablet(i);
    EXPECT_THAT(tablet.pending, SizeIs(0));
    EXPECT_EQ(tablet.members.size(), tablet.is_joint ? 3U : 2U);
    EXPECT_EQ(both->find("k")->rule(tablet, Consistency::quorum).required(),
              tablet.is_joint ? 4U : 2U);
    const PlacedReplica* newcomer = tablet.find(node_id(4));
    if (newcomer == nullptr) continue;
    ++moving;
    EXPECT_EQ(newcomer->sets, ReplicaSets::next);
    // It mints under the epoch in which it came, from the first moment on.
    const PlacedReplica* before_joint = pending->find("k")->tablet(i).find(node_id(4));
    ASSERT_NE(before_joint, nullptr);
    EXPECT_EQ(newcomer->actor, before_joint->actor);
    EXPECT_EQ(newcomer->actor.incarnation.value(), joining.epoch.value());
  }
  EXPECT_GT(moving, 0U);
}

}  // namespace
}  // namespace helenus::replication
