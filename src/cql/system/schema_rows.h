// The rows of system_schema.* and system_virtual_schema.*: a schema that describes itself.
#pragma once

#include <functional>

#include "cql/system/virtual_table.h"
#include "model/schema.h"

namespace helenus::cql {

// Puts a maker for each table of the keyspaces system_schema and system_virtual_schema into
// `tables`. `schema` is asked anew for each read, and gives all keyspaces, the system's included.
void add_schema_tables(const model::Schema& system, std::function<model::Schema()> schema,
                       VirtualTables& tables);

}  // namespace helenus::cql
