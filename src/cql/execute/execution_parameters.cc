#include "cql/execute/execution_parameters.h"

#include <limits>
#include <string_view>
#include <utility>
#include <variant>

#include <absl/container/flat_hash_map.h>

#include "base/hash.h"

namespace helenus::cql {

using protocol::QueryParameters;
using protocol::Request;

namespace {

std::uint64_t fingerprint_of(const StatementPlan& plan, const BoundValues& values) {
  base::Digest digest;
  digest.add(plan.text_hash);
  if (const auto* select = std::get_if<SelectPlan>(&plan.what)) {
    digest.add(select->table->id.bytes());
  }
  for (const TermValue& value : values) {
    digest.add(static_cast<std::uint64_t>(value.kind));
    digest.add(value.bytes.view());
  }
  return digest.value();
}

// Values by the names of their markers; of values of one name the first counts.
QueryResult<BoundValues> named_values(const Request& request, const QueryParameters& parameters,
                                      const StatementPlan& plan, WrongCount wrong_count) {
  absl::flat_hash_map<std::string_view, std::size_t> index_of;
  for (std::size_t i = 0; i < parameters.names.size(); ++i) {
    index_of.try_emplace(parameters.names[i], i);
  }
  BoundValues values;
  for (const protocol::ColumnSpec& marker : plan.markers) {
    const auto found = index_of.find(marker.name);
    if (found == index_of.end()) return wrong_count(plan, parameters);
    values.push_back(bound_value(request, parameters.values[found->second]));
  }
  return values;
}

}  // namespace

QueryError wrong_count_of_query(const StatementPlan&, const QueryParameters&) {
  return invalid("Invalid amount of bind variables");
}

QueryError wrong_count_of_prepared(const StatementPlan& plan, const QueryParameters& parameters) {
  return invalid("there were {} markers(?) in CQL but {} bound variables", plan.markers.size(),
                 parameters.values.size());
}

std::size_t bytes_of(const protocol::Values& values) {
  std::size_t bytes = 0;
  for (const protocol::Value& value : values) bytes += value.bytes.size();
  return bytes;
}

TermValue bound_value(const Request& request, const protocol::Value& value) {
  if (value.kind == protocol::Value::Kind::bytes) return TermValue::of(request.keep(value.bytes));
  return {.kind = value.kind, .bytes = {}};
}

QueryResult<void> check_timestamp(const std::optional<std::int64_t>& timestamp) {
  if (timestamp == std::numeric_limits<std::int64_t>::min()) {
    return QueryError(protocol::ErrorCode::protocol_error,
                      fmt::format("Out of bound timestamp, must be in [{}, {}]", *timestamp + 1,
                                  std::numeric_limits<std::int64_t>::max()));
  }
  return {};
}

QueryResult<std::optional<causality::OperationId>> operation_of_request(
    const std::optional<base::Bytes>& payload,
    const std::optional<causality::OperationId>& of_statement) {
  if (!payload) return of_statement;
  if (of_statement) {
    return invalid("{} in the custom payload and USING OPERATION: one of them, please",
                   kOperationKey);
  }
  TRY(const auto id, causality::parse_operation_id(*payload));
  return std::optional(id);
}

QueryResult<void> read_payload(const Request& request, const ContextSecret& secret,
                               ExecutionParameters& parameters) {
  if (const auto operation = request.payload_of(kOperationKey)) {
    parameters.operation = base::Bytes::copy_of(*operation);
  }
  const auto bytes = request.payload_of(kContextKey);
  if (!bytes) return {};
  parameters.wants_context = true;
  if (bytes->empty()) return {};
  TRY(parameters.context, unseal(*bytes, secret));
  return {};
}

QueryResult<ExecutionParameters> read_parameters(const Request& request,
                                                 const QueryParameters& parameters,
                                                 const StatementPlan& plan, WrongCount wrong_count,
                                                 StatementClock& clock,
                                                 const ContextSecret& secret) {
  ExecutionParameters made;
  if (parameters.names.empty()) {
    if (parameters.values.size() != plan.markers.size()) return wrong_count(plan, parameters);
    for (const protocol::Value& value : parameters.values) {
      made.values.push_back(bound_value(request, value));
    }
  } else {
    TRY(made.values, named_values(request, parameters, plan, wrong_count));
  }
  TRY_VOID(check_timestamp(parameters.default_timestamp_us));
  made.consistency = parameters.consistency;
  made.skip_metadata = parameters.skip_metadata;
  made.page_size = parameters.page_size;
  if (parameters.paging_state) made.paging_state = base::Bytes::copy_of(*parameters.paging_state);
  made.timestamp_us = parameters.default_timestamp_us.value_or(clock.next_timestamp_us());
  made.bytes = plan.text_size + bytes_of(parameters.values);
  made.fingerprint = fingerprint_of(plan, made.values);
  TRY_VOID(read_payload(request, secret, made));
  return made;
}

}  // namespace helenus::cql
