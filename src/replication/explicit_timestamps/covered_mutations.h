// CoveredMutations: what the mutation log has of a partition, alive or not, from a timestamp on: a
// delete of ranges at that time loses where one of them is newer (rule (d)). For another replica
// may lack it, and compare it with the delete when it comes.
//
// As storage shows it: a version stands for each in the cells that it was about, newer than the
// delete and named by no context, so that nothing counts it as replaced. One of the very timestamp
// that is alive is compared as it is.
//
// Most partitions have nothing so new in the log, which is known without reading it (`is_empty`).
//
// Values; reading is the engine's core's.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/delta.h"
#include "causality/dot_store.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "storage/engine/engine.h"

namespace helenus::replication {

class CoveredMutations {
 public:
  // Those at or above `at_least`. Requires: nothing is staged for the partition meanwhile. Cost:
  // the tablet's mutation log, if the partition may have such. Errors: as of Engine::covered_floor.
  static runtime::Task<base::Result<CoveredMutations>> read(
      storage::Engine& engine, storage::TabletId tablet, storage::TableId table,
      base::Bytes partition, causality::Timestamp at_least, runtime::Until until);

  bool is_empty() const { return cells_.empty() && ranges_.empty(); }
  // For a delete at that time: what stands in the row beside what is stored there.
  void add_to(causality::PartitionStore& stored, const causality::RowKey& row,
              causality::Timestamp timestamp) const;
  // The ranges, and those that stand beside them; ascending, each once.
  std::vector<causality::RangeDelete> beside(std::span<const causality::RangeDelete> ranges,
                                             causality::Timestamp timestamp) const;
  // The rows of the range in which something stands by itself, ascending.
  std::vector<causality::RowKey> rows_in(const causality::RowRange& range) const;

 private:
  struct OfCell {
    causality::ColumnId column;
    causality::Dot dot;
    causality::Timestamp timestamp;
  };
  struct OfRange {
    causality::RowRange range;
    causality::Timestamp timestamp;
  };
  void take(const causality::Delta& delta);

  std::map<causality::RowKey, std::vector<OfCell>> cells_;
  std::vector<OfRange> ranges_;
};

}  // namespace helenus::replication
