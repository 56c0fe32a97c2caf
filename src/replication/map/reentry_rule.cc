#include "replication/map/reentry_rule.h"

#include <vector>

namespace helenus::replication {

using model::Consistency;
using model::NodeId;

namespace {

bool met_by(const LevelRule& rule, const std::vector<const PlacedReplica*>& replicas) {
  std::vector<CountedReplica> places;
  for (const PlacedReplica* replica : replicas) places.push_back(replica->counted());
  AckTally tally(rule, places);
  for (const CountedReplica place : places) tally.acknowledge(place);
  return tally.met();
}

}  // namespace

std::set<NodeId> reentry_waits_for(const KeyspaceMap& keyspace, const PlacedTablet& tablet,
                                   NodeId self, const std::set<NodeId>& pulled) {
  std::vector<const PlacedReplica*> trusted;
  std::vector<const PlacedReplica*> trusted_and_pulled;
  std::set<NodeId> others;
  std::set<NodeId> trusted_others;
  const PlacedReplica* own = tablet.find(self);
  bool is_alone_in_its_datacentre = true;
  for (const PlacedReplica& member : tablet.members) {
    if (member.node == self) continue;
    if (own == nullptr || member.datacentre == own->datacentre) is_alone_in_its_datacentre = false;
    if (!pulled.contains(member.node)) others.insert(member.node);
    if (member.in_doubt) continue;
    trusted.push_back(&member);
    if (pulled.contains(member.node)) {
      trusted_and_pulled.push_back(&member);
    } else {
      trusted_others.insert(member.node);
    }
  }
  const LevelRule& of_all = keyspace.rule(tablet, Consistency::quorum);
  // What it alone acknowledged there, nobody has.
  const LevelRule& of_its_own =
      is_alone_in_its_datacentre ? of_all : keyspace.rule(tablet, Consistency::local_quorum);
  if (!met_by(of_all, trusted) || !met_by(of_its_own, trusted)) return others;
  const bool is_enough =
      met_by(of_all, trusted_and_pulled) && met_by(of_its_own, trusted_and_pulled);
  return is_enough ? std::set<NodeId>() : trusted_others;
}

}  // namespace helenus::replication
