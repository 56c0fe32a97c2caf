#include "ring/token_assignment.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "base/hash.h"
#include "base/prng.h"

namespace helenus::ring {

namespace {

constexpr NodeIndex kNobody = std::numeric_limits<NodeIndex>::max();

// A set of tokens, by their places on the ring, that grows; and for every place on the ring how far
// the nearest other one of the set is. Distances are counted in tokens, which are evenly spread.
class Spread {
 public:
  // Cost: the size of the ring.
  explicit Spread(std::vector<bool> members)
      : members_(std::move(members)), distances_(members_.size(), members_.size()) {
    sweep([&](std::size_t step) { return step % members_.size(); });
    sweep([&](std::size_t step) { return members_.size() - 1 - step % members_.size(); });
  }

  // As far as the ring is long where there is no other.
  std::size_t distance(std::size_t slot) const { return distances_[slot]; }

  // Cost: the distances to the next members on both sides. Behind them the new one is the nearest
  // of none.
  void add(std::size_t slot) {
    const std::size_t count = members_.size();
    members_[slot] = true;
    for (std::size_t distance = 1; distance < count; ++distance) {
      if (reaches_member((slot + distance) % count, distance)) break;
    }
    for (std::size_t distance = 1; distance < count; ++distance) {
      if (reaches_member((slot + count - distance) % count, distance)) break;
    }
  }

 private:
  bool reaches_member(std::size_t slot, std::size_t distance) {
    distances_[slot] = std::min(distances_[slot], distance);
    return members_[slot];
  }

  // Twice round the ring, so that what lies behind its end is seen from its beginning.
  template <class SlotAt>
  void sweep(SlotAt slot_at) {
    std::optional<std::size_t> last_member_step;
    for (std::size_t step = 0; step < 2 * members_.size(); ++step) {
      const std::size_t slot = slot_at(step);
      if (last_member_step) {
        distances_[slot] = std::min(distances_[slot], step - *last_member_step);
      }
      if (members_[slot]) last_member_step = step;
    }
  }

  std::vector<bool> members_;
  std::vector<std::size_t> distances_;
};

// A ring whose tokens change hands.
class Draft {
 public:
  // Requires: tokens ascending. Nobody owns them yet.
  explicit Draft(std::vector<Position> tokens)
      : tokens_(std::move(tokens)), owners_(tokens_.size(), kNobody) {}

  explicit Draft(const Topology& topology) {
    for (const Node& node : topology.nodes()) add_node(node);
    for (TabletIndex tablet = 0; tablet < topology.tablet_count(); ++tablet) {
      tokens_.push_back(topology.token_of(tablet));
      owners_.push_back(kNobody);
      give(tablet, topology.owner_of(tablet));
    }
  }

  NodeIndex add_node(Node node) {
    node.tokens.clear();
    const auto next_rack = static_cast<std::uint32_t>(rack_numbers_.size());
    racks_.push_back(
        rack_numbers_.try_emplace({node.datacentre, node.rack}, next_rack).first->second);
    counts_.push_back(0);
    nodes_.push_back(std::move(node));
    return static_cast<NodeIndex>(nodes_.size() - 1);
  }

  std::size_t token_count() const { return tokens_.size(); }
  std::size_t owner_count() const {
    return nodes_.size() - static_cast<std::size_t>(std::ranges::count(counts_, std::size_t{0}));
  }

  // To all nodes. Requires: there are some, and they own nothing yet.
  void deal();
  // The share of one more owner.
  std::size_t share_of_newcomer() const { return tokens_.size() / (owner_count() + 1); }
  // Requires: the newcomer owns nothing, others own everything.
  void take_share(NodeIndex newcomer);
  // Requires: there is another owner, unless the leaver owns nothing.
  void give_away(NodeIndex leaver);

  base::Result<TopologyPtr> finish(Partitioner partitioner) && {
    for (std::size_t slot = 0; slot < tokens_.size(); ++slot) {
      nodes_[owners_[slot]].tokens.push_back(std::move(tokens_[slot]));
    }
    return Topology::make(partitioner, std::move(nodes_));
  }
  base::Result<TopologyPtr> finish_without(NodeIndex leaver, Partitioner partitioner) && {
    ASSERT(counts_[leaver] == 0);
    for (NodeIndex& owner : owners_) {
      if (owner > leaver) --owner;
    }
    nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(leaver));
    return std::move(*this).finish(partitioner);
  }

 private:
  void give(std::size_t slot, NodeIndex to) {
    if (owners_[slot] != kNobody) --counts_[owners_[slot]];
    owners_[slot] = to;
    if (to != kNobody) ++counts_[to];
  }
  std::size_t best_slot(const Spread& of_rack, const Spread& of_node) const;
  NodeIndex best_receiver(std::size_t slot, const std::vector<NodeIndex>& receivers) const;

  std::vector<Node> nodes_;  // without tokens
  std::vector<std::uint32_t> racks_;
  std::vector<std::size_t> counts_;  // of tokens, by node
  std::map<std::pair<std::string, std::string>, std::uint32_t> rack_numbers_;
  std::vector<Position> tokens_;
  std::vector<NodeIndex> owners_;
};

// In rounds in which each node gets one token and racks take turns, so that the tokens of a rack
// are as far apart as can be. Within a rack every round has another order: a node shares its
// tablets with many others, and when it is lost they all help to replace it.
void Draft::deal() {
  std::vector<std::vector<NodeIndex>> nodes_of(rack_numbers_.size());
  for (NodeIndex node = 0; node < nodes_.size(); ++node) nodes_of[racks_[node]].push_back(node);
  std::vector<std::pair<std::size_t, std::size_t>> turns;  // a rack, and which of its nodes
  for (std::size_t nth = 0; turns.size() < nodes_.size(); ++nth) {
    for (std::size_t rack = 0; rack < nodes_of.size(); ++rack) {
      if (nth < nodes_of[rack].size()) turns.emplace_back(rack, nth);
    }
  }
  base::Prng prng(0);
  for (std::size_t slot = 0; slot < tokens_.size(); ++slot) {
    const std::size_t turn = slot % turns.size();
    if (turn == 0) {
      for (auto& nodes : nodes_of) prng.shuffle(nodes);
    }
    const auto [rack, nth] = turns[turn];
    give(slot, nodes_of[rack][nth]);
  }
}

void Draft::take_share(NodeIndex newcomer) {
  ASSERT(counts_[newcomer] == 0);
  const std::size_t share = share_of_newcomer();
  std::vector<bool> in_rack(tokens_.size());
  for (std::size_t slot = 0; slot < tokens_.size(); ++slot) {
    in_rack[slot] = racks_[owners_[slot]] == racks_[newcomer];
  }
  Spread of_rack(std::move(in_rack));
  Spread of_node(std::vector<bool>(tokens_.size()));
  for (std::size_t taken = 0; taken < share; ++taken) {
    const std::size_t slot = best_slot(of_rack, of_node);
    give(slot, newcomer);
    of_rack.add(slot);
    of_node.add(slot);
  }
}

// Of the tokens of those who own the most. The newcomer is never among them: while it has less than
// its share, another has more than that.
std::size_t Draft::best_slot(const Spread& of_rack, const Spread& of_node) const {
  const std::size_t most = *std::ranges::max_element(counts_);
  using Score = std::tuple<std::size_t, std::size_t, std::uint64_t>;
  std::optional<std::pair<Score, std::size_t>> best;
  for (std::size_t slot = 0; slot < owners_.size(); ++slot) {
    if (counts_[owners_[slot]] != most) continue;
    // Among equals an arbitrary one: the first would crowd at the beginning of the ring.
    const Score score(of_rack.distance(slot), of_node.distance(slot), base::mix64(slot));
    if (!best || score > best->first) best.emplace(score, slot);
  }
  ASSERT(best.has_value());
  return best->second;
}

void Draft::give_away(NodeIndex leaver) {
  std::vector<NodeIndex> receivers;
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (node != leaver && counts_[node] > 0) receivers.push_back(node);
  }
  std::vector<std::size_t> freed;
  for (std::size_t slot = 0; slot < owners_.size(); ++slot) {
    if (owners_[slot] == leaver) freed.push_back(slot);
  }
  for (const std::size_t slot : freed) give(slot, kNobody);
  for (const std::size_t slot : freed) give(slot, best_receiver(slot, receivers));
}

NodeIndex Draft::best_receiver(std::size_t slot, const std::vector<NodeIndex>& receivers) const {
  const std::size_t count = owners_.size();
  std::vector<std::size_t> rack_distances(rack_numbers_.size(), count);
  std::vector<std::size_t> node_distances(nodes_.size(), count);
  const auto meet = [&](NodeIndex owner, std::size_t distance) {
    if (owner == kNobody) return;
    node_distances[owner] = std::min(node_distances[owner], distance);
    rack_distances[racks_[owner]] = std::min(rack_distances[racks_[owner]], distance);
  };
  for (std::size_t distance = 1; distance <= count / 2; ++distance) {
    meet(owners_[(slot + distance) % count], distance);
    meet(owners_[(slot + count - distance) % count], distance);
  }

  std::size_t fewest = count;
  for (const NodeIndex node : receivers) fewest = std::min(fewest, counts_[node]);
  using Score = std::pair<std::size_t, std::size_t>;
  std::optional<std::pair<Score, NodeIndex>> best;
  for (const NodeIndex node : receivers) {
    if (counts_[node] != fewest) continue;
    const Score score(rack_distances[racks_[node]], node_distances[node]);
    if (!best || score > best->first) best.emplace(score, node);
  }
  ASSERT(best.has_value());
  return best->second;
}

base::Error comes_with_tokens(const Node& node) {
  return base::Error(base::Errc::invalid_argument, "node {} comes with {} tokens", node.id,
                     node.tokens.size());
}

}  // namespace

base::Result<TopologyPtr> create_ring(Partitioner partitioner, std::vector<Position> tokens,
                                      std::vector<Node> members) {
  for (const Node& member : members) {
    if (!member.tokens.empty()) return comes_with_tokens(member);
  }
  if (members.empty() || tokens.size() < members.size() || tokens.size() > kTokensMax) {
    return base::Error(base::Errc::invalid_argument, "a ring of {} tokens for {} nodes",
                       tokens.size(), members.size());
  }
  // What is wrong with the nodes is told before work is done for them.
  TRY([[maybe_unused]] const auto without_tokens, Topology::make(partitioner, members));
  std::ranges::sort(tokens);
  std::ranges::sort(members, {}, &Node::id);
  Draft draft(std::move(tokens));
  for (Node& member : members) draft.add_node(std::move(member));
  draft.deal();
  return std::move(draft).finish(partitioner);
}

base::Result<TopologyPtr> join(const Topology& topology, Node newcomer) {
  if (!newcomer.tokens.empty()) return comes_with_tokens(newcomer);
  if (topology.find(newcomer.id)) {
    return base::Error(base::Errc::already_exists, "node {} is on the ring", newcomer.id);
  }
  Draft draft(topology);
  if (draft.share_of_newcomer() == 0) {
    return base::Error(base::Errc::invalid_argument, "{} tokens are too few for {} nodes",
                       draft.token_count(), draft.owner_count() + 1);
  }
  draft.take_share(draft.add_node(std::move(newcomer)));
  return std::move(draft).finish(topology.partitioner());
}

base::Result<TopologyPtr> leave(const Topology& topology, model::NodeId leaver) {
  const auto index = topology.find(leaver);
  if (!index) return base::Error(base::Errc::not_found, "node {} is not on the ring", leaver);
  Draft draft(topology);
  if (!topology.node(*index).tokens.empty()) {
    if (draft.owner_count() == 1) {
      return base::Error(base::Errc::invalid_argument, "node {} is the last that owns tokens",
                         leaver);
    }
    draft.give_away(*index);
  }
  return std::move(draft).finish_without(*index, topology.partitioner());
}

}  // namespace helenus::ring
