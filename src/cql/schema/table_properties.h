// What stands behind WITH in CREATE TABLE and ALTER TABLE, read into options.
//
// Every option of Cassandra 4.1 is accepted with its checks and its words, and comes back from
// system_schema.tables as Cassandra would show it: names of classes in full, defaults of maps
// filled in, words in its spelling. Ours are read alike.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/uuid.h"
#include "cql/errors/query_error.h"
#include "cql/parser/ast.h"
#include "model/table_options.h"

namespace helenus::cql {

struct TableProperties {
  model::TableOptions options;
  std::optional<base::Uuid> id;  // WITH ID = ..., of a new table only
};

// Errors: 2000 for a property that there is not, or of another kind of value; 2300 for a value that
// cannot be.
QueryResult<TableProperties> read_new_table_properties(const parser::Properties& properties);
// The options of a table that had `before`. What decides how versions are kept (`conflicts`) cannot
// be altered: 2300.
QueryResult<model::TableOptions> read_altered_table_properties(const parser::Properties& properties,
                                                               const model::TableOptions& before);

}  // namespace helenus::cql
