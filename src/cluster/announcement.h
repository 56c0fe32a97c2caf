// What a node says of itself by gossip that follows from the metadata, and how others read it.
#pragma once

#include "cluster/cluster_options.h"
#include "consensus/document.h"
#include "membership/application_state.h"
#include "membership/gossip_service.h"
#include "metadata/cluster_metadata.h"
#include "model/node_id.h"

namespace helenus::cluster {

// The status that a node tells: what the metadata say of it, and joining if they do not name it.
membership::Status status_of(const metadata::ClusterMetadata& metadata, model::NodeId node);

// Says who and where this node is, its status by the metadata that it knows, and the schema and the
// version of those that it has applied.
void announce(membership::GossipService& gossip, const metadata::NodeDescription& self,
              const metadata::ClusterMetadata& known, const metadata::ClusterMetadata& applied,
              consensus::Version applied_version);

// The version that another node has said it applied; 0 if it has said nothing that can be read.
consensus::Version applied_version_of(const membership::GossipService& gossip, model::NodeId node);

}  // namespace helenus::cluster
