#include "metadata/cluster_metadata.h"

#include <algorithm>
#include <deque>
#include <set>
#include <tuple>
#include <utility>

#include "base/assert.h"

namespace helenus::metadata {

using base::Errc;
using base::Error;
using base::Result;
using model::NodeId;

namespace {

Result<void> check_nodes(const ClusterMetadata& metadata) {
  const std::string& name = metadata.cluster_name;
  if (name.empty() || name.size() > kClusterNameSizeMax) {
    return Error(Errc::invalid_argument, "a cluster's name of {} bytes", name.size());
  }
  if (metadata.nodes.empty() || metadata.nodes.size() > ring::Topology::kNodesMax) {
    return Error(Errc::invalid_argument, "{} nodes", metadata.nodes.size());
  }
  if (!std::ranges::is_sorted(metadata.nodes, {}, &Node::id)) {
    return Error(Errc::invalid_argument, "nodes are not in order");
  }
  std::map<runtime::Address, NodeId> by_address;
  const Node* before = nullptr;
  for (const Node& node : metadata.nodes) {
    if (before != nullptr && before->id() == node.id()) {
      return Error(Errc::invalid_argument, "node {} is there twice", node.id());
    }
    before = &node;
    const auto [other, is_new] = by_address.try_emplace(node.description.node_address, node.id());
    if (!is_new) {
      return Error(Errc::invalid_argument, "nodes {} and {} have the same address {}",
                   other->second, node.id(), other->first);
    }
  }
  return {};
}

// M4.
Result<void> check_states(const ClusterMetadata& metadata) {
  const auto count = [&](NodeState state) {
    return std::ranges::count(metadata.nodes, state, &Node::state);
  };
  const auto joining = count(NodeState::joining);
  const auto leaving = count(NodeState::leaving);
  const auto removing = count(NodeState::removing);
  const bool is_alone = leaving == 0 || (joining == 0 && removing == 0);
  if (joining > 1 || leaving > 1 || !is_alone) {
    return Error(Errc::invalid_argument, "{} nodes join, {} leave and {} are being removed at once",
                 joining, leaving, removing);
  }
  return {};
}

// M2, M3 and M5 of one tablet.
Result<void> check_tablet(const ClusterMetadata& metadata, const Tablet& tablet) {
  const auto complaint = [&](std::string_view what) {
    return Error(Errc::invalid_argument, "the tablet of token {} {}",
                 ring::to_text(metadata.partitioner, tablet.token), what);
  };
  const Node* owner = metadata.find(tablet.owner);
  if (owner == nullptr) return complaint("belongs to nobody here");
  if (owner->state == NodeState::joining) return complaint("belongs to a node that joins");
  if (tablet.epoch == Epoch(0) || tablet.epoch > metadata.epoch) {
    return complaint("has an epoch that was not given");
  }
  if (!tablet.next_owner) return goes(*owner) ? complaint("will belong to nobody") : Result<void>();
  const Node* next = metadata.find(*tablet.next_owner);
  if (next == nullptr || goes(*next)) return complaint("will belong to nobody");
  if (next == owner) return complaint("goes from its owner to the same");
  if (!goes(*owner) && next->state != NodeState::joining) {
    return complaint("changes hands though nobody joins or goes");
  }
  return {};
}

Result<void> check_tablets(const ClusterMetadata& metadata) {
  if (metadata.epoch.value() > kEpochMax) {
    return Error(Errc::invalid_argument, "epoch {}", metadata.epoch);
  }
  if (metadata.tablets.empty() || metadata.tablets.size() > ring::kTokensMax) {
    return Error(Errc::invalid_argument, "{} tokens", metadata.tablets.size());
  }
  const ring::Position* before = nullptr;
  for (const Tablet& tablet : metadata.tablets) {
    if (metadata.partitioner == ring::Partitioner::murmur3 && tablet.token.bytes().size() != 8) {
      return Error(Errc::invalid_argument, "a token of {} bytes", tablet.token.bytes().size());
    }
    if (before != nullptr && *before >= tablet.token) {
      return Error(Errc::invalid_argument, "token {} is there twice, or not in its place",
                   ring::to_text(metadata.partitioner, tablet.token));
    }
    before = &tablet.token;
    TRY_VOID(check_tablet(metadata, tablet));
  }
  return {};
}

// M6.
Result<void> check_keyspaces(const ClusterMetadata& metadata) {
  const auto& keyspaces = metadata.schema.keyspaces();
  if (keyspaces.size() != metadata.keyspaces.size()) {
    return Error(Errc::invalid_argument, "replication of {} keyspaces, a schema of {}",
                 metadata.keyspaces.size(), keyspaces.size());
  }
  for (const auto& [name, keyspace] : keyspaces) {
    const auto found = metadata.keyspaces.find(name);
    const auto strategy = ring::parse_strategy(keyspace->replication);
    if (found == metadata.keyspaces.end() || !strategy ||
        *strategy != found->second.replication.target()) {
      return Error(Errc::invalid_argument, "keyspace {} is not replicated as the schema says",
                   name);
    }
    const Replication& replication = found->second.replication;
    if (replication.next == replication.present) {
      return Error(Errc::invalid_argument, "keyspace {} changes from a replication to the same",
                   name);
    }
  }
  return {};
}

// M7.
Result<void> check_removed(const ClusterMetadata& metadata) {
  if (metadata.removed.size() > kRemovedMax) {
    return Error(Errc::invalid_argument, "{} removed nodes", metadata.removed.size());
  }
  std::set<NodeId> seen;
  for (const NodeId node : metadata.removed) {
    if (metadata.find(node) != nullptr || !seen.insert(node).second) {
      return Error(Errc::invalid_argument, "node {} was removed and is there, or removed twice",
                   node);
    }
  }
  return {};
}

// M9 of one kind.
template <class Number>
class GivenNumbers {
 public:
  GivenNumbers(std::string_view kind, Number next) : kind_(kind), next_(next) {}

  Result<void> add(Number number) {
    if (number == Number(0) || number >= next_) {
      return Error(Errc::invalid_argument, "number {} of a {} was not given", number, kind_);
    }
    if (!seen_.insert(number).second) {
      return Error(Errc::invalid_argument, "number {} is that of two {}s", number, kind_);
    }
    return {};
  }

 private:
  std::string_view kind_;
  Number next_;
  std::set<Number> seen_;
};

Result<void> check_storage(const ClusterMetadata& metadata) {
  GivenNumbers<StorageId> ids("table", metadata.next.storage);
  std::size_t tables = 0;
  for (const auto& [name, keyspace] : metadata.schema.keyspaces()) {
    for (const auto& [table_name, table] : keyspace->tables) {
      std::vector<base::Uuid> wanted = {table->id};
      for (const model::Index& index : table->indexes) wanted.push_back(index.id);
      for (const base::Uuid& id : wanted) {
        ++tables;
        const auto found = metadata.storage.find(id);
        if (found == metadata.storage.end()) {
          return Error(Errc::invalid_argument, "table {}.{} has no storage id", name, table_name);
        }
        TRY_VOID(ids.add(found->second));
      }
    }
  }
  if (tables != metadata.storage.size()) {
    return Error(Errc::invalid_argument, "{} storage ids, a schema of {} tables",
                 metadata.storage.size(), tables);
  }
  return {};
}

// M11.
Result<void> check_reentries(const ClusterMetadata& metadata) {
  for (const Node& node : metadata.nodes) {
    if (node.reentered > metadata.epoch) {
      return Error(Errc::invalid_argument, "node {} re-entered in an epoch that was not given",
                   node.id());
    }
    if (node.in_doubt && node.reentered == Epoch(0)) {
      return Error(Errc::invalid_argument, "node {} is in doubt and never re-entered", node.id());
    }
  }
  return {};
}

// M9.
Result<void> check_numbers(const ClusterMetadata& metadata) {
  const NextNumbers& next = metadata.next;
  if (next.node.value() > kNumberMax || next.keyspace.value() > kNumberMax ||
      next.storage.value() > kNumberMax) {
    return Error(Errc::invalid_argument, "no number is left");
  }
  GivenNumbers<NodeNumber> nodes("node", next.node);
  for (const Node& node : metadata.nodes) TRY_VOID(nodes.add(node.number));
  GivenNumbers<KeyspaceNumber> keyspaces("keyspace", next.keyspace);
  for (const auto& [name, keyspace] : metadata.keyspaces) {
    TRY_VOID(keyspaces.add(keyspace.number));
    if (keyspace.began == Epoch(0) || keyspace.began > metadata.epoch) {
      return Error(Errc::invalid_argument, "keyspace {} began in an epoch that was not given",
                   name);
    }
  }
  return check_storage(metadata);
}

enum class Moment : unsigned char { present, next };

NodeId owner_at(const Tablet& tablet, Moment moment) {
  return moment == Moment::next && tablet.next_owner ? *tablet.next_owner : tablet.owner;
}

Result<ring::TopologyPtr> make_ring(const ClusterMetadata& metadata, Moment moment) {
  std::map<NodeId, ring::Node> nodes;
  for (const Node& node : metadata.nodes) {
    const bool is_absent =
        moment == Moment::present ? node.state == NodeState::joining : goes(node);
    if (is_absent) continue;
    nodes.emplace(node.id(),
                  ring::Node{node.id(), node.description.datacentre, node.description.rack, {}});
  }
  for (const Tablet& tablet : metadata.tablets) {
    nodes.at(owner_at(tablet, moment)).tokens.push_back(tablet.token);
  }
  std::vector<ring::Node> all;
  all.reserve(nodes.size());
  for (auto& [id, node] : nodes) all.push_back(std::move(node));
  return ring::Topology::make(metadata.partitioner, std::move(all));
}

std::vector<NodeId> ids_of(const ring::Placement& placement, ring::TabletIndex tablet) {
  std::vector<NodeId> ids;
  for (const ring::NodeIndex index : placement.replicas_of(tablet)) {
    ids.push_back(placement.topology()->node(index).id);
  }
  return ids;
}

bool contains(const std::vector<NodeId>& nodes, NodeId node) {
  return std::ranges::find(nodes, node) != nodes.end();
}

// The replicas of each way in which keyspaces are replicated, computed once.
class Placements {
 public:
  explicit Placements(const ClusterMetadata& metadata) : metadata_(metadata) {}

  const std::vector<TabletReplicas>& of(const Replication& replication) {
    for (const auto& [known, replicas] : known_) {
      if (known == replication) return replicas;
    }
    return known_.emplace_back(replication, replicas_of(metadata_, replication)).second;
  }

 private:
  const ClusterMetadata& metadata_;
  std::deque<std::pair<Replication, std::vector<TabletReplicas>>> known_;
};

// M8 for one keyspace.
bool epochs_tell_of_changes(const ClusterMetadata& next, const ClusterMetadata& previous,
                            const std::vector<TabletReplicas>& after,
                            const std::vector<TabletReplicas>& before) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (next.tablets[i].epoch == previous.tablets[i].epoch && !same_replicas(before[i], after[i])) {
      return false;
    }
  }
  return true;
}

// M15 for one keyspace.
bool newcomers_are_told(const ClusterMetadata& next, const ReplicatedKeyspace& keyspace,
                        const ClusterMetadata& previous, const ReplicatedKeyspace& was,
                        const std::vector<TabletReplicas>& after,
                        const std::vector<TabletReplicas>& before) {
  for (std::size_t i = 0; i < after.size(); ++i) {
    const std::vector<NodeId> held_before = before[i].all();
    for (const NodeId node : after[i].all()) {
      const ReplicaPlace place{static_cast<std::uint32_t>(i), next.find(node)->number};
      const auto came = keyspace.came.find(place);
      if (!contains(held_before, node)) {
        if (came == keyspace.came.end() || came->second <= previous.epoch) return false;
        continue;
      }
      const auto came_before = was.came.find(place);
      const bool is_known = came != keyspace.came.end();
      if (is_known != (came_before != was.came.end())) return false;
      if (is_known && came->second != came_before->second) return false;
    }
  }
  return true;
}

// M16 for one keyspace: whoever counts from now on was in the next set of a joint change. Where
// members went, as some were removed or the change was given up, those that are left count on.
bool members_were_joint(const ClusterMetadata& previous, const std::vector<TabletReplicas>& after,
                        const std::vector<TabletReplicas>& before) {
  for (std::size_t i = 0; i < after.size(); ++i) {
    for (const NodeId node : after[i].members) {
      if (contains(before[i].members, node)) continue;
      if (previous.joint == Epoch(0) || !contains(before[i].next, node)) return false;
    }
  }
  return true;
}

// M13.
Result<void> check_newcomers(const ClusterMetadata& metadata) {
  Placements placements(metadata);
  for (const auto& [name, keyspace] : metadata.keyspaces) {
    if (keyspace.came.empty()) continue;
    const std::vector<TabletReplicas>& replicas = placements.of(keyspace.replication);
    std::map<NodeNumber, NodeId> nodes;
    for (const Node& node : metadata.nodes) nodes.emplace(node.number, node.id());
    for (const auto& [place, epoch] : keyspace.came) {
      const auto node = nodes.find(place.node);
      if (place.tablet >= replicas.size() || node == nodes.end() ||
          !contains(replicas[place.tablet].all(), node->second)) {
        return Error(Errc::invalid_argument, "who came to a tablet of keyspace {} is no replica",
                     name);
      }
      if (epoch <= keyspace.began || epoch > metadata.epoch) {
        return Error(Errc::invalid_argument,
                     "a replica of keyspace {} came in epoch {}, which was not given then", name,
                     epoch);
      }
    }
  }
  return {};
}

// M14.
Result<void> check_joint(const ClusterMetadata& metadata) {
  if (metadata.joint == Epoch(0)) return {};
  if (metadata.joint > metadata.epoch) {
    return Error(Errc::invalid_argument, "joint since an epoch that was not given");
  }
  if (!change_is_under_way(metadata)) {
    return Error(Errc::invalid_argument, "nothing is under way, and it is joint");
  }
  return {};
}

// M10 of one that is in both, or new.
template <class Number>
bool keeps_number(const Number* before, Number now, Number next_before) {
  return before != nullptr ? *before == now : now >= next_before;
}

// M12.
bool reentries_are_told(const ClusterMetadata& next, const ClusterMetadata& previous) {
  for (const Node& node : next.nodes) {
    const Node* before = previous.find(node.id());
    if (before == nullptr) {
      if (node.reentered != Epoch(0)) return false;
      continue;
    }
    if (node.reentered == before->reentered) {
      if (node.in_doubt && !before->in_doubt) return false;
      continue;
    }
    if (node.reentered <= previous.epoch) return false;
    for (const std::size_t tablet : tablets_of(next, node.id())) {
      if (next.tablets[tablet].epoch <= previous.epoch) return false;
    }
  }
  return true;
}

// M10.
bool numbers_stay(const ClusterMetadata& next, const ClusterMetadata& previous) {
  if (next.next.node < previous.next.node || next.next.keyspace < previous.next.keyspace ||
      next.next.storage < previous.next.storage || next.secret != previous.secret) {
    return false;
  }
  for (const Node& node : next.nodes) {
    const Node* before = previous.find(node.id());
    if (!keeps_number(before == nullptr ? nullptr : &before->number, node.number,
                      previous.next.node)) {
      return false;
    }
  }
  for (const auto& [name, keyspace] : next.keyspaces) {
    const auto before = previous.keyspaces.find(name);
    // One that was dropped and made again between the two is a new one.
    if (before != previous.keyspaces.end() && before->second.number == keyspace.number) {
      if (before->second.began != keyspace.began) return false;
    } else if (keyspace.number < previous.next.keyspace || keyspace.began <= previous.epoch) {
      return false;
    }
  }
  for (const auto& [table, id] : next.storage) {
    const auto before = previous.storage.find(table);
    const bool is_kept = before != previous.storage.end() && before->second == id;
    if (!is_kept && id < previous.next.storage) return false;
  }
  return true;
}

}  // namespace

std::string_view name_of(NodeState state) {
  switch (state) {
    case NodeState::joining:
      return "joining";
    case NodeState::normal:
      return "normal";
    case NodeState::leaving:
      return "leaving";
    case NodeState::removing:
      return "removing";
  }
  UNREACHABLE();
}

const Node* ClusterMetadata::find(NodeId node) const {
  const auto found = std::ranges::lower_bound(nodes, node, {}, &Node::id);
  return found == nodes.end() || found->id() != node ? nullptr : &*found;
}

bool ClusterMetadata::was_removed(NodeId node) const {
  return contains(removed, node);
}

Result<void> validate(const ClusterMetadata& metadata) {
  TRY_VOID(check_nodes(metadata));
  TRY_VOID(check_states(metadata));
  TRY_VOID(check_tablets(metadata));
  TRY_VOID(check_keyspaces(metadata));
  TRY_VOID(check_removed(metadata));
  TRY_VOID(check_numbers(metadata));
  TRY_VOID(check_reentries(metadata));
  // Names of datacentres and racks.
  TRY_VOID(make_ring(metadata, Moment::present));
  TRY_VOID(make_ring(metadata, Moment::next));
  TRY_VOID(check_joint(metadata));
  return check_newcomers(metadata);
}

bool may_follow(const ClusterMetadata& next, const ClusterMetadata& previous) {
  if (next.cluster_name != previous.cluster_name || next.partitioner != previous.partitioner ||
      next.epoch < previous.epoch || next.tablets.size() != previous.tablets.size()) {
    return false;
  }
  for (std::size_t i = 0; i < next.tablets.size(); ++i) {
    if (next.tablets[i].token != previous.tablets[i].token) return false;
    if (next.tablets[i].epoch < previous.tablets[i].epoch) return false;
  }
  if (!numbers_stay(next, previous) || !reentries_are_told(next, previous)) return false;
  Placements placements_before(previous);
  Placements placements_after(next);
  for (const auto& [name, keyspace] : next.keyspaces) {
    const auto was = previous.keyspaces.find(name);
    if (was == previous.keyspaces.end() || was->second.number != keyspace.number) continue;
    const auto& before = placements_before.of(was->second.replication);
    const auto& after = placements_after.of(keyspace.replication);
    if (!epochs_tell_of_changes(next, previous, after, before) ||
        !newcomers_are_told(next, keyspace, previous, was->second, after, before) ||
        !members_were_joint(previous, after, before)) {
      return false;
    }
  }
  return true;
}

ring::TopologyPtr present_ring(const ClusterMetadata& metadata) {
  auto topology = make_ring(metadata, Moment::present);
  ASSERT(topology);
  return *std::move(topology);
}

ring::TopologyPtr next_ring(const ClusterMetadata& metadata) {
  auto topology = make_ring(metadata, Moment::next);
  ASSERT(topology);
  return *std::move(topology);
}

bool change_is_under_way(const ClusterMetadata& metadata) {
  return std::ranges::any_of(metadata.nodes,
                             [](const Node& node) { return node.state != NodeState::normal; }) ||
         std::ranges::any_of(metadata.keyspaces, [](const auto& entry) {
           return entry.second.replication.next.has_value();
         });
}

bool goes(const Node& node) {
  return node.state == NodeState::leaving || node.state == NodeState::removing;
}

bool moves_replicas(const ClusterMetadata& metadata) {
  Placements placements(metadata);
  ClusterMetadata joint = metadata;
  joint.joint = metadata.epoch;
  Placements afterwards(joint);
  return std::ranges::any_of(metadata.keyspaces, [&](const auto& entry) {
    const Replication& replication = entry.second.replication;
    const auto is_moving = [](const TabletReplicas& tablet) {
      return !tablet.pending.empty() || !tablet.next.empty();
    };
    return std::ranges::any_of(placements.of(replication), is_moving) ||
           std::ranges::any_of(afterwards.of(replication), is_moving);
  });
}

std::vector<NodeId> TabletReplicas::all() const {
  std::vector<NodeId> nodes = members;
  for (const auto* others : {&pending, &next}) {
    for (const NodeId node : *others) {
      if (!contains(nodes, node)) nodes.push_back(node);
    }
  }
  return nodes;
}

bool same_replicas(const TabletReplicas& a, const TabletReplicas& b) {
  return std::ranges::is_permutation(a.members, b.members) &&
         std::ranges::is_permutation(a.pending, b.pending) &&
         std::ranges::is_permutation(a.next, b.next);
}

std::vector<TabletReplicas> replicas_of(const ClusterMetadata& metadata,
                                        const Replication& replication) {
  const ring::Placement present(present_ring(metadata), replication.present);
  const ring::Placement next(next_ring(metadata), replication.target());
  std::vector<TabletReplicas> all(metadata.tablets.size());
  for (ring::TabletIndex tablet = 0; tablet < all.size(); ++tablet) {
    TabletReplicas& replicas = all[tablet];
    replicas.members = ids_of(present, tablet);
    std::erase_if(replicas.members,
                  [&](NodeId node) { return metadata.find(node)->state == NodeState::removing; });
    std::vector<NodeId>& others = metadata.joint == Epoch(0) ? replicas.pending : replicas.next;
    others = ids_of(next, tablet);
    if (metadata.joint == Epoch(0)) {
      std::erase_if(others, [&](NodeId node) { return contains(replicas.members, node); });
    } else if (std::ranges::is_permutation(others, replicas.members)) {
      others.clear();
    }
    std::set<NodeId> all_of_them(replicas.members.begin(), replicas.members.end());
    all_of_them.insert(replicas.pending.begin(), replicas.pending.end());
    ASSERT(all_of_them.size() == replicas.members.size() + replicas.pending.size(),
           "a node holds tablet {} twice", tablet);
  }
  return all;
}

Epoch began_on(const Node& node, const ReplicatedKeyspace& keyspace, std::size_t tablet) {
  const auto came = keyspace.came.find({static_cast<std::uint32_t>(tablet), node.number});
  const Epoch began = came == keyspace.came.end() ? keyspace.began : came->second;
  return std::max(node.reentered, began);
}

std::vector<std::size_t> tablets_of(const ClusterMetadata& metadata, NodeId node) {
  std::vector<Replication> ways;
  for (const auto& [name, keyspace] : metadata.keyspaces) {
    const bool is_known = std::ranges::find(ways, keyspace.replication) != ways.end();
    if (!is_known) ways.push_back(keyspace.replication);
  }
  std::vector<bool> holds(metadata.tablets.size());
  for (const Replication& replication : ways) {
    const auto all = replicas_of(metadata, replication);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (contains(all[i].all(), node)) holds[i] = true;
    }
  }
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (holds[i]) places.push_back(i);
  }
  return places;
}

std::vector<NodeId> choose_acceptors(const ClusterMetadata& metadata,
                                     const std::vector<NodeId>& present) {
  // Who leaves decides no more, unless it is the only one.
  std::vector<const Node*> candidates;
  for (const NodeState state : {NodeState::normal, NodeState::leaving, NodeState::removing}) {
    if (!candidates.empty()) break;
    for (const Node& node : metadata.nodes) {
      if (node.state == state) candidates.push_back(&node);
    }
  }
  ASSERT(!candidates.empty());
  const std::size_t wanted = candidates.size() >= 5 ? 5 : candidates.size() >= 3 ? 3 : 1;
  std::vector<NodeId> chosen;
  std::map<std::string, std::size_t> of_datacentre;
  std::map<std::pair<std::string, std::string>, std::size_t> of_rack;
  const auto choose = [&](const Node& node) {
    chosen.push_back(node.id());
    ++of_datacentre[node.description.datacentre];
    ++of_rack[{node.description.datacentre, node.description.rack}];
  };
  for (const Node* node : candidates) {
    if (chosen.size() < wanted && contains(present, node->id())) choose(*node);
  }
  while (chosen.size() < wanted) {
    const auto crowd_of = [&](const Node* node) {
      const NodeDescription& it = node->description;
      return std::tuple(contains(chosen, it.id), of_datacentre[it.datacentre],
                        of_rack[{it.datacentre, it.rack}], it.id);
    };
    choose(**std::ranges::min_element(candidates, {}, crowd_of));
  }
  std::ranges::sort(chosen);
  return chosen;
}

}  // namespace helenus::metadata
