// When a node may be in a cluster, and how it comes into it: functions of the metadata.
//
// Joining takes two documents where no replica moves, and three else (metadata/transitions.h):
// begin_join, then advance_join once or twice, each after the transfer of what that step needs.
//
// Joining without a Transfer is for clusters without keyspaces.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "metadata/cluster_metadata.h"
#include "model/node_id.h"

namespace helenus::cluster {

// Whether this node belongs where these metadata are from. Errors: refused if they are of another
// cluster or place the node elsewhere.
base::Result<void> check_place(const metadata::ClusterMetadata& metadata,
                               const std::string& cluster_name,
                               const metadata::NodeDescription& self);

// The metadata in which the node joins. Errors: those of metadata::begin_join; unsupported if there
// are keyspaces and no Transfer.
base::Result<metadata::ClusterMetadata> begin_join(const metadata::ClusterMetadata& now,
                                                   const metadata::NodeDescription& self,
                                                   bool has_transfer);

// The node that people name so: by its id or its address for nodes. Errors: not_found.
base::Result<model::NodeId> node_named(const metadata::ClusterMetadata& metadata,
                                       std::string_view name);

// The metadata in which the node joins in the place of a dead one. Errors: as begin_join; those of
// metadata::begin_replacement.
base::Result<metadata::ClusterMetadata> begin_replacement(const metadata::ClusterMetadata& now,
                                                          const metadata::NodeDescription& self,
                                                          model::NodeId dead, bool has_transfer);

// The metadata in which the node is one step further; the same if it has joined already. What the
// step needs was there as of epoch `pending`. Errors: locked if the ring has changed since then;
// those of metadata::advance_change.
base::Result<metadata::ClusterMetadata> advance_join(const metadata::ClusterMetadata& now,
                                                     model::NodeId self, metadata::Epoch pending);

// Whether a join that failed so may succeed later.
bool may_retry_join(base::Errc code);

}  // namespace helenus::cluster
