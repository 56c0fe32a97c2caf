// ClusterOptions, ClusterHooks: what the owner of a ClusterService sets, and what it does itself.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "consensus/document.h"
#include "membership/phi_detector.h"
#include "metadata/cluster_metadata.h"
#include "ring/partitioner.h"
#include "rpc/rpc.h"
#include "runtime/address.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "runtime/time.h"

namespace helenus::cluster {

using MetadataPtr = std::shared_ptr<const metadata::ClusterMetadata>;

struct ClusterOptions {
  std::string data_directory;
  std::string cluster_name;
  metadata::NodeDescription self;
  runtime::Address listen_address;
  std::vector<runtime::Address> seeds{};  // this node alone if empty
  // The dead node in whose place this one joins, as people name it: its id or its address. Empty:
  // none. It says nothing once this node is of the cluster.
  std::string replaces{};
  // Of a cluster that this node founds.
  ring::Partitioner partitioner = ring::Partitioner::murmur3;
  std::size_t tokens = ring::kTokensDefault;
  runtime::Duration retry_pause = std::chrono::milliseconds(500);
  runtime::Duration attempt_timeout = std::chrono::seconds(5);
  // How long a start waits for a majority of the acceptors to tell the newest metadata.
  runtime::Duration catch_up_timeout = std::chrono::seconds(3);
  runtime::Duration gossip_interval = std::chrono::seconds(1);
  membership::PhiConfig detector{};
  rpc::VersionRange versions = rpc::kVersions;
  // Of the cluster; see cluster_secrets.h.
  std::vector<rpc::ClusterSecret> secrets{};
};

// Returns when all is there that the next step of this node's join needs, as of the epoch of these
// metadata (metadata/transitions.h): the data of which it is a pending replica, or, once the change
// is joint, what every replica of the next set has pulled. It may return earlier when newer
// metadata are known. It is not called in a cluster without keyspaces, where there is nothing to
// copy.
using Transfer =
    std::function<runtime::Task<base::Result<void>>(MetadataPtr metadata, runtime::Until until)>;
// Makes this node act by these metadata. There is one call at a time. A call that failed is made
// again after a pause, with the newest metadata of that moment.
using Apply = std::function<runtime::Task<base::Result<void>>(
    MetadataPtr metadata, consensus::Version version, runtime::Until until)>;

// What the owner does. Without an Apply, metadata are applied as soon as they are known.
struct ClusterHooks {
  Transfer transfer = {};
  Apply apply = {};
  // Called once if another node runs under this one's id: nobody is to be served any more. May be
  // absent.
  std::function<runtime::Task<void>()> id_taken = {};
  // As consensus::PersistentAcceptor::Hooks has it.
  std::function<runtime::Task<bool>()> make_room = {};
};

// From the metadata as they are to the next. It is called again when another node's change was
// decided first. A result that equals its argument is no change.
using Transition = std::function<base::Result<metadata::ClusterMetadata>(
    const metadata::ClusterMetadata& metadata)>;

}  // namespace helenus::cluster
