// Clusters for tests, written down in a few words.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/bytes.h"
#include "metadata/cluster_metadata.h"
#include "metadata/transitions.h"

namespace helenus::metadata::testing {

inline model::NodeId node_id(std::uint8_t number) {
  base::Uuid::Octets octets{};
  octets.back() = std::byte{number};
  return model::NodeId(base::Uuid(octets));
}

inline NodeDescription a_node(std::uint8_t number, std::string rack = "r1",
                              std::string datacentre = "dc1") {
  return {.id = node_id(number),
          .node_address = runtime::Address::v4({10, 0, 0, number}, 7000),
          .client_address = runtime::Address::v4({10, 0, 0, number}, 9042),
          .datacentre = std::move(datacentre),
          .rack = std::move(rack)};
}

// Nodes 1 to `nodes`, each in a rack of its own.
inline ClusterMetadata a_cluster(std::uint8_t nodes, std::size_t tokens = 8) {
  Founding founding{
      .cluster_name = "Troy", .tokens = ring::evenly_spread_tokens(tokens), .nodes = {}};
  for (std::uint8_t i = 1; i <= nodes; ++i) {
    founding.nodes.push_back(a_node(i, "r" + std::to_string(i)));
  }
  auto metadata = found(std::move(founding));
  ASSERT(metadata);
  return *std::move(metadata);
}

inline model::Schema with_keyspace(const model::Schema& schema, std::string name,
                                   std::uint32_t factor) {
  model::Keyspace keyspace;
  keyspace.name = std::move(name);
  keyspace.replication = {{"class", "org.apache.cassandra.locator.SimpleStrategy"},
                          {"replication_factor", std::to_string(factor)}};
  return schema.with(std::move(keyspace));
}

inline ClusterMetadata with_keyspace(const ClusterMetadata& metadata, std::string name,
                                     std::uint32_t factor) {
  auto next = change_schema(metadata, with_keyspace(metadata.schema, std::move(name), factor));
  ASSERT(next);
  return *std::move(next);
}

}  // namespace helenus::metadata::testing
