// How a SELECT is executed: a page of its rows.
#pragma once

#include "cql/errors/query_error.h"
#include "cql/execute/execution_parameters.h"
#include "cql/execute/execution_services.h"
#include "cql/plan/moment.h"
#include "cql/plan/select_plan.h"
#include "cql/protocol/response.h"
#include "runtime/task.h"

namespace helenus::cql {

// `plan` and `services` outlive the task.
runtime::Task<QueryResult<protocol::Response>> execute_select(const SelectPlan& plan,
                                                              const ExecutionServices& services,
                                                              ExecutionParameters parameters,
                                                              Moment moment);

}  // namespace helenus::cql
