#include "metadata/transitions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "ring/token_assignment.h"

namespace helenus::metadata {

using base::Errc;
using base::Error;
using base::Result;
using model::NodeId;

namespace {

ring::Node ring_node(const NodeDescription& description) {
  return {description.id, description.datacentre, description.rack, {}};
}

Node* find_in(ClusterMetadata& metadata, NodeId node) {
  const auto found = std::ranges::lower_bound(metadata.nodes, node, {}, &Node::id);
  return found == metadata.nodes.end() || found->id() != node ? nullptr : &*found;
}

// Gives the number that is next.
template <class Number>
Number take(Number& next) {
  return std::exchange(next, Number(next.value() + 1));
}

void insert(ClusterMetadata& metadata, NodeDescription description, NodeState state) {
  const auto behind = std::ranges::lower_bound(metadata.nodes, description.id, {}, &Node::id);
  metadata.nodes.insert(behind, Node{.description = std::move(description),
                                     .number = take(metadata.next.node),
                                     .state = state});
}

// Every table and index of the schema has one; those of tables that are gone are not kept.
void give_storage_ids(ClusterMetadata& metadata) {
  std::map<base::Uuid, StorageId> storage;
  const auto give = [&](const base::Uuid& id) {
    const auto was = metadata.storage.find(id);
    storage.emplace(id, was != metadata.storage.end() ? was->second : take(metadata.next.storage));
  };
  for (const auto& [name, keyspace] : metadata.schema.keyspaces()) {
    for (const auto& [table_name, table] : keyspace->tables) {
      give(table->id);
      for (const model::Index& index : table->indexes) give(index.id);
    }
  }
  metadata.storage = std::move(storage);
}

// The node is gone and will not be taken back.
void remove(ClusterMetadata& metadata, NodeId node) {
  std::erase_if(metadata.nodes, [&](const Node& other) { return other.id() == node; });
  if (metadata.removed.size() == kRemovedMax) metadata.removed.erase(metadata.removed.begin());
  metadata.removed.push_back(node);
}

void set_next_owners(ClusterMetadata& metadata, const ring::Topology& next) {
  ASSERT(metadata.tablets.size() == next.tablet_count());
  for (ring::TabletIndex i = 0; i < next.tablet_count(); ++i) {
    Tablet& tablet = metadata.tablets[i];
    ASSERT(tablet.token == next.token_of(i));
    const NodeId owner = next.node(next.owner_of(i)).id;
    tablet.next_owner = owner == tablet.owner ? std::nullopt : std::optional(owner);
  }
}

// How each keyspace that is in both was and is replicated, each way once.
std::vector<std::pair<Replication, Replication>> replications(const ClusterMetadata& before,
                                                              const ClusterMetadata& after) {
  std::vector<std::pair<Replication, Replication>> all;
  for (const auto& [name, keyspace] : after.keyspaces) {
    const auto was = before.keyspaces.find(name);
    if (was == before.keyspaces.end()) continue;
    auto both = std::pair(was->second.replication, keyspace.replication);
    if (std::ranges::find(all, both) == all.end()) all.push_back(std::move(both));
  }
  return all;
}

// The result of a change that leaves the replicas as they are.
Result<ClusterMetadata> checked(const ClusterMetadata& before, ClusterMetadata after) {
  TRY_VOID(validate(after));
  ASSERT(may_follow(after, before), "M8: after epoch {}", before.epoch);
  return after;
}

// Who came to a tablet by the change, and who is no replica any more (M13, M15).
void note_newcomers(const ClusterMetadata& before, const ReplicatedKeyspace& was,
                    ClusterMetadata& after, ReplicatedKeyspace& keyspace) {
  const auto replicas_before = replicas_of(before, was.replication);
  const auto replicas_after = replicas_of(after, keyspace.replication);
  std::map<ReplicaPlace, Epoch> came;
  for (std::uint32_t i = 0; i < replicas_after.size(); ++i) {
    const auto held_before = replicas_before[i].all();
    for (const NodeId node : replicas_after[i].all()) {
      const ReplicaPlace place{i, after.find(node)->number};
      if (std::ranges::find(held_before, node) == held_before.end()) {
        came.emplace(place, after.epoch);
      } else if (const auto known = was.came.find(place); known != was.came.end()) {
        came.insert(*known);
      }
    }
  }
  keyspace.came = std::move(came);
}

// The result of one that may change them: under a new epoch.
Result<ClusterMetadata> in_new_epoch(const ClusterMetadata& before, ClusterMetadata after) {
  if (before.epoch.value() >= kEpochMax) {
    return Error(Errc::invalid_argument, "no epoch is left");
  }
  after.epoch = Epoch(before.epoch.value() + 1);
  for (auto& [name, keyspace] : after.keyspaces) keyspace.came.clear();
  TRY_VOID(validate(after));
  for (auto& [name, keyspace] : after.keyspaces) {
    const auto was = before.keyspaces.find(name);
    if (was == before.keyspaces.end() || was->second.number != keyspace.number) continue;
    note_newcomers(before, was->second, after, keyspace);
  }
  for (const auto& [was, is] : replications(before, after)) {
    const auto replicas_before = replicas_of(before, was);
    const auto replicas_after = replicas_of(after, is);
    for (std::size_t i = 0; i < replicas_after.size(); ++i) {
      if (!same_replicas(replicas_before[i], replicas_after[i])) {
        after.tablets[i].epoch = after.epoch;
      }
    }
  }
  return checked(before, std::move(after));
}

// Why a node cannot join or leave now, if so.
Result<void> check_nobody_moves(const ClusterMetadata& metadata) {
  for (const Node& node : metadata.nodes) {
    if (node.state != NodeState::normal) {
      return Error(Errc::locked, "node {} ({}) is {}: wait for it, or give that up", node.id(),
                   node.description.node_address, name_of(node.state));
    }
  }
  if (metadata.joint != Epoch(0)) {
    return Error(Errc::locked, "replicas of a keyspace move: wait for them");
  }
  return {};
}

Error unknown_node(const ClusterMetadata& metadata, NodeId node) {
  return Error(Errc::not_found, "node {} {} cluster \"{}\"", node,
               metadata.was_removed(node) ? "was removed from" : "is not of",
               metadata.cluster_name);
}

// The name of a keyspace that loses its last member of a tablet, if there is one.
std::optional<std::string> keyspace_that_loses_data(const ClusterMetadata& before,
                                                    const ClusterMetadata& after) {
  for (const auto& [name, keyspace] : after.keyspaces) {
    const auto replicas_before =
        replicas_of(before, before.keyspaces.find(name)->second.replication);
    const auto replicas_after = replicas_of(after, keyspace.replication);
    for (std::size_t i = 0; i < replicas_after.size(); ++i) {
      if (replicas_after[i].members.empty() && !replicas_before[i].members.empty()) return name;
    }
  }
  return std::nullopt;
}

Result<void> check_loss(const ClusterMetadata& before, const ClusterMetadata& after, NodeId node,
                        DataLoss data_loss) {
  ClusterMetadata without_newcomers = after;
  for (auto& [name, keyspace] : without_newcomers.keyspaces) keyspace.came.clear();
  TRY_VOID(validate(without_newcomers));
  if (data_loss == DataLoss::accepted) return {};
  if (const auto keyspace = keyspace_that_loses_data(before, after)) {
    return Error(Errc::refused, "node {} holds the last copy of some data of keyspace {}", node,
                 *keyspace);
  }
  return {};
}

Result<void> check_newcomer(const ClusterMetadata& metadata, const NodeDescription& newcomer) {
  if (metadata.find(newcomer.id) != nullptr) {
    return Error(Errc::already_exists, "node {} is of cluster \"{}\" already", newcomer.id,
                 metadata.cluster_name);
  }
  if (metadata.was_removed(newcomer.id)) {
    return Error(Errc::refused, "node {} was removed; it may come back as a new one, without data",
                 newcomer.id);
  }
  return {};
}

Result<void> check_as_seen(const ClusterMetadata& metadata, Epoch as_of) {
  if (metadata.epoch == as_of) return {};
  return Error(Errc::refused, "epoch {} was seen to be whole, and this is epoch {}", as_of,
               metadata.epoch);
}

// The node that joins in the place of others goes, and their removal goes on without it.
Result<ClusterMetadata> abandon_replacement(const ClusterMetadata& metadata) {
  ClusterMetadata after = metadata;
  after.joint = Epoch(0);
  auto next = present_ring(metadata);
  for (const Node& node : metadata.nodes) {
    if (node.state == NodeState::joining) remove(after, node.id());
    if (node.state != NodeState::removing) continue;
    TRY(next, ring::leave(*next, node.id()));
  }
  set_next_owners(after, *next);
  return in_new_epoch(metadata, std::move(after));
}

}  // namespace

Result<ClusterMetadata> found(Founding founding) {
  std::vector<ring::Node> members;
  ClusterMetadata metadata{.cluster_name = std::move(founding.cluster_name),
                           .partitioner = founding.partitioner,
                           .epoch = Epoch(1),
                           .joint = Epoch(0),
                           .nodes = {},
                           .tablets = {},
                           .keyspaces = {},
                           .storage = {},
                           .removed = {},
                           .next = {},
                           .secret = founding.secret,
                           .schema = {}};
  for (NodeDescription& description : founding.nodes) {
    members.push_back(ring_node(description));
    insert(metadata, std::move(description), NodeState::normal);
  }
  TRY(const auto topology,
      ring::create_ring(founding.partitioner, std::move(founding.tokens), std::move(members)));
  for (ring::TabletIndex i = 0; i < topology->tablet_count(); ++i) {
    metadata.tablets.push_back({.token = topology->token_of(i),
                                .owner = topology->node(topology->owner_of(i)).id,
                                .next_owner = std::nullopt,
                                .epoch = metadata.epoch});
  }
  TRY_VOID(validate(metadata));
  return metadata;
}

Result<ClusterMetadata> begin_join(const ClusterMetadata& metadata, NodeDescription newcomer) {
  TRY_VOID(check_newcomer(metadata, newcomer));
  TRY_VOID(check_nobody_moves(metadata));
  TRY(const auto next, ring::join(*present_ring(metadata), ring_node(newcomer)));
  ClusterMetadata after = metadata;
  insert(after, std::move(newcomer), NodeState::joining);
  set_next_owners(after, *next);
  return in_new_epoch(metadata, std::move(after));
}

Result<ClusterMetadata> begin_leave(const ClusterMetadata& metadata, NodeId node) {
  if (metadata.find(node) == nullptr) return unknown_node(metadata, node);
  TRY_VOID(check_nobody_moves(metadata));
  TRY(const auto next, ring::leave(*present_ring(metadata), node));
  ClusterMetadata after = metadata;
  find_in(after, node)->state = NodeState::leaving;
  set_next_owners(after, *next);
  return in_new_epoch(metadata, std::move(after));
}

Result<ClusterMetadata> begin_removal(const ClusterMetadata& metadata, NodeId node,
                                      DataLoss data_loss) {
  const Node* present = metadata.find(node);
  if (present == nullptr) return unknown_node(metadata, node);
  if (present->state == NodeState::removing) {
    return Error(Errc::already_exists, "node {} is being removed already", node);
  }
  for (const Node& other : metadata.nodes) {
    const bool is_in_the_way = other.state == NodeState::joining ||
                               (other.state == NodeState::leaving && &other != present);
    if (is_in_the_way) {
      return Error(Errc::locked, "node {} ({}) is {}: give that up first", other.id(),
                   other.description.node_address, name_of(other.state));
    }
  }
  ClusterMetadata after = metadata;
  after.joint = Epoch(0);
  if (present->state == NodeState::normal) {
    TRY(const auto next, ring::leave(*next_ring(metadata), node));
    set_next_owners(after, *next);
  }
  find_in(after, node)->state = NodeState::removing;
  TRY_VOID(check_loss(metadata, after, node, data_loss));
  return in_new_epoch(metadata, std::move(after));
}

Result<ClusterMetadata> begin_replacement(const ClusterMetadata& metadata, NodeId dead,
                                          NodeDescription newcomer, DataLoss data_loss) {
  TRY_VOID(check_newcomer(metadata, newcomer));
  const Node* present = metadata.find(dead);
  if (present == nullptr) return unknown_node(metadata, dead);
  TRY_VOID(check_nobody_moves(metadata));
  const NodeDescription& gone = present->description;
  if (gone.datacentre != newcomer.datacentre) {
    return Error(Errc::refused, "node {} is of data centre {}, and cannot be replaced from {}",
                 dead, gone.datacentre, newcomer.datacentre);
  }
  const NodeId node = newcomer.id;
  ClusterMetadata after = metadata;
  insert(after, std::move(newcomer), NodeState::joining);
  find_in(after, dead)->state = NodeState::removing;
  for (Tablet& tablet : after.tablets) {
    if (tablet.owner == dead) tablet.next_owner = node;
  }
  TRY_VOID(check_loss(metadata, after, dead, data_loss));
  return in_new_epoch(metadata, std::move(after));
}

Result<ClusterMetadata> join_sets(const ClusterMetadata& metadata, Epoch as_of) {
  if (!change_is_under_way(metadata)) return Error(Errc::not_found, "nothing is under way");
  if (metadata.joint != Epoch(0)) {
    return Error(Errc::already_exists, "the change is joint since epoch {}", metadata.joint);
  }
  TRY_VOID(check_as_seen(metadata, as_of));
  ClusterMetadata after = metadata;
  after.joint = Epoch(metadata.epoch.value() + 1);
  return in_new_epoch(metadata, std::move(after));
}

Result<ClusterMetadata> finish_change(const ClusterMetadata& metadata, Epoch as_of) {
  if (!change_is_under_way(metadata)) return Error(Errc::not_found, "nothing is to be finished");
  TRY_VOID(check_as_seen(metadata, as_of));
  if (metadata.joint == Epoch(0) && moves_replicas(metadata)) {
    return Error(Errc::refused, "replicas move, and the change is not joint yet");
  }
  ClusterMetadata after = metadata;
  after.joint = Epoch(0);
  for (Tablet& tablet : after.tablets) {
    if (tablet.next_owner) tablet.owner = *std::exchange(tablet.next_owner, std::nullopt);
  }
  for (auto& [name, keyspace] : after.keyspaces) {
    Replication& replication = keyspace.replication;
    if (replication.next) replication.present = *std::exchange(replication.next, std::nullopt);
  }
  for (const Node& node : metadata.nodes) {
    if (node.state == NodeState::joining) find_in(after, node.id())->state = NodeState::normal;
    if (node.state == NodeState::leaving || node.state == NodeState::removing) {
      remove(after, node.id());
    }
  }
  return in_new_epoch(metadata, std::move(after));
}

Result<ClusterMetadata> advance_change(const ClusterMetadata& metadata, Epoch as_of) {
  const bool must_join = metadata.joint == Epoch(0) && moves_replicas(metadata);
  return must_join ? join_sets(metadata, as_of) : finish_change(metadata, as_of);
}

Result<ClusterMetadata> abandon_change(const ClusterMetadata& metadata) {
  const bool somebody_joins =
      std::ranges::find(metadata.nodes, NodeState::joining, &Node::state) != metadata.nodes.end();
  const auto dead = std::ranges::find(metadata.nodes, NodeState::removing, &Node::state);
  if (dead != metadata.nodes.end()) {
    if (somebody_joins) return abandon_replacement(metadata);
    return Error(Errc::refused, "the removal of node {} is final", dead->id());
  }
  ClusterMetadata after = metadata;
  after.joint = Epoch(0);
  bool somebody_moved = false;
  for (const Node& node : metadata.nodes) {
    somebody_moved |= node.state != NodeState::normal;
    if (node.state == NodeState::joining) remove(after, node.id());
    if (node.state == NodeState::leaving) find_in(after, node.id())->state = NodeState::normal;
  }
  if (!somebody_moved) return Error(Errc::not_found, "nobody joins or leaves");
  for (Tablet& tablet : after.tablets) tablet.next_owner.reset();
  return in_new_epoch(metadata, std::move(after));
}

Result<ClusterMetadata> change_schema(const ClusterMetadata& metadata, model::Schema schema) {
  ClusterMetadata after = metadata;
  after.keyspaces.clear();
  bool takes_epoch = false;
  for (const auto& [name, keyspace] : schema.keyspaces()) {
    auto strategy = ring::parse_strategy(keyspace->replication);
    if (!strategy) return std::move(strategy).error().within("keyspace " + name);
    const auto was = metadata.keyspaces.find(name);
    if (was == metadata.keyspaces.end()) {
      after.keyspaces.emplace(
          name, ReplicatedKeyspace{.number = take(after.next.keyspace),
                                   .began = Epoch(metadata.epoch.value() + 1),
                                   .replication = {.present = *std::move(strategy), .next = {}}});
      takes_epoch = true;
      continue;
    }
    ReplicatedKeyspace now = was->second;
    now.replication.next.reset();
    if (*strategy != now.replication.present) now.replication.next = *std::move(strategy);
    if (now != was->second && metadata.joint != Epoch(0)) {
      return Error(Errc::locked,
                   "keyspace {} is replicated otherwise when the ring holds still: a "
                   "node is about to come or go",
                   name);
    }
    takes_epoch |= now != was->second;
    after.keyspaces.emplace(name, std::move(now));
  }
  after.schema = std::move(schema);
  if (!change_is_under_way(after)) after.joint = Epoch(0);
  give_storage_ids(after);
  return takes_epoch ? in_new_epoch(metadata, std::move(after))
                     : checked(metadata, std::move(after));
}

Result<ClusterMetadata> truncate(const ClusterMetadata& metadata, const base::Uuid& table) {
  ClusterMetadata after = metadata;
  const auto found = after.storage.find(table);
  if (found == after.storage.end()) return Error(Errc::not_found, "no table has the id {}", table);
  found->second = take(after.next.storage);
  const auto truncated = after.schema.find_table(table);
  if (truncated == nullptr) return Error(Errc::not_found, "{} is the id of an index", table);
  for (const model::Index& index : truncated->indexes) {
    after.storage[index.id] = take(after.next.storage);
  }
  return checked(metadata, std::move(after));
}

Result<ClusterMetadata> begin_reentry(const ClusterMetadata& metadata, NodeId node) {
  const Node* present = metadata.find(node);
  if (present == nullptr) return unknown_node(metadata, node);
  if (present->state == NodeState::joining || present->state == NodeState::removing) {
    return Error(Errc::refused, "node {} is {}, and cannot re-enter", node,
                 name_of(present->state));
  }
  ClusterMetadata after = metadata;
  const Epoch epoch(metadata.epoch.value() + 1);
  Node& reentering = *find_in(after, node);
  reentering.reentered = epoch;
  reentering.in_doubt = true;
  for (const std::size_t tablet : tablets_of(metadata, node)) after.tablets[tablet].epoch = epoch;
  return in_new_epoch(metadata, std::move(after));
}

Result<ClusterMetadata> finish_reentry(const ClusterMetadata& metadata, NodeId node,
                                       Epoch reentered, Epoch as_of) {
  const Node* present = metadata.find(node);
  if (present == nullptr) return unknown_node(metadata, node);
  if (!present->in_doubt || present->reentered != reentered) {
    return Error(Errc::refused, "node {} does not re-enter in epoch {}", node, reentered);
  }
  for (const std::size_t tablet : tablets_of(metadata, node)) {
    if (metadata.tablets[tablet].epoch > as_of) {
      return Error(Errc::refused,
                   "its replicas were seen to be whole in epoch {}, and now it is {}", as_of,
                   metadata.tablets[tablet].epoch);
    }
  }
  // Replicas of a keyspace that is newer have not been looked at.
  for (const auto& [name, keyspace] : metadata.keyspaces) {
    if (keyspace.began > as_of) {
      return Error(Errc::refused, "keyspace {} was made in epoch {}, after {}", name,
                   keyspace.began, as_of);
    }
  }
  ClusterMetadata after = metadata;
  find_in(after, node)->in_doubt = false;
  return checked(metadata, std::move(after));
}

Result<ClusterMetadata> change_addresses(const ClusterMetadata& metadata, NodeId node,
                                         runtime::Address node_address,
                                         runtime::Address client_address) {
  ClusterMetadata after = metadata;
  Node* moved = find_in(after, node);
  if (moved == nullptr) return unknown_node(metadata, node);
  moved->description.node_address = node_address;
  moved->description.client_address = client_address;
  return checked(metadata, std::move(after));
}

}  // namespace helenus::metadata
