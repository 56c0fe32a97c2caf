#include "node/up_nodes.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "metadata/cluster_metadata.h"
#include "model/node_id.h"

namespace helenus::node {

using base::Errc;
using base::Result;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;

namespace {

// A node that is up is heard of within an interval of gossip or two.
constexpr auto kOthersUnheardWait = std::chrono::seconds(1);
constexpr auto kNobodyHeardWait = std::chrono::seconds(3);
constexpr auto kJoiningLookPeriod = std::chrono::milliseconds(200);

}  // namespace

UpNodes::UpNodes(runtime::Runtime& runtime, cluster::ClusterService& cluster, model::NodeId self,
                 Tell tell)
    : runtime_(runtime),
      cluster_(cluster),
      self_(self),
      tell_(std::move(tell)),
      news_(runtime),
      tasks_(runtime) {
  cluster_.gossip().on_event([this](const membership::Event&) {
    changed_ = true;
    news_.wake_all();
  });
  // Somebody may begin to join.
  cluster_.on_metadata([this](const cluster::MetadataPtr&) { news_.wake_all(); });
}

replication::UpNodesPtr UpNodes::now() const {
  std::set<model::NodeId> up;
  for (const auto& [node, known] : cluster_.gossip().view().nodes()) {
    if (known.up || (known.alive && joins(node))) up.insert(node);
  }
  return std::make_shared<const std::set<model::NodeId>>(std::move(up));
}

bool UpNodes::joins(model::NodeId node) const {
  const cluster::MetadataPtr& metadata = cluster_.metadata();
  const metadata::Node* known = metadata == nullptr ? nullptr : metadata->find(node);
  return known != nullptr && known->state == metadata::NodeState::joining;
}

bool UpNodes::somebody_joins() const {
  const cluster::MetadataPtr& metadata = cluster_.metadata();
  return metadata != nullptr &&
         std::ranges::any_of(metadata->nodes, [](const metadata::Node& node) {
           return node.state == metadata::NodeState::joining;
         });
}

Task<void> UpNodes::follow() {
  while (!stopping_.stop_requested()) {
    if (std::exchange(changed_, false)) {
      auto up = now();
      co_await tell_(up);
      told_ = std::move(up);
      news_.wake_all();
      continue;
    }
    // Gossip tells of members alone when they come and go.
    const auto until = somebody_joins()
                           ? Until::after(runtime_, kJoiningLookPeriod, stopping_.token())
                           : Until{.stop = stopping_.token()};
    const auto woken = co_await news_.wait(until);
    if (!woken && !woken.failed_with(Errc::timeout)) co_return;
    changed_ = changed_ || told_ == nullptr || *now() != *told_;
  }
}

std::size_t UpNodes::count_unheard() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(cluster_.metadata()->nodes, [&](const metadata::Node& node) {
        return node.id() != self_ && (told_ == nullptr || !told_->contains(node.id()));
      }));
}

Task<Result<void>> UpNodes::wait_heard(StopToken stop) {
  auto until = Until::after(runtime_, kNobodyHeardWait, std::move(stop));
  bool majority_is_up = false;
  for (;;) {
    const std::size_t unheard = count_unheard();
    if (unheard == 0) co_return {};
    if (!majority_is_up && unheard * 2 < cluster_.metadata()->nodes.size()) {
      majority_is_up = true;
      until.deadline = std::min(until.deadline, runtime_.clock.now() + kOthersUnheardWait);
    }
    const auto woken = co_await news_.wait(until);
    if (woken.failed_with(Errc::timeout)) co_return {};
    if (!woken) co_return woken.error();
  }
}

Task<void> UpNodes::stop() {
  stopping_.request_stop();
  co_await tasks_.join();
}

}  // namespace helenus::node
