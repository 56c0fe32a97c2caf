// The order in which replicas are asked.
#include "ring/proximity.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ring/topology_test_support.h"

namespace helenus::ring {
namespace {

using namespace std::chrono_literals;
using testing::a_node;
using Nodes = std::vector<NodeIndex>;
using Latencies = std::vector<Proximity::Latency>;

// Nodes 0 and 1 share a rack, 2 and 3 are in another of their datacentre, 4 and 5 in another
// datacentre, whose rack has the name of the first.
TopologyPtr two_datacentres() {
  return *Topology::make(
      Partitioner::murmur3,
      {a_node(0, "a", "r1", {1}), a_node(1, "a", "r1", {2}), a_node(2, "a", "r2", {3}),
       a_node(3, "a", "r2", {4}), a_node(4, "b", "r1", {5}), a_node(5, "b", "r1", {6})});
}

TEST(Proximity, RackComesBeforeDatacentreAndThatBeforeOthers) {
  const Proximity proximity(two_datacentres(), 0, {});
  EXPECT_EQ(proximity.nearest_first(Nodes{5, 3, 1, 0}), (Nodes{0, 1, 3, 5}));
  EXPECT_EQ(nearness_of(*two_datacentres(), 0, 4), Nearness::elsewhere)
      << "a rack of the same name";
}

TEST(Proximity, FasterComesFirstAmongEquallyNear) {
  const Latencies latencies = {0ns, 1ms, 9ms, 2ms, 90ms, 30ms};
  const Proximity proximity(two_datacentres(), 0, latencies);
  EXPECT_EQ(proximity.nearest_first(Nodes{4, 2, 5, 3, 1}), (Nodes{1, 3, 2, 5, 4}));
}

TEST(Proximity, SpeedDoesNotOutweighDistance) {
  const Latencies latencies = {0ns, 50ms, 1ms, 1ms, 1us, 1us};
  const Proximity proximity(two_datacentres(), 0, latencies);
  EXPECT_EQ(proximity.nearest_first(Nodes{4, 2, 1}), (Nodes{1, 2, 4}));
}

TEST(Proximity, SmallDifferencesKeepTheOrderOfThePlacement) {
  const Latencies latencies = {0ns, 1ms, 1010us, 1040us};
  const Proximity proximity(two_datacentres(), 4, latencies);
  EXPECT_EQ(proximity.nearest_first(Nodes{3, 2, 1}), (Nodes{3, 2, 1}));
  EXPECT_EQ(proximity.nearest_first(Nodes{1, 3, 2}), (Nodes{1, 3, 2}));
}

TEST(Proximity, UnmeasuredIsAskedBeforeItsLikes) {
  const Latencies latencies = {0ns, 1ms, 1us, std::nullopt, 0ns};
  const Proximity proximity(two_datacentres(), 0, latencies);
  EXPECT_EQ(proximity.nearest_first(Nodes{4, 2, 3, 5, 1}), (Nodes{1, 3, 2, 5, 4}));
}

RC_GTEST_PROP(Proximity, OrdersTheSameNodesByPlaceThenBySpeed, (std::uint64_t seed)) {
  base::Prng prng(seed);
  const auto topology =
      *Topology::make(Partitioner::murmur3, testing::random_nodes(Partitioner::murmur3, prng));
  const std::size_t node_count = topology->nodes().size();
  Latencies latencies;
  Nodes replicas;
  for (NodeIndex node = 0; node < node_count; ++node) {
    latencies.emplace_back(std::chrono::nanoseconds(1LL << prng.below(62)));
    replicas.push_back(node);
  }
  prng.shuffle(replicas);
  const auto self = static_cast<NodeIndex>(prng.below(node_count));
  const Nodes sorted = Proximity(topology, self, latencies).nearest_first(replicas);
  RC_ASSERT(std::ranges::is_permutation(sorted, replicas));
  RC_ASSERT((sorted.front() == self));
  RC_ASSERT(std::ranges::is_sorted(sorted, {}, [&](NodeIndex node) {
    return std::pair(nearness_of(*topology, self, node), *latencies[node]);
  }));
}

}  // namespace
}  // namespace helenus::ring
