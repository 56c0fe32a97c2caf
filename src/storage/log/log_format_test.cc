// The segment's format: round trips, the golden file, and what damage and misplacement do to it.
#include "storage/log/log_format.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/codec.h"
#include "base/crc32c.h"
#include "storage/log/log_format_test_support.h"

namespace helenus::storage {
namespace {

using base::as_bytes;
using base::Errc;
using testing::SegmentBytes;
using testing::small_segment_header;
using testing::TestRecord;
using testing::walk;
using testing::Walked;

std::string read_test_file(const std::string& name) {
  std::ifstream file(std::string(HELENUS_TESTDATA "/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

SegmentBytes golden_segment() {
  SegmentBytes segment(small_segment_header());
  segment.write_records({{TableId{5}, "first"}, {TableId{300}, "second record"}});
  segment.write_records({{TableId{5}, ""}});
  segment.write_last(BatchKind::seal);
  return segment;
}

std::vector<TestRecord> golden_records() {
  return {{TableId{5}, "first"}, {TableId{300}, "second record"}, {TableId{5}, ""}};
}

std::vector<std::vector<TestRecord>> random_batches() {
  const auto record =
      rc::gen::apply([](std::uint64_t table,
                        std::string bytes) { return TestRecord{TableId{table}, std::move(bytes)}; },
                     rc::gen::arbitrary<std::uint64_t>(), rc::gen::arbitrary<std::string>());
  const auto batch =
      rc::gen::resize(20, rc::gen::nonEmpty(rc::gen::container<std::vector<TestRecord>>(record)));
  return *rc::gen::resize(8, rc::gen::container<std::vector<std::vector<TestRecord>>>(batch));
}

SegmentBytes segment_of(const std::vector<std::vector<TestRecord>>& batches,
                        std::uint32_t alignment) {
  SegmentHeader header = small_segment_header(alignment);
  header.segment_size = 1 << 20;
  SegmentBytes segment(header);
  for (const auto& batch : batches) segment.write_records(batch);
  return segment;
}

TEST(LogFormat, GoldenSegmentOfVersion1DecodesForEver) {
  const std::string file = read_test_file("commit-log-segment-v1");
  ASSERT_EQ(file, golden_segment().bytes());
  const auto header = decode_segment_header(as_bytes(file));
  ASSERT_TRUE(header.has_value()) << header.error().to_string();
  EXPECT_EQ(*header, small_segment_header());
  const Walked walked = walk(*header, file);
  EXPECT_EQ(walked.records, golden_records());
  EXPECT_EQ(walked.kinds,
            (std::vector{BatchKind::live, BatchKind::data, BatchKind::data, BatchKind::seal}));
  EXPECT_EQ(walked.end, file.size());
}

TEST(LogFormat, EveryFlippedBitOfASegmentHeaderIsRefusedOrChangesNothing) {
  const std::string whole = golden_segment().bytes().substr(0, kSegmentHeaderSize);
  for (std::size_t bit = 0; bit < 128 * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const auto header = decode_segment_header(as_bytes(damaged));
    if (header) {
      EXPECT_EQ(*header, small_segment_header()) << "bit " << bit;
    } else {
      EXPECT_EQ(header.error().code(), Errc::corrupt) << "bit " << bit;
    }
    EXPECT_EQ(header.has_value(), bit >= 68 * 8) << "bit " << bit;
  }
}

TEST(LogFormat, EveryTruncationOfASegmentHeaderIsRefused) {
  const std::string whole = golden_segment().bytes();
  for (std::size_t size = 0; size < 68; ++size) {
    EXPECT_TRUE(decode_segment_header(as_bytes(whole).first(size)).failed_with(Errc::corrupt));
  }
}

TEST(LogFormat, ANewerVersionIsNamedAsSuch) {
  std::string newer = golden_segment().bytes().substr(0, kSegmentHeaderSize);
  newer[8] = 2;
  const auto at = reinterpret_cast<std::byte*>(newer.data());
  base::store_le(at + 64, base::crc32c(as_bytes(newer).first(64)));
  EXPECT_TRUE(decode_segment_header(as_bytes(newer)).failed_with(Errc::unsupported));
}

TEST(LogFormat, FileNamesRoundTripAndStrangersAreNotTakenForSegments) {
  const std::string name = segment_file_name({6, 12}, 3);
  EXPECT_EQ(name, "commit-0000000006-0003-0000000012.log");
  const auto parsed = parse_segment_file_name(name);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->id, (SegmentId{6, 12}));
  EXPECT_EQ(parsed->core, 3U);
  for (const char* stranger :
       {"", "commit-", "catalog", "commit-6-3-12.log", "commit-0000000006-0003-0000000012.log.new",
        "commit-0000000006-0003-00000000+2.log", "commit-9999999999-0003-0000000012.log",
        "commit-0000000006 0003-0000000012.log", "scratch-0003-0000000001.log"}) {
    EXPECT_FALSE(parse_segment_file_name(stranger).has_value()) << stranger;
  }
}

RC_GTEST_PROP(LogFormat, RecordsComeBackInOrderWithTheirPositions, ()) {
  const auto batches = random_batches();
  const auto alignment = *rc::gen::element(kBatchAlignmentBuffered, kBatchAlignmentDirect);
  SegmentBytes segment = segment_of(batches, alignment);
  const Walked walked = walk(segment.header(), segment.bytes());
  std::vector<TestRecord> expected;
  for (const auto& batch : batches) expected.insert(expected.end(), batch.begin(), batch.end());
  RC_ASSERT(walked.records == expected);
  RC_ASSERT(walked.end == segment.end());
  RC_ASSERT(std::ranges::is_sorted(walked.positions));
}

// The records of the writes before the one that holds byte `at`, and of those before the end.
std::size_t records_before(const SegmentBytes& segment,
                           const std::vector<std::vector<TestRecord>>& batches, std::uint64_t at) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const std::uint64_t end = i + 1 < batches.size() ? segment.starts()[i + 1] : segment.end();
    if (end > at) break;
    count += batches[i].size();
  }
  return count;
}

RC_GTEST_PROP(LogFormat, ATruncatedSegmentGivesAPrefixOfWholeBatches, ()) {
  const auto batches = random_batches();
  RC_PRE(!batches.empty());
  SegmentBytes segment = segment_of(batches, kBatchAlignmentBuffered);
  const auto all = walk(segment.header(), segment.bytes()).records;
  const auto size = *rc::gen::inRange<std::size_t>(kSegmentHeaderSize, segment.end());
  const auto cut = walk(segment.header(), segment.bytes().substr(0, size)).records;
  RC_ASSERT(cut.size() <= all.size());
  RC_ASSERT(std::equal(cut.begin(), cut.end(), all.begin()));
  // Cutting padding off loses nothing, so at least what lies before is there.
  RC_ASSERT(cut.size() >= records_before(segment, batches, size));
}

RC_GTEST_PROP(LogFormat, AFlippedBitEndsTheWalkAtItsBatchOrIsInPadding, ()) {
  const auto batches = random_batches();
  RC_PRE(!batches.empty());
  SegmentBytes segment = segment_of(batches, kBatchAlignmentBuffered);
  const auto all = walk(segment.header(), segment.bytes()).records;
  const auto at = *rc::gen::inRange<std::size_t>(kSegmentHeaderSize, segment.end());
  std::string damaged = segment.bytes();
  damaged[at] = static_cast<char>(damaged[at] ^ (1 << *rc::gen::inRange(0, 8)));
  const auto got = walk(segment.header(), damaged).records;
  if (got != all) {
    RC_ASSERT(got.size() == records_before(segment, batches, at));
    RC_ASSERT(std::equal(got.begin(), got.end(), all.begin()));
  }
}

// Whether a whole batch at `from` would pass as one at `to` of a segment.
bool passes(const SegmentHeader& header, std::uint64_t to, const std::string& batch) {
  const auto decoded = decode_batch_header(header, to, as_bytes(batch));
  return decoded && body_matches(header, to, *decoded,
                                 as_bytes(batch).subspan(kBatchHeaderSize, decoded->body_size));
}

RC_GTEST_PROP(LogFormat, ABatchNeverPassesWhereItWasNotWritten, (std::uint64_t other_salt)) {
  SegmentBytes segment = segment_of({{{TableId{1}, "moved"}}, {{TableId{2}, "x"}}}, 64);
  const std::uint64_t from = segment.starts()[1];
  const std::string batch = segment.bytes().substr(from, 64);
  RC_ASSERT(passes(segment.header(), from, batch));

  const auto to = 64 * *rc::gen::inRange<std::uint64_t>(64, 16000);
  RC_ASSERT(passes(segment.header(), to, batch) == (to == from));
  SegmentHeader other = segment.header();
  other.salt = other_salt;
  RC_ASSERT(passes(other, from, batch) == (other_salt == segment.header().salt));
  other = segment.header();
  other.id.sequence = *rc::gen::inRange<std::uint32_t>(7, 1000);
  RC_ASSERT(passes(other, from, batch) == (other.id.sequence == 7));
}

TEST(LogFormat, ZerosAreNoBatchAnywhere) {
  const std::string zeros(kBatchHeaderSize, '\0');
  for (std::uint64_t offset = kSegmentHeaderSize; offset < 64 << 10; offset += 64) {
    EXPECT_FALSE(decode_batch_header(small_segment_header(), offset, as_bytes(zeros)).has_value());
  }
}

TEST(LogFormat, ABodyThatIsNotWhatItsHeaderPromisesIsMalformed) {
  base::Buffer body;
  encode_record(TableId{1}, as_bytes("abc"), body);
  for (std::size_t size = 0; size <= body.size(); ++size) {
    RecordCursor cursor(body.view().first(size), 1, {});
    const auto record = cursor.next();
    EXPECT_EQ(record.has_value(), size == body.size());
    EXPECT_EQ(cursor.status().has_value(), size == body.size());
  }
  RecordCursor too_many(body.view(), 2, {});
  while (too_many.next()) continue;
  EXPECT_TRUE(too_many.status().failed_with(Errc::corrupt));
  RecordCursor too_few(body.view(), 0, {});
  EXPECT_FALSE(too_few.next().has_value());
  EXPECT_TRUE(too_few.status().failed_with(Errc::corrupt));
}

TEST(LogFormat, ANoteNamesItsOwnSegmentLastAndInOrder) {
  const auto live = [](std::vector<std::uint32_t> sequences) {
    base::Buffer body;
    encode_live(sequences, body);
    return decode_live(body.view(), 9);
  };
  EXPECT_EQ(live({3, 5, 9}), (std::vector<std::uint32_t>{3, 5, 9}));
  EXPECT_TRUE(live({}).failed_with(Errc::corrupt));
  EXPECT_TRUE(live({3, 5}).failed_with(Errc::corrupt));
  EXPECT_TRUE(live({5, 3, 9}).failed_with(Errc::corrupt));
  EXPECT_TRUE(live({0, 9}).failed_with(Errc::corrupt));
  EXPECT_TRUE(live({9, 9}).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode_live(as_bytes("abc"), 9).failed_with(Errc::corrupt));
}

TEST(LogFormat, ClaimsAreFoundBehindDamage) {
  SegmentBytes segment =
      segment_of({{{TableId{1}, "one"}}, {{TableId{1}, "two"}}, {{TableId{1}, "three"}}}, 64);
  const std::uint64_t second = segment.starts()[1];
  const std::uint64_t third = segment.starts()[2];
  segment.bytes()[second] ^= 1;
  LogClaims claims;
  collect_claims(segment.header(), second, as_bytes(segment.bytes()).subspan(second), claims);
  EXPECT_EQ(claims.synced_sequence, 7U);
  EXPECT_EQ(claims.synced_offset, third);
  EXPECT_EQ(claims.written_offset, third);
  EXPECT_EQ(claims.end, third + kBatchHeaderSize + record_frame_size(TableId{1}, 5));
}

}  // namespace
}  // namespace helenus::storage
