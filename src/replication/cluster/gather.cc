#include "replication/cluster/gather.h"

#include <tuple>

namespace helenus::replication {

using base::Errc;
using base::Error;
using base::Result;
using model::NodeId;
using runtime::Duration;

std::vector<const PlacedReplica*> in_order_of_asking(const PlacedTablet& tablet,
                                                     const ClusterLink& link) {
  struct Candidate {
    std::tuple<bool, bool, bool, std::size_t> rank;
    const PlacedReplica* replica = nullptr;
  };
  const std::optional<DatacentreIndex> own =
      link.map() == nullptr ? std::nullopt : link.map()->own_datacentre();
  absl::InlinedVector<Candidate, 8> candidates;
  for (const PlacedReplica& replica : tablet.members) {
    if (replica.in_doubt || !link.is_up(replica.node)) continue;
    candidates.push_back({.rank = {link.is_suspected(replica.node), replica.node != link.self(),
                                   own && replica.datacentre != *own, candidates.size()},
                          .replica = &replica});
  }
  std::ranges::sort(candidates, {}, &Candidate::rank);
  std::vector<const PlacedReplica*> order;
  order.reserve(candidates.size());
  for (const Candidate& candidate : candidates) order.push_back(candidate.replica);
  return order;
}

Result<void> check_enough(const std::vector<const PlacedReplica*>& candidates,
                          const LevelRule& rule, LevelReport* report) {
  if (report != nullptr) *report = {.required = rule.required(), .received = 0, .failed = 0};
  Places places;
  for (const PlacedReplica* replica : candidates) places.push_back(replica->counted());
  AckTally tally(rule, places);
  if (!tally.is_impossible()) return {};
  const auto shortage = tally.shortage();
  if (report != nullptr && shortage) {
    *report = {.required = shortage->group.required, .received = shortage->alive, .failed = 0};
  }
  return Error(Errc::unavailable, "too few replicas are up");
}

GatherPlan::GatherPlan(ClusterLink& link, const PlacedTablet& tablet, const LevelRule& rule)
    : link_(link), rule_(rule), candidates_(in_order_of_asking(tablet, link)) {
  for (const PlacedReplica* replica : candidates_) places_.push_back(replica->counted());
  is_asked_.resize(candidates_.size());
  tally_.emplace(rule_, places_);
}

std::vector<std::size_t> GatherPlan::ask_first() {
  absl::InlinedVector<std::uint32_t, 4> chosen(rule_.groups().size());
  std::vector<std::size_t> indexes;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    bool is_wanted = false;
    for (std::size_t g = 0; g < chosen.size(); ++g) {
      const LevelRule::Group& group = rule_.groups()[g];
      is_wanted = is_wanted || (group.counts(places_[i]) && chosen[g] < group.required);
    }
    if (!is_wanted) continue;
    for (std::size_t g = 0; g < chosen.size(); ++g) {
      if (rule_.groups()[g].counts(places_[i])) ++chosen[g];
    }
    is_asked_[i] = true;
    indexes.push_back(i);
  }
  return indexes;
}

std::optional<std::size_t> GatherPlan::spare() const {
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (!is_asked_[i] && tally_->still_counts(places_[i])) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> GatherPlan::ask_spare() {
  const auto index = spare();
  if (index) {
    is_asked_[*index] = true;
    ++link_.statistics().spares_asked;
  }
  return index;
}

std::optional<Duration> GatherPlan::patience(AnswerTimes::Kind kind,
                                             const Speculation& speculation) const {
  if (!speculation.needs_usual()) return speculation.patience(std::nullopt);
  std::optional<Duration> usual;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (!is_asked_[i] || candidates_[i]->node == link_.self()) continue;
    const auto of_one =
        link_.answer_times().usual(candidates_[i]->node, kind, speculation.percentile / 100);
    if (of_one) usual = std::max(usual.value_or(Duration(0)), *of_one);
  }
  return speculation.patience(usual);
}

void GatherPlan::report_unavailable_to(LevelReport* report) const {
  const auto shortage = tally_->shortage();
  if (report == nullptr || !shortage) return;
  *report = {.required = shortage->group.required, .received = shortage->alive, .failed = 0};
}

void GatherPlan::report_to(LevelReport* report) const {
  if (report == nullptr) return;
  report->received = tally_->acknowledged();
  report->failed = errors_;
}

}  // namespace helenus::replication
