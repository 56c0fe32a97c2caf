#include "cql/protocol/segment.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cql/protocol/protocol_test_support.h"

namespace helenus::cql::protocol {
namespace {

using base::Bytes;
using base::Errc;

// The payloads, one behind the other; the error if there is one.
base::Result<std::string> read_all(base::ByteView bytes, Compression compression,
                                   std::size_t piece) {
  SegmentReader reader(compression);
  std::string all;
  while (!bytes.empty()) {
    const auto room = reader.room();
    const std::size_t count = std::min({piece, room.size(), bytes.size()});
    std::memcpy(room.data(), bytes.data(), count);
    reader.commit(count);
    bytes = bytes.subspan(count);
    while (true) {
      TRY(const auto payload, reader.next());
      if (!payload) break;
      all += payload->text();
    }
  }
  EXPECT_EQ(reader.size_held(), 0U);
  return all;
}

Bytes segments_of(std::string_view frame, Compression compression) {
  base::Buffer out;
  append_segments(base::as_bytes(frame), compression, out);
  return std::move(out).freeze();
}

// As the drivers make them.
TEST(Segment, HasTheBytesOfTheProtocol) {
  EXPECT_EQ(segments_of("", Compression::none).size(), 10U);
  const Bytes sent = segments_of("abc", Compression::none);
  EXPECT_EQ(base::to_hex(sent.view()), "03000242967c616263087a36c5");
  EXPECT_EQ(sent.size(), 6U + 3 + 4);
  EXPECT_EQ(base::to_hex(sent.view().first(3)), "030002");
  EXPECT_EQ(base::to_hex(segments_of("abc", Compression::lz4).view().first(5)), "0300000004");
  EXPECT_EQ(crc24(0, 0), 0x875060U);
}

TEST(Segment, CarriesFramesOfAnySizeHoweverTheyArrive) {
  for (const Compression compression : {Compression::none, Compression::lz4}) {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{600}, kSegmentPayloadMax,
          kSegmentPayloadMax + 1, 3 * kSegmentPayloadMax + 7}) {
      std::string frame(size, 'x');
      for (std::size_t i = 0; i < size; i += 7) frame[i] = static_cast<char>(i * 31 % 251);
      const Bytes sent = segments_of(frame, compression);
      for (const std::size_t piece : {std::size_t{997}, std::size_t{65536}, SIZE_MAX}) {
        EXPECT_EQ(*read_all(sent, compression, piece), frame) << size << " " << piece;
      }
    }
  }
}

TEST(Segment, CompressesWhatGetsSmaller) {
  EXPECT_LT(segments_of(std::string(10'000, 'x'), Compression::lz4).size(), 200U);
  EXPECT_EQ(segments_of(std::string(100, 'x'), Compression::lz4).size(), 8U + 100 + 4);
}

RC_GTEST_PROP(Segment, AnyBitThatIsWrongIsNoticed, ()) {
  const auto compression = *rc::gen::element(Compression::none, Compression::lz4);
  const std::string frame = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  const Bytes sent = segments_of(frame, compression);
  base::Buffer damaged;
  damaged.append(sent.view());
  const auto bit = *rc::gen::inRange<std::size_t>(0, sent.size() * 8);
  damaged.data()[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  SegmentReader reader(compression);
  const auto room = reader.room();
  RC_PRE(damaged.size() <= room.size());
  std::memcpy(room.data(), damaged.data(), damaged.size());
  reader.commit(damaged.size());
  RC_ASSERT(reader.next().failed_with(Errc::corrupt));
}

TEST(Segment, APayloadThatDoesNotDecompressIsCorrupt) {
  // One byte that says it were a thousand.
  base::Buffer out;
  const std::uint64_t header = 1 | std::uint64_t{1000} << 17 | std::uint64_t{1} << 34;
  for (std::size_t i = 0; i < 5; ++i) out.push_back(static_cast<std::byte>(header >> (8 * i)));
  const std::uint32_t check = crc24(header, 5);
  for (std::size_t i = 0; i < 3; ++i) out.push_back(static_cast<std::byte>(check >> (8 * i)));
  out.push_back(std::byte{0xff});
  const std::uint32_t sum = segment_crc32(out.view().last(1));
  for (std::size_t i = 0; i < 4; ++i) out.push_back(static_cast<std::byte>(sum >> (8 * i)));
  EXPECT_TRUE(read_all(out.view(), Compression::lz4, SIZE_MAX).failed_with(Errc::corrupt));
}

}  // namespace
}  // namespace helenus::cql::protocol
