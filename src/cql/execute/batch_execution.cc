#include "cql/execute/batch_execution.h"

#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include "cql/execute/consistency_check.h"
#include "cql/execute/execution_parameters.h"
#include "cql/execute/guardrail_checks.h"
#include "cql/execute/modification_execution.h"
#include "cql/plan/modification_plan.h"
#include "cql/plan/statement_plan.h"
#include "cql/plan/value_guard.h"
#include "runtime/take_turn.h"

namespace helenus::cql {

using protocol::Request;
using protocol::Response;
using protocol::WriteType;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;

namespace {

WriteType write_type_of(parser::BatchKind kind, std::size_t counters) {
  if (counters > 0) return WriteType::counter;
  return kind == parser::BatchKind::unlogged ? WriteType::unlogged_batch : WriteType::batch;
}

QueryResult<const ModificationPlan*> modification_of(const StatementPlan& plan,
                                                     const protocol::BatchStatement& statement) {
  const auto* modification = std::get_if<ModificationPlan>(&plan.what);
  if (modification == nullptr) {
    return invalid(
        "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.");
  }
  if (statement.values.size() != plan.markers.size()) {
    return invalid("There were {} markers(?) in CQL but {} bound variables", plan.markers.size(),
                   statement.values.size());
  }
  return modification;
}

Task<QueryResult<PlanPtr>> plan_of(const protocol::BatchStatement& statement, std::string keyspace,
                                   BatchServices services, Until until) {
  if (!statement.prepared) {
    co_return co_await plan_in_turns(services.execution.runtime, statement.text,
                                     services.catalog.snapshot(), std::move(keyspace),
                                     std::move(until));
  }
  auto found = services.prepared.find(statement.id);
  if (!found && services.prepared.has_peers()) {
    found = co_await services.prepared.borrow(statement.id, until.stop);
  }
  CO_TRY(PreparedStatements::Found prepared, std::move(found));
  co_return std::move(prepared.plan);
}

}  // namespace

Task<QueryResult<Response>> execute_batch(const Request& request, const std::string& keyspace,
                                          BatchServices services, replication::RequestNotes* notes,
                                          StopToken stop) {
  const auto& message = std::get<protocol::BatchRequest>(request.message);
  const auto kind = static_cast<parser::BatchKind>(message.type);
  CO_TRY_VOID(check_write_level(message.consistency));
  CO_TRY_VOID(check_timestamp(message.default_timestamp_us));
  ExecutionParameters parameters;
  parameters.consistency = message.consistency;
  parameters.notes = notes;
  parameters.timestamp_us =
      message.default_timestamp_us.value_or(services.clock.next_timestamp_us());
  parameters.until =
      Until::after(services.execution.runtime, services.execution.timeouts.write, stop);
  CO_TRY_VOID(read_payload(request, services.execution.context_secret, parameters));
  Moment moment = services.clock.now();
  WriteCollector collector;
  std::size_t counters = 0;
  BatchSize size;
  size.unlogged = kind != parser::BatchKind::logged;
  Warnings warnings;
  const ValueGuard guard(services.execution.guardrails, warnings);
  for (const protocol::BatchStatement& statement : message.statements) {
    CO_TRY_VOID(co_await runtime::Turn(services.execution.runtime, parameters.until));
    CO_TRY(const PlanPtr plan, co_await plan_of(statement, keyspace, services, parameters.until));
    CO_TRY(const ModificationPlan* const modification, modification_of(*plan, statement));
    BoundValues values;
    for (const protocol::Value& value : statement.values) {
      values.push_back(bound_value(request, value));
    }
    if (modification->operation) {
      co_return invalid("An operation is that of a whole BATCH, and of no statement in it");
    }
    CO_TRY_VOID(
        guard_timestamp(services.execution.guardrails, modification->timestamp.has_value()));
    if (size.tables.empty() || size.tables.back() != modification->table) {
      size.tables.push_back(modification->table);
    }
    const Evaluation evaluation{values, moment, nullptr,
                                services.execution.guardrails.guards_values() ? &guard : nullptr};
    CO_TRY_VOID(co_await collect_one(
        *modification, evaluation, plan->text_size + bytes_of(statement.values), services.execution,
        parameters, {.timestamp_us = parameters.timestamp_us}, collector));
    counters += modification->is_counter() ? 1 : 0;
  }
  CO_TRY_VOID(check_batch(kind, counters, message.statements.size() - counters));
  CO_TRY(auto writes, co_await take_writes(collector, services.execution, parameters));
  CO_TRY(const auto operation, operation_of_request(parameters.operation, std::nullopt));
  measure(writes, size);
  CO_TRY_VOID(guard_batch(services.execution.guardrails, size, warnings));
  if (operation) name_operations(writes, *operation);
  CO_TRY(Response response,
         co_await write_partitions(std::move(writes), services.execution, std::move(parameters),
                                   write_type_of(kind, counters)));
  response.prefix.warnings = std::move(warnings);
  co_return response;
}

}  // namespace helenus::cql
