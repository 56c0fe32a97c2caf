// ClusterMetadata: what the nodes of a cluster agree on. It is the content of consensus's document:
// who the nodes are, who owns which tablet, how keyspaces are replicated, and the schema.
//
// Two rings. Between the moment when a change of the ring is decided and the moment when data has
// moved, there are two of them: the present one, by `owner`, and the next one, by `next_owner`
// where there is one. So it is with a keyspace's replication. From both follow, for each keyspace
// and tablet,
//   members   the replicas on the present ring, but for nodes that are being removed
//   pending   those on the next ring that are no members: they receive every write and copy what
//             came before, and count from the end of the change on (theory S8)
//   next      once the change is joint (`joint`): all replicas on the next ring, where they are
//             others than the members. From then on both sets count, and nobody is pending
// A change takes three documents (R17): it begins, becomes joint when every pending replica has its
// data, and is finished when every replica of the next ring has pulled from every member. In joint
// each level is met in both sets, so that a majority of either meets what any majority did before.
//
// All copies in a keyspace follow from this one value by functions without choice, so whoever holds
// the same document means the same replicas.
//
// Epochs (S10). Every change of the ring or of replication takes the next epoch, and gives it to
// the tablets whose members or pending ones change in any keyspace. So one tablet and one epoch
// mean one set of replicas as long as a keyspace lives, and a message with an older epoch is known
// for one.
//
// Invariants, checked by validate():
//   M1  no node and no address of a node is there twice
//   M2  no token is there twice; each has one owner, which is a node that is here
//   M3  a joining node owns nothing yet; a node that goes will own nothing
//   M4  one node joins, or one leaves, or some are being removed, or none of this; or one joins in
//       the place of some that are being removed
//   M5  no tablet has an epoch that was not given yet
//   M6  keyspaces are those of the schema, and become what the schema says of them
//   M7  a node that was removed is not here
//   M11 a node re-entered in no epoch that was not given yet, and who is in doubt has re-entered
//   M13 who came to a tablet later than its keyspace is one of its replicas, and came in an epoch
//       that was given after the keyspace began
//   M14 only what is under way is joint, since an epoch that was given
//   M9  numbers were given: of nodes, keyspaces and tables none is there twice, and none is as
//   large
//       as the next one of its kind; every table of the schema has one, and nothing else has
// and of every two documents in a row, checked by may_follow():
//   M8  tokens stay; epochs of tablets only grow, and grow where replicas change
//   M12 `reentered` of a node only grows, with the epochs of all tablets that it holds; a node
//   comes
//       into doubt by that alone
//   M15 who is a replica and was none came to the tablet in an epoch of after that; of others that
//       stays
//   M16 replicas of the next ring are members at once only if the change was joint
//   M10 numbers stay with whom they were given to, and are never given again: the next ones only
//       grow, and who is new, or a table whose rows were dropped, has one that was not given before
// That no node is twice among a tablet's replicas follows from ring::Placement.
//
// Re-entry (R10). A node whose replicas may have lost what others count on is in doubt: it stays a
// member, and its replicas neither mint nor answer nor count. It came into doubt in an epoch of its
// own (`reentered`), which the tablets that it holds have from then on: so no acknowledgement and
// no watermark of before is taken for one of after, and its replicas have names that nobody has
// minted under. It leaves doubt when it has caught up, without a new epoch: quorums of those who
// count it and of those who do not yet are majorities of the same replicas.
//
// Numbers (R2). A dot is minted under the number of a node and an incarnation, which is the epoch
// in which that replica of the tablet began: that of its keyspace (`began`), the one in which its
// node came to the tablet (`came`), or the one in which its node re-entered, whichever was the
// last. So a tablet that moves away and comes back is minted for under another name. Rows lie under
// the storage id of their table. All of these come from here, so that no two nodes ever mean
// different things by one of them, and by M10, M12 and M15 none ever means two things.
//
// Values without a clock, input or output. Sizes are bounded; the greatest documents are bounded by
// the register that holds them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/secret.h"
#include "base/strong.h"
#include "base/uuid.h"
#include "causality/dot.h"
#include "model/keyspace_number.h"
#include "model/node_id.h"
#include "model/schema.h"
#include "ring/partitioner.h"
#include "ring/placement.h"
#include "ring/topology.h"
#include "runtime/address.h"

namespace helenus::metadata {

using causality::Epoch;
using causality::NodeNumber;
using model::KeyspaceNumber;
// Under which the rows of a table lie; another one since a TRUNCATE.
using StorageId = base::Strong<struct StorageIdTag, std::uint64_t>;

inline constexpr std::size_t kClusterNameSizeMax = 128;
// Of epochs and of numbers. An epoch is an incarnation of actors, too, which has 32 bits.
inline constexpr std::uint64_t kEpochMax = std::uint64_t{1} << 31;
inline constexpr std::uint64_t kNumberMax = std::uint64_t{1} << 31;
// Removed nodes that are remembered: those of the last removals.
inline constexpr std::size_t kRemovedMax = 4096;

// The numbers are those of the bytes.
enum class NodeState : std::uint8_t {
  joining = 0,   // takes over its data; owns nothing yet
  normal = 1,    //
  leaving = 2,   // hands over its data; a member of everything until that is done
  removing = 3,  // is said to be dead: a member of nothing, others copy from those that are left
};
std::string_view name_of(NodeState state);

// Who a node is, as it says itself.
struct NodeDescription {
  model::NodeId id;
  runtime::Address node_address;    // where other nodes reach it
  runtime::Address client_address;  // where drivers reach it
  std::string datacentre;
  std::string rack;

  friend bool operator==(const NodeDescription&, const NodeDescription&) = default;
};

struct Node {
  NodeDescription description;
  NodeNumber number;
  NodeState state = NodeState::normal;
  Epoch reentered{0};     // in which its replicas began anew; 0: they never have
  bool in_doubt = false;  // since then: they count for nothing until they have caught up

  model::NodeId id() const { return description.id; }
  friend bool operator==(const Node&, const Node&) = default;
};

// The range that ends at a token.
struct Tablet {
  ring::Position token;
  model::NodeId owner;
  std::optional<model::NodeId> next_owner;  // another one
  Epoch epoch;

  friend bool operator==(const Tablet&, const Tablet&) = default;
};

struct Replication {
  ring::Strategy present;
  std::optional<ring::Strategy> next;  // another one

  // What it becomes, or is.
  const ring::Strategy& target() const { return next ? *next : present; }
  friend bool operator==(const Replication&, const Replication&) = default;
};

// Of a replica of a keyspace: the tablet's place in `tablets`, and its node.
struct ReplicaPlace {
  std::uint32_t tablet = 0;
  NodeNumber node;
  friend auto operator<=>(const ReplicaPlace&, const ReplicaPlace&) = default;
};

struct ReplicatedKeyspace {
  KeyspaceNumber number;
  Epoch began;  // in which it was made
  Replication replication;
  std::map<ReplicaPlace, Epoch> came = {};  // of replicas that are not there since it began

  friend bool operator==(const ReplicatedKeyspace&, const ReplicatedKeyspace&) = default;
};

// What is given next.
struct NextNumbers {
  NodeNumber node{1};
  KeyspaceNumber keyspace{1};
  StorageId storage{1};

  friend bool operator==(const NextNumbers&, const NextNumbers&) = default;
};

// What nodes authenticate the contexts with that they give to clients, so that those of one node
// are good on every other. Drawn by the founder; formats as "***".
struct ClusterSecret {
  static constexpr std::size_t kSize = 32;
  base::Secret<std::array<std::byte, kSize>> bytes;

  friend bool operator==(const ClusterSecret& a, const ClusterSecret& b) {
    return a.bytes.reveal() == b.bytes.reveal();
  }
};

struct ClusterMetadata {
  std::string cluster_name;
  ring::Partitioner partitioner = ring::Partitioner::murmur3;
  Epoch epoch;                  // the last one given
  Epoch joint{0};               // in which what is under way became joint; 0: it has not
  std::vector<Node> nodes;      // by ascending id
  std::vector<Tablet> tablets;  // by ascending token
  std::map<std::string, ReplicatedKeyspace, std::less<>> keyspaces;
  std::map<base::Uuid, StorageId> storage;  // by the tables' ids
  std::vector<model::NodeId> removed;       // the last of them, the latest one last
  NextNumbers next;
  ClusterSecret secret;
  model::Schema schema;  // what statements made

  // Null if it is not here.
  const Node* find(model::NodeId node) const;
  bool was_removed(model::NodeId node) const;

  friend bool operator==(const ClusterMetadata&, const ClusterMetadata&) = default;
};

// M1 to M7, M9, M11, M13 and M14. Errors: invalid_argument, in words for an operator.
base::Result<void> validate(const ClusterMetadata& metadata);

// M8, M10, M12, M15, M16, and that it is the same cluster. Requires: both are valid.
bool may_follow(const ClusterMetadata& next, const ClusterMetadata& previous);

// The ring as it is, without joining nodes; and as it will be, without those that go. The same ring
// unless a change is under way. Requires: valid.
ring::TopologyPtr present_ring(const ClusterMetadata& metadata);
ring::TopologyPtr next_ring(const ClusterMetadata& metadata);

// Whether something has to be finished: a node joins or goes, or replication changes.
bool change_is_under_way(const ClusterMetadata& metadata);

// Whether replicas of some tablet will be others than they are, or some are pending.
bool moves_replicas(const ClusterMetadata& metadata);

// The replicas of one tablet. Nobody is twice among the members and the pending ones.
struct TabletReplicas {
  std::vector<model::NodeId> members;  // in the order of ring::Placement
  std::vector<model::NodeId> pending;  // likewise
  // Likewise: of a joint change the set that follows the members; empty if that is the same.
  std::vector<model::NodeId> next = {};

  // Each once, the members first.
  std::vector<model::NodeId> all() const;

  friend bool operator==(const TabletReplicas&, const TabletReplicas&) = default;
};

// Whatever the order.
bool same_replicas(const TabletReplicas& a, const TabletReplicas& b);

// Of every tablet, by its place in `tablets`. Requires: valid. Cost: two placements.
std::vector<TabletReplicas> replicas_of(const ClusterMetadata& metadata,
                                        const Replication& replication);

// In which the replica of the keyspace's tablet on the node began: the incarnation that it mints
// under.
Epoch began_on(const Node& node, const ReplicatedKeyspace& keyspace, std::size_t tablet);
// Of the places in `tablets` those that the node holds a replica of, of any keyspace. Ascending.
// Requires: valid. Cost: two placements for each way in which keyspaces are replicated.
std::vector<std::size_t> tablets_of(const ClusterMetadata& metadata, model::NodeId node);

// Whether the node will be a replica of nothing when what is under way is finished.
bool goes(const Node& node);

// Who should decide on the next document: five nodes if there are as many, else three, else one, as
// in between a further one only adds to what may fail. Those of `present` that may stay do; others
// are taken from the datacentres, then the racks, that have the fewest so far.
// Who is about to go is taken only where nobody else is left. Not empty. Requires: valid.
std::vector<model::NodeId> choose_acceptors(const ClusterMetadata& metadata,
                                            const std::vector<model::NodeId>& present);

}  // namespace helenus::metadata
