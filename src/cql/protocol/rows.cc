#include "cql/protocol/rows.h"

#include <limits>
#include <utility>

namespace helenus::cql::protocol {

namespace {

// flags, count of columns, length of the paging state, count of rows, kind of result
constexpr std::size_t kHeadSizeMax = 5 * sizeof(std::uint32_t);
constexpr std::size_t kCountSize = sizeof(std::uint32_t);

}  // namespace

RowsWriter::RowsWriter(const EncodedColumns& columns, bool skip_metadata, std::size_t size_expected,
                       std::optional<base::Bytes> changed_id)
    : columns_(columns),
      skip_metadata_(skip_metadata),
      changed_id_(std::move(changed_id)),
      rows_(size_expected) {
  put_head(std::nullopt, rows_);
  head_size_ = rows_.size();
  rows_end_ = head_size_;
}

void RowsWriter::put_head(std::optional<base::ByteView> paging_state, base::Buffer& buffer) const {
  const base::ByteView specs = skip_metadata_ ? base::ByteView() : columns_.specs().view();
  buffer.reserve(kHeadSizeMax + specs.size() + (changed_id_ ? changed_id_->size() : 0) +
                 (paging_state ? paging_state->size() : 0));
  base::Encoder out(buffer);
  out.u32_be(static_cast<std::uint32_t>(ResultKind::rows));
  out.u32_be((skip_metadata_ ? kMetadataNone : columns_.flags()) |
             (paging_state ? kMetadataHasMorePages : 0) | (changed_id_ ? kMetadataChanged : 0));
  out.u32_be(columns_.count());
  if (paging_state) put_bytes(out, paging_state);
  if (changed_id_) put_short_bytes(out, *changed_id_);
  out.raw(specs);
  out.u32_be(row_count_);
}

void RowsWriter::cell(std::optional<base::ByteView> value) {
  ASSERT(cells_in_row_ < columns_.count());
  base::Encoder out(rows_);
  put_bytes(out, value);
  ++cells_in_row_;
}

void RowsWriter::end_row() {
  ASSERT(cells_in_row_ == columns_.count(), "{} cells in a row of {}", cells_in_row_,
         columns_.count());
  ASSERT(row_count_ < std::numeric_limits<std::int32_t>::max());
  cells_in_row_ = 0;
  rows_end_ = rows_.size();
  ++row_count_;
}

void RowsWriter::abandon_row() {
  cells_in_row_ = 0;
  rows_.truncate(rows_end_);
}

Response RowsWriter::finish(std::optional<base::ByteView> paging_state) && {
  ASSERT(rows_.size() == rows_end_, "a row is not complete");
  Response response;
  response.opcode = Opcode::result;
  if (!paging_state) {
    base::store_be(rows_.data() + head_size_ - kCountSize, row_count_);
    response.body[0] = std::move(rows_).freeze();
    return response;
  }
  base::Buffer head;
  put_head(paging_state, head);
  response.body = {std::move(head).freeze(), std::move(rows_).freeze().slice(head_size_)};
  return response;
}

}  // namespace helenus::cql::protocol
