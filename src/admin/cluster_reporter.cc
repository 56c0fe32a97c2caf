#include "admin/cluster_reporter.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "membership/application_state.h"
#include "runtime/clock.h"
#include "runtime/sleep.h"

namespace helenus::admin {

using base::kv;
using base::Result;
using membership::StateKey;
using runtime::Task;

namespace {

// What a clock may show, in a thousand years.
constexpr std::uint64_t kMicrosecondsMax = 32'000'000'000'000'000;

HeardByNode heard_in(cluster::ClusterService& cluster) {
  return heard_by(cluster.gossip().membership());
}

}  // namespace

HeardByNode ClusterReporter::heard_with_silence() const {
  HeardByNode heard = heard_in(cluster_);
  for (auto& [node, said] : heard) {
    if (const auto beat = cluster_.gossip().last_beat(node)) {
      said.silent_for = runtime_.clock.now() - *beat;
    }
  }
  return heard;
}

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
      settled_(runtime),
      tasks_(runtime) {
  cluster_.on_metadata([this](const cluster::MetadataPtr&) { note_change(); });
  cluster_.gossip().on_event([this](const membership::Event&) { note_change(); });
  cluster_.gossip().on_state([this](model::NodeId node, StateKey key, const base::Bytes& value) {
    if (key == StateKey::wall_clock) {
      note_clock(node, value);
    } else {
      note_change();
    }
  });
}

void ClusterReporter::note_clock(model::NodeId node, const base::Bytes& value) {
  const auto theirs = membership::decode_wall_clock(value);
  if (node == self_ || !theirs || *theirs > kMicrosecondsMax) return;
  const auto change = clocks_.note(
      node, runtime::WallTime(std::chrono::microseconds(static_cast<std::int64_t>(*theirs))),
      runtime_.clock.wall_now());
  if (change == ClockWatch::Change::apart) {
    log_.warn("the clock of a node is ahead of this one's by more than half a second",
              kv("node", node));
  } else if (change == ClockWatch::Change::together) {
    log_.info("the clock of a node is not ahead any more", kv("node", node));
  }
}

void ClusterReporter::note_change() {
  ++changes_;
  changed_.wake_all();
}

ClusterMoment ClusterReporter::moment(const HeardByNode& heard) const {
  return {.metadata = *cluster_.metadata(),
          .version = cluster_.applied_version(),
          .heard = heard,
          .self = self_};
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
  settled_.wake_all(base::Error(base::Errc::closed));
  co_await tasks_.join();
}

Task<Result<void>> ClusterReporter::wait_published(runtime::Until until) {
  const std::uint64_t wanted = changes_;
  while (published_ < wanted) {
    if (stopping_.stop_requested()) co_return base::Error(base::Errc::closed);
    CO_TRY_VOID(co_await settled_.wait(until));
  }
  co_return {};
}

Task<void> ClusterReporter::publish_news() {
  for (;;) {
    const std::uint64_t seen = changes_;
    while (const std::optional<PeerNews::News> news = news_.take(moment(heard_in(cluster_)))) {
      co_await publish_(*news);
      if (stopping_.stop_requested()) co_return;
    }
    published_ = seen;
    settled_.wake_all();
    // Some may have come while others were published.
    while (changes_ == seen) {
      if (!co_await changed_.wait({.stop = stopping_.token()})) co_return;
    }
  }
}

Task<void> ClusterReporter::tell_load() {
  for (;;) {
    say(StateKey::wall_clock,
        membership::encode_wall_clock(static_cast<std::uint64_t>(std::max<std::int64_t>(
            std::chrono::floor<std::chrono::microseconds>(runtime_.clock.wall_now().since_origin())
                .count(),
            0))));
    const auto load = co_await load_();
    if (load) {
      say(StateKey::load, membership::encode_load(*load));
    } else {
      log_.debug("the load is not known", kv("error", load.error()));
    }
    if (!co_await runtime::sleep_for(runtime_, kLoadPeriod, stopping_.token())) co_return;
  }
}

void ClusterReporter::add_metrics(std::vector<Metric>& metrics) const {
  const metadata::ClusterMetadata& metadata = *cluster_.metadata();
  ClusterStatistics statistics{.metadata_version = cluster_.applied_version().value(),
                               .nodes = metadata.nodes.size(),
                               .nodes_up = 1,
                               .gossip = cluster_.gossip().statistics(),
                               .consensus = cluster_.consensus_statistics(),
                               .rpc = cluster_.rpc().statistics(),
                               .peers = {}};
  for (const auto& [node, known] : cluster_.gossip().view().nodes()) {
    if (known.up && metadata.find(node) != nullptr) ++statistics.nodes_up;
  }
  for (const rpc::PeerInfo& peer : cluster_.rpc().peers()) {
    statistics.peers.push_back({.node = peer.node,
                                .is_of_cluster = metadata.find(peer.node) != nullptr,
                                .statistics = *cluster_.rpc().statistics_of_peer(peer.node)});
  }
  for (const ClockWatch::Ahead& clock : clocks_.all()) {
    if (metadata.find(clock.node) != nullptr) statistics.clocks.push_back(clock);
  }
  add_cluster_metrics(statistics, metrics);
}

std::string ClusterReporter::missing(const replication::AntiEntropyReport& report) const {
  return missing_json(moment({}), report);
}

Result<std::string> ClusterReporter::status(std::string_view keyspace,
                                            std::string_view trouble) const {
  const HeardByNode heard = heard_with_silence();
  return cluster_json(moment(heard), keyspace, trouble);
}

Result<std::string> ClusterReporter::ring(std::string_view keyspace) const {
  const HeardByNode heard = heard_in(cluster_);
  return ring_json(moment(heard), keyspace);
}

Result<std::string> ClusterReporter::tablets(std::string_view keyspace) const {
  const HeardByNode heard = heard_in(cluster_);
  return tablets_json(moment(heard), keyspace);
}

}  // namespace helenus::admin
