#include "storage/log/log_write_buffer.h"

#include <algorithm>

#include "base/assert.h"

namespace helenus::storage {

void LogWriteBuffer::open_piece(const SegmentHeader& segment, std::uint64_t file_offset) {
  ASSERT(!open_ && pieces_.size() < kPiecesMax);
  ASSERT(file_offset % segment.alignment == 0 && file_offset >= kSegmentHeaderSize);
  // Direct writes want aligned memory as well as an aligned offset.
  const std::size_t begin = align_up(bytes_.size(), segment.alignment);
  std::ranges::fill(bytes_.extend(begin - bytes_.size()), std::byte{0});
  pieces_.push_back({.segment = segment, .file_offset = file_offset, .begin = begin, .end = begin});
  open_ = true;
}

std::uint64_t LogWriteBuffer::end_offset() const {
  ASSERT(open_);
  return align_up(file_offset_of(bytes_.size()), pieces_.back().segment.alignment);
}

std::uint64_t LogWriteBuffer::end_with(std::size_t frame_size) const {
  ASSERT(open_);
  const std::uint64_t from =
      batch_open_ ? file_offset_of(bytes_.size()) : end_offset() + kBatchHeaderSize;
  return align_up(from + frame_size, pieces_.back().segment.alignment);
}

LogWriteBuffer::Batch& LogWriteBuffer::begin_batch(BatchKind kind) {
  ASSERT(open_);
  end_batch();
  const std::size_t begin = bytes_.size();
  bytes_.extend(kBatchHeaderSize);
  batches_.push_back({.piece = pieces_.size() - 1, .begin = begin, .kind = kind});
  batch_open_ = true;
  return batches_.back();
}

void LogWriteBuffer::end_batch() {
  if (batch_open_) {
    Batch& batch = batches_.back();
    batch.body_size = bytes_.size() - batch.begin - kBatchHeaderSize;
    batch_open_ = false;
  }
  const std::size_t aligned = align_up(bytes_.size(), pieces_.back().segment.alignment);
  std::ranges::fill(bytes_.extend(aligned - bytes_.size()), std::byte{0});
  pieces_.back().end = aligned;
}

std::uint64_t LogWriteBuffer::add_record(TableId table, base::ByteView record) {
  if (!batch_open_) begin_batch(BatchKind::data);
  Batch& batch = batches_.back();
  const std::uint64_t offset = file_offset_of(bytes_.size());
  encode_record(table, record, bytes_);
  ++batch.count;
  ++record_count_;
  pieces_.back().holds_content = true;
  return offset;
}

void LogWriteBuffer::add_live(std::span<const std::uint32_t> sequences) {
  Batch& batch = begin_batch(BatchKind::live);
  encode_live(sequences, bytes_);
  batch.count = static_cast<std::uint32_t>(sequences.size());
  pieces_.back().holds_content = true;
  end_batch();
}

void LogWriteBuffer::add_claims() {
  begin_batch(BatchKind::data);
  end_batch();
}

void LogWriteBuffer::close_segment(BatchKind kind) {
  ASSERT(kind == BatchKind::end || kind == BatchKind::seal);
  begin_batch(kind);
  end_batch();
  pieces_.back().ends_segment = true;
  pieces_.back().holds_content = true;
  open_ = false;
}

void LogWriteBuffer::finish(Synced synced) {
  if (open_) end_batch();
  open_ = false;
  for (const Batch& batch : batches_) {
    const Piece& piece = pieces_[batch.piece];
    const BatchHeader header{.kind = batch.kind,
                             .body_size = static_cast<std::uint32_t>(batch.body_size),
                             .count = batch.count,
                             .written_offset = static_cast<std::uint32_t>(piece.file_offset),
                             .synced_sequence = synced.sequence,
                             .synced_offset = synced.offset};
    seal_batch(piece.segment, piece.file_offset + (batch.begin - piece.begin), header,
               bytes_.mutable_view().subspan(batch.begin, kBatchHeaderSize + batch.body_size));
  }
}

void LogWriteBuffer::clear() {
  constexpr std::size_t kBurstFactor = 8;
  if (bytes_.capacity() > capacity_kept_ * kBurstFactor && bytes_.size() <= capacity_kept_) {
    bytes_ = base::Buffer(capacity_kept_, kBatchAlignmentDirect);
  }
  bytes_.clear();
  pieces_.clear();
  batches_.clear();
  open_ = false;
  batch_open_ = false;
  record_count_ = 0;
}

}  // namespace helenus::storage
