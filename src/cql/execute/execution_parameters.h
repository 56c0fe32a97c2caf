// ExecutionParameters: one execution's values and options, read from a QUERY or EXECUTE message.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "causality/operation.h"
#include "cql/catalog/context_token.h"
#include "cql/errors/query_error.h"
#include "cql/execute/statement_clock.h"
#include "cql/plan/statement_plan.h"
#include "cql/plan/terms.h"
#include "cql/protocol/request.h"
#include "replication/request/request_level.h"
#include "runtime/stop_token.h"

namespace helenus::cql {

struct ExecutionParameters {
  BoundValues values;
  protocol::Consistency consistency = protocol::Consistency::one;
  bool skip_metadata = false;
  // Of version 5: the client holds the columns that the result has, or others, and is told these.
  bool knows_metadata = false;
  std::optional<base::Bytes> changed_metadata_id;
  std::optional<std::int32_t> page_size;
  std::optional<base::Bytes> paging_state;
  std::int64_t timestamp_us = 0;  // of writes that have none of their own
  // The client's, if it gave one; on a read it says that the client wants one.
  std::optional<PlacedContext> context;
  bool wants_context = false;
  // As the client gave it; only a write looks at it.
  std::optional<base::Bytes> operation;
  runtime::Until until;
  // Of the statement's text and values; see paging_state.h.
  std::uint64_t fingerprint = 0;
  std::size_t bytes = 0;  // of the statement's text and values: how long it takes to go through
  replication::RequestNotes* notes = nullptr;  // of a request that is traced; outlives it
};

// What is said of values that do not fit the markers.
using WrongCount = QueryError (*)(const StatementPlan&, const protocol::QueryParameters&);
QueryError wrong_count_of_query(const StatementPlan& plan,
                                const protocol::QueryParameters& parameters);
QueryError wrong_count_of_prepared(const StatementPlan& plan,
                                   const protocol::QueryParameters& parameters);

// All but the deadline. Errors: invalid; a protocol error of a timestamp out of bounds.
QueryResult<ExecutionParameters> read_parameters(const protocol::Request& request,
                                                 const protocol::QueryParameters& parameters,
                                                 const StatementPlan& plan, WrongCount wrong_count,
                                                 StatementClock& clock,
                                                 const ContextSecret& secret);

// ---- Parts that other paths take one by one ----

// How many bytes the values of a request have.
std::size_t bytes_of(const protocol::Values& values);
// A value that lives as long as the request's body does.
TermValue bound_value(const protocol::Request& request, const protocol::Value& value);
// Errors: a protocol error of a timestamp out of bounds.
QueryResult<void> check_timestamp(const std::optional<std::int64_t>& timestamp);
// The key of the custom payload under which a request has its operation id (causality/operation.h).
inline constexpr std::string_view kOperationKey = "helenus-op";

// The operation that a request is: what its payload says, or USING OPERATION, and not both.
// Errors: invalid.
QueryResult<std::optional<causality::OperationId>> operation_of_request(
    const std::optional<base::Bytes>& payload,
    const std::optional<causality::OperationId>& of_statement);
// The context and the operation of the custom payload. Errors: invalid.
QueryResult<void> read_payload(const protocol::Request& request, const ContextSecret& secret,
                               ExecutionParameters& parameters);

}  // namespace helenus::cql
