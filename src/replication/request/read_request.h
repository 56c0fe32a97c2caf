// What is read of a table: some rows, or a range of partitions, and what comes back.
#pragma once

#include "replication/request/request_level.h"
#include "runtime/operation.h"
#include "storage/ids/key_range.h"
#include "storage/ids/table_id.h"
#include "storage/read/row_read.h"

namespace helenus::replication {

// How the rows of a range of partitions are read.
struct ScanOptions {
  runtime::Until until = {};
  RequestLevel how = {};
  // Rows that are read together shall be of one moment: see RangeCursor::moment().
  bool at_one_moment = false;
};

}  // namespace helenus::replication
