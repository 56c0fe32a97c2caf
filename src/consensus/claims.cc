#include "consensus/claims.h"

#include <algorithm>
#include <utility>

#include "consensus/screen.h"

namespace helenus::consensus {

using model::NodeId;
using runtime::MonotonicTime;

void Claims::claimed(const Known& known, NodeId from, const Document& document, bool is_member,
                     bool is_learner, MonotonicTime now) {
  forget_known(known);
  probed_.erase(from);  // it has moved on since it answered
  const bool is_new =
      std::ranges::find(candidates_, document, &Candidate::document) == candidates_.end();
  Candidate& candidate = candidate_of(document, now);
  if (is_member) {
    for (Candidate& other : candidates_) other.decided_by.erase(from);
    candidate.decided_by.insert(from);
  }
  const bool is_listed = std::ranges::find(candidate.learners, from) != candidate.learners.end();
  if (is_learner && !is_listed && candidate.learners.size() < config_.learners_max) {
    candidate.learners.push_back(from);
  }
  if (is_new && !is_believed(candidate, known, now)) ask(known, now);
}

// The oldest makes room: whoever meant it says it again.
Claims::Candidate& Claims::candidate_of(const Document& document, MonotonicTime now) {
  const auto found = std::ranges::find(candidates_, document, &Candidate::document);
  if (found != candidates_.end()) return *found;
  if (candidates_.size() >= config_.candidates_max) candidates_.erase(candidates_.begin());
  return candidates_.emplace_back(
      Candidate{.document = document, .decided_by = {}, .learners = {}, .since = now});
}

void Claims::probed(const Known& known, NodeId from, const Probed& answer) {
  forget_known(known);
  if (answer.ticket.sequence != sequence_ || answer.version != probed_version_) return;
  if (!known.document.names(from)) return;
  probed_.insert_or_assign(from, answer.accepted);
}

bool Claims::has_votes(const Candidate& candidate, const Known& known) const {
  const Document& before = known.document;
  const std::size_t majority = majority_of(before.acceptors.size());
  std::set<NodeId> decided;
  for (const NodeId node : candidate.decided_by) {
    if (before.names(node)) decided.insert(node);
  }
  if (decided.size() >= majority) return true;
  if (candidate.document.version != after(before.version)) return false;
  std::map<Ballot, std::set<NodeId>> votes;
  const auto count = [&](NodeId node, const std::optional<Proposal>& accepted) {
    if (accepted && accepted->document == candidate.document) votes[accepted->ballot].insert(node);
  };
  for (const auto& [node, accepted] : probed_) count(node, accepted);
  if (before.names(known.self)) count(known.self, known.accepted);
  return std::ranges::any_of(votes, [&](const auto& each) {
    std::set<NodeId> all = each.second;
    all.insert(decided.begin(), decided.end());
    return all.size() >= majority;
  });
}

// An acceptor that still holds the known document and has not accepted an ancestor of the candidate
// is of no majority that could have chosen what led to it. One that has accepted an ancestor says
// nothing about later versions: others may have decided on them while nobody told it.
bool Claims::is_denied(const Candidate& candidate, const Known& known) const {
  const Document& before = known.document;
  std::size_t denials = 0;
  const auto count = [&](const std::optional<Proposal>& accepted) {
    const bool voted = accepted && descends(candidate.document, accepted->document);
    denials += voted ? 0 : 1;
  };
  for (const auto& [node, accepted] : probed_) {
    if (!candidate.decided_by.contains(node)) count(accepted);
  }
  if (before.names(known.self)) count(known.accepted);
  return before.acceptors.size() - std::min(denials, before.acceptors.size()) <
         majority_of(before.acceptors.size());
}

bool Claims::is_believed(const Candidate& candidate, const Known& known, MonotonicTime now) const {
  if (known.document.is_blank()) return !candidate.decided_by.empty();  // C4
  if (candidate.decided_by.size() >= 2 || has_votes(candidate, known)) return true;
  return candidate.decided_by.size() == 1 && now - candidate.since >= config_.lone_claim_after &&
         !is_denied(candidate, known);
}

std::optional<Claims::Belief> Claims::take_belief(const Known& known, MonotonicTime now) {
  forget_known(known);
  for (auto candidate = candidates_.begin(); candidate != candidates_.end();) {
    if (!descends(candidate->document, known.document) ||
        (!is_believed(*candidate, known, now) && is_denied(*candidate, known) &&
         !known.document.is_blank())) {
      ++denied_;
      candidate = candidates_.erase(candidate);
      continue;
    }
    if (is_believed(*candidate, known, now)) {
      Belief belief{.document = std::move(candidate->document),
                    .learners = std::move(candidate->learners)};
      candidates_.erase(candidate);
      return belief;
    }
    ++candidate;
  }
  return std::nullopt;
}

void Claims::forget_known(const Known& known) {
  std::erase_if(candidates_, [&](const Candidate& candidate) {
    return candidate.document.version <= known.document.version;
  });
  const Version next = after(known.document.version);
  if (std::exchange(probed_version_, next) != next) probed_.clear();
}

void Claims::ask(const Known& known, MonotonicTime now) {
  asked_at_ = now;
  probed_.clear();
  ++sequence_;
  for (const NodeId acceptor : known.document.acceptors) {
    if (acceptor == known.self) continue;
    messages_.push_back(
        {.to = acceptor,
         .message = {.register_id = known.document.register_id,
                     .body = Probe{.version = after(known.document.version),
                                   .ticket = {.proposer = id_, .sequence = sequence_}}}});
  }
}

void Claims::tick(const Known& known, MonotonicTime now) {
  forget_known(known);
  if (!candidates_.empty() && now - asked_at_ >= config_.ask_again) ask(known, now);
}

MonotonicTime Claims::wakes_at() const {
  return candidates_.empty() ? MonotonicTime::never() : asked_at_ + config_.ask_again;
}

std::vector<Outgoing> Claims::take_messages() {
  return std::exchange(messages_, {});
}

}  // namespace helenus::consensus
