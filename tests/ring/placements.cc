// Random rings and where the ring module places tablets on them, as JSON for token_map_test.py.
//
//   helenus-test-placements SEED COUNT
//
// One line a case: the partitioner, the nodes with their tokens as drivers read them, the options
// of a keyspace, the replicas at every token, and keys with the token and the replicas they have.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/prng.h"
#include "ring/placement.h"
#include "ring/token_assignment.h"
#include "ring/topology_test_support.h"

namespace helenus::ring {
namespace {

constexpr int kKeysPerCase = 20;

nlohmann::json options_of(const Strategy& strategy) {
  nlohmann::json options = nlohmann::json::object();
  if (const auto* simple = std::get_if<SimpleStrategy>(&strategy)) {
    options["class"] = "SimpleStrategy";
    options["replication_factor"] = std::to_string(simple->factor);
    return options;
  }
  options["class"] = "NetworkTopologyStrategy";
  for (const auto& [datacentre, factor] : std::get<NetworkTopologyStrategy>(strategy).factors) {
    options[datacentre] = std::to_string(factor);
  }
  return options;
}

nlohmann::json nodes_of(const Topology& topology) {
  nlohmann::json nodes = nlohmann::json::array();
  for (const Node& node : topology.nodes()) {
    nlohmann::json tokens = nlohmann::json::array();
    for (const Position& token : node.tokens) {
      tokens.push_back(to_text(topology.partitioner(), token));
    }
    nodes.push_back({{"datacentre", node.datacentre}, {"rack", node.rack}, {"tokens", tokens}});
  }
  return nodes;
}

std::string random_key(base::Prng& prng) {
  std::string key;
  for (std::uint64_t left = prng.between(1, 40); left > 0; --left) {
    key.push_back(static_cast<char>(prng.below(256)));
  }
  return key;
}

// Tokens at random, or dealt out and then changed by a node that joins and one that leaves.
TopologyPtr random_topology(Partitioner partitioner, base::Prng& prng) {
  std::vector<Node> nodes = testing::random_nodes(partitioner, prng);
  if (prng.chance(0.7)) return *Topology::make(partitioner, std::move(nodes));
  for (Node& node : nodes) node.tokens.clear();
  Node newcomer = nodes.front();
  newcomer.id = testing::node_id(nodes.size() + 1);
  const model::NodeId leaver = nodes[prng.below(nodes.size())].id;
  const auto tokens = evenly_spread_tokens(prng.between(nodes.size() + 1, 64));
  const auto created = *create_ring(partitioner, tokens, std::move(nodes));
  const auto joined = *join(*created, std::move(newcomer));
  return *leave(*joined, leaver);
}

nlohmann::json random_case(base::Prng& prng) {
  const auto partitioner = prng.chance(0.7) ? Partitioner::murmur3 : Partitioner::ordered;
  const TopologyPtr topology = random_topology(partitioner, prng);
  const Strategy strategy = testing::random_strategy(prng);
  const Placement placement(topology, strategy);

  nlohmann::json tablets = nlohmann::json::array();
  for (TabletIndex tablet = 0; tablet < topology->tablet_count(); ++tablet) {
    tablets.push_back({{"token", to_text(partitioner, topology->token_of(tablet))},
                       {"replicas", placement.replicas_of(tablet)}});
  }
  nlohmann::json keys = nlohmann::json::array();
  for (int drawn = 0; drawn < kKeysPerCase && topology->tablet_count() > 0; ++drawn) {
    const std::string key = random_key(prng);
    const Position position = position_of(partitioner, base::as_bytes(key));
    keys.push_back({{"key", base::to_hex(base::as_bytes(key))},
                    {"token", to_text(partitioner, position)},
                    {"replicas", placement.replicas_at(position)}});
  }
  return {{"partitioner", class_name_of(partitioner)},
          {"nodes", nodes_of(*topology)},
          {"replication", options_of(strategy)},
          {"tablets", tablets},
          {"keys", keys}};
}

}  // namespace
}  // namespace helenus::ring

int main(int argument_count, char** arguments) {
  if (argument_count != 3) {
    fmt::print(stderr, "usage: {} SEED COUNT\n", arguments[0]);
    return 2;
  }
  const std::uint64_t seed = std::strtoull(arguments[1], nullptr, 10);
  const std::uint64_t count = std::strtoull(arguments[2], nullptr, 10);
  for (std::uint64_t index = 0; index < count; ++index) {
    auto prng = helenus::base::Prng::for_purpose(seed, "placements", index);
    fmt::print("{}\n", helenus::ring::random_case(prng).dump());
  }
  return 0;
}
