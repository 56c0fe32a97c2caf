// SchemaStatements: executes what is neither a read nor a write of rows: USE, TRUNCATE, DESCRIBE,
// and statements that change the schema. Statements about roles and rights are refused.
//
// Core affinity: the core of runtime and catalog, which outlive it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cql/catalog/catalog_view.h"
#include "cql/errors/query_error.h"
#include "cql/execute/guardrails.h"
#include "cql/plan/statement_plan.h"
#include "cql/protocol/response.h"
#include "cql/schema/describe.h"
#include "cql/server/request_handler.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/time.h"

namespace helenus::cql {

class SchemaStatements {
 public:
  SchemaStatements(runtime::Runtime& runtime, CatalogView& catalog, ClusterFacts cluster,
                   const Guardrails& guardrails, runtime::Duration timeout)
      : runtime_(runtime),
        catalog_(catalog),
        cluster_(std::move(cluster)),
        guardrails_(guardrails),
        timeout_(timeout) {}

  // Requires: the plan is a statement as it was parsed. The session outlives the task.
  [[gnu::noinline]] runtime::Task<QueryResult<protocol::Response>> execute(PlanPtr plan,
                                                                           Session& session,
                                                                           runtime::StopToken stop);

 private:
  using Answer = runtime::Task<QueryResult<protocol::Response>>;

  Answer change_schema(parser::Statement statement, const Session& session,
                       runtime::StopToken stop);
  // Of a keyspace that was created or altered.
  std::vector<std::string> warnings_of(const std::string& keyspace) const;
  Answer truncate(const parser::Statement& statement, const Session& session,
                  runtime::StopToken stop);
  QueryResult<protocol::Response> use(const parser::Use& statement, Session& session) const;
  QueryResult<protocol::Response> describe_schema(const parser::Describe& statement,
                                                  const Session& session) const;

  runtime::Runtime& runtime_;
  CatalogView& catalog_;
  const ClusterFacts cluster_;
  const Guardrails& guardrails_;
  const runtime::Duration timeout_;
};

}  // namespace helenus::cql
