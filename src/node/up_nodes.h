// UpNodes: tells the replicas of all cores which other nodes are up, as gossip has it.
//
// Core affinity: the core of its Runtime, which is the ClusterService's.
#pragma once

#include <functional>

#include "cluster/cluster_service.h"
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
  UpNodes(runtime::Runtime& runtime, cluster::ClusterService& cluster, Tell tell);
  UpNodes(const UpNodes&) = delete;
  UpNodes& operator=(const UpNodes&) = delete;

  void start() { tasks_.spawn(follow()); }
  runtime::Task<void> stop();

 private:
  runtime::Task<void> follow();
  replication::UpNodesPtr now() const;

  runtime::Runtime& runtime_;
  cluster::ClusterService& cluster_;
  const Tell tell_;
  bool changed_ = true;
  runtime::StopSource stopping_;
  runtime::WaitQueue news_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::node
