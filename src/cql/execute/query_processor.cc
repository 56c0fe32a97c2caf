#include "cql/execute/query_processor.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "cql/execute/batch_execution.h"
#include "cql/execute/consistency_check.h"
#include "cql/execute/modification_execution.h"
#include "cql/execute/request_trace.h"
#include "cql/execute/select_execution.h"

namespace helenus::cql {

using protocol::Request;
using protocol::Response;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;

QueryProcessor::QueryProcessor(runtime::Runtime& runtime, replication::Coordinator& coordinator,
                               CatalogView& catalog, const VirtualTables& virtual_tables,
                               ClusterFacts cluster, QueryProcessorOptions options)
    : runtime_(runtime),
      catalog_(catalog),
      options_(std::move(options)),
      own_admission_(options_.admission == nullptr
                         ? std::make_unique<Admission>(options_.limits, NodeAdmission::HashKeys())
                         : nullptr),
      services_{.runtime = runtime,
                .coordinator = coordinator,
                .virtual_tables = virtual_tables,
                .timeouts = options_.timeouts,
                .limits = options_.execution,
                .admission = own_admission_ == nullptr ? *options_.admission : *own_admission_,
                .context_secret = catalog.context_secret(),
                .guardrails = options_.guardrails},
      clock_(runtime, *options_.newest_time_uuid),
      prepared_(runtime, catalog, options_.prepared, options_.timeouts.read),
      point_path_(services_, prepared_, clock_),
      schema_statements_(runtime, catalog, std::move(cluster), options_.guardrails,
                         options_.timeouts.schema) {}

void QueryProcessor::set_peers(const std::vector<Peer>& peers) {
  std::vector<PreparedStatements::Peer> prepared;
  for (const Peer& peer : peers) {
    prepared.push_back({.core = peer.core, .statements = &peer.processor->prepared_});
  }
  prepared_.set_peers(std::move(prepared));
}

runtime::MaybeTask<Response> QueryProcessor::handle(Request request, Session& session,
                                                    StopToken stop) {
  if (auto begun = point_path_.begin(request, stop)) return *std::move(begun);
  return handle_any(std::move(request), session, std::move(stop));
}

namespace {

// SELECT, or not surely something else: a comment may stand before it.
bool begins_with_select(std::string_view text) {
  constexpr std::string_view kSelect = "select";
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return std::ranges::equal(text.substr(0, kSelect.size()), kSelect, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

}  // namespace

bool QueryProcessor::may_change_data(const Request& request) {
  if (const auto* query = std::get_if<protocol::QueryRequest>(&request.message)) {
    return !begins_with_select(query->text);
  }
  if (const auto* execute = std::get_if<protocol::ExecuteRequest>(&request.message)) {
    const auto found = prepared_.find(execute->id);
    return !found || !std::holds_alternative<SelectPlan>(found->plan->what);
  }
  return std::holds_alternative<protocol::BatchRequest>(request.message);
}

Task<Response> QueryProcessor::handle_any(Request request, Session& session, StopToken stop) {
  if (request.tracing && options_.traces != nullptr) {
    co_return co_await handle_traced(std::move(request), session, std::move(stop));
  }
  QueryResult<Response> answered = co_await answer(request, session, nullptr, std::move(stop));
  if (answered) co_return *std::move(answered);
  co_return Response::of(answered.error().message());
}

Task<Response> QueryProcessor::handle_traced(Request request, Session& session, StopToken stop) {
  RequestTrace trace(runtime_, clock_, prepared_, request, session);
  QueryResult<Response> answered = co_await answer(request, session, &trace, std::move(stop));
  if (!answered) trace.note("The request failed: " + answered.error().text());
  Response response = answered ? *std::move(answered) : Response::of(answered.error().message());
  trace.end(response, *options_.traces);
  co_return response;
}

namespace {

// Version 5 lets a request say its keyspace.
std::string keyspace_of(const std::optional<std::string_view>& wanted, const Session& session) {
  return wanted ? std::string(*wanted) : session.keyspace;
}

bool is_use_of_keyspace(const StatementPlan& plan) {
  const auto* statement = std::get_if<parser::Statement>(&plan.what);
  return statement != nullptr && std::holds_alternative<parser::Use>(statement->node);
}

QueryResult<void> check_now(const std::optional<std::int32_t>& now_seconds) {
  if (!now_seconds) return {};
  return invalid("A request cannot say what time it is (now_in_seconds)");
}

}  // namespace

QueryProcessor::Answer QueryProcessor::answer(const Request& request, Session& session,
                                              replication::RequestNotes* notes, StopToken stop) {
  if (std::holds_alternative<protocol::QueryRequest>(request.message)) {
    co_return co_await query(request, session, notes, std::move(stop));
  }
  if (const auto* wanted = std::get_if<protocol::PrepareRequest>(&request.message)) {
    CO_TRY(protocol::PreparedResult prepared,
           co_await prepared_.prepare(wanted->text, keyspace_of(wanted->keyspace, session),
                                      std::move(stop)));
    if (request.version < protocol::kVersionOfSegments) prepared.metadata_id.reset();
    co_return Response::of(prepared);
  }
  if (std::holds_alternative<protocol::ExecuteRequest>(request.message)) {
    co_return co_await execute_prepared(request, session, notes, std::move(stop));
  }
  if (std::holds_alternative<protocol::BatchRequest>(request.message)) {
    const auto& batch = std::get<protocol::BatchRequest>(request.message);
    CO_TRY_VOID(check_now(batch.now_seconds));
    const std::string keyspace = keyspace_of(batch.keyspace, session);
    co_return co_await execute_batch(
        request, keyspace,
        {.execution = services_, .catalog = catalog_, .prepared = prepared_, .clock = clock_},
        notes, std::move(stop));
  }
  co_return QueryError(protocol::ErrorCode::protocol_error, "This request is not about data");
}

QueryProcessor::Answer QueryProcessor::query(const Request& request, Session& session,
                                             replication::RequestNotes* notes, StopToken stop) {
  const auto& message = std::get<protocol::QueryRequest>(request.message);
  CO_TRY_VOID(check_now(message.parameters.now_seconds));
  const std::string keyspace = keyspace_of(message.parameters.keyspace, session);
  QueryResult<PlanPtr> planned = PlanPtr();
  if (message.text.size() <= kPlannedAtOnceMax) {
    planned = plan_statement(message.text, catalog_.snapshot(), keyspace);
  } else {
    planned = co_await plan_in_turns(runtime_, message.text, catalog_.snapshot(), keyspace,
                                     Until::after(runtime_, options_.timeouts.range, stop));
  }
  CO_TRY(PlanPtr plan, std::move(planned));
  CO_TRY(ExecutionParameters parameters,
         read_parameters(request, message.parameters, *plan, wrong_count_of_query, clock_,
                         services_.context_secret));
  parameters.notes = notes;
  const bool is_use = is_use_of_keyspace(*plan);
  if (!message.parameters.keyspace || is_use) {
    co_return co_await execute(std::move(plan), std::move(parameters), session, std::move(stop));
  }
  Session there = session;
  there.keyspace = keyspace;
  co_return co_await execute(std::move(plan), std::move(parameters), there, std::move(stop));
}

QueryProcessor::Answer QueryProcessor::execute_prepared(const Request& request, Session& session,
                                                        replication::RequestNotes* notes,
                                                        StopToken stop) {
  const auto& message = std::get<protocol::ExecuteRequest>(request.message);
  QueryResult<PreparedStatements::Found> found = prepared_.find(message.id);
  if (!found && prepared_.has_peers()) found = co_await prepared_.borrow(message.id, stop);
  CO_TRY(PreparedStatements::Found prepared, std::move(found));
  CO_TRY(ExecutionParameters parameters,
         read_parameters(request, message.parameters, *prepared.plan, wrong_count_of_prepared,
                         clock_, services_.context_secret));
  CO_TRY_VOID(check_now(message.parameters.now_seconds));
  const auto* rows = std::get_if<SelectPlan>(&prepared.plan->what);
  if (message.metadata_id && rows != nullptr) {
    parameters.knows_metadata = base::equal(*message.metadata_id, rows->metadata_id.view());
    if (!parameters.knows_metadata) parameters.changed_metadata_id = rows->metadata_id;
    if (!parameters.knows_metadata) parameters.skip_metadata = false;
  } else if (prepared.columns_changed) {
    parameters.skip_metadata = false;
  }
  parameters.notes = notes;
  co_return co_await execute(std::move(prepared.plan), std::move(parameters), session,
                             std::move(stop));
}

QueryProcessor::Answer QueryProcessor::execute(PlanPtr plan, ExecutionParameters parameters,
                                               Session& session, StopToken stop) {
  if (const auto* select = std::get_if<SelectPlan>(&plan->what)) {
    CO_TRY_VOID(check_read_level(parameters.consistency));
    const StatementTimeouts& timeouts = options_.timeouts;
    parameters.until =
        Until::after(runtime_, select->where.names_partitions() ? timeouts.read : timeouts.range,
                     std::move(stop));
    co_return co_await execute_select(*select, services_, std::move(parameters), clock_.now());
  }
  if (std::holds_alternative<parser::Statement>(plan->what)) {
    co_return co_await schema_statements_.execute(std::move(plan), session, std::move(stop));
  }
  const auto* one = std::get_if<ModificationPlan>(&plan->what);
  CO_TRY_VOID(one != nullptr ? check_write_level(parameters.consistency, *one)
                             : check_write_level(parameters.consistency));
  parameters.until = Until::after(runtime_, options_.timeouts.write, std::move(stop));
  co_return co_await execute_modification(*plan, services_, std::move(parameters), clock_.now());
}

}  // namespace helenus::cql
