#include "cluster/proximity_tracker.h"

#include <optional>
#include <vector>

#include "runtime/sleep.h"

namespace helenus::cluster {

void ProximityTracker::refresh() {
  const ring::TopologyPtr& ring = known_.ring();
  const auto self = ring->find(context_.self.id);
  proximity_.reset();
  if (!self) return;
  std::vector<ring::Proximity::Latency> latencies;
  for (const ring::Node& node : ring->nodes()) {
    const rpc::PeerStatistics* peer = rpc_.statistics_of_peer(node.id);
    latencies.push_back(peer == nullptr ? std::nullopt : peer->round_trip_smoothed);
  }
  proximity_ = std::make_shared<const ring::Proximity>(ring, *self, latencies);
}

runtime::Task<void> ProximityTracker::run() {
  while (co_await runtime::sleep_for(context_.runtime, kPeriod, context_.stopping)) refresh();
}

}  // namespace helenus::cluster
