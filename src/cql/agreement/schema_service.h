// SchemaService: between the cluster's metadata and the catalog of this node. A statement that
// changes the schema, or truncates a table, becomes a change of the metadata, and newer metadata
// become the catalog's. The schema is kept in the metadata alone; a start makes the catalog of what
// this node knows of them, whether it reaches others or not.
//
//   statement ──▶ Catalog::change ──▶ change() ──▶ ClusterService::change     decided, once
//                                                      │ every node that is up
//                 Catalog::adopt  ◀── apply() ◀────────┘ hears of it, and applies it
//   answer    ◀── shown ◀────────── wait_applied_everywhere                  applied everywhere
//
// Why this is safe.
//   One order. A statement is a function of the schema, computed inside the compare-and-swap from
//   the document that the swap expects, and anew when somebody else was first. So of two nodes that
//   change the schema at once the second one's statement has met the first one's result: CREATE
//   fails there or, with IF NOT EXISTS, finds nothing to do, and no change is lost.
//   No node goes back. Metadata are applied in the order of their versions, each as a whole: what
//   a node missed in between is in the next one. What was applied is durable here before, so that
//   a start has it, or something newer.
//   Rows do not go half. DROP and TRUNCATE are answered when a majority of each tablet's replicas
//   know of them (R9).
//   Acknowledged is everywhere. A node tells a version by gossip when its catalog has it, on all
//   its cores, and the metadata are on its disk; change() returns when all nodes that are up have
//   told theirs, also where there was nothing to do. Who is down starts with what it has, and hears
//   of it soon after. What is unknown is said to be: a change whose outcome is not known, or that
//   not everybody has in time, is an error that says so. It may be in force then, as after any
//   timeout.
//
// Rows. Nothing copies them to a node that joins later: who begins to join does so in a document
// without keyspaces (cluster/join_rules.h).
//
// Core affinity: the core of the catalog, which is the ClusterService's.
#pragma once

#include <functional>
#include <optional>

#include "base/result.h"
#include "base/uuid.h"
#include "cluster/cluster_options.h"
#include "cluster/cluster_service.h"
#include "consensus/document.h"
#include "cql/catalog/catalog.h"
#include "cql/catalog/schema_authority.h"
#include "cql/errors/query_error.h"
#include "cql/protocol/response.h"
#include "model/node_id.h"
#include "runtime/operation.h"
#include "runtime/task.h"

namespace helenus::cql {

class SchemaService final : public SchemaAuthority {
 public:
  // Waits until clients are shown what others have said that they hold: a driver asks at once.
  // Errors: of the wait.
  using WaitShown = std::function<runtime::Task<base::Result<void>>(runtime::Until until)>;

  // The catalog outlives it.
  SchemaService(model::NodeId self, Catalog& catalog) : self_(self), catalog_(catalog) {}
  SchemaService(const SchemaService&) = delete;
  SchemaService& operator=(const SchemaService&) = delete;

  // From now on statements are taken. Requires: the cluster has started; it, and what `shown`
  // refers to, outlive the last statement.
  void take_statements(cluster::ClusterService& cluster, WaitShown shown);

  // An Apply of the schema alone.
  runtime::Task<base::Result<void>> apply(cluster::MetadataPtr metadata, consensus::Version version,
                                          runtime::Until until);

  // Errors besides those of the statement: server_error. Requires: statements are taken.
  runtime::Task<QueryResult<std::optional<protocol::SchemaChange>>> change(
      SchemaFunction function, runtime::Until until) override;
  runtime::Task<QueryResult<void>> truncate(base::Uuid table, runtime::Until until) override;

 private:
  // Returns when what was decided is applied wherever it must be.
  runtime::Task<QueryResult<void>> decide(cluster::Transition transition, runtime::Until until);
  // Rows went, and a majority of the replicas of each knows it: else others could go on
  // acknowledging writes that nobody will have (R9). Errors: server_error. Requires: decided.
  QueryResult<void> check_held(const metadata::ClusterMetadata& before,
                               std::string_view keyspace) const;

  const model::NodeId self_;
  Catalog& catalog_;
  cluster::ClusterService* cluster_ = nullptr;
  WaitShown shown_;
};

}  // namespace helenus::cql
