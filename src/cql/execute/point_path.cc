#include "cql/execute/point_path.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "cql/execute/consistency_check.h"
#include "cql/execute/execution_parameters.h"
#include "cql/execute/replica_counts.h"
#include "cql/execute/void_response.h"
#include "cql/plan/paced.h"
#include "cql/plan/row_reader.h"
#include "cql/protocol/rows.h"

namespace helenus::cql {

using protocol::Consistency;
using protocol::ExecuteRequest;
using protocol::Request;
using protocol::Response;
using runtime::MaybeTask;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;

namespace {

// Nothing but values that are looked through at once, in the order of the markers, and perhaps an
// operation id.
bool is_plain(const Request& request, const protocol::QueryParameters& parameters) {
  const auto is_operation = [](const protocol::PayloadEntry& entry) {
    return entry.key == kOperationKey;
  };
  return !request.tracing && bytes_of(parameters.values) <= kBoundAtOnceMax &&
         std::ranges::all_of(request.payload, is_operation) && parameters.names.empty() &&
         (!parameters.paging_state || parameters.paging_state->empty());
}

BoundValues values_of(const Request& request, const protocol::QueryParameters& parameters) {
  BoundValues values;
  for (const protocol::Value& value : parameters.values)
    values.push_back(bound_value(request, value));
  return values;
}

Response answered(const QueryError& error) {
  return Response::of(error.message());
}

}  // namespace

std::optional<MaybeTask<Response>> PointPath::begin(const Request& request, StopToken& stop) {
  const auto* message = std::get_if<ExecuteRequest>(&request.message);
  if (message == nullptr || !is_plain(request, message->parameters)) return std::nullopt;
  const PreparedStatement* const statement = prepared_.current(message->id);
  if (statement == nullptr) return std::nullopt;
  if (services_.guardrails.guards_points()) return std::nullopt;
  const PlanPtr& plan = statement->plan;
  if (message->parameters.values.size() != plan->markers.size()) return std::nullopt;
  const auto* select = std::get_if<SelectPlan>(&plan->what);
  const bool knows = select != nullptr && message->metadata_id &&
                     base::equal(*message->metadata_id, select->metadata_id.view());
  if (message->metadata_id && select != nullptr && !knows) return std::nullopt;
  if (message->parameters.now_seconds) return std::nullopt;
  if (select != nullptr && select->is_point && (knows || !statement->columns_changed)) {
    return begin_read(request, *message, plan, *select, std::move(stop));
  }
  const auto* modification = std::get_if<ModificationPlan>(&plan->what);
  if (modification != nullptr && modification->where.is_row_key() && !modification->reads() &&
      !modification->operation && !modification->json) {
    return begin_write(request, *message, *modification, std::move(stop));
  }
  return std::nullopt;
}

// ---- Reading ----

MaybeTask<Response> PointPath::begin_read(const Request& request, const ExecuteRequest& message,
                                          const PlanPtr& plan, const SelectPlan& select,
                                          StopToken stop) {
  const protocol::QueryParameters& parameters = message.parameters;
  if (auto checked = check_timestamp(parameters.default_timestamp_us); !checked) {
    return answered(checked.error());
  }
  if (auto checked = check_read_level(parameters.consistency); !checked) {
    return answered(checked.error());
  }
  const BoundValues values = values_of(request, parameters);
  Moment moment = clock_.now();
  QueryResult<BoundPrimaryKey> key = select.where.bind_row({values, moment});
  if (!key) return answered(key.error());
  const PointRead read{.now = moment.seconds(),
                       .consistency = parameters.consistency,
                       .skip_metadata = parameters.skip_metadata,
                       .knows_metadata = message.metadata_id.has_value(),
                       .is_paged = parameters.page_size.value_or(0) > 0};
  auto until = Until::after(services_.runtime, services_.timeouts.read, std::move(stop));
  replication::LevelReport report;
  auto here =
      services_.coordinator.read_row_here(*select.storage, key->partition, key->clustering, until,
                                          {.level = parameters.consistency, .report = &report});
  if (!here) return read_point(plan, *std::move(key), read, std::move(until));
  if (!here->ready()) {
    return end_read(plan, *std::move(key), read, report, std::move(*here).task());
  }
  return answer_read(select, *key, read, report, std::move(*here).take());
}

Response PointPath::answer_read(const SelectPlan& select, const BoundPrimaryKey& key, PointRead how,
                                const replication::LevelReport& report,
                                const base::Result<storage::RowRead>& read) {
  if (!read) {
    return Response::of(read_error(read.error(), how.consistency, counts_of(report)).message());
  }
  how.now = std::max(how.now, read->wall);
  QueryResult<Response> answer = answer_point(select, key, how, read->partition);
  if (!answer) return Response::of(answer.error().message());
  return *std::move(answer);
}

Task<Response> PointPath::end_read(PlanPtr plan, BoundPrimaryKey key, PointRead how,
                                   replication::LevelReport report,
                                   Task<base::Result<storage::RowRead>> reading) {
  const auto read = co_await std::move(reading);
  co_return answer_read(std::get<SelectPlan>(plan->what), key, how, report, read);
}

Task<Response> PointPath::read_point(PlanPtr plan, BoundPrimaryKey key, PointRead how,
                                     Until until) {
  const auto& select = std::get<SelectPlan>(plan->what);
  replication::LevelReport report;
  const auto read = co_await services_.coordinator.read_row(
      *select.storage, key.partition, key.clustering, std::move(until),
      {.level = how.consistency,
       .report = &report,
       .repairs = select.table->options.read_repair != "NONE",
       .takes_digests = select.layout->policy() == causality::Policy::lww,
       .speculation = select.speculation});
  co_return answer_read(select, key, how, report, read);
}

QueryResult<Response> PointPath::answer_point(const SelectPlan& select, const BoundPrimaryKey& key,
                                              const PointRead& how,
                                              const causality::PartitionStore& stored) {
  protocol::RowsWriter writer(
      select.columns, how.skip_metadata && (!select.columns_may_change || how.knows_metadata));
  const RowReader reader(*select.layout, how.now);
  reader.begin(row_);
  if (reader.read_regular(stored, key.clustering, row_)) {
    const auto keys_read = [&]() -> base::Result<void> {
      TRY_VOID(reader.read_partition_key(key.partition, row_));
      return reader.read_clustering(key.clustering, row_);
    }();
    if (!keys_read) return read_error(keys_read.error(), how.consistency);
    for (const Selector& selector : select.selection.selectors()) {
      const model::OptionalBytes& value = row_.cells[selector.column()].value;
      writer.cell(value ? std::optional(value->view()) : std::nullopt);
    }
    writer.end_row();
  }
  reader.begin(row_);  // What it read is not kept.
  Admission::ResultCharge charge(services_.admission);
  TRY_VOID(charge_result(writer.size(), charge));
  if (!how.is_paged) TRY_VOID(check_result_size(writer.size(), services_.limits));
  return std::move(writer).finish(std::nullopt);
}

// ---- Writing ----

MaybeTask<Response> PointPath::begin_write(const Request& request, const ExecuteRequest& message,
                                           const ModificationPlan& plan, StopToken stop) {
  const protocol::QueryParameters& parameters = message.parameters;
  if (auto checked = check_timestamp(parameters.default_timestamp_us); !checked) {
    return answered(checked.error());
  }
  const std::int64_t timestamp_us =
      parameters.default_timestamp_us.value_or(clock_.next_timestamp_us());
  if (auto checked = check_write_level(parameters.consistency, plan); !checked) {
    return answered(checked.error());
  }
  const BoundValues values = values_of(request, parameters);
  Moment moment = clock_.now();
  auto write = row_write(plan, {values, moment}, {.timestamp_us = timestamp_us});
  if (!write) return answered(write.error());
  if (const auto payload = request.payload_of(kOperationKey); payload && *write) {
    const auto operation = causality::parse_operation_id(*payload);
    if (!operation) return answered(operation.error());
    (*write)->mutation.operation = *operation;
  }
  if (!*write) return void_response();
  const auto type = plan.is_counter() ? protocol::WriteType::counter : protocol::WriteType::simple;
  auto until = Until::after(services_.runtime, services_.timeouts.write, std::move(stop));
  replication::LevelReport report;
  const auto begun = services_.coordinator.begin_write(
      **write, until, {.level = parameters.consistency, .report = &report});
  if (!begun) return write_row(**std::move(write), parameters.consistency, type, std::move(until));
  if (*begun) return end_write(**begun, parameters.consistency, type, std::move(until));
  return answered(write_error(begun->error(), parameters.consistency, type, counts_of(report)));
}

Task<Response> PointPath::end_write(replication::Coordinator::BegunWrite begun,
                                    Consistency consistency, protocol::WriteType type,
                                    Until until) {
  auto durable = co_await begun.engine->when_durable(begun.position, std::move(until));
  const auto written = replication::may_have_happened(std::move(durable));
  if (written) co_return void_response();
  const replication::LevelReport report;
  co_return Response::of(
      write_error(written.error(), consistency, type, counts_of(report)).message());
}

Task<Response> PointPath::write_row(replication::PartitionWrite write, Consistency consistency,
                                    protocol::WriteType type, Until until) {
  replication::LevelReport report;
  const auto written = co_await services_.coordinator.write(
      std::move(write), std::move(until), {.level = consistency, .report = &report});
  if (!written) {
    co_return Response::of(
        write_error(written.error(), consistency, type, counts_of(report)).message());
  }
  co_return void_response();
}

}  // namespace helenus::cql
