#include "node/cluster_reporter.h"

#include <optional>
#include <utility>

#include "membership/application_state.h"
#include "runtime/sleep.h"

namespace helenus::node {

using base::kv;
using base::Result;
using membership::StateKey;
using runtime::Task;

namespace {

HeardByNode heard_in(cluster::ClusterService& cluster) {
  return heard_by(cluster.gossip().membership());
}

}  // namespace

ClusterReporter::ClusterReporter(runtime::Runtime& runtime, cluster::ClusterService& cluster,
                                 model::NodeId self, Publish publish, Load load)
    : runtime_(runtime),
      cluster_(cluster),
      self_(self),
      publish_(std::move(publish)),
      load_(std::move(load)),
      log_(runtime.logger("cluster")),
      news_(moment(heard_in(cluster))),
      changed_(runtime),
      tasks_(runtime) {
  cluster_.on_metadata([this](const cluster::MetadataPtr&) { changed_.wake_all(); });
  cluster_.gossip().on_event([this](const membership::Event&) { changed_.wake_all(); });
  cluster_.gossip().on_state(
      [this](model::NodeId, StateKey, const base::Bytes&) { changed_.wake_all(); });
}

ClusterMoment ClusterReporter::moment(const HeardByNode& heard) const {
  return {
      .metadata = *cluster_.metadata(), .version = cluster_.held(), .heard = heard, .self = self_};
}

void ClusterReporter::say(StateKey key, base::Bytes value) {
  const auto said = cluster_.gossip().set(key, std::move(value));
  ASSERT(said, "{}", said.error());
}

void ClusterReporter::start() {
  say(StateKey::serves_clients, membership::encode_serves_clients(true));
  tasks_.spawn(publish_news());
  tasks_.spawn(tell_load());
}

Task<void> ClusterReporter::stop() {
  if (stopping_.stop_requested()) co_return;
  stopping_.request_stop();
  say(StateKey::serves_clients, membership::encode_serves_clients(false));
  co_await tasks_.join();
}

Task<void> ClusterReporter::publish_news() {
  for (;;) {
    while (const std::optional<PeerNews::News> news = news_.take(moment(heard_in(cluster_)))) {
      co_await publish_(*news);
      if (stopping_.stop_requested()) co_return;
    }
    if (!co_await changed_.wait({.stop = stopping_.token()})) co_return;
  }
}

Task<void> ClusterReporter::tell_load() {
  for (;;) {
    const auto load = co_await load_();
    if (load) {
      say(StateKey::load, membership::encode_load(*load));
    } else {
      log_.debug("the load is not known", kv("error", load.error()));
    }
    if (!co_await runtime::sleep_for(runtime_, kLoadPeriod, stopping_.token())) co_return;
  }
}

Result<std::string> ClusterReporter::status(std::string_view keyspace) const {
  const HeardByNode heard = heard_in(cluster_);
  return cluster_json(moment(heard), keyspace);
}

Result<std::string> ClusterReporter::ring(std::string_view keyspace) const {
  const HeardByNode heard = heard_in(cluster_);
  return ring_json(moment(heard), keyspace);
}

}  // namespace helenus::node
