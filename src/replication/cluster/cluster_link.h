// ClusterLink: what one core knows of the nodes (who holds which tablet, who is up), and how it
// calls the others. Connections are the first core's, so a call from another core goes there first.
// It notices how long they take to answer, and suspects who does not (answer_times.h).
//
// Core affinity: the core of its Runtime.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/result.h"
#include "model/node_id.h"
#include "replication/cluster/answer_times.h"
#include "replication/cluster/request_statistics.h"
#include "replication/cluster/requests_under_way.h"
#include "replication/map/replica_map.h"
#include "replication/messages/messages.h"
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

  // Whether it should be asked last.
  bool is_suspected(model::NodeId node) const {
    return node != self_ && answer_times_.is_suspected(node, here_.clock.now());
  }
  AnswerTimes& answer_times() { return answer_times_; }
  RequestStatistics& statistics() { return statistics_; }
  const RequestStatistics& statistics() const { return statistics_; }
  RequestsUnderWay& requests() { return requests_; }
  const RequestsUnderWay& requests() const { return requests_; }
  // Other nodes that are up.
  const UpNodesPtr& up_nodes() const { return up_; }
  // As people know it.
  std::string name_of(model::NodeId node) const {
    return map_ == nullptr ? fmt::format("{}", node) : map_->name_of(node);
  }
  const AnswerTimes& answer_times() const { return answer_times_; }

  // A request as it travels: encoded once, however many are asked with it.
  template <class Request>
  rpc::Payload payload_of(std::shared_ptr<const Request> request) const {
    if (rpc_ == nullptr) return base::Bytes();  // nobody can be called
    return rpc::Payload::of(std::move(request), rpc_->versions().newest);
  }
  // Errors: as of Rpc::call.
  template <class Request, class Answer>
  runtime::Task<base::Result<Answer>> call(model::NodeId to, rpc::Method<Request, Answer> method,
                                           std::shared_ptr<const Request> request,
                                           runtime::Until until) {
    return call(to, method, payload_of(std::move(request)), std::move(until));
  }
  template <class Request, class Answer>
  runtime::Task<base::Result<Answer>> call(model::NodeId to, rpc::Method<Request, Answer> method,
                                           rpc::Payload request, runtime::Until until) {
    const auto kind = kind_of(method.verb);
    if (!kind) {
      co_return co_await call_unmeasured(to, method, std::move(request), std::move(until));
    }
    AnswerTimes::Asked asked(answer_times_, to, *kind, here_.clock.now());
    auto answer = co_await call_unmeasured(to, method, std::move(request), std::move(until));
    note(answer ? std::nullopt : std::optional(answer.error().code()), asked);
    co_return answer;
  }

 private:
  // Of requests that are answered at once if the node is well; none of others.
  static std::optional<AnswerTimes::Kind> kind_of(rpc::Verb verb) {
    if (verb == kReadMethod.verb || verb == kClockMethod.verb) return AnswerTimes::Kind::point;
    if (verb == kApplyMethod.verb) return AnswerTimes::Kind::delta;
    if (verb == kScanMethod.verb) return AnswerTimes::Kind::scan;
    if (verb == kWriteMethod.verb) return AnswerTimes::Kind::write;
    return std::nullopt;
  }
  void note(std::optional<base::Errc> error, AnswerTimes::Asked& asked) {
    const auto now = here_.clock.now();
    if (!error || *error == kStale) {
      asked.answered(now);
    } else if (*error == base::Errc::timeout || *error == base::Errc::connection_lost) {
      asked.given_up(now);
    } else if (!is_of_this_side(*error)) {
      asked.refused(now);
    }
  }
  // That the request never left, or that nobody waits for it any more. (overloaded may come from
  // either side.)
  static bool is_of_this_side(base::Errc code) {
    return code == base::Errc::overloaded || code == base::Errc::unavailable ||
           code == base::Errc::closed || code == base::Errc::cancelled;
  }

  template <class Request, class Answer>
  runtime::Task<base::Result<Answer>> call_unmeasured(model::NodeId to,
                                                      rpc::Method<Request, Answer> method,
                                                      rpc::Payload request, runtime::Until until) {
    if (rpc_ == nullptr) co_return base::Error(base::Errc::closed, "no other node can be called");
    if (here_.cores.here() == rpc_core_) {
      co_return co_await rpc_->call_with(to, method, std::move(request), std::move(until));
    }
    const auto there = [this, to, method, request](runtime::Runtime&, runtime::Until remaining) {
      return rpc_->call_with(to, method, request, std::move(remaining));
    };
    co_return co_await runtime::run_on<Answer>(here_, rpc_core_, there, std::move(until));
  }

  runtime::Runtime& here_;
  const model::NodeId self_;
  rpc::Rpc* rpc_ = nullptr;
  runtime::CoreId rpc_core_;
  ReplicaMapPtr map_;
  UpNodesPtr up_;
  AnswerTimes answer_times_;
  RequestStatistics statistics_;
  RequestsUnderWay requests_;
};

}  // namespace helenus::replication
