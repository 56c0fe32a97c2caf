#include "membership/lab/swim_detector.h"

#include <algorithm>

#include "base/assert.h"

namespace helenus::membership {

using model::NodeId;
using runtime::Duration;
using runtime::MonotonicTime;

SwimDetector::SwimDetector(NodeId self, const SwimConfig& config) : self_(self), config_(config) {
  ASSERT(config.acknowledgement_timeout > Duration(0));
  ASSERT(config.acknowledgement_timeout < config.period);
  ASSERT(config.suspicion_timeout > Duration(0));
}

void SwimDetector::watch(NodeId node) {
  ASSERT(node != self_);
  members_.try_emplace(node);
}

void SwimDetector::forget(NodeId node) {
  members_.erase(node);
  std::erase(turn_, node);
  if (current_ && current_->probe.subject == node) current_.reset();
}

void SwimDetector::heard(NodeId node, MonotonicTime /*now*/) {
  if (const auto found = members_.find(node); found != members_.end()) {
    found->second = Member{.heard_of = true, .suspected_since = std::nullopt};
  }
}

double SwimDetector::suspicion(NodeId node, MonotonicTime now) const {
  const auto found = members_.find(node);
  if (found == members_.end() || !found->second.heard_of) return kUnheardOf;
  if (!found->second.suspected_since) return 0;
  return ratio(elapsed(*found->second.suspected_since, now), config_.suspicion_timeout);
}

std::vector<OutgoingProbe> SwimDetector::tick(MonotonicTime now, base::Prng& random) {
  std::vector<OutgoingProbe> out;
  if (current_) advance_current(now, random, out);
  if (current_) return out;
  if (const std::optional<NodeId> subject = next_subject(random)) {
    current_ = Current{.probe = {.kind = Probe::Kind::ping,
                                 .number = ++last_number_,
                                 .origin = self_,
                                 .subject = *subject},
                       .sent_at = now,
                       .helpers_asked_at = std::nullopt};
    out.push_back({*subject, current_->probe});
  }
  return out;
}

void SwimDetector::acknowledged(const Probe& probe, MonotonicTime now) {
  // Only the current one: an older acknowledgement may have been under way for any length of time.
  if (!current_ || probe.number != current_->probe.number) return;
  if (probe.subject != current_->probe.subject || probe.origin != self_) return;
  current_->acknowledged = true;
  heard(probe.subject, now);
}

// The helpers get their part of the period even if this node was held up before it asked them:
// else a pause here would look like a failure there.
void SwimDetector::advance_current(MonotonicTime now, base::Prng& random,
                                   std::vector<OutgoingProbe>& out) {
  if (current_->acknowledged) {
    if (elapsed(current_->sent_at, now) >= config_.period) current_.reset();
    return;
  }
  if (!current_->helpers_asked_at) {
    if (elapsed(current_->sent_at, now) < config_.acknowledgement_timeout) return;
    ask_helpers(random, out);
    current_->helpers_asked_at = now;
    return;
  }
  const Duration helpers_timeout = config_.period - config_.acknowledgement_timeout;
  if (elapsed(*current_->helpers_asked_at, now) < helpers_timeout) return;
  Member& member = members_.at(current_->probe.subject);
  if (member.heard_of && !member.suspected_since) member.suspected_since = now;
  current_.reset();
}

void SwimDetector::ask_helpers(base::Prng& random, std::vector<OutgoingProbe>& out) const {
  std::vector<NodeId> able;
  for (const auto& [node, member] : members_) {
    if (node != current_->probe.subject && member.heard_of && !member.suspected_since) {
      able.push_back(node);
    }
  }
  random.shuffle(able);
  able.resize(std::min(able.size(), config_.helpers));
  for (const NodeId helper : able) {
    Probe request = current_->probe;
    request.kind = Probe::Kind::ping_request;
    out.push_back({helper, request});
  }
}

std::optional<NodeId> SwimDetector::next_subject(base::Prng& random) {
  if (turn_.empty()) {
    for (const auto& [node, member] : members_) turn_.push_back(node);
    random.shuffle(turn_);
  }
  if (turn_.empty()) return std::nullopt;
  const NodeId subject = turn_.back();
  turn_.pop_back();
  return subject;
}

}  // namespace helenus::membership
