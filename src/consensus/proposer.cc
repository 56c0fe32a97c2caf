#include "consensus/proposer.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "base/assert.h"

namespace helenus::consensus {

using model::NodeId;
using runtime::MonotonicTime;

Proposer::Proposer(ProposerId id, Document known, std::vector<NodeId> contacts, std::uint64_t seed,
                   Config config)
    : id_(id),
      config_(config),
      contacts_(std::move(contacts)),
      prng_(seed),
      known_(std::move(known)) {
  ASSERT(validate(known_) && contacts_.size() <= kAcceptorsMax);
  ASSERT(config_.round_timeout > runtime::Duration(0) && config_.pause_min > runtime::Duration(0) &&
         config_.pause_max >= config_.pause_min);
}

void Proposer::read(MonotonicTime now, MonotonicTime deadline) {
  ASSERT(!is_busy() && !outcome_);
  change_.reset();
  start(now, deadline);
}

base::Result<void> Proposer::change(Change change, MonotonicTime now, MonotonicTime deadline) {
  ASSERT(!is_busy() && !outcome_);
  // The fields are judged by themselves; the version they are for may not be known here yet.
  TRY_VOID(found(known_.register_id, change.acceptors, change.content));
  if (change.expected == Version(0) || change.expected.value() >= kVersionMax) {
    return base::Error(base::Errc::invalid_argument, "no change leads on from version {}",
                       change.expected.value());
  }
  change_ = std::move(change);
  start(now, deadline);
  return {};
}

void Proposer::start(MonotonicTime now, MonotonicTime deadline) {
  in_doubt_ = false;
  pauses_ = 0;
  deadline_ = deadline;
  advance(now);
}

void Proposer::advance(MonotonicTime now) {
  if (!change_) return probe(now);
  switch (fate_of(*change_, known_)) {
    case Fate::happened:
      return spread({}, now);
    case Fate::lost:
      return finish(Outcome::Kind::conflict);
    case Fate::forgotten:
      return finish(Outcome::Kind::unknown);
    case Fate::open:
      break;
  }
  // A change that expects a version not known here first looks for it.
  return known_.version == change_->expected ? prepare(now) : probe(now);
}

void Proposer::probe(MonotonicTime now) {
  ask(Phase::probing,
      Probe{.version = after(known_.version), .ticket = {.proposer = id_, .sequence = ++ticket_}},
      now);
}

void Proposer::prepare(MonotonicTime now) {
  if (round_ >= kRoundMax) {
    return finish(in_doubt_ ? Outcome::Kind::unknown : Outcome::Kind::unavailable);
  }
  const Ballot ballot{.round = ++round_, .proposer = id_};
  ASSERT(ballot > ballot_, "P1: round {} after {}", ballot.round, ballot_.round);
  ballot_ = ballot;
  ask(Phase::preparing, Prepare{.version = after(known_.version), .ballot = ballot_}, now);
}

void Proposer::propose(MonotonicTime now) {
  ASSERT(phase_ == Phase::preparing && has_majority(agreed_), "P1, P2");
  Document document;
  if (highest_) {
    document = highest_->document;
  } else if (change_ && change_->expected == known_.version) {
    auto changed = apply(*change_, known_);
    ASSERT(changed);
    document = *std::move(changed);
  } else {
    // Nobody of a majority had accepted anything: the known document is still the newest.
    return finish(change_ ? Outcome::Kind::conflict : Outcome::Kind::read);
  }
  ASSERT(follows(document, known_), "P4: version {}", known_.version.value());
  if (change_ && document.trail.back() == change_->id) in_doubt_ = true;
  ask(Phase::accepting, Accept{.proposal = {.ballot = ballot_, .document = std::move(document)}},
      now);
}

void Proposer::spread(const std::set<NodeId>& holders, MonotonicTime now) {
  in_doubt_ = true;
  ask(Phase::spreading, Learn{.document = known_}, now);
  std::ranges::copy_if(holders, std::inserter(agreed_, agreed_.end()),
                       [this](NodeId node) { return is_peer(node); });
  if (has_majority(agreed_)) finish(Outcome::Kind::changed);
}

void Proposer::pause(MonotonicTime now) {
  phase_ = Phase::pausing;
  auto longest = config_.pause_min;
  for (unsigned i = 0; i < pauses_ && longest < config_.pause_max; ++i) longest *= 2;
  longest = std::min(longest, config_.pause_max);
  ++pauses_;
  const auto drawn = prng_.between(1, static_cast<std::uint64_t>(longest.count()));
  wakes_at_ = now + runtime::Duration(static_cast<std::int64_t>(drawn));
}

void Proposer::chosen(const Document& document, MonotonicTime now) {
  ASSERT(follows(document, known_), "P4: version {}", known_.version.value());
  const std::set<NodeId> holders = agreed_;
  const bool is_mine = change_ && fate_of(*change_, document) == Fate::happened;
  for (const auto& acceptor : known_.acceptors) {
    if (!is_mine || !document.names(acceptor)) send(acceptor, Learn{.document = document});
  }
  if (!is_mine) {
    for (const auto& acceptor : document.acceptors) {
      if (!known_.names(acceptor)) send(acceptor, Learn{.document = document});
    }
  }
  known_ = document;
  return is_mine ? spread(holders, now) : advance(now);
}

void Proposer::finish(Outcome::Kind kind) {
  outcome_ = Outcome{.kind = kind, .document = known_};
  phase_ = Phase::idle;
  change_.reset();
  wakes_at_ = MonotonicTime::never();
}

void Proposer::receive(NodeId from, const Message& answer, MonotonicTime now) {
  if (!known_.is_blank() && answer.register_id != known_.register_id) return;
  if (const auto* decided = std::get_if<Decided>(&answer.body)) {
    if (decided->document.register_id == answer.register_id) learn(decided->document, now);
    return;
  }
  if (!is_busy() || !is_peer(from)) return;
  std::visit(
      [&](const auto& body) {
        if constexpr (requires { this->on(from, body, now); }) this->on(from, body, now);
      },
      answer.body);
}

void Proposer::learn(const Document& document, MonotonicTime now) {
  if (document.version < known_.version || document.is_blank()) return;
  if (!known_.is_blank() && document.register_id != known_.register_id) return;
  if (document.version == known_.version) {
    ASSERT(document == known_, "P3: two documents of version {}", known_.version.value());
    return;
  }
  ASSERT(
      known_.is_blank() || document.version != after(known_.version) || follows(document, known_),
      "P4: version {} was made from another {}", document.version.value(), known_.version.value());
  known_ = document;
  if (is_busy()) advance(now);
}

void Proposer::on(NodeId from, const Promised& answer, MonotonicTime now) {
  if (phase_ != Phase::preparing || answer.version != after(known_.version)) return;
  if (climbing_.contains(from) && answer.ballot < ballot_) climb(from, answer.ballot.round);
  if (answer.ballot != ballot_) return;
  agreed_.insert(from);
  if (answer.accepted && (!highest_ || answer.accepted->ballot > highest_->ballot)) {
    highest_ = answer.accepted;
  }
  if (has_majority(agreed_)) propose(now);
}

void Proposer::on(NodeId from, const Accepted& answer, MonotonicTime now) {
  if (phase_ != Phase::accepting || answer.ballot != ballot_) return;
  if (answer.version != after(known_.version)) return;
  agreed_.insert(from);
  if (!has_majority(agreed_)) return;
  const Document document = std::get<Accept>(question_).proposal.document;
  chosen(document, now);
}

void Proposer::on(NodeId from, const Refused& answer, MonotonicTime now) {
  if (phase_ != Phase::preparing && phase_ != Phase::accepting) return;
  if (answer.ballot != ballot_ || answer.version != after(known_.version)) return;
  if (answer.promised < ballot_) return climb(from, answer.promised.round);
  // However high a round one node tells of, we go up by a step.
  round_ = std::max(round_, std::min(answer.promised.round, ballot_.round + kRoundStepMax));
  if (!agreed_.contains(from)) refused_.insert(from);
  if (peers().size() - refused_.size() < majority_of(peers().size())) pause(now);
}

void Proposer::on(NodeId from, const Probed& answer, MonotonicTime now) {
  if (phase_ != Phase::probing || answer.ticket != Ticket{.proposer = id_, .sequence = ticket_}) {
    return;
  }
  if (answer.version != after(known_.version) || refused_.contains(from)) return;
  if (!answer.accepted) {
    agreed_.insert(from);
    // A change gets here when it expects a version that nobody has made.
    if (has_majority(agreed_)) finish(change_ ? Outcome::Kind::conflict : Outcome::Kind::read);
    return;
  }
  if (agreed_.contains(from)) return;
  refused_.insert(from);
  highest_ = answer.accepted;
  auto& found = accepted_by_[answer.accepted->ballot];
  if (found.holders.empty()) found.document = answer.accepted->document;
  if (found.document == answer.accepted->document) found.holders.insert(from);
  if (has_majority(found.holders)) {
    agreed_ = found.holders;
    const Document document = found.document;
    return chosen(document, now);
  }
  // Nobody is left to ask: finish what was begun.
  if (agreed_.size() + refused_.size() == peers().size()) prepare(now);
}

void Proposer::on(NodeId from, const Learned& answer, MonotonicTime) {
  if (answer.version < known_.version) return;
  if (phase_ == Phase::spreading) {
    agreed_.insert(from);
    if (has_majority(agreed_)) finish(Outcome::Kind::changed);
    return;
  }
  if (phase_ != Phase::pausing && behind_.erase(from) != 0) send(from, question_);
}

void Proposer::on(NodeId from, const Behind& answer, MonotonicTime) {
  if (known_.is_blank() || answer.version != after(known_.version)) return;
  if (answer.known >= known_.version) return;
  behind_.insert(from);
  send(from, Learn{.document = known_});
}

void Proposer::tick(MonotonicTime now) {
  if (!is_busy()) return;
  if (now >= deadline_) {
    return finish(in_doubt_ ? Outcome::Kind::unknown : Outcome::Kind::unavailable);
  }
  if (now < wakes_at_) return;
  switch (phase_) {
    case Phase::idle:
      UNREACHABLE();
    case Phase::pausing:
      return advance(now);
    case Phase::probing:
      return highest_ ? prepare(now) : ask_again(now);
    case Phase::preparing:
    case Phase::accepting:
      return refused_.empty() ? ask_again(now) : pause(now);
    case Phase::spreading:
      return ask_again(now);
  }
}

// The promise that it gives on the way binds nobody: nothing is proposed under it.
void Proposer::climb(NodeId acceptor, std::uint64_t promised) {
  climbing_.insert(acceptor);
  const std::uint64_t round = std::min(promised + kRoundStepMax, ballot_.round);
  send(acceptor,
       Prepare{.version = after(known_.version), .ballot = {.round = round, .proposer = id_}});
}

void Proposer::ask(Phase phase, Body question, MonotonicTime now) {
  phase_ = phase;
  question_ = std::move(question);
  agreed_.clear();
  refused_.clear();
  behind_.clear();
  climbing_.clear();
  accepted_by_.clear();
  highest_.reset();
  wakes_at_ = now + config_.round_timeout;
  for (const auto& peer : peers()) send(peer, question_);
}

void Proposer::ask_again(MonotonicTime now) {
  wakes_at_ = now + config_.round_timeout;
  for (const auto& peer : peers()) {
    if (!agreed_.contains(peer)) send(peer, question_);
  }
}

void Proposer::send(NodeId to, Body body) {
  messages_.push_back(
      {.to = to, .message = {.register_id = known_.register_id, .body = std::move(body)}});
}

const std::vector<NodeId>& Proposer::peers() const {
  return known_.is_blank() ? contacts_ : known_.acceptors;
}

bool Proposer::is_peer(NodeId node) const {
  return std::ranges::find(peers(), node) != peers().end();
}

bool Proposer::has_majority(const std::set<NodeId>& nodes) const {
  return !known_.is_blank() && nodes.size() >= majority_of(known_.acceptors.size());
}

MonotonicTime Proposer::wakes_at() const {
  return is_busy() ? std::min(wakes_at_, deadline_) : MonotonicTime::never();
}

std::vector<Outgoing> Proposer::take_messages() {
  return std::exchange(messages_, {});
}

std::optional<Outcome> Proposer::take_outcome() {
  return std::exchange(outcome_, std::nullopt);
}

void Proposer::add_to(base::Digest& digest) const {
  const auto add_nodes = [&digest](const std::set<NodeId>& nodes) {
    digest.add(nodes.size());
    for (const auto& node : nodes) digest.add(node.value().bytes());
  };
  digest.add(id_.value().bytes());
  digest.add(encode(Message{.register_id = known_.register_id, .body = question_}));
  digest.add(known_.version.value());
  for (const auto& change : known_.trail) digest.add(change.value().bytes());
  digest.add(round_);
  digest.add(ticket_);
  digest.add(static_cast<std::uint64_t>(phase_));
  digest.add(change_.has_value());
  digest.add(in_doubt_);
  digest.add(ballot_.round);
  add_nodes(agreed_);
  add_nodes(refused_);
  add_nodes(behind_);
  digest.add(highest_ ? highest_->ballot.round : 0);
  if (highest_) digest.add(highest_->ballot.proposer.value().bytes());
  digest.add(accepted_by_.size());
  for (const auto& [ballot, found] : accepted_by_) {
    digest.add(ballot.round);
    digest.add(ballot.proposer.value().bytes());
    add_nodes(found.holders);
  }
}

}  // namespace helenus::consensus
