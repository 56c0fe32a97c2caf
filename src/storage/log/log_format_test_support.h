// For tests: whole segments in memory, made with LogWriteBuffer and walked with log_format.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "storage/log/log_format.h"
#include "storage/log/log_write_buffer.h"

namespace helenus::storage::testing {

inline SegmentHeader small_segment_header(std::uint32_t alignment = kBatchAlignmentBuffered) {
  return {.id = {3, 7},
          .core = 1,
          .log_id = 0x1122334455667788,
          .salt = 0x0123456789abcdef,
          .segment_size = 64 << 10,
          .alignment = alignment,
          .sync_mode = LogSyncMode::batch,
          .created = runtime::WallTime(runtime::Duration(1794735000000000000))};
}

using TestRecord = std::pair<TableId, std::string>;

// A segment's bytes from its start, as far as something was written.
class SegmentBytes {
 public:
  explicit SegmentBytes(const SegmentHeader& header) : header_(header) {
    bytes_.resize(kSegmentHeaderSize);
    encode_segment_header(header,
                          {reinterpret_cast<std::byte*>(bytes_.data()), kSegmentHeaderSize});
  }

  // Each write is synced before the next, as in batch mode.
  void write(LogWriteBuffer& buffer) {
    buffer.finish({.sequence = header_.id.sequence, .offset = static_cast<std::uint32_t>(end())});
    for (const auto& piece : buffer.pieces()) {
      starts_.push_back(end());
      bytes_ += base::as_text(buffer.bytes_of(piece));
    }
    buffer.clear();
  }
  void write_records(const std::vector<TestRecord>& records) {
    LogWriteBuffer buffer(4096);
    buffer.open_piece(header_, end());
    if (end() == kSegmentHeaderSize)
      buffer.add_live(std::vector<std::uint32_t>{header_.id.sequence});
    for (const auto& [table, bytes] : records) buffer.add_record(table, base::as_bytes(bytes));
    write(buffer);
  }
  void write_last(BatchKind kind) {
    LogWriteBuffer buffer(4096);
    buffer.open_piece(header_, end());
    buffer.close_segment(kind);
    write(buffer);
  }

  std::uint64_t end() const { return bytes_.size(); }
  std::string& bytes() { return bytes_; }
  // Where each write begins.
  const std::vector<std::uint64_t>& starts() const { return starts_; }
  const SegmentHeader& header() const { return header_; }

 private:
  SegmentHeader header_;
  std::string bytes_;
  std::vector<std::uint64_t> starts_;
};

struct Walked {
  std::vector<TestRecord> records;
  std::vector<LogPosition> positions;
  std::vector<BatchKind> kinds;
  std::uint64_t end = 0;  // where there is no whole batch any more
};

inline Walked walk(const SegmentHeader& header, const std::string& bytes) {
  const base::ByteView view = base::as_bytes(bytes);
  Walked walked{.records = {}, .positions = {}, .kinds = {}, .end = kSegmentHeaderSize};
  while (walked.end + kBatchHeaderSize <= view.size()) {
    const base::ByteView rest = view.subspan(walked.end);
    const auto batch = decode_batch_header(header, walked.end, rest);
    if (!batch || rest.size() < kBatchHeaderSize + batch->body_size) break;
    const base::ByteView body = rest.subspan(kBatchHeaderSize, batch->body_size);
    if (!body_matches(header, walked.end, *batch, body)) break;
    if (batch->kind == BatchKind::data) {
      RecordCursor cursor(body, batch->count, {header.id, walked.end + kBatchHeaderSize});
      while (const auto record = cursor.next()) {
        walked.records.emplace_back(record->table, base::as_text(record->bytes));
        walked.positions.push_back(record->position);
      }
      if (!cursor.status()) break;
    }
    walked.kinds.push_back(batch->kind);
    walked.end += batch_footprint(batch->body_size, header.alignment);
  }
  return walked;
}

}  // namespace helenus::storage::testing
