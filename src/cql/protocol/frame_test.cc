#include "cql/protocol/frame.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"
#include "cql/protocol/protocol_test_support.h"

namespace helenus::cql::protocol {
namespace {

using base::Bytes;
using base::Errc;

void append_frame(base::Buffer& out, std::int16_t stream, Opcode opcode, std::string_view body) {
  FrameWriter frame(out, {.direction = *direction_of(static_cast<std::uint8_t>(opcode)),
                          .stream = stream,
                          .opcode = opcode});
  frame.body().raw(base::as_bytes(body));
  frame.finish();
}

Bytes frame_of(std::int16_t stream, Opcode opcode, std::string_view body) {
  base::Buffer out;
  append_frame(out, stream, opcode, body);
  return std::move(out).freeze();
}

FrameRefusal refusal_of(std::string_view hex) {
  FrameReader reader(Direction::request);
  const auto steps = steps_of(reader, from_hex(hex), SIZE_MAX);
  EXPECT_EQ(steps.size(), 1U);
  return steps.empty() ? FrameRefusal() : std::get<FrameRefusal>(steps[0]);
}

TEST(FrameWriter, WritesTheHeaderOfTheProtocol) {
  EXPECT_EQ(frame_of(0x0102, Opcode::query, "abc"), from_hex("04 00 0102 07 00000003 616263"));
  EXPECT_EQ(frame_of(-1, Opcode::event, ""), from_hex("84 00 ffff 0c 00000000"));
}

TEST(FrameReader, CutsFramesHoweverTheyArrive) {
  const std::string large(200'000, 'x');  // more than any input buffer holds
  base::Buffer sent;
  append_frame(sent, 1, Opcode::options, "");
  append_frame(sent, 2, Opcode::query, "hello");
  append_frame(sent, 3, Opcode::batch, large);
  append_frame(sent, 4, Opcode::execute, large.substr(0, 5000));
  append_frame(sent, 5, Opcode::options, "");
  for (const std::size_t piece : {1UL, 2UL, 7UL, 9UL, 10UL, 4096UL, 65536UL, SIZE_MAX}) {
    FrameReader reader(Direction::request);
    const auto steps = steps_of(reader, sent.view(), piece);
    ASSERT_EQ(steps.size(), 5U) << piece;
    std::vector<std::int16_t> streams;
    for (const auto& step : steps) streams.push_back(std::get<Frame>(step).header.stream);
    EXPECT_EQ(streams, (std::vector<std::int16_t>{1, 2, 3, 4, 5}));
    EXPECT_EQ(std::get<Frame>(steps[1]).body.text(), "hello");
    EXPECT_EQ(std::get<Frame>(steps[2]).body.text(), large);
    EXPECT_EQ(std::get<Frame>(steps[3]).body.size(), 5000U);
    EXPECT_TRUE(reader.at_boundary());
  }
}

RC_GTEST_PROP(FrameReader, GivesWhatWasWritten, ()) {
  const auto bodies =
      *rc::gen::container<std::vector<std::string>>(rc::gen::arbitrary<std::string>());
  const auto piece = *rc::gen::inRange<std::size_t>(1, 64);
  base::Buffer sent;
  for (const std::string& body : bodies) append_frame(sent, 7, Opcode::query, body);
  FrameReader reader(Direction::request);
  const auto steps = steps_of(reader, sent.view(), piece);
  RC_ASSERT(steps.size() == bodies.size());
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    RC_ASSERT(std::get<Frame>(steps[i]).body.text() == bodies[i]);
  }
  RC_ASSERT(reader.at_boundary());
}

TEST(FrameReader, AnnouncesAFrameBeforeItsBodyIsThere) {
  FrameReader reader(Direction::request);
  reader.feed(from_hex("04 00 0005 07 00000003 61"));
  const auto step = reader.next();
  ASSERT_TRUE(std::holds_alternative<FrameHeader>(step));
  EXPECT_EQ(std::get<FrameHeader>(step).body_size, 3U);
  EXPECT_TRUE(std::holds_alternative<FrameReader::NeedBytes>(reader.next()));
  EXPECT_FALSE(reader.at_boundary());
  reader.feed(from_hex("62 63"));
  EXPECT_EQ(std::get<Frame>(reader.next()).body.text(), "abc");
}

TEST(FrameReader, SkipsABodyWhenTold) {
  FrameReader reader(Direction::request);
  reader.feed(from_hex("04 00 0005 07 00000003 61"));
  ASSERT_TRUE(std::holds_alternative<FrameHeader>(reader.next()));
  reader.skip_body();
  EXPECT_TRUE(std::holds_alternative<FrameReader::NeedBytes>(reader.next()));
  const auto steps = steps_of(reader, from_hex("62 63 04 00 0006 05 00000000"), SIZE_MAX);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(std::get<Frame>(steps[0]).header.stream, 6);
}

TEST(FrameReader, SkipsTheRestOfABodyThatHasBegun) {
  for (const std::size_t body_size : {100UL, 5000UL, 100'000UL}) {
    const Bytes whole = frame_of(1, Opcode::query, std::string(body_size, 'x'));
    FrameReader reader(Direction::request);
    EXPECT_TRUE(steps_of(reader, whole.slice(0, body_size / 2), 1000).empty());
    EXPECT_TRUE(reader.in_body());
    reader.skip_body();
    EXPECT_FALSE(reader.in_body());
    EXPECT_TRUE(steps_of(reader, whole.slice(body_size / 2), 1000).empty());
    EXPECT_TRUE(reader.at_boundary());
    EXPECT_EQ(steps_of(reader, frame_of(2, Opcode::options, ""), 1000).size(), 1U);
  }
}

TEST(FrameReader, RefusesALargeBodyOnItsStreamAndGoesOn) {
  base::Buffer sent;
  append_frame(sent, 9, Opcode::query, std::string(1001, 'x'));
  append_frame(sent, 10, Opcode::query, std::string(1000, 'y'));
  for (const std::size_t piece : {1UL, 100UL, SIZE_MAX}) {
    FrameReader reader(Direction::request, 1000);
    const auto steps = steps_of(reader, sent.view(), piece);
    ASSERT_EQ(steps.size(), 2U);
    EXPECT_EQ(std::get<FrameRefusal>(steps[0]),
              (FrameRefusal{.stream = 9,
                            .code = ErrorCode::invalid,
                            .message = "Request is too big: length 1001 exceeds maximum allowed "
                                       "length 1000.",
                            .fatal = false}));
    EXPECT_EQ(std::get<Frame>(steps[1]).header.stream, 10);
  }
}

TEST(FrameReader, RefusesEveryOtherVersionInTheWordsDriversKnow) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const unsigned version = byte & 0x7f;
    if (version == 4 || version == 5) continue;
    base::Buffer sent;
    sent.push_back(static_cast<std::byte>(byte));
    sent.append(from_hex("00 0007 05 00000000"));
    FrameReader reader(Direction::request);
    const auto steps = steps_of(reader, sent.view(), SIZE_MAX);
    ASSERT_EQ(steps.size(), 1U) << byte;
    const auto& refusal = std::get<FrameRefusal>(steps[0]);
    EXPECT_EQ(refusal.code, ErrorCode::protocol_error);
    EXPECT_EQ(refusal.message,
              fmt::format("Invalid or unsupported protocol version ({}); supported versions are "
                          "(4/v4, 5/v5)",
                          version));
    EXPECT_TRUE(refusal.fatal);
    // Versions 1 and 2 have a stream of one byte: the first of the two here.
    EXPECT_EQ(refusal.stream, version <= 2 ? 0 : 7) << byte;
  }
}

TEST(FrameReader, AnswersOnTheStreamOfTheOldestVersions) {
  EXPECT_EQ(refusal_of("01 00 05 05 00000000").stream, 5);
  EXPECT_EQ(refusal_of("02 00 fe 05 00000000").stream, -2);
}

TEST(FrameReader, TakesTextForAVersionItDoesNotKnow) {
  EXPECT_TRUE(refusal_of("474554202f20485454502f312e31").message.contains("version (71)"));
}

TEST(FrameReader, HearsNothingAfterAFatalRefusal) {
  FrameReader reader(Direction::request);
  EXPECT_EQ(steps_of(reader, from_hex("06 00 0000 05 00000000"), SIZE_MAX).size(), 1U);
  EXPECT_TRUE(steps_of(reader, from_hex("04 00 0000 05 00000000"), SIZE_MAX).empty());
  EXPECT_TRUE(steps_of(reader, Bytes::copy_of(std::string(300'000, 'x')), SIZE_MAX).empty());
}

TEST(FrameReader, RefusesImpossibleSizes) {
  const FrameRefusal negative = refusal_of("04 00 0003 07 ffffffff");
  EXPECT_EQ(negative.stream, 3);
  EXPECT_EQ(negative.message, "Invalid frame body length: -1");
  EXPECT_TRUE(negative.fatal);
  EXPECT_TRUE(refusal_of("04 00 0003 07 10000001").fatal);
  EXPECT_FALSE(refusal_of("04 00 0003 07 10000000").fatal);
}

TEST(FrameReader, RefusesOpcodesOnTheirStreamAndGoesOn) {
  for (const std::string_view opcode : {"04", "11", "ff"}) {
    FrameReader reader(Direction::request);
    const auto sent =
        from_hex(fmt::format("04 00 0003 {} 00000002 aabb  04 00 0004 05 00000000", opcode));
    const auto steps = steps_of(reader, sent, SIZE_MAX);
    ASSERT_EQ(steps.size(), 2U);
    const auto& refusal = std::get<FrameRefusal>(steps[0]);
    EXPECT_TRUE(refusal.message.starts_with("Unknown opcode ")) << refusal.message;
    EXPECT_EQ(refusal.code, ErrorCode::protocol_error);
    EXPECT_EQ(refusal.stream, 3);
    EXPECT_FALSE(refusal.fatal);
    EXPECT_EQ(std::get<Frame>(steps[1]).header.stream, 4);
  }
}

TEST(FrameReader, RefusesTheOtherDirection) {
  EXPECT_EQ(refusal_of("84 00 0003 07 00000000").message,
            "Wrong protocol direction (expected REQUEST, got RESPONSE) for opcode 7 (QUERY)");
  EXPECT_EQ(refusal_of("04 00 0003 08 00000000").message,
            "Wrong protocol direction (expected REQUEST, got RESPONSE) for opcode 8 (RESULT)");
  EXPECT_FALSE(refusal_of("84 00 0003 07 00000000").fatal);
  FrameReader client(Direction::response);
  const auto steps = steps_of(client, from_hex("04 00 0003 07 00000000"), SIZE_MAX);
  EXPECT_EQ(std::get<FrameRefusal>(steps.at(0)).message,
            "Wrong protocol direction (expected RESPONSE, got REQUEST) for opcode 7 (QUERY)");
}

TEST(FrameReader, TakesMemoryForWhatCameAndNotForWhatWasDeclared) {
  FrameReader reader(Direction::request);
  reader.feed(from_hex("04 00 0003 07 01000000"));
  ASSERT_TRUE(std::holds_alternative<FrameHeader>(reader.next()));
  EXPECT_TRUE(std::holds_alternative<FrameReader::NeedBytes>(reader.next()));
  std::size_t filled = 0;
  constexpr std::size_t kBodySize = 0x01000000;
  while (filled < kBodySize) {
    const auto room = reader.room();
    ASSERT_FALSE(room.empty());
    EXPECT_LE(room.size(), std::max(filled, FrameReader::kInputSizeMax));
    const std::size_t count = std::min<std::size_t>(room.size(), 100'000);
    std::ranges::fill(room.first(count), std::byte{7});
    reader.commit(count);
    filled += count;
    EXPECT_EQ(reader.size_held(), filled);
    const auto step = reader.next();
    EXPECT_EQ(std::holds_alternative<Frame>(step), filled == kBodySize);
  }
  EXPECT_TRUE(reader.at_boundary());
}

TEST(FrameReader, WidensItsInputForABusyClientAndNarrowsItForAQuietOne) {
  FrameReader reader(Direction::request);
  EXPECT_EQ(reader.room().size(), FrameReader::kInputSizeMin);
  base::Buffer busy;
  while (busy.size() < 400'000) append_frame(busy, 1, Opcode::query, std::string(991, 'x'));
  EXPECT_EQ(steps_of(reader, busy.view(), SIZE_MAX).size(), busy.size() / 1000);
  EXPECT_EQ(reader.room().size(), FrameReader::kInputSizeMax);
  const Bytes ping = frame_of(1, Opcode::options, "");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(steps_of(reader, ping, SIZE_MAX).size(), 1U);
  EXPECT_EQ(reader.room().size(), FrameReader::kInputSizeMin);
}

// The client turns quiet between the header of a frame and its body.
TEST(FrameReader, KeepsItsInputUntilTheFrameThatIsUnderWayIsThere) {
  FrameReader reader(Direction::request);
  const std::string text(8000, 'y');
  base::Buffer busy;
  while (busy.size() < FrameReader::kInputSizeMin) {
    append_frame(busy, 1, Opcode::query, std::string(503, 'x'));
  }
  steps_of(reader, busy.view(), SIZE_MAX);
  ASSERT_EQ(reader.room().size(), 2 * FrameReader::kInputSizeMin);
  const Bytes ping = frame_of(1, Opcode::options, "");
  for (int i = 0; i < 63; ++i) EXPECT_EQ(steps_of(reader, ping, SIZE_MAX).size(), 1U);
  const Bytes frame = frame_of(2, Opcode::query, text);
  const auto read = [&](std::size_t from, std::size_t count) {
    return steps_of(reader, frame.slice(from, count), SIZE_MAX);
  };
  EXPECT_EQ(read(0, kHeaderSize).size(), 0U);
  EXPECT_EQ(read(kHeaderSize, 2000).size(), 0U);
  EXPECT_EQ(read(kHeaderSize + 2000, 2096).size(), 0U);
  const auto steps = read(kHeaderSize + 4096, 3904);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(base::as_text(std::get<Frame>(steps[0]).body), text);
  EXPECT_EQ(reader.room().size(), FrameReader::kInputSizeMin);
}

Frame compressed(Bytes body) {
  return {.header = {.flags = kFlagCompressed, .opcode = Opcode::query}, .body = std::move(body)};
}

TEST(Compression, BodiesComeBackAsTheyWere) {
  const std::string plain(10'000, 'x');
  base::Buffer out;
  ASSERT_TRUE(compress_body(base::as_bytes(plain), out));
  EXPECT_LT(out.size(), 200U);
  const auto body = plain_body(compressed(std::move(out).freeze()), Compression::lz4, 10'000);
  ASSERT_TRUE(body.has_value()) << body.error().to_string();
  EXPECT_EQ(body->text(), plain);
}

TEST(Compression, ReadsABlockMadeElsewhere) {
  // One literal run of five bytes, as the LZ4 block format has it.
  const auto body =
      plain_body(compressed(from_hex("00000005 50 68656c6c6f")), Compression::lz4, 100);
  ASSERT_TRUE(body.has_value());
  EXPECT_EQ(body->text(), "hello");
  const auto empty = plain_body(compressed(from_hex("00000000 00")), Compression::lz4, 100);
  ASSERT_TRUE(empty.has_value());
  EXPECT_TRUE(empty->empty());
}

TEST(Compression, PlainBodiesPassWhateverWasAgreed) {
  const Frame plain{.header = {.opcode = Opcode::query}, .body = Bytes::copy_of("abc")};
  EXPECT_EQ(plain_body(plain, Compression::none, 100)->text(), "abc");
  EXPECT_EQ(plain_body(plain, Compression::lz4, 100)->text(), "abc");
  EXPECT_TRUE(plain_body(compressed({}), Compression::none, 100)->empty());
}

TEST(Compression, RefusesWhatIsMalformed) {
  const auto refused = [](std::string_view hex) {
    return plain_body(compressed(from_hex(hex)), Compression::lz4, 1000);
  };
  EXPECT_TRUE(refused("000000").failed_with(Errc::corrupt));
  EXPECT_TRUE(refused("00000005 60 68656c6c6f").failed_with(Errc::corrupt));
  EXPECT_TRUE(refused("00000006 50 68656c6c6f").failed_with(Errc::corrupt));
  EXPECT_TRUE(refused("00000004 50 68656c6c6f").failed_with(Errc::corrupt));
  EXPECT_TRUE(refused("00000005").failed_with(Errc::corrupt));
  // Declares more than allowed, and more than its block could hold.
  EXPECT_TRUE(refused("7fffffff 50 68656c6c6f").failed_with(Errc::invalid_argument));
  EXPECT_TRUE(refused("ffffffff 50 68656c6c6f").failed_with(Errc::invalid_argument));
  EXPECT_TRUE(refused("000003e8 00").failed_with(Errc::corrupt));
  const auto unasked =
      plain_body(compressed(from_hex("00000005 50 68656c6c6f")), Compression::none, 1000);
  EXPECT_TRUE(unasked.failed_with(Errc::corrupt));
}

TEST(Compression, CompressesFramesThatGetSmaller) {
  base::Buffer out;
  append_frame(out, 1, Opcode::query, "small");
  const std::size_t second = out.size();
  compress_frame(out, 0);
  EXPECT_EQ(out.size(), second);
  append_frame(out, 2, Opcode::query, std::string(10'000, 'x'));
  compress_frame(out, second);
  FrameReader reader(Direction::request);
  const auto steps = steps_of(reader, out.view(), SIZE_MAX);
  ASSERT_EQ(steps.size(), 2U);
  const auto& large = std::get<Frame>(steps[1]);
  EXPECT_TRUE(large.header.has(kFlagCompressed));
  EXPECT_EQ(plain_body(large, Compression::lz4, 10'000)->text(), std::string(10'000, 'x'));
  EXPECT_FALSE(std::get<Frame>(steps[0]).header.has(kFlagCompressed));
}

TEST(Compression, LeavesNoiseAlone) {
  base::Prng prng(7);
  std::string noise;
  while (noise.size() < 4096) noise.push_back(static_cast<char>(prng.next()));
  base::Buffer out;
  out.append("before");
  EXPECT_FALSE(compress_body(base::as_bytes(noise), out));
  EXPECT_FALSE(compress_body(base::as_bytes("12345"), out));
  EXPECT_FALSE(compress_body(base::as_bytes(""), out));
  EXPECT_EQ(base::as_text(out.view()), "before");
}

TEST(Compression, HasNames) {
  EXPECT_EQ(compression_named("lz4"), Compression::lz4);
  EXPECT_EQ(compression_named("LZ4"), Compression::lz4);
  EXPECT_EQ(compression_named(""), Compression::none);
  EXPECT_EQ(compression_named("snappy"), std::nullopt);
  EXPECT_EQ(name_of(Compression::lz4), "lz4");
  EXPECT_EQ(name_of(Compression::none), "");
}

TEST(Opcode, HasNameAndDirection) {
  EXPECT_EQ(name_of(Opcode::auth_response), "AUTH_RESPONSE");
  EXPECT_EQ(direction_of(0x0d), Direction::request);
  EXPECT_EQ(direction_of(0x0c), Direction::response);
  EXPECT_EQ(direction_of(0x04), std::nullopt);
  EXPECT_EQ(direction_of(0x11), std::nullopt);
}

}  // namespace
}  // namespace helenus::cql::protocol
