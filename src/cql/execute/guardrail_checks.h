// What the guardrails say of a request, in Cassandra's words: a warning travels with the answer, a
// refusal is 2200, and nothing was done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cql/errors/query_error.h"
#include "cql/execute/guardrails.h"
#include "cql/plan/select_plan.h"
#include "cql/plan/statement_plan.h"
#include "model/schema.h"
#include "replication/request/partition_write.h"

namespace helenus::cql {

using Warnings = std::vector<std::string>;

// Each adds what there is to warn of. Errors, all: invalid, in Cassandra's words.

// Before a SELECT is executed, and when it is known how many partitions it names.
QueryResult<void> guard_select(const Guardrails& guardrails, const SelectPlan& plan,
                               std::optional<std::int32_t> page_size, Warnings& warnings);
QueryResult<void> guard_partition_keys(const Guardrails& guardrails, const SelectPlan& plan,
                                       std::size_t partitions, Warnings& warnings);

// Before a write is collected that may say USING TIMESTAMP.
QueryResult<void> guard_timestamp(const Guardrails& guardrails, bool says_timestamp);

// Before a batch is written that changes `partitions` partitions of those tables in so many bytes.
struct BatchSize {
  std::size_t partitions = 0;
  std::size_t bytes = 0;
  bool unlogged = false;
  std::vector<model::TablePtr> tables;  // each may stand several times
};
// How many partitions they are of, and how much they write.
void measure(const std::vector<replication::PartitionWrite>& writes, BatchSize& batch);
QueryResult<void> guard_batch(const Guardrails& guardrails, const BatchSize& batch,
                              Warnings& warnings);

// Before the schema changes.
QueryResult<void> guard_schema_change(const Guardrails& guardrails,
                                      const parser::Statement& statement,
                                      const model::Schema& schema,
                                      std::string_view session_keyspace, Warnings& warnings);

}  // namespace helenus::cql
