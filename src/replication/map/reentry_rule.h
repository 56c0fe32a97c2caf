// When a replica in doubt has caught up (R10), by whom it has pulled from completely since the
// epoch in which it re-entered.
//
//   - Enough others of which the document does not say that they are in doubt: as many as a
//   majority
//     of the replication factor, of all and of its own data centre. So whatever a majority has
//     acknowledged, itself among them, was at one of those: what it lost it has again.
//   - Where there are too few of those: every other member, in doubt or not. A write may be at one
//     of them alone, so none is left out that does not answer; only an operator gives one up.
//
// Pure.
#pragma once

#include <set>

#include "model/node_id.h"
#include "replication/map/replica_map.h"

namespace helenus::replication {

// Of the members that it must still pull from, any one may be the next; empty: it has caught up.
// `pulled` are those that it has pulled from, and those that an operator has given up. Requires:
// `self` is a member or pending.
std::set<model::NodeId> reentry_waits_for(const KeyspaceMap& keyspace, const PlacedTablet& tablet,
                                          model::NodeId self,
                                          const std::set<model::NodeId>& pulled);

}  // namespace helenus::replication
