// UpNodes: tells the replicas of all cores which other nodes are up, as gossip has it. A node that
// joins is no member to gossip yet, and is up if it is alive: its replicas get writes, and count
// before it has joined (R17).
//
// Core affinity: the core of its Runtime, which is the ClusterService's.
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"
#include "cluster/cluster_service.h"
#include "model/node_id.h"
#include "replication/cluster/cluster_link.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/wait_queue.h"

namespace helenus::node {

class UpNodes {
 public:
  // Returns when every core knows.
  using Tell = std::function<runtime::Task<void>(replication::UpNodesPtr up)>;

  // Requires: the service is destroyed before this, and stopped before stop() is called or after.
  UpNodes(runtime::Runtime& runtime, cluster::ClusterService& cluster, model::NodeId self,
          Tell tell);
  UpNodes(const UpNodes&) = delete;
  UpNodes& operator=(const UpNodes&) = delete;

  void start() { tasks_.spawn(follow()); }
  // Returns when every core knows that all other members are up; or that a majority of them is, and
  // the rest has not been heard of for a while; or, late, without one. Who serves before that
  // answers UNAVAILABLE though nothing is wrong. Errors: cancelled.
  runtime::Task<base::Result<void>> wait_heard(runtime::StopToken stop);
  runtime::Task<void> stop();

 private:
  runtime::Task<void> follow();
  std::size_t count_unheard() const;
  bool joins(model::NodeId node) const;
  bool somebody_joins() const;
  replication::UpNodesPtr now() const;

  runtime::Runtime& runtime_;
  cluster::ClusterService& cluster_;
  const model::NodeId self_;
  const Tell tell_;
  bool changed_ = true;
  replication::UpNodesPtr told_;  // every core knows
  runtime::StopSource stopping_;
  runtime::WaitQueue news_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::node
