// Execution: what plans need to become answers, and how each kind of plan is executed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "cql/catalog/context_token.h"
#include "cql/errors/query_error.h"
#include "cql/plan/moment.h"
#include "cql/plan/select_plan.h"
#include "cql/plan/terms.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "cql/server/byte_budget.h"
#include "cql/system/virtual_table.h"
#include "replication/coordinator/coordinator.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::cql {

struct ExecutionLimits {
  // A page ends with the row that reaches it.
  std::size_t page_bytes_max = std::size_t{4} << 20;
  // Of a result without pages, and of rows that must be sorted.
  std::size_t result_bytes_max = std::size_t{48} << 20;
  // After this time a page that has rows is given as it is.
  runtime::Duration page_time_max = std::chrono::seconds(2);
  // Of all results that this core is making; beyond it reads are OVERLOADED.
  std::size_t result_bytes_all_max = std::size_t{512} << 20;
};

// What executions share. It outlives them.
struct ExecutionServices {
  runtime::Runtime& runtime;
  replication::Coordinator& coordinator;
  const VirtualTables& virtual_tables;
  const ExecutionLimits& limits;
  ByteBudget& result_bytes;
  const ContextSecret& context_secret;
};

// One execution's parameters.
struct ExecutionParameters {
  BoundValues values;
  protocol::Consistency consistency = protocol::Consistency::one;
  bool skip_metadata = false;
  std::optional<std::int32_t> page_size;
  std::optional<base::Bytes> paging_state;
  std::int64_t timestamp_us = 0;  // of writes that have none of their own
  // The client's, if it gave one; on a read it says that the client wants one.
  std::optional<PlacedContext> context;
  bool wants_context = false;
  runtime::Until until;
  // Of the statement's text and values; see paging_state.h.
  std::uint64_t fingerprint = 0;
};

// Charges a result of so many bytes; small ones, as most are, are taken for nothing. Errors:
// overloaded.
QueryResult<void> charge_result(std::size_t bytes, ByteBudget::Charge& charge);
// Whether a result without pages may be so large. Errors: invalid.
QueryResult<void> check_result_size(std::size_t bytes, const ExecutionLimits& limits);

// `plan` and `services` outlive the task.
runtime::Task<QueryResult<protocol::Response>> execute_select(const SelectPlan& plan,
                                                              const ExecutionServices& services,
                                                              ExecutionParameters parameters,
                                                              Moment moment);

}  // namespace helenus::cql
