// Replicas: the replicas of all cores of a node, one a core, which the coordinators of all cores
// share.
//
// Core affinity: made on the core of the Engines, and does not change after that: may be asked on
// any core. A Replica is used on its own core alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "replication/replica/replica.h"
#include "replication/tablets/tablet_directory.h"
#include "runtime/cores.h"
#include "storage/engine/engines.h"

namespace helenus::replication {

class Replicas {
 public:
  // Both outlive it.
  Replicas(storage::Engines& engines, const TabletDirectory& tablets) : tablets_(tablets) {
    for (std::uint32_t core = 0; core < engines.cores(); ++core) {
      by_core_.push_back(
          std::make_unique<Replica>(engines.on(runtime::CoreId{core}), tablets.all()));
    }
  }
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  const TabletDirectory& tablets() const { return tablets_; }
  std::uint32_t cores() const { return static_cast<std::uint32_t>(by_core_.size()); }
  Replica& on(runtime::CoreId core) const { return *by_core_[core.value()]; }

 private:
  const TabletDirectory& tablets_;
  std::vector<std::unique_ptr<Replica>> by_core_;
};

}  // namespace helenus::replication
