// What executions of plans share on one core, and how much of everything they may take.
#pragma once

#include <chrono>
#include <cstddef>

#include "cql/catalog/context_token.h"
#include "cql/server/byte_budget.h"
#include "runtime/runtime.h"
#include "runtime/time.h"

namespace helenus::replication {
class Coordinator;
}  // namespace helenus::replication

namespace helenus::cql {

class VirtualTables;

// After how long a statement is given up. Cassandra's defaults.
struct StatementTimeouts {
  runtime::Duration read = std::chrono::seconds(5);
  runtime::Duration range = std::chrono::seconds(10);
  runtime::Duration write = std::chrono::seconds(2);
  runtime::Duration schema = std::chrono::seconds(60);
};

struct ExecutionLimits {
  // A page ends with the row that reaches it.
  std::size_t page_bytes_max = std::size_t{4} << 20;
  // Of a result without pages, and of rows that must be sorted.
  std::size_t result_bytes_max = std::size_t{48} << 20;
  // After this time a page that has rows is given as it is.
  runtime::Duration page_time_max = std::chrono::seconds(2);
  // Of all results that this core is making; beyond it reads are OVERLOADED.
  std::size_t result_bytes_all_max = std::size_t{512} << 20;
};

// It outlives the executions.
struct ExecutionServices {
  runtime::Runtime& runtime;
  replication::Coordinator& coordinator;
  const VirtualTables& virtual_tables;
  const StatementTimeouts& timeouts;
  const ExecutionLimits& limits;
  ByteBudget& result_bytes;
  const ContextSecret& context_secret;
};

}  // namespace helenus::cql
