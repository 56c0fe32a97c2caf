#include "replication/tablets/held_tablets.h"

#include <algorithm>

namespace helenus::replication {

HeldTablets::HeldTablets(const ReplicaMap& map, const CoreOf& core_of) {
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
    for (const auto* replicas : {&placed.members, &placed.pending}) {
      for (const PlacedReplica& replica : *replicas) {
        if (replica.node != map.self()) held.peers.push_back(replica.node);
      }
    }
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

}  // namespace helenus::replication
