// ClusterDiscovery: finds the cluster of a node that knows of none, or founds it. founding_rule.h
// says who founds.
//
//   asks the seeds ──▶ one knows a cluster ──▶ fetches some metadata: they name who to ask
//        ▲        ──▶ this node is to found ─▶ founds
//        └ pause ◀─── else
//
// Ownership: the ClusterService's. Core affinity: the core of its Runtime.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "base/log.h"
#include "base/result.h"
#include "cluster/founding_rule.h"
#include "cluster/node_context.h"
#include "consensus/paxos_store.h"
#include "model/node_id.h"
#include "rpc/rpc.h"
#include "runtime/address.h"
#include "runtime/operation.h"
#include "runtime/task.h"

namespace helenus::cluster {

class ClusterDiscovery {
 public:
  // All outlive it.
  ClusterDiscovery(const NodeContext& context, rpc::Rpc& rpc, consensus::PaxosStore& store);
  ClusterDiscovery(const ClusterDiscovery&) = delete;
  ClusterDiscovery& operator=(const ClusterDiscovery&) = delete;

  // Tells others, by rpc::verbs::kMetadataVersion, which version this node knows. Requires: once;
  // this outlives the Rpc's stop().
  void serve();
  // Returns when the store knows a document. Errors: of the file; cancelled, timeout. Requires: the
  // store knows none; the Rpc has started.
  runtime::Task<base::Result<void>> find_or_found(runtime::Until until);

 private:
  struct SeedVersion {
    model::NodeId node;
    consensus::Version version;  // the newest that it knows
  };

  runtime::Task<base::Result<base::Bytes>> tell_version();
  runtime::Task<SeedAnswers> ask_seeds(runtime::Until until);
  // Who is at that address. If it is this node, it has nothing to tell: version 0.
  runtime::Task<base::Result<SeedVersion>> ask_seed(runtime::Address seed, runtime::Until until);
  // Whether some document came.
  runtime::Task<bool> fetch_metadata(std::vector<model::NodeId> from, runtime::Until until);
  runtime::Task<base::Result<void>> found(runtime::Until until);

  const NodeContext& context_;
  rpc::Rpc& rpc_;
  consensus::PaxosStore& store_;
  base::Logger log_;
};

}  // namespace helenus::cluster
