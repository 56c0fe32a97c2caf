#include "replication/cluster/gather.h"

namespace helenus::replication {

using base::Errc;
using base::Error;
using base::Result;

std::vector<const PlacedReplica*> in_order_of_asking(const PlacedTablet& tablet,
                                                     const ClusterLink& link) {
  std::vector<const PlacedReplica*> order;
  for (const PlacedReplica& replica : tablet.members) {
    if (!link.is_up(replica.node)) continue;
    order.insert(replica.node == link.self() ? order.begin() : order.end(), &replica);
  }
  return order;
}

Result<std::size_t> count_needed(const std::vector<const PlacedReplica*>& candidates,
                                 const LevelRule& rule, LevelReport* report) {
  if (report != nullptr) *report = {.required = rule.required(), .received = 0, .failed = 0};
  std::vector<DatacentreIndex> places;
  for (const PlacedReplica* replica : candidates) places.push_back(replica->datacentre);
  AckTally tally(rule, places);
  std::size_t needed = 0;
  while (!tally.met() && needed < places.size()) tally.acknowledge(places[needed++]);
  if (tally.met()) return needed;
  const auto shortage = tally.shortage();
  if (report != nullptr && shortage) {
    *report = {.required = shortage->group.required, .received = shortage->alive, .failed = 0};
  }
  return Error(Errc::unavailable, "too few replicas are up");
}

}  // namespace helenus::replication
