// RowRangeDeletes: the deletes of ranges of a partition that may hold a row, as a reader has loaded
// them (range_delete_key.h), and kept from row to row as long as they serve.
//
// Those of the active memtable are a RowRangeDeletes of their own: more of them may come at any
// time, and they must be of the same moment as what that memtable has of the row (table_view.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/dot_store.h"
#include "causality/range_index.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "storage/entry/entry.h"
#include "storage/entry/range_delete_key.h"
#include "storage/read/table_view.h"

namespace helenus::storage {

class RowRangeDeletes {
 public:
  RowRangeDeletes() = default;
  RowRangeDeletes(const RowRangeDeletes&) = delete;
  RowRangeDeletes& operator=(const RowRangeDeletes&) = delete;

  // Whether everything is loaded that may hold the row.
  bool serves(base::ByteView partition, base::ByteView row) const;
  // Loads what is missing of frozen memtables and files. Both keys must outlive the wait. After an
  // error it serves no row. Errors: those of TableView::find_older.
  runtime::Task<base::Result<void>> load_older(const TableView& view, base::ByteView partition,
                                               base::ByteView row, runtime::Until until,
                                               ReadTrace& trace);
  // Loads those of the active memtable, as they are now. Requires: the same view each time, and
  // nothing loaded that is older.
  void load_active(const TableView& view, base::ByteView partition, base::ByteView row,
                   ReadTrace& trace);
  // Adds those that hold the row, without looking at the others. Requires: nothing loaded yet, or
  // serves() the row.
  void add_to(causality::PartitionStore& partition, const causality::RowKey& row) const;

 private:
  // What lies at one depth under the digits that a row begins with.
  struct Level {
    RangeDepth depth = 0;
    bool loaded = false;
    bool too_short = false;  // the row has not so many digits
    std::string row;         // one that begins so
    Entry entry;
    causality::RangeIndex index;  // of the entry

    bool serves(base::ByteView key) const;
    void take(base::ByteView key, Entry found);
  };

  bool is_of(base::ByteView partition) const { return partition_ == base::as_text(partition); }
  void begin(base::ByteView partition, Entry together);
  // The next level to be loaded for the row; null if there is none.
  Level* next_missing(base::ByteView row);

  std::optional<std::string> partition_;
  Entry together_;
  causality::RangeIndex together_index_;
  std::vector<Level> levels_;
  std::uint64_t range_writes_ = 0;  // of the active memtable, when it was loaded
};

}  // namespace helenus::storage
