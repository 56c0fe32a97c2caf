#include "cql/execute/consistency_check.h"

namespace helenus::cql {

using model::Consistency;

QueryResult<void> check_read_level(Consistency consistency) {
  if (consistency == Consistency::any) {
    return invalid("ANY ConsistencyLevel is only supported for writes");
  }
  return {};
}

QueryResult<void> check_write_level(Consistency consistency) {
  if (model::is_serial(consistency)) {
    return invalid("You must use conditional updates for serializable writes");
  }
  return {};
}

QueryResult<void> check_write_level(Consistency consistency, const ModificationPlan& plan) {
  if (!plan.is_counter()) return check_write_level(consistency);
  if (consistency == Consistency::any) {
    return invalid("Consistency level ANY is not yet supported for counter table {}",
                   plan.table->name);
  }
  if (model::is_serial(consistency)) {
    return invalid("Counter operations are inherently non-serializable");
  }
  return {};
}

}  // namespace helenus::cql
