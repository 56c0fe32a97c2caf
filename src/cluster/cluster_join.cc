#include "cluster/cluster_join.h"

#include "cluster/join_rules.h"
#include "cluster/wait_rules.h"
#include "runtime/sleep.h"

namespace helenus::cluster {

using base::Errc;
using base::Error;
using base::Result;
using metadata::ClusterMetadata;
using runtime::Task;
using runtime::Until;

Task<Result<void>> ClusterJoin::join(Until until) {
  context_.phase.set("joins the cluster");
  for (;;) {
    const auto joined = co_await try_to_join(until);
    if (joined || !may_retry_join(joined.error().code())) co_return joined;
    CO_TRY_VOID(co_await context_.phase.pause(joined.error().to_string(), until));
  }
}

Task<Result<void>> ClusterJoin::begin(Until until) {
  const bool has_transfer = static_cast<bool>(transfer_);
  const auto timeout = context_.options.attempt_timeout;
  const std::string& replaces = context_.options.replaces;
  if (replaces.empty()) {
    const auto joins = [this, has_transfer](const ClusterMetadata& now) {
      return begin_join(now, context_.self, has_transfer);
    };
    CO_TRY_VOID(co_await changer_.change(joins, context_.attempt(timeout, until)));
    co_return {};
  }
  // Whoever is up has been heard of by then.
  context_.phase.set("looks whether " + replaces + " is down");
  const auto heard = kRoundsUntilHeard * context_.options.gossip_interval;
  CO_TRY_VOID(co_await runtime::sleep_for(context_.runtime, heard, until.stop));
  CO_TRY(const model::NodeId dead, node_named(*known_.metadata(), replaces));
  const auto* seen = gossip_.view().find(dead);
  if (seen != nullptr && seen->alive) {
    co_return Error(Errc::refused,
                    "node {} is up, and only a dead one is replaced: let it leave by helenus "
                    "decommission",
                    replaces);
  }
  const auto takes_place = [this, has_transfer, dead](const ClusterMetadata& now) {
    return begin_replacement(now, context_.self, dead, has_transfer);
  };
  CO_TRY_VOID(co_await changer_.change(takes_place, context_.attempt(timeout, until)));
  co_return {};
}

Task<Result<void>> ClusterJoin::try_to_join(Until until) {
  const model::NodeId self = context_.self.id;
  const auto timeout = context_.options.attempt_timeout;
  if (known_.metadata()->find(self) == nullptr) CO_TRY_VOID(co_await begin(until));
  for (;;) {
    const MetadataPtr pending = known_.metadata();
    const metadata::Node* node = pending->find(self);
    if (node == nullptr) {
      co_return Error(Errc::refused, "the join of node {} was given up by somebody", self);
    }
    if (node->state != metadata::NodeState::joining) co_return {};
    if (!pending->keyspaces.empty() && transfer_) {
      context_.phase.set(pending->joint == metadata::Epoch(0) ? "copies its data from other nodes"
                                                              : "becomes a replica among others");
      CO_TRY_VOID(co_await transfer_(pending, until));
    }
    const auto advance = [self, epoch = pending->epoch](const ClusterMetadata& now) {
      return advance_join(now, self, epoch);
    };
    CO_TRY_VOID(
        co_await changer_.change(advance, Until::after(context_.runtime, timeout, until.stop)));
  }
}

}  // namespace helenus::cluster
