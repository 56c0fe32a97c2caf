// Which nodes hold which tablet: the replication strategies of a keyspace, and Placement, what they
// come to on one topology. Placements are those that Cassandra makes and drivers compute for
// themselves; tests/ring asks the Python driver.
//
// Both strategies walk the ring from the tablet's own token and take nodes, each once:
//   simple             the first `factor` nodes met, wherever they stand
//   network topology   for each datacentre with a factor, walking its nodes alone: the first node
//                      met of each rack, until `factor` of them; where there are fewer racks than
//                      that, the rest are the first nodes met of the others
// A datacentre with fewer nodes than its factor holds the tablet on all of them.
//
// Invariant: no node occurs twice among a tablet's replicas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/table_options.h"
#include "ring/topology.h"

namespace helenus::ring {

struct SimpleStrategy {
  std::uint32_t factor = 1;

  friend bool operator==(const SimpleStrategy&, const SimpleStrategy&) = default;
};

struct NetworkTopologyStrategy {
  // A datacentre that is not named, has factor 0, or has no nodes gets no replicas.
  std::map<std::string, std::uint32_t, std::less<>> factors;

  friend bool operator==(const NetworkTopologyStrategy&, const NetworkTopologyStrategy&) = default;
};

using Strategy = std::variant<SimpleStrategy, NetworkTopologyStrategy>;

inline constexpr std::uint32_t kFactorMax = 255;

// From a keyspace's options as its schema keeps them: 'class' by the whole name of the class or its
// last part, and factors in decimal.
// Errors: invalid_argument for anything else, for a factor above kFactorMax, and for a
// NetworkTopologyStrategy with a common 'replication_factor': that is one for each datacentre by
// the time a keyspace is made, and drivers would take it for a datacentre's name.
base::Result<Strategy> parse_strategy(const model::OptionMap& options);

// Immutable, like the topology that it keeps alive. Memory: four bytes a replica and tablet.
class Placement {
 public:
  // Cost: for each tablet the walk to its last replica; at worst, where a rack's or datacentre's
  // tokens are far apart or missing, the square of the number of tokens.
  Placement(TopologyPtr topology, const Strategy& strategy);

  const TopologyPtr& topology() const { return topology_; }

  // In the order in which the walk meets them, as in Cassandra: the first is the tablet's primary.
  // Empty where no datacentre has a factor. Requires: tablet < topology()->tablet_count().
  std::span<const NodeIndex> replicas_of(TabletIndex tablet) const [[clang::lifetimebound]];
  // Requires: topology()->tablet_count() > 0.
  std::span<const NodeIndex> replicas_at(const Position& position) const [[clang::lifetimebound]];

  // The tablets that a node holds, ascending. Cost: all replicas are looked at.
  std::vector<TabletIndex> tablets_on(NodeIndex node) const;
  bool holds(NodeIndex node, TabletIndex tablet) const;

 private:
  void place_simple(std::uint32_t factor);
  void place_by_datacentre(const NetworkTopologyStrategy& strategy);

  TopologyPtr topology_;
  std::vector<NodeIndex> replicas_;  // of tablet 0, then of tablet 1, ...
  std::vector<std::uint32_t> ends_;  // where those of each tablet end
};

}  // namespace helenus::ring
