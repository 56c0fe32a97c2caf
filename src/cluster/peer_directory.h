// PeerDirectory: keeps the rpc and the gossip in step with the nodes that the metadata name. Nodes
// of the metadata are introduced to the rpc; gossip forgets nodes that were removed.
//
// Ownership: the ClusterService's. Core affinity: the core of its Runtime.
#pragma once

#include "base/log.h"
#include "cluster/known_metadata.h"
#include "cluster/node_context.h"
#include "membership/gossip_service.h"
#include "rpc/rpc.h"

namespace helenus::cluster {

class PeerDirectory {
 public:
  // All outlive it.
  PeerDirectory(const NodeContext& context, rpc::Rpc& rpc, membership::GossipService& gossip,
                const KnownMetadata& known);
  PeerDirectory(const PeerDirectory&) = delete;
  PeerDirectory& operator=(const PeerDirectory&) = delete;

  // A KnownMetadata::Listener. It also sets the phase when this node itself was removed.
  void on_newer(const MetadataPtr& now, const MetadataPtr& before);
  // A GossipService::EventListener: a removed node that lives again is forgotten again.
  // Requires: metadata are known.
  void on_event(const membership::Event& event);
  // Opens gossip with all nodes of the metadata. Requires: metadata are known, gossip has started.
  void greet_all();

 private:
  const NodeContext& context_;
  rpc::Rpc& rpc_;
  membership::GossipService& gossip_;
  const KnownMetadata& known_;
  base::Logger log_;
};

}  // namespace helenus::cluster
