#include "node/up_nodes.h"

#include <memory>
#include <set>
#include <utility>

#include "model/node_id.h"

namespace helenus::node {

using runtime::Task;

UpNodes::UpNodes(runtime::Runtime& runtime, cluster::ClusterService& cluster, Tell tell)
    : runtime_(runtime),
      cluster_(cluster),
      tell_(std::move(tell)),
      news_(runtime),
      tasks_(runtime) {
  cluster_.gossip().on_event([this](const membership::Event&) {
    changed_ = true;
    news_.wake_all();
  });
}

replication::UpNodesPtr UpNodes::now() const {
  std::set<model::NodeId> up;
  for (const auto& [node, known] : cluster_.gossip().view().nodes()) {
    if (known.up) up.insert(node);
  }
  return std::make_shared<const std::set<model::NodeId>>(std::move(up));
}

Task<void> UpNodes::follow() {
  while (!stopping_.stop_requested()) {
    if (std::exchange(changed_, false)) {
      co_await tell_(now());
      continue;
    }
    if (!co_await news_.wait({.stop = stopping_.token()})) co_return;
  }
}

Task<void> UpNodes::stop() {
  stopping_.request_stop();
  co_await tasks_.join();
}

}  // namespace helenus::node
