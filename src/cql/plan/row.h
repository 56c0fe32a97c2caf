// Row: one row as a SELECT sees it, whatever it was read from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "model/value.h"

namespace helenus::cql {

// What is told of an element of a collection, or of a field, that is a cell of its own.
struct CellElement {
  base::Bytes name;  // what storage knows it by (model/element_key.h)
  std::int64_t timestamp_us = 0;
  std::optional<std::int64_t> expires_seconds;
};

struct Cell {
  model::OptionalBytes value;  // none is null
  // Of a column that is stored; of a value that is null they mean nothing, nor of one in elements.
  std::int64_t timestamp_us = 0;
  std::optional<std::int64_t> expires_seconds;
  // Of a column that is stored in elements: those in `value`, in their order; of a user-defined
  // type the fields that are not null. Null if there are none.
  std::shared_ptr<const std::vector<CellElement>> elements = nullptr;
};

struct Row {
  // By the index of the column in Table::columns. Those the reader was not asked for are null.
  std::vector<Cell> cells;
  // Where it lies. The clustering key is empty for the only row of a partition, and for a static
  // row that has no other row beside it.
  base::Bytes partition;
  base::Bytes clustering;
  // Its number among the rows of its partition that were shown; from 1.
  std::uint64_t number_in_partition = 0;
};

// What it takes in memory.
inline std::size_t size_of(const Row& row) {
  std::size_t size = row.cells.size() * sizeof(Cell);
  for (const Cell& cell : row.cells) {
    size += cell.value ? cell.value->size() : 0;
    if (cell.elements != nullptr) size += cell.elements->size() * sizeof(CellElement);
  }
  return size;
}

// Behind which row a stream of rows begins.
struct RowPosition {
  base::Bytes partition;
  base::Bytes clustering;
  std::uint64_t rows_in_partition = 0;  // shown up to here
  friend bool operator==(const RowPosition&, const RowPosition&) = default;
};

}  // namespace helenus::cql
