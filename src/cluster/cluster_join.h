// ClusterJoin: brings this node into a cluster that is there. join_rules.h says when it may be.
//
// Ownership: the ClusterService's. Core affinity: the core of its Runtime.
#pragma once

#include "base/result.h"
#include "cluster/cluster_options.h"
#include "cluster/known_metadata.h"
#include "cluster/metadata_changer.h"
#include "cluster/node_context.h"
#include "membership/gossip_service.h"
#include "runtime/operation.h"
#include "runtime/task.h"

namespace helenus::cluster {

class ClusterJoin {
 public:
  // All outlive it; the Transfer may be empty.
  ClusterJoin(const NodeContext& context, const Transfer& transfer, const KnownMetadata& known,
              const membership::GossipService& gossip, MetadataChanger& changer)
      : context_(context), transfer_(transfer), known_(known), gossip_(gossip), changer_(changer) {}
  ClusterJoin(const ClusterJoin&) = delete;
  ClusterJoin& operator=(const ClusterJoin&) = delete;

  // Returns when the metadata name this node as a normal one. Tries again after errors that may
  // pass. Errors: refused if the node was removed or its join was given up by another; unsupported
  // as in begin_join; of the Transfer and of MetadataChanger::change; cancelled, timeout.
  // Requires: metadata are known.
  runtime::Task<base::Result<void>> join(runtime::Until until);

 private:
  runtime::Task<base::Result<void>> try_to_join(runtime::Until until);
  // The metadata name this node as one that joins.
  runtime::Task<base::Result<void>> begin(runtime::Until until);

  const NodeContext& context_;
  const Transfer& transfer_;
  const KnownMetadata& known_;
  const membership::GossipService& gossip_;
  MetadataChanger& changer_;
};

}  // namespace helenus::cluster
