// SelectPlan: a SELECT that was understood: names looked up, terms compiled, and everything about
// it refused that can be refused without values. Immutable; one plan serves any number of
// executions at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cql/catalog.h"
#include "cql/parser/ast.h"
#include "cql/protocol/metadata.h"
#include "cql/query_error.h"
#include "cql/restrictions.h"
#include "cql/selectors.h"
#include "cql/terms.h"
#include "model/schema.h"

namespace helenus::cql {

struct SelectPlan {
  model::TablePtr table;
  std::optional<storage::TableId> storage;  // none: the table is virtual
  Restrictions where;
  Selection selection;
  protocol::EncodedColumns columns;   // of the result
  std::vector<bool> columns_read;     // by index
  std::vector<std::size_t> group_by;  // columns; a prefix of the primary key
  bool distinct = false;
  bool ordered = false;  // by an ORDER BY
  bool reversed = false;
  bool static_without_rows = false;
  std::optional<Term> limit;
  std::optional<Term> per_partition_limit;

  // Rows of the result are made of several rows of the table.
  bool is_grouped() const { return selection.has_aggregate() || !group_by.empty(); }
};

// The table that a statement names, in the keyspace it names or the session's. Errors: invalid for
// names that are not there, and when neither says a keyspace.
QueryResult<model::TablePtr> find_table(const parser::QualifiedName& name,
                                        const model::Schema& schema,
                                        const std::string& session_keyspace);

// Errors: invalid.
QueryResult<SelectPlan> plan_select(const parser::Select& select, const CatalogSnapshot& catalog,
                                    const std::string& session_keyspace, MarkerTypes& markers);

}  // namespace helenus::cql
