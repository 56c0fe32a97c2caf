// The bytes of frames: golden, there and back, damaged, in pieces.
#include "rpc/frame.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/codec.h"
#include "base/crc32c.h"
#include "base/prng.h"
#include "rpc/frame_test_support.h"

namespace helenus::rpc {
namespace {

using base::Bytes;
using base::ByteView;
using base::Errc;
using model::NodeId;
using runtime::Address;

NodeId node_with(std::uint8_t number) {
  base::Uuid::Octets octets{};
  octets.back() = std::byte{number};
  return NodeId(base::Uuid(octets));
}

const VersionRange kOneToTwo{.oldest = ProtocolVersion(1), .newest = ProtocolVersion(2)};

Hello a_hello() {
  return {.versions = kVersions,
          .cluster = "troy",
          .from = node_with(1),
          .life = 0x0807060504030201,
          .to = node_with(2),
          .lane = Lane::data,
          .address = Address::v4({10, 0, 0, 1}, 7000),
          .body_size_max = 16 << 20};
}

std::vector<Frame> one_of_each() {
  return {a_hello(),
          Hello{.versions = kOneToTwo,
                .cluster = std::string(kClusterNameSizeMax, 'c'),
                .from = node_with(3),
                .life = 0,
                .to = {},
                .lane = Lane::control,
                .address = Address::v6({0xfd, 0, 1}, 1),
                .body_size_max = 100,
                .nonce = Nonce{std::byte{7}}},
          Welcome{.version = ProtocolVersion(2),
                  .node = node_with(2),
                  .body_size_max = 1 << 20,
                  .clock_us = 1'000'000},
          Refusal{.reason = RefusalReason::other_cluster,
                  .versions = kOneToTwo,
                  .text = "this is a node of the cluster 'b', not of 'a'"},
          Request{.id = 300,
                  .verb = 2,
                  .remaining_us = 1'500'000,
                  .begun_by_us = 61'500'000,
                  .payload = Bytes::copy_of("question")},
          Answer{.id = 300, .payload = Bytes::copy_of("answer")},
          Failure{.id = 301, .code = Errc::overloaded, .text = "too much"},
          OneWay{.verb = 1, .payload = Bytes::copy_of("news")},
          Cancel{.id = 300},
          Ping{.number = 7},
          Pong{.number = 7, .clock_us = 60'000'000},
          Goodbye(),
          Challenge{.nonce = {std::byte{1}, std::byte{2}}},
          Proof{.proof = {std::byte{3}}}};
}

Bytes bytes_of(const std::vector<Frame>& frames) {
  FrameBatch batch;
  base::Buffer all;
  for (const Frame& frame : frames) {
    batch.add(frame);
    for (const Bytes& piece : batch.take()) all.append(piece);
  }
  return std::move(all).freeze();
}

// Gives the reader the bytes in pieces of at most that size, and collects what it cuts.
base::Result<std::vector<Frame>> read_all(FrameReader& reader, ByteView bytes, std::size_t piece) {
  std::vector<Frame> frames;
  for (;;) {
    TRY(const std::optional<Bytes> body, reader.next());
    if (body) {
      TRY(Frame frame, decode_body(*body));
      frames.push_back(std::move(frame));
      continue;
    }
    if (bytes.empty()) return frames;
    const base::MutableByteView room = reader.room();
    const std::size_t size = std::min({piece, bytes.size(), room.size()});
    std::ranges::copy(bytes.first(size), room.begin());
    reader.commit(size);
    bytes = bytes.subspan(size);
  }
}

base::Result<std::vector<Frame>> read_all(ByteView bytes) {
  FrameReader reader(kFrameBodySizeMaxDefault);
  return read_all(reader, bytes, SIZE_MAX);
}

TEST(Frame, BytesAreAsDocumented) {
  const auto hex = [](const Frame& frame) { return base::to_hex(bytes_of({frame})); };
  EXPECT_EQ(hex(a_hello()),
            "42000000bffd7894c131e02e"
            "00484c4e5301010474726f79000000000000000000000000000000010102030405060708"
            "010000000000000000000000000000000201040a000001581b8080800800");
  EXPECT_EQ(hex(Welcome{.version = ProtocolVersion(1),
                        .node = node_with(2),
                        .body_size_max = 4096,
                        .clock_us = 60'000'000}),
            "1c0000004330b4a33da20677"
            "01484c4e5301000000000000000000000000000000028020808ece1c");
  EXPECT_EQ(hex(Request{.id = 300,
                        .verb = 2,
                        .remaining_us = 1'500'000,
                        .begun_by_us = 61'500'000,
                        .payload = Bytes::copy_of("question")}),
            "130000005a458aa5428c29f203ac0202e0c65be0d4a91d7175657374696f6e");
  EXPECT_EQ(hex(Failure{.id = 300, .code = Errc::overloaded, .text = "too much"}),
            "0d000000dc2f93fafe79befe05ac020308746f6f206d756368");
}

TEST(Frame, ComesBackAsItWas) {
  const std::vector<Frame> frames = one_of_each();
  const Bytes bytes = bytes_of(frames);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{100}, SIZE_MAX}) {
    FrameReader reader(kFrameBodySizeMaxDefault);
    const auto read = read_all(reader, bytes, piece);
    ASSERT_TRUE(read.has_value()) << read.error().to_string();
    EXPECT_EQ(*read, frames);
    EXPECT_TRUE(reader.at_boundary());
  }
}

TEST(Frame, AHandshakeOfALaterReleaseIsUnderstood) {
  for (const Frame& frame :
       {Frame(a_hello()),
        Frame(
            Welcome{.version = ProtocolVersion(2), .node = node_with(2), .body_size_max = 1 << 20}),
        Frame(Refusal{.reason = static_cast<RefusalReason>(99),
                      .versions = kOneToTwo,
                      .text = "a reason that we do not know yet"})}) {
    base::Buffer longer;
    longer.append(bytes_of({frame}).slice(kFrameHeadSize));
    longer.append("and a field that we do not know yet");
    EXPECT_EQ(decode_body(std::move(longer).freeze()), frame);
  }
}

TEST(Frame, LargeAndSmallPayloadsTravelTogether) {
  base::Prng random(1);
  std::vector<Frame> frames;
  for (std::uint64_t id = 1; id < 50; ++id) {
    const std::size_t size = random.chance(0.3) ? random.below(200'000) : random.below(100);
    frames.emplace_back(Answer{.id = id, .payload = Bytes::copy_of(std::string(size, 'a'))});
  }
  FrameBatch batch;
  std::vector<Frame> written;
  base::Buffer all;
  for (const Frame& frame : frames) {
    batch.add(frame);
    if (!batch.full()) continue;
    const auto pieces = batch.take();
    EXPECT_LE(pieces.size(), 2 * FrameBatch::kPiecesMax);
    for (const Bytes& piece : pieces) all.append(piece);
    EXPECT_TRUE(batch.empty());
  }
  for (const Bytes& piece : batch.take()) all.append(piece);
  FrameReader reader(kFrameBodySizeMaxDefault);
  const auto read = read_all(reader, all.view(), 1000);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(*read, frames);
}

TEST(Frame, EveryFlippedBitIsNoticed) {
  const Bytes bytes = bytes_of({Request{.id = 1, .verb = 2, .payload = Bytes::copy_of("abc")}});
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    base::Buffer damaged;
    damaged.append(bytes);
    damaged.mutable_view()[bit / 8] ^= std::byte(1U << (bit % 8));
    EXPECT_TRUE(read_all(damaged.view()).failed_with(Errc::corrupt)) << bit;
  }
}

TEST(Frame, APartOfAFrameIsWaitedFor) {
  const Bytes bytes = bytes_of(one_of_each());
  const Bytes last = bytes_of({Goodbye()});
  for (std::size_t size = 1; size < last.size(); ++size) {
    FrameReader reader(kFrameBodySizeMaxDefault);
    const auto read = read_all(reader, bytes.view().first(bytes.size() - size), SIZE_MAX);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->size(), one_of_each().size() - 1);
    EXPECT_FALSE(reader.at_boundary());
  }
}

TEST(Frame, AFrameThatIsTooLargeIsKnownByItsHead) {
  FrameReader reader(1000);
  const auto read = read_all(reader, head_of_frame(1001, 0), SIZE_MAX);
  EXPECT_EQ(read.error().to_string(), "corrupt: a frame of 1001 bytes, where 1000 are the most");
  EXPECT_TRUE(read_all(head_of_frame(0, 0)).failed_with(Errc::corrupt));
  EXPECT_TRUE(read_all(base::as_bytes("GET / HTTP/1.1\r\n\r\n")).failed_with(Errc::corrupt));
}

TEST(Frame, MemoryGrowsWithWhatComesAndNotWithWhatIsPromised) {
  FrameReader reader(kFrameBodySizeMaxDefault);
  const auto read = read_all(reader, head_of_frame(kFrameBodySizeMaxDefault, 0), SIZE_MAX);
  ASSERT_TRUE(read.has_value());
  EXPECT_LE(reader.room().size(), 2 * FrameReader::kInputSizeMin);
}

TEST(Frame, BodiesThatNobodyWritesAreRefused) {
  const auto refused = [](std::vector<unsigned> octets) {
    base::Buffer body;
    for (const unsigned octet : octets) body.push_back(std::byte(octet));
    return decode_body(std::move(body).freeze()).failed_with(Errc::corrupt);
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({11}));                      // no such kind
  EXPECT_TRUE(refused({10, 0}));                   // a goodbye with something behind it
  EXPECT_TRUE(refused({8, 1, 1}));                 // a ping likewise
  EXPECT_TRUE(refused({7}));                       // a cancel of nothing
  EXPECT_TRUE(refused({3, 1, 0x80, 0x80, 4, 0}));  // a verb above 65535
  EXPECT_TRUE(refused({3, 1, 1, 0x80, 0}));        // a number in a longer form than it needs
  EXPECT_TRUE(refused({0, 'H', 'T', 'T', 'P'}));
  EXPECT_TRUE(refused({5, 1, 3, 5, 'a'}));  // a text that ends early
}

TEST(Frame, AHelloWithAFieldOutOfRangeIsRefused) {
  const Bytes sound = bytes_of({a_hello()}).slice(kFrameHeadSize);
  const auto with = [&](std::size_t at, unsigned octet) {
    base::Buffer body;
    body.append(sound);
    body.mutable_view()[at] = std::byte(octet);
    return decode_body(std::move(body).freeze());
  };
  ASSERT_TRUE(decode_body(sound).has_value());
  EXPECT_FALSE(with(5, 0).has_value());   // the oldest version is 0
  EXPECT_FALSE(with(5, 3).has_value());   // and newer than the newest
  EXPECT_FALSE(with(7, 0).has_value());   // a cluster without a name
  EXPECT_FALSE(with(36, 2).has_value());  // neither with nor without a node
  EXPECT_FALSE(with(53, 2).has_value());  // no such lane
  EXPECT_FALSE(with(54, 5).has_value());  // an address of five bytes
  for (std::size_t size = 1; size < sound.size(); ++size) {
    EXPECT_FALSE(decode_body(sound.slice(0, size)).has_value()) << size;
  }
}

TEST(Version, TheLowerOfTheNewestIsSpoken) {
  const auto range = [](std::uint16_t oldest, std::uint16_t newest) {
    return VersionRange{.oldest = ProtocolVersion(oldest), .newest = ProtocolVersion(newest)};
  };
  EXPECT_EQ(common_version(range(1, 2), range(1, 1)), ProtocolVersion(1));
  EXPECT_EQ(common_version(range(1, 2), range(2, 3)), ProtocolVersion(2));
  EXPECT_EQ(common_version(range(3, 4), range(1, 9)), ProtocolVersion(4));
  EXPECT_EQ(common_version(range(3, 4), range(1, 2)), std::nullopt);
  EXPECT_EQ(common_version(range(1, 2), range(3, 4)), std::nullopt);
}

}  // namespace
}  // namespace helenus::rpc
