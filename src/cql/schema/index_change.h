// CREATE INDEX and DROP INDEX: what a table's indexes become, with Cassandra's checks and words.
#pragma once

#include <string>

#include "base/uuid.h"
#include "cql/errors/query_error.h"
#include "cql/parser/ast.h"
#include "model/schema.h"

namespace helenus::cql {

// Of one table.
inline constexpr std::size_t kIndexesPerTableMax = 64;

// The table with one index more, which gets that id; the table itself if IF NOT EXISTS finds one.
// Errors: 2200.
QueryResult<model::Table> make_index(const parser::CreateIndex& statement,
                                     const model::Keyspace& keyspace, const model::Table& before,
                                     const base::Uuid& id);
// Requires: the table has an index of that name.
model::Table drop_index(const model::Table& before, const std::string& index);

}  // namespace helenus::cql
