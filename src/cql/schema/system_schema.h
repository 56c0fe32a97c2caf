// The keyspaces that are always there: system, system_schema, system_virtual_schema, helenus.
//
// Drivers and cqlsh read them at connect and after each change; the columns and types are those of
// Cassandra 4.1. None of their tables is stored: system_tables.h makes the rows.
#pragma once

#include <string_view>

#include "model/schema.h"

namespace helenus::cql {

// The replication of all of them; no other keyspace has it.
inline constexpr std::string_view kLocalStrategy = "org.apache.cassandra.locator.LocalStrategy";

// Definitions of all tables. The ids are functions of the names: every node has the same.
model::Schema make_system_schema();

// Of a keyspace of make_system_schema(): whether Cassandra's drivers look for it in
// system_virtual_schema instead of system_schema.
bool is_virtual_keyspace(std::string_view keyspace);

}  // namespace helenus::cql
