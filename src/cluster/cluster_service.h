// ClusterService: a node among others. It founds a cluster or joins one, holds the newest metadata
// and tells subscribers of it, changes it, and gossips.
//
//   metadata ◀── PaxosStore ◀──▶ acceptors            decides
//               ▲ heard_of
//   view     ◀── GossipService ◀──▶ everybody         spreads; carries the version that nodes hold
//   both over one Rpc
//
// Knowing and holding. A node knows the newest metadata it has heard of: metadata(). It holds those
// that it acts by: its owner is handed each newer value, one after the other, and may skip none but
// those that newer ones have overtaken. Gossip tells the others of the version that is held, so who
// waits for a version everywhere waits for nodes that act by it.
//
// Who founds. The seeds of a new cluster are the same on all its nodes. The node with the least
// address among them founds it, alone, and only when every other seed has said that it knows of no
// cluster; all others wait until some seed knows one, and join. So a seed that lost its disk finds
// the cluster that is there, and no two nodes found. A list of just this node founds at once.
//
// Joining takes two documents (metadata/transitions.h) with the transfer of data in between, which
// is the owner's. A node that the metadata names asks those who decide for the newest, so that
// clients meet no schema that is out of date. It asks again and again for catch_up_timeout, since
// they may be starting too, and no longer, so that nodes may be restarted in any order: it starts
// with what it has on disk then, and goes on asking. What it decided alone, and died before it
// could note so, it finds in its own acceptor, whoever else is there. When it has been heard of, it
// asks once more: until then changes were acknowledged without it. One that comes back at other
// addresses changes the metadata by and by.
//
// Following. A version that somebody is said to hold is asked for at once from who holds it, and
// again in each round of gossip from one of those who do, until it is here: no message that is lost
// leaves a node behind.
//
// Joining without a Transfer is for clusters without keyspaces. This is checked in the document
// that begins the join; keyspaces that are made from then on are those of a cluster of more than
// one node, in which nobody takes rows before there is a Transfer, so there is nothing to copy.
//
// A node that was removed while it was away is told so and its start fails. If it could ask nobody
// it starts with what it has, and learns of it from the others by and by; from then on it is not
// among the nodes of metadata(), and must serve nobody. Its next start fails.
//
// phase() says in clear text what a start waits for, and what has become of this node.
//
// Core affinity: the core of its Runtime.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "consensus/document.h"
#include "consensus/paxos_store.h"
#include "membership/gossip_service.h"
#include "membership/phi_detector.h"
#include "metadata/cluster_metadata.h"
#include "model/node_id.h"
#include "model/schema.h"
#include "ring/partitioner.h"
#include "ring/proximity.h"
#include "ring/topology.h"
#include "rpc/rpc.h"
#include "runtime/address.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/time.h"
#include "runtime/wait_queue.h"

namespace helenus::cluster {

using MetadataPtr = std::shared_ptr<const metadata::ClusterMetadata>;
using ProximityPtr = std::shared_ptr<const ring::Proximity>;

class ClusterService {
 public:
  struct Options {
    std::string data_directory;
    std::string cluster_name;
    metadata::NodeDescription self;
    runtime::Address listen_address;
    std::vector<runtime::Address> seeds{};  // this node alone if empty
    // Of a cluster that this node founds.
    ring::Partitioner partitioner = ring::Partitioner::murmur3;
    std::size_t tokens = ring::kTokensDefault;
    // What a node that was of no cluster has already. With it a node may found, and not join.
    model::Schema schema{};
    runtime::Duration retry_pause = std::chrono::milliseconds(500);
    runtime::Duration attempt_timeout = std::chrono::seconds(5);
    // How long a start waits for a majority of those who decide to tell the newest metadata.
    runtime::Duration catch_up_timeout = std::chrono::seconds(3);
    runtime::Duration gossip_interval = std::chrono::seconds(1);
    membership::PhiConfig detector{};
    rpc::VersionRange versions = rpc::kVersions;
  };

  // How often what was measured of other nodes goes into proximity().
  static constexpr runtime::Duration kProximityPeriod = std::chrono::seconds(10);

  // Copies to this node what it is pending for. A cluster without keyspaces has nothing to copy,
  // and it is not called.
  using Transfer =
      std::function<runtime::Task<base::Result<void>>(MetadataPtr metadata, runtime::Until until)>;
  // Makes this node act by these metadata. One call at a time; one that failed is made again after
  // a pause, with the newest.
  using Apply = std::function<runtime::Task<base::Result<void>>(
      MetadataPtr metadata, consensus::Version version, runtime::Until until)>;
  // What the owner does. Without an Apply, what is known is applied at once.
  struct Hooks {
    Transfer transfer = {};
    Apply apply = {};
  };
  using Listener = std::function<void(const MetadataPtr&)>;
  // From the metadata as they are to the next; called again when somebody else was first. Equal
  // ones are no change.
  using Transition = std::function<base::Result<metadata::ClusterMetadata>(
      const metadata::ClusterMetadata& metadata)>;

  // What a new node's folder needs before the node's identity is written into it; see
  // consensus::PersistentAcceptor::create.
  static runtime::Task<base::Result<void>> prepare(runtime::Runtime& runtime,
                                                   std::string data_directory, model::NodeId node);

  // What the hooks refer to outlives it.
  ClusterService(runtime::Runtime& runtime, Options options, Hooks hooks);
  ClusterService(const ClusterService&) = delete;
  ClusterService& operator=(const ClusterService&) = delete;

  // Returns when this node is of the cluster and holds what it knows. Errors: of the files and of
  // listening; refused if it was removed from the cluster, is of another one than the options say,
  // or the cluster does not want it; unsupported if data would have to be copied and nobody does;
  // cancelled, timeout. After an error, call stop().
  runtime::Task<base::Result<void>> start(runtime::Until until);
  runtime::Task<void> stop();
  const std::string& phase() const { return phase_; }
  // Why this node decides on nothing any more, if that is so.
  std::optional<base::Error> failure() const;
  // Requires: start() has come to listen.
  const consensus::PaxosStore::Statistics& consensus_statistics() const {
    return store_->statistics();
  }
  // Where others reach this node. Requires: start() has come to listen.
  const runtime::Address& node_address() const { return self_.node_address; }
  // Drivers reach this node there, and not where the options say.
  void move_clients_to(const runtime::Address& address);

  // The newest known here. Requires: started.
  const MetadataPtr& metadata() const { return metadata_; }
  consensus::Version version() const { return version_; }
  // The version that this node acts by.
  consensus::Version applied_version() const { return applied_version_; }
  // Which nodes of the ring of metadata() are near: by where they stand, and by the round trips of
  // the rpc to them. None while this node is not of the ring. A new one every kProximityPeriod, and
  // with newer metadata. Requires: started.
  const ProximityPtr& proximity() const { return proximity_; }
  // Called on this core at every newer one; quick. What it refers to outlives this.
  void on_metadata(Listener listener) { listeners_.push_back(std::move(listener)); }

  // Changes the metadata; returns them with the change in them. Errors: of the transition; those of
  // MetadataStore::change but for already_exists. Requires: started.
  runtime::Task<base::Result<MetadataPtr>> change(Transition transition, runtime::Until until);
  // Returns when this node holds that version, and every one that is up has said so. Who cannot be
  // connected to and whose heart nobody has heard for some rounds of gossip is not up, though the
  // detector may think so yet: a node that is cut off from this one alone is waited for, and so is
  // one that is held up on a machine that answers, until the detector is sure of it. In the
  // first moments of a life, who has not been heard of may be up, and is waited for. Errors:
  // timeout, naming who is waited for; cancelled, closed.
  runtime::Task<base::Result<void>> wait_applied_everywhere(consensus::Version version,
                                                            runtime::Until until);

  rpc::Rpc& rpc() { return rpc_; }
  membership::GossipService& gossip() { return gossip_; }

 private:
  // What the seeds say of the newest version they know.
  struct SeedReport {
    std::vector<model::NodeId> informed;  // who knows of a cluster
    std::vector<std::string> silent;      // who was not reached, and why
  };

  runtime::Task<base::Result<base::Bytes>> tell_version();
  base::Result<void> check_place(const metadata::ClusterMetadata& metadata) const;
  base::Error has_a_past() const;
  bool founds() const;
  runtime::Task<base::Result<void>> find_cluster(runtime::Until until);
  runtime::Task<SeedReport> ask_seeds(runtime::Until until);
  runtime::Task<base::Result<void>> found_cluster(runtime::Until until);
  runtime::Task<base::Result<void>> join_cluster(runtime::Until until);
  runtime::Task<base::Result<void>> try_to_join(runtime::Until until);
  void start_gossip();
  // Who keeps a version from being held everywhere. Of `unreachable` those count whose heart beats.
  std::vector<model::NodeId> not_applied_by(consensus::Version version,
                                            const std::set<model::NodeId>& unreachable) const;
  // Nobody has told of a beat of its heart for longer than so many rounds of gossip.
  bool is_silent(model::NodeId node, int rounds) const;
  runtime::Task<std::set<model::NodeId>> unreachable_of(std::vector<model::NodeId> nodes,
                                                        runtime::StopToken stop);
  runtime::Task<bool> is_unreachable(model::NodeId node, runtime::StopToken stop);
  consensus::Version applied_version_of(model::NodeId node) const;
  std::string describe(const std::vector<model::NodeId>& nodes) const;

  runtime::Task<void> keep_asking_holders();
  std::optional<model::NodeId> draw_holder_of_newer();
  runtime::Task<void> follow();
  // Whether they told.
  runtime::Task<base::Result<bool>> ask_for_newest(runtime::Until until);
  runtime::Task<base::Result<void>> look_when_heard(runtime::Until until);
  runtime::Task<void> keep_catching_up();
  base::Result<void> adopt(const consensus::Document& document);
  runtime::Task<void> apply_newer();
  void set_applied(consensus::Version version, MetadataPtr metadata);
  runtime::Task<base::Result<void>> wait_applied(runtime::Until until);
  void correct_addresses();
  runtime::Task<void> keep_correcting_addresses();
  void announce();
  void judge_proximity();
  runtime::Task<void> keep_judging_proximity();
  consensus::ChangeId draw_change_id();
  runtime::Task<base::Result<void>> pause(std::string waits_for, runtime::Until until);

  runtime::Runtime& runtime_;
  const Options options_;
  const Hooks hooks_;
  metadata::NodeDescription self_;
  base::Logger log_;
  std::string phase_;
  std::string waited_for_;  // the last time that something was waited for
  rpc::Rpc rpc_;
  std::unique_ptr<consensus::PaxosStore> store_;
  membership::GossipService gossip_;
  MetadataPtr metadata_;
  consensus::Version version_;
  ring::TopologyPtr ring_;  // of metadata_
  ProximityPtr proximity_;
  MetadataPtr applied_metadata_;
  consensus::Version applied_version_;
  runtime::MonotonicTime all_heard_by_;  // who is up has been heard of by then
  bool is_correcting_ = false;
  std::vector<Listener> listeners_;
  runtime::StopSource stopping_;
  runtime::WaitQueue news_;   // somebody said something, came or went
  runtime::WaitQueue newer_;  // there is something to hold
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::cluster
