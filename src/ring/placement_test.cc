// Who holds what: stories by hand, and laws on random rings against a definition that does not
// walk.
#include "ring/placement.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ring/topology_test_support.h"

namespace helenus::ring {
namespace {

using testing::a_node;
using testing::at;

// The replicas of a tablet by the number a_node gave them: indexes count from 0, numbers from 1.
std::vector<NodeIndex> numbers(const Placement& placement, TabletIndex tablet) {
  std::vector<NodeIndex> found;
  for (const NodeIndex node : placement.replicas_of(tablet)) found.push_back(node + 1);
  return found;
}

Placement place(std::vector<Node> nodes, const Strategy& strategy) {
  return {*Topology::make(Partitioner::murmur3, std::move(nodes)), strategy};
}

using Numbers = std::vector<NodeIndex>;

TEST(SimpleStrategy, TakesTheNextNodesRoundTheRingWhereverTheyStand) {
  const auto placement =
      place({a_node(1, "a", "r", {10, 40}), a_node(2, "a", "r", {20}), a_node(3, "b", "r", {30})},
            SimpleStrategy{2});
  EXPECT_EQ(numbers(placement, 0), (Numbers{1, 2}));
  EXPECT_EQ(numbers(placement, 1), (Numbers{2, 3}));
  EXPECT_EQ(numbers(placement, 2), (Numbers{3, 1}));
  EXPECT_EQ(numbers(placement, 3), (Numbers{1, 2})) << "node 1 follows itself and counts once";
}

TEST(SimpleStrategy, WithFewerNodesThanReplicasUsesThemAll) {
  const auto placement =
      place({a_node(1, "a", "r", {10}), a_node(2, "a", "r", {20})}, SimpleStrategy{5});
  EXPECT_EQ(numbers(placement, 0), (Numbers{1, 2}));
  EXPECT_EQ(numbers(placement, 1), (Numbers{2, 1}));
}

TEST(NetworkTopologyStrategy, TakesDistinctRacksFirst) {
  const auto placement = place({a_node(1, "a", "r1", {10}), a_node(2, "a", "r1", {20}),
                                a_node(3, "a", "r2", {30}), a_node(4, "a", "r3", {40})},
                               NetworkTopologyStrategy{{{"a", 3}}});
  EXPECT_EQ(numbers(placement, 0), (Numbers{1, 3, 4}));
  EXPECT_EQ(numbers(placement, 1), (Numbers{2, 3, 4}));
  EXPECT_EQ(numbers(placement, 2), (Numbers{3, 4, 1}));
}

TEST(NetworkTopologyStrategy, WithFewerRacksThanReplicasRepeatsTheFirstMet) {
  const auto placement = place({a_node(1, "a", "r1", {10}), a_node(2, "a", "r1", {20}),
                                a_node(3, "a", "r1", {30}), a_node(4, "a", "r2", {40})},
                               NetworkTopologyStrategy{{{"a", 3}}});
  EXPECT_EQ(numbers(placement, 0), (Numbers{1, 2, 4})) << "not 3: rack 2 must have one";
  EXPECT_EQ(numbers(placement, 1), (Numbers{2, 3, 4}));
  EXPECT_EQ(numbers(placement, 3), (Numbers{4, 1, 2}));
}

TEST(NetworkTopologyStrategy, NodeWithManyTokensFillsOnePlace) {
  // Where a walk meets a node of a full rack again and again.
  const auto placement = place({a_node(1, "a", "r1", {10}), a_node(2, "a", "r1", {20, 21, 22}),
                                a_node(3, "a", "r2", {30}), a_node(4, "a", "r1", {40})},
                               NetworkTopologyStrategy{{{"a", 4}}});
  EXPECT_EQ(numbers(placement, 0), (Numbers{1, 2, 3, 4}));
}

TEST(NetworkTopologyStrategy, CountsEachDatacentreForItself) {
  const auto placement =
      place({a_node(1, "a", "r1", {10}), a_node(2, "b", "r1", {20}), a_node(3, "a", "r2", {30}),
             a_node(4, "b", "r1", {40}), a_node(5, "c", "r1", {50})},
            NetworkTopologyStrategy{{{"a", 2}, {"b", 1}, {"c", 0}, {"d", 3}}});
  EXPECT_EQ(numbers(placement, 0), (Numbers{1, 2, 3}));
  EXPECT_EQ(numbers(placement, 2), (Numbers{3, 4, 1}));
  EXPECT_EQ(numbers(placement, 4), (Numbers{1, 2, 3})) << "the tablet's owner has no factor";
  EXPECT_EQ(placement.tablets_on(4), std::vector<TabletIndex>{});
  EXPECT_EQ(placement.tablets_on(3), (std::vector<TabletIndex>{2, 3}));
}

TEST(NetworkTopologyStrategy, RackOfNodesWithoutTokensIsNotWaitedFor) {
  const auto placement =
      place({a_node(1, "a", "r1", {10}), a_node(2, "a", "r1", {20}), a_node(3, "a", "r2", {})},
            NetworkTopologyStrategy{{{"a", 2}}});
  EXPECT_EQ(numbers(placement, 0), (Numbers{1, 2}));
}

TEST(Strategy, IsReadFromTheOptionsOfASchema) {
  EXPECT_EQ(parse_strategy({{"class", "SimpleStrategy"}, {"replication_factor", "3"}}),
            Strategy(SimpleStrategy{3}));
  EXPECT_EQ(parse_strategy({{"class", "org.apache.cassandra.locator.NetworkTopologyStrategy"},
                            {"a", "3"},
                            {"b", "0"}}),
            Strategy(NetworkTopologyStrategy{{{"a", 3}, {"b", 0}}}));
}

TEST(Strategy, OfOtherOptionsIsRefused) {
  const auto refused = [](const model::OptionMap& options) {
    return parse_strategy(options).failed_with(base::Errc::invalid_argument);
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({{"class", "LocalStrategy"}}));
  EXPECT_TRUE(refused({{"class", "SimpleStrategy"}}));
  EXPECT_TRUE(refused({{"class", "SimpleStrategy"}, {"replication_factor", "3"}, {"a", "3"}}));
  EXPECT_TRUE(refused({{"class", "NetworkTopologyStrategy"}, {"replication_factor", "3"}}));
  for (const char* factor : {"", "-1", "3/1", " 3", "3x", "256", "99999999999"}) {
    EXPECT_TRUE(refused({{"class", "SimpleStrategy"}, {"replication_factor", factor}})) << factor;
    EXPECT_TRUE(refused({{"class", "NetworkTopologyStrategy"}, {"a", factor}})) << factor;
  }
}

// A random ring and keyspace.
struct Drawn {
  TopologyPtr topology;
  Strategy strategy;

  explicit Drawn(std::uint64_t seed) {
    base::Prng prng(seed);
    const auto partitioner = prng.chance(0.5) ? Partitioner::murmur3 : Partitioner::ordered;
    topology = *Topology::make(partitioner, testing::random_nodes(partitioner, prng));
    strategy = testing::random_strategy(prng);
  }
};

// The nodes in the order in which a walk from a tablet's token meets them.
std::vector<NodeIndex> met_from(const Topology& topology, TabletIndex tablet) {
  std::vector<NodeIndex> met;
  for (std::size_t step = 0; step < topology.tablet_count(); ++step) {
    const auto at_step = static_cast<TabletIndex>((tablet + step) % topology.tablet_count());
    const NodeIndex node = topology.owner_of(at_step);
    if (std::ranges::find(met, node) == met.end()) met.push_back(node);
  }
  return met;
}

// The definition: of the nodes of a datacentre as they are met, the first of each rack come before
// all others; the first `factor` of these.
std::set<NodeIndex> defined_replicas(const Topology& topology, const Strategy& strategy,
                                     TabletIndex tablet) {
  const std::vector<NodeIndex> met = met_from(topology, tablet);
  if (const auto* simple = std::get_if<SimpleStrategy>(&strategy)) {
    return {met.begin(), met.begin() + static_cast<std::ptrdiff_t>(
                                           std::min<std::size_t>(simple->factor, met.size()))};
  }
  std::set<NodeIndex> replicas;
  for (const auto& [datacentre, factor] : std::get<NetworkTopologyStrategy>(strategy).factors) {
    std::set<std::string> racks;
    std::vector<NodeIndex> firsts;
    std::vector<NodeIndex> others;
    for (const NodeIndex node : met) {
      if (topology.node(node).datacentre != datacentre) continue;
      (racks.insert(topology.node(node).rack).second ? firsts : others).push_back(node);
    }
    firsts.insert(firsts.end(), others.begin(), others.end());
    firsts.resize(std::min<std::size_t>(factor, firsts.size()));
    replicas.insert(firsts.begin(), firsts.end());
  }
  return replicas;
}

RC_GTEST_PROP(Placement, IsWhatTheStrategyDefines, (std::uint64_t seed)) {
  const Drawn drawn(seed);
  const Placement placement(drawn.topology, drawn.strategy);
  for (TabletIndex tablet = 0; tablet < drawn.topology->tablet_count(); ++tablet) {
    const auto replicas = placement.replicas_of(tablet);
    const std::set<NodeIndex> found(replicas.begin(), replicas.end());
    RC_ASSERT((found == defined_replicas(*drawn.topology, drawn.strategy, tablet)));
  }
}

RC_GTEST_PROP(Placement, NoNodeServesATabletTwiceAndReplicasComeAsMet, (std::uint64_t seed)) {
  const Drawn drawn(seed);
  const Placement placement(drawn.topology, drawn.strategy);
  for (TabletIndex tablet = 0; tablet < drawn.topology->tablet_count(); ++tablet) {
    const auto met = met_from(*drawn.topology, tablet);
    auto next = met.begin();
    for (const NodeIndex node : placement.replicas_of(tablet)) {
      // Each further along the walk than the one before, so none twice.
      next = std::find(next, met.end(), node);
      RC_ASSERT(next != met.end());
      ++next;
    }
  }
}

RC_GTEST_PROP(Placement, NodesTabletsAndTabletsNodesAgree, (std::uint64_t seed)) {
  const Drawn drawn(seed);
  const Placement placement(drawn.topology, drawn.strategy);
  std::vector<std::vector<NodeIndex>> by_tablet(drawn.topology->tablet_count());
  for (NodeIndex node = 0; node < drawn.topology->nodes().size(); ++node) {
    for (const TabletIndex tablet : placement.tablets_on(node)) by_tablet[tablet].push_back(node);
  }
  for (TabletIndex tablet = 0; tablet < by_tablet.size(); ++tablet) {
    const auto replicas = placement.replicas_at(drawn.topology->token_of(tablet));
    std::vector<NodeIndex> sorted(replicas.begin(), replicas.end());
    std::ranges::sort(sorted);
    RC_ASSERT((sorted == by_tablet[tablet]));
  }
}

}  // namespace
}  // namespace helenus::ring
