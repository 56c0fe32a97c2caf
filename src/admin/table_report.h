// What a node tells of its tables: the JSON of /tables, and of what was done to them
// (docs/operations/cluster.md). Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "storage/engine/engine_statistics.h"

namespace helenus::admin {

// What this node has of a table.
struct TableReport {
  std::string keyspace;
  std::string table;
  storage::TableStatistics here;
};

std::string tables_json(std::span<const TableReport> tables);

// What is being merged, and what waits for it.
std::string compactions_json(std::span<const TableReport> tables);

// {"done": "flush", "tables": 3}
std::string done_json(std::string_view what, std::size_t tables);

}  // namespace helenus::admin
