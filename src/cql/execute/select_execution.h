// How a SELECT is executed: a page of its rows.
#pragma once

#include <cstddef>

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

// Charges a result of so many bytes; small ones, as most are, are taken for nothing. Errors:
// overloaded.
QueryResult<void> charge_result(std::size_t bytes, ByteBudget::Charge& charge);
// Whether a result without pages may be so large. Errors: invalid.
QueryResult<void> check_result_size(std::size_t bytes, const ExecutionLimits& limits);

}  // namespace helenus::cql
