// NodeContext: what all parts of one ClusterService share. The ClusterService owns all of it, and
// it outlives the parts.
#pragma once

#include <algorithm>

#include "cluster/cluster_options.h"
#include "cluster/node_phase.h"
#include "metadata/cluster_metadata.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task_group.h"
#include "runtime/time.h"
#include "runtime/wait_queue.h"

namespace helenus::cluster {

struct NodeContext {
  runtime::Runtime& runtime;
  const ClusterOptions& options;
  // As this node is now: its addresses may be other ones than the options say.
  const metadata::NodeDescription& self;
  NodePhase& phase;
  // Woken when gossip brought something, a node came or went, metadata are newer or were applied.
  runtime::WaitQueue& news;
  runtime::TaskGroup& tasks;      // joined by stop()
  runtime::StopToken stopping{};  // stop() was called

  // One attempt, which ends with `until` too.
  runtime::Until attempt(runtime::Duration timeout, const runtime::Until& until) const {
    return {.deadline = std::min(runtime.clock.now() + timeout, until.deadline),
            .stop = until.stop};
  }
};

}  // namespace helenus::cluster
