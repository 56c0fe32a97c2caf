// Metrics: what a node has done and how it stands, as samples. /metrics prints them for Prometheus,
// helenus.metrics shows them as rows; docs/operations/metrics.md tells what each means.
//
// Names end in their unit; counters end in _total. All begin with helenus_.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "admin/clock_watch.h"
#include "consensus/paxos_store.h"
#include "cql/server/server_statistics.h"
#include "membership/gossip_service.h"
#include "model/node_id.h"
#include "replication/cluster/anti_entropy.h"
#include "replication/cluster/request_statistics.h"
#include "rpc/statistics.h"
#include "storage/engine/engine_statistics.h"

namespace helenus::admin {

enum class MetricKind : std::uint8_t {
  counter,  // only grows while the process lives
  gauge,
  histogram,
};

struct Metric {
  std::string_view name;
  std::string_view help;
  MetricKind kind = MetricKind::counter;
  std::string labels = {};  // opcode="QUERY"; empty for none
  double value = 0;
  // Of a histogram's samples, behind the name: _bucket (how many values are at most the label le),
  // _sum, _count.
  std::string_view suffix = {};
};

// Appends what a storage engine tells. Samples of one name stand together, here and below: those of
// a histogram with one set of labels, too, its buckets ascending.
void add_engine_metrics(const storage::EngineStatistics& statistics, std::vector<Metric>& metrics);

// The same of a CQL server.
void add_server_metrics(const cql::ServerStatistics& statistics, std::size_t request_bytes,
                        std::vector<Metric>& metrics);

// The same of what a node and the others of its cluster say to each other. Each peer has a label of
// its own, kPeersShownMax of them at most: those of the cluster, in order of their ids. All others
// are one, "others".
struct ClusterStatistics {
  struct Peer {
    model::NodeId node;
    bool is_of_cluster = false;
    rpc::PeerStatistics statistics;
  };
  std::uint64_t metadata_version = 0;  // that the node acts by
  std::size_t nodes = 0;
  std::size_t nodes_up = 0;
  membership::GossipService::Statistics gossip;
  consensus::PaxosStore::Statistics consensus;
  rpc::Statistics rpc;
  std::vector<Peer> peers;  // by ascending id
  std::vector<ClockWatch::Ahead> clocks = {};
};
inline constexpr std::size_t kPeersShownMax = 100;
void add_cluster_metrics(const ClusterStatistics& statistics, std::vector<Metric>& metrics);

// The same of what replicas tell and fetch of each other. Each peer has a label of its own,
// kPeersShownMax of them at most, in the order of the report; all others are one, "others".
void add_replication_metrics(const replication::AntiEntropyReport& report,
                             std::vector<Metric>& metrics);

// The same of requests among replicas on several nodes.
void add_request_metrics(const replication::RequestStatistics& statistics,
                         std::vector<Metric>& metrics);

// A part of add_cluster_metrics().
void add_clock_metrics(std::span<const ClockWatch::Ahead> clocks, std::vector<Metric>& metrics);

// The text exposition format of Prometheus, version 0.0.4.
inline constexpr std::string_view kPrometheusContentType = "text/plain; version=0.0.4";
std::string to_prometheus(std::span<const Metric> metrics);

}  // namespace helenus::admin
