// QueryProcessor: answers QUERY, PREPARE, EXECUTE and BATCH.
//
//   text ──parse──▶ tree ──plan──▶ StatementPlan ──execute──▶ Response
//            with the catalog's snapshot ┘             └ with the values, by the coordinator
//
// It gives each request to the part whose job it is:
//
//   EXECUTE of one row by its whole key    point_path.h
//   PREPARE, and the plans of EXECUTE      prepared_statements.h
//   SELECT                                 select_execution.h
//   INSERT, UPDATE, DELETE, BEGIN BATCH    modification_execution.h
//   BATCH                                  batch_execution.h
//   USE, TRUNCATE, DESCRIBE, the schema    schema_statements.h
//   which levels of consistency            consistency_check.h
//   tracing                                request_trace.h
//
// Causal contexts (context_token.h). A request with `helenus-context` in its custom payload writes
// under that context, and only the partition it is of; a SELECT of one whole primary key answers
// with one if the client sent the key (its value may be empty) or the table keeps siblings. A write
// under a context answers with the context that includes it.
//
// Core affinity: the core of runtime, coordinator and the catalog's view, which outlive it. A node
// has one a core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cql/catalog/catalog_view.h"
#include "cql/errors/query_error.h"
#include "cql/execute/execution_parameters.h"
#include "cql/execute/execution_services.h"
#include "cql/execute/point_path.h"
#include "cql/execute/prepared_statements.h"
#include "cql/execute/schema_statements.h"
#include "cql/execute/statement_clock.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "cql/schema/describe.h"
#include "cql/server/admission.h"
#include "cql/server/request_handler.h"
#include "cql/system/traces.h"
#include "cql/system/virtual_table.h"
#include "runtime/cores.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::cql {

struct QueryProcessorOptions {
  StatementTimeouts timeouts = {};
  // Where traces go that clients ask for; without it there are none. Outlives the processor.
  Traces* traces = nullptr;
  PreparedStatementCache::Limits prepared = {};
  ExecutionLimits execution = {};
  // Of the core; it outlives the processor. Without it the processor has one of its own, with the
  // limits.
  Admission* admission = nullptr;
  AdmissionLimits limits = {};
  Guardrails guardrails = {};
  // Copies of these options have the same one: so have the cores of a node.
  std::shared_ptr<NewestTimeUuid> newest_time_uuid = std::make_shared<NewestTimeUuid>();
};

class QueryProcessor final : public RequestHandler {
 public:
  QueryProcessor(runtime::Runtime& runtime, replication::Coordinator& coordinator,
                 CatalogView& catalog, const VirtualTables& virtual_tables, ClusterFacts cluster,
                 QueryProcessorOptions options);

  runtime::MaybeTask<protocol::Response> handle(protocol::Request request, Session& session,
                                                runtime::StopToken stop) override;
  bool may_change_data(const protocol::Request& request) override;

  // The processors of the node's other cores, which outlive its last request. None unless told.
  struct Peer {
    runtime::CoreId core;
    QueryProcessor* processor = nullptr;
  };
  void set_peers(const std::vector<Peer>& peers);

  std::size_t prepared_count() const { return prepared_.size(); }
  std::uint64_t prepared_evicted() const { return prepared_.evicted(); }

 private:
  using Answer = runtime::Task<QueryResult<protocol::Response>>;

  // The long way, for all requests that do not take the point path. The compiler puts the frames of
  // coroutines it can inline into their caller's. That is well for the way of a prepared read; with
  // all the others in it every request would take a frame of twenty kilobytes, which malloc does
  // not serve from its caches. So those stay out, here and in the parts.
  runtime::Task<protocol::Response> handle_any(protocol::Request request, Session& session,
                                               runtime::StopToken stop);
  [[gnu::noinline]] runtime::Task<protocol::Response> handle_traced(protocol::Request request,
                                                                    Session& session,
                                                                    runtime::StopToken stop);
  // `notes` is told what happens, if it is there.
  Answer answer(const protocol::Request& request, Session& session,
                replication::RequestNotes* notes, runtime::StopToken stop);
  [[gnu::noinline]] Answer query(const protocol::Request& request, Session& session,
                                 replication::RequestNotes* notes, runtime::StopToken stop);
  Answer execute_prepared(const protocol::Request& request, Session& session,
                          replication::RequestNotes* notes, runtime::StopToken stop);
  Answer execute(PlanPtr plan, ExecutionParameters parameters, Session& session,
                 runtime::StopToken stop);

  runtime::Runtime& runtime_;
  CatalogView& catalog_;
  const QueryProcessorOptions options_;
  const std::unique_ptr<Admission> own_admission_;  // unless it was given one
  const ExecutionServices services_;
  StatementClock clock_;
  PreparedStatements prepared_;
  PointPath point_path_;
  SchemaStatements schema_statements_;
};

}  // namespace helenus::cql
