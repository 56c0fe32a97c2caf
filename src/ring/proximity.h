// Which replica is close: by where it stands, then by how fast it answered.
//
// A node of the own rack is nearer than one of the own datacentre, and that nearer than any other,
// whatever was measured: between racks and datacentres lies the network that is dear. Among nodes
// equally near the faster come first, where faster means by a factor of about two: their latencies
// are compared by powers of two, so that noise does not change the order at every request and the
// same replica goes on serving the same keys from its cache. Nodes alike in all this keep the order
// in which the placement has them, which differs from tablet to tablet and so spreads the load.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "ring/topology.h"

namespace helenus::ring {

enum class Nearness : unsigned char { same_node, same_rack, same_datacentre, elsewhere };

Nearness nearness_of(const Topology& topology, NodeIndex from, NodeIndex to);

// Immutable; what was measured is given when it is made, and a new one made from time to time.
class Proximity {
 public:
  // Nothing is known of a node that nobody has asked yet: it comes before those that were measured,
  // and so will be.
  using Latency = std::optional<std::chrono::nanoseconds>;

  // The view from one node. Latencies by node; those missing at the end are unknown.
  // Requires: self is one of the topology's nodes, no latency is negative.
  Proximity(TopologyPtr topology, NodeIndex self, std::span<const Latency> latencies);

  // What its node indices are of.
  const TopologyPtr& topology() const { return topology_; }
  // Cost: sorting as many nodes as are given.
  std::vector<NodeIndex> nearest_first(std::span<const NodeIndex> replicas) const;

 private:
  TopologyPtr topology_;
  std::vector<unsigned> ranks_;  // by node
};

}  // namespace helenus::ring
