#include "metadata/metadata_codec.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "base/codec.h"
#include "model/schema_codec.h"

namespace helenus::metadata {

using base::Decoder;
using base::Encoder;
using base::Errc;
using base::Error;
using base::Result;
using model::NodeId;
using runtime::Address;

namespace {

constexpr std::uint8_t kVersion = 1;
// Smallest sizes, which bound what a count can promise.
constexpr std::size_t kAddressSizeMin = 1 + 4 + 2;
constexpr std::size_t kNodeSizeMin =
    base::Uuid::kSize + 2 * kAddressSizeMin + 1 + 1 + 1 + 1 + 1 + 1;
constexpr std::size_t kTabletSizeMin = 4;
constexpr std::size_t kKeyspaceSizeMin = 7;
constexpr std::size_t kCameSizeMin = 3;
constexpr std::size_t kStorageSizeMin = base::Uuid::kSize + 1;
constexpr std::size_t kFactorSizeMin = 2;

enum class StrategyKind : std::uint8_t { simple = 0, network_topology = 1 };

void put(Encoder& out, NodeId node) {
  out.raw(node.value().bytes());
}
NodeId get_node_id(Decoder& in) {
  return NodeId(base::decode_uuid(in));
}

template <class Number>
Number get_number(Decoder& in) {
  const std::uint64_t number = in.varint();
  if (number > kNumberMax) in.fail("too large a number");
  return Number(static_cast<typename Number::Value>(in.ok() ? number : 0));
}

void put(Encoder& out, const Address& address) {
  out.u8(address.family() == Address::Family::v4 ? 4 : 6);
  out.raw(base::as_bytes(address.ip_bytes()));
  out.u16_le(address.port());
}
template <std::size_t kSize>
std::array<std::uint8_t, kSize> get_ip(Decoder& in) {
  std::array<std::uint8_t, kSize> ip{};
  std::ranges::transform(in.raw(kSize), ip.begin(),
                         [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
  return ip;
}
Address get_address(Decoder& in) {
  const std::uint8_t family = in.u8();
  if (family == 4) {
    const auto ip = get_ip<4>(in);
    return Address::v4(ip, in.u16_le());
  }
  if (family != 6) in.fail("neither an IPv4 nor an IPv6 address");
  const auto ip = get_ip<16>(in);
  return Address::v6(ip, in.u16_le());
}

void put(Encoder& out, const Node& node) {
  put(out, node.id());
  put(out, node.description.node_address);
  put(out, node.description.client_address);
  out.prefixed(node.description.datacentre);
  out.prefixed(node.description.rack);
  out.varint(node.number.value());
  out.u8(static_cast<std::uint8_t>(node.state));
  out.varint(node.reentered.value());
  out.u8(node.in_doubt ? 1 : 0);
}
Node get_node(Decoder& in) {
  Node node;
  node.description.id = get_node_id(in);
  node.description.node_address = get_address(in);
  node.description.client_address = get_address(in);
  node.description.datacentre = in.prefixed_text();
  node.description.rack = in.prefixed_text();
  node.number = get_number<NodeNumber>(in);
  const std::uint8_t state = in.u8();
  if (state > static_cast<std::uint8_t>(NodeState::removing)) in.fail("no such state of a node");
  node.state = static_cast<NodeState>(state);
  node.reentered = Epoch(in.varint());
  const std::uint8_t doubt = in.u8();
  if (doubt > 1) in.fail("neither in doubt nor not");
  node.in_doubt = doubt == 1;
  return node;
}

// Owners by their place among the nodes.
std::size_t index_of(const ClusterMetadata& metadata, NodeId node) {
  const Node* found = metadata.find(node);
  ASSERT(found != nullptr);
  return static_cast<std::size_t>(found - metadata.nodes.data());
}
NodeId get_owner(Decoder& in, std::uint64_t index, const ClusterMetadata& metadata) {
  if (index < metadata.nodes.size()) return metadata.nodes[index].id();
  in.fail("a tablet of a node that is not here");
  return {};
}

void put(Encoder& out, const Tablet& tablet, const ClusterMetadata& metadata) {
  out.prefixed(tablet.token.bytes());
  out.varint(index_of(metadata, tablet.owner));
  out.varint(tablet.next_owner ? index_of(metadata, *tablet.next_owner) + 1 : 0);
  out.varint(tablet.epoch.value());
}
Tablet get_tablet(Decoder& in, const ClusterMetadata& metadata) {
  Tablet tablet;
  base::ByteView token = in.prefixed();
  if (token.size() > ring::Position::kSizeMax) {
    in.fail("a token that is too long");
    token = {};
  }
  tablet.token = ring::Position::of_bytes(token);
  tablet.owner = get_owner(in, in.varint(), metadata);
  if (const std::uint64_t next = in.varint(); next > 0) {
    tablet.next_owner = get_owner(in, next - 1, metadata);
  }
  tablet.epoch = Epoch(in.varint());
  return tablet;
}

void put(Encoder& out, const ring::Strategy& strategy) {
  if (const auto* simple = std::get_if<ring::SimpleStrategy>(&strategy)) {
    out.u8(static_cast<std::uint8_t>(StrategyKind::simple));
    out.varint(simple->factor);
    return;
  }
  const auto& factors = std::get<ring::NetworkTopologyStrategy>(strategy).factors;
  out.u8(static_cast<std::uint8_t>(StrategyKind::network_topology));
  out.varint(factors.size());
  for (const auto& [datacentre, factor] : factors) {
    out.prefixed(datacentre);
    out.varint(factor);
  }
}
std::uint32_t get_factor(Decoder& in) {
  const std::uint64_t factor = in.varint();
  if (factor > ring::kFactorMax) in.fail("too large a replication factor");
  return in.ok() ? static_cast<std::uint32_t>(factor) : 0;
}
ring::Strategy get_strategy(Decoder& in) {
  const std::uint8_t kind = in.u8();
  if (kind == static_cast<std::uint8_t>(StrategyKind::simple)) {
    return ring::SimpleStrategy{.factor = get_factor(in)};
  }
  if (kind != static_cast<std::uint8_t>(StrategyKind::network_topology)) {
    in.fail("no such replication strategy");
  }
  ring::NetworkTopologyStrategy strategy;
  const std::size_t count = in.count(kFactorSizeMin);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    std::string datacentre(in.prefixed_text());
    if (!strategy.factors.empty() && datacentre <= strategy.factors.rbegin()->first) {
      in.fail("datacentres are not in order");
    }
    strategy.factors.emplace_hint(strategy.factors.end(), std::move(datacentre), get_factor(in));
  }
  return strategy;
}

void put(Encoder& out, const std::map<ReplicaPlace, Epoch>& came) {
  out.varint(came.size());
  for (const auto& [place, epoch] : came) {
    out.varint(place.tablet);
    out.varint(place.node.value());
    out.varint(epoch.value());
  }
}
void get_came(Decoder& in, std::map<ReplicaPlace, Epoch>& came) {
  const std::size_t count = in.count(kCameSizeMin);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    const std::uint64_t tablet = in.varint();
    if (tablet >= ring::kTokensMax) in.fail("a replica of a tablet that is not there");
    const ReplicaPlace place{.tablet = in.ok() ? static_cast<std::uint32_t>(tablet) : 0,
                             .node = get_number<NodeNumber>(in)};
    if (!came.empty() && place <= came.rbegin()->first) in.fail("replicas are not in order");
    came.emplace_hint(came.end(), place, Epoch(in.varint()));
  }
}

void get_keyspaces(Decoder& in, ClusterMetadata& metadata) {
  const std::size_t count = in.count(kKeyspaceSizeMin);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    std::string name(in.prefixed_text());
    if (!metadata.keyspaces.empty() && name <= metadata.keyspaces.rbegin()->first) {
      in.fail("keyspaces are not in order");
    }
    ReplicatedKeyspace keyspace;
    keyspace.number = get_number<KeyspaceNumber>(in);
    keyspace.began = Epoch(in.varint());
    keyspace.replication.present = get_strategy(in);
    const std::uint8_t changes = in.u8();
    if (changes > 1) in.fail("neither a next replication nor none");
    if (changes == 1) keyspace.replication.next = get_strategy(in);
    get_came(in, keyspace.came);
    metadata.keyspaces.emplace_hint(metadata.keyspaces.end(), std::move(name), std::move(keyspace));
  }
}

void get_storage(Decoder& in, ClusterMetadata& metadata) {
  const std::size_t count = in.count(kStorageSizeMin);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    const base::Uuid table = base::decode_uuid(in);
    if (!metadata.storage.empty() && table <= metadata.storage.rbegin()->first) {
      in.fail("tables are not in order");
    }
    metadata.storage.emplace_hint(metadata.storage.end(), table, get_number<StorageId>(in));
  }
}

ClusterSecret get_secret(Decoder& in) {
  std::array<std::byte, ClusterSecret::kSize> bytes{};
  std::ranges::copy(in.raw(bytes.size()), bytes.begin());
  return {.bytes = base::Secret(bytes)};
}

ring::Partitioner get_partitioner(Decoder& in) {
  const std::uint8_t partitioner = in.u8();
  if (partitioner > static_cast<std::uint8_t>(ring::Partitioner::ordered)) {
    in.fail("no such partitioner");
  }
  return static_cast<ring::Partitioner>(partitioner);
}

}  // namespace

base::Bytes encode(const ClusterMetadata& metadata) {
  base::Buffer buffer;
  Encoder out(buffer);
  out.u8(kVersion);
  out.prefixed(metadata.cluster_name);
  out.u8(static_cast<std::uint8_t>(metadata.partitioner));
  out.varint(metadata.epoch.value());
  out.varint(metadata.joint.value());
  out.varint(metadata.nodes.size());
  for (const Node& node : metadata.nodes) put(out, node);
  out.varint(metadata.tablets.size());
  for (const Tablet& tablet : metadata.tablets) put(out, tablet, metadata);
  out.varint(metadata.keyspaces.size());
  for (const auto& [name, keyspace] : metadata.keyspaces) {
    const Replication& replication = keyspace.replication;
    out.prefixed(name);
    out.varint(keyspace.number.value());
    out.varint(keyspace.began.value());
    put(out, replication.present);
    out.u8(replication.next ? 1 : 0);
    if (replication.next) put(out, *replication.next);
    put(out, keyspace.came);
  }
  out.varint(metadata.storage.size());
  for (const auto& [table, id] : metadata.storage) {
    out.raw(table.bytes());
    out.varint(id.value());
  }
  out.varint(metadata.removed.size());
  for (const NodeId node : metadata.removed) put(out, node);
  out.varint(metadata.next.node.value());
  out.varint(metadata.next.keyspace.value());
  out.varint(metadata.next.storage.value());
  out.raw(metadata.secret.bytes.reveal());
  out.prefixed(model::encode(metadata.schema).view());
  return std::move(buffer).freeze();
}

Result<ClusterMetadata> decode_cluster_metadata(base::ByteView bytes) {
  Decoder in(bytes);
  const std::uint8_t version = in.u8();
  if (in.ok() && version != kVersion) {
    return Error(Errc::unsupported, "metadata version {}, this program reads version {}", version,
                 kVersion);
  }
  ClusterMetadata metadata;
  metadata.cluster_name = in.prefixed_text();
  metadata.partitioner = get_partitioner(in);
  metadata.epoch = Epoch(in.varint());
  metadata.joint = Epoch(in.varint());
  const std::size_t nodes = in.count(kNodeSizeMin);
  for (std::size_t i = 0; i < nodes && in.ok(); ++i) {
    metadata.nodes.push_back(get_node(in));
  }
  const std::size_t tablets = in.count(kTabletSizeMin);
  for (std::size_t i = 0; i < tablets && in.ok(); ++i) {
    metadata.tablets.push_back(get_tablet(in, metadata));
  }
  get_keyspaces(in, metadata);
  get_storage(in, metadata);
  const std::size_t removed = in.count(base::Uuid::kSize);
  for (std::size_t i = 0; i < removed && in.ok(); ++i) {
    metadata.removed.push_back(get_node_id(in));
  }
  metadata.next.node = get_number<NodeNumber>(in);
  metadata.next.keyspace = get_number<KeyspaceNumber>(in);
  metadata.next.storage = get_number<StorageId>(in);
  metadata.secret = get_secret(in);
  const base::ByteView schema = in.prefixed();
  TRY_VOID(in.finish());
  TRY(metadata.schema, model::decode_schema(schema));
  if (auto valid = validate(metadata); !valid) {
    return Error(Errc::corrupt, "{}", valid.error().context());
  }
  return metadata;
}

}  // namespace helenus::metadata
