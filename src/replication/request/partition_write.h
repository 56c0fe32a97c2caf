// PartitionWrite: what a request does to one partition.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "causality/delta.h"
#include "storage/ids/table_id.h"

namespace helenus::replication {

// Membership does not change yet.
inline constexpr causality::Epoch kEpoch{1};

// The columns that rows of a table may have, so that those that are not there can be named.
struct RowColumns {
  std::vector<causality::ColumnId> of_rows;
  std::vector<causality::ColumnId> of_first;  // of the row whose key is empty
};

// The mutation of one partition: atomic, one dot.
struct PartitionWrite {
  storage::TableId table;
  base::Bytes partition;
  causality::Mutation mutation;
  // The client named the timestamp itself (USING TIMESTAMP): it keeps Cassandra's meaning, so a
  // cell in which it does not win is left out of the mutation (rule (d)). Such a write reads. Only
  // in 'lww' tables.
  bool explicit_timestamp = false;
  // Of a table with causal_writes = 'quorum': it is minted under the clocks of as many replicas as
  // its level reads (S2). One with an explicit timestamp is not.
  bool unites_clocks = false;
  // Of a delete of rows with an explicit timestamp: what its rows may have
  // (ExplicitRangeDeleteFilter).
  RowColumns columns = {};
};

}  // namespace helenus::replication
