#include "cql/execute/modification_execution.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "cql/execute/guardrail_checks.h"
#include "cql/execute/list_reading.h"
#include "cql/execute/replica_counts.h"
#include "cql/execute/void_response.h"
#include "cql/plan/modification_plan.h"
#include "cql/plan/paced.h"
#include "cql/plan/value_guard.h"
#include "runtime/take_turn.h"

namespace helenus::cql {

using protocol::Response;
using protocol::WriteType;
using runtime::Task;

namespace {

constexpr std::size_t kTakenAtOnceMax = 500;  // changes

}  // namespace

Task<QueryResult<void>> collect_one(const ModificationPlan& plan, const Evaluation& evaluation,
                                    std::size_t bytes, const ExecutionServices& services,
                                    const ExecutionParameters& parameters,
                                    WriteCollector::Stamp stamp, WriteCollector& collector) {
  FoundLists lists;
  if (plan.reads()) {
    CO_TRY(lists, co_await find_lists(plan, evaluation, services, parameters.consistency,
                                      parameters.until));
  }
  if (bytes <= kBoundAtOnceMax) co_return collect(plan, evaluation, stamp, collector, lists);
  co_return co_await in_turns_of(services.runtime, parameters.until, bytes, [&](base::Pace* pace) {
    return collect(plan, {evaluation.values, evaluation.moment, pace, evaluation.guard}, stamp,
                   collector, lists);
  });
}

Task<QueryResult<std::vector<replication::PartitionWrite>>> take_writes(
    WriteCollector& collector, const ExecutionServices& services,
    const ExecutionParameters& parameters) {
  if (collector.size() <= kTakenAtOnceMax) co_return std::move(collector).take();
  std::vector<replication::PartitionWrite> writes;
  CO_TRY_VOID(co_await in_turns_of(services.runtime, parameters.until, kBoundInForegroundMax,
                                   [&](base::Pace* pace) -> QueryResult<void> {
                                     TRY(writes, std::move(collector).take(pace));
                                     return {};
                                   }));
  co_return writes;
}

namespace {

WriteType write_type_of_batch(const BatchPlan& batch) {
  return batch.kind == parser::BatchKind::counter    ? WriteType::counter
         : batch.kind == parser::BatchKind::unlogged ? WriteType::unlogged_batch
                                                     : WriteType::batch;
}

}  // namespace

Task<QueryResult<Response>> execute_modification(const StatementPlan& plan,
                                                 const ExecutionServices& services,
                                                 ExecutionParameters parameters, Moment moment) {
  BatchSize size;
  Warnings warnings;
  const ValueGuard guard(services.guardrails, warnings);
  const Evaluation evaluation{parameters.values, moment, nullptr,
                              services.guardrails.guards_values() ? &guard : nullptr};
  WriteCollector collector;
  WriteCollector::Stamp stamp{.timestamp_us = parameters.timestamp_us};
  WriteType type = WriteType::simple;
  const auto* one = std::get_if<ModificationPlan>(&plan.what);
  if (one != nullptr) {
    CO_TRY_VOID(guard_timestamp(services.guardrails, one->timestamp.has_value()));
    CO_TRY_VOID(co_await collect_one(*one, evaluation, parameters.bytes, services, parameters,
                                     stamp, collector));
    if (one->is_counter()) type = WriteType::counter;
  } else {
    const auto& batch = std::get<BatchPlan>(plan.what);
    CO_TRY_VOID(guard_timestamp(services.guardrails, batch.timestamp.has_value()));
    CO_TRY(const auto timestamp, timestamp_of(batch.timestamp, evaluation));
    if (timestamp) stamp = {.timestamp_us = *timestamp, .is_explicit = true};
    const std::size_t bytes_of_each =
        parameters.bytes / std::max<std::size_t>(batch.modifications.size(), 1);
    for (const ModificationPlan& each : batch.modifications) {
      CO_TRY_VOID(co_await runtime::Turn(services.runtime, parameters.until));
      CO_TRY_VOID(guard_timestamp(services.guardrails, each.timestamp.has_value()));
      if (size.tables.empty() || size.tables.back() != each.table) {
        size.tables.push_back(each.table);
      }
      CO_TRY_VOID(co_await collect_one(each, evaluation, bytes_of_each, services, parameters, stamp,
                                       collector));
    }
    type = write_type_of_batch(batch);
    size.unlogged = batch.kind != parser::BatchKind::logged;
  }
  CO_TRY(const auto of_statement,
         operation_of(one != nullptr ? one->operation : std::get<BatchPlan>(plan.what).operation,
                      evaluation));
  CO_TRY(const auto operation, operation_of_request(parameters.operation, of_statement));
  CO_TRY(auto writes, co_await take_writes(collector, services, parameters));
  if (one == nullptr) {
    measure(writes, size);
    CO_TRY_VOID(guard_batch(services.guardrails, size, warnings));
  }
  if (operation) name_operations(writes, *operation);
  CO_TRY(Response response,
         co_await write_partitions(std::move(writes), services, std::move(parameters), type));
  response.prefix.warnings = std::move(warnings);
  co_return response;
}

Task<QueryResult<Response>> write_partitions(std::vector<replication::PartitionWrite> writes,
                                             const ExecutionServices& services,
                                             ExecutionParameters parameters, WriteType type) {
  if (writes.empty()) co_return void_response();
  const protocol::Consistency consistency = parameters.consistency;
  if (parameters.context) {
    CO_TRY_VOID(check_place(*parameters.context, writes, services.context_secret));
    for (replication::PartitionWrite& write : writes) {
      write.mutation.context = parameters.context->context;
    }
  }
  replication::LevelReport report;
  if (writes.size() > 1) {
    const auto written = co_await services.coordinator.write(
        std::move(writes), parameters.until,
        {.level = consistency, .report = &report, .notes = parameters.notes});
    if (!written) co_return write_error(written.error(), consistency, type, counts_of(report));
    co_return void_response();
  }
  const storage::TableId table = writes.front().table;
  const base::Bytes partition = writes.front().partition;
  const auto written = co_await services.coordinator.write(
      std::move(writes.front()), parameters.until,
      {.level = consistency, .report = &report, .notes = parameters.notes});
  if (!written) co_return write_error(written.error(), consistency, type, counts_of(report));
  Response response = void_response();
  if (parameters.wants_context && written->has_value()) {
    const causality::Delta& delta = **written;
    causality::Context context = delta.context;
    context.floor = std::max(context.floor, delta.timestamp);
    context.dots.add(delta.dot);
    response.prefix.payload.push_back(
        {.key = std::string(kContextKey),
         .value = seal(context, table, partition.view(), services.context_secret)});
  }
  co_return response;
}

}  // namespace helenus::cql
