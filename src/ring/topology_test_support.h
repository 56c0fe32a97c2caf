// Topologies for tests: written down in a few words, or drawn at random with datacentres and racks
// so few and so uneven that every shortage occurs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "base/uuid.h"
#include "ring/placement.h"
#include "ring/topology.h"

namespace helenus::ring::testing {

inline model::NodeId node_id(std::uint64_t number) {
  base::Uuid::Octets octets{};
  for (std::size_t index = 0; index < 8; ++index) {
    octets[15 - index] = static_cast<std::byte>(number >> (8 * index));
  }
  return model::NodeId(base::Uuid(octets));
}

inline Position at(std::int64_t token) {
  return Position::of_token(model::Token(token));
}

// Node `number`, with its tokens.
inline Node a_node(std::uint64_t number, std::string datacentre, std::string rack,
                   const std::vector<std::int64_t>& tokens) {
  Node node{node_id(number), std::move(datacentre), std::move(rack), {}};
  for (const std::int64_t token : tokens) node.tokens.push_back(at(token));
  return node;
}

inline Position random_position(Partitioner partitioner, base::Prng& prng) {
  if (partitioner == Partitioner::murmur3) return at(static_cast<std::int64_t>(prng.next()));
  std::string bytes;
  for (std::uint64_t left = prng.below(6); left > 0; --left) {
    bytes.push_back(static_cast<char>(prng.below(4) * 85));
  }
  return Position::of_bytes(base::as_bytes(bytes));
}

// Up to 20 nodes in up to 3 datacentres of up to 5 racks, each with up to 8 tokens; some have none.
inline std::vector<Node> random_nodes(Partitioner partitioner, base::Prng& prng) {
  const std::uint64_t datacentre_count = prng.between(1, 3);
  const std::uint64_t rack_count = prng.between(1, 5);
  const std::uint64_t tokens_max = prng.between(1, 8);
  std::map<Position, bool> taken;
  std::vector<Node> nodes(prng.between(1, 20));
  std::uint64_t number = 0;
  for (Node& node : nodes) {
    node.id = node_id(++number);
    node.datacentre = "dc" + std::to_string(prng.below(datacentre_count));
    // The smaller of two draws: some racks are full and some have one node.
    node.rack = "r" + std::to_string(std::min(prng.below(rack_count), prng.below(rack_count)));
    for (std::uint64_t left = prng.between(0, tokens_max); left > 0; --left) {
      const Position token = random_position(partitioner, prng);
      if (taken.try_emplace(token).second) node.tokens.push_back(token);
    }
  }
  return nodes;
}

inline Strategy random_strategy(base::Prng& prng) {
  if (prng.chance(0.3)) return SimpleStrategy{static_cast<std::uint32_t>(prng.below(8))};
  NetworkTopologyStrategy strategy;
  // One datacentre more than there can be.
  for (std::uint64_t datacentre = 0; datacentre < 4; ++datacentre) {
    if (prng.chance(0.2)) continue;
    strategy.factors["dc" + std::to_string(datacentre)] = static_cast<std::uint32_t>(prng.below(7));
  }
  return strategy;
}

}  // namespace helenus::ring::testing
