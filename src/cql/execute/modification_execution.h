// How modifications are executed: an INSERT, UPDATE or DELETE by itself, or a batch of them, as one
// write of the coordinator.
#pragma once

#include <vector>

#include "cql/errors/query_error.h"
#include "cql/execute/execution_parameters.h"
#include "cql/execute/execution_services.h"
#include "cql/plan/moment.h"
#include "cql/plan/statement_plan.h"
#include "cql/protocol/response.h"
#include "replication/coordinator/coordinator.h"
#include "runtime/task.h"

namespace helenus::cql {

// Requires: the plan is of a modification or of a batch. It and `services` outlive the task.
[[gnu::noinline]] runtime::Task<QueryResult<protocol::Response>> execute_modification(
    const StatementPlan& plan, const ExecutionServices& services, ExecutionParameters parameters,
    Moment moment);

// Adds what one statement of so many bytes does, after reading what it must know. What is referred
// to outlives the task.
runtime::Task<QueryResult<void>> collect_one(const ModificationPlan& plan,
                                             const Evaluation& evaluation, std::size_t bytes,
                                             const ExecutionServices& services,
                                             const ExecutionParameters& parameters,
                                             WriteCollector::Stamp stamp,
                                             WriteCollector& collector);
// What was collected. It outlives the task.
runtime::Task<QueryResult<std::vector<replication::PartitionWrite>>> take_writes(
    WriteCollector& collector, const ExecutionServices& services,
    const ExecutionParameters& parameters);

// Writes partitions under the client's context, if it gave one, and answers with the context that
// includes the write, if it wants one. `services` outlive the task.
runtime::Task<QueryResult<protocol::Response>> write_partitions(
    std::vector<replication::PartitionWrite> writes, const ExecutionServices& services,
    ExecutionParameters parameters, protocol::WriteType type);

}  // namespace helenus::cql
