// LogNeeds: which segments of a log are still needed, by whom.
//
// For each segment it keeps, per table, the last position at which that table has a record there;
// for each table, the position from which on it needs the log (what lies before is in sstables). A
// segment is needed by a table exactly when the table's last record in it lies at or behind that
// position. Positions, not bits: a table that is written to while it is being flushed needs only
// what came after the flush began.
//
// A table that never said from where it needs the log needs all of it.
//
// Pure. Cost: recorded() is one hash lookup, or none when the table is the same as last time.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "storage/ids/log_position.h"
#include "storage/ids/table_id.h"

namespace helenus::storage {

class LogNeeds {
 public:
  // Requires: greater than every segment before it.
  void begin_segment(SegmentId segment);
  // A record of the table was placed in the newest segment. Requires: begin_segment(), and
  // positions that only grow.
  void recorded(TableId table, LogPosition position);

  // The table needs nothing before `position` any more. Going back changes nothing.
  void needed_from(TableId table, LogPosition position);
  // The table was dropped: nothing recorded of it is needed.
  void forget_table(TableId table);

  bool needed(SegmentId segment) const;
  // The tables that need it, in ascending order.
  std::vector<TableId> tables_needing(SegmentId segment) const;
  // The segment is gone.
  void drop_segment(SegmentId segment);

 private:
  struct Segment {
    SegmentId id;
    absl::flat_hash_map<TableId, std::uint64_t> last_offset;
  };

  const Segment* find(SegmentId segment) const;
  bool needs(TableId table, LogPosition last) const;

  std::deque<Segment> segments_;  // ascending
  absl::flat_hash_map<TableId, LogPosition> needed_from_;
  // The table of the last record and its place in the newest segment's map; null after any change
  // that may move it.
  TableId last_table_;
  std::uint64_t* last_slot_ = nullptr;
};

}  // namespace helenus::storage
