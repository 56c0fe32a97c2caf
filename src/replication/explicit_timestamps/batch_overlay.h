// BatchOverlay: what the earlier writes of a request leave in a partition. A later one of them with
// an explicit timestamp is judged by this, laid over what storage has (ExplicitTimestampFilter).
//
// Every write of an 'lww' table supersedes, in its cells and ranges, all that its replica has seen,
// the writes before it among that. So of each cell the last write that touched it is all there is,
// and a cell that none touched is as storage has it.
//
//   cells    (row, column) -> the version
//   deleted  disjoint ranges of rows -> the empty version of the last range, which holds where no
//            cell was written after it
//
// Cost: laying and asking are logarithmic in what was laid.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "causality/delta.h"
#include "causality/dot_store.h"

namespace helenus::replication {

class BatchOverlay {
 public:
  using Cells = std::map<std::pair<causality::RowKey, causality::ColumnId>, causality::Version>;

  // Lays a write upon those before. Requires: it was minted after them, in an 'lww' table.
  void lay(const causality::Delta& delta);

  // What the writes leave of a cell; null if they leave it as it was.
  const causality::Version* find(const causality::RowKey& row, causality::ColumnId column) const;
  // The cells that were written in the range's rows, and not deleted after that.
  std::pair<Cells::const_iterator, Cells::const_iterator> written_in(
      const causality::RowRange& row_range) const;
  struct DeletedRange {
    causality::RowRange range;
    causality::Version version;
  };
  // The ranges that were deleted and overlap the range: ascending, disjoint.
  std::vector<DeletedRange> deleted_in(const causality::RowRange& row_range) const;
  // How a row was deleted, whatever cells were written after that; null if it was not.
  const causality::Version* deleted_at(const causality::RowKey& row) const;

 private:
  struct Deleted {
    std::optional<causality::RowKey> to;
    causality::Version version;
  };

  void lay(const causality::RowRange& row_range, const causality::Version& version);
  // Makes a range of deleted rows that goes across `row` end there, and another one begin.
  void cut(const causality::RowKey& row);

  Cells cells_;
  std::map<causality::RowKey, Deleted> deleted_;  // by their first row
};

}  // namespace helenus::replication
