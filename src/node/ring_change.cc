#include "node/ring_change.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/sleep.h"

namespace helenus::node {

using base::Errc;
using base::Error;
using base::kv;
using base::Result;
using cluster::MetadataPtr;
using metadata::ClusterMetadata;
using metadata::Epoch;
using metadata::NodeState;
using model::NodeId;
using replication::HeldTablet;
using runtime::Task;
using runtime::Until;

RingChange::RingChange(runtime::Runtime& runtime, cluster::ClusterService& cluster,
                       Database& database, NodeId self, Hooks hooks)
    : runtime_(runtime),
      cluster_(cluster),
      database_(database),
      self_(self),
      hooks_(std::move(hooks)),
      log_(runtime.logger("ring")),
      tasks_(runtime) {}

namespace {

Task<Result<RingProgressReply>> answer_progress(Database& database) {
  co_return RingProgressReply{.progress = co_await database.ring_progress()};
}

}  // namespace

void RingChange::serve(rpc::Rpc& rpc) {
  rpc.serve(kRingProgressMethod, [this](NodeId, const RingProgressRequest&, const Until&) {
    return answer_progress(database_);
  });
}

void RingChange::begin_filling() {
  if (!std::exchange(is_filling_, true)) tasks_.spawn(fill_loop());
}

void RingChange::start() {
  begin_filling();
  tasks_.spawn(drive_loop());
}

Task<void> RingChange::stop() {
  stopping_.request_stop();
  co_await tasks_.join();
}

bool RingChange::is_up(NodeId node) const {
  if (node == self_) return true;
  const auto* known = cluster_.gossip().view().find(node);
  return known != nullptr && known->alive;
}

std::string RingChange::name_of(NodeId node) const {
  const metadata::Node* known = cluster_.metadata()->find(node);
  return known == nullptr ? fmt::format("{}", node) : known->description.node_address.to_string();
}

// ---- Driving ----

namespace {

// Those of whom the next step needs something: who is filled, or, when it is joint, who pulls.
std::set<NodeId> concerned(const ClusterMetadata& metadata) {
  std::set<NodeId> nodes;
  std::vector<metadata::Replication> seen;
  for (const auto& [name, keyspace] : metadata.keyspaces) {
    if (std::ranges::find(seen, keyspace.replication) != seen.end()) continue;
    seen.push_back(keyspace.replication);
    for (const auto& tablet : metadata::replicas_of(metadata, keyspace.replication)) {
      nodes.insert(tablet.pending.begin(), tablet.pending.end());
      nodes.insert(tablet.next.begin(), tablet.next.end());
    }
  }
  return nodes;
}

}  // namespace

Task<RingChange::Look> RingChange::look(MetadataPtr metadata) {
  Look look;
  look.as_of = metadata->epoch;
  look.is_ready = true;
  const bool is_joint = metadata->joint != Epoch(0);
  const auto request = std::make_shared<const RingProgressRequest>();
  for (const NodeId node : concerned(*metadata)) {
    Result<RingProgressReply> told = Error(Errc::unavailable, "is down");
    if (node == self_) {
      told = co_await answer_progress(database_);
    } else if (is_up(node)) {
      told = co_await cluster_.rpc().call(node, kRingProgressMethod, RingProgressRequest(*request),
                                          Until::after(runtime_, kAskTimeout, stopping_.token()));
    }
    if (!told || told->progress.as_of != metadata->epoch) {
      look.is_ready = false;
      look.silent.insert(node);
      continue;
    }
    const replication::RingProgress& progress = told->progress;
    look.replicas += is_joint ? progress.joint : progress.pending;
    look.behind += is_joint ? progress.joint_behind : progress.pending_to_fill;
    look.withheld += progress.withheld;
    look.waits_for.insert(progress.waits_for.begin(), progress.waits_for.end());
  }
  look.is_ready = look.is_ready && look.behind == 0;
  last_ = look;
  co_return look;
}

bool RingChange::drives(const ClusterMetadata& metadata) const {
  const auto of_state = [&](NodeState state) {
    return std::ranges::find(metadata.nodes, state, &metadata::Node::state);
  };
  // Who joins brings it to its end, and nobody else knows when it is ready to be asked.
  if (of_state(NodeState::joining) != metadata.nodes.end()) return false;
  const auto leaving = of_state(NodeState::leaving);
  if (leaving != metadata.nodes.end() && is_up(leaving->id())) return leaving->id() == self_;
  for (const metadata::Node& node : metadata.nodes) {
    if (node.state == NodeState::normal && is_up(node.id())) return node.id() == self_;
  }
  return false;
}

Task<void> RingChange::drive_loop() {
  while (co_await runtime::sleep_for(runtime_, kLookPeriod, stopping_.token())) {
    const ClusterMetadata& metadata = *cluster_.metadata();
    if (metadata::change_is_under_way(metadata) && drives(metadata)) co_await drive_once();
  }
}

Task<void> RingChange::drive_once() {
  const MetadataPtr metadata = cluster_.metadata();
  const Look seen = co_await look(metadata);
  if (!seen.is_ready || cluster_.metadata()->epoch != seen.as_of) co_return;
  const metadata::Node* self = metadata->find(self_);
  const bool is_last = metadata->joint != Epoch(0) || !metadata::moves_replicas(*metadata);
  if (is_last && self != nullptr && self->state == NodeState::leaving && !has_let_go_) {
    has_let_go_ = true;
    log_.info("all of this node's data are with others: its clients go");
    co_await hooks_.let_go();
  }
  const auto step = [as_of = seen.as_of](const ClusterMetadata& now) {
    return metadata::advance_change(now, as_of);
  };
  const auto changed =
      co_await cluster_.change(step, Until::after(runtime_, kAttemptTimeout, stopping_.token()));
  if (changed) {
    log_.info("a change of the ring went on", kv("epoch", (*changed)->epoch),
              kv("joint", (*changed)->joint != Epoch(0)));
  } else {
    log_.debug("a change of the ring waits", kv("error", changed.error()));
  }
}

Task<Result<void>> RingChange::transfer(MetadataPtr metadata, Until until) {
  while (cluster_.applied_version() < cluster_.version()) {
    CO_TRY_VOID(co_await runtime::sleep_for(runtime_, std::chrono::milliseconds(5), until.stop));
  }
  co_await database_.begin_replication();
  begin_filling();
  while (cluster_.metadata()->epoch == metadata->epoch) {
    const Look seen = co_await look(metadata);
    if (seen.is_ready) co_return {};
    CO_TRY_VOID(co_await runtime::sleep_for(runtime_, kLookPeriod, until.stop));
  }
  co_return {};
}

// ---- Filling ----

Task<void> RingChange::fill_loop() {
  if (!hooks_.fill) co_return;
  do {
    start_fills();
  } while (co_await runtime::sleep_for(runtime_, kLookPeriod, stopping_.token()));
}

void RingChange::start_fills() {
  const replication::HeldTabletsPtr held = database_.held();
  if (held == nullptr) return;
  std::set<storage::TabletId> pending;
  for (const HeldTablet& tablet : held->all()) {
    if (!tablet.is_pending) continue;
    const storage::TabletId id = tablet.info.id;
    pending.insert(id);
    const auto filled = filled_.find(id);
    if (filled != filled_.end() && filled->second == tablet.info.actor) continue;
    if (filling_.size() >= kFillsAtOnce || filling_.contains(id)) continue;
    if (runtime_.clock.now() < not_before_[id]) continue;
    filling_.insert(id);
    tasks_.spawn(fill(held, tablet), runtime::Priority::background);
  }
  std::erase_if(filled_, [&](const auto& each) { return !pending.contains(each.first); });
  std::erase_if(not_before_, [&](const auto& each) { return !pending.contains(each.first); });
  std::erase_if(attempts_, [&](const auto& each) { return !pending.contains(each.first); });
}

std::vector<NodeId> RingChange::sources_of(const HeldTablet& tablet) const {
  std::vector<NodeId> sources;
  for (const auto& member : tablet.keyspace->tablet(tablet.key.index).members) {
    if (!member.in_doubt && is_up(member.node)) sources.push_back(member.node);
  }
  return sources;
}

Task<void> RingChange::fill(replication::HeldTabletsPtr /*held*/, HeldTablet tablet) {
  const storage::TabletId id = tablet.info.id;
  const bool has_members = !tablet.keyspace->tablet(tablet.key.index).members.empty();
  const std::vector<NodeId> sources = sources_of(tablet);
  Result<void> done;
  if (has_members && sources.empty()) done = Error(Errc::unavailable, "no member of it is up");
  if (has_members && !sources.empty()) {
    // The load is shared by those who have it; who failed is not asked again at once.
    const NodeId source = sources[(id.value() + attempts_[id]++) % sources.size()];
    done = co_await hooks_.fill(tablet, source,
                                Until::after(runtime_, kFillTimeout, stopping_.token()));
  }
  filling_.erase(id);
  if (!done) {
    log_.debug("a replica could not be filled, and will be", kv("tablet", id),
               kv("error", done.error()));
    not_before_[id] = runtime_.clock.now() + kFillPause;
    co_return;
  }
  filled_[id] = tablet.info.actor;
  co_await database_.note_filled(std::move(tablet));
  if (!stopping_.token().stop_requested()) start_fills();
}

// ---- Operators ----

Result<ClusterMetadata> RingChange::checked(Result<ClusterMetadata> next) const {
  if (hooks_.fill) return next;
  if (!next) return next;
  for (const auto& [name, keyspace] : next->keyspaces) {
    for (const auto& tablet : metadata::replicas_of(*next, keyspace.replication)) {
      if (tablet.pending.empty()) continue;
      return Error(Errc::unsupported,
                   "rows of keyspace {} would have to be copied to other nodes, and this release "
                   "copies none",
                   name);
    }
  }
  return next;
}

Task<Result<void>> RingChange::begin(cluster::Transition transition, Until until) {
  const auto changed = co_await cluster_.change(std::move(transition), std::move(until));
  if (!changed) co_return changed.error();
  co_return {};
}

Task<Result<void>> RingChange::wait_gone(NodeId node, Until until) {
  for (;;) {
    const metadata::Node* known = cluster_.metadata()->find(node);
    if (known == nullptr) co_return {};
    if (!metadata::goes(*known)) co_return Error(Errc::refused, "somebody gave the change up");
    const bool in_time = runtime_.clock.now() < until.deadline;
    if (!in_time) co_return Error(Errc::timeout, "it goes on: {}", phase());
    CO_TRY_VOID(co_await runtime::sleep_for(runtime_, kLookPeriod, until.stop));
  }
}

Task<Result<void>> RingChange::leave(Until until) {
  const metadata::Node* self = cluster_.metadata()->find(self_);
  if (self != nullptr && self->state == NodeState::leaving)
    co_return co_await wait_gone(self_, until);
  const auto begun = [this](const ClusterMetadata& now) {
    return checked(metadata::begin_leave(now, self_));
  };
  CO_TRY_VOID(co_await begin(begun, Until::after(runtime_, kAttemptTimeout, until.stop)));
  log_.info("this node leaves the cluster");
  co_return co_await wait_gone(self_, std::move(until));
}

Task<Result<void>> RingChange::remove(std::string node, bool accept_data_loss, Until until) {
  const MetadataPtr metadata = cluster_.metadata();
  const auto named = std::ranges::find_if(metadata->nodes, [&](const metadata::Node& each) {
    return each.id().value().to_string() == node ||
           each.description.node_address.to_string() == node;
  });
  if (named == metadata->nodes.end()) {
    co_return Error(Errc::not_found, "the cluster has no node {}: see helenus status", node);
  }
  const NodeId dead = named->id();
  if (dead == self_) {
    co_return Error(Errc::refused, "that is this node: helenus decommission lets it leave");
  }
  if (is_up(dead)) {
    co_return Error(Errc::refused,
                    "node {} is up: let it leave by helenus decommission, or stop it first", node);
  }
  if (named->state == NodeState::removing) co_return co_await wait_gone(dead, until);
  const auto loss = accept_data_loss ? metadata::DataLoss::accepted : metadata::DataLoss::refused;
  const auto begun = [this, dead, loss](const ClusterMetadata& now) {
    return checked(metadata::begin_removal(now, dead, loss));
  };
  CO_TRY_VOID(co_await begin(begun, Until::after(runtime_, kAttemptTimeout, until.stop)));
  log_.warn("a dead node is removed from the cluster", kv("node", node));
  co_return co_await wait_gone(dead, std::move(until));
}

Task<Result<void>> RingChange::abandon(Until until) {
  const auto given_up = [](const ClusterMetadata& now) { return metadata::abandon_change(now); };
  CO_TRY_VOID(co_await begin(given_up, Until::after(runtime_, kAttemptTimeout, until.stop)));
  log_.warn("a change of the ring was given up");
  co_return {};
}

Task<std::string> RingChange::tell() {
  const MetadataPtr metadata = cluster_.metadata();
  if (metadata != nullptr && metadata::change_is_under_way(*metadata)) {
    std::ignore = co_await look(metadata);
  }
  co_return phase();
}

std::string RingChange::phase() const {
  const MetadataPtr metadata = cluster_.metadata();
  if (metadata == nullptr || !metadata::change_is_under_way(*metadata)) return {};
  std::string what = "replicas of a keyspace move";
  for (const metadata::Node& node : metadata->nodes) {
    if (node.state == NodeState::normal) continue;
    what = fmt::format("node {} is {}", name_of(node.id()), metadata::name_of(node.state));
    if (node.state == NodeState::joining) break;
  }
  if (last_.as_of != metadata->epoch) return what;
  const bool is_joint = metadata->joint != Epoch(0);
  what += fmt::format(": {} of {} replicas {}", last_.replicas - last_.behind, last_.replicas,
                      is_joint ? "have pulled from every member" : "are filled");
  std::set<std::string> waits_for;
  for (const NodeId node : last_.silent) {
    waits_for.insert(name_of(node) + (is_up(node) ? "" : ", which is down"));
  }
  for (const NodeId node : last_.waits_for) {
    if (!is_up(node)) waits_for.insert(name_of(node) + ", which is down");
  }
  if (!waits_for.empty()) what += fmt::format("; waits for {}", fmt::join(waits_for, "; "));
  if (last_.withheld > 0) {
    what += fmt::format("; {} writes are given by nobody", last_.withheld);
  }
  return what;
}

}  // namespace helenus::node
