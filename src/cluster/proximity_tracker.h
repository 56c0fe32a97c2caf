// ProximityTracker: which nodes of the ring are near this one, by where they stand and by the round
// trips that the rpc measured.
//
// Ownership: the ClusterService's. Core affinity: the core of its Runtime.
#pragma once

#include <chrono>
#include <memory>

#include "cluster/known_metadata.h"
#include "cluster/node_context.h"
#include "ring/proximity.h"
#include "rpc/rpc.h"
#include "runtime/task.h"
#include "runtime/time.h"

namespace helenus::cluster {

using ProximityPtr = std::shared_ptr<const ring::Proximity>;

class ProximityTracker {
 public:
  // How often new measurements go into proximity().
  static constexpr runtime::Duration kPeriod = std::chrono::seconds(10);

  // All outlive it.
  ProximityTracker(const NodeContext& context, const rpc::Rpc& rpc, const KnownMetadata& known)
      : context_(context), rpc_(rpc), known_(known) {}
  ProximityTracker(const ProximityTracker&) = delete;
  ProximityTracker& operator=(const ProximityTracker&) = delete;

  // Null while this node is not in the ring.
  const ProximityPtr& proximity() const { return proximity_; }
  // Makes proximity() anew. Requires: metadata are known.
  void refresh();
  // Refreshes every kPeriod until the node stops. Requires: metadata are known.
  runtime::Task<void> run();

 private:
  const NodeContext& context_;
  const rpc::Rpc& rpc_;
  const KnownMetadata& known_;
  ProximityPtr proximity_;
};

}  // namespace helenus::cluster
