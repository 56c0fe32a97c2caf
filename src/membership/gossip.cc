#include "membership/gossip.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "base/assert.h"

namespace helenus::membership {

using base::Errc;
using base::Error;
using model::NodeId;

namespace {

// Whether (generation, version) holds something that `known` lacks.
bool is_ahead(Generation generation, Version version, const Knowledge& known) {
  return generation > known.generation ||
         (generation == known.generation && version > known.version);
}

Knowledge knowledge_of(NodeId node, const NodeStates& states) {
  return {.node = node, .generation = states.generation(), .version = states.version()};
}

}  // namespace

const base::Bytes* NodeStates::find(StateKey key) const {
  const auto found = std::ranges::find(states_, key, &State::key);
  return found == states_.end() ? nullptr : &found->value;
}

Version NodeStates::heartbeat() const {
  const auto found = std::ranges::find(states_, StateKey::heartbeat, &State::key);
  return found == states_.end() ? 0 : found->version;
}

void NodeStates::put(State state) {
  ASSERT(state.version > version());
  std::erase_if(states_, [&](const State& old) { return old.key == state.key; });
  states_.push_back(std::move(state));
}

void NodeStates::begin_life(Generation generation) {
  generation_ = generation;
  states_.clear();
}

void NodeStates::raise(Generation generation) {
  ASSERT(generation > generation_);
  generation_ = generation;
}

Gossip::Gossip(NodeId self, Generation generation, const GossipLimits& limits)
    : self_(self),
      generation_max_(std::min(generation + kGenerationLeadMax, kGenerationMax)),
      limits_(limits) {
  ASSERT(generation >= 1 && generation <= kGenerationMax, "generation {}", generation);
  ASSERT(limits.digest_bytes_max >= GossipLimits::kDigestBytesMin);
  ASSERT(limits.delta_bytes_max >= GossipLimits::kDeltaBytesMin);
  ASSERT(limits.digest_bytes_max + limits.delta_bytes_max <= kMessageBytesMax / 2);
  ASSERT(limits.nodes_max >= 1);
  nodes_.emplace(self, NodeStates(generation));
  beat();
}

base::Result<void> Gossip::set(StateKey key, base::Bytes value) {
  if (key == StateKey::heartbeat || static_cast<std::uint8_t>(key) >= kStateKeyCountMax) {
    return Error(Errc::invalid_argument, "no state has the key {}", static_cast<int>(key));
  }
  if (value.size() > kStateValueBytesMax) {
    return Error(Errc::invalid_argument, "{} bytes in a state that may have {}", value.size(),
                 kStateValueBytesMax);
  }
  NodeStates& own = nodes_.at(self_);
  if (const base::Bytes* old = own.find(key); old != nullptr && *old == value) return {};
  own.put({.key = key, .version = own.version() + 1, .value = value.compact()});
  return {};
}

void Gossip::beat() {
  NodeStates& own = nodes_.at(self_);
  own.put({.key = StateKey::heartbeat, .version = own.version() + 1, .value = {}});
  for (auto entry = quarantine_.begin(); entry != quarantine_.end();) {
    entry = --entry->second.rounds_left == 0 ? quarantine_.erase(entry) : std::next(entry);
  }
}

Opening Gossip::open() {
  Opening opening;
  Digest& digest = opening.digest;
  digest.arc.after = arc_after_;
  auto next = arc_after_ ? nodes_.upper_bound(*arc_after_) : nodes_.begin();
  std::size_t bytes_left = limits_.digest_bytes_max;
  for (; next != nodes_.end(); ++next) {
    const Knowledge knowledge = knowledge_of(next->first, next->second);
    const std::size_t bytes = encoded_size(knowledge);
    if (bytes > bytes_left) break;
    bytes_left -= bytes;
    digest.nodes.push_back(knowledge);
  }
  if (next != nodes_.end()) digest.arc.last = digest.nodes.back().node;
  arc_after_ = digest.arc.last;
  return opening;
}

Opening Gossip::open_self() const {
  const auto self = nodes_.find(self_);
  Opening opening;
  opening.digest.arc.last = self_;
  if (self != nodes_.begin()) opening.digest.arc.after = std::prev(self)->first;
  opening.digest.nodes.push_back(knowledge_of(self_, self->second));
  return opening;
}

// What the peer lacks: of the nodes it named what is newer here, and of its arc what it did not
// name at all. What this node lacks: of the nodes it named what is newer there.
Gossip::Received Gossip::receive(const Opening& opening, base::Prng& random) {
  const Digest& digest = opening.digest;
  Answer answer;
  std::vector<Missing> missing;
  std::size_t wanted_bytes_left = limits_.digest_bytes_max;
  auto known = digest.arc.after ? nodes_.upper_bound(*digest.arc.after) : nodes_.begin();
  const auto add_unnamed_before = [&](const NodeId* end) {
    for (; known != nodes_.end() && digest.arc.contains(known->first) &&
           (end == nullptr || known->first < *end);
         ++known) {
      add_missing(missing, known->first, known->second, {});
    }
  };
  for (const Knowledge& offered : digest.nodes) {
    add_unnamed_before(&offered.node);
    if (offered.node == self_) outlive(offered.generation, offered.version);
    const NodeStates* here = find(offered.node);
    if (here != nullptr) {
      add_missing(missing, offered.node, *here, offered);
      ++known;
    }
    if (!is_wanted(offered)) continue;
    const Knowledge wanted =
        here != nullptr ? knowledge_of(offered.node, *here) : Knowledge{.node = offered.node};
    const std::size_t bytes = encoded_size(wanted);
    if (bytes > wanted_bytes_left) continue;
    wanted_bytes_left -= bytes;
    answer.wanted.push_back(wanted);
  }
  add_unnamed_before(nullptr);
  answer.deltas = deltas_of(std::move(missing), random);
  Received received;
  if (!answer.wanted.empty() || !answer.deltas.empty()) received.reply = std::move(answer);
  return received;
}

Gossip::Received Gossip::receive(const Answer& answer, base::Prng& random) {
  Received received{.reply = std::nullopt, .progress = apply(answer.deltas)};
  std::vector<Missing> missing;
  for (const Knowledge& wanted : answer.wanted) {
    if (const NodeStates* here = find(wanted.node)) {
      add_missing(missing, wanted.node, *here, wanted);
    }
  }
  Closing closing{deltas_of(std::move(missing), random)};
  if (!closing.deltas.empty()) received.reply = std::move(closing);
  return received;
}

Gossip::Received Gossip::receive(const Closing& closing) {
  return {.reply = std::nullopt, .progress = apply(closing.deltas)};
}

void Gossip::forget(NodeId node) {
  ASSERT(node != self_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  if (quarantine_.size() >= limits_.nodes_max) {
    quarantine_.erase(std::ranges::min_element(
        quarantine_, {}, [](const auto& entry) { return entry.second.rounds_left; }));
  }
  if (limits_.quarantine_rounds > 0) {
    quarantine_.insert_or_assign(node,
                                 Quarantine{found->second.generation(), limits_.quarantine_rounds});
  }
  nodes_.erase(found);
}

const NodeStates* Gossip::find(NodeId node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : &found->second;
}

void Gossip::add_missing(std::vector<Missing>& missing, NodeId node, const NodeStates& states,
                         const Knowledge& known) const {
  if (!is_ahead(states.generation(), states.version(), known)) return;
  const Version after = states.generation() == known.generation ? known.version : 0;
  const auto first = std::ranges::upper_bound(states.states(), after, {}, &State::version);
  missing.push_back({.node = node,
                     .states = &states,
                     .first = static_cast<std::size_t>(first - states.states().begin())});
}

// Takes the next state if there is room. One that does not fit closes its node: what comes after it
// must not overtake it.
bool Gossip::take_next(Missing& missing, std::size_t& bytes_left) const {
  if (!missing.open || missing.taken == missing.count()) return false;
  const std::vector<State>& states = missing.states->states();
  const std::size_t index = missing.first + missing.taken;
  const Version previous = index == 0 ? 0 : states[index - 1].version;
  std::size_t bytes = encoded_size(states[index], previous);
  if (missing.taken == 0) bytes += encoded_head_size(missing.states->generation(), previous);
  missing.open = bytes <= bytes_left;
  if (!missing.open) return false;
  bytes_left -= bytes;
  ++missing.taken;
  return true;
}

std::vector<Delta> Gossip::deltas_of(std::vector<Missing> missing, base::Prng& random) const {
  random.shuffle(missing);
  std::size_t bytes_left = limits_.delta_bytes_max;
  if (limits_.order == DeltaOrder::depth) {
    std::ranges::sort(missing, std::greater<>(), &Missing::count);
    for (Missing& node : missing) {
      while (take_next(node, bytes_left)) continue;
    }
  } else {
    for (bool any = true; any;) {
      any = false;
      for (Missing& node : missing) any |= take_next(node, bytes_left);
    }
  }
  std::erase_if(missing, [](const Missing& node) { return node.taken == 0; });
  std::ranges::sort(missing, {}, &Missing::node);
  std::vector<Delta> deltas;
  deltas.reserve(missing.size());
  for (const Missing& node : missing) {
    const auto first = node.states->states().begin() + static_cast<std::ptrdiff_t>(node.first);
    deltas.push_back({.node = node.node,
                      .generation = node.states->generation(),
                      .after = node.first == 0 ? 0 : std::prev(first)->version,
                      .states = {first, first + static_cast<std::ptrdiff_t>(node.taken)}});
  }
  return deltas;
}

// Not asked for: what could not be taken anyway.
bool Gossip::is_wanted(const Knowledge& offered) const {
  if (offered.node == self_ || offered.generation == 0) return false;
  if (offered.generation > generation_max_) return false;
  if (const NodeStates* here = find(offered.node)) {
    return is_ahead(offered.generation, offered.version, knowledge_of(offered.node, *here));
  }
  const auto quarantined = quarantine_.find(offered.node);
  if (quarantined != quarantine_.end() && offered.generation <= quarantined->second.generation) {
    return false;
  }
  return nodes_.size() < limits_.nodes_max;
}

std::vector<Progress> Gossip::apply(const std::vector<Delta>& deltas) {
  std::vector<Progress> made;
  for (const Delta& delta : deltas) {
    if (delta.node == self_) {
      outlive(delta.generation, delta.states.back().version);
    } else if (admits(delta)) {
      made.push_back(apply(delta));
    }
  }
  return made;
}

// Whether the delta continues what is known; see the invariant.
bool Gossip::admits(const Delta& delta) {
  if (delta.generation > generation_max_) {
    ++statistics_.lives_in_future;
    return false;
  }
  const NodeStates* here = find(delta.node);
  if (here == nullptr) {
    const auto quarantined = quarantine_.find(delta.node);
    if (quarantined != quarantine_.end() && delta.generation <= quarantined->second.generation) {
      ++statistics_.nodes_quarantined;
      return false;
    }
    if (nodes_.size() >= limits_.nodes_max) {
      ++statistics_.nodes_over_limit;
      return false;
    }
  } else if (!is_ahead(delta.generation, delta.states.back().version,
                       knowledge_of(delta.node, *here))) {
    ++statistics_.deltas_stale;
    return false;
  }
  const bool same_life = here != nullptr && here->generation() == delta.generation;
  if (delta.after > (same_life ? here->version() : 0)) {
    ++statistics_.deltas_with_gap;
    return false;
  }
  return true;
}

// Requires: admits(delta).
Progress Gossip::apply(const Delta& delta) {
  Progress progress{.node = delta.node};
  const auto [place, learned] = nodes_.try_emplace(delta.node, delta.generation);
  NodeStates& node = place->second;
  progress.learned = learned;
  progress.restarted = node.generation() != delta.generation;
  if (progress.restarted) node.begin_life(delta.generation);
  quarantine_.erase(delta.node);
  const Version heartbeat_before = node.heartbeat();
  const Version version_before = node.version();
  for (const State& state : delta.states) {
    if (state.version <= version_before) continue;
    node.put(state);
    progress.keys |= std::uint32_t{1} << static_cast<unsigned>(state.key);
  }
  // The first beat that is heard of proves nothing: it may be an old one of a node long dead.
  progress.heartbeat = heartbeat_before != 0 && node.heartbeat() > heartbeat_before;
  ++statistics_.deltas_taken;
  return progress;
}

void Gossip::outlive(Generation generation, Version version) {
  NodeStates& own = nodes_.at(self_);
  if (!is_ahead(generation, version, knowledge_of(self_, own))) return;
  if (generation >= generation_max_) return;
  own.raise(generation + 1);
  ++statistics_.generations_raised;
}

}  // namespace helenus::membership
