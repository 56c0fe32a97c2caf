#include "node/core_service.h"

#include <functional>
#include <utility>

#include "admin/cluster_report.h"
#include "base/assert.h"

namespace helenus::node {

using base::Result;

namespace {

cql::QueryProcessorOptions with(cql::QueryProcessorOptions options, cql::Traces& traces,
                                cql::Admission& admission) {
  options.traces = &traces;
  options.admission = &admission;
  return options;
}

cql::ServerOptions with(cql::ServerOptions options, cql::Admission& admission) {
  options.admission = &admission;
  return options;
}

cql::NodeCounts count(const cql::ClusterPeers& peers, const cql::PeerFacts& self) {
  cql::NodeCounts nodes = {{self.data_center, 1}};
  for (const cql::PeerFacts& peer : peers.others) ++nodes[peer.data_center];
  return nodes;
}

}  // namespace

CoreService::CoreService(runtime::Runtime& here, const replication::Replicas& replicas,
                         cql::Catalog& catalog, cql::CatalogPtr snapshot, Options options)
    : here_(here),
      replicas_(replicas),
      coordinator_(here, replicas),
      view_(here, catalog, std::move(snapshot)),
      admission_(std::move(options.admission), options.limits.core, options.limits.connection),
      processor_(here, coordinator_, view_, tables_, with_nodes(std::move(options.cluster)),
                 with(options.processor, traces_, admission_)),
      server_(here, processor_, with(std::move(options.server), admission_)) {
  view_.add_listener([this](const cql::Catalog::Change& change) { server_.broadcast(change); });
}

cql::ClusterFacts CoreService::with_nodes(cql::ClusterFacts cluster) {
  cluster.ranges = [this](const model::Keyspace& keyspace) {
    return admin::ranges_of(*peers_, self_, keyspace);
  };
  cluster.nodes = [this] { return count(*peers_, self_); };
  return cluster;
}

void CoreService::show(cql::PeersPtr peers, std::span<const cql::protocol::Event> events) {
  peers_ = std::move(peers);
  for (const cql::protocol::Event& event : events) server_.broadcast(event);
}

Result<void> CoreService::start(const runtime::Address& address, cql::NodeFacts facts,
                                cql::SystemSources sources,
                                std::vector<cql::QueryProcessor::Peer> peers) {
  ASSERT(peers_ != nullptr);
  sources.peers = [this] { return peers_; };
  processor_.set_peers(std::move(peers));
  TRY_VOID(server_.start(address));
  // The port in force is known only now; nobody has been answered yet.
  facts.cql_address = facts.cql_address.with_port(server_.address().port());
  self_.host_id = facts.host_id;
  self_.node_address = facts.node_address.value_or(facts.cql_address);
  self_.data_center = facts.data_center;
  self_.rack = facts.rack;
  tables_ = cql::make_system_tables(view_, coordinator_, std::move(facts), std::move(sources));
  return {};
}

}  // namespace helenus::node
