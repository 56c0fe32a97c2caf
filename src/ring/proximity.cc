#include "ring/proximity.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/assert.h"

namespace helenus::ring {

namespace {

// More than the number of different powers of two.
constexpr unsigned kLatencyRanks = 128;

unsigned rank_of(const Proximity::Latency& latency) {
  if (!latency) return 0;
  ASSERT(latency->count() >= 0, "{} ns", latency->count());
  return 1 + static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(latency->count())));
}

}  // namespace

Nearness nearness_of(const Topology& topology, NodeIndex from, NodeIndex to) {
  if (from == to) return Nearness::same_node;
  if (topology.rack_number(from) == topology.rack_number(to)) return Nearness::same_rack;
  return topology.datacentre_number(from) == topology.datacentre_number(to)
             ? Nearness::same_datacentre
             : Nearness::elsewhere;
}

Proximity::Proximity(TopologyPtr topology, NodeIndex self, std::span<const Latency> latencies)
    : topology_(std::move(topology)) {
  ASSERT(self < topology_->nodes().size(), "node {} of {}", self, topology_->nodes().size());
  ranks_.reserve(topology_->nodes().size());
  for (NodeIndex node = 0; node < topology_->nodes().size(); ++node) {
    const unsigned latency_rank = node < latencies.size() ? rank_of(latencies[node]) : 0;
    ASSERT(latency_rank < kLatencyRanks);
    const auto nearness = static_cast<unsigned>(nearness_of(*topology_, self, node));
    ranks_.push_back(nearness * kLatencyRanks + latency_rank);
  }
}

std::vector<NodeIndex> Proximity::nearest_first(std::span<const NodeIndex> replicas) const {
  // With its place in the order given, because std::sort may exchange equals.
  std::vector<std::pair<unsigned, std::size_t>> ranked;
  ranked.reserve(replicas.size());
  for (std::size_t place = 0; place < replicas.size(); ++place) {
    ASSERT(replicas[place] < ranks_.size(), "node {} of {}", replicas[place], ranks_.size());
    ranked.emplace_back(ranks_[replicas[place]], place);
  }
  std::ranges::sort(ranked);
  std::vector<NodeIndex> sorted;
  sorted.reserve(replicas.size());
  for (const auto& [rank, place] : ranked) sorted.push_back(replicas[place]);
  return sorted;
}

}  // namespace helenus::ring
