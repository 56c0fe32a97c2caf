// SchemaAuthority: who decides on changes of the schema, and on where rows lie.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/uuid.h"
#include "cql/errors/query_error.h"
#include "cql/protocol/response.h"
#include "cql/schema/schema_change.h"
#include "model/schema.h"
#include "runtime/operation.h"
#include "runtime/task.h"

namespace helenus::cql {

// A statement that changes the schema, as a function of the schema that it meets and of the data
// centres there are. Pure: it may be asked several times, and the last answer counts.
using SchemaFunction = std::function<QueryResult<SchemaTransition>(
    const model::Schema& users, std::span<const std::string> data_centers)>;

class SchemaAuthority {
 public:
  // Returns the change, or none if there was nothing to do, when what was decided is in the catalog
  // (Catalog::adopt) and wherever else it must be. Called on the catalog's core. What the function
  // refers to lives as long as the task. Errors: of the function; server errors, after which the
  // outcome may be unknown.
  virtual runtime::Task<QueryResult<std::optional<protocol::SchemaChange>>> change(
      SchemaFunction function, runtime::Until until) = 0;
  // Gives a table another storage id, likewise. Errors: invalid if there is no such table; server
  // errors as above.
  virtual runtime::Task<QueryResult<void>> truncate(base::Uuid table, runtime::Until until) = 0;

 protected:
  SchemaAuthority() = default;
  ~SchemaAuthority() = default;
};

}  // namespace helenus::cql
