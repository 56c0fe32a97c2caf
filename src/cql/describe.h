// DESCRIBE, as Cassandra 4.1 answers it: rows of names and CREATE statements. cqlsh prints them.
#pragma once

#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "cql/parser/ast.h"
#include "cql/protocol/metadata.h"
#include "cql/query_error.h"
#include "model/schema.h"
#include "model/token.h"
#include "model/value.h"

namespace helenus::cql {

// What DESCRIBE CLUSTER tells.
struct ClusterFacts {
  std::string_view cluster_name;
  std::string_view partitioner;  // the full name of the class
  std::string_view snitch;
  // Where the ring is cut, and who holds every part of it: this node, so far.
  std::vector<model::Token> tokens;
  std::string_view address;  // "127.0.0.1:7000"
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
