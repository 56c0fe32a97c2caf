#include "ring/placement.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/assert.h"

namespace helenus::ring {

namespace {

constexpr std::string_view kPackage = "org.apache.cassandra.locator.";
constexpr std::string_view kSimple = "SimpleStrategy";
constexpr std::string_view kNetworkTopology = "NetworkTopologyStrategy";
constexpr std::string_view kClassOption = "class";
constexpr std::string_view kFactorOption = "replication_factor";

base::Result<std::uint32_t> parse_factor(std::string_view option, std::string_view text) {
  std::uint32_t factor = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, factor);
  if (parsed.ec != std::errc() || parsed.ptr != end || factor > kFactorMax) {
    return base::Error(base::Errc::invalid_argument, "'{}' is no replication factor for '{}'", text,
                       option);
  }
  return factor;
}

base::Result<Strategy> parse_simple(const model::OptionMap& options) {
  std::optional<std::uint32_t> factor;
  for (const auto& [option, text] : options) {
    if (option == kClassOption) continue;
    if (option != kFactorOption) {
      return base::Error(base::Errc::invalid_argument, "SimpleStrategy has no option '{}'", option);
    }
    TRY(factor, parse_factor(option, text));
  }
  if (!factor) {
    return base::Error(base::Errc::invalid_argument, "SimpleStrategy without replication_factor");
  }
  return SimpleStrategy{*factor};
}

base::Result<Strategy> parse_network_topology(const model::OptionMap& options) {
  NetworkTopologyStrategy strategy;
  for (const auto& [option, text] : options) {
    if (option == kClassOption) continue;
    if (option == kFactorOption) {
      return base::Error(base::Errc::invalid_argument,
                         "NetworkTopologyStrategy needs a factor for each datacentre");
    }
    TRY(strategy.factors[option], parse_factor(option, text));
  }
  return strategy;
}

// What is still wanted of one datacentre while one tablet's replicas are sought.
struct Wanted {
  std::uint32_t replicas = 0;
  // Replicas beyond one of each rack. They are taken as they are met: the others are as many as
  // there are racks, so every rack still gets its one.
  std::uint32_t rack_repeats = 0;
};

// What every tablet begins with, by datacentre: how many replicas it can have of it.
std::vector<Wanted> wanted_by_datacentre(const Topology& topology,
                                         const NetworkTopologyStrategy& strategy) {
  const std::size_t count = topology.datacentres().size();
  std::vector<std::uint32_t> nodes(count);
  std::vector<std::uint32_t> racks(count);
  std::vector<bool> is_rack_counted(topology.rack_count());
  for (NodeIndex node = 0; node < topology.nodes().size(); ++node) {
    // A node without tokens is never met.
    if (topology.node(node).tokens.empty()) continue;
    const std::uint32_t datacentre = topology.datacentre_number(node);
    ++nodes[datacentre];
    if (is_rack_counted[topology.rack_number(node)]) continue;
    is_rack_counted[topology.rack_number(node)] = true;
    ++racks[datacentre];
  }
  std::vector<Wanted> wanted(count);
  for (std::size_t datacentre = 0; datacentre < count; ++datacentre) {
    const auto factor = strategy.factors.find(topology.datacentres()[datacentre]);
    if (factor == strategy.factors.end()) continue;
    wanted[datacentre].replicas = std::min(factor->second, nodes[datacentre]);
    wanted[datacentre].rack_repeats =
        wanted[datacentre].replicas - std::min(wanted[datacentre].replicas, racks[datacentre]);
  }
  return wanted;
}

// Which nodes or racks a walk has met, forgotten at once when the next walk begins.
class Met {
 public:
  explicit Met(std::size_t count) : walks_(count) {}

  void begin_walk() { ++walk_; }
  bool contains(std::uint32_t index) const { return walks_[index] == walk_; }
  bool insert(std::uint32_t index) { return std::exchange(walks_[index], walk_) != walk_; }

 private:
  std::vector<std::uint32_t> walks_;
  std::uint32_t walk_ = 0;
};

}  // namespace

base::Result<Strategy> parse_strategy(const model::OptionMap& options) {
  const auto found = options.find(std::string(kClassOption));
  std::string_view name = found == options.end() ? std::string_view() : found->second;
  if (name.starts_with(kPackage)) name.remove_prefix(kPackage.size());
  if (name == kSimple) return parse_simple(options);
  if (name == kNetworkTopology) return parse_network_topology(options);
  return base::Error(base::Errc::invalid_argument, "no replication strategy is called '{}'", name);
}

Placement::Placement(TopologyPtr topology, const Strategy& strategy)
    : topology_(std::move(topology)) {
  ASSERT(topology_ != nullptr);
  ends_.reserve(topology_->tablet_count());
  if (const auto* simple = std::get_if<SimpleStrategy>(&strategy)) {
    place_simple(simple->factor);
  } else {
    place_by_datacentre(std::get<NetworkTopologyStrategy>(strategy));
  }
  ASSERT(ends_.size() == topology_->tablet_count());
}

void Placement::place_simple(std::uint32_t factor) {
  const auto tablet_count = static_cast<TabletIndex>(topology_->tablet_count());
  Met nodes(topology_->nodes().size());
  for (TabletIndex tablet = 0; tablet < tablet_count; ++tablet) {
    nodes.begin_walk();
    std::uint32_t missing = factor;
    for (TabletIndex step = 0; step < tablet_count && missing > 0; ++step) {
      const NodeIndex node = topology_->owner_of((tablet + step) % tablet_count);
      if (!nodes.insert(node)) continue;
      replicas_.push_back(node);
      --missing;
    }
    ends_.push_back(static_cast<std::uint32_t>(replicas_.size()));
  }
}

void Placement::place_by_datacentre(const NetworkTopologyStrategy& strategy) {
  const auto tablet_count = static_cast<TabletIndex>(topology_->tablet_count());
  const std::vector<Wanted> wanted_of_all = wanted_by_datacentre(*topology_, strategy);
  std::uint32_t replica_count = 0;
  for (const Wanted& wanted : wanted_of_all) replica_count += wanted.replicas;

  Met nodes(topology_->nodes().size());
  Met racks(topology_->rack_count());
  std::vector<Wanted> wanted_of;
  for (TabletIndex tablet = 0; tablet < tablet_count; ++tablet) {
    nodes.begin_walk();
    racks.begin_walk();
    wanted_of = wanted_of_all;
    std::uint32_t missing = replica_count;
    for (TabletIndex step = 0; step < tablet_count && missing > 0; ++step) {
      const NodeIndex node = topology_->owner_of((tablet + step) % tablet_count);
      Wanted& wanted = wanted_of[topology_->datacentre_number(node)];
      if (wanted.replicas == 0 || nodes.contains(node)) continue;
      if (!racks.insert(topology_->rack_number(node))) {
        if (wanted.rack_repeats == 0) continue;
        --wanted.rack_repeats;
      }
      nodes.insert(node);
      replicas_.push_back(node);
      --wanted.replicas;
      --missing;
    }
    ASSERT(missing == 0, "tablet {} misses {} replicas", tablet, missing);
    ends_.push_back(static_cast<std::uint32_t>(replicas_.size()));
  }
}

std::span<const NodeIndex> Placement::replicas_of(TabletIndex tablet) const {
  ASSERT(tablet < ends_.size(), "tablet {} of {}", tablet, ends_.size());
  const std::size_t begin = tablet == 0 ? 0 : ends_[tablet - 1];
  return std::span(replicas_).subspan(begin, ends_[tablet] - begin);
}

std::span<const NodeIndex> Placement::replicas_at(const Position& position) const {
  return replicas_of(topology_->tablet_at(position));
}

std::vector<TabletIndex> Placement::tablets_on(NodeIndex node) const {
  std::vector<TabletIndex> tablets;
  for (TabletIndex tablet = 0; tablet < ends_.size(); ++tablet) {
    if (holds(node, tablet)) tablets.push_back(tablet);
  }
  return tablets;
}

bool Placement::holds(NodeIndex node, TabletIndex tablet) const {
  return std::ranges::find(replicas_of(tablet), node) != replicas_of(tablet).end();
}

}  // namespace helenus::ring
