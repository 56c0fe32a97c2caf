#include "ring/topology.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/assert.h"

namespace helenus::ring {

namespace {

constexpr std::size_t kMurmur3PositionSize = 8;

base::Result<void> check_name(std::string_view what, std::string_view name, model::NodeId id) {
  if (!name.empty() && name.size() <= Topology::kNameSizeMax) return {};
  return base::Error(base::Errc::invalid_argument, "node {}: a {} name of {} bytes", id, what,
                     name.size());
}

// Whether a position lies in (start, end]; start == end is the whole ring.
bool is_between(const Position& start, const Position& position, const Position& end) {
  if (start < end) return start < position && position <= end;
  return start < position || position <= end;
}

}  // namespace

base::Result<TopologyPtr> Topology::make(Partitioner partitioner, std::vector<Node> nodes) {
  std::ranges::sort(nodes, {}, &Node::id);
  auto topology = std::make_shared<Topology>(Topology(partitioner, std::move(nodes)));
  TRY_VOID(topology->check_nodes());
  TRY_VOID(topology->lay_out_tokens());
  topology->number_places();
  return TopologyPtr(std::move(topology));
}

base::Result<void> Topology::check_nodes() const {
  if (nodes_.size() > kNodesMax) {
    return base::Error(base::Errc::invalid_argument, "{} nodes, more than {}", nodes_.size(),
                       kNodesMax);
  }
  const auto twice = std::ranges::adjacent_find(nodes_, {}, &Node::id);
  if (twice != nodes_.end()) {
    return base::Error(base::Errc::invalid_argument, "node {} is there twice", twice->id);
  }
  for (const Node& node : nodes_) {
    TRY_VOID(check_name("datacentre", node.datacentre, node.id));
    TRY_VOID(check_name("rack", node.rack, node.id));
    for (const Position& token : node.tokens) {
      if (partitioner_ == Partitioner::murmur3 && token.bytes().size() != kMurmur3PositionSize) {
        return base::Error(base::Errc::invalid_argument, "node {}: a token of {} bytes", node.id,
                           token.bytes().size());
      }
    }
  }
  return {};
}

base::Result<void> Topology::lay_out_tokens() {
  std::size_t count = 0;
  for (const Node& node : nodes_) count += node.tokens.size();
  if (count > kTokensMax) {
    return base::Error(base::Errc::invalid_argument, "{} tokens, more than {}", count, kTokensMax);
  }
  slots_.reserve(count);
  for (NodeIndex index = 0; index < nodes_.size(); ++index) {
    std::ranges::sort(nodes_[index].tokens);
    for (const Position& token : nodes_[index].tokens) slots_.push_back({token, index});
  }
  std::ranges::sort(slots_);
  const auto twice = std::ranges::adjacent_find(slots_, {}, &Slot::token);
  if (twice != slots_.end()) {
    return base::Error(base::Errc::invalid_argument, "token {} belongs to {} and {}",
                       to_text(partitioner_, twice->token), nodes_[twice->owner].id,
                       nodes_[std::next(twice)->owner].id);
  }
  return {};
}

void Topology::number_places() {
  std::map<std::string_view, std::uint32_t> datacentre_numbers;
  std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> rack_numbers;
  places_.reserve(nodes_.size());
  for (const Node& node : nodes_) {
    const auto next_datacentre = static_cast<std::uint32_t>(datacentre_numbers.size());
    const auto [datacentre, is_new] =
        datacentre_numbers.try_emplace(node.datacentre, next_datacentre);
    if (is_new) datacentres_.push_back(node.datacentre);
    const auto next_rack = static_cast<std::uint32_t>(rack_numbers.size());
    const auto rack = rack_numbers.try_emplace({datacentre->second, node.rack}, next_rack).first;
    places_.push_back({datacentre->second, rack->second});
  }
  rack_count_ = rack_numbers.size();
}

const Node& Topology::node(NodeIndex index) const {
  ASSERT(index < nodes_.size(), "node {} of {}", index, nodes_.size());
  return nodes_[index];
}

std::optional<NodeIndex> Topology::find(model::NodeId id) const {
  const auto found = std::ranges::lower_bound(nodes_, id, {}, &Node::id);
  if (found == nodes_.end() || found->id != id) return std::nullopt;
  return static_cast<NodeIndex>(found - nodes_.begin());
}

const Position& Topology::start_of(TabletIndex tablet) const {
  ASSERT(tablet < slots_.size(), "tablet {} of {}", tablet, slots_.size());
  return slots_[tablet == 0 ? slots_.size() - 1 : tablet - 1].token;
}

TabletIndex Topology::tablet_at(const Position& position) const {
  ASSERT(!slots_.empty());
  const auto found = std::ranges::lower_bound(slots_, position, {}, &Slot::token);
  return found == slots_.end() ? 0 : static_cast<TabletIndex>(found - slots_.begin());
}

std::vector<TabletRange> Topology::ranges_in(const Position& start, const Position& end) const {
  std::vector<TabletRange> ranges;
  if (slots_.empty()) return ranges;
  const auto behind = std::ranges::upper_bound(slots_, start, {}, &Slot::token);
  auto tablet = behind == slots_.end() ? 0 : static_cast<TabletIndex>(behind - slots_.begin());
  const Position* from = &start;
  while (!is_between(*from, end, slots_[tablet].token)) {
    ranges.push_back({*from, slots_[tablet].token, tablet});
    ASSERT(ranges.size() <= slots_.size());
    from = &slots_[tablet].token;
    tablet = tablet + 1 == slots_.size() ? 0 : tablet + 1;
  }
  ranges.push_back({*from, end, tablet});
  return ranges;
}

}  // namespace helenus::ring
