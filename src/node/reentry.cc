#include "node/reentry.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "metadata/transitions.h"
#include "runtime/clock.h"
#include "runtime/sleep.h"

namespace helenus::node {

using base::Errc;
using base::Error;
using base::kv;
using base::Result;
using metadata::ClusterMetadata;
using model::NodeId;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;

Reentry::Reentry(runtime::Runtime& runtime, cluster::ClusterService& cluster, Database& database,
                 NodeId self)
    : runtime_(runtime),
      cluster_(cluster),
      database_(database),
      self_(self),
      log_(runtime.logger("reentry")),
      tasks_(runtime) {}

bool Reentry::is_in_doubt() const {
  const metadata::Node* self = cluster_.metadata()->find(self_);
  return database_.must_reenter() || (self != nullptr && self->in_doubt);
}

Task<Result<void>> Reentry::run(StopToken stop) {
  if (cluster_.metadata()->nodes.size() == 1) CO_TRY_VOID(co_await database_.forget_doubts());
  if (is_in_doubt()) CO_TRY_VOID(co_await reenter(std::move(stop)));
  co_await database_.begin_replication();
  co_return {};
}

Task<Result<void>> Reentry::reenter(StopToken stop) {
  log_.warn(
      "this node may have lost writes that others count on: it serves nobody until it has "
      "caught up with them");
  CO_TRY_VOID(co_await begin(stop));
  co_await database_.begin_replication();
  for (;;) {
    CO_TRY(const bool is_over, co_await try_to_finish(stop));
    if (is_over) break;
    CO_TRY_VOID(co_await runtime::sleep_for(runtime_, kLookPeriod, stop));
  }
  CO_TRY_VOID(co_await wait_applied(std::move(stop)));
  ++count_;
  phase_.clear();
  log_.info("this node has re-entered", kv("epoch", reentered_));
  co_return {};
}

namespace {

// What may be another thing the next time: nobody was there to decide.
bool may_try_again(const Error& error) {
  return error.code() != Errc::not_found && error.code() != Errc::refused &&
         error.code() != Errc::cancelled;
}

}  // namespace

Task<Result<void>> Reentry::begin(StopToken stop) {
  phase_ = "re-enters, as it may have lost writes that others count on: asks for new names";
  // Names that are given after the metadata were asked for are of this life.
  const auto begun = [this](const ClusterMetadata& now) {
    // One node at a time gives up what it has: two would count on each other.
    const bool is_another = std::ranges::any_of(now.nodes, [this](const metadata::Node& node) {
      return node.in_doubt && node.id() != self_;
    });
    if (is_another) database_.make_anew({});
    database_.begin_reentry(now.epoch);
    return metadata::begin_reentry(now, self_);
  };
  for (;;) {
    const auto changed =
        co_await cluster_.change(begun, Until::after(runtime_, kAttemptTimeout, stop));
    if (changed) {
      const metadata::Node* self = (*changed)->find(self_);
      if (self == nullptr) co_return Error(Errc::not_found, "this node was removed");
      reentered_ = self->reentered;
      co_return co_await wait_applied(std::move(stop));
    }
    if (!may_try_again(changed.error())) co_return changed.error();
    CO_TRY_VOID(co_await runtime::sleep_for(runtime_, kRetryPause, stop));
  }
}

Task<Result<void>> Reentry::wait_applied(StopToken stop) {
  const consensus::Version wanted = cluster_.version();
  while (cluster_.applied_version() < wanted) {
    CO_TRY_VOID(co_await runtime::sleep_for(runtime_, std::chrono::milliseconds(5), stop));
  }
  co_return {};
}

Task<Result<bool>> Reentry::try_to_finish(StopToken stop) {
  const replication::ReentryProgress progress = co_await database_.reentry();
  tell(progress);
  if (progress.as_of < reentered_ || progress.tablets_behind > 0) co_return false;
  const auto finish = [&](const ClusterMetadata& now) {
    return metadata::finish_reentry(now, self_, reentered_, progress.as_of);
  };
  const auto changed =
      co_await cluster_.change(finish, Until::after(runtime_, kAttemptTimeout, stop));
  const metadata::Node* self = cluster_.metadata()->find(self_);
  if (self == nullptr) co_return Error(Errc::not_found, "this node was removed");
  if (stop.stop_requested()) co_return Error(Errc::cancelled);
  // An attempt whose end was not heard of may have done it.
  co_return changed || (self->reentered == reentered_ && !self->in_doubt);
}

bool Reentry::is_up(NodeId node) const {
  const auto* known = cluster_.gossip().view().find(node);
  return known != nullptr && known->up;
}

void Reentry::tell(const replication::ReentryProgress& progress) {
  std::vector<std::string> waits_for;
  for (const NodeId node : progress.waits_for) {
    const metadata::Node* known = cluster_.metadata()->find(node);
    const std::string name =
        known == nullptr ? fmt::format("{}", node) : known->description.node_address.to_string();
    waits_for.push_back(is_up(node) ? name : name + ", which is down");
  }
  phase_ = fmt::format(
      "re-enters, as it may have lost writes that others count on: {} of {} "
      "replicas have caught up",
      progress.tablets - progress.tablets_behind, progress.tablets);
  if (!waits_for.empty()) phase_ += fmt::format("; pulls from {}", fmt::join(waits_for, "; "));
  if (progress.withheld > 0) {
    phase_ += fmt::format(
        "; {} writes are kept by none of them any more, so their tablets are copied, {} now",
        progress.withheld, progress.copying);
  }
}

Task<Result<std::set<NodeId>>> Reentry::accept_data_loss() {
  if (phase_.empty()) co_return Error(Errc::invalid_argument, "this node does not re-enter");
  const replication::ReentryProgress progress = co_await database_.reentry();
  std::set<NodeId> given_up;
  for (const NodeId node : progress.waits_for) {
    if (!is_up(node)) given_up.insert(node);
  }
  for (const NodeId node : given_up) {
    log_.error("AN OPERATOR ACCEPTS THE LOSS of what only a node has that is down",
               kv("node", node));
  }
  co_await database_.give_up(given_up);
  co_return given_up;
}

// ---- While it serves ----

void Reentry::note_damage(const replication::ReentryProgress& progress) {
  const std::size_t shared = progress.damaged.size() + progress.damaged_waiting;
  const std::size_t damaged = shared + progress.damaged_alone;
  if (damaged == damaged_) return;
  damaged_ = damaged;
  trouble_.clear();
  if (shared > 0) {
    trouble_ = fmt::format(
        "files of {} replicas of this node are damaged: they are made anew from other nodes when "
        "those have all that these have seen",
        shared);
  }
  if (progress.damaged_alone > 0) {
    trouble_ += fmt::format(
        "{}files of {} replicas of this node that no other node has are damaged: reads of what "
        "cannot be read are errors",
        trouble_.empty() ? "" : "; ", progress.damaged_alone);
  }
  if (damaged > 0) {
    log_.error("files of replicas here are damaged", kv("tablets", damaged),
               kv("of_this_node_alone", progress.damaged_alone));
  }
}

// From the first step on these mint nothing more. What they minted before others take meanwhile;
// what comes from others these have. So nothing goes with the files that was acknowledged.
Task<void> Reentry::give_up_damaged() {
  damaged_not_before_ = runtime_.clock.now() + kDamagedPause;
  if (const auto doubted = co_await database_.doubt_all(); !doubted) {
    log_.warn("replicas with damaged files stay for now", kv("error", doubted.error()));
    co_return;
  }
  const runtime::MonotonicTime deadline = runtime_.clock.now() + kDamagedWait;
  std::set<storage::TabletId> given_up;
  for (;;) {
    replication::ReentryProgress progress = co_await database_.reentry();
    given_up.merge(progress.damaged);
    const bool is_over = progress.damaged_waiting == 0 || runtime_.clock.now() >= deadline;
    if (is_over || !co_await runtime::sleep_for(runtime_, kLookPeriod, stopping_.token())) break;
  }
  damaged_not_before_ = runtime_.clock.now() + kDamagedPause;
  if (!given_up.empty()) database_.make_anew(std::move(given_up));
}

void Reentry::watch() {
  tasks_.spawn(keep_watching());
}

Task<void> Reentry::stop() {
  stopping_.request_stop();
  co_await tasks_.join();
}

Task<void> Reentry::keep_watching() {
  while (co_await runtime::sleep_for(runtime_, kWatchPeriod, stopping_.token())) {
    const replication::ReentryProgress progress = co_await database_.reentry();
    note_damage(progress);
    const bool must_make_anew = !progress.damaged.empty() && progress.damaged_waiting == 0 &&
                                runtime_.clock.now() >= damaged_not_before_;
    if (!progress.has_lost_writes && !must_make_anew && !is_in_doubt()) continue;
    if (must_make_anew) co_await give_up_damaged();
    if (progress.has_lost_writes) {
      log_.error(
          "other nodes have seen writes of this node that it does not have: it has lost "
          "them, and re-enters");
      std::ignore = co_await database_.doubt_all();
    }
    const auto done = co_await reenter(stopping_.token());
    if (!done) log_.warn("the re-entry ended", kv("error", done.error()));
  }
}

}  // namespace helenus::node
