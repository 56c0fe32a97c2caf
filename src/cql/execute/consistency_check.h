// Consistency levels: which of them a statement may be executed with, and what it is refused with
// otherwise. A new level is named and numbered in model/consistency.h, allowed or refused here, and
// counted in replicas by replication/map/level_rule.h.
//
// Pure. Errors of all: invalid, in the words of Cassandra.
#pragma once

#include "cql/errors/query_error.h"
#include "cql/plan/modification_plan.h"
#include "model/consistency.h"

namespace helenus::cql {

// SELECT.
QueryResult<void> check_read_level(model::Consistency consistency);
// A batch, as a message or as a statement.
QueryResult<void> check_write_level(model::Consistency consistency);
// INSERT, UPDATE or DELETE by itself: counters have rules of their own.
QueryResult<void> check_write_level(model::Consistency consistency, const ModificationPlan& plan);

}  // namespace helenus::cql
