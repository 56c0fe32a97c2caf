// ClusterPeers: the other nodes, as drivers are told of them in system.peers and system.peers_v2,
// and which part of the ring is whose. Drivers compute from the tokens who holds a partition.
//
// An immutable value of one moment, shared between cores as PeersPtr; every core has a pointer of
// its own, which is replaced on that core.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/uuid.h"
#include "model/token.h"
#include "runtime/address.h"

namespace helenus::cql {

struct PeerFacts {
  base::Uuid host_id;
  runtime::Address node_address;  // where other nodes reach it
  runtime::Address cql_address;   // where drivers reach it
  std::string data_center;
  std::string rack;
  std::vector<model::Token> tokens;  // ascending
  base::Uuid schema_version;         // nil: that of the node that tells
  bool is_up = false;                // it answers clients, as far as is known here

  friend bool operator==(const PeerFacts&, const PeerFacts&) = default;
};

struct ClusterPeers {
  std::vector<model::Token> own_tokens;  // ascending
  std::vector<PeerFacts> others;         // by host id; without the node that tells

  friend bool operator==(const ClusterPeers&, const ClusterPeers&) = default;
};

using PeersPtr = std::shared_ptr<const ClusterPeers>;
// Asked anew for each read, on the core that reads. Never null.
using PeersSource = std::function<PeersPtr()>;

}  // namespace helenus::cql
