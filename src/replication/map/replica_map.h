// ReplicaMap: who holds which tablet of which keyspace, as one version of the metadata says it.
//
//   const ReplicaMapPtr map = ReplicaMap::make(metadata, version, self);
//   const KeyspaceMap* keyspace = map->find(KeyspaceNumber(3));
//   const auto place = map->find_place(partition);
//   const PlacedTablet& tablet = place->keyspace->tablet(place->index);
//
// A tablet of a keyspace is a causality domain (R1): its members hold all of its keys, and a clock
// is of one such tablet. Its epoch is that of the last change of its replicas, or the one in which
// its keyspace was made; a message of a lower one is stale (S10), and one of a higher one says that
// this node is behind. A replica mints under the number of its node and the epoch in which it
// became one (R2): its keyspace's first one, that in which its node came to the tablet, or that in
// which its node re-entered.
//
// While a change of replicas is joint (R17) the members of a tablet are those of both sets, each
// knows in which it counts, and rule() asks for a level in both.
//
// Immutable, and shared by all cores: whoever works with an old one goes on with it undisturbed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "causality/dot.h"
#include "metadata/cluster_metadata.h"
#include "model/consistency.h"
#include "model/node_id.h"
#include "replication/map/level_rule.h"
#include "ring/topology.h"

namespace helenus::replication {

struct TabletKey {
  metadata::KeyspaceNumber keyspace;
  ring::TabletIndex index = 0;
  friend auto operator<=>(const TabletKey&, const TabletKey&) = default;
};

struct PlacedReplica {
  model::NodeId node;
  causality::ActorId actor;
  DatacentreIndex datacentre = 0;
  // It may lack what it acknowledged: it does not serve, and counts for nothing (R10).
  bool in_doubt = false;
  ReplicaSets sets = ReplicaSets::present;

  CountedReplica counted() const { return {datacentre, sets}; }
  bool is_in(ReplicaSets set) const {
    return (static_cast<unsigned>(sets) & static_cast<unsigned>(set)) != 0;
  }
  friend bool operator==(const PlacedReplica&, const PlacedReplica&) = default;
};

struct PlacedTablet {
  causality::Epoch epoch;
  std::vector<PlacedReplica> members;  // in the order of the placement
  std::vector<PlacedReplica> pending;  // get every write, and count for nothing
  bool is_joint = false;               // members are of two sets
  // Null if the node holds no replica of it.
  const PlacedReplica* find(model::NodeId node) const;
};

// The keys of a tablet: partitions at or above `from` and below `to`.
struct TabletBounds {
  base::Bytes from;
  base::Bytes to;
  friend bool operator==(const TabletBounds&, const TabletBounds&) = default;
};

class KeyspaceMap {
 public:
  metadata::KeyspaceNumber number() const { return number_; }
  const std::string& name() const { return name_; }
  std::size_t tablet_count() const { return tablets_.size(); }
  const PlacedTablet& tablet(ring::TabletIndex index) const { return tablets_[index]; }
  const TabletBounds& bounds(ring::TabletIndex index) const { return bounds_[index]; }
  // What a level asks of the tablet's replicas. Requires: one of this keyspace.
  const LevelRule& rule(const PlacedTablet& tablet, model::Consistency level) const {
    return (tablet.is_joint ? joint_rules_ : rules_)[static_cast<std::size_t>(level)];
  }

 private:
  friend class ReplicaMap;
  metadata::KeyspaceNumber number_;
  std::string name_;
  std::vector<PlacedTablet> tablets_;  // by the ring's index
  std::vector<TabletBounds> bounds_;   // likewise; together they are the keyspace's keys
  std::vector<LevelRule> rules_;       // by level
  std::vector<LevelRule> joint_rules_;
};

class ReplicaMap;
using ReplicaMapPtr = std::shared_ptr<const ReplicaMap>;

class ReplicaMap {
  struct Private {
    explicit Private() = default;
  };

 public:
  // As `self` sees it; it need not be one of the nodes. Requires: valid metadata of a Murmur3 ring
  // whose last token is the greatest. Cost: a placement for each keyspace.
  static ReplicaMapPtr make(const metadata::ClusterMetadata& metadata, std::uint64_t version,
                            model::NodeId self);
  explicit ReplicaMap(Private) {}

  // Of the metadata.
  std::uint64_t version() const { return version_; }
  causality::Epoch epoch() const { return epoch_; }
  model::NodeId self() const { return self_; }
  // In which the replicas of this node began anew; 0: they never have.
  causality::Epoch reentered() const { return reentered_; }
  // Null for one that is not there, or no longer.
  const KeyspaceMap* find(metadata::KeyspaceNumber keyspace) const;
  const KeyspaceMap* find(std::string_view keyspace) const;
  const std::map<metadata::KeyspaceNumber, KeyspaceMap>& keyspaces() const { return keyspaces_; }
  // Storage ids from this one on have not been given yet (R9).
  metadata::StorageId next_storage() const { return next_storage_; }

  // Where a partition is: the keyspace that its bytes begin with, and the tablet of its token. None
  // if there is no such keyspace, or the bytes are no partition's. Cost: two binary searches.
  struct Place {
    const KeyspaceMap* keyspace = nullptr;
    ring::TabletIndex index = 0;
  };
  std::optional<Place> find_place(base::ByteView partition) const;
  std::span<const std::string> datacentres() const { return datacentres_; }
  // This node's; none while it is not one of the nodes.
  std::optional<DatacentreIndex> own_datacentre() const { return own_datacentre_; }
  // As people know it: its address for nodes, or its id if it is none of the nodes.
  std::string name_of(model::NodeId node) const;
  // Those that this node holds a replica of, pending ones too.
  std::vector<TabletKey> held_here() const;

 private:
  std::uint64_t version_ = 0;
  causality::Epoch epoch_;
  causality::Epoch reentered_{0};
  model::NodeId self_;
  std::vector<std::string> datacentres_;
  std::optional<DatacentreIndex> own_datacentre_;
  std::map<model::NodeId, std::string> names_;
  std::map<metadata::KeyspaceNumber, KeyspaceMap> keyspaces_;
  metadata::StorageId next_storage_;
};

}  // namespace helenus::replication
