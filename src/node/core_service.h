// CoreService: what one core of a node serves clients with: its coordinator, its view of the
// catalog, the tables of the system, its query processor and its CQL server. Clients of one core
// are served on that core; what they ask about tablets of others goes there
// (replication/coordinator/coordinator.h).
//
// Core affinity: the core of its Runtime, on which it is made and destroyed.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "cql/catalog/catalog.h"
#include "cql/catalog/catalog_view.h"
#include "cql/execute/query_processor.h"
#include "cql/protocol/response.h"
#include "cql/server/admission.h"
#include "cql/server/server.h"
#include "cql/system/peers.h"
#include "cql/system/system_tables.h"
#include "cql/system/traces.h"
#include "cql/system/virtual_table.h"
#include "replication/cluster/replicas.h"
#include "replication/coordinator/coordinator.h"
#include "runtime/address.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::node {

class CoreService {
 public:
  struct Options {
    cql::ClusterFacts cluster;  // without what changes
    // What clients of all cores may take, and those of this one.
    std::shared_ptr<cql::NodeAdmission> admission;
    cql::AdmissionLimits limits;
    cql::QueryProcessorOptions processor;
    cql::ServerOptions server;
  };

  // The replicas and the catalog outlive it. The view must be attached before clients come.
  CoreService(runtime::Runtime& here, const replication::Replicas& replicas, cql::Catalog& catalog,
              cql::CatalogPtr snapshot, Options options);
  CoreService(const CoreService&) = delete;
  CoreService& operator=(const CoreService&) = delete;

  // What clients of this core see of the other nodes, and what those are told who registered for
  // events: the table is there before they hear of it.
  void show(cql::PeersPtr peers, std::span<const cql::protocol::Event> events);

  // Opens the port. `facts` lack the port, which may be chosen only now. Errors: those of
  // listening. Requires: peers are shown.
  base::Result<void> start(const runtime::Address& address, cql::NodeFacts facts,
                           cql::SystemSources sources,
                           std::vector<cql::QueryProcessor::Peer> peers);
  // Answers what is under way and refuses the rest.
  runtime::Task<void> stop() { return server_.stop(); }

  runtime::Runtime& runtime() const { return here_; }
  const replication::Coordinator& coordinator() const { return coordinator_; }
  // Requires: the replicas have not stopped.
  const replication::AntiEntropy& anti_entropy() const {
    return *replicas_.on(here_.cores.here()).anti_entropy;
  }
  const replication::ClusterLink& link() const { return replicas_.on(here_.cores.here()).link; }
  cql::CatalogView& view() { return view_; }
  cql::QueryProcessor& processor() { return processor_; }
  const cql::Server& server() const { return server_; }
  const cql::Admission& admission() const { return admission_; }
  // Of requests that this core was sent.
  const cql::Traces& traces() const { return traces_; }

 private:
  cql::ClusterFacts with_nodes(cql::ClusterFacts cluster);

  runtime::Runtime& here_;
  const replication::Replicas& replicas_;
  replication::Coordinator coordinator_;
  cql::CatalogView view_;
  cql::PeersPtr peers_;
  cql::PeerFacts self_;
  cql::VirtualTables tables_;
  cql::Traces traces_;
  cql::Admission admission_;
  cql::QueryProcessor processor_;
  cql::Server server_;
};

}  // namespace helenus::node
