// How a cluster's metadata changes: stories of single changes, and random walks through all of them
// under the invariants.
#include "metadata/transitions.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"
#include "metadata/metadata_codec.h"
#include "metadata/metadata_test_support.h"
#include "model/schema_test_support.h"

namespace helenus::metadata {
namespace {

using base::Errc;
using testing::a_cluster;
using testing::a_node;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::node_id;
using ::testing::UnorderedElementsAre;
using testing::with_keyspace;

std::size_t tokens_of(const ClusterMetadata& metadata, model::NodeId node) {
  return static_cast<std::size_t>(std::ranges::count(metadata.tablets, node, &Tablet::owner));
}

std::vector<TabletReplicas> replicas(const ClusterMetadata& metadata, std::string_view keyspace) {
  return replicas_of(metadata, metadata.keyspaces.find(keyspace)->second.replication);
}

ClusterMetadata advanced(const ClusterMetadata& metadata) {
  auto next = advance_change(metadata, metadata.epoch);
  EXPECT_TRUE(next) << next.error().to_string();
  return next ? *std::move(next) : metadata;
}

// As often as it must be.
ClusterMetadata finished(const ClusterMetadata& metadata) {
  ClusterMetadata now = advanced(metadata);
  if (now.joint != Epoch(0)) now = advanced(now);
  EXPECT_FALSE(change_is_under_way(now));
  return now;
}

TEST(MetadataTransitions, AClusterIsFoundedWithItsTokensDealtOut) {
  const ClusterMetadata metadata = a_cluster(3, 9);
  EXPECT_EQ(metadata.epoch, Epoch(1));
  for (std::uint8_t node = 1; node <= 3; ++node) EXPECT_EQ(tokens_of(metadata, node_id(node)), 3U);
  EXPECT_FALSE(change_is_under_way(metadata));
  EXPECT_EQ(present_ring(metadata)->tablet_count(), 9U);
}

TEST(MetadataTransitions, AClusterCannotBeFoundedWithoutANameOrWithTooFewTokens) {
  EXPECT_TRUE(
      found({.cluster_name = "", .tokens = ring::evenly_spread_tokens(4), .nodes = {a_node(1)}})
          .failed_with(Errc::invalid_argument));
  EXPECT_TRUE(found({.cluster_name = "Troy",
                     .tokens = ring::evenly_spread_tokens(1),
                     .nodes = {a_node(1), a_node(2)}})
                  .failed_with(Errc::invalid_argument));
  EXPECT_TRUE(found({.cluster_name = "Troy", .tokens = ring::evenly_spread_tokens(4), .nodes = {}})
                  .failed_with(Errc::invalid_argument));
}

TEST(MetadataTransitions, ANewcomerIsPendingFirstAndAMemberWhenItHasItsData) {
  const ClusterMetadata before = with_keyspace(a_cluster(1), "shop", 1);
  const auto joining = begin_join(before, a_node(2));
  ASSERT_TRUE(joining);
  EXPECT_EQ(joining->find(node_id(2))->state, NodeState::joining);
  EXPECT_EQ(tokens_of(*joining, node_id(2)), 0U);
  std::size_t pending = 0;
  for (std::size_t i = 0; i < joining->tablets.size(); ++i) {
    const TabletReplicas tablet = replicas(*joining, "shop")[i];
    EXPECT_THAT(tablet.members, UnorderedElementsAre(node_id(1)));
    pending += tablet.pending.size();
    EXPECT_EQ(joining->tablets[i].epoch, tablet.pending.empty() ? Epoch(1) : Epoch(3));
  }
  EXPECT_EQ(pending, 4U);
  const ClusterMetadata after = finished(*joining);
  EXPECT_EQ(tokens_of(after, node_id(1)), 4U);
  EXPECT_EQ(tokens_of(after, node_id(2)), 4U);
  EXPECT_EQ(after.find(node_id(2))->state, NodeState::normal);
  EXPECT_EQ(after.epoch, Epoch(5));
}

TEST(MetadataTransitions, BothSetsCountWhileAChangeIsJoint) {
  const ClusterMetadata before = with_keyspace(a_cluster(3, 9), "shop", 2);
  const ClusterMetadata joining = *begin_join(before, a_node(4));
  EXPECT_TRUE(finish_change(joining, joining.epoch).failed_with(Errc::refused));
  EXPECT_TRUE(join_sets(joining, before.epoch).failed_with(Errc::refused));
  const auto joint = join_sets(joining, joining.epoch);
  ASSERT_TRUE(joint);
  EXPECT_EQ(joint->joint, joint->epoch);
  EXPECT_TRUE(join_sets(*joint, joint->epoch).failed_with(Errc::already_exists));
  const ClusterMetadata after = finished(*joint);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < joint->tablets.size(); ++i) {
    const TabletReplicas tablet = replicas(*joint, "shop")[i];
    EXPECT_EQ(tablet.members, replicas(before, "shop")[i].members);
    EXPECT_THAT(tablet.pending, IsEmpty());
    const auto later = replicas(after, "shop")[i].members;
    const bool moves = !std::ranges::is_permutation(later, tablet.members);
    EXPECT_EQ(tablet.next, moves ? later : std::vector<model::NodeId>());
    EXPECT_EQ(joint->tablets[i].epoch == joint->epoch, moves);
    if (moves) ++moved;
  }
  EXPECT_GT(moved, 0U);
  // Nothing else may begin, and it can be given up.
  EXPECT_TRUE(begin_join(*joint, a_node(5)).failed_with(Errc::locked));
  EXPECT_TRUE(
      change_schema(*joint, with_keyspace(joint->schema, "shop", 3)).failed_with(Errc::locked));
  EXPECT_TRUE(change_schema(*joint, with_keyspace(joint->schema, "mart", 3)));
  const auto back = abandon_change(*joint);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->joint, Epoch(0));
  EXPECT_EQ(replicas(*back, "shop"), replicas(before, "shop"));
}

TEST(MetadataTransitions, WhoBecomesAReplicaAgainHasAnotherName) {
  ClusterMetadata metadata = with_keyspace(a_cluster(3, 9), "shop", 2);
  std::map<std::tuple<std::size_t, NodeNumber>, Epoch> names;
  for (int round = 0; round < 3; ++round) {
    const std::uint8_t newcomer = static_cast<std::uint8_t>(10 + round);
    metadata = finished(*begin_join(metadata, a_node(newcomer)));
    metadata = finished(*begin_leave(metadata, node_id(newcomer)));
    const ReplicatedKeyspace& keyspace = metadata.keyspaces.at("shop");
    const auto all = replicas(metadata, "shop");
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (const model::NodeId node : all[i].members) {
        const Node& known = *metadata.find(node);
        Epoch& name = names[{i, known.number}];
        EXPECT_GE(began_on(known, keyspace, i), name);
        name = began_on(known, keyspace, i);
      }
    }
  }
  // Some have come back meanwhile.
  EXPECT_FALSE(metadata.keyspaces.at("shop").came.empty());
}

TEST(MetadataTransitions, ANewNodeTakesThePlaceOfADeadOne) {
  const ClusterMetadata before = with_keyspace(a_cluster(3, 9), "shop", 3);
  const auto replacing = begin_replacement(before, node_id(2), a_node(7, "r2"), DataLoss::refused);
  ASSERT_TRUE(replacing) << replacing.error().to_string();
  for (const TabletReplicas& tablet : replicas(*replacing, "shop")) {
    EXPECT_THAT(tablet.members, UnorderedElementsAre(node_id(1), node_id(3)));
    EXPECT_THAT(tablet.pending, UnorderedElementsAre(node_id(7)));
  }
  const ClusterMetadata after = finished(*replacing);
  EXPECT_EQ(tokens_of(after, node_id(7)), tokens_of(before, node_id(2)));
  EXPECT_TRUE(after.was_removed(node_id(2)));
  EXPECT_TRUE(begin_replacement(before, node_id(9), a_node(7), DataLoss::refused)
                  .failed_with(Errc::not_found));
  EXPECT_TRUE(begin_replacement(before, node_id(2), a_node(7, "r1", "dc2"), DataLoss::refused)
                  .failed_with(Errc::refused));
  // Without the newcomer the dead one still goes.
  const auto given_up = abandon_change(*replacing);
  ASSERT_TRUE(given_up);
  EXPECT_EQ(given_up->find(node_id(7)), nullptr);
  EXPECT_EQ(given_up->find(node_id(2))->state, NodeState::removing);
  EXPECT_EQ(finished(*given_up).nodes.size(), 2U);
}

TEST(MetadataTransitions, WhoDiesWhileReplicasMoveIsRemovedFromBothSets) {
  const ClusterMetadata before = with_keyspace(a_cluster(4, 8), "shop", 3);
  const ClusterMetadata leaving = *begin_leave(before, node_id(4));
  const ClusterMetadata joint = advanced(leaving);
  const auto removing = begin_removal(joint, node_id(4), DataLoss::refused);
  ASSERT_TRUE(removing);
  EXPECT_EQ(removing->joint, Epoch(0));
  EXPECT_EQ(finished(*removing).nodes.size(), 3U);
}

TEST(MetadataTransitions, ANodeThatLeavesIsAMemberUntilOthersHaveItsData) {
  const ClusterMetadata before = with_keyspace(a_cluster(3), "shop", 2);
  const auto leaving = begin_leave(before, node_id(2));
  ASSERT_TRUE(leaving);
  for (const TabletReplicas& tablet : replicas(*leaving, "shop")) {
    EXPECT_EQ(tablet.members.size(), 2U);
  }
  const ClusterMetadata after = finished(*leaving);
  EXPECT_EQ(after.find(node_id(2)), nullptr);
  EXPECT_TRUE(after.was_removed(node_id(2)));
  for (const TabletReplicas& tablet : replicas(after, "shop")) {
    EXPECT_THAT(tablet.members, UnorderedElementsAre(node_id(1), node_id(3)));
  }
  EXPECT_TRUE(begin_join(after, a_node(2)).failed_with(Errc::refused));
}

TEST(MetadataTransitions, ARemovedNodeIsFencedAtOnce) {
  const ClusterMetadata before = with_keyspace(a_cluster(3), "shop", 2);
  const auto removing = begin_removal(before, node_id(2), DataLoss::refused);
  ASSERT_TRUE(removing);
  for (const TabletReplicas& tablet : replicas(*removing, "shop")) {
    EXPECT_THAT(tablet.members, Each(::testing::Ne(node_id(2))));
    EXPECT_EQ(tablet.members.size() + tablet.pending.size(), 2U);
  }
  EXPECT_TRUE(abandon_change(*removing).failed_with(Errc::refused));
  EXPECT_TRUE(
      begin_removal(*removing, node_id(2), DataLoss::refused).failed_with(Errc::already_exists));
  const auto second = begin_removal(*removing, node_id(3), DataLoss::accepted);
  ASSERT_TRUE(second);
  const ClusterMetadata after = finished(*second);
  EXPECT_EQ(after.nodes.size(), 1U);
  EXPECT_EQ(tokens_of(after, node_id(1)), 8U);
}

TEST(MetadataTransitions, TheLastCopyOfDataIsNotRemovedByMistake) {
  const ClusterMetadata metadata = with_keyspace(a_cluster(2), "shop", 1);
  const auto refused = begin_removal(metadata, node_id(1), DataLoss::refused);
  ASSERT_TRUE(refused.failed_with(Errc::refused));
  EXPECT_THAT(refused.error().to_string(), HasSubstr("keyspace shop"));
  EXPECT_TRUE(begin_removal(metadata, node_id(1), DataLoss::accepted));
}

TEST(MetadataTransitions, ANodeThatDiesWhileItLeavesIsRemoved) {
  const ClusterMetadata before = with_keyspace(a_cluster(3), "shop", 2);
  const auto leaving = begin_leave(before, node_id(1));
  ASSERT_TRUE(leaving);
  EXPECT_TRUE(begin_removal(*leaving, node_id(2), DataLoss::refused).failed_with(Errc::locked));
  const auto removing = begin_removal(*leaving, node_id(1), DataLoss::refused);
  ASSERT_TRUE(removing);
  EXPECT_EQ(finished(*removing).nodes.size(), 2U);
}

TEST(MetadataTransitions, OneNodeMovesAtATime) {
  const auto joining = begin_join(a_cluster(2), a_node(3));
  ASSERT_TRUE(joining);
  const auto second = begin_join(*joining, a_node(4));
  ASSERT_TRUE(second.failed_with(Errc::locked));
  EXPECT_THAT(second.error().to_string(), HasSubstr("10.0.0.3:7000) is joining"));
  EXPECT_TRUE(begin_leave(*joining, node_id(1)).failed_with(Errc::locked));
  EXPECT_TRUE(begin_removal(*joining, node_id(1), DataLoss::accepted).failed_with(Errc::locked));
}

TEST(MetadataTransitions, WhatWasBegunMayBeGivenUp) {
  const ClusterMetadata before = with_keyspace(a_cluster(2), "shop", 2);
  const auto joining = begin_join(before, a_node(3));
  ASSERT_TRUE(joining);
  const auto without = abandon_change(*joining);
  ASSERT_TRUE(without);
  EXPECT_EQ(without->nodes, before.nodes);
  EXPECT_EQ(replicas(*without, "shop"), replicas(before, "shop"));
  EXPECT_GT(without->epoch, joining->epoch);
  EXPECT_TRUE(without->was_removed(node_id(3)));
  const auto leaving = begin_leave(before, node_id(1));
  ASSERT_TRUE(leaving);
  const auto stays = abandon_change(*leaving);
  ASSERT_TRUE(stays);
  EXPECT_EQ(stays->nodes, before.nodes);
  EXPECT_TRUE(abandon_change(before).failed_with(Errc::not_found));
}

TEST(MetadataTransitions, AnAlteredKeyspaceHasPendingReplicasFirst) {
  const ClusterMetadata before = with_keyspace(a_cluster(3), "shop", 1);
  const ClusterMetadata altered = with_keyspace(before, "shop", 3);
  EXPECT_TRUE(change_is_under_way(altered));
  for (const TabletReplicas& tablet : replicas(altered, "shop")) {
    EXPECT_EQ(tablet.members.size(), 1U);
    EXPECT_EQ(tablet.pending.size(), 2U);
  }
  for (const TabletReplicas& tablet : replicas(finished(altered), "shop")) {
    EXPECT_EQ(tablet.members.size(), 3U);
    EXPECT_THAT(tablet.pending, IsEmpty());
  }
  const ClusterMetadata back = with_keyspace(altered, "shop", 1);
  EXPECT_FALSE(change_is_under_way(back));
  EXPECT_EQ(back.keyspaces, before.keyspaces);
  EXPECT_GT(back.tablets.front().epoch, altered.tablets.front().epoch);
}

TEST(MetadataTransitions, KeyspacesComeInAnEpochOfTheirOwnAndLeaveTabletsInTheirs) {
  const ClusterMetadata before = a_cluster(3);
  const ClusterMetadata with = with_keyspace(before, "shop", 2);
  EXPECT_EQ(with.epoch, Epoch(2));
  EXPECT_EQ(with.keyspaces.at("shop").began, Epoch(2));
  EXPECT_EQ(with.tablets, before.tablets);
  const auto without = change_schema(with, model::Schema());
  ASSERT_TRUE(without);
  EXPECT_EQ(without->epoch, with.epoch);
  EXPECT_TRUE(without->keyspaces.empty());
}

TEST(MetadataTransitions, ANodeThatReentersHasANewNameAndAnEpochForAllItHolds) {
  ClusterMetadata metadata = with_keyspace(a_cluster(4, 8), "k", 2);
  const ReplicatedKeyspace keyspace = metadata.keyspaces.find("k")->second;
  const auto again = begin_reentry(metadata, node_id(2));
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->find(node_id(2))->in_doubt);
  EXPECT_EQ(began_on(*again->find(node_id(2)), keyspace, 0), again->epoch);
  EXPECT_EQ(began_on(*again->find(node_id(1)), keyspace, 0), keyspace.began);
  EXPECT_EQ(again->epoch, Epoch(metadata.epoch.value() + 1));
  const auto held = tablets_of(metadata, node_id(2));
  EXPECT_FALSE(held.empty());
  EXPECT_LT(held.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    const bool holds = std::ranges::find(held, i) != held.end();
    EXPECT_EQ(again->tablets[i].epoch, holds ? again->epoch : metadata.tablets[i].epoch) << i;
  }
  // It counts again in the same epoch, and keeps its name.
  const auto back = finish_reentry(*again, node_id(2), again->epoch, again->epoch);
  ASSERT_TRUE(back.has_value());
  EXPECT_FALSE(back->find(node_id(2))->in_doubt);
  EXPECT_EQ(back->epoch, again->epoch);
  EXPECT_EQ(began_on(*back->find(node_id(2)), keyspace, 0), again->epoch);
  EXPECT_TRUE(
      finish_reentry(*back, node_id(2), again->epoch, again->epoch).failed_with(Errc::refused));
}

TEST(MetadataTransitions, AReentryIsFinishedOnlyAsItWasSeen) {
  const ClusterMetadata metadata = with_keyspace(a_cluster(3, 4), "k", 3);
  const ClusterMetadata first = *begin_reentry(metadata, node_id(2));
  // Another one comes into doubt: the tablets are in a later epoch.
  const ClusterMetadata second = *begin_reentry(first, node_id(3));
  EXPECT_TRUE(
      finish_reentry(second, node_id(2), first.epoch, first.epoch).failed_with(Errc::refused));
  EXPECT_TRUE(finish_reentry(second, node_id(2), first.epoch, second.epoch).has_value());
  // It has itself come into doubt once more.
  const ClusterMetadata third = *begin_reentry(first, node_id(2));
  EXPECT_TRUE(
      finish_reentry(third, node_id(2), first.epoch, third.epoch).failed_with(Errc::refused));
  // Replicas of a newer keyspace were not looked at.
  const ClusterMetadata grown = with_keyspace(first, "l", 1);
  EXPECT_TRUE(
      finish_reentry(grown, node_id(2), first.epoch, first.epoch).failed_with(Errc::refused));
  EXPECT_TRUE(begin_reentry(metadata, node_id(9)).failed_with(Errc::not_found));
  const ClusterMetadata joining = *begin_join(metadata, a_node(7));
  EXPECT_TRUE(begin_reentry(joining, node_id(7)).failed_with(Errc::refused));
}

TEST(MetadataTransitions, DoubtComesWithAnEpochAlone) {
  const ClusterMetadata metadata = with_keyspace(a_cluster(3, 4), "k", 3);
  const ClusterMetadata again = *begin_reentry(metadata, node_id(2));
  ClusterMetadata wrong = *finish_reentry(again, node_id(2), again.epoch, again.epoch);
  const ClusterMetadata back = wrong;
  wrong.nodes[1].in_doubt = true;
  EXPECT_TRUE(validate(wrong).has_value());
  EXPECT_FALSE(may_follow(wrong, back));
  wrong = metadata;
  wrong.nodes[1].in_doubt = true;
  EXPECT_FALSE(validate(wrong).has_value());
  wrong = again;
  wrong.tablets[0].epoch = metadata.tablets[0].epoch;
  EXPECT_FALSE(may_follow(wrong, metadata));
}

TEST(MetadataTransitions, NumbersAreNeverGivenAgain) {
  const ClusterMetadata first = with_keyspace(a_cluster(2), "shop", 1);
  EXPECT_EQ(first.find(node_id(1))->number, NodeNumber(1));
  EXPECT_EQ(first.find(node_id(2))->number, NodeNumber(2));
  const auto without = change_schema(first, model::Schema());
  ASSERT_TRUE(without);
  const ClusterMetadata again = with_keyspace(*without, "shop", 1);
  EXPECT_EQ(first.keyspaces.at("shop").number, KeyspaceNumber(1));
  EXPECT_EQ(again.keyspaces.at("shop").number, KeyspaceNumber(2));
  EXPECT_GT(again.keyspaces.at("shop").began, first.keyspaces.at("shop").began);
  const auto joining = begin_join(first, a_node(3));
  ASSERT_TRUE(joining);
  const auto other = begin_join(*abandon_change(*joining), a_node(4));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->find(node_id(4))->number, NodeNumber(4));
}

TEST(MetadataTransitions, ATruncatedTableHasTheNextStorageId) {
  const auto before = change_schema(a_cluster(1), model::testing::sample_schema());
  ASSERT_TRUE(before);
  ASSERT_FALSE(before->storage.empty());
  const auto& [table, id] = *before->storage.begin();
  const auto after = truncate(*before, table);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->storage.at(table), before->next.storage);
  EXPECT_EQ(after->epoch, before->epoch);
  EXPECT_TRUE(may_follow(*after, *before));
  EXPECT_FALSE(may_follow(*before, *after));
  EXPECT_TRUE(truncate(*before, base::Uuid()).failed_with(Errc::not_found));
}

TEST(MetadataTransitions, ReplicationThatNobodyKnowsIsRefused) {
  model::Keyspace keyspace;
  keyspace.name = "shop";
  keyspace.replication = {{"class", "Everywhere"}};
  const auto refused = change_schema(a_cluster(1), model::Schema().with(keyspace));
  ASSERT_TRUE(refused.failed_with(Errc::invalid_argument));
  EXPECT_THAT(refused.error().to_string(), HasSubstr("keyspace shop"));
}

TEST(MetadataTransitions, AChangeIsFinishedOnlyAsItWasSeen) {
  const ClusterMetadata before = with_keyspace(a_cluster(2), "shop", 1);
  const auto joining = begin_join(before, a_node(3));
  ASSERT_TRUE(joining);
  const ClusterMetadata altered = with_keyspace(*joining, "shop", 2);
  EXPECT_TRUE(advance_change(altered, joining->epoch).failed_with(Errc::refused));
  EXPECT_TRUE(advance_change(altered, altered.epoch));
  EXPECT_TRUE(finish_change(before, before.epoch).failed_with(Errc::not_found));
}

TEST(MetadataTransitions, NodesThatAreNotHereCannotGo) {
  const ClusterMetadata metadata = a_cluster(2);
  EXPECT_TRUE(begin_leave(metadata, node_id(9)).failed_with(Errc::not_found));
  EXPECT_TRUE(begin_removal(metadata, node_id(9), DataLoss::accepted).failed_with(Errc::not_found));
  EXPECT_TRUE(begin_leave(a_cluster(1), node_id(1)).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(change_addresses(metadata, node_id(9), {}, {}).failed_with(Errc::not_found));
  EXPECT_TRUE(begin_join(metadata, a_node(2)).failed_with(Errc::already_exists));
}

TEST(MetadataTransitions, ANodeMovesToAnotherAddressThatNobodyHas) {
  const ClusterMetadata metadata = a_cluster(2);
  const auto elsewhere = runtime::Address::v4({10, 0, 1, 1}, 7000);
  const auto moved = change_addresses(metadata, node_id(1), elsewhere, elsewhere);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->find(node_id(1))->description.node_address, elsewhere);
  EXPECT_EQ(moved->epoch, metadata.epoch);
  EXPECT_TRUE(change_addresses(*moved, node_id(2), elsewhere, elsewhere)
                  .failed_with(Errc::invalid_argument));
  NodeDescription double_ganger = a_node(3);
  double_ganger.node_address = elsewhere;
  EXPECT_TRUE(begin_join(*moved, double_ganger).failed_with(Errc::invalid_argument));
}

// ---- Random walks ----

base::Result<ClusterMetadata> some_change(const ClusterMetadata& metadata, base::Prng& prng,
                                          std::uint8_t& last_node) {
  const auto someone = [&] { return metadata.nodes[prng.below(metadata.nodes.size())].id(); };
  const std::string keyspace = "k" + std::to_string(prng.below(3));
  switch (prng.below(12)) {
    case 0:
    case 1:
      ++last_node;
      return begin_join(metadata, a_node(last_node, "r" + std::to_string(prng.below(3)),
                                         "dc" + std::to_string(prng.below(2))));
    case 2:
      return begin_leave(metadata, someone());
    case 3:
      return begin_removal(metadata, someone(),
                           prng.chance(0.5) ? DataLoss::accepted : DataLoss::refused);
    case 4:
      return abandon_change(metadata);
    case 6:
      return begin_reentry(metadata, someone());
    case 7: {
      const model::NodeId node = someone();
      const Node* known = metadata.find(node);
      return finish_reentry(metadata, node, known == nullptr ? Epoch(0) : known->reentered,
                            metadata.epoch);
    }
    case 5:
      return change_schema(metadata,
                           prng.chance(0.2)
                               ? metadata.schema.without(keyspace)
                               : with_keyspace(metadata.schema, keyspace,
                                               static_cast<std::uint32_t>(prng.between(1, 4))));
    case 8:
      ++last_node;
      return begin_replacement(metadata, someone(), a_node(last_node),
                               prng.chance(0.5) ? DataLoss::accepted : DataLoss::refused);
    default:
      return advance_change(metadata, metadata.epoch);
  }
}

using Set = std::set<model::NodeId>;
using Sets = std::tuple<Set, Set, Set>;

Set set_of(const std::vector<model::NodeId>& nodes) {
  return {nodes.begin(), nodes.end()};
}

Sets sets_of(const TabletReplicas& tablet) {
  return {set_of(tablet.members), set_of(tablet.pending), set_of(tablet.next)};
}

// What must hold from the first document to the last, and not only from one to the next.
struct Witness {
  std::map<std::string, std::uint64_t> lives;
  std::map<KeyspaceNumber, std::pair<std::string, std::uint64_t>> numbers;
  // Of a keyspace, a tablet and a node: under what it mints now, or did last; and whether it is a
  // replica now.
  std::map<std::tuple<KeyspaceNumber, std::size_t, NodeNumber>, std::pair<Epoch, bool>> names;
  std::map<std::tuple<std::string, std::uint64_t, std::size_t, Epoch>, Sets> seen;

  void see(const ClusterMetadata& before, const ClusterMetadata& metadata) {
    RC_ASSERT(validate(metadata).has_value());
    RC_ASSERT(may_follow(metadata, before));
    const auto decoded = decode_cluster_metadata(encode(metadata));
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(*decoded == metadata);
    for (const auto& [name, keyspace] : metadata.keyspaces) {
      if (!before.keyspaces.contains(name)) ++lives[name];
      // A number is one keyspace's, for ever.
      const auto [owner, is_first] = numbers.try_emplace(keyspace.number, name, lives[name]);
      RC_ASSERT(is_first || owner->second == std::pair(name, lives[name]));
      const auto all = replicas_of(metadata, keyspace.replication);
      see_names(before, metadata, keyspace, all);
      for (std::size_t i = 0; i < all.size(); ++i) {
        const Sets sets = sets_of(all[i]);
        // Nobody is twice in a tablet, in whatever part.
        RC_ASSERT(std::get<0>(sets).size() == all[i].members.size());
        RC_ASSERT(std::get<1>(sets).size() == all[i].pending.size());
        RC_ASSERT(std::get<2>(sets).size() == all[i].next.size());
        for (const auto& node : all[i].pending) RC_ASSERT(!std::get<0>(sets).contains(node));
        RC_ASSERT(all[i].pending.empty() || all[i].next.empty());
        // A tablet and an epoch mean one set.
        const auto key = std::tuple(name, lives[name], i, metadata.tablets[i].epoch);
        const auto [at, is_new] = seen.try_emplace(key, sets);
        RC_ASSERT(is_new || at->second == sets);
      }
    }
  }

  // Who becomes a replica, once more or in doubt, has a name that it has never minted under.
  void see_names(const ClusterMetadata& before, const ClusterMetadata& metadata,
                 const ReplicatedKeyspace& keyspace, const std::vector<TabletReplicas>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Set holders = set_of(all[i].all());
      for (const Node& node : metadata.nodes) {
        auto& [name, is_replica] = names[{keyspace.number, i, node.number}];
        const bool was_replica = std::exchange(is_replica, holders.contains(node.id()));
        if (!is_replica) continue;
        const Epoch now = began_on(node, keyspace, i);
        const Node* was = before.find(node.id());
        const bool doubts = node.in_doubt && (was == nullptr || !was->in_doubt);
        const bool must_be_new = (!was_replica || doubts) && keyspace.began != metadata.epoch;
        RC_ASSERT(now > name || (!must_be_new && now == name));
        name = now;
      }
    }
  }
};

RC_GTEST_PROP(MetadataTransitions, KeepEveryInvariantHoweverTheyFollow, (std::uint64_t seed)) {
  base::Prng prng(seed);
  ClusterMetadata metadata = a_cluster(static_cast<std::uint8_t>(prng.between(1, 4)), 8);
  const auto tokens = present_ring(metadata)->tablet_count();
  std::uint8_t last_node = 10;
  Witness witness;
  std::size_t changes = 0;
  for (int step = 0; step < 30; ++step) {
    auto next = some_change(metadata, prng, last_node);
    if (!next) continue;
    ++changes;
    witness.see(metadata, *next);
    RC_ASSERT(next->tablets.size() == tokens);
    metadata = *std::move(next);
    const auto acceptors = choose_acceptors(metadata, {});
    RC_ASSERT(!acceptors.empty() && acceptors.size() % 2 == 1);
  }
  RC_ASSERT(changes > 2);
}

// All that is under way comes to an end by at most two steps, whatever it is.
RC_GTEST_PROP(MetadataTransitions, FinishLeavesNothingPending, (std::uint64_t seed)) {
  base::Prng prng(seed);
  ClusterMetadata metadata = a_cluster(3, 8);
  std::uint8_t last_node = 10;
  for (int step = 0; step < 15; ++step) {
    if (auto next = some_change(metadata, prng, last_node)) metadata = *std::move(next);
    if (!change_is_under_way(metadata)) continue;
    auto end = advance_change(metadata, metadata.epoch);
    RC_ASSERT(end.has_value());
    if (end->joint != Epoch(0) && metadata.joint == Epoch(0)) {
      end = advance_change(*end, end->epoch);
    }
    RC_ASSERT(end.has_value());
    RC_ASSERT(!change_is_under_way(*end));
    for (const auto& [name, keyspace] : end->keyspaces) {
      const auto before = replicas_of(metadata, metadata.keyspaces.find(name)->second.replication);
      const auto after = replicas_of(*end, keyspace.replication);
      for (std::size_t i = 0; i < after.size(); ++i) {
        RC_ASSERT(after[i].pending.empty());
        // Who counts afterwards was a member, or had been pending.
        const Set holders = set_of(before[i].all());
        for (const auto& node : after[i].members) RC_ASSERT(holders.contains(node));
      }
    }
  }
}

}  // namespace
}  // namespace helenus::metadata
