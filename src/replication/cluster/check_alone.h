// check_alone: whether this node alone meets the level of a request that concerns a tablet which no
// other node holds.
#pragma once

#include <vector>

#include "base/result.h"
#include "replication/cluster/cluster_link.h"
#include "replication/cluster/gather.h"
#include "replication/request/request_level.h"
#include "replication/tablets/held_tablets.h"

namespace helenus::replication {

// Errors: unavailable, with the numbers in the report. Requires: the tablet is alone.
inline base::Result<void> check_alone(const HeldTablet& held, const ClusterLink& link,
                                      const RequestLevel& how) {
  const PlacedTablet& tablet = held.keyspace->tablet(held.key.index);
  const LevelRule& rule = held.keyspace->rule(tablet, how.level);
  if (rule.required() <= 1) {
    if (how.report != nullptr) *how.report = {};
    return {};
  }
  const auto candidates = in_order_of_asking(tablet, link);
  return check_enough(candidates, rule, how.report);
}

}  // namespace helenus::replication
