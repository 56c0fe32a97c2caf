// Who gets which tokens. The tokens of a ring are chosen when it is created and stay; what changes
// when a node joins or leaves is who owns them.
//
//   balance    the numbers of tokens of two nodes differ by one at most
//   movement   who joins takes its share and no other token moves; who leaves gives its own away
//              and no other token moves. With balance that is the least there can be.
//   spread     a token goes where the nearest other token of the same rack is farthest, then where
//              the nearest of the same node is. A tablet's replicas are the next nodes of other
//              racks, so a rack's load is shared by the distances between its tokens.
//
// Everything here is a function of its arguments alone, whatever the order of nodes in them: all
// nodes that compute a change compute the same one.
//
// Balance is kept, not forced: where tokens were dealt out otherwise, who joins takes from those
// with the most and who leaves gives to those with the fewest. A node without tokens holds nothing
// on purpose and gets none.
#pragma once

#include <vector>

#include "base/result.h"
#include "model/node_id.h"
#include "ring/topology.h"

namespace helenus::ring {

// A new ring. The members come without tokens.
// Errors: invalid_argument for members with tokens, fewer tokens than members, and what
// Topology::make refuses.
// Cost: the number of tokens.
base::Result<TopologyPtr> create_ring(Partitioner partitioner, std::vector<Position> tokens,
                                      std::vector<Node> members);

// The ring with a node that comes without tokens.
// Errors: already_exists; invalid_argument for a newcomer with tokens, a ring that has no token
// left for another node, and what Topology::make refuses.
// Cost: the number of tokens times that of those which move.
base::Result<TopologyPtr> join(const Topology& topology, Node newcomer);

// The ring without a node.
// Errors: not_found; invalid_argument when nobody is left to own its tokens.
// Cost: as for join.
base::Result<TopologyPtr> leave(const Topology& topology, model::NodeId leaver);

}  // namespace helenus::ring
