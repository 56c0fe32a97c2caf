#include "cql/plan/statement_plan.h"

#include <optional>
#include <utility>

#include "base/hash.h"
#include "cql/parser/limits.h"
#include "cql/parser/parser.h"
#include "runtime/fiber.h"
#include "runtime/in_background.h"

namespace helenus::cql {

const std::vector<protocol::ColumnSpec>& StatementPlan::result_columns() const {
  static const std::vector<protocol::ColumnSpec> kNone;
  const auto* select = std::get_if<SelectPlan>(&what);
  return select == nullptr ? kNone : select->selection.columns();
}

namespace {

QueryResult<StatementPlan::What> plan_node(parser::Statement& statement,
                                           const CatalogSnapshot& catalog,
                                           const std::string& session_keyspace,
                                           MarkerTypes& markers) {
  if (const auto* select = std::get_if<parser::Select>(&statement.node)) {
    TRY(SelectPlan plan, plan_select(*select, catalog, session_keyspace, markers));
    return StatementPlan::What(std::move(plan));
  }
  if (const auto* insert = std::get_if<parser::Insert>(&statement.node)) {
    TRY(ModificationPlan plan, plan_insert(*insert, catalog, session_keyspace, markers));
    return StatementPlan::What(std::move(plan));
  }
  if (const auto* update = std::get_if<parser::Update>(&statement.node)) {
    TRY(ModificationPlan plan, plan_update(*update, catalog, session_keyspace, markers));
    return StatementPlan::What(std::move(plan));
  }
  if (const auto* remove = std::get_if<parser::Delete>(&statement.node)) {
    TRY(ModificationPlan plan, plan_delete(*remove, catalog, session_keyspace, markers));
    return StatementPlan::What(std::move(plan));
  }
  if (const auto* batch = std::get_if<parser::Batch>(&statement.node)) {
    TRY(BatchPlan plan, plan_batch(*batch, catalog, session_keyspace, markers));
    return StatementPlan::What(std::move(plan));
  }
  if (const auto* insert = std::get_if<parser::InsertJson>(&statement.node)) {
    TRY(ModificationPlan plan, plan_insert_json(*insert, catalog, session_keyspace, markers));
    return StatementPlan::What(std::move(plan));
  }
  return StatementPlan::What(std::move(statement));
}

}  // namespace

QueryResult<PlanPtr> plan_statement(std::string_view text, CatalogPtr catalog,
                                    const std::string& session_keyspace, base::Pace* pace) {
  auto parsed = parser::parse(text, pace);
  if (!parsed && !parsed.failed_with(base::Errc::invalid_argument)) return parsed.error();
  if (!parsed && text.size() > parser::kStatementBytesMax) return parsed.error();
  if (!parsed) return syntax_error(parsed.error());
  auto plan = std::make_shared<StatementPlan>();
  const std::vector<std::optional<std::string>> names = parsed->markers;
  MarkerTypes markers(names, pace);
  TRY(plan->what, plan_node(*parsed, *catalog, session_keyspace, markers));
  TRY(plan->markers, std::move(markers).take());
  if (const auto* select = std::get_if<SelectPlan>(&plan->what)) {
    plan->partition_markers = select->where.partition_markers();
  } else if (const auto* modification = std::get_if<ModificationPlan>(&plan->what);
             modification != nullptr && !modification->json) {
    plan->partition_markers = modification->where.partition_markers();
  }
  plan->catalog = std::move(catalog);
  plan->text_hash = base::hash64(base::as_bytes(text));
  plan->text_size = text.size();
  return PlanPtr(std::move(plan));
}

namespace {

runtime::Task<QueryResult<PlanPtr>> plan_on_fiber(runtime::Runtime& runtime, std::string_view text,
                                                  CatalogPtr catalog, std::string session_keyspace,
                                                  runtime::Until until) {
  std::optional<QueryResult<PlanPtr>> plan;
  CO_TRY_VOID(co_await runtime::in_turns(runtime, std::move(until), [&](base::Pace& pace) {
    plan = plan_statement(text, std::move(catalog), session_keyspace, &pace);
  }));
  co_return *std::move(plan);
}

}  // namespace

runtime::Task<QueryResult<PlanPtr>> plan_in_turns(runtime::Runtime& runtime, std::string_view text,
                                                  CatalogPtr catalog, std::string session_keyspace,
                                                  runtime::Until until) {
  if (text.size() <= kPlannedAtOnceMax) {
    co_return plan_statement(text, std::move(catalog), session_keyspace);
  }
  auto planning = plan_on_fiber(runtime, text, std::move(catalog), std::move(session_keyspace),
                                std::move(until));
  if (text.size() > kPlannedInForegroundMax) {
    co_return co_await runtime::in_background(runtime, std::move(planning));
  }
  co_return co_await std::move(planning);
}

}  // namespace helenus::cql
