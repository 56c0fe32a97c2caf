// ValueGuard: how large the values may be that a statement sets or adds, before it is warned of and
// before it is refused. The words are those of Cassandra's guardrails; zero is no limit.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "cql/errors/query_error.h"
#include "cql/plan/value_thresholds.h"
#include "model/schema.h"

namespace helenus::cql {

class ValueGuard {
 public:
  // Both outlive it.
  ValueGuard(const ValueThresholds& thresholds, std::vector<std::string>& warnings)
      : thresholds_(thresholds), warnings_(warnings) {}

  // Errors: invalid.
  QueryResult<void> check(const model::Column& column, base::ByteView value) const;

 private:
  const ValueThresholds& thresholds_;
  std::vector<std::string>& warnings_;
};

}  // namespace helenus::cql
