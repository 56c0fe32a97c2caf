#include "membership/membership.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace helenus::membership {

using base::Errc;
using base::Error;
using model::NodeId;
using runtime::MonotonicTime;

namespace {

NodeId one_of(const std::vector<NodeId>& nodes, base::Prng& random) {
  return nodes[random.below(nodes.size())];
}

double share(std::size_t part, std::size_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

Membership::Membership(MembershipConfig config, std::unique_ptr<FailureDetector> detector)
    : config_(std::move(config)),
      gossip_(config_.self, config_.generation, config_.limits),
      detector_(std::move(detector)) {
  ASSERT(detector_ != nullptr);
  ASSERT(!config_.cluster.empty() && config_.cluster.size() <= kClusterNameBytesMax);
}

Output Membership::round(MonotonicTime now, base::Prng& random) {
  gossip_.beat();
  Output out = tick(now);
  choose_peers(random, out);
  return out;
}

Output Membership::spread(base::Prng& random) const {
  std::vector<NodeId> live;
  for (const auto& [node, known] : view_.nodes()) {
    if (known.alive) live.push_back(node);
  }
  return tell_some(std::move(live), message_with(gossip_.open_self()), random);
}

Output Membership::greet(std::vector<NodeId> nodes, base::Prng& random) {
  return tell_some(std::move(nodes), message_with(gossip_.open()), random);
}

Output Membership::tell_some(std::vector<NodeId> nodes, const Message& message,
                             base::Prng& random) {
  Output out;
  while (!nodes.empty() && out.messages.size() < kSpreadPeersMax) {
    std::swap(nodes[random.below(nodes.size())], nodes.back());
    out.messages.push_back({nodes.back(), message});
    nodes.pop_back();
  }
  return out;
}

Output Membership::tick(MonotonicTime now) {
  judge(now);
  return {.messages = {}, .events = view_.take_events(), .progress = {}};
}

base::Result<Output> Membership::receive(const Message& message, MonotonicTime now,
                                         base::Prng& random) {
  if (message.cluster != config_.cluster) {
    return Error(Errc::refused, "node {} is of cluster \"{}\", this one of \"{}\"",
                 message.sender.value(), message.cluster, config_.cluster);
  }
  Output out;
  // A seed list often names its reader.
  if (message.sender == gossip_.self()) return out;
  Gossip::Received received;
  if (const auto* opening = std::get_if<Opening>(&message.body)) {
    received = gossip_.receive(*opening, random);
  } else if (const auto* answer = std::get_if<Answer>(&message.body)) {
    received = gossip_.receive(*answer, random);
  } else {
    received = gossip_.receive(std::get<Closing>(message.body));
  }
  for (const Progress& progress : received.progress) take(progress, now);
  if (received.reply) {
    out.messages.push_back({message.sender, message_with(*std::move(received.reply))});
  }
  out.events = view_.take_events();
  out.progress = std::move(received.progress);
  return out;
}

Output Membership::forget(NodeId node) {
  gossip_.forget(node);
  detector_->forget(node);
  view_.forget(node);
  return {.messages = {}, .events = view_.take_events(), .progress = {}};
}

void Membership::choose_peers(base::Prng& random, Output& out) {
  std::vector<NodeId> live;
  std::vector<NodeId> silent;
  for (const auto& [node, known] : view_.nodes()) {
    if (known.alive) {
      live.push_back(node);
    } else if (known.status != Status::left) {
      silent.push_back(node);
    }
  }
  const auto open_to = [&](std::variant<NodeId, Seed> to) {
    out.messages.push_back({to, message_with(gossip_.open())});
  };
  if (!live.empty()) open_to(one_of(live, random));
  if (!silent.empty() && random.chance(share(silent.size(), live.size() + 1))) {
    open_to(one_of(silent, random));
  }
  if (config_.seed_count > 0 &&
      (live.empty() || random.chance(share(config_.seed_count, live.size() + silent.size())))) {
    open_to(Seed(static_cast<std::uint32_t>(random.below(config_.seed_count))));
  }
}

// After a pause of its own a node finds others alive as soon as they are heard of, and nobody dead
// for as long as it takes to hear of them.
void Membership::judge(MonotonicTime now) {
  if (last_judged_ && now - *last_judged_ > config_.pause_max) {
    spared_until_ = now + config_.pause_max;
  }
  last_judged_ = now;
  const bool spare = spared_until_ && now < *spared_until_;
  for (const auto& [node, known] : view_.nodes()) {
    const bool alive = detector_->is_alive(node, now);
    if (alive || !spare) view_.set_alive(node, alive);
  }
}

void Membership::take(const Progress& progress, MonotonicTime now) {
  const NodeId node = progress.node;
  if (progress.learned || progress.restarted) {
    detector_->forget(node);
    detector_->watch(node);
    view_.restarted(node);
  }
  if (progress.changed(StateKey::status)) {
    const base::Bytes* value = gossip_.find(node)->find(StateKey::status);
    // A status that this release does not know leaves the one before.
    if (const auto status = decode_status(*value)) view_.set_status(node, *status);
  }
  if (progress.heartbeat) {
    detector_->heard(node, now);
    view_.set_alive(node, true);
  }
}

}  // namespace helenus::membership
