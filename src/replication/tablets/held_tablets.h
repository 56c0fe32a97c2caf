// HeldTablets: the tablets that this node holds a replica of, as one version of the metadata says
// it: where each is kept, under which name it mints, and who else holds it.
//
// Immutable, and shared by all cores.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "causality/dot.h"
#include "model/node_id.h"
#include "replication/map/replica_map.h"
#include "runtime/cores.h"
#include "storage/engine/tablet_info.h"

namespace helenus::replication {

// What the engine calls a tablet: the keyspace's number, then the place in the ring.
constexpr storage::TabletId tablet_id(const TabletKey& key) {
  return storage::TabletId{(std::uint64_t{key.keyspace.value()} << 32) | key.index};
}

struct HeldTablet {
  storage::TabletInfo info;
  TabletKey key;
  causality::Epoch epoch;
  runtime::CoreId core;
  std::vector<model::NodeId> peers;       // the other members and pending ones
  const KeyspaceMap* keyspace = nullptr;  // of the map
  // It may have lost acknowledged writes that others have seen: it serves nobody until the metadata
  // say that it has caught up (R10).
  bool is_in_doubt = false;
  // It is filled for a change of the ring, and counts for nothing yet (R17).
  bool is_pending = false;

  // No other node holds it: its requests concern this node alone.
  bool is_alone() const { return peers.empty(); }
};

class HeldTablets {
 public:
  using CoreOf = std::function<runtime::CoreId(storage::TabletId)>;

  HeldTablets() = default;
  HeldTablets(ReplicaMapPtr map, const CoreOf& core_of,
              std::span<const storage::TabletId> in_doubt = {});  // ascending

  // Null if there was none.
  const ReplicaMapPtr& map() const { return map_; }
  // Ascending by range.
  const std::vector<HeldTablet>& all() const { return tablets_; }
  // The one that has the partition; null if this node holds none that does.
  const HeldTablet* find(base::ByteView partition) const;
  const HeldTablet* find(const TabletKey& key) const;

 private:
  ReplicaMapPtr map_;
  std::vector<HeldTablet> tablets_;
};

using HeldTabletsPtr = std::shared_ptr<const HeldTablets>;

}  // namespace helenus::replication
