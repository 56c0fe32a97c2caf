#include "storage/log/log_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "base/assert.h"
#include "base/codec.h"
#include "base/crc32c.h"
#include "base/hash.h"
#include "base/versioned_file.h"

namespace helenus::storage {

using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::string_view kMagic = "HLNSCLOG";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kSegmentHeaderCovered = 64;
constexpr std::size_t kSegmentHeaderUsed = kSegmentHeaderCovered + 4;

// Offsets inside a batch header.
constexpr std::size_t kHeaderChecksumAt = 0;
constexpr std::size_t kBodyChecksumAt = 4;
constexpr std::size_t kBodySizeAt = 8;
constexpr std::size_t kCountAt = 12;
constexpr std::size_t kKindAt = 16;
constexpr std::size_t kWrittenOffsetAt = 20;
constexpr std::size_t kSyncedSequenceAt = 24;
constexpr std::size_t kSyncedOffsetAt = 28;
static_assert(kSyncedOffsetAt + 4 == kBatchHeaderSize);
static_assert(kSegmentSizeMax <= UINT32_MAX);

std::uint64_t seed_of(const SegmentHeader& segment, std::uint64_t offset) {
  const std::uint64_t position = (std::uint64_t{segment.id.sequence} << 32) | offset;
  return base::mix64(segment.salt + base::mix64(position));
}
std::uint32_t header_seed(std::uint64_t seed) {
  return static_cast<std::uint32_t>(seed);
}
std::uint32_t body_seed(std::uint64_t seed) {
  return static_cast<std::uint32_t>(seed >> 32);
}

std::uint32_t header_checksum(const SegmentHeader& segment, std::uint64_t offset, ByteView header) {
  return base::crc32c(header.subspan(kBodyChecksumAt, kBatchHeaderSize - kBodyChecksumAt),
                      header_seed(seed_of(segment, offset)));
}

// Whether a header could have been written at `offset` of this segment.
bool makes_sense(const SegmentHeader& segment, std::uint64_t offset, const BatchHeader& header) {
  if (offset + kBatchHeaderSize + header.body_size > segment.segment_size) return false;
  if (header.written_offset < kSegmentHeaderSize || header.written_offset > offset) return false;
  if (header.synced_sequence > segment.id.sequence) return false;
  if (header.synced_sequence == segment.id.sequence && header.synced_offset > offset) return false;
  switch (header.kind) {
    case BatchKind::data:
      return std::uint64_t{header.count} * 2 <= header.body_size &&
             (header.count > 0) == (header.body_size > 0);
    case BatchKind::live:
      return header.count <= kSegmentsMax && header.body_size == header.count * 4;
    case BatchKind::end:
    case BatchKind::seal:
      return header.count == 0 && header.body_size == 0;
  }
  return false;
}

bool kind_known(std::uint8_t kind) {
  return kind >= static_cast<std::uint8_t>(BatchKind::data) &&
         kind <= static_cast<std::uint8_t>(BatchKind::seal);
}

// Takes exactly `digits` decimal digits off the front.
std::optional<std::uint32_t> take_number(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  std::uint32_t number = 0;
  const char* end = text.data() + digits;
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || at != end) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

}  // namespace

std::string_view name_of(LogSyncMode mode) {
  switch (mode) {
    case LogSyncMode::batch:
      return "batch";
    case LogSyncMode::group:
      return "group";
    case LogSyncMode::periodic:
      return "periodic";
  }
  return "unknown";
}

void encode_segment_header(const SegmentHeader& header, base::MutableByteView into) {
  ASSERT(into.size() == kSegmentHeaderSize);
  base::Buffer buffer(kSegmentHeaderUsed);
  base::Encoder out(buffer);
  out.raw(base::as_bytes(kMagic));
  out.u32_le(kVersion);
  out.u32_le(header.id.incarnation);
  out.u32_le(header.core);
  out.u32_le(header.id.sequence);
  out.u64_le(header.log_id);
  out.u64_le(header.salt);
  out.u64_le(header.segment_size);
  out.u32_le(header.alignment);
  out.u32_le(static_cast<std::uint32_t>(header.sync_mode));
  out.u64_le(static_cast<std::uint64_t>(header.created.since_origin().count()));
  ASSERT(buffer.size() == kSegmentHeaderCovered);
  out.u32_le(base::crc32c(buffer.view()));
  std::ranges::fill(std::ranges::copy(buffer.view(), into.begin()).out, into.end(), std::byte{0});
}

Result<SegmentHeader> decode_segment_header(ByteView bytes) {
  if (bytes.size() < kSegmentHeaderUsed) {
    return Error(Errc::corrupt, "{} bytes are too few for a segment's header", bytes.size());
  }
  base::Decoder in(bytes.first(kSegmentHeaderUsed));
  if (!base::equal(in.raw(kMagic.size()), base::as_bytes(kMagic))) {
    return Error(Errc::corrupt, "does not begin with {}", kMagic);
  }
  const std::uint32_t version = in.u32_le();
  // Asked before the version: a flipped bit must not pass for a newer program's file.
  if (base::load_le<std::uint32_t>(bytes.data() + kSegmentHeaderCovered) !=
      base::crc32c(bytes.first(kSegmentHeaderCovered))) {
    return Error(Errc::corrupt, "checksum of the segment's header does not match");
  }
  if (version != kVersion) return base::unsupported_version(version, kVersion);
  SegmentHeader header;
  header.id.incarnation = in.u32_le();
  header.core = in.u32_le();
  header.id.sequence = in.u32_le();
  header.log_id = in.u64_le();
  header.salt = in.u64_le();
  header.segment_size = in.u64_le();
  header.alignment = in.u32_le();
  const std::uint32_t mode = in.u32_le();
  header.created = runtime::WallTime(runtime::Duration(static_cast<std::int64_t>(in.u64_le())));
  in.u32_le();
  TRY_VOID(in.finish());
  header.sync_mode = static_cast<LogSyncMode>(mode);
  if (mode < 1 || mode > 3 || header.core >= kCoresMax || header.id.sequence == 0 ||
      header.segment_size < kSegmentSizeMin || header.segment_size > kSegmentSizeMax ||
      !std::has_single_bit(header.alignment) || header.alignment < kBatchAlignmentBuffered ||
      header.alignment > kBatchAlignmentDirect) {
    return Error(Errc::corrupt, "the segment's header makes no sense");
  }
  return header;
}

std::string segment_file_name(SegmentId id, std::uint32_t core) {
  return fmt::format("commit-{:010}-{:04}-{:010}.log", id.incarnation, core, id.sequence);
}

std::optional<SegmentFileName> parse_segment_file_name(std::string_view name) {
  constexpr std::string_view kPrefix = "commit-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::string_view rest = name.substr(kPrefix.size());
  const auto incarnation = take_number(rest, 10);
  if (!incarnation || !rest.starts_with('-')) return std::nullopt;
  rest.remove_prefix(1);
  const auto core = take_number(rest, 4);
  if (!core || !rest.starts_with('-')) return std::nullopt;
  rest.remove_prefix(1);
  const auto sequence = take_number(rest, 10);
  if (!sequence || rest != ".log") return std::nullopt;
  return SegmentFileName{.id = {*incarnation, *sequence}, .core = *core};
}

void seal_batch(const SegmentHeader& segment, std::uint64_t offset, BatchHeader header,
                base::MutableByteView batch) {
  ASSERT(batch.size() == kBatchHeaderSize + header.body_size);
  const ByteView body = batch.subspan(kBatchHeaderSize);
  header.body_checksum = base::crc32c(body, body_seed(seed_of(segment, offset)));
  ASSERT(makes_sense(segment, offset, header), "batch at {} of segment {}", offset, segment.id);
  std::byte* at = batch.data();
  base::store_le(at + kBodyChecksumAt, header.body_checksum);
  base::store_le(at + kBodySizeAt, header.body_size);
  base::store_le(at + kCountAt, header.count);
  base::store_le(at + kKindAt, static_cast<std::uint32_t>(header.kind));
  base::store_le(at + kWrittenOffsetAt, header.written_offset);
  base::store_le(at + kSyncedSequenceAt, header.synced_sequence);
  base::store_le(at + kSyncedOffsetAt, header.synced_offset);
  base::store_le(at + kHeaderChecksumAt, header_checksum(segment, offset, batch));
}

std::optional<BatchHeader> decode_batch_header(const SegmentHeader& segment, std::uint64_t offset,
                                               ByteView bytes) {
  ASSERT(bytes.size() >= kBatchHeaderSize);
  const std::byte* at = bytes.data();
  // The cheapest question first: a search through a segment asks it millions of times.
  const auto kind = base::load_le<std::uint32_t>(at + kKindAt);
  if (kind > UINT8_MAX || !kind_known(static_cast<std::uint8_t>(kind))) return std::nullopt;
  if (base::load_le<std::uint32_t>(at + kHeaderChecksumAt) !=
      header_checksum(segment, offset, bytes)) {
    return std::nullopt;
  }
  const BatchHeader header{
      .kind = static_cast<BatchKind>(kind),
      .body_size = base::load_le<std::uint32_t>(at + kBodySizeAt),
      .count = base::load_le<std::uint32_t>(at + kCountAt),
      .body_checksum = base::load_le<std::uint32_t>(at + kBodyChecksumAt),
      .written_offset = base::load_le<std::uint32_t>(at + kWrittenOffsetAt),
      .synced_sequence = base::load_le<std::uint32_t>(at + kSyncedSequenceAt),
      .synced_offset = base::load_le<std::uint32_t>(at + kSyncedOffsetAt),
  };
  if (!makes_sense(segment, offset, header)) return std::nullopt;
  return header;
}

bool body_matches(const SegmentHeader& segment, std::uint64_t offset, const BatchHeader& header,
                  ByteView body) {
  return body.size() == header.body_size &&
         base::crc32c(body, body_seed(seed_of(segment, offset))) == header.body_checksum;
}

std::size_t record_frame_size(TableId table, std::size_t record_size) {
  return base::varint_size(table.value()) + base::varint_size(record_size) + record_size;
}

void encode_record(TableId table, ByteView record, base::Buffer& out) {
  base::Encoder encoder(out);
  encoder.varint(table.value());
  encoder.prefixed(record);
}

std::optional<LogRecord> RecordCursor::next() {
  if (left_ == 0 || malformed_) return std::nullopt;
  base::Decoder in(body_.subspan(at_));
  const TableId table{in.varint()};
  const ByteView bytes = in.prefixed();
  if (!in.ok()) {
    malformed_ = true;
    return std::nullopt;
  }
  const LogRecord record{
      .table = table, .position = {position_.segment, position_.offset + at_}, .bytes = bytes};
  at_ += in.offset();
  --left_;
  return record;
}

Result<void> RecordCursor::status() const {
  if (malformed_ || left_ > 0 || at_ != body_.size()) {
    return Error(Errc::corrupt, "malformed record at offset {}", position_.offset + at_);
  }
  return {};
}

void encode_live(std::span<const std::uint32_t> sequences, base::Buffer& out) {
  base::Encoder encoder(out);
  for (const std::uint32_t sequence : sequences) encoder.u32_le(sequence);
}

Result<std::vector<std::uint32_t>> decode_live(ByteView body, std::uint32_t newest) {
  std::vector<std::uint32_t> sequences;
  sequences.reserve(body.size() / 4);
  base::Decoder in(body);
  while (in.remaining() > 0) {
    const std::uint32_t sequence = in.u32_le();
    if (sequence <= (sequences.empty() ? 0 : sequences.back())) in.fail("segments out of order");
    sequences.push_back(sequence);
    if (!in.ok()) break;
  }
  if (in.ok() && (sequences.empty() || sequences.back() != newest)) in.fail("not this segment's");
  TRY_VOID(in.finish());
  return sequences;
}

void LogClaims::add(const BatchHeader& header, std::uint64_t offset) {
  if (std::pair(header.synced_sequence, header.synced_offset) >
      std::pair(synced_sequence, synced_offset)) {
    synced_sequence = header.synced_sequence;
    synced_offset = header.synced_offset;
  }
  written_offset = std::max<std::uint64_t>(written_offset, header.written_offset);
  end = std::max(end, offset + kBatchHeaderSize + header.body_size);
}

void collect_claims(const SegmentHeader& segment, std::uint64_t window_offset, ByteView window,
                    LogClaims& claims) {
  ASSERT(window_offset % segment.alignment == 0);
  for (std::size_t at = 0; at + kBatchHeaderSize <= window.size(); at += segment.alignment) {
    const auto header = decode_batch_header(segment, window_offset + at, window.subspan(at));
    if (header) claims.add(*header, window_offset + at);
  }
}

}  // namespace helenus::storage
