#include "replication/map/replica_map.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/codec.h"
#include "model/partition_key.h"

namespace helenus::replication {

using causality::Epoch;
using metadata::ClusterMetadata;
using metadata::KeyspaceNumber;
using model::NodeId;
using ring::TabletIndex;

namespace {

std::vector<std::string> datacentres_of(const ClusterMetadata& metadata) {
  std::vector<std::string> names;
  for (const metadata::Node& node : metadata.nodes) names.push_back(node.description.datacentre);
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

std::vector<TabletBounds> bounds_of(const ClusterMetadata& metadata, KeyspaceNumber keyspace) {
  std::vector<TabletBounds> bounds(metadata.tablets.size());
  base::Bytes from = model::first_key_of(keyspace);
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const bool is_last = i + 1 == bounds.size();
    bounds[i].from = std::move(from);
    bounds[i].to = is_last ? model::first_key_of(KeyspaceNumber(keyspace.value() + 1))
                           : model::first_key_after(keyspace, metadata.tablets[i].token.token());
    from = bounds[i].to;
  }
  return bounds;
}

PlacedReplica placed(const ClusterMetadata& metadata, std::span<const std::string> datacentres,
                     NodeId id, const metadata::ReplicatedKeyspace& keyspace, std::size_t tablet) {
  const metadata::Node* node = metadata.find(id);
  ASSERT(node != nullptr);
  const auto at = std::ranges::lower_bound(datacentres, node->description.datacentre);
  const Epoch began = metadata::began_on(*node, keyspace, tablet);
  return {
      .node = id,
      .actor = {.node = node->number,
                .incarnation = causality::Incarnation(static_cast<std::uint32_t>(began.value()))},
      .datacentre = static_cast<DatacentreIndex>(at - datacentres.begin()),
      .in_doubt = node->in_doubt};
}

}  // namespace

const PlacedReplica* PlacedTablet::find(NodeId node) const {
  for (const auto* replicas : {&members, &pending}) {
    const auto found = std::ranges::find(*replicas, node, &PlacedReplica::node);
    if (found != replicas->end()) return &*found;
  }
  return nullptr;
}

ReplicaMapPtr ReplicaMap::make(const ClusterMetadata& metadata, std::uint64_t version,
                               NodeId self) {
  auto map = std::make_shared<ReplicaMap>(Private());
  map->version_ = version;
  map->epoch_ = metadata.epoch;
  map->self_ = self;
  map->datacentres_ = datacentres_of(metadata);
  map->next_storage_ = metadata.next.storage;
  for (const metadata::Node& node : metadata.nodes) {
    map->names_[node.description.id] = fmt::format("{}", node.description.node_address);
  }
  const metadata::Node* own = metadata.find(self);
  if (own != nullptr) map->reentered_ = own->reentered;
  const std::string local = own == nullptr ? std::string() : own->description.datacentre;
  if (own != nullptr) {
    const auto at = std::ranges::lower_bound(map->datacentres_, local);
    map->own_datacentre_ = static_cast<DatacentreIndex>(at - map->datacentres_.begin());
  }
  for (const auto& [name, keyspace] : metadata.keyspaces) {
    KeyspaceMap placed_keyspace;
    placed_keyspace.number_ = keyspace.number;
    placed_keyspace.name_ = name;
    placed_keyspace.bounds_ = bounds_of(metadata, keyspace.number);
    const auto all = metadata::replicas_of(metadata, keyspace.replication);
    for (std::size_t i = 0; i < all.size(); ++i) {
      PlacedTablet tablet;
      tablet.epoch = std::max(keyspace.began, metadata.tablets[i].epoch);
      tablet.is_joint = !all[i].next.empty();
      for (const NodeId node : all[i].members) {
        tablet.members.push_back(placed(metadata, map->datacentres_, node, keyspace, i));
      }
      for (const NodeId node : all[i].next) {
        const auto present = std::ranges::find(tablet.members, node, &PlacedReplica::node);
        if (present != tablet.members.end()) {
          present->sets = ReplicaSets::both;
          continue;
        }
        tablet.members.push_back(placed(metadata, map->datacentres_, node, keyspace, i));
        tablet.members.back().sets = ReplicaSets::next;
      }
      for (const NodeId node : all[i].pending) {
        tablet.pending.push_back(placed(metadata, map->datacentres_, node, keyspace, i));
      }
      placed_keyspace.tablets_.push_back(std::move(tablet));
    }
    for (std::uint16_t level = 0; level <= model::kConsistencyMax; ++level) {
      const auto rule_of = [&](const ring::Strategy& strategy) {
        return LevelRule::of(strategy, map->datacentres_, local, *model::consistency_from(level));
      };
      const LevelRule present = rule_of(keyspace.replication.present);
      placed_keyspace.joint_rules_.push_back(
          LevelRule::joint(present, rule_of(keyspace.replication.target())));
      placed_keyspace.rules_.push_back(present);
    }
    map->keyspaces_.emplace(keyspace.number, std::move(placed_keyspace));
  }
  return map;
}

const KeyspaceMap* ReplicaMap::find(KeyspaceNumber keyspace) const {
  const auto found = keyspaces_.find(keyspace);
  return found == keyspaces_.end() ? nullptr : &found->second;
}

const KeyspaceMap* ReplicaMap::find(std::string_view keyspace) const {
  for (const auto& [number, map] : keyspaces_) {
    if (map.name() == keyspace) return &map;
  }
  return nullptr;
}

std::optional<ReplicaMap::Place> ReplicaMap::find_place(base::ByteView partition) const {
  base::Decoder in(partition);
  const KeyspaceMap* keyspace = find(KeyspaceNumber(in.u32_be()));
  if (!in.ok() || keyspace == nullptr) return std::nullopt;
  const std::vector<TabletBounds>& bounds = keyspace->bounds_;
  const auto behind = std::ranges::upper_bound(
      bounds, partition, [](base::ByteView a, base::ByteView b) { return base::compare(a, b) < 0; },
      [](const TabletBounds& each) { return each.from.view(); });
  ASSERT(behind != bounds.begin());
  return Place{.keyspace = keyspace,
               .index = static_cast<TabletIndex>(behind - bounds.begin()) - 1};
}

std::string ReplicaMap::name_of(NodeId node) const {
  const auto found = names_.find(node);
  return found == names_.end() ? fmt::format("{}", node) : found->second;
}

std::vector<TabletKey> ReplicaMap::held_here() const {
  std::vector<TabletKey> held;
  for (const auto& [number, keyspace] : keyspaces_) {
    for (TabletIndex i = 0; i < keyspace.tablet_count(); ++i) {
      if (keyspace.tablet(i).find(self_) != nullptr) held.push_back({number, i});
    }
  }
  return held;
}

}  // namespace helenus::replication
