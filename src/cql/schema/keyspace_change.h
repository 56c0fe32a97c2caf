// CREATE KEYSPACE and ALTER KEYSPACE: their properties, and the strategies of replication.
#pragma once

#include <span>
#include <string>

#include "cql/errors/query_error.h"
#include "cql/parser/ast.h"
#include "model/schema.h"

namespace helenus::cql {

// A new keyspace without tables. Errors: 2200, 2300 and 2000 for its properties.
QueryResult<model::Keyspace> make_keyspace(const parser::CreateKeyspace& statement,
                                           std::span<const std::string> data_centers);
QueryResult<model::Keyspace> alter_keyspace(const parser::AlterKeyspace& statement,
                                            const model::Keyspace& before,
                                            std::span<const std::string> data_centers);

}  // namespace helenus::cql
