// DESCRIBE, as Cassandra 4.1 answers it: rows of names and CREATE statements. cqlsh prints them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "cql/errors/query_error.h"
#include "cql/parser/ast.h"
#include "cql/protocol/metadata.h"
#include "cql/schema/factor_warnings.h"
#include "model/schema.h"
#include "model/token.h"
#include "model/value.h"

namespace helenus::cql {

// A range of the ring, by the token that it ends with, and who holds its rows.
struct RangeOwners {
  model::Token token;
  std::vector<std::string> addresses;  // "127.0.0.1:7000"
};

// What DESCRIBE CLUSTER tells, and what keyspaces are compared with.
struct ClusterFacts {
  std::string_view cluster_name;
  std::string_view partitioner;  // the full name of the class
  std::string_view snitch;
  // All ranges of a keyspace, as they are now; none if that is not known.
  std::function<std::vector<RangeOwners>(const model::Keyspace&)> ranges = nullptr;
  // As they are now; without it this node is alone.
  std::function<NodeCounts()> nodes = nullptr;
};

struct Description {
  std::vector<protocol::ColumnSpec> columns;
  std::vector<std::vector<base::Bytes>> rows;
};

// `schema` holds all keyspaces, `users` those that statements made; `session_keyspace` is empty
// before a USE. Errors (2200): what is asked for is not there.
QueryResult<Description> describe(const parser::Describe& statement, const model::Schema& schema,
                                  const model::Schema& users, std::string_view session_keyspace,
                                  const ClusterFacts& cluster);

}  // namespace helenus::cql
