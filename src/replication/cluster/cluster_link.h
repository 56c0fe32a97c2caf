// ClusterLink: what one core knows of the nodes (who holds which tablet, who is up), and how it
// calls the others. Connections are the first core's, so a call from another core goes there first.
//
// Core affinity: the core of its Runtime.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "model/node_id.h"
#include "replication/map/replica_map.h"
#include "rpc/message.h"
#include "rpc/rpc.h"
#include "runtime/cores.h"
#include "runtime/operation.h"
#include "runtime/run_on.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::replication {

using UpNodesPtr = std::shared_ptr<const std::set<model::NodeId>>;

class ClusterLink {
 public:
  ClusterLink(runtime::Runtime& here, model::NodeId self) : here_(here), self_(self) {}
  // The Rpc is of the core `rpc_core`, and outlives the last call from here.
  ClusterLink(runtime::Runtime& here, rpc::Rpc& rpc, runtime::CoreId rpc_core, model::NodeId self)
      : ClusterLink(here, self) {
    connect(rpc, rpc_core);
  }
  ClusterLink(const ClusterLink&) = delete;
  ClusterLink& operator=(const ClusterLink&) = delete;

  runtime::Runtime& runtime() const { return here_; }
  model::NodeId self() const { return self_; }

  // How others are called from now on; without it they cannot be.
  void connect(rpc::Rpc& rpc, runtime::CoreId rpc_core) {
    rpc_ = &rpc;
    rpc_core_ = rpc_core;
  }
  void take(ReplicaMapPtr map) { map_ = std::move(map); }
  void take(UpNodesPtr up) { up_ = std::move(up); }
  // Null before the first one was taken.
  const ReplicaMapPtr& map() const { return map_; }
  // Whether it is worth asking. This node always is.
  bool is_up(model::NodeId node) const {
    return node == self_ || (up_ != nullptr && up_->contains(node));
  }

  // Errors: as of Rpc::call.
  template <class Request, class Answer>
  runtime::Task<base::Result<Answer>> call(model::NodeId to, rpc::Method<Request, Answer> method,
                                           std::shared_ptr<const Request> request,
                                           runtime::Until until) {
    if (rpc_ == nullptr) co_return base::Error(base::Errc::closed, "no other node can be called");
    if (here_.cores.here() == rpc_core_) {
      co_return co_await rpc_->call(to, method, Request(*request), std::move(until));
    }
    const auto there = [this, to, method, request](runtime::Runtime&, runtime::Until remaining) {
      return rpc_->call(to, method, Request(*request), std::move(remaining));
    };
    co_return co_await runtime::run_on<Answer>(here_, rpc_core_, there, std::move(until));
  }

 private:
  runtime::Runtime& here_;
  const model::NodeId self_;
  rpc::Rpc* rpc_ = nullptr;
  runtime::CoreId rpc_core_;
  ReplicaMapPtr map_;
  UpNodesPtr up_;
};

}  // namespace helenus::replication
