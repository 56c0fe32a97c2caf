// Guardrails: how much of what is known to end badly a client may ask for before it is warned, and
// before it is refused. Names and defaults are Cassandra's; here every size is in bytes, and zero
// is no limit. What they mean is in guardrail_checks.h.
#pragma once

#include <cstdint>

#include "cql/plan/value_thresholds.h"

namespace helenus::cql {

struct Guardrails : ValueThresholds {
  // Of a batch that changes several partitions.
  std::uint32_t batch_size_warn_threshold = 5 << 10;
  std::uint32_t batch_size_fail_threshold = 50 << 10;
  std::uint32_t unlogged_batch_across_partitions_warn_threshold = 10;
  std::uint32_t keyspaces_warn_threshold = 0;
  std::uint32_t keyspaces_fail_threshold = 0;
  std::uint32_t tables_warn_threshold = 0;
  std::uint32_t tables_fail_threshold = 0;
  std::uint32_t columns_per_table_warn_threshold = 0;
  std::uint32_t columns_per_table_fail_threshold = 0;
  std::uint32_t secondary_indexes_per_table_warn_threshold = 0;
  std::uint32_t secondary_indexes_per_table_fail_threshold = 0;
  std::uint32_t fields_per_udt_warn_threshold = 0;
  std::uint32_t fields_per_udt_fail_threshold = 0;
  std::uint32_t page_size_warn_threshold = 0;
  std::uint32_t page_size_fail_threshold = 0;
  std::uint32_t partition_keys_in_select_warn_threshold = 0;
  std::uint32_t partition_keys_in_select_fail_threshold = 0;
  bool allow_filtering_enabled = true;
  bool secondary_indexes_enabled = true;
  bool user_timestamps_enabled = true;
  bool group_by_enabled = true;
  bool drop_truncate_table_enabled = true;
  bool alter_table_enabled = true;

  // Whether requests of one row must be looked at, too.
  bool guards_points() const {
    return guards_values() || !user_timestamps_enabled || page_size_warn_threshold > 0 ||
           page_size_fail_threshold > 0;
  }
};

}  // namespace helenus::cql
