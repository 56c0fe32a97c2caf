#include "admin/cluster_report.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/assert.h"
#include "cql/protocol/primitives.h"
#include "membership/application_state.h"
#include "ring/placement.h"
#include "ring/topology.h"

namespace helenus::admin {

using base::Errc;
using base::Error;
using base::Result;
using cql::PeerFacts;
using membership::StateKey;
using metadata::ClusterMetadata;
using metadata::NodeState;
using model::NodeId;
// Fields stay in the order in which people read them.
using Json = nlohmann::ordered_json;

namespace {

template <class Value>
std::optional<Value> said(const membership::NodeStates& states, StateKey key,
                          Result<Value> (*decode)(base::ByteView)) {
  const base::Bytes* value = states.find(key);
  if (value == nullptr) return std::nullopt;
  Result<Value> decoded = decode(*value);
  if (!decoded) return std::nullopt;
  return *std::move(decoded);
}

Heard heard_of(const ClusterMoment& moment, NodeId node) {
  const auto found = moment.heard.find(node);
  return found == moment.heard.end() ? Heard() : found->second;
}

bool is_member(const metadata::Node& node) {
  return node.state != NodeState::joining;
}

// One that is being removed is fenced off, whatever its heart does.
bool is_up(const metadata::Node& node, const Heard& heard) {
  return heard.is_alive && heard.serves_clients && node.state != NodeState::removing;
}

std::map<NodeId, std::vector<model::Token>> tokens_by_owner(const ClusterMetadata& metadata) {
  std::map<NodeId, std::vector<model::Token>> tokens;
  if (metadata.partitioner != ring::Partitioner::murmur3) return tokens;
  for (const metadata::Tablet& tablet : metadata.tablets) {
    tokens[tablet.owner].push_back(tablet.token.token());
  }
  return tokens;
}

}  // namespace

HeardByNode heard_by(const membership::Membership& membership) {
  HeardByNode heard;
  for (const auto& [node, states] : membership.gossip().nodes()) {
    const auto* seen = membership.view().find(node);
    heard[node] = {
        .is_alive = node == membership.gossip().self() || (seen != nullptr && seen->alive),
        .serves_clients = said(states, StateKey::serves_clients, membership::decode_serves_clients)
                              .value_or(false),
        .generation = states.generation(),
        .schema_version = said(states, StateKey::schema_version, membership::decode_schema_version),
        .metadata_version =
            said(states, StateKey::metadata_version, membership::decode_metadata_version),
        .load_bytes = said(states, StateKey::load, membership::decode_load)};
  }
  return heard;
}

cql::ClusterPeers peers_of(const ClusterMoment& moment) {
  auto tokens = tokens_by_owner(moment.metadata);
  cql::ClusterPeers peers{.own_tokens = std::move(tokens[moment.self]), .others = {}};
  for (const metadata::Node& node : moment.metadata.nodes) {
    if (node.id() == moment.self || !is_member(node)) continue;
    const Heard heard = heard_of(moment, node.id());
    peers.others.push_back({.host_id = node.id().value(),
                            .node_address = node.description.node_address,
                            .cql_address = node.description.client_address,
                            .data_center = node.description.datacentre,
                            .rack = node.description.rack,
                            .tokens = std::move(tokens[node.id()]),
                            .schema_version = heard.schema_version.value_or(base::Uuid()),
                            .is_up = is_up(node, heard)});
  }
  return peers;
}

std::vector<cql::RangeOwners> ranges_of(const cql::ClusterPeers& peers, const PeerFacts& self,
                                        const model::Keyspace& keyspace) {
  std::vector<ring::Node> nodes;
  std::map<NodeId, std::string> addresses;
  const auto add = [&](const PeerFacts& node, const std::vector<model::Token>& tokens) {
    const NodeId id(node.host_id);
    addresses[id] = node.node_address.to_string();
    nodes.push_back({.id = id, .datacentre = node.data_center, .rack = node.rack, .tokens = {}});
    for (const model::Token token : tokens) {
      nodes.back().tokens.push_back(ring::Position::of_token(token));
    }
  };
  add(self, peers.own_tokens);
  for (const PeerFacts& peer : peers.others) add(peer, peer.tokens);
  const auto topology = ring::Topology::make(ring::Partitioner::murmur3, std::move(nodes));
  const auto strategy = ring::parse_strategy(keyspace.replication);
  std::vector<cql::RangeOwners> ranges;
  if (!topology || !strategy) return ranges;
  const ring::Placement placement(*topology, *strategy);
  for (ring::TabletIndex i = 0; i < (*topology)->tablet_count(); ++i) {
    cql::RangeOwners range{.token = (*topology)->token_of(i).token(), .addresses = {}};
    for (const ring::NodeIndex replica : placement.replicas_of(i)) {
      range.addresses.push_back(addresses.at((*topology)->node(replica).id));
    }
    ranges.push_back(std::move(range));
  }
  return ranges;
}

// ---- News for drivers ----

namespace {

using cql::protocol::Event;
using cql::protocol::StatusChangeKind;
using cql::protocol::TopologyChangeKind;

cql::protocol::Inet inet_of(const runtime::Address& address) {
  const base::ByteView ip = base::as_bytes(address.ip_bytes());
  cql::protocol::Inet inet{
      .octets = {}, .size = static_cast<std::uint8_t>(ip.size()), .port = address.port()};
  std::ranges::copy(ip, inet.octets.begin());
  return inet;
}

Event topology_change(TopologyChangeKind kind, const runtime::Address& address) {
  return cql::protocol::TopologyChange{.kind = kind, .node = inet_of(address)};
}

Event status_change(StatusChangeKind kind, const runtime::Address& address) {
  return cql::protocol::StatusChange{.kind = kind, .node = inet_of(address)};
}

const PeerFacts* find_peer(const cql::ClusterPeers& peers, const base::Uuid& host) {
  const auto found = std::ranges::lower_bound(peers.others, host, {}, &PeerFacts::host_id);
  return found == peers.others.end() || found->host_id != host ? nullptr : &*found;
}

}  // namespace

PeerNews::PeerNews(const ClusterMoment& start)
    : peers_(std::make_shared<const cql::ClusterPeers>(peers_of(start))) {
  for (const PeerFacts& peer : peers_->others) {
    told_[peer.host_id] = {.address = peer.cql_address,
                           .is_up = peer.is_up,
                           .generation = heard_of(start, NodeId(peer.host_id)).generation};
  }
}

std::optional<PeerNews::News> PeerNews::take(const ClusterMoment& now) {
  auto next = std::make_shared<const cql::ClusterPeers>(peers_of(now));
  News news{.peers = next, .events = {}};
  std::erase_if(told_, [&](const auto& entry) {
    const auto& [host, told] = entry;
    const PeerFacts* peer = find_peer(*next, host);
    if (peer != nullptr && peer->cql_address == told.address) return false;
    news.events.push_back(topology_change(TopologyChangeKind::removed_node, told.address));
    return true;
  });
  for (const PeerFacts& peer : next->others) {
    const runtime::Address& address = peer.cql_address;
    const auto generation = heard_of(now, NodeId(peer.host_id)).generation;
    auto told = told_.find(peer.host_id);
    if (told == told_.end()) {
      if (!peer.is_up) continue;
      news.events.push_back(topology_change(TopologyChangeKind::new_node, address));
      told = told_.insert({peer.host_id, {.address = address}}).first;
    }
    const bool began_anew = told->second.generation != generation;
    if (told->second.is_up && (!peer.is_up || began_anew)) {
      news.events.push_back(status_change(StatusChangeKind::down, address));
    }
    if (peer.is_up && (!told->second.is_up || began_anew)) {
      news.events.push_back(status_change(StatusChangeKind::up, address));
    }
    told->second.is_up = peer.is_up;
    told->second.generation = generation;
  }
  if (*next == *peers_ && news.events.empty()) return std::nullopt;
  peers_ = std::move(next);
  return news;
}

// ---- JSON for operators ----

namespace {

// Names may be anything that a peer took for text.
std::string text_of(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

// The part of the ring that each tablet is, by its place in `tablets`; none for an ordered
// partitioner, whose ranges have no size.
std::vector<double> shares_of(const ClusterMetadata& metadata) {
  std::vector<double> shares;
  if (metadata.partitioner != ring::Partitioner::murmur3) return shares;
  if (metadata.tablets.size() == 1) return {1};
  const auto place = [&](std::size_t i) {
    return static_cast<std::uint64_t>(metadata.tablets[i].token.token().value());
  };
  for (std::size_t i = 0; i < metadata.tablets.size(); ++i) {
    const std::uint64_t before = place(i == 0 ? metadata.tablets.size() - 1 : i - 1);
    shares.push_back(std::ldexp(static_cast<double>(place(i) - before), -64));
  }
  return shares;
}

Result<const metadata::Replication*> find_replication(const ClusterMetadata& metadata,
                                                      std::string_view keyspace) {
  const auto found = metadata.keyspaces.find(keyspace);
  if (found != metadata.keyspaces.end()) return &found->second.replication;
  return Error(Errc::not_found, "there is no keyspace {}", keyspace);
}

// What share of the ring each node answers for: by its tokens, or as a member.
Result<std::map<NodeId, double>> ownership(const ClusterMetadata& metadata,
                                           std::string_view keyspace) {
  std::map<NodeId, double> owned;
  const std::vector<double> shares = shares_of(metadata);
  if (keyspace.empty()) {
    for (std::size_t i = 0; i < shares.size(); ++i) owned[metadata.tablets[i].owner] += shares[i];
    return owned;
  }
  TRY(const metadata::Replication* replication, find_replication(metadata, keyspace));
  const auto replicas = metadata::replicas_of(metadata, *replication);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    for (const NodeId member : replicas[i].members) owned[member] += shares[i];
  }
  return owned;
}

Json head_of(const ClusterMoment& moment, std::string_view keyspace) {
  Json head;
  head["cluster_name"] = moment.metadata.cluster_name;
  head["partitioner"] = ring::class_name_of(moment.metadata.partitioner);
  head["this_node"] = moment.self.value().to_string();
  head["metadata_version"] = moment.version.value();
  head["epoch"] = moment.metadata.epoch.value();
  head["change_under_way"] = metadata::change_is_under_way(moment.metadata);
  if (!keyspace.empty()) head["keyspace"] = keyspace;
  return head;
}

Json identity_json(const ClusterMoment& moment, const metadata::Node& node) {
  Json json;
  json["host_id"] = node.id().value().to_string();
  json["is_up"] = is_up(node, heard_of(moment, node.id()));
  const bool reenters = node.in_doubt && node.state == metadata::NodeState::normal;
  json["state"] = reenters ? "re-entering" : metadata::name_of(node.state);
  json["node_address"] = node.description.node_address.to_string();
  json["client_address"] = node.description.client_address.to_string();
  json["data_center"] = node.description.datacentre;
  json["rack"] = node.description.rack;
  return json;
}

}  // namespace

Result<std::string> cluster_json(const ClusterMoment& moment, std::string_view keyspace,
                                 std::string_view trouble) {
  const ClusterMetadata& metadata = moment.metadata;
  TRY(const auto owned, ownership(metadata, keyspace));
  std::map<NodeId, std::size_t> token_counts;
  for (const metadata::Tablet& tablet : metadata.tablets) ++token_counts[tablet.owner];
  Json nodes = Json::array();
  for (const metadata::Node& node : metadata.nodes) {
    const Heard heard = heard_of(moment, node.id());
    Json json = identity_json(moment, node);
    json["is_alive"] = heard.is_alive;
    json["silent_ms"] = nullptr;
    if (heard.silent_for) {
      json["silent_ms"] =
          std::chrono::duration_cast<std::chrono::milliseconds>(*heard.silent_for).count();
    }
    json["serves_clients"] = heard.serves_clients;
    json["load_bytes"] = or_null(heard.load_bytes);
    json["tokens"] = token_counts[node.id()];
    const auto share = owned.find(node.id());
    if (metadata.partitioner != ring::Partitioner::murmur3) {
      json["owns"] = nullptr;
    } else {
      json["owns"] = share == owned.end() ? 0 : share->second;
    }
    json["schema_version"] =
        heard.schema_version ? Json(heard.schema_version->to_string()) : Json();
    json["metadata_version"] = or_null(heard.metadata_version);
    json["reentered"] =
        node.reentered == metadata::Epoch(0) ? Json() : Json(node.reentered.value());
    nodes.push_back(std::move(json));
  }
  Json json = head_of(moment, keyspace);
  json["nodes"] = std::move(nodes);
  Json keyspaces = Json::array();
  for (const auto& [name, replicated] : metadata.keyspaces) keyspaces.push_back(name);
  json["keyspaces"] = std::move(keyspaces);
  if (!trouble.empty()) json["trouble"] = trouble;
  return text_of(json);
}

Result<std::string> ring_json(const ClusterMoment& moment, std::string_view keyspace) {
  const ClusterMetadata& metadata = moment.metadata;
  std::vector<metadata::TabletReplicas> replicas;
  if (!keyspace.empty()) {
    TRY(const metadata::Replication* replication, find_replication(metadata, keyspace));
    replicas = metadata::replicas_of(metadata, *replication);
  }
  // Nodes go by their places in the list: a ring may have tens of thousands of tokens.
  std::map<NodeId, std::size_t> places;
  Json nodes = Json::array();
  for (const metadata::Node& node : metadata.nodes) {
    places[node.id()] = nodes.size();
    nodes.push_back(identity_json(moment, node));
  }
  const auto places_of = [&](const std::vector<NodeId>& ids) {
    Json list = Json::array();
    for (const NodeId id : ids) list.push_back(places.at(id));
    return list;
  };
  Json tablets = Json::array();
  for (std::size_t i = 0; i < metadata.tablets.size(); ++i) {
    const metadata::Tablet& tablet = metadata.tablets[i];
    Json json;
    json["token"] = ring::to_text(metadata.partitioner, tablet.token);
    json["owner"] = places.at(tablet.owner);
    if (tablet.next_owner) json["next_owner"] = places.at(*tablet.next_owner);
    json["epoch"] = tablet.epoch.value();
    if (!replicas.empty()) {
      json["replicas"] = places_of(replicas[i].members);
      // Those that come, whether they count already or not.
      std::vector<NodeId> comers = replicas[i].all();
      comers.erase(comers.begin(),
                   comers.begin() + static_cast<std::ptrdiff_t>(replicas[i].members.size()));
      if (!comers.empty()) json["pending"] = places_of(comers);
    }
    tablets.push_back(std::move(json));
  }
  Json json = head_of(moment, keyspace);
  json["nodes"] = std::move(nodes);
  json["tablets"] = std::move(tablets);
  return text_of(json);
}

Result<std::string> tablets_json(const ClusterMoment& moment, std::string_view keyspace) {
  const ClusterMetadata& metadata = moment.metadata;
  if (metadata.partitioner != ring::Partitioner::murmur3) {
    return Error(Errc::unsupported, "the ranges of an ordered partitioner are not told");
  }
  if (!keyspace.empty()) TRY_VOID(find_replication(metadata, keyspace));
  std::map<NodeId, std::size_t> places;
  Json nodes = Json::array();
  for (const metadata::Node& node : metadata.nodes) {
    places[node.id()] = nodes.size();
    nodes.push_back(identity_json(moment, node));
  }
  const auto token = [&](std::size_t i) {
    return ring::to_text(metadata.partitioner, metadata.tablets[i].token);
  };
  Json tablets = Json::array();
  for (const auto& [name, replicated] : metadata.keyspaces) {
    if (!keyspace.empty() && name != keyspace) continue;
    const auto replicas = metadata::replicas_of(metadata, replicated.replication);
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      const auto holds = [&](const std::vector<NodeId>& ids) {
        return std::ranges::find(ids, moment.self) != ids.end();
      };
      if (!holds(replicas[i].all())) continue;
      Json tablet;
      tablet["keyspace"] = name;
      tablet["from"] = token(i == 0 ? replicas.size() - 1 : i - 1);
      tablet["to"] = token(i);
      tablet["is_pending"] = !holds(replicas[i].members);
      tablet["replicas"] = Json::array();
      for (const NodeId id : replicas[i].members) tablet["replicas"].push_back(places.at(id));
      tablets.push_back(std::move(tablet));
    }
  }
  Json json = head_of(moment, keyspace);
  json["nodes"] = std::move(nodes);
  json["tablets"] = std::move(tablets);
  return text_of(json);
}

std::string missing_json(const ClusterMoment& moment,
                         const replication::AntiEntropyReport& report) {
  Json peers = Json::array();
  for (const replication::AntiEntropyReport::Peer& peer : report.peers) {
    const metadata::Node* node = moment.metadata.find(peer.node);
    Json json;
    json["host_id"] = peer.node.value().to_string();
    json["node_address"] =
        node != nullptr ? Json(node->description.node_address.to_string()) : Json();
    json["tablets"] = peer.tablets;
    json["missing_there"] = peer.lacking_there;
    json["missing_here"] = peer.lacking_here;
    peers.push_back(std::move(json));
  }
  Json json;
  json["this_node"] = moment.self.value().to_string();
  json["peers"] = std::move(peers);
  return text_of(json);
}

std::string starting_json(std::string_view phase) {
  Json json;
  json["status"] = "starting";
  json["phase"] = phase;
  return text_of(json);
}

std::string error_json(const Error& error) {
  Json json;
  json["error"] = error.to_string();
  return text_of(json);
}

Result<std::string> name_in(std::string_view query, std::string_view parameter) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    std::string_view value = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (!value.starts_with(parameter)) continue;
    value.remove_prefix(parameter.size());
    if (!value.starts_with('=')) continue;
    value.remove_prefix(1);
    const bool is_name = std::ranges::all_of(value, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (!is_name || value.size() > model::kNameSizeMax) {
      return Error(Errc::invalid_argument, "this is no name of a {}", parameter);
    }
    return std::string(value);
  }
  return std::string();
}

Result<std::string> keyspace_in(std::string_view query) {
  return name_in(query, "keyspace");
}

}  // namespace helenus::admin
