// Replicas in doubt catch up with others (R10), and find out that they have lost something (S13).
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

void AntiEntropy::note_reentering() {
  reentering_.clear();
  for (const auto& [id, tablet] : tablets_) {
    if (reenters(*tablet) && !reentry_waits_for(*tablet).empty()) reentering_.insert(id);
  }
}

void AntiEntropy::start_reentry_pulls() {
  if (stop_.token().stop_requested()) return;
  const runtime::MonotonicTime now = runtime_.clock.now();
  for (const TabletId id : reentering_) {
    if (reentry_pulling_ >= options_.reentry_pulls_max) return;
    Tablet* tablet = tablets_.at(id).get();
    if (tablet->pulling || now < tablet->pulled_not_before) continue;
    std::optional<NodeId> from;
    for (const NodeId node : reentry_waits_for(*tablet)) {
      if (!link_.is_up(node)) continue;
      if (!from || *from == tablet->avoided) from = node;
    }
    if (!from) continue;
    tablet->pulling = true;
    ++reentry_pulling_;
    ++counts_.pulls;
    tasks_.spawn(reentry_pull(id, tablet->life, *from), runtime::Priority::background);
  }
}

Task<void> AntiEntropy::reentry_pull(TabletId id, std::uint64_t life, NodeId from) {
  const auto end = co_await pull_pages(id, life, from);
  --reentry_pulling_;
  finish_pull(id, life, from, end);
  start_reentry_pulls();
}

void AntiEntropy::note_pulled(Tablet& tablet, NodeId from) {
  const bool is_first = tablet.pulled.insert(from).second;
  if (!is_first || !reenters(tablet) || !reentry_waits_for(tablet).empty()) return;
  reentering_.erase(tablet.held.info.id);
  log_.debug("a replica has caught up", base::kv("tablet", tablet.held.info.id));
}

ReentryProgress AntiEntropy::reentry() const {
  ReentryProgress progress;
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
    progress.waits_for.insert(waits_for.begin(), waits_for.end());
    for (const causality::DotRange& range :
         causality::missing(causality::Clock(), tablet->withheld).dots) {
      progress.withheld += range.last - range.first + 1;
    }
  }
  return progress;
}

}  // namespace helenus::replication
