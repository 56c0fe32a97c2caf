// KnownMetadata: the newest metadata that this node knows of, and who is told when they change.
//
// Knowing is not applying: see metadata_applier.h for the version that this node acts by.
//
// Ownership: the ClusterService's. Core affinity: the core of its Runtime.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/cluster_options.h"
#include "consensus/document.h"
#include "ring/topology.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "runtime/wait_queue.h"

namespace helenus::cluster {

class KnownMetadata {
 public:
  // `before` is null the first time.
  using Listener = std::function<void(const MetadataPtr& now, const MetadataPtr& before)>;

  // `news` is woken after the listeners, and outlives this.
  KnownMetadata(runtime::Runtime& runtime, runtime::WaitQueue& news)
      : news_(news), newer_(runtime) {}
  KnownMetadata(const KnownMetadata&) = delete;
  KnownMetadata& operator=(const KnownMetadata&) = delete;

  // Null until the first document is adopted.
  const MetadataPtr& metadata() const { return metadata_; }
  consensus::Version version() const { return version_; }
  const ring::TopologyPtr& ring() const { return ring_; }  // of metadata()

  // Called in the order of registration, at every newer version; quick. What a listener refers to
  // outlives this.
  void on_newer(Listener listener) { listeners_.push_back(std::move(listener)); }

  // Makes the document known, unless it is no newer than what is known. Errors: of the bytes, and
  // then nothing has changed.
  base::Result<void> adopt(const consensus::Document& document);

  // Returns when a newer version than that one is known. Errors: timeout, cancelled, closed.
  runtime::Task<base::Result<void>> wait_newer(consensus::Version version, runtime::Until until);
  // Ends all waits.
  void close();

 private:
  MetadataPtr metadata_;
  consensus::Version version_;
  ring::TopologyPtr ring_;
  std::vector<Listener> listeners_;
  runtime::WaitQueue& news_;
  runtime::WaitQueue newer_;
};

}  // namespace helenus::cluster
