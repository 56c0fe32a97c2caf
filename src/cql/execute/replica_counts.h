// counts_of: how far a request got among replicas, as an error tells it.
#pragma once

#include "cql/errors/query_error.h"
#include "replication/request/request_level.h"

namespace helenus::cql {

inline ReplicaCounts counts_of(const replication::LevelReport& report) {
  return {.required = report.required, .received = report.received, .failed = report.failed};
}

}  // namespace helenus::cql
