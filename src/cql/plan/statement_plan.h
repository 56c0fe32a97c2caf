// StatementPlan: any statement, from its text to what can be executed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/pace.h"
#include "cql/catalog/catalog_snapshot.h"
#include "cql/errors/query_error.h"
#include "cql/parser/ast.h"
#include "cql/plan/modification_plan.h"
#include "cql/plan/select_plan.h"
#include "cql/protocol/metadata.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::cql {

// Immutable. It keeps what it was planned against.
struct StatementPlan {
  // Statements about the schema, the session or rights stay as they were parsed.
  using What = std::variant<SelectPlan, ModificationPlan, BatchPlan, parser::Statement>;

  What what;
  std::vector<protocol::ColumnSpec> markers;
  std::vector<std::uint16_t> partition_markers;
  CatalogPtr catalog;
  std::uint64_t text_hash = 0;
  std::size_t text_size = 0;

  // Of the rows it gives; none for what gives none.
  const std::vector<protocol::ColumnSpec>& result_columns() const;
};
using PlanPtr = std::shared_ptr<const StatementPlan>;

// At that pace, if there is one. Errors: a syntax error; invalid for a text that is too long; those
// of planning and of the pace.
QueryResult<PlanPtr> plan_statement(std::string_view text, CatalogPtr catalog,
                                    const std::string& session_keyspace,
                                    base::Pace* pace = nullptr);

// The same for a text of any length: others run meanwhile. How long it is says how it is planned:
// at once, in turns with others, or in the background.
inline constexpr std::size_t kPlannedAtOnceMax = 2048;
inline constexpr std::size_t kPlannedInForegroundMax = std::size_t{32} << 10;
// The text outlives it. Errors: as above; overloaded when the deadline passes.
runtime::Task<QueryResult<PlanPtr>> plan_in_turns(runtime::Runtime& runtime, std::string_view text,
                                                  CatalogPtr catalog, std::string session_keyspace,
                                                  runtime::Until until);

}  // namespace helenus::cql
