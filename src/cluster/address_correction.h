// AddressCorrection: a node that comes back at other addresses changes the metadata that name the
// old ones. It does so in the background: restarts wait for nobody, so neither does this.
//
// Ownership: the ClusterService's. Core affinity: the core of its Runtime.
#pragma once

#include "base/log.h"
#include "cluster/known_metadata.h"
#include "cluster/metadata_changer.h"
#include "cluster/node_context.h"
#include "runtime/task.h"

namespace helenus::cluster {

class AddressCorrection {
 public:
  // All outlive it.
  AddressCorrection(const NodeContext& context, const KnownMetadata& known,
                    MetadataChanger& changer);
  AddressCorrection(const AddressCorrection&) = delete;
  AddressCorrection& operator=(const AddressCorrection&) = delete;

  // Tries until the metadata name the addresses of this node, unless it is trying already.
  // Requires: metadata are known.
  void start();

 private:
  runtime::Task<void> run();

  const NodeContext& context_;
  const KnownMetadata& known_;
  MetadataChanger& changer_;
  base::Logger log_;
  bool is_running_ = false;
};

}  // namespace helenus::cluster
