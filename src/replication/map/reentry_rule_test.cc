// By whom a replica in doubt has caught up.
#include "replication/map/reentry_rule.h"

#include <cstdint>
#include <iterator>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"
#include "metadata/metadata_test_support.h"

namespace helenus::replication {
namespace {

using metadata::ClusterMetadata;
using metadata::testing::a_cluster;
using metadata::testing::node_id;
using model::Consistency;
using model::NodeId;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

ClusterMetadata with_doubt(const ClusterMetadata& metadata, std::uint8_t node) {
  auto next = metadata::begin_reentry(metadata, node_id(node));
  ASSERT(next);
  return *std::move(next);
}

// What node 1 waits for in the first tablet of "k".
std::set<NodeId> waits_for(const ClusterMetadata& metadata, const std::set<NodeId>& pulled) {
  const ReplicaMapPtr map = ReplicaMap::make(metadata, 1, node_id(1));
  const KeyspaceMap& keyspace = *map->find("k");
  return reentry_waits_for(keyspace, keyspace.tablet(0), node_id(1), pulled);
}

TEST(ReentryRule, OfThreeReplicasBothOthersAreNeeded) {
  const auto metadata = with_doubt(metadata::testing::with_keyspace(a_cluster(3, 4), "k", 3), 1);
  EXPECT_THAT(waits_for(metadata, {}), UnorderedElementsAre(node_id(2), node_id(3)));
  EXPECT_THAT(waits_for(metadata, {node_id(2)}), UnorderedElementsAre(node_id(3)));
  EXPECT_THAT(waits_for(metadata, {node_id(2), node_id(3)}), IsEmpty());
}

TEST(ReentryRule, OfFiveThreeOthersAreEnoughWhicheverTheyAre) {
  const auto metadata = with_doubt(metadata::testing::with_keyspace(a_cluster(5, 8), "k", 5), 1);
  EXPECT_THAT(waits_for(metadata, {node_id(2), node_id(4)}),
              UnorderedElementsAre(node_id(3), node_id(5)));
  EXPECT_THAT(waits_for(metadata, {node_id(2), node_id(4), node_id(5)}), IsEmpty());
}

TEST(ReentryRule, WhoIsInDoubtItselfCountsOnlyWhereTooFewAreNot) {
  auto metadata = with_doubt(metadata::testing::with_keyspace(a_cluster(5, 8), "k", 5), 1);
  metadata = with_doubt(metadata, 2);
  // Three are not in doubt, and enough.
  EXPECT_THAT(waits_for(metadata, {node_id(2), node_id(3), node_id(4)}),
              UnorderedElementsAre(node_id(5)));
  EXPECT_THAT(waits_for(metadata, {node_id(3), node_id(4), node_id(5)}), IsEmpty());
  // Two are left: everybody is needed.
  metadata = with_doubt(metadata, 3);
  EXPECT_THAT(waits_for(metadata, {node_id(3), node_id(4), node_id(5)}),
              UnorderedElementsAre(node_id(2)));
  EXPECT_THAT(waits_for(metadata, {node_id(2), node_id(3), node_id(4), node_id(5)}), IsEmpty());
}

TEST(ReentryRule, WhereFewerNodesAreThanTheFactorWantsAllAreNeeded) {
  const auto metadata = with_doubt(metadata::testing::with_keyspace(a_cluster(2, 4), "k", 3), 1);
  EXPECT_THAT(waits_for(metadata, {}), UnorderedElementsAre(node_id(2)));
  EXPECT_THAT(waits_for(metadata, {node_id(2)}), IsEmpty());
}

// What a majority had acknowledged, the one in doubt among them, was at one of those it pulled
// from.
RC_GTEST_PROP(ReentryRule, WhoeverItPulledFromHadWhatItHelpedToAcknowledge, (std::uint64_t seed)) {
  base::Prng prng(seed);
  const auto nodes = static_cast<std::uint8_t>(prng.between(2, 7));
  const auto factor = static_cast<std::uint32_t>(prng.between(2, 6));
  auto metadata = metadata::testing::with_keyspace(a_cluster(nodes, 8), "k", factor);
  metadata = with_doubt(metadata, 1);
  const auto doubtful = static_cast<std::uint8_t>(prng.between(2, nodes + std::uint64_t{2}));
  if (doubtful <= nodes) metadata = with_doubt(metadata, doubtful);
  const ReplicaMapPtr map = ReplicaMap::make(metadata, 1, node_id(1));
  const KeyspaceMap& keyspace = *map->find("k");
  const PlacedTablet& tablet = keyspace.tablet(0);
  RC_PRE(tablet.find(node_id(1)) != nullptr);
  // It pulls in some order until that is enough.
  std::set<NodeId> pulled;
  for (auto left = waits_for(metadata, pulled); !left.empty(); left = waits_for(metadata, pulled)) {
    pulled.insert(*std::next(left.begin(), static_cast<std::ptrdiff_t>(prng.below(left.size()))));
  }
  // Who acknowledged beside it: a majority in all. One in doubt may have lost it, too.
  std::size_t count = 0;
  bool somebody_has_it = false;
  bool was_pulled_from_one = false;
  for (const PlacedReplica& member : tablet.members) {
    const bool has_acknowledged = member.node == node_id(1) || prng.chance(0.6);
    if (has_acknowledged) ++count;
    if (!has_acknowledged || member.in_doubt) continue;
    somebody_has_it = true;
    was_pulled_from_one |= pulled.contains(member.node);
  }
  RC_PRE(somebody_has_it && count >= keyspace.rule(tablet, Consistency::quorum).required());
  RC_ASSERT(was_pulled_from_one);
}

}  // namespace
}  // namespace helenus::replication
