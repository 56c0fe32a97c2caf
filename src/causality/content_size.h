// content_size: what a client's change holds, before contexts and dots are added to it.
#pragma once

#include <cstddef>
#include <span>

#include "causality/delta.h"
#include "causality/dot_store.h"

namespace helenus::causality {

// Bytes of keys and values: each row's key once for the cells of it that are together.
inline std::size_t content_size(std::span<const CellChange> cells,
                                std::span<const RowRange> deleted_ranges) {
  std::size_t bytes = 0;
  const CellChange* before = nullptr;
  for (const CellChange& cell : cells) {
    if (before == nullptr || before->row != cell.row) bytes += cell.row.size();
    bytes += cell.value.size();
    before = &cell;
  }
  for (const RowRange& row_range : deleted_ranges) {
    bytes +=
        (row_range.from ? row_range.from->size() : 0) + (row_range.to ? row_range.to->size() : 0);
  }
  return bytes;
}

}  // namespace helenus::causality
