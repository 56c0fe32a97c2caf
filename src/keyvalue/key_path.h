// KeyPath: what a URL of the key-value API names.
//
//   /v1/kv/{keyspace}/{table}/{key}                        a row
//   /v1/kv/{keyspace}/{table}/{key}/{column}               a column of it
//   /v1/kv/{keyspace}/{table}/{key}/{super}:{column}       where rows are clustered
//   /v1/kv/{keyspace}/{table}:{super}:{column}/{key}       the same, as the Cassandra paper says it
//
// In the words of the paper a table is a column family, and `family:column`, `family:super:column`
// name what lies in it. Parts are percent-encoded: %2F is a slash within a key, %3A a colon within
// a name. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace helenus::keyvalue {

struct KeyPath {
  // Names within the row, at most.
  static constexpr std::size_t kNamesMax = 64;

  std::string keyspace;
  std::string table;
  std::string key;
  // Values of clustering columns, then perhaps the name of a column: which is which, the table
  // knows.
  std::vector<std::string> names;

  friend bool operator==(const KeyPath&, const KeyPath&) = default;
};

// Of the path of a request. Errors: invalid_argument, with what it should look like.
base::Result<KeyPath> parse_key_path(std::string_view path);

}  // namespace helenus::keyvalue
