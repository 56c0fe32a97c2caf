#include "replication/tablets/held_tablets.h"

#include <algorithm>
#include <utility>

namespace helenus::replication {

HeldTablets::HeldTablets(ReplicaMapPtr of, const CoreOf& core_of,
                         std::span<const storage::TabletId> in_doubt)
    : map_(std::move(of)) {
  const ReplicaMap& map = *map_;
  for (const TabletKey& key : map.held_here()) {
    const KeyspaceMap& keyspace = *map.find(key.keyspace);
    const PlacedTablet& placed = keyspace.tablet(key.index);
    const TabletBounds& bounds = keyspace.bounds(key.index);
    HeldTablet held;
    held.info = {.id = tablet_id(key),
                 .range = {.from = bounds.from, .to = bounds.to},
                 .actor = placed.find(map.self())->actor};
    held.key = key;
    held.epoch = placed.epoch;
    held.core = core_of(held.info.id);
    held.keyspace = &keyspace;
    for (const auto* replicas : {&placed.members, &placed.pending}) {
      for (const PlacedReplica& replica : *replicas) {
        if (replica.node != map.self()) held.peers.push_back(replica.node);
      }
    }
    held.is_pending =
        std::ranges::find(placed.pending, map.self(), &PlacedReplica::node) != placed.pending.end();
    held.is_in_doubt = !held.is_alone() && (placed.find(map.self())->in_doubt ||
                                            std::ranges::binary_search(in_doubt, held.info.id));
    tablets_.push_back(std::move(held));
  }
  std::ranges::sort(tablets_, {}, [](const HeldTablet& each) { return each.info.range.from; });
}

const HeldTablet* HeldTablets::find(base::ByteView partition) const {
  const auto behind = std::ranges::upper_bound(
      tablets_, partition,
      [](base::ByteView a, base::ByteView b) { return base::compare(a, b) < 0; },
      [](const HeldTablet& each) { return each.info.range.from.view(); });
  if (behind == tablets_.begin()) return nullptr;
  const HeldTablet& held = *std::prev(behind);
  return held.info.range.contains(partition) ? &held : nullptr;
}

const HeldTablet* HeldTablets::find(const TabletKey& key) const {
  const KeyspaceMap* keyspace = map_ == nullptr ? nullptr : map_->find(key.keyspace);
  if (keyspace == nullptr || key.index >= keyspace->tablet_count()) return nullptr;
  const HeldTablet* held = find(keyspace->bounds(key.index).from.view());
  return held != nullptr && held->key == key ? held : nullptr;
}

}  // namespace helenus::replication
