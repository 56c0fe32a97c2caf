// The map `compression` of a table, with Cassandra's checks.
#pragma once

#include "cql/errors/query_error.h"
#include "model/table_options.h"

namespace helenus::cql {

// The map as system_schema.tables shows it. Errors: 2300.
QueryResult<model::OptionMap> read_compression(const model::OptionMap& given);

}  // namespace helenus::cql
