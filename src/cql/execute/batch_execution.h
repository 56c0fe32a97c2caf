// How a BATCH request is executed: its statements, each a text or a prepared one, are one write.
#pragma once

#include <string>

#include "cql/catalog/catalog_view.h"
#include "cql/errors/query_error.h"
#include "cql/execute/execution_services.h"
#include "cql/execute/prepared_statements.h"
#include "cql/execute/statement_clock.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"

namespace helenus::cql {

// What it needs besides the request. It outlives the tasks.
struct BatchServices {
  const ExecutionServices& execution;
  const CatalogView& catalog;
  PreparedStatements& prepared;
  StatementClock& clock;
};

// Requires: the request is a BATCH. It, the keyspace of the session and the notes, if there are
// any, outlive the task.
[[gnu::noinline]] runtime::Task<QueryResult<protocol::Response>> execute_batch(
    const protocol::Request& request, const std::string& keyspace, BatchServices services,
    replication::RequestNotes* notes, runtime::StopToken stop);

}  // namespace helenus::cql
