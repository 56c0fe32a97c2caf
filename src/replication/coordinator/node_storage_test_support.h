// For tests: the storage of one simulated node, as its composition root opens it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "replication/coordinator/coordinator.h"
#include "replication/replica/replicas.h"
#include "replication/tablets/tablet_directory.h"
#include "storage/engine/engines.h"

namespace helenus::replication::testing {

struct NodeStorageOptions {
  storage::EngineOptions engine;
  std::uint32_t cores = 1;
  TabletOptions tablets;
};

class NodeStorage {
 public:
  // Errors: as those of its parts.
  static runtime::Task<base::Result<std::unique_ptr<NodeStorage>>> open(
      runtime::Runtime& runtime, NodeStorageOptions options) {
    auto opened = std::make_unique<NodeStorage>();
    CO_TRY(opened->engines_,
           co_await storage::Engines::open(runtime, std::move(options.engine), options.cores));
    auto tablets = co_await TabletDirectory::open(runtime, *opened->engines_, options.tablets);
    if (!tablets) {
      std::ignore = co_await opened->engines_->stop();
      co_return std::move(tablets).error();
    }
    opened->tablets_ = *std::move(tablets);
    opened->replicas_ = std::make_unique<Replicas>(*opened->engines_, *opened->tablets_);
    opened->coordinator_ = std::make_unique<Coordinator>(runtime, *opened->replicas_);
    co_return opened;
  }
  // When no coordinator is used any more.
  runtime::Task<base::Result<void>> stop() { return engines_->stop(); }

  storage::Engines& engines() { return *engines_; }
  TabletDirectory& tablets() { return *tablets_; }
  // To be made and used on that core.
  std::unique_ptr<Coordinator> coordinator_on(runtime::Runtime& there) const {
    return std::make_unique<Coordinator>(there, *replicas_);
  }
  // That of the first core.
  Coordinator& coordinator() { return *coordinator_; }

 private:
  std::unique_ptr<storage::Engines> engines_;
  std::unique_ptr<TabletDirectory> tablets_;
  std::unique_ptr<Replicas> replicas_;
  std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace helenus::replication::testing
