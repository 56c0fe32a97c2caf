// The map `compaction` of a table, with Cassandra's checks. It is kept and echoed; what storage is
// told of it is cql/catalog/compaction_storage.h.
#pragma once

#include "cql/errors/query_error.h"
#include "model/table_options.h"

namespace helenus::cql {

// The map as system_schema.tables shows it. Errors: 2300.
QueryResult<model::OptionMap> read_compaction(const model::OptionMap& given);

}  // namespace helenus::cql
