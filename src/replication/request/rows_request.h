// RowsRequest, RowsAnswer: some rows of one tablet, one after the other, as a replica reads them
// for a coordinator.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "causality/clock.h"
#include "causality/dot_store.h"
#include "storage/ids/key_range.h"
#include "storage/ids/table_id.h"

namespace helenus::replication {

// Some rows of one tablet, one after the other.
struct RowsRequest {
  enum class From : unsigned char {
    row,    // at or behind (partition, row); backwards, before it
    bound,  // at or behind the bound; backwards, before it
    edge,   // of the tablet
  };
  storage::TableId table;
  storage::TabletId tablet;
  storage::KeyRange partitions;  // none of others
  From from = From::edge;
  base::Bytes partition;  // or the bound
  base::Bytes row;
  bool backwards = false;
  std::size_t rows_max = 1;
  // They are to be of one moment, as far as the replica manages between writes.
  bool at_one_moment = false;
};

struct RowsAnswer {
  // No more than about so many bytes of values and keys travel at once.
  static constexpr std::size_t kBytesMax = std::size_t{256} << 10;

  struct Row {
    base::Bytes partition;
    base::Bytes row;
    causality::PartitionStore stored;
  };
  std::vector<Row> rows;  // in the order of reading
  causality::Clock clock;
  bool more = false;  // there may be rows behind the last one
  // As RowRead's of these names.
  causality::WallTime wall = {};
  bool is_newer_than_clock = false;
  // In place of the rows and the clock, where that was asked for: what a reader would see.
  std::optional<base::Hash128> digest = {};
};

}  // namespace helenus::replication
