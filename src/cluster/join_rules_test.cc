#include "cluster/join_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metadata/metadata_test_support.h"
#include "metadata/transitions.h"

namespace helenus::cluster {
namespace {

using base::Errc;
using metadata::ClusterMetadata;
using metadata::testing::a_cluster;
using metadata::testing::a_node;
using metadata::testing::node_id;
using metadata::testing::with_keyspace;

metadata::NodeState state_of(const ClusterMetadata& metadata, std::uint8_t node) {
  return metadata.find(node_id(node))->state;
}

ClusterMetadata without_last(std::uint8_t nodes) {
  const auto removing =
      metadata::begin_removal(a_cluster(nodes), node_id(nodes), metadata::DataLoss::refused);
  return *metadata::finish_change(*removing, removing->epoch);
}

TEST(JoinRules, ANodeBelongsToTheClusterOfItsNameAndWhereItStood) {
  const ClusterMetadata metadata = a_cluster(2);
  EXPECT_TRUE(check_place(metadata, "Troy", a_node(1, "r1")));
  EXPECT_TRUE(check_place(metadata, "Carthage", a_node(1, "r1")).failed_with(Errc::refused));
  EXPECT_TRUE(check_place(metadata, "Troy", a_node(1, "r9")).failed_with(Errc::refused));
  EXPECT_TRUE(check_place(metadata, "Troy", a_node(1, "r1", "dc9")).failed_with(Errc::refused));
  // Whom it does not name may ask to join, and is told then that it was removed.
  EXPECT_TRUE(check_place(metadata, "Troy", a_node(3)));
  EXPECT_TRUE(check_place(without_last(3), "Troy", a_node(3)));
}

TEST(JoinRules, WithoutATransferNodesJoinClustersWithoutKeyspaces) {
  const ClusterMetadata blank = a_cluster(2);
  const ClusterMetadata shop = with_keyspace(blank, "shop", 2);
  for (const bool has_transfer : {false, true}) {
    const auto joining = begin_join(blank, a_node(3), has_transfer);
    ASSERT_TRUE(joining);
    EXPECT_EQ(state_of(*joining, 3), metadata::NodeState::joining);
  }
  EXPECT_TRUE(begin_join(shop, a_node(3), false).failed_with(Errc::unsupported));
  EXPECT_TRUE(begin_join(shop, a_node(3), true));
}

TEST(JoinRules, ANodeThatWasRemovedIsToldSoAndNotThatDataWouldHaveToBeCopied) {
  const ClusterMetadata metadata = with_keyspace(without_last(3), "shop", 1);
  EXPECT_TRUE(begin_join(metadata, a_node(3), false).failed_with(Errc::refused));
}

TEST(JoinRules, AJoinIsFinishedInTheEpochThatItsDataWereCopiedIn) {
  const ClusterMetadata joining = *begin_join(a_cluster(2), a_node(3), false);
  const auto joined = advance_join(joining, node_id(3), joining.epoch);
  ASSERT_TRUE(joined);
  EXPECT_EQ(state_of(*joined, 3), metadata::NodeState::normal);
  // It may be that the answer to the first attempt was lost.
  const auto again = advance_join(*joined, node_id(3), joining.epoch);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *joined);

  const auto shop = with_keyspace(joining, "shop", 1);
  const auto altered = metadata::change_schema(shop, with_keyspace(shop.schema, "shop", 2));
  ASSERT_TRUE(altered);
  ASSERT_NE(altered->epoch, joining.epoch) << "a test of nothing";
  const auto late = advance_join(*altered, node_id(3), joining.epoch);
  EXPECT_TRUE(late.failed_with(Errc::locked));
  EXPECT_TRUE(may_retry_join(Errc::locked));
}

TEST(JoinRules, AJoinThatWasAbandonedIsNotFinished) {
  const ClusterMetadata joining = *begin_join(a_cluster(2), a_node(3), false);
  const auto abandoned = metadata::abandon_change(joining);
  ASSERT_TRUE(abandoned);
  EXPECT_FALSE(advance_join(*abandoned, node_id(3), joining.epoch));
}

TEST(JoinRules, ANodeIsNamedByItsIdOrItsAddress) {
  const ClusterMetadata metadata = a_cluster(3);
  EXPECT_EQ(node_named(metadata, "10.0.0.2:7000"), node_id(2));
  EXPECT_EQ(node_named(metadata, node_id(2).value().to_string()), node_id(2));
  EXPECT_TRUE(node_named(metadata, "10.0.0.9:7000").failed_with(Errc::not_found));
  const ClusterMetadata shop = with_keyspace(metadata, "shop", 2);
  EXPECT_TRUE(begin_replacement(shop, a_node(4), node_id(2), false).failed_with(Errc::unsupported));
  const auto replacing = begin_replacement(shop, a_node(4), node_id(2), true);
  ASSERT_TRUE(replacing);
  EXPECT_EQ(state_of(*replacing, 4), metadata::NodeState::joining);
  EXPECT_EQ(state_of(*replacing, 2), metadata::NodeState::removing);
}

TEST(JoinRules, WhatMayPassIsTriedAgain) {
  for (const Errc code : {Errc::locked, Errc::timeout, Errc::unavailable, Errc::already_exists}) {
    EXPECT_TRUE(may_retry_join(code));
  }
  for (const Errc code : {Errc::refused, Errc::unsupported, Errc::cancelled, Errc::no_space}) {
    EXPECT_FALSE(may_retry_join(code));
  }
}

}  // namespace
}  // namespace helenus::cluster
