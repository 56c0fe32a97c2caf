// What executions of plans share on one core, and how much of everything they may take.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "cql/catalog/context_token.h"
#include "cql/errors/query_error.h"
#include "cql/execute/guardrails.h"
#include "cql/server/admission.h"
#include "runtime/runtime.h"
#include "runtime/time.h"

namespace helenus::replication {
class Coordinator;
}  // namespace helenus::replication

namespace helenus::cql {

class VirtualTables;

// After how long a statement is given up. Cassandra's defaults.
struct StatementTimeouts {
  runtime::Duration read = std::chrono::seconds(5);
  runtime::Duration range = std::chrono::seconds(10);
  runtime::Duration write = std::chrono::seconds(2);
  runtime::Duration schema = std::chrono::seconds(60);
};

struct ExecutionLimits {
  // A page ends with the row that reaches it.
  std::size_t page_bytes_max = std::size_t{4} << 20;
  // Of a result without pages, and of rows that must be sorted.
  std::size_t result_bytes_max = std::size_t{48} << 20;
  // After this time a page that has rows is given as it is.
  runtime::Duration page_time_max = std::chrono::seconds(2);
};

// It outlives the executions.
struct ExecutionServices {
  runtime::Runtime& runtime;
  replication::Coordinator& coordinator;
  const VirtualTables& virtual_tables;
  const StatementTimeouts& timeouts;
  const ExecutionLimits& limits;
  Admission& admission;
  const ContextSecret& context_secret;
  const Guardrails& guardrails;
};

// Charges a result of so many bytes. Errors: overloaded.
inline QueryResult<void> charge_result(std::size_t bytes, Admission::ResultCharge& charge) {
  if (charge.grow_to(bytes)) return {};
  return QueryError(protocol::ErrorCode::overloaded, std::string(text_of(Refusal::result_bytes)));
}

// Whether a result without pages may be so large. Errors: invalid.
inline QueryResult<void> check_result_size(std::size_t bytes, const ExecutionLimits& limits) {
  if (bytes <= limits.result_bytes_max) return {};
  return invalid("The result has more than {} bytes; ask for it in pages", limits.result_bytes_max);
}

}  // namespace helenus::cql
