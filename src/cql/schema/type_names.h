// Types as statements spell them, looked up in a keyspace.
#pragma once

#include <string_view>

#include "cql/errors/query_error.h"
#include "cql/parser/expression.h"
#include "model/data_type.h"
#include "model/schema.h"

namespace helenus::cql {

// The type that is spelled there. User-defined types are those of `keyspace`; one of another
// keyspace may not be named. Errors (2200): an unknown type; counters within something; durations
// where an order is needed; what is not frozen within a collection; the limits of a type.
QueryResult<model::DataType> resolve_type(const parser::TypeName& type,
                                          const model::Keyspace& keyspace);

// Whether metadata can carry the name of a column, a marker, a type or a field: the protocol counts
// its bytes in sixteen bits. Errors (2200): it is longer.
QueryResult<void> check_name_size(std::string_view name);

}  // namespace helenus::cql
