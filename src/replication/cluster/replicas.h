// Replicas: the tablets of a node, core by core, and what each core needs to write and read rows at
// a level: on this node alone, or together with others.
//
//   replicas.take(held)      on every core: the tablets that are held from now on, and their map
//   replicas.connect(rpc)    other nodes can be asked, and ask
//   replicas.start_anti_entropy(), replicas.tables_are_there()
//   co_await replicas.stop()
//
// Core affinity: made, connected and stopped on the core of the Engines. Each Core is used on its
// own core alone; which one a tablet is on may be asked anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/node_id.h"
#include "replication/cluster/anti_entropy.h"
#include "replication/cluster/anti_entropy_service.h"
#include "replication/cluster/cluster_link.h"
#include "replication/cluster/replica_service.h"
#include "replication/cluster/replicated_reader.h"
#include "replication/cluster/replicated_writer.h"
#include "replication/replica/replica.h"
#include "replication/tablets/held_tablets.h"
#include "rpc/rpc.h"
#include "runtime/cores.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::storage {
class Engines;
}

namespace helenus::replication {

// What one core has of them.
struct ReplicaCore {
  ReplicaCore(storage::Engine& engine, model::NodeId self, PlantedBugs bugs)
      : link(engine.runtime(), self), replica(engine, bugs) {}

  ClusterLink link;
  Replica replica;
  // Null when it has stopped.
  std::unique_ptr<ReplicatedWriter> writer;
  std::unique_ptr<ReplicatedReader> reader;
  std::unique_ptr<AntiEntropy> anti_entropy;
  HeldTabletsPtr held;  // none before the first metadata
};

struct ReplicaOptions {
  ReplicatedWriter::Deltas deltas = ReplicatedWriter::Deltas::sent;
  AntiEntropyOptions anti_entropy = {};
  PlantedBugs bugs = {};
};

class Replicas {
 public:
  using Core = ReplicaCore;
  // They outlive it.
  Replicas(runtime::Runtime& runtime, storage::Engines& engines, model::NodeId self,
           ReplicaOptions options = {});
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  std::uint32_t cores() const { return static_cast<std::uint32_t>(by_core_.size()); }
  // To be used on that core.
  Core& on(runtime::CoreId core) const { return *by_core_[core.value()]; }

  // Every core acts by them when it returns.
  runtime::Task<void> take(HeldTabletsPtr held);
  // Those that were taken last: the engines have every table of their metadata, or have had it.
  runtime::Task<void> tables_are_there();
  runtime::Task<void> take(UpNodesPtr up);
  // Serves what other nodes ask. Requires: once, on the core of the Rpc, before it starts to
  // listen; it is stopped before this, and destroyed after this has stopped or been abandoned.
  void connect(rpc::Rpc& rpc);
  // Makes the replicas here and those of other nodes equal from now on. Once, connected.
  runtime::Task<void> start_anti_entropy();
  // How far the replicas of all cores are that re-enter.
  runtime::Task<ReentryProgress> reentry();
  // See AntiEntropy::begin_round; of all cores.
  runtime::Task<std::size_t> begin_round(std::string keyspace);
  // How far those of all cores are in a change of the ring.
  runtime::Task<RingProgress> ring_progress();
  // See AntiEntropy::copy.
  runtime::Task<base::Result<void>> copy(HeldTablet tablet, model::NodeId source,
                                         runtime::Until until);
  // See AntiEntropy::note_filled.
  runtime::Task<void> note_filled(HeldTablet tablet);
  // See AntiEntropy::give_up.
  runtime::Task<void> give_up(std::set<model::NodeId> nodes);
  // See AntiEntropy::copy. Errors: also closed, before start_anti_entropy() and after
  // stop_anti_entropy().
  runtime::Task<base::Result<void>> copy(storage::TabletId tablet, model::NodeId source,
                                         runtime::Until until);
  // Ends that; the Rpc is stopped after it. Also if it was never started, and again.
  runtime::Task<void> stop_anti_entropy();

  // Waits for what is under way. Requires: nobody asks any more.
  runtime::Task<void> stop();
  // Destroys what is under way. Requires: the core has halted.
  void abandon();

 private:
  runtime::Runtime& runtime_;
  std::vector<std::unique_ptr<Core>> by_core_;
  ReplicaService service_;
  AntiEntropyService anti_entropy_service_;
  bool anti_entropy_runs_ = false;
};

}  // namespace helenus::replication
