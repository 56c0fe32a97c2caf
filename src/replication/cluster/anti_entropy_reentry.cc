// Replicas in doubt catch up with others (R10), and find out that they have lost something (S13).
// Those of a change of the ring are filled, and catch up with all members (R17).
#include <algorithm>
#include <utility>

#include "replication/cluster/anti_entropy.h"
#include "replication/map/reentry_rule.h"

namespace helenus::replication {

using model::NodeId;
using runtime::Task;
using storage::TabletId;

void ReentryProgress::add(const ReentryProgress& other) {
  tablets += other.tablets;
  tablets_behind += other.tablets_behind;
  waits_for.insert(other.waits_for.begin(), other.waits_for.end());
  withheld += other.withheld;
  copying += other.copying;
  damaged.insert(other.damaged.begin(), other.damaged.end());
  damaged_waiting += other.damaged_waiting;
  damaged_alone += other.damaged_alone;
  as_of = std::min(as_of, other.as_of);
  has_lost_writes |= other.has_lost_writes;
}

const PlacedTablet& AntiEntropy::placed(const Tablet& tablet) const {
  return tablet.held.keyspace->tablet(tablet.held.key.index);
}

bool AntiEntropy::reenters(const Tablet& tablet) const {
  const PlacedReplica* self = placed(tablet).find(link_.self());
  return self != nullptr && self->in_doubt;
}

std::set<NodeId> AntiEntropy::reentry_waits_for(const Tablet& tablet) const {
  std::set<NodeId> done = tablet.pulled;
  done.insert(given_up_.begin(), given_up_.end());
  return replication::reentry_waits_for(*tablet.held.keyspace, placed(tablet), link_.self(), done);
}

bool AntiEntropy::is_of_next_set(const Tablet& tablet) const {
  const PlacedTablet& its = placed(tablet);
  const PlacedReplica* self = its.find(link_.self());
  return its.is_joint && self != nullptr && self->is_in(ReplicaSets::next);
}

std::set<NodeId> AntiEntropy::change_waits_for(const Tablet& tablet) const {
  std::set<NodeId> nodes;
  if (!is_of_next_set(tablet)) return nodes;
  for (const PlacedReplica& member : placed(tablet).members) {
    const bool counts = member.is_in(ReplicaSets::present) && member.node != link_.self();
    if (counts && !tablet.pulled.contains(member.node)) nodes.insert(member.node);
  }
  return nodes;
}

std::set<NodeId> AntiEntropy::must_pull_from(const Tablet& tablet) const {
  std::set<NodeId> nodes = change_waits_for(tablet);
  if (reenters(tablet)) nodes.merge(reentry_waits_for(tablet));
  return nodes;
}

bool AntiEntropy::is_silent(const Tablet& tablet) const {
  if (!tablet.held.is_pending) return false;
  const auto filled = filled_.find(tablet.held.info.id);
  return filled == filled_.end() || filled->second != tablet.held.info.actor;
}

void AntiEntropy::note_filled(TabletId id, causality::ActorId actor) {
  filled_[id] = actor;
  const auto found = tablets_.find(id);
  if (found == tablets_.end()) return;
  refresh(*found->second);
  tell_all(*found->second);
}

void AntiEntropy::note_catching_up() {
  catching_up_.clear();
  for (const auto& [id, tablet] : tablets_) {
    if (!must_pull_from(*tablet).empty()) catching_up_.insert(id);
  }
  std::erase_if(filled_, [this](const auto& each) {
    const auto tablet = tablets_.find(each.first);
    return tablet == tablets_.end() || !tablet->second->held.is_pending;
  });
}

void AntiEntropy::start_catch_up_pulls() {
  if (stop_.token().stop_requested()) return;
  const runtime::MonotonicTime now = runtime_.clock.now();
  for (const TabletId id : catching_up_) {
    if (catch_up_pulling_ >= options_.reentry_pulls_max) return;
    Tablet* tablet = tablets_.at(id).get();
    if (tablet->pulling || now < tablet->pulled_not_before) continue;
    std::optional<NodeId> from;
    for (const NodeId node : must_pull_from(*tablet)) {
      if (!link_.is_up(node)) continue;
      if (!from || *from == tablet->avoided) from = node;
    }
    if (!from) continue;
    tablet->pulling = true;
    ++catch_up_pulling_;
    ++counts_.pulls;
    tasks_.spawn(catch_up_pull(id, tablet->life, *from), runtime::Priority::background);
  }
}

Task<void> AntiEntropy::catch_up_pull(TabletId id, std::uint64_t life, NodeId from) {
  auto end = co_await pull_pages(id, life, from);
  if (must_stream(id, life, end)) end = co_await stream(id, life, from);
  --catch_up_pulling_;
  finish_pull(id, life, from, end);
  start_catch_up_pulls();
}

void AntiEntropy::note_pulled(Tablet& tablet, NodeId from) {
  const bool is_first = tablet.pulled.insert(from).second;
  if (!is_first || !must_pull_from(tablet).empty()) return;
  if (catching_up_.erase(tablet.held.info.id) == 0) return;
  log_.debug("a replica has caught up", base::kv("tablet", tablet.held.info.id));
}

ReentryProgress AntiEntropy::reentry() {
  ReentryProgress progress;
  add_damaged(progress);
  progress.as_of = held_ == nullptr ? causality::Epoch(0) : held_->map()->epoch();
  for (const auto& [id, tablet] : tablets_) {
    if (!tablet->held.is_in_doubt) {
      progress.has_lost_writes |= tablet->behind_itself;
      continue;
    }
    ++progress.tablets;
    const std::set<NodeId> waits_for = reentry_waits_for(*tablet);
    if (reenters(*tablet) && waits_for.empty()) continue;
    ++progress.tablets_behind;
    if (tablet->streaming) ++progress.copying;
    progress.waits_for.insert(waits_for.begin(), waits_for.end());
    for (const causality::DotRange& range :
         causality::missing(causality::Clock(), tablet->withheld).dots) {
      progress.withheld += range.last - range.first + 1;
    }
  }
  return progress;
}

void RingProgress::add(const RingProgress& other) {
  pending += other.pending;
  pending_to_fill += other.pending_to_fill;
  joint += other.joint;
  joint_behind += other.joint_behind;
  waits_for.insert(other.waits_for.begin(), other.waits_for.end());
  withheld += other.withheld;
  as_of = std::min(as_of, other.as_of);
}

RingProgress AntiEntropy::ring_progress() const {
  RingProgress progress;
  progress.as_of = held_ == nullptr ? causality::Epoch(0) : held_->map()->epoch();
  for (const auto& [id, tablet] : tablets_) {
    if (tablet->held.is_pending) ++progress.pending;
    if (is_silent(*tablet)) ++progress.pending_to_fill;
    if (!is_of_next_set(*tablet)) continue;
    ++progress.joint;
    const std::set<NodeId> waits_for = change_waits_for(*tablet);
    if (waits_for.empty()) continue;
    ++progress.joint_behind;
    progress.waits_for.insert(waits_for.begin(), waits_for.end());
    for (const causality::DotRange& range :
         causality::missing(causality::Clock(), tablet->withheld).dots) {
      progress.withheld += range.last - range.first + 1;
    }
  }
  return progress;
}

}  // namespace helenus::replication
