// PointPath: the short way of the requests that most traffic consists of: an EXECUTE of a statement
// that reads or writes one row by its whole key. Values go straight from the request's body into
// the key and the cells, all of it before a coroutine is made, so that what waits holds a key or a
// mutation and nothing of the request. What is said of such requests is what the long way says, in
// all cases: everything that is not plain goes there.
//
// Core affinity: the core of what it is given, which outlives it.
#pragma once

#include <optional>

#include "causality/dot.h"
#include "cql/errors/query_error.h"
#include "cql/execute/execution_services.h"
#include "cql/execute/prepared_statements.h"
#include "cql/execute/statement_clock.h"
#include "cql/plan/restrictions.h"
#include "cql/plan/row.h"
#include "cql/plan/statement_plan.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "replication/coordinator/coordinator.h"
#include "runtime/maybe_task.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"

namespace helenus::cql {

class PointPath {
 public:
  PointPath(const ExecutionServices& services, PreparedStatements& prepared, StatementClock& clock)
      : services_(services), prepared_(prepared), clock_(clock) {}
  PointPath(const PointPath&) = delete;
  PointPath& operator=(const PointPath&) = delete;

  // The answer to the request where nothing has to wait for it, else the task that will answer,
  // which takes `stop`; nothing if the request must go the long way.
  std::optional<runtime::MaybeTask<protocol::Response>> begin(const protocol::Request& request,
                                                              runtime::StopToken& stop);

 private:
  // What a point read needs besides its row.
  struct PointRead {
    causality::WallTime now;
    protocol::Consistency consistency = protocol::Consistency::one;
    bool skip_metadata = false;
    bool knows_metadata = false;  // (ExecutionParameters)
    bool is_paged = false;
  };

  runtime::MaybeTask<protocol::Response> begin_read(const protocol::Request& request,
                                                    const protocol::ExecuteRequest& message,
                                                    const PlanPtr& plan, const SelectPlan& select,
                                                    runtime::StopToken stop);
  // What a read has come to, and what it comes to when what it waits for is there.
  protocol::Response answer_read(const SelectPlan& select, const BoundPrimaryKey& key,
                                 PointRead how, const replication::LevelReport& report,
                                 const base::Result<storage::RowRead>& read);
  runtime::Task<protocol::Response> end_read(PlanPtr plan, BoundPrimaryKey key, PointRead how,
                                             replication::LevelReport report,
                                             runtime::Task<base::Result<storage::RowRead>> reading);
  runtime::Task<protocol::Response> read_point(PlanPtr plan, BoundPrimaryKey key, PointRead how,
                                               runtime::Until until);
  QueryResult<protocol::Response> answer_point(const SelectPlan& select, const BoundPrimaryKey& key,
                                               const PointRead& how,
                                               const causality::PartitionStore& stored);
  runtime::MaybeTask<protocol::Response> begin_write(const protocol::Request& request,
                                                     const protocol::ExecuteRequest& message,
                                                     const ModificationPlan& plan,
                                                     runtime::StopToken stop);
  // Of a write that is staged.
  runtime::Task<protocol::Response> end_write(replication::Coordinator::BegunWrite begun,
                                              protocol::Consistency consistency,
                                              protocol::WriteType type, runtime::Until until);
  runtime::Task<protocol::Response> write_row(replication::PartitionWrite write,
                                              protocol::Consistency consistency,
                                              protocol::WriteType type, runtime::Until until);

  const ExecutionServices& services_;
  PreparedStatements& prepared_;
  StatementClock& clock_;
  Row row_;  // of a point read, while it is encoded: its memory is used again
};

}  // namespace helenus::cql
