// RingChange: brings what was decided of the ring to its end (R17), and lets operators begin it.
//
//   begun ──▶ newcomers are filled ──▶ joint ──▶ the next set has pulled ──▶ finished
//
// Every node does its own part: it fills the replicas here that are pending, from a member of each
// tablet; pulls of a joint change are anti-entropy's. One node drives: it asks those of whom the
// next step needs something how far they are, and changes the metadata. That is the node that
// joins, for its own join (transfer()); the one that leaves, as long as it is up; otherwise the
// node with the least id of those that are up. Two at once do no harm: a step is taken only as of
// the epoch that was looked at, and only once.
//
// Nothing is kept but in the metadata: whoever drives may die, and the next one looks anew. A
// replica is filled again after a restart, which changes nothing if it was filled before.
//
// A node that leaves serves its clients until everything is with others, and lets them go then, in
// good order, before the metadata name it no more.
//
// Core affinity: the core of its Runtime, which is the Database's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "cluster/cluster_service.h"
#include "metadata/cluster_metadata.h"
#include "metadata/transitions.h"
#include "model/node_id.h"
#include "node/database.h"
#include "node/ring_messages.h"
#include "replication/tablets/held_tablets.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/time.h"

namespace helenus::node {

// Makes the replica of that tablet on this node, which is pending, contain all that the source had
// when it was asked, or later. What it had stays. May be repeated.
using FillTablet = std::function<runtime::Task<base::Result<void>>(
    replication::HeldTablet tablet, model::NodeId source, runtime::Until until)>;

class RingChange {
 public:
  static constexpr runtime::Duration kLookPeriod = std::chrono::milliseconds(100);
  static constexpr runtime::Duration kAskTimeout = std::chrono::seconds(2);
  static constexpr runtime::Duration kAttemptTimeout = std::chrono::seconds(5);
  static constexpr runtime::Duration kFillTimeout = std::chrono::hours(1);
  static constexpr runtime::Duration kFillPause = std::chrono::seconds(1);
  static constexpr std::size_t kFillsAtOnce = 4;

  struct Hooks {
    FillTablet fill = {};                         // none: no replica can be filled
    std::function<runtime::Task<void>()> let_go;  // this node lets its clients go
  };

  // They outlive it.
  RingChange(runtime::Runtime& runtime, cluster::ClusterService& cluster, Database& database,
             model::NodeId self, Hooks hooks);
  RingChange(const RingChange&) = delete;
  RingChange& operator=(const RingChange&) = delete;

  // Serves the nodes that drive. Requires: before the Rpc listens.
  void serve(rpc::Rpc& rpc);
  // Fills from now on. Also a second time.
  void begin_filling();
  // And drives. Requires: this node is of the cluster. Once.
  void start();
  void request_stop() { stopping_.request_stop(); }
  // Waits for what is under way. Once.
  runtime::Task<void> stop();

  // A cluster::Transfer. Errors: cancelled, timeout.
  runtime::Task<base::Result<void>> transfer(cluster::MetadataPtr metadata, runtime::Until until);

  // What an operator asks for: it is begun, if it was not, and has come to its end when they
  // return; it does so, too, if nobody waits. Errors: in one sentence, before anything is decided.
  runtime::Task<base::Result<void>> leave(runtime::Until until);
  // `node` as people name it: its id, or its address for nodes.
  runtime::Task<base::Result<void>> remove(std::string node, bool accept_data_loss,
                                           runtime::Until until);
  runtime::Task<base::Result<void>> abandon(runtime::Until until);

  // What is under way, for people; empty if nothing is. As of the last look.
  std::string phase() const;
  // The same as of now. Requires: metadata are known.
  runtime::Task<std::string> tell();

 private:
  // What is known of the step that is due.
  struct Look {
    metadata::Epoch as_of{0};
    bool is_ready = false;
    std::size_t replicas = 0;  // that are to be filled, or must pull
    std::size_t behind = 0;
    std::uint64_t withheld = 0;
    std::set<model::NodeId> silent;     // did not answer
    std::set<model::NodeId> waits_for;  // pulls do
  };

  runtime::Task<Look> look(cluster::MetadataPtr metadata);
  bool drives(const metadata::ClusterMetadata& metadata) const;
  // Its heart beats, whether it serves clients or not.
  bool is_up(model::NodeId node) const;
  std::string name_of(model::NodeId node) const;
  runtime::Task<void> drive_loop();
  runtime::Task<void> drive_once();
  runtime::Task<void> fill_loop();
  void start_fills();
  // `held` keeps what the tablet refers to.
  runtime::Task<void> fill(replication::HeldTabletsPtr held, replication::HeldTablet tablet);
  std::vector<model::NodeId> sources_of(const replication::HeldTablet& tablet) const;
  runtime::Task<base::Result<void>> begin(cluster::Transition transition, runtime::Until until);
  // A change that would have to fill replicas is refused where nothing can.
  base::Result<metadata::ClusterMetadata> checked(
      base::Result<metadata::ClusterMetadata> next) const;
  // Until the metadata name the node no more, or somebody gave the change up (refused).
  runtime::Task<base::Result<void>> wait_gone(model::NodeId node, runtime::Until until);

  runtime::Runtime& runtime_;
  cluster::ClusterService& cluster_;
  Database& database_;
  const model::NodeId self_;
  const Hooks hooks_;
  base::Logger log_;
  Look last_;
  bool is_filling_ = false;
  bool has_let_go_ = false;
  std::map<storage::TabletId, causality::ActorId> filled_;
  std::set<storage::TabletId> filling_;
  std::map<storage::TabletId, runtime::MonotonicTime> not_before_;
  std::map<storage::TabletId, std::size_t> attempts_;
  runtime::StopSource stopping_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::node
