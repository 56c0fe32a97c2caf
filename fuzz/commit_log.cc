// Fuzzes the readers of the commit log's files. The first byte chooses what the others are:
//
//   0 a segment's header, 1 a catalog: each gets a right checksum first, since guessing one is not
//     what is tested. What decodes must encode to the very bytes it came from
//   2 the body of a data batch, 3 of a live one: what decodes must lie inside the body, in order,
//   and
//     encode to it
//   4 batches as they lie in a segment: nothing but what was sealed may pass
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/codec.h"
#include "base/crc32c.h"
#include "storage/log/log_catalog.h"
#include "storage/log/log_format.h"

namespace helenus::storage {
namespace {

using base::ByteView;

constexpr SegmentHeader kSegment{.id = {3, 7},
                                 .core = 1,
                                 .log_id = 17,
                                 .salt = 0x0123456789abcdef,
                                 .segment_size = kSegmentSizeMin,
                                 .alignment = kBatchAlignmentBuffered,
                                 .sync_mode = LogSyncMode::batch,
                                 .created = {}};

void check_segment_header(ByteView input) {
  constexpr std::size_t kCovered = 64;
  base::Buffer block(kSegmentHeaderSize);
  const auto bytes = block.extend(kSegmentHeaderSize);
  std::ranges::fill(bytes, std::byte{0});
  std::ranges::copy(input.first(std::min(input.size(), kCovered)), bytes.begin());
  base::store_le(bytes.data() + kCovered, base::crc32c(block.view().first(kCovered)));
  const auto header = decode_segment_header(block.view());
  if (!header) return;
  base::Buffer again(kSegmentHeaderSize);
  encode_segment_header(*header, again.extend(kSegmentHeaderSize));
  ASSERT(base::equal(again.view(), block.view()));
}

void check_catalog(ByteView input) {
  base::Buffer bytes;
  bytes.append(input);
  base::Encoder(bytes).u32_le(base::crc32c(input));
  const auto catalog = decode_log_catalog(bytes.view());
  if (catalog) ASSERT(base::equal(encode(*catalog), bytes.view()));
}

// The body as a sealed batch of that kind, if it may be one.
void check_body(ByteView body, BatchKind kind, std::uint32_t count) {
  BatchHeader header{.kind = kind,
                     .body_size = static_cast<std::uint32_t>(body.size()),
                     .count = count,
                     .written_offset = kSegmentHeaderSize,
                     .synced_sequence = kSegment.id.sequence,
                     .synced_offset = kSegmentHeaderSize};
  base::Buffer batch;
  batch.extend(kBatchHeaderSize);
  batch.append(body);
  seal_batch(kSegment, kSegmentHeaderSize, header, batch.mutable_view());
  const auto decoded = decode_batch_header(kSegment, kSegmentHeaderSize, batch.view());
  ASSERT(decoded && body_matches(kSegment, kSegmentHeaderSize, *decoded, body));
  ASSERT(decoded->kind == kind && decoded->count == count);
}

void check_records(ByteView body, std::uint32_t count) {
  if ((count > 0) != !body.empty() || std::uint64_t{count} * 2 > body.size()) return;
  check_body(body, BatchKind::data, count);
  RecordCursor cursor(body, count, {kSegment.id, 100});
  base::Buffer again;
  while (const auto record = cursor.next()) {
    ASSERT(record->position.offset == 100 + again.size());
    ASSERT(record->bytes.empty() ||
           (record->bytes.data() >= body.data() &&
            record->bytes.data() + record->bytes.size() <= body.data() + body.size()));
    encode_record(record->table, record->bytes, again);
  }
  ASSERT(again.size() <= body.size() && base::equal(again.view(), body.first(again.size())));
  if (cursor.status()) ASSERT(again.size() == body.size());
}

void check_live(ByteView body) {
  const auto live = decode_live(body, kSegment.id.sequence);
  if (!live) return;
  base::Buffer again;
  encode_live(*live, again);
  ASSERT(base::equal(again.view(), body));
  if (live->size() <= kSegmentsMax) {
    check_body(body, BatchKind::live, static_cast<std::uint32_t>(live->size()));
  }
}

void check_batches(ByteView area) {
  LogClaims claims;
  collect_claims(kSegment, kSegmentHeaderSize, area, claims);
  std::uint64_t at = 0;
  while (at + kBatchHeaderSize <= area.size()) {
    const std::uint64_t offset = kSegmentHeaderSize + at;
    const auto header = decode_batch_header(kSegment, offset, area.subspan(at));
    if (!header) break;
    ASSERT(claims.end >= offset + kBatchHeaderSize + header->body_size);
    ASSERT(offset + kBatchHeaderSize + header->body_size <= kSegment.segment_size);
    at += batch_footprint(header->body_size, kSegment.alignment);
  }
}

}  // namespace
}  // namespace helenus::storage

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus::storage;
  if (size < 2) return 0;
  const helenus::base::ByteView input = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 5) {
    case 0:
      check_segment_header(input);
      break;
    case 1:
      check_catalog(input);
      break;
    case 2:
      check_records(input.subspan(1), data[1]);
      break;
    case 3:
      check_live(input);
      break;
    default:
      check_batches(input);
  }
  return 0;
}
