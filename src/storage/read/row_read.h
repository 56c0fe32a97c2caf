// RowRead: a row as it was read.
#pragma once

#include "causality/clock.h"
#include "causality/delta.h"
#include "causality/dot_store.h"

namespace helenus::storage {

// A row and the ranges it lies in, as read, and the clock it may be shown with: no dot of it is
// missing from the data (S4).
struct RowRead {
  causality::PartitionStore partition;
  causality::Clock clock;
  // What a context made of it must carry (docs/adr/0012): no less than the timestamp of any
  // unstable mutation of the row.
  causality::Timestamp floor = causality::kTimestampMin;
  // A reader's moment is no earlier: what had expired before it may have been dropped here (R8).
  causality::WallTime wall = {};
  // It shows what was written after its clock was taken, which the clock may not have seen: a
  // version, or by its absence a delete.
  bool is_newer_than_clock = false;
};

}  // namespace helenus::storage
