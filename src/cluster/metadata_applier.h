// MetadataApplier: makes this node act by newer metadata, and tells the others by gossip which
// version it acts by.
//
// A node knows the newest metadata it has heard of (known_metadata.h) and acts by those that it has
// applied. The owner is handed newer metadata one after the other, in the order of their versions;
// it may miss none but those that newer ones have overtaken. Gossip tells the applied version and
// not the known one, so who waits for a version everywhere waits for nodes that act by it.
//
// Ownership: the ClusterService's. Core affinity: the core of its Runtime.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "cluster/cluster_options.h"
#include "cluster/known_metadata.h"
#include "cluster/node_context.h"
#include "consensus/document.h"
#include "membership/gossip_service.h"
#include "runtime/operation.h"
#include "runtime/task.h"

namespace helenus::cluster {

class MetadataApplier {
 public:
  // All outlive it. Without an `apply`, metadata are applied as soon as they are known.
  MetadataApplier(const NodeContext& context, Apply apply, KnownMetadata& known,
                  membership::GossipService& gossip);
  MetadataApplier(const MetadataApplier&) = delete;
  MetadataApplier& operator=(const MetadataApplier&) = delete;

  // The version that this node acts by; 0 before the first.
  consensus::Version applied_version() const { return applied_version_; }

  // A KnownMetadata::Listener.
  void on_newer(const MetadataPtr& now, const MetadataPtr& before);
  // Begins to apply newer metadata, in the background and until the node stops.
  void start();
  // Returns when the version that is known now is applied. Errors: timeout, cancelled, closed.
  runtime::Task<base::Result<void>> wait_applied(runtime::Until until);
  // Says by gossip what is true of this node now. Requires: something is applied.
  void announce();

 private:
  runtime::Task<void> run();
  void set_applied(consensus::Version version, MetadataPtr metadata);

  const NodeContext& context_;
  const Apply apply_;
  KnownMetadata& known_;
  membership::GossipService& gossip_;
  base::Logger log_;
  MetadataPtr applied_;
  consensus::Version applied_version_;
};

}  // namespace helenus::cluster
