// MetadataChanger: changes the cluster's metadata by compare-and-swap of the document that holds
// them.
//
// Ownership: the ClusterService's. Core affinity: the core of its Runtime.
#pragma once

#include "base/result.h"
#include "cluster/cluster_options.h"
#include "cluster/known_metadata.h"
#include "consensus/paxos_store.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::cluster {

class MetadataChanger {
 public:
  // All outlive it.
  MetadataChanger(runtime::Runtime& runtime, consensus::PaxosStore& store, KnownMetadata& known)
      : runtime_(runtime), store_(store), known_(known) {}
  MetadataChanger(const MetadataChanger&) = delete;
  MetadataChanger& operator=(const MetadataChanger&) = delete;

  // Returns metadata with the change in them, which are known here then. Errors: of the transition;
  // those of MetadataStore::change except already_exists, after which it tries again.
  runtime::Task<base::Result<MetadataPtr>> change(Transition transition, runtime::Until until);

 private:
  runtime::Runtime& runtime_;
  consensus::PaxosStore& store_;
  KnownMetadata& known_;
};

}  // namespace helenus::cluster
