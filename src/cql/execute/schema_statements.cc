#include "cql/execute/schema_statements.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <variant>

#include "cql/execute/guardrail_checks.h"
#include "cql/execute/void_response.h"
#include "cql/protocol/rows.h"
#include "cql/schema/schema_change.h"

namespace helenus::cql {

using base::Bytes;
using protocol::ErrorCode;
using protocol::Response;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;

Task<QueryResult<Response>> SchemaStatements::execute(PlanPtr plan, Session& session,
                                                      StopToken stop) {
  const auto& statement = std::get<parser::Statement>(plan->what);
  if (const auto* use_statement = std::get_if<parser::Use>(&statement.node)) {
    co_return use(*use_statement, session);
  }
  if (std::holds_alternative<parser::Truncate>(statement.node)) {
    co_return co_await truncate(statement, session, std::move(stop));
  }
  if (const auto* described = std::get_if<parser::Describe>(&statement.node)) {
    co_return describe_schema(*described, session);
  }
  if (is_schema_change(statement)) {
    co_return co_await change_schema(statement, session, std::move(stop));
  }
  co_return QueryError(ErrorCode::unauthorized,
                       "There are no roles and permissions: whoever connects may do everything.");
}

QueryResult<Response> SchemaStatements::use(const parser::Use& statement, Session& session) const {
  const std::string& keyspace = statement.keyspace.text;
  if (catalog_.snapshot()->schema().find_keyspace(keyspace) == nullptr) {
    return invalid("Keyspace '{}' does not exist", keyspace);
  }
  session.keyspace = keyspace;
  return Response::of(protocol::SetKeyspaceResult{.keyspace = keyspace});
}

SchemaStatements::Answer SchemaStatements::truncate(const parser::Statement& statement,
                                                    const Session& session, StopToken stop) {
  const CatalogPtr catalog = catalog_.snapshot();
  CO_TRY(const model::TablePtr table, find_table(std::get<parser::Truncate>(statement.node).table,
                                                 catalog->schema(), session.keyspace));
  Warnings warnings;
  CO_TRY_VOID(
      guard_schema_change(guardrails_, statement, catalog->users(), session.keyspace, warnings));
  if (!catalog->storage_of(table->id)) co_return invalid("Cannot truncate virtual tables");
  const auto truncated =
      co_await catalog_.truncate(table->id, Until::after(runtime_, timeout_, std::move(stop)));
  if (truncated) co_return void_response();
  if (truncated.failed_with(ErrorCode::invalid)) co_return truncated.error();
  co_return QueryError(ErrorCode::truncate_error,
                       fmt::format("Error during truncate: {}", truncated.error().text()));
}

SchemaStatements::Answer SchemaStatements::change_schema(parser::Statement statement,
                                                         const Session& session, StopToken stop) {
  const bool of_keyspace = std::holds_alternative<parser::CreateKeyspace>(statement.node) ||
                           std::holds_alternative<parser::AlterKeyspace>(statement.node);
  Warnings warnings;
  CO_TRY_VOID(guard_schema_change(guardrails_, statement, catalog_.snapshot()->users(),
                                  session.keyspace, warnings));
  CO_TRY(auto change, co_await catalog_.change(std::move(statement), session.keyspace,
                                               Until::after(runtime_, timeout_, std::move(stop))));
  if (!change) co_return void_response();
  if (of_keyspace) std::ranges::move(warnings_of(change->keyspace), std::back_inserter(warnings));
  Response response = Response::of(protocol::SchemaChangeResult{.change = *std::move(change)});
  response.prefix.warnings = std::move(warnings);
  co_return response;
}

std::vector<std::string> SchemaStatements::warnings_of(const std::string& keyspace) const {
  const CatalogPtr catalog = catalog_.snapshot();
  const model::KeyspacePtr made = catalog->users().find_keyspace(keyspace);
  if (made == nullptr) return {};  // dropped meanwhile
  return factor_warnings(
      *made, cluster_.nodes ? cluster_.nodes() : NodeCounts{{catalog->data_center(), 1}});
}

QueryResult<Response> SchemaStatements::describe_schema(const parser::Describe& statement,
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

}  // namespace helenus::cql
