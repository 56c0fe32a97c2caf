// Schema changes: from one schema and a statement to the next schema.
//
// Pure. What Cassandra 4.1 checks is checked here, in its words and with its codes: 2200 for what
// cannot be done, 2300 for bad settings, 2000 for properties that there are not, 2100 for keyspaces
// of the system, 2400 for what exists already. IF EXISTS and IF NOT EXISTS turn what they speak of
// into no change.
//
// Not built, and refused: indexes, materialized views, functions, aggregates, triggers, COMPACT
// STORAGE. Roles and permissions are no part of a schema.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/uuid.h"
#include "cql/errors/query_error.h"
#include "cql/parser/ast.h"
#include "cql/protocol/response.h"
#include "model/schema.h"

namespace helenus::cql {

// What a change depends on besides the schema and the statement.
struct SchemaChangeContext {
  // Keyspaces that no statement changes.
  const model::Schema& system;
  // The keyspace of USE; empty for none.
  std::string_view session_keyspace;
  // What NetworkTopologyStrategy may name: where there are nodes.
  std::span<const std::string> data_centers;
  // The id of a table that is created, unless the statement gives one.
  base::Uuid new_table_id;
  std::int64_t now_us = 0;
};

struct SchemaTransition {
  model::Schema next;
  // For the RESULT and for the EVENT; none when nothing is to be done, and `next` is what was.
  std::optional<protocol::SchemaChange> change;
};

// CREATE, ALTER and DROP of keyspaces, tables and types, and of all that is refused.
bool is_schema_change(const parser::Statement& statement);

// `users` are the keyspaces that statements made. Requires: is_schema_change(statement).
QueryResult<SchemaTransition> apply_schema_change(const model::Schema& users,
                                                  const parser::Statement& statement,
                                                  const SchemaChangeContext& context);

// The keyspace of a name: its own or the session's. Errors: 2200 when there is neither.
QueryResult<std::string> keyspace_of(const parser::QualifiedName& name,
                                     std::string_view session_keyspace);

}  // namespace helenus::cql
