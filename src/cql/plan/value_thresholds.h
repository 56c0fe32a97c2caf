// How large the values may be that a statement sets or adds, in bytes and in elements, before it is
// warned of and before it is refused. Zero is no limit; so it is in Cassandra unless it is set.
#pragma once

#include <cstdint>

namespace helenus::cql {

struct ValueThresholds {
  std::uint32_t column_value_size_warn_threshold = 0;
  std::uint32_t column_value_size_fail_threshold = 0;
  std::uint32_t collection_size_warn_threshold = 0;
  std::uint32_t collection_size_fail_threshold = 0;
  std::uint32_t items_per_collection_warn_threshold = 0;
  std::uint32_t items_per_collection_fail_threshold = 0;

  bool guards_values() const {
    return (column_value_size_warn_threshold | column_value_size_fail_threshold |
            collection_size_warn_threshold | collection_size_fail_threshold |
            items_per_collection_warn_threshold | items_per_collection_fail_threshold) != 0;
  }
};

}  // namespace helenus::cql
