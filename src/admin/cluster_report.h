// What a node tells of its cluster: drivers by the tables of peers and by events, operators by the
// JSON of /cluster (docs/operations/cluster.md).
//
// It follows from two things: the metadata, which say who is of the cluster and what is whose, and
// what gossip has heard, which says who answers. A node is a peer to drivers when it is of the
// cluster and no newcomer any more; it is up when its heart beats and it serves clients.
//
// Pure. Belongs to the core that has the metadata; what it makes may go anywhere.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/uuid.h"
#include "consensus/document.h"
#include "cql/protocol/response.h"
#include "cql/schema/describe.h"
#include "cql/system/peers.h"
#include "membership/membership.h"
#include "metadata/cluster_metadata.h"
#include "model/node_id.h"
#include "model/schema.h"
#include "replication/cluster/anti_entropy.h"
#include "runtime/address.h"
#include "runtime/time.h"

namespace helenus::admin {

// What a node has said of itself by gossip, and whether it lives.
struct Heard {
  bool is_alive = false;
  bool serves_clients = false;
  membership::Generation generation = 0;  // which life of it
  std::optional<base::Uuid> schema_version = std::nullopt;
  std::optional<std::uint64_t> metadata_version = std::nullopt;
  std::optional<std::uint64_t> load_bytes = std::nullopt;
  // Since the last beat of its heart; none if it has not been heard of, and of this node.
  std::optional<runtime::Duration> silent_for = std::nullopt;

  friend bool operator==(const Heard&, const Heard&) = default;
};
using HeardByNode = std::map<model::NodeId, Heard>;

// Of all nodes, this one among them. What does not decode was not said.
HeardByNode heard_by(const membership::Membership& membership);

// A cluster as one node knows it.
struct ClusterMoment {
  const metadata::ClusterMetadata& metadata;
  consensus::Version version;  // of the metadata
  const HeardByNode& heard;
  model::NodeId self;
};

// For the tables of peers. A node of the cluster that is no newcomer is there, up or not. Which
// schema it has is told as it was heard: after a change drivers wait until all nodes that are up
// have the same, so one that is behind must not be told with the schema of this node. Of a cluster
// with an ordered partitioner no tokens are told.
cql::ClusterPeers peers_of(const ClusterMoment& moment);

// What DESCRIBE CLUSTER tells of a keyspace, from what drivers are told: `self` is the node that
// tells, its tokens are own_tokens. None for a strategy that is not of the ring. Cost: a placement.
std::vector<cql::RangeOwners> ranges_of(const cql::ClusterPeers& peers, const cql::PeerFacts& self,
                                        const model::Keyspace& keyspace);

// Turns what happens in the cluster into what drivers are told.
//
//   Law. For each address the events are ( NEW_NODE UP (DOWN UP)* DOWN? REMOVED_NODE )* or a
//   beginning of that, but for nodes that were there at the start, which were no news.
//
// A driver that hears of a new node asks for the tables of peers at once, and connects: so the
// tables go first, and a node is new when it serves clients. A further life of a node that was not
// missed is DOWN and UP: connections to the one before are dead.
class PeerNews {
 public:
  struct News {
    cql::PeersPtr peers;                       // to be shown before
    std::vector<cql::protocol::Event> events;  // these are sent, in this order
  };

  explicit PeerNews(const ClusterMoment& start);

  const cql::PeersPtr& peers() const { return peers_; }
  // None if drivers would see no difference.
  std::optional<News> take(const ClusterMoment& now);

 private:
  // As drivers were told last.
  struct Told {
    runtime::Address address;
    bool is_up = false;
    membership::Generation generation = 0;
  };

  cql::PeersPtr peers_;
  std::map<base::Uuid, Told> told_;
};

// The JSON of /cluster: the nodes and how they are. With a keyspace, what a node owns is its share
// of the keyspace's rows; without, of the tokens. `trouble`: what is wrong with this node, in
// words; empty if nothing is. Errors: not_found for a keyspace that there is not.
base::Result<std::string> cluster_json(const ClusterMoment& moment, std::string_view keyspace,
                                       std::string_view trouble = {});

// The JSON of /cluster/ring: tokens, owners, and of a keyspace the replicas. Errors: as above.
base::Result<std::string> ring_json(const ClusterMoment& moment, std::string_view keyspace);

// The JSON of both while the node is not there yet.
std::string starting_json(std::string_view phase);

// {"error": ...}
std::string error_json(const base::Error& error);

// The JSON of /cluster/tablets: those that this node holds a replica of, of one keyspace or of all:
// the tokens above `from` and up to `to`, and who else holds them. Errors: as above; unsupported
// for an ordered partitioner.
base::Result<std::string> tablets_json(const ClusterMoment& moment, std::string_view keyspace);

// The JSON of /cluster/missing: for each node that holds tablets with this one, how many writes are
// here and not there as far as it has told, and how many it has told of that are not here.
std::string missing_json(const ClusterMoment& moment, const replication::AntiEntropyReport& report);

// What stands behind "keyspace=" in the query of a request, or behind another parameter that is a
// name; empty if nothing does. Errors: invalid_argument for what is no name.
base::Result<std::string> name_in(std::string_view query, std::string_view parameter);
base::Result<std::string> keyspace_in(std::string_view query);

}  // namespace helenus::admin
