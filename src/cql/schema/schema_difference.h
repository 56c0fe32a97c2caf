// What clients are told when one schema has become another, however many statements that took.
#pragma once

#include <vector>

#include "cql/protocol/response.h"
#include "model/schema.h"

namespace helenus::cql {

// First what is gone, then what is new or altered; keyspaces before what is in them, types before
// tables. Of a keyspace that is gone it is all that is told. A table of another id under the same
// name is another table. Where a type is altered, so are the tables with columns of it. Pure.
std::vector<protocol::SchemaChange> changes_between(const model::Schema& before,
                                                    const model::Schema& after);

}  // namespace helenus::cql
