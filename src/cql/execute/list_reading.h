// What a statement must know of lists before it can write: of l[i] = v, DELETE l[i] and l = l - v,
// which elements these are. The lists are read at the level that the statement writes with, as in
// Cassandra; what is written goes by the elements' names, so that it changes the elements that were
// read, wherever they stand by then. Between reading and writing somebody else may remove one: an
// element that is then set is there again, alone.
#pragma once

#include "cql/errors/query_error.h"
#include "cql/execute/execution_services.h"
#include "cql/plan/modification_plan.h"
#include "model/consistency.h"
#include "runtime/operation.h"
#include "runtime/task.h"

namespace helenus::cql {

// Requires: plan.reads(). All that is referred to outlives the task.
runtime::Task<QueryResult<FoundLists>> find_lists(const ModificationPlan& plan,
                                                  const Evaluation& evaluation,
                                                  const ExecutionServices& services,
                                                  model::Consistency level, runtime::Until until);

}  // namespace helenus::cql
