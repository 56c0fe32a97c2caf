// For tests: the storage of one simulated node, as its composition root opens it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "metadata/metadata_test_support.h"
#include "replication/cluster/replicas.h"
#include "replication/coordinator/coordinator.h"
#include "replication/tablets/tablet_directory.h"
#include "storage/engine/engines.h"

namespace helenus::replication::testing {

struct NodeStorageOptions {
  storage::EngineOptions engine;
  std::uint32_t cores = 1;
  // Into how many tablets the ring is cut.
  std::size_t tokens = 4;
};

inline model::NodeId own_id() {
  return metadata::testing::node_id(1);
}

class NodeStorage {
 public:
  // Errors: as those of its parts.
  static runtime::Task<base::Result<std::unique_ptr<NodeStorage>>> open(
      runtime::Runtime& runtime, NodeStorageOptions options) {
    auto opened = std::make_unique<NodeStorage>();
    CO_TRY(opened->engines_,
           co_await storage::Engines::open(runtime, std::move(options.engine), options.cores));
    auto tablets = co_await TabletDirectory::open(runtime, *opened->engines_);
    if (!tablets) {
      std::ignore = co_await opened->engines_->stop();
      co_return std::move(tablets).error();
    }
    opened->tablets_ = *std::move(tablets);
    opened->replicas_ = std::make_unique<Replicas>(runtime, *opened->engines_, own_id());
    opened->coordinator_ = std::make_unique<Coordinator>(runtime, *opened->replicas_);
    co_return opened;
  }
  // As a node does with newer metadata. Errors: as of TabletDirectory::hold.
  runtime::Task<base::Result<void>> act_by(const metadata::ClusterMetadata& metadata,
                                           std::uint64_t version) {
    CO_TRY(auto held, co_await tablets_->hold(ReplicaMap::make(metadata, version, own_id())));
    co_await replicas_->take(std::move(held));
    if (metadata.nodes.size() == 1) CO_TRY_VOID(co_await tablets_->forget_doubts());
    co_return {};
  }
  void let_go() { tablets_->let_go(*coordinator_->tablets()); }
  // When no coordinator is used any more.
  runtime::Task<base::Result<void>> stop() {
    co_await replicas_->stop();
    co_await tablets_->stop();
    co_return co_await engines_->stop();
  }

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
