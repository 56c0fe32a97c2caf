// RowsWriter: streams the rows of a result into its Response.
//
//   RowsWriter rows(statement.columns, parameters.skip_metadata);
//   while (...) {
//     for (cell of the row) rows.cell(cell);
//     rows.end_row();
//     if (rows.size() >= page_size_bytes) break;   // a page may be cut by rows or by bytes
//   }
//   return std::move(rows).finish(state of the next page, or none);
//
// What stands in front of rows is written first, as of the last page, and only their count is
// patched in: an answer is one piece. Where another page follows, what stands in front is written
// anew into a piece of its own, so nothing is moved. The specifications of the columns are those
// encoded once for the statement; an answer copies them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/codec.h"
#include "cql/protocol/metadata.h"
#include "cql/protocol/response.h"

namespace helenus::cql::protocol {

class RowsWriter {
 public:
  // `columns` outlives the writer. `size_expected` saves growing where it is known. `changed_id`:
  // of the columns, for a client that holds others (version 5).
  RowsWriter(const EncodedColumns& columns [[clang::lifetimebound]], bool skip_metadata,
             std::size_t size_expected = 256, std::optional<base::Bytes> changed_id = std::nullopt);

  // The next cell of the row; none is null. Requires: the row is not complete; the size of the cell
  // is at most INT32_MAX.
  void cell(std::optional<base::ByteView> value);
  // Requires: as many cells as columns.
  void end_row();
  // Forgets the cells since the last end_row(): the row belongs to the next page.
  void abandon_row();

  std::uint32_t row_count() const { return row_count_; }
  // Bytes of the complete rows.
  std::size_t size() const { return rows_end_ - head_size_; }
  // The same with the cells of the row begun.
  std::size_t size_with_row() const { return rows_.size() - head_size_; }

  // The RESULT. A paging state says that more pages follow. Requires: between two rows.
  Response finish(std::optional<base::ByteView> paging_state) &&;

 private:
  void put_head(std::optional<base::ByteView> paging_state, base::Buffer& out) const;

  const EncodedColumns& columns_;
  const bool skip_metadata_;
  const std::optional<base::Bytes> changed_id_;
  base::Buffer rows_;  // behind what stands in front of them
  std::size_t head_size_ = 0;
  std::size_t rows_end_ = 0;
  std::uint32_t row_count_ = 0;
  std::uint32_t cells_in_row_ = 0;
};

}  // namespace helenus::cql::protocol
