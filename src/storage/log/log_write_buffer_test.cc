// LogWriteBuffer: what is laid out is what a reader finds, at the positions that were given out.
#include "storage/log/log_write_buffer.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "storage/log/log_format_test_support.h"

namespace helenus::storage {
namespace {

using base::as_bytes;
using testing::small_segment_header;
using testing::walk;

TEST(LogWriteBuffer, PositionsGivenOutAreWhereRecordsLie) {
  for (const std::uint32_t alignment : {kBatchAlignmentBuffered, kBatchAlignmentDirect}) {
    const SegmentHeader header = small_segment_header(alignment);
    LogWriteBuffer buffer(64);
    buffer.open_piece(header, kSegmentHeaderSize);
    buffer.add_live(std::vector<std::uint32_t>{2, 7});
    std::vector<std::uint64_t> offsets;
    for (const char* text : {"a", "bb", "ccc"}) {
      EXPECT_GE(buffer.end_with(record_frame_size(TableId{9}, std::string(text).size())),
                buffer.end_offset());
      offsets.push_back(buffer.add_record(TableId{9}, as_bytes(text)));
    }
    const std::uint64_t end = buffer.end_offset();
    EXPECT_EQ(buffer.record_count(), 3U);
    buffer.finish({.sequence = 7, .offset = 0});
    ASSERT_EQ(buffer.pieces().size(), 1U);
    const auto& piece = buffer.pieces()[0];
    EXPECT_EQ(piece.file_end(), end);
    EXPECT_EQ(end % alignment, 0U);
    EXPECT_TRUE(piece.holds_content);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.bytes_of(piece).data()) % alignment, 0U);

    const std::string bytes =
        std::string(kSegmentHeaderSize, '\0') + std::string(base::as_text(buffer.bytes_of(piece)));
    const auto walked = walk(header, bytes);
    ASSERT_EQ(walked.records.size(), 3U);
    EXPECT_EQ(walked.records[2].second, "ccc");
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(walked.positions[i].offset, offsets[i]);
    EXPECT_EQ(walked.kinds, (std::vector{BatchKind::live, BatchKind::data}));
  }
}

TEST(LogWriteBuffer, AChangeOfSegmentsMakesTwoPieces) {
  const SegmentHeader old_segment = small_segment_header(kBatchAlignmentDirect);
  SegmentHeader new_segment = old_segment;
  new_segment.id.sequence = 8;
  new_segment.salt = 77;
  LogWriteBuffer buffer(64);
  buffer.open_piece(old_segment, 8192);
  buffer.add_record(TableId{1}, as_bytes("old"));
  buffer.close_segment(BatchKind::end);
  EXPECT_FALSE(buffer.piece_open());
  buffer.open_piece(new_segment, kSegmentHeaderSize);
  buffer.add_live(std::vector<std::uint32_t>{7, 8});
  buffer.add_record(TableId{1}, as_bytes("new"));
  buffer.finish({.sequence = 7, .offset = 8192});

  ASSERT_EQ(buffer.pieces().size(), 2U);
  EXPECT_TRUE(buffer.pieces()[0].ends_segment);
  EXPECT_FALSE(buffer.pieces()[1].ends_segment);
  const auto text = [&](std::size_t piece) {
    return std::string(base::as_text(buffer.bytes_of(buffer.pieces()[piece])));
  };
  // The walk begins at the header's end: what lies before is not looked at.
  const auto first = decode_batch_header(old_segment, 8192, as_bytes(text(0)));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->written_offset, 8192U);
  EXPECT_EQ(first->synced_offset, 8192U);
  const auto second = walk(new_segment, std::string(kSegmentHeaderSize, '\0') + text(1));
  ASSERT_EQ(second.records.size(), 1U);
  EXPECT_EQ(second.records[0].second, "new");
}

TEST(LogWriteBuffer, ABatchOfClaimsHoldsNothingThatMustBeDurable) {
  LogWriteBuffer buffer(64);
  buffer.open_piece(small_segment_header(), 8192);
  buffer.add_claims();
  buffer.finish({.sequence = 7, .offset = 8000});
  ASSERT_EQ(buffer.pieces().size(), 1U);
  EXPECT_FALSE(buffer.pieces()[0].holds_content);
  const auto header =
      decode_batch_header(small_segment_header(), 8192, buffer.bytes_of(buffer.pieces()[0]));
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->kind, BatchKind::data);
  EXPECT_EQ(header->count, 0U);
  EXPECT_EQ(header->synced_offset, 8000U);
}

TEST(LogWriteBuffer, ClearedMemoryIsUsedAgainAndShrinksAfterABurst) {
  LogWriteBuffer buffer(4096);
  const auto fill = [&](std::size_t size) {
    SegmentHeader header = small_segment_header();
    header.segment_size = 1 << 20;
    buffer.open_piece(header, kSegmentHeaderSize);
    buffer.add_record(TableId{1}, as_bytes(std::string(size, 'x')));
    buffer.finish({.sequence = 7, .offset = 0});
    const std::byte* memory = buffer.bytes_of(buffer.pieces()[0]).data();
    buffer.clear();
    EXPECT_TRUE(buffer.empty());
    EXPECT_EQ(buffer.size(), 0U);
    return memory;
  };
  const std::byte* memory = fill(100);
  EXPECT_EQ(fill(100), memory);
  EXPECT_EQ(fill(2000), memory);
  const std::byte* large = fill(100000);
  EXPECT_NE(large, memory);
  // The first small use after the burst gives the large memory back.
  EXPECT_EQ(fill(100), large);
  const std::byte* small = fill(100);
  EXPECT_EQ(fill(100), small);
}

}  // namespace
}  // namespace helenus::storage
