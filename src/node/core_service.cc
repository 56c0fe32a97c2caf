#include "node/core_service.h"

#include <functional>
#include <utility>

#include "base/assert.h"
#include "node/cluster_report.h"

namespace helenus::node {

using base::Result;

namespace {

cql::QueryProcessorOptions traced(cql::QueryProcessorOptions options, cql::Traces& traces) {
  options.traces = &traces;
  return options;
}

cql::ClusterFacts with_ranges(
    cql::ClusterFacts cluster,
    std::function<std::vector<cql::RangeOwners>(const model::Keyspace&)> ranges) {
  cluster.ranges = std::move(ranges);
  return cluster;
}

}  // namespace

CoreService::CoreService(runtime::Runtime& here, const replication::Coordinator& first,
                         cql::Catalog& catalog, cql::CatalogPtr snapshot, Options options)
    : here_(here),
      coordinator_(first.beside(here)),
      view_(here, catalog, std::move(snapshot)),
      processor_(here, *coordinator_, view_, tables_,
                 with_ranges(std::move(options.cluster),
                             [this](const model::Keyspace& keyspace) {
                               return ranges_of(*peers_, self_, keyspace);
                             }),
                 traced(options.processor, traces_)),
      server_(here, processor_, std::move(options.server)) {
  view_.add_listener([this](const cql::Catalog::Change& change) { server_.broadcast(change); });
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
  tables_ = cql::make_system_tables(view_, *coordinator_, std::move(facts), std::move(sources));
  return {};
}

}  // namespace helenus::node
