// ClusterService: a node among others. It founds a cluster or joins one, follows the metadata,
// applies them and tells subscribers of them, changes them, and gossips. It only puts its parts
// together; each of them has one job:
//
//   start    NodePhase           says in clear text what a start waits for
//            ClusterDiscovery    finds the cluster, or founds it          founding_rule.h: who
//            founds ClusterJoin         brings this node into it                 join_rules.h: when
//            it may be
//   follow   MetadataFollower    finds out what was decided
//            KnownMetadata       the newest known here, and its listeners
//            MetadataApplier     makes the node act by them, and tells so
//            PeerDirectory       keeps rpc and gossip in step with them
//            ProximityTracker    which nodes are near
//   change   MetadataChanger     compare-and-swap
//            AddressCorrection   of a node that comes back at other addresses
//   wait     AppliedWait         until a version is applied everywhere    wait_rules.h: for whom
//
//   metadata ◀── PaxosStore ◀──▶ acceptors            decides
//               ▲ heard_of
//   view     ◀── GossipService ◀──▶ everybody         spreads; carries the versions nodes applied
//   both over one Rpc
//
// A node that was removed while it was away is told so and its start fails. If it could ask nobody
// it starts with what it has, and learns of it from the others by and by; from then on it is not
// among the nodes of metadata(), and must serve nobody. Its next start fails.
//
// Core affinity: the core of its Runtime.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/result.h"
#include "cluster/address_correction.h"
#include "cluster/applied_wait.h"
#include "cluster/cluster_discovery.h"
#include "cluster/cluster_join.h"
#include "cluster/cluster_options.h"
#include "cluster/known_metadata.h"
#include "cluster/metadata_applier.h"
#include "cluster/metadata_changer.h"
#include "cluster/metadata_follower.h"
#include "cluster/node_context.h"
#include "cluster/node_phase.h"
#include "cluster/peer_directory.h"
#include "cluster/proximity_tracker.h"
#include "consensus/document.h"
#include "consensus/paxos_store.h"
#include "membership/gossip_service.h"
#include "metadata/cluster_metadata.h"
#include "model/node_id.h"
#include "rpc/rpc.h"
#include "runtime/address.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/wait_queue.h"

namespace helenus::cluster {

class ClusterService {
 public:
  using Options = ClusterOptions;
  using Hooks = ClusterHooks;
  using Transition = cluster::Transition;
  using Listener = std::function<void(const MetadataPtr&)>;

  // What a new node's folder needs before the node's identity is written into it; see
  // consensus::PersistentAcceptor::create.
  static runtime::Task<base::Result<void>> prepare(runtime::Runtime& runtime,
                                                   std::string data_directory, model::NodeId node);
  // Whether what a node has voted, and knows, is there and its own; changes nothing. Errors: those
  // of PersistentAcceptor::open.
  static runtime::Task<base::Result<void>> check(runtime::Runtime& runtime,
                                                 std::string data_directory, model::NodeId node);
  // Whether the folder has a vote that counts: of a node that has promised or knows something, or
  // one that cannot be read. One of prepare() does not. Errors: of the file system.
  static runtime::Task<base::Result<bool>> has_voted(runtime::Runtime& runtime,
                                                     std::string data_directory);

  // What the hooks refer to outlives it.
  ClusterService(runtime::Runtime& runtime, Options options, Hooks hooks);
  ClusterService(const ClusterService&) = delete;
  ClusterService& operator=(const ClusterService&) = delete;

  // Returns when this node is of the cluster and has applied what it knows. Errors: of the files
  // and of listening; refused if it was removed from the cluster, is of another one than the
  // options say, or the cluster does not want it; unsupported if data would have to be copied and
  // nobody does; cancelled, timeout. After an error, call stop().
  runtime::Task<base::Result<void>> start(runtime::Until until);
  runtime::Task<void> stop();
  // What the start waits for, and what has become of this node.
  const std::string& phase() const { return phase_.text(); }
  // Why this node decides on nothing any more, or must serve nobody, if that is so.
  std::optional<base::Error> failure() const;
  // Requires: start() has come to listen.
  const consensus::PaxosStore::Statistics& consensus_statistics() const {
    return store_->statistics();
  }
  // Where others reach this node. Requires: start() has come to listen.
  const runtime::Address& node_address() const { return self_.node_address; }
  // Drivers reach this node there, and not where the options say. Requires: started.
  void move_clients_to(const runtime::Address& address);

  // The newest known here. Requires: started.
  const MetadataPtr& metadata() const { return known_.metadata(); }
  consensus::Version version() const { return known_.version(); }
  // The version that this node acts by.
  consensus::Version applied_version() const { return applier_.applied_version(); }
  // Which nodes of the ring of metadata() are near; see ProximityTracker. A new one every
  // ProximityTracker::kPeriod, and with newer metadata. Requires: started.
  const ProximityPtr& proximity() const { return proximity_.proximity(); }
  // Called on this core at every newer one; quick. What it refers to outlives this.
  void on_metadata(Listener listener);

  // Changes the metadata; see MetadataChanger::change. Requires: started.
  runtime::Task<base::Result<MetadataPtr>> change(Transition transition, runtime::Until until) {
    return store_parts_->changer.change(std::move(transition), std::move(until));
  }
  // Returns when every node that is up has applied that version; see AppliedWait::wait.
  // Requires: started.
  runtime::Task<base::Result<void>> wait_applied_everywhere(consensus::Version version,
                                                            runtime::Until until) {
    return applied_wait_.wait(version, std::move(until));
  }

  rpc::Rpc& rpc() { return rpc_; }
  membership::GossipService& gossip() { return gossip_; }

 private:
  // The parts that need the store, made when it is open.
  struct StoreParts {
    StoreParts(ClusterService& service, consensus::PaxosStore& store);
    ClusterDiscovery discovery;
    MetadataChanger changer;
    MetadataFollower follower;
    ClusterJoin join;
    AddressCorrection addresses;
  };

  runtime::Task<base::Result<void>> open_and_listen();
  // An Apply. What the node acts by is durable here first: it starts with that or something newer.
  runtime::Task<base::Result<void>> apply_durable(MetadataPtr metadata, consensus::Version version,
                                                  runtime::Until until);
  void start_gossip();
  void stop_serving();

  runtime::Runtime& runtime_;
  const Options options_;
  const Hooks hooks_;
  metadata::NodeDescription self_;
  base::Logger log_;
  runtime::StopSource stopping_;
  NodePhase phase_;
  runtime::WaitQueue news_;
  const NodeContext context_;
  rpc::Rpc rpc_;
  std::unique_ptr<consensus::PaxosStore> store_;
  membership::GossipService gossip_;
  KnownMetadata known_;
  ProximityTracker proximity_;
  PeerDirectory peers_;
  MetadataApplier applier_;
  AppliedWait applied_wait_;
  std::unique_ptr<StoreParts> store_parts_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::cluster
