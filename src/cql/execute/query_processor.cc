#include "cql/execute/query_processor.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include <absl/container/flat_hash_map.h>

#include "base/assert.h"
#include "base/hash.h"
#include "cql/plan/time_uuid.h"
#include "cql/protocol/rows.h"
#include "runtime/random.h"
#include "runtime/run_on.h"

namespace helenus::cql {

using base::Bytes;
using base::ByteView;
using protocol::Consistency;
using protocol::ErrorCode;
using protocol::Request;
using protocol::Response;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;

Response void_response() {
  static_assert(std::int32_t(protocol::ResultKind::nothing) == 1);
  constexpr std::string_view kNothing("\0\0\0\1", sizeof(std::int32_t));
  Response response;
  response.opcode = protocol::Opcode::result;
  response.body[0] = Bytes::of_static(kNothing);
  return response;
}

TermValue kept(const Request& request, const protocol::Value& value) {
  if (value.kind == protocol::Value::Kind::bytes) return TermValue::of(request.keep(value.bytes));
  return {.kind = value.kind, .bytes = {}};
}

QueryResult<void> check_read_level(Consistency consistency) {
  if (consistency == Consistency::any) {
    return invalid("ANY ConsistencyLevel is only supported for writes");
  }
  return {};
}

QueryResult<void> check_write_level(Consistency consistency) {
  if (model::is_serial(consistency)) {
    return invalid("You must use conditional updates for serializable writes");
  }
  return {};
}

QueryResult<void> check_write_level(Consistency consistency, const ModificationPlan& plan) {
  if (!plan.is_counter()) return check_write_level(consistency);
  if (consistency == Consistency::any) {
    return invalid("Consistency level ANY is not yet supported for counter table {}",
                   plan.table->name);
  }
  if (model::is_serial(consistency)) {
    return invalid("Counter operations are inherently non-serializable");
  }
  return {};
}

QueryResult<void> check_timestamp(const std::optional<std::int64_t>& timestamp) {
  if (timestamp == std::numeric_limits<std::int64_t>::min()) {
    return QueryError(ErrorCode::protocol_error,
                      fmt::format("Out of bound timestamp, must be in [{}, {}]", *timestamp + 1,
                                  std::numeric_limits<std::int64_t>::max()));
  }
  return {};
}

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

QueryError wrong_count_of_query(const StatementPlan&, const protocol::QueryParameters&) {
  return invalid("Invalid amount of bind variables");
}

QueryError wrong_count_of_prepared(const StatementPlan& plan,
                                   const protocol::QueryParameters& parameters) {
  return invalid("there were {} markers(?) in CQL but {} bound variables", plan.markers.size(),
                 parameters.values.size());
}

}  // namespace

QueryProcessor::QueryProcessor(runtime::Runtime& runtime, replication::Coordinator& coordinator,
                               CatalogView& catalog, const VirtualTables& virtual_tables,
                               ClusterFacts cluster, QueryProcessorOptions options)
    : runtime_(runtime),
      coordinator_(coordinator),
      catalog_(catalog),
      cluster_(std::move(cluster)),
      options_(options),
      result_bytes_(options_.execution.result_bytes_all_max, options_.result_bytes),
      services_{runtime,        coordinator,
                virtual_tables, options_.execution,
                result_bytes_,  catalog.context_secret()},
      prepared_(options.prepared) {}

Task<Response> QueryProcessor::handle_any(Request request, Session& session, StopToken stop) {
  if (request.tracing && options_.traces != nullptr) {
    co_return co_await handle_traced(std::move(request), session, std::move(stop));
  }
  QueryResult<Response> answered = co_await answer(request, session, std::move(stop));
  if (answered) co_return *std::move(answered);
  co_return Response::of(answered.error().message());
}

QueryProcessor::Answer QueryProcessor::answer(const Request& request, Session& session,
                                              StopToken stop) {
  if (std::holds_alternative<protocol::QueryRequest>(request.message)) {
    co_return co_await query(request, session, std::move(stop));
  }
  if (const auto* prepared = std::get_if<protocol::PrepareRequest>(&request.message)) {
    co_return co_await prepare(prepared->text, session, std::move(stop));
  }
  if (std::holds_alternative<protocol::ExecuteRequest>(request.message)) {
    co_return co_await execute_prepared(request, session, std::move(stop));
  }
  if (std::holds_alternative<protocol::BatchRequest>(request.message)) {
    co_return co_await batch(request, session, std::move(stop));
  }
  co_return QueryError(ErrorCode::protocol_error, "This request is not about data");
}

// ---- Traces ----

Traces::Session QueryProcessor::trace_of(const Request& request, const Session& session) {
  Traces::Session trace;
  trace.client = session.client;
  trace.started_at = runtime_.clock.wall_now();
  trace.command = "QUERY";
  std::optional<Consistency> level;
  if (const auto* query = std::get_if<protocol::QueryRequest>(&request.message)) {
    trace.request = "Execute CQL3 query";
    trace.parameters["query"] = query->text;
    level = query->parameters.consistency;
    if (query->parameters.page_size) {
      trace.parameters["page_size"] = std::to_string(*query->parameters.page_size);
    }
  } else if (const auto* execute = std::get_if<protocol::ExecuteRequest>(&request.message)) {
    trace.request = "Execute CQL3 prepared query";
    add_prepared_text(request, trace);
    level = execute->parameters.consistency;
  } else if (const auto* prepare = std::get_if<protocol::PrepareRequest>(&request.message)) {
    trace.request = "Preparing CQL3 query";
    trace.parameters["query"] = prepare->text;
  } else if (const auto* batch = std::get_if<protocol::BatchRequest>(&request.message)) {
    trace.request = "Execute batch of CQL3 queries";
    trace.parameters["statements"] = std::to_string(batch->statements.size());
    level = batch->consistency;
  }
  if (level) trace.parameters["consistency_level"] = model::name_of(*level);
  return trace;
}

void QueryProcessor::add_prepared_text(const Request& request, Traces::Session& trace) {
  const auto* execute = std::get_if<protocol::ExecuteRequest>(&request.message);
  if (execute == nullptr) return;
  const PreparedStatements::Statement* statement = prepared_.find(execute->id);
  if (statement != nullptr) trace.parameters["query"] = statement->text;
}

Task<Response> QueryProcessor::handle_traced(Request request, Session& session, StopToken stop) {
  const runtime::MonotonicTime began = runtime_.clock.now();
  Traces::Session trace = trace_of(request, session);
  const auto elapsed_us = [&] {
    const auto elapsed =
        std::chrono::duration_cast<std::chrono::microseconds>(runtime_.clock.now() - began).count();
    return static_cast<std::int32_t>(
        std::min<std::int64_t>(elapsed, std::numeric_limits<std::int32_t>::max()));
  };
  // Events are read in the order of their ids: of two within a tick the later one gets the next.
  std::int64_t ticks = 0;
  const auto note = [&](std::string activity) {
    Moment at = now();
    ticks = std::max(at.nanoseconds() / 100, ticks + 1);
    trace.events.push_back({time_uuid(ticks, random_node(at)), std::move(activity), elapsed_us()});
  };
  Moment moment = now();
  trace.id = time_uuid_of(moment);
  const auto text = trace.parameters.find("query");
  note(text == trace.parameters.end() ? trace.request : "Executing " + text->second);
  QueryResult<Response> answered = co_await answer(request, session, std::move(stop));
  if (!answered) note("The request failed: " + std::string(answered.error().message().message));
  Response response = answered ? *std::move(answered) : Response::of(answered.error().message());
  note(fmt::format("Answering with {} bytes", response.body_size()));
  trace.duration_us = elapsed_us();
  add_prepared_text(request, trace);  // another core may have lent it only now
  response.prefix.tracing = trace.id;
  options_.traces->add(std::move(trace));
  co_return response;
}

// ---- Requests ----

QueryProcessor::Answer QueryProcessor::query(const Request& request, Session& session,
                                             StopToken stop) {
  const auto& message = std::get<protocol::QueryRequest>(request.message);
  CO_TRY(PlanPtr plan, plan_statement(message.text, catalog_.snapshot(), session.keyspace));
  CO_TRY(ExecutionParameters parameters,
         parameters_of(request, message.parameters, *plan, wrong_count_of_query));
  co_return co_await execute(std::move(plan), std::move(parameters), session, std::move(stop));
}

QueryProcessor::Answer QueryProcessor::prepare(std::string_view text, const Session& session,
                                               StopToken stop) {
  PreparedStatements::Statement statement;
  statement.id = protocol::prepared_id(session.keyspace, text);
  statement.text = std::string(text);
  statement.keyspace = session.keyspace;
  CO_TRY(statement.plan, plan_statement(text, catalog_.snapshot(), session.keyspace));
  protocol::PreparedResult result;
  result.id = Bytes::copy_of(ByteView(statement.id));
  result.markers = statement.plan->markers;
  result.partition_key_markers = statement.plan->partition_markers;
  result.columns = statement.plan->result_columns();
  prepared_.put(statement);
  const auto* select = std::get_if<SelectPlan>(&statement.plan->what);
  if (select != nullptr && !select->columns_may_change && !peers_.empty() &&
      co_await is_told_otherwise(statement, std::move(stop))) {
    PreparedStatements::Statement* const here = prepared_.find(ByteView(statement.id));
    if (here != nullptr) here->columns_changed = true;
  }
  co_return Response::of(result);
}

Task<bool> QueryProcessor::is_told_otherwise(const PreparedStatements::Statement& statement,
                                             StopToken stop) {
  const Until until = Until::after(runtime_, options_.read_timeout, std::move(stop));
  bool is = false;
  for (const Peer& peer : peers_) {
    const auto ask = [&](runtime::Runtime&, const Until&) {
      return is_told_otherwise_there(*peer.processor, statement);
    };
    const auto told = co_await runtime::run_on<bool>(runtime_, peer.core, ask, until);
    // Of a core that does not say, the worst is assumed: rows say what they are.
    is = is || !told || *told;
  }
  co_return is;
}

Task<base::Result<bool>> QueryProcessor::is_told_otherwise_there(
    QueryProcessor& processor, const PreparedStatements::Statement& statement) {
  PreparedStatements::Statement* const own = processor.prepared_.find(ByteView(statement.id));
  if (own == nullptr) co_return false;
  own->columns_changed =
      own->columns_changed || own->plan->result_columns() != statement.plan->result_columns();
  co_return own->columns_changed;
}

QueryResult<PlanPtr> QueryProcessor::prepared_plan(ByteView id, bool* changed) {
  PreparedStatements::Statement* statement = prepared_.find(id);
  if (statement == nullptr) return unprepared(id);
  if (changed != nullptr) *changed = statement->columns_changed;
  if (statement->plan->catalog->number() == catalog_.snapshot()->number()) return statement->plan;
  auto planned = plan_statement(statement->text, catalog_.snapshot(), statement->keyspace);
  const bool same = planned && (*planned)->markers == statement->plan->markers &&
                    (*planned)->result_columns() == statement->plan->result_columns();
  if (!same) return unprepared(ByteView(statement->id));
  statement->plan = *std::move(planned);
  return statement->plan;
}

std::optional<PreparedStatements::Statement> QueryProcessor::lend(ByteView id) {
  if (!prepared_plan(id)) return std::nullopt;
  return *prepared_.find(id);
}

Task<base::Result<std::optional<PreparedStatements::Statement>>> QueryProcessor::lend_on_core(
    QueryProcessor& processor, ByteView id) {
  co_return processor.lend(id);
}

QueryProcessor::Borrowed QueryProcessor::borrow_plan(ByteView id, StopToken stop, bool* changed) {
  const Until until = Until::after(runtime_, options_.read_timeout, std::move(stop));
  for (const Peer& peer : peers_) {
    const auto ask = [&](runtime::Runtime&, const Until&) {
      return lend_on_core(*peer.processor, id);
    };
    auto lent = co_await runtime::run_on<std::optional<PreparedStatements::Statement>>(
        runtime_, peer.core, ask, until);
    if (!lent || !lent->has_value()) continue;
    prepared_.put(**std::move(lent));
    co_return prepared_plan(id, changed);
  }
  co_return unprepared(id);
}

QueryProcessor::Answer QueryProcessor::execute_prepared(const Request& request, Session& session,
                                                        StopToken stop) {
  const auto& message = std::get<protocol::ExecuteRequest>(request.message);
  bool changed = false;
  QueryResult<PlanPtr> found = prepared_plan(message.id, &changed);
  if (!found && !peers_.empty()) found = co_await borrow_plan(message.id, stop, &changed);
  CO_TRY(PlanPtr plan, std::move(found));
  CO_TRY(ExecutionParameters parameters,
         parameters_of(request, message.parameters, *plan, wrong_count_of_prepared));
  if (changed) parameters.skip_metadata = false;
  co_return co_await execute(std::move(plan), std::move(parameters), session, std::move(stop));
}

QueryResult<ExecutionParameters> QueryProcessor::parameters_of(
    const Request& request, const protocol::QueryParameters& parameters, const StatementPlan& plan,
    WrongCount wrong_count) {
  ExecutionParameters made;
  if (parameters.names.empty()) {
    if (parameters.values.size() != plan.markers.size()) return wrong_count(plan, parameters);
    for (const protocol::Value& value : parameters.values) {
      made.values.push_back(kept(request, value));
    }
  } else {
    absl::flat_hash_map<std::string_view, std::size_t> index_of;  // the first of a name counts
    for (std::size_t i = 0; i < parameters.names.size(); ++i) {
      index_of.try_emplace(parameters.names[i], i);
    }
    for (const protocol::ColumnSpec& marker : plan.markers) {
      const auto found = index_of.find(marker.name);
      if (found == index_of.end()) return wrong_count(plan, parameters);
      made.values.push_back(kept(request, parameters.values[found->second]));
    }
  }
  TRY_VOID(check_timestamp(parameters.default_timestamp_us));
  made.consistency = parameters.consistency;
  made.skip_metadata = parameters.skip_metadata;
  made.page_size = parameters.page_size;
  if (parameters.paging_state) made.paging_state = Bytes::copy_of(*parameters.paging_state);
  made.timestamp_us = parameters.default_timestamp_us.value_or(next_timestamp_us());
  made.fingerprint = fingerprint_of(plan, made.values);
  TRY_VOID(take_context(request, made));
  return made;
}

QueryResult<void> QueryProcessor::take_context(const Request& request,
                                               ExecutionParameters& parameters) const {
  const auto bytes = request.payload_of(kContextKey);
  if (!bytes) return {};
  parameters.wants_context = true;
  if (bytes->empty()) return {};
  TRY(parameters.context, unseal(*bytes, services_.context_secret));
  return {};
}

QueryProcessor::Answer QueryProcessor::batch(const Request& request, Session& session,
                                             StopToken stop) {
  const auto& message = std::get<protocol::BatchRequest>(request.message);
  const auto kind = static_cast<parser::BatchKind>(message.type);
  CO_TRY_VOID(check_write_level(message.consistency));
  CO_TRY_VOID(check_timestamp(message.default_timestamp_us));
  ExecutionParameters parameters;
  parameters.consistency = message.consistency;
  parameters.timestamp_us = message.default_timestamp_us.value_or(next_timestamp_us());
  parameters.until = Until::after(runtime_, options_.write_timeout, stop);
  CO_TRY_VOID(take_context(request, parameters));
  Moment moment = now();
  WriteCollector collector;
  std::size_t counters = 0;
  QueryResult<void> available;
  for (const protocol::BatchStatement& statement : message.statements) {
    QueryResult<PlanPtr> found =
        statement.prepared ? prepared_plan(statement.id)
                           : plan_statement(statement.text, catalog_.snapshot(), session.keyspace);
    if (!found && statement.prepared && !peers_.empty()) {
      found = co_await borrow_plan(statement.id, stop);
    }
    CO_TRY(const PlanPtr plan, std::move(found));
    const auto* modification = std::get_if<ModificationPlan>(&plan->what);
    if (modification == nullptr) {
      co_return invalid(
          "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.");
    }
    if (statement.values.size() != plan->markers.size()) {
      co_return invalid("There were {} markers(?) in CQL but {} bound variables",
                        plan->markers.size(), statement.values.size());
    }
    BoundValues values;
    for (const protocol::Value& value : statement.values) values.push_back(kept(request, value));
    CO_TRY_VOID(collect(*modification, {values, moment}, {.timestamp_us = parameters.timestamp_us},
                        collector));
    counters += modification->is_counter() ? 1 : 0;
    if (available) available = modification->availability.check(message.consistency);
  }
  CO_TRY_VOID(check_batch(kind, counters, message.statements.size() - counters));
  const protocol::WriteType type = counters > 0 ? protocol::WriteType::counter
                                   : kind == parser::BatchKind::unlogged
                                       ? protocol::WriteType::unlogged_batch
                                       : protocol::WriteType::batch;
  CO_TRY_VOID(std::move(available));
  co_return co_await write(std::move(collector).take(), std::move(parameters), type);
}

// ---- Execution ----

QueryProcessor::Answer QueryProcessor::execute(PlanPtr plan, ExecutionParameters parameters,
                                               Session& session, StopToken stop) {
  if (const auto* select = std::get_if<SelectPlan>(&plan->what)) {
    CO_TRY_VOID(check_read_level(parameters.consistency));
    parameters.until = Until::after(
        runtime_, select->where.names_partitions() ? options_.read_timeout : options_.range_timeout,
        std::move(stop));
    co_return co_await execute_reading(*select, std::move(parameters));
  }
  if (!std::holds_alternative<parser::Statement>(plan->what)) {
    const auto* one = std::get_if<ModificationPlan>(&plan->what);
    CO_TRY_VOID(one != nullptr ? check_write_level(parameters.consistency, *one)
                               : check_write_level(parameters.consistency));
    parameters.until = Until::after(runtime_, options_.write_timeout, std::move(stop));
    co_return co_await execute_writing(*plan, std::move(parameters));
  }
  co_return co_await execute_other(std::move(plan), session, std::move(stop));
}

QueryProcessor::Answer QueryProcessor::execute_reading(const SelectPlan& plan,
                                                       ExecutionParameters parameters) {
  parameters.wants_context =
      parameters.wants_context || plan.table->options.conflicts == model::Conflicts::siblings;
  CO_TRY(Response response, co_await execute_select(plan, services_, std::move(parameters), now()));
  if (plan.selection.has_aggregate() && plan.storage && !plan.where.names_partitions()) {
    response.prefix.warnings.emplace_back("Aggregation query used without partition key");
  }
  co_return response;
}

QueryProcessor::Answer QueryProcessor::execute_writing(const StatementPlan& plan,
                                                       ExecutionParameters parameters) {
  Moment moment = now();
  const Evaluation evaluation{parameters.values, moment};
  WriteCollector collector;
  WriteCollector::Stamp stamp{.timestamp_us = parameters.timestamp_us};
  protocol::WriteType type = protocol::WriteType::simple;
  if (const auto* modification = std::get_if<ModificationPlan>(&plan.what)) {
    CO_TRY_VOID(collect(*modification, evaluation, stamp, collector));
    CO_TRY_VOID(modification->availability.check(parameters.consistency));
    if (modification->is_counter()) type = protocol::WriteType::counter;
  } else {
    const auto& batch = std::get<BatchPlan>(plan.what);
    CO_TRY(const auto timestamp, timestamp_of(batch.timestamp, evaluation));
    if (timestamp) stamp = {.timestamp_us = *timestamp, .is_explicit = true};
    for (const ModificationPlan& one : batch.modifications) {
      CO_TRY_VOID(collect(one, evaluation, stamp, collector));
    }
    for (const ModificationPlan& one : batch.modifications) {
      CO_TRY_VOID(one.availability.check(parameters.consistency));
    }
    type = batch.kind == parser::BatchKind::counter    ? protocol::WriteType::counter
           : batch.kind == parser::BatchKind::unlogged ? protocol::WriteType::unlogged_batch
                                                       : protocol::WriteType::batch;
  }
  co_return co_await write(std::move(collector).take(), std::move(parameters), type);
}

QueryProcessor::Answer QueryProcessor::write(std::vector<replication::PartitionWrite> writes,
                                             ExecutionParameters parameters,
                                             protocol::WriteType type) {
  if (writes.empty()) co_return void_response();
  const Consistency consistency = parameters.consistency;
  if (parameters.context) {
    CO_TRY_VOID(check_place(*parameters.context, writes, services_.context_secret));
    for (replication::PartitionWrite& write : writes) {
      write.mutation.context = parameters.context->context;
    }
  }
  if (writes.size() > 1) {
    const auto written = co_await coordinator_.write(std::move(writes), parameters.until);
    if (!written) co_return write_error(written.error(), consistency, type);
    co_return void_response();
  }
  const storage::TableId table = writes.front().table;
  const Bytes partition = writes.front().partition;
  const auto written = co_await coordinator_.write(std::move(writes.front()), parameters.until);
  if (!written) co_return write_error(written.error(), consistency, type);
  Response response = void_response();
  if (parameters.wants_context && written->has_value()) {
    const causality::Delta& delta = **written;
    causality::Context context = delta.context;
    context.floor = std::max(context.floor, delta.timestamp);
    context.dots.add(delta.dot);
    response.prefix.payload.push_back(
        {.key = std::string(kContextKey),
         .value = seal(context, table, partition.view(), services_.context_secret)});
  }
  co_return response;
}

QueryProcessor::Answer QueryProcessor::execute_other(PlanPtr plan, Session& session,
                                                     StopToken stop) {
  const auto& statement = std::get<parser::Statement>(plan->what);
  if (const auto* use_statement = std::get_if<parser::Use>(&statement.node)) {
    co_return use(*use_statement, session);
  }
  if (const auto* truncated = std::get_if<parser::Truncate>(&statement.node)) {
    co_return co_await truncate(*truncated, session, std::move(stop));
  }
  if (const auto* described = std::get_if<parser::Describe>(&statement.node)) {
    co_return describe_schema(*described, session);
  }
  if (is_schema_change(statement)) {
    co_return co_await change_schema(statement, session, std::move(stop));
  }
  co_return QueryError(ErrorCode::unauthorized,
                       "You have to be logged in and not anonymous to perform this request");
}

QueryResult<Response> QueryProcessor::use(const parser::Use& statement, Session& session) {
  const std::string& keyspace = statement.keyspace.text;
  if (catalog_.snapshot()->schema().find_keyspace(keyspace) == nullptr) {
    return invalid("Keyspace '{}' does not exist", keyspace);
  }
  session.keyspace = keyspace;
  return Response::of(protocol::SetKeyspaceResult{.keyspace = keyspace});
}

QueryProcessor::Answer QueryProcessor::truncate(const parser::Truncate& statement,
                                                const Session& session, StopToken stop) {
  const CatalogPtr catalog = catalog_.snapshot();
  CO_TRY(const model::TablePtr table,
         find_table(statement.table, catalog->schema(), session.keyspace));
  if (!catalog->storage_of(table->id)) co_return invalid("Cannot truncate virtual tables");
  const auto truncated = co_await catalog_.truncate(
      table->id, Until::after(runtime_, options_.schema_timeout, std::move(stop)));
  if (truncated) co_return void_response();
  if (truncated.failed_with(ErrorCode::invalid)) co_return truncated.error();
  co_return QueryError(ErrorCode::truncate_error,
                       fmt::format("Error during truncate: {}", truncated.error().text()));
}

QueryProcessor::Answer QueryProcessor::change_schema(parser::Statement statement,
                                                     const Session& session, StopToken stop) {
  const bool of_keyspace = std::holds_alternative<parser::CreateKeyspace>(statement.node) ||
                           std::holds_alternative<parser::AlterKeyspace>(statement.node);
  CO_TRY(auto change, co_await catalog_.change(
                          std::move(statement), session.keyspace,
                          Until::after(runtime_, options_.schema_timeout, std::move(stop))));
  if (!change) co_return void_response();
  std::vector<std::string> warnings;
  if (of_keyspace) warnings = warnings_of(change->keyspace);
  Response response = Response::of(protocol::SchemaChangeResult{.change = *std::move(change)});
  response.prefix.warnings = std::move(warnings);
  co_return response;
}

std::vector<std::string> QueryProcessor::warnings_of(const std::string& keyspace) const {
  const CatalogPtr catalog = catalog_.snapshot();
  const model::KeyspacePtr made = catalog->users().find_keyspace(keyspace);
  if (made == nullptr) return {};  // dropped meanwhile
  return factor_warnings(
      *made, cluster_.nodes ? cluster_.nodes() : NodeCounts{{catalog->data_center(), 1}});
}

QueryResult<Response> QueryProcessor::describe_schema(const parser::Describe& statement,
                                                      const Session& session) const {
  const CatalogPtr catalog = catalog_.snapshot();
  TRY(const Description description,
      describe(statement, catalog->schema(), catalog->users(), session.keyspace, cluster_));
  const protocol::EncodedColumns columns(description.columns);
  protocol::RowsWriter rows(columns, false);
  for (const auto& row : description.rows) {
    for (const Bytes& cell : row) rows.cell(cell.view());
    rows.end_row();
  }
  return std::move(rows).finish(std::nullopt);
}

// ---- Time ----

std::int64_t QueryProcessor::next_timestamp_us() {
  const std::int64_t now_us =
      std::chrono::floor<std::chrono::microseconds>(runtime_.clock.wall_now().since_origin())
          .count();
  last_timestamp_us_ = std::max(now_us, last_timestamp_us_ + 1);
  return last_timestamp_us_;
}

Moment QueryProcessor::now() {
  return {runtime_.clock.wall_now(), runtime_.random.fork()};
}

}  // namespace helenus::cql
