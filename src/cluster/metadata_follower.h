// MetadataFollower: finds out what was decided on the metadata, by whomever, and makes it known
// here.
//
// At the start a node that the metadata name asks the acceptors for the newest, so that clients
// meet no schema that is out of date. It asks again and again for catch_up_timeout, since they may
// be starting too, and no longer, so that nodes may be restarted in any order: it starts with what
// it has on disk then, and goes on asking. What it decided alone, and died before it could note so,
// it finds in its own acceptor, whoever else is there. When another node has heard of it, it asks
// once more: until then changes were acknowledged without it.
//
// While it runs, a version that another node says it has applied is asked for at once from that
// node, and again in each round of gossip from one of those that have it, until it is here: no
// message that is lost leaves a node behind.
//
// Ownership: the ClusterService's. Core affinity: the core of its Runtime.
#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/log.h"
#include "base/result.h"
#include "cluster/known_metadata.h"
#include "cluster/node_context.h"
#include "consensus/paxos_store.h"
#include "membership/application_state.h"
#include "membership/gossip_service.h"
#include "model/node_id.h"
#include "runtime/operation.h"
#include "runtime/task.h"

namespace helenus::cluster {

class MetadataFollower {
 public:
  // All outlive it.
  MetadataFollower(const NodeContext& context, consensus::PaxosStore& store, KnownMetadata& known,
                   const membership::GossipService& gossip);
  MetadataFollower(const MetadataFollower&) = delete;
  MetadataFollower& operator=(const MetadataFollower&) = delete;

  // Makes every newer document of the store known, until the node stops.
  runtime::Task<void> follow();
  // Asks the acceptors for the newest metadata, for catch_up_timeout at most. Returns whether a
  // majority of them told; if not, the node goes on asking in the background. Errors: of the
  // document; cancelled.
  runtime::Task<base::Result<bool>> catch_up(runtime::Until until);
  // Waits for a round of gossip at most until another node has heard of this one, and asks the
  // acceptors again. Errors: of the document; cancelled, closed. Requires: gossip has started.
  runtime::Task<base::Result<void>> catch_up_when_heard_of(runtime::Until until);
  // A GossipService::StateListener.
  void on_state(model::NodeId node, membership::StateKey key, const base::Bytes& value);
  // Asks, in each round of gossip, a node that has applied a newer version than is known here.
  // Ends when the node stops.
  runtime::Task<void> keep_asking_holders();

 private:
  runtime::Task<void> keep_catching_up();
  std::optional<model::NodeId> draw_holder_of_newer() const;

  const NodeContext& context_;
  consensus::PaxosStore& store_;
  KnownMetadata& known_;
  const membership::GossipService& gossip_;
  base::Logger log_;
};

}  // namespace helenus::cluster
