// SelectPlan: a SELECT that was understood: names looked up, terms compiled, and everything about
// it refused that can be refused without values. Immutable; one plan serves any number of
// executions at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cql/catalog/catalog_snapshot.h"
#include "cql/errors/query_error.h"
#include "cql/parser/ast.h"
#include "cql/plan/restrictions.h"
#include "cql/plan/row_reader.h"
#include "cql/plan/selectors.h"
#include "cql/plan/terms.h"
#include "cql/protocol/metadata.h"
#include "model/schema.h"
#include "replication/request/speculation.h"

namespace helenus::cql {

struct SelectPlan {
  model::TablePtr table;
  std::optional<storage::TableId> storage;  // none: the table is virtual
  std::optional<storage::TableId> index;    // of where.index(), if that is asked
  replication::Speculation speculation;     // of the table
  Restrictions where;
  Selection selection;
  protocol::EncodedColumns columns;   // of the result
  base::Bytes metadata_id;            // of these columns: what clients know them by
  std::optional<RowLayout> layout;    // always there once it is planned
  std::vector<std::size_t> group_by;  // columns; a prefix of the primary key
  bool distinct = false;
  bool allow_filtering = false;  // is said
  bool ordered = false;          // by an ORDER BY
  bool reversed = false;
  bool static_without_rows = false;
  // A change of the schema may give the result other columns or types: SELECT *, and user types.
  // Somebody may still hold the metadata of before, so rows never go without theirs.
  bool columns_may_change = false;
  std::optional<Term> limit;
  std::optional<Term> per_partition_limit;
  // One row of a stored table by its whole key, columns as they are, nothing to be said besides:
  // answered by one read (point_select.h).
  bool is_point = false;

  // Rows of the result are made of several rows of the table.
  bool is_grouped() const { return selection.has_aggregate() || !group_by.empty(); }
};

// The table that a statement names, in the keyspace it names or the session's. Errors: invalid for
// names that are not there, and when neither says a keyspace.
QueryResult<model::TablePtr> find_table(const parser::QualifiedName& name,
                                        const model::Schema& schema,
                                        const std::string& session_keyspace);

// The same for the same columns, on all nodes.
base::Bytes metadata_id_of(const protocol::EncodedColumns& columns);

// Errors: invalid.
QueryResult<SelectPlan> plan_select(const parser::Select& select, const CatalogSnapshot& catalog,
                                    const std::string& session_keyspace, MarkerTypes& markers);

}  // namespace helenus::cql
