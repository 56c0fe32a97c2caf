// LogWriteBuffer: records on their way to the disk, laid out exactly as they will lie there.
//
// A log has two: one fills while the other is written. A record is copied once, into here, and its
// position in the log is known at that moment. The memory is kept from use to use, so filling
// allocates nothing once it has grown to what the load needs.
//
// The content is a list of pieces, each a run of batches of one segment that one request writes.
// Usually there is one piece with one data batch; a note may stand before it, and when the segment
// ran full there is an end behind it and a second piece in the next segment.
//
// Pure: knows no files. Checksums and claims are filled in by finish(), when writing begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "storage/log/log_format.h"

namespace helenus::storage {

class LogWriteBuffer {
 public:
  // At most this many pieces: no write has to wait for more than one change of segments.
  static constexpr std::size_t kPiecesMax = 2;

  struct Piece {
    SegmentHeader segment;
    std::uint64_t file_offset = 0;  // where it goes in the segment
    std::size_t begin = 0;          // where it lies in this buffer
    std::size_t end = 0;
    bool ends_segment = false;
    bool holds_content = false;  // more than claims

    std::uint64_t file_end() const { return file_offset + (end - begin); }
  };

  // How far the log is, for the headers of what is written next.
  struct Synced {
    std::uint32_t sequence = 0;
    std::uint32_t offset = 0;
  };

  explicit LogWriteBuffer(std::size_t capacity)
      : bytes_(capacity, kBatchAlignmentDirect), capacity_kept_(capacity) {}

  bool empty() const { return pieces_.empty(); }
  // Whether records can be added without open_piece().
  bool piece_open() const { return open_; }
  std::size_t size() const { return bytes_.size(); }
  std::size_t record_count() const { return record_count_; }
  const std::vector<Piece>& pieces() const { return pieces_; }

  // Begins a piece. Requires: !piece_open(), fewer than kPiecesMax pieces, an aligned offset.
  void open_piece(const SegmentHeader& segment, std::uint64_t file_offset);

  // All below require piece_open() and that the segment has room.

  // Where the segment's next batch would begin if a record frame of this size were added.
  std::uint64_t end_with(std::size_t frame_size) const;
  // Where it would begin now.
  std::uint64_t end_offset() const;
  // No record added from now on begins before this offset.
  std::uint64_t next_offset() const { return file_offset_of(bytes_.size()); }
  // Returns where in its segment the record's frame begins.
  std::uint64_t add_record(TableId table, base::ByteView record);
  void add_live(std::span<const std::uint32_t> sequences);
  // A batch without records, for its claims.
  void add_claims();
  // An end or a seal, after which the piece is closed.
  void close_segment(BatchKind kind);

  // Completes every batch: header, checksums, padding. Afterwards nothing can be added.
  void finish(Synced synced);
  // Requires: finish() was called.
  base::ByteView bytes_of(const Piece& piece) const {
    return bytes_.view().subspan(piece.begin, piece.end - piece.begin);
  }

  // Forgets the content. Keeps the memory, unless a burst has made it far larger than usual.
  void clear();

 private:
  struct Batch {
    std::size_t piece = 0;
    std::size_t begin = 0;
    std::size_t body_size = 0;
    BatchKind kind = BatchKind::data;
    std::uint32_t count = 0;
  };

  Batch& begin_batch(BatchKind kind);
  void end_batch();
  std::uint64_t file_offset_of(std::size_t at) const {
    return pieces_.back().file_offset + (at - pieces_.back().begin);
  }

  base::Buffer bytes_;
  std::size_t capacity_kept_;
  std::vector<Piece> pieces_;
  std::vector<Batch> batches_;
  bool open_ = false;        // the last piece takes more
  bool batch_open_ = false;  // the last batch takes more records
  std::size_t record_count_ = 0;
};

}  // namespace helenus::storage
