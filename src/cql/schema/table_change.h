// CREATE TABLE and ALTER TABLE: from a definition and a statement to the next definition.
#pragma once

#include <cstdint>

#include "base/uuid.h"
#include "cql/errors/query_error.h"
#include "cql/parser/ast.h"
#include "model/schema.h"

namespace helenus::cql {

// Columns of one table, as Cassandra's storage could count them; statements are far shorter.
inline constexpr std::size_t kColumnsPerTableMax = 32767;
// Of its partition key, and of its clustering: what is made of them is looked through one by one.
inline constexpr std::size_t kKeyColumnsMax = 256;

// `id` unless the statement says WITH ID = ... Errors: 2200, 2300, 2000.
QueryResult<model::Table> make_table(const parser::CreateTable& statement,
                                     const model::Keyspace& keyspace, const base::Uuid& id);
// The table itself when nothing changes. Errors: as above.
QueryResult<model::Table> alter_table(const parser::AlterTable& statement,
                                      const model::Keyspace& keyspace, const model::Table& before,
                                      std::int64_t now_us);

}  // namespace helenus::cql
