// ReadPath: what a tablet has, merged from memtables and files, with the clock it may be shown
// with.
//
// What must never lie (S1, S4, S6):
//   - The view of the table and the clock are of one moment. What writes do to the row while files
//     are read is added in one step at the end.
//   - A read that saw a write which is not durable yet waits for it; the clock that goes with it
//     has durable dots alone.
//   - What cannot be read is an error that names file and offset, never an empty answer.
//
// Owns: nothing. Borrows: the state; changes nothing in it but what it counts, and what is known to
// be synced.
// Core affinity: the engine's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/clock.h"
#include "runtime/maybe_task.h"
#include "runtime/task.h"
#include "storage/engine/engine_state.h"
#include "storage/read/row_read.h"
#include "storage/read/table_cursor.h"
#include "storage/read/table_view.h"

namespace helenus::storage {

class ReadPath {
 public:
  explicit ReadPath(EngineState& state);

  // As Engine's.
  base::Result<causality::Clock> staged_clock(TabletId tablet) const;
  causality::WallTime dropped_before(TabletId tablet) const;
  base::Result<causality::Clock> durable_clock(TabletId tablet);
  base::Result<causality::Clock> synced_clock(TabletId tablet);
  std::vector<TabletId> take_changed_clocks();
  runtime::MaybeTask<base::Result<RowRead>> read_row(TableId table, TabletId tablet,
                                                     base::Bytes partition, base::Bytes row,
                                                     runtime::Until until);
  base::Result<std::unique_ptr<TableCursor>> cursor(TableId table, TabletId tablet,
                                                    SstableCursorOptions options);
  base::Result<causality::Timestamp> row_floor(TableId table, TabletId tablet,
                                               base::ByteView partition, base::ByteView row);
  base::Result<causality::Timestamp> partition_floor(TableId table, TabletId tablet,
                                                     base::ByteView partition);
  // Waits until all writes up to that number are durable (ReadTrace::sequence).
  runtime::Task<base::Result<void>> wait_durable(std::uint64_t sequence, runtime::Until until);

 private:
  void bring_up_to_date(Tablet& tablet) const;
  // What the table has for the tablet, now.
  static TableView view_of(const TableOfTablet& found);

  // A row that is being read: what it is read from, and what is known of it.
  struct RowSearch {
    TableView view;
    RowRead read;
    // When the view was taken: of the last write, and of the last one that is in the clock.
    std::uint64_t sequence = 0;
    std::uint64_t clock_sequence = 0;
    TableView::OlderRow older;
    ReadTrace trace = {};
  };
  // Goes on with a search that must read files, or look for deletes of ranges in what is older.
  runtime::Task<base::Result<RowRead>> read_row_in_files(TableId table, TabletId tablet,
                                                         base::Bytes partition, base::Bytes row,
                                                         RowSearch search, runtime::Until until);
  runtime::Task<base::Result<RowRead>> show_when_durable(RowRead read, std::uint64_t sequence,
                                                         runtime::Until until);
  void count_read(const ReadTrace& trace, bool is_found);

  EngineState& state_;
};

}  // namespace helenus::storage
