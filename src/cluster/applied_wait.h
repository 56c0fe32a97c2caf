// AppliedWait: waits until every node that is up has applied a version of the metadata.
// wait_rules.h says which nodes are waited for.
//
// Ownership: the ClusterService's. Core affinity: the core of its Runtime.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/known_metadata.h"
#include "cluster/metadata_applier.h"
#include "cluster/node_context.h"
#include "cluster/wait_rules.h"
#include "consensus/document.h"
#include "membership/gossip_service.h"
#include "model/node_id.h"
#include "rpc/rpc.h"
#include "runtime/operation.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/time.h"

namespace helenus::cluster {

class AppliedWait {
 public:
  // All outlive it.
  AppliedWait(const NodeContext& context, rpc::Rpc& rpc, const membership::GossipService& gossip,
              const KnownMetadata& known, const MetadataApplier& applier)
      : context_(context), rpc_(rpc), gossip_(gossip), known_(known), applier_(applier) {}
  AppliedWait(const AppliedWait&) = delete;
  AppliedWait& operator=(const AppliedWait&) = delete;

  // Gossip starts now: who is up is heard of within kRoundsUntilHeard.
  void on_gossip_start();
  // Returns when this node has applied that version, and every node that is waited for has said so.
  // Errors: timeout, naming those that are missing; cancelled, closed. Requires: metadata are
  // known.
  runtime::Task<base::Result<void>> wait(consensus::Version version, runtime::Until until);

 private:
  using Nodes = std::vector<model::NodeId>;

  // Those that keep the version from being applied everywhere, this node among them.
  Nodes missing(consensus::Version version, const std::set<model::NodeId>& unreachable) const;
  PeerState state_of(model::NodeId node, const std::set<model::NodeId>& unreachable) const;
  // Of those that keep the version waiting, the ones to which no connection can be had.
  runtime::Task<std::set<model::NodeId>> look(consensus::Version version, runtime::StopToken stop);
  runtime::Task<bool> is_unreachable(model::NodeId node, runtime::StopToken stop);
  std::string describe(const Nodes& nodes) const;

  const NodeContext& context_;
  rpc::Rpc& rpc_;
  const membership::GossipService& gossip_;
  const KnownMetadata& known_;
  const MetadataApplier& applier_;
  runtime::MonotonicTime all_heard_by_{};
};

}  // namespace helenus::cluster
