// The bytes of a commit log's segments: headers, batches, records. Pure; docs/formats/commit-log.md
// has the layout with worked bytes.
//
//   segment = header block (4096 bytes), then batches, each at a multiple of the alignment
//   batch   = header (32 bytes), body, zeros up to the next multiple of the alignment
//   data body = records: table id, size, bytes
//
// What a checksum vouches for. Both checksums of a batch are CRC32C continued from one half each of
//     seed = mix64(salt + mix64(sequence * 2^32 + offset)),
// which is a bijection of the position for a fixed salt, and of the salt for a fixed position. CRC
// continued from two different values over equal bytes differs. So a whole batch that lies where it
// was not written, or that was left in a recycled file by an earlier segment with another salt, has
// a seed that differs in at least one half, and never passes both checksums.
//
// What a batch claims. Its header says how far the log was when it was written: everything before
// `written_offset` of this segment was written (write returned), everything before `synced` was
// synced. Recovery weighs what it cannot read against these claims (log_directory.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/time.h"
#include "storage/ids/log_position.h"
#include "storage/ids/table_id.h"

namespace helenus::storage {

enum class LogSyncMode : std::uint8_t { batch = 1, group = 2, periodic = 3 };

std::string_view name_of(LogSyncMode mode);

inline constexpr std::size_t kSegmentHeaderSize = 4096;
inline constexpr std::size_t kBatchHeaderSize = 32;
// Where batches may begin: written past the page cache, or through it.
inline constexpr std::uint32_t kBatchAlignmentDirect = 4096;
inline constexpr std::uint32_t kBatchAlignmentBuffered = 64;
inline constexpr std::uint64_t kSegmentSizeMin = std::uint64_t{32} << 10;
inline constexpr std::uint64_t kSegmentSizeMax = std::uint64_t{1} << 30;
// Segments of one log that may exist at once; their list must fit a note.
inline constexpr std::size_t kSegmentsMax = 512;
inline constexpr std::uint32_t kCoresMax = 1024;

struct SegmentHeader {
  SegmentId id;
  std::uint32_t core = 0;
  std::uint64_t log_id = 0;  // random, drawn for each log
  std::uint64_t salt = 0;    // random, drawn for each segment
  std::uint64_t segment_size = 0;
  std::uint32_t alignment = kBatchAlignmentDirect;
  LogSyncMode sync_mode = LogSyncMode::batch;
  runtime::WallTime created;
  friend bool operator==(const SegmentHeader&, const SegmentHeader&) = default;
};

// Writes kSegmentHeaderSize bytes. Requires: into.size() == kSegmentHeaderSize.
void encode_segment_header(const SegmentHeader& header, base::MutableByteView into);
// Errors: corrupt; unsupported (a newer version).
base::Result<SegmentHeader> decode_segment_header(base::ByteView bytes);

// "commit-00000006-003-00000012.log": incarnation, core, sequence.
std::string segment_file_name(SegmentId id, std::uint32_t core);
struct SegmentFileName {
  SegmentId id;
  std::uint32_t core = 0;
};
// Nothing if the name is not exactly one that segment_file_name gives.
std::optional<SegmentFileName> parse_segment_file_name(std::string_view name);

enum class BatchKind : std::uint8_t {
  data = 1,  // records; none at all in a batch that is there for its claims
  live = 2,  // a note: which segments of this log exist. The newest note is the valid one
  end = 3,   // the segment is full, the log goes on in the next
  seal = 4,  // the log was stopped here on purpose
};

struct BatchHeader {
  BatchKind kind = BatchKind::data;
  std::uint32_t body_size = 0;
  std::uint32_t count = 0;  // records of a data batch, segments of a live one
  std::uint32_t body_checksum = 0;
  std::uint32_t written_offset = 0;
  std::uint32_t synced_sequence = 0;
  std::uint32_t synced_offset = 0;
  friend bool operator==(const BatchHeader&, const BatchHeader&) = default;
};

constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}
// What a batch takes in its segment.
constexpr std::uint64_t batch_footprint(std::uint64_t body_size, std::uint32_t alignment) {
  return align_up(kBatchHeaderSize + body_size, alignment);
}
// What a segment keeps free of records: one note and an end, or a seal. So what gives space back
// (a note that a segment is no longer needed) never waits for space itself.
constexpr std::uint64_t segment_reserve(std::uint32_t alignment) {
  return batch_footprint(4 * kSegmentsMax, alignment) + batch_footprint(0, alignment);
}

// Fills in the checksums and writes the header. `batch` begins with room for the header and holds
// the body behind it. Requires: batch.size() == kBatchHeaderSize + header.body_size.
void seal_batch(const SegmentHeader& segment, std::uint64_t offset, BatchHeader header,
                base::MutableByteView batch);

// The header of a batch that begins at `offset`, if these bytes are one: its checksum holds and it
// makes sense. Says nothing about the body. Requires: bytes.size() >= kBatchHeaderSize.
std::optional<BatchHeader> decode_batch_header(const SegmentHeader& segment, std::uint64_t offset,
                                               base::ByteView bytes);
// Whether the body is the one the header was made for.
bool body_matches(const SegmentHeader& segment, std::uint64_t offset, const BatchHeader& header,
                  base::ByteView body);

// A record as it lies in a batch.
constexpr std::size_t kRecordOverheadMax = 20;
std::size_t record_frame_size(TableId table, std::size_t record_size);
// Appends a record's frame.
void encode_record(TableId table, base::ByteView record, base::Buffer& out);

struct LogRecord {
  TableId table;
  LogPosition position;
  base::ByteView bytes;  // borrows from the batch
};

// Walks the records of a data batch.
//   while (const auto record = cursor.next()) ...
//   TRY_VOID(cursor.status());
class RecordCursor {
 public:
  // `body_position` is where the body begins.
  RecordCursor(base::ByteView body, std::uint32_t count, LogPosition body_position)
      : body_(body), left_(count), position_(body_position) {}

  // Nothing at the end, and when the bytes make no sense.
  std::optional<LogRecord> next();
  // Errors: corrupt, if the body did not hold exactly what the header promised.
  base::Result<void> status() const;

 private:
  base::ByteView body_;
  std::size_t at_ = 0;
  std::uint32_t left_;
  LogPosition position_;
  bool malformed_ = false;
};

// The body of a note: the sequence numbers of the segments that exist, ascending.
void encode_live(std::span<const std::uint32_t> sequences, base::Buffer& out);
// Errors: corrupt. `newest` is the segment the note is written in, and the last of the list.
base::Result<std::vector<std::uint32_t>> decode_live(base::ByteView body, std::uint32_t newest);

// What headers of batches, whole or not, say about a log whose bytes cannot be followed any more.
struct LogClaims {
  std::uint32_t synced_sequence = 0;
  std::uint32_t synced_offset = 0;
  std::uint64_t written_offset = 0;  // in the segment searched
  std::uint64_t end = 0;             // the furthest end of a batch whose header is whole

  void add(const BatchHeader& header, std::uint64_t offset);
};

// Takes into account every batch header that begins in `window`, at a multiple of the alignment.
// `window_offset` is where the window lies in the segment, a multiple of the alignment.
void collect_claims(const SegmentHeader& segment, std::uint64_t window_offset,
                    base::ByteView window, LogClaims& claims);

}  // namespace helenus::storage
