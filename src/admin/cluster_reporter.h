// ClusterReporter: keeps what a node tells of its cluster up to date (cluster_report.h), and tells
// the others what only this node knows: whether it serves clients, its load, and what its clock
// shows. It warns of nodes whose clocks are ahead (clock_watch.h).
//
//   metadata, gossip ──something changed──▶ PeerNews::take ──▶ Publish: every core shows the
//                                                              peers, then sends the events
//
// One publication at a time, so that events come in their order; what changes meanwhile is in the
// next one.
//
// Core affinity: the core of its Runtime, which is the ClusterService's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/clock_watch.h"
#include "admin/cluster_report.h"
#include "admin/metrics.h"
#include "base/log.h"
#include "base/result.h"
#include "cluster/cluster_service.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/time.h"
#include "runtime/wait_queue.h"

namespace helenus::admin {

class ClusterReporter {
 public:
  // How often others are told of the load, and what the clock shows.
  static constexpr runtime::Duration kLoadPeriod = std::chrono::seconds(10);

  // Returns when every core has done it.
  using Publish = std::function<runtime::Task<void>(const PeerNews::News& news)>;
  using Load = std::function<runtime::Task<base::Result<std::uint64_t>>()>;

  // Requires: the service has started, and is destroyed before this.
  ClusterReporter(runtime::Runtime& runtime, cluster::ClusterService& cluster, model::NodeId self,
                  Publish publish, Load load);
  ClusterReporter(const ClusterReporter&) = delete;
  ClusterReporter& operator=(const ClusterReporter&) = delete;

  // For cores that begin to serve.
  const cql::PeersPtr& peers() const { return news_.peers(); }
  // Clients are served from now on, and told. Requires: the cores show peers(); once.
  void start();
  // Clients are served no more. Returns when nothing is published any more. The service still runs.
  runtime::Task<void> stop();
  // Returns when every core shows what is known now. Errors: timeout, cancelled; closed when it
  // stops. Requires: started.
  runtime::Task<base::Result<void>> wait_published(runtime::Until until);

  // As missing_json.
  std::string missing(const replication::AntiEntropyReport& report) const;
  // As add_cluster_metrics.
  void add_metrics(std::vector<Metric>& metrics) const;
  // As cluster_json, ring_json and tablets_json.
  base::Result<std::string> status(std::string_view keyspace, std::string_view trouble = {}) const;
  base::Result<std::string> ring(std::string_view keyspace) const;
  base::Result<std::string> tablets(std::string_view keyspace) const;

 private:
  ClusterMoment moment(const HeardByNode& heard) const;
  HeardByNode heard_with_silence() const;
  void say(membership::StateKey key, base::Bytes value);
  void note_change();
  void note_clock(model::NodeId node, const base::Bytes& value);
  runtime::Task<void> publish_news();
  runtime::Task<void> tell_load();

  runtime::Runtime& runtime_;
  cluster::ClusterService& cluster_;
  const model::NodeId self_;
  const Publish publish_;
  const Load load_;
  base::Logger log_;
  PeerNews news_;
  ClockWatch clocks_;
  std::uint64_t changes_ = 0;    // of which this was woken
  std::uint64_t published_ = 0;  // of them: all up to this one
  runtime::StopSource stopping_;
  runtime::WaitQueue changed_;
  runtime::WaitQueue settled_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::admin
