#include "storage/sstable/block_codec.h"

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/codec.h"
#include "base/prng.h"

namespace helenus::storage {
namespace {

using base::as_bytes;
using base::Errc;
using Memory = BlockDecoder::Memory;

FileId id_of(unsigned number) {
  FileId id;
  id.bytes.fill(std::byte(number));
  return id;
}

const BlockSeal kSeal{id_of(7)};

base::Bytes frame_of(std::string_view payload, Compression compression,
                     BlockKind kind = BlockKind::data, std::uint64_t offset = 4096) {
  BlockEncoder encoder(compression, 1);
  base::Buffer out;
  const BlockHandle handle = encoder.encode(kSeal, kind, offset, as_bytes(payload), out);
  EXPECT_EQ(handle, (BlockHandle{offset, static_cast<std::uint32_t>(out.size())}));
  return std::move(out).freeze();
}

std::string repetitive(std::size_t size) {
  std::string text;
  while (text.size() < size) text += "all work and no play ";
  text.resize(size);
  return text;
}

std::string random_text(std::size_t size, std::uint64_t seed = 1) {
  base::Prng prng(seed);
  std::string text(size, '\0');
  for (char& byte : text) byte = static_cast<char>(prng.below(256));
  return text;
}

class EveryCompression : public testing::TestWithParam<Compression> {};
INSTANTIATE_TEST_SUITE_P(BlockCodec, EveryCompression,
                         testing::Values(Compression::none, Compression::lz4, Compression::zstd),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(EveryCompression, GivesBackWhatWentIn) {
  BlockDecoder decoder;
  for (const std::string& payload :
       {std::string("x"), repetitive(100), repetitive(16384), random_text(16384),
        repetitive(1 << 20) + random_text(1 << 20)}) {
    const base::Bytes frame = frame_of(payload, GetParam());
    for (const Memory memory : {Memory::share, Memory::copy}) {
      const auto decoded = decoder.decode(kSeal, BlockKind::data, 4096, frame, memory);
      ASSERT_TRUE(decoded.has_value()) << decoded.error().to_string();
      EXPECT_EQ(decoded->text(), payload);
    }
  }
}

TEST_P(EveryCompression, ShrinksWhatRepeatsAndLeavesTheRestAlone) {
  const std::size_t repeated = frame_of(repetitive(16384), GetParam()).size();
  if (GetParam() == Compression::none) {
    EXPECT_EQ(repeated, 16384 + kBlockFrameSize);
  } else {
    EXPECT_LT(repeated, 1000u);
  }
  EXPECT_EQ(frame_of(random_text(16384), GetParam()).size(), 16384 + kBlockFrameSize);
}

TEST_P(EveryCompression, EveryFlippedBitIsFound) {
  BlockDecoder decoder;
  const base::Bytes good = frame_of(repetitive(150), GetParam());
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    base::Buffer damaged;
    damaged.append(good);
    damaged.mutable_view()[bit / 8] ^= std::byte(1u << (bit % 8));
    EXPECT_TRUE(
        decoder.decode(kSeal, BlockKind::data, 4096, std::move(damaged).freeze(), Memory::share)
            .failed_with(Errc::corrupt))
        << bit;
  }
}

TEST_P(EveryCompression, EveryTruncationIsFound) {
  BlockDecoder decoder;
  const base::Bytes good = frame_of(repetitive(150), GetParam());
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_TRUE(decoder.decode(kSeal, BlockKind::data, 4096, good.slice(0, size), Memory::share)
                    .failed_with(Errc::corrupt))
        << size;
  }
}

TEST(BlockCodec, ABlockElsewhereIsNotThisBlock) {
  BlockDecoder decoder;
  const base::Bytes frame = frame_of(repetitive(1000), Compression::lz4);
  const auto decode = [&](const FileId& id, BlockKind kind, std::uint64_t offset) {
    return decoder.decode(BlockSeal(id), kind, offset, frame, Memory::share);
  };
  EXPECT_TRUE(decode(id_of(7), BlockKind::data, 4096).has_value());
  EXPECT_TRUE(decode(id_of(8), BlockKind::data, 4096).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode(id_of(7), BlockKind::data, 4097).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode(id_of(7), BlockKind::data, 8192).failed_with(Errc::corrupt));
  const auto wrong_kind = decode(id_of(7), BlockKind::index, 4096);
  ASSERT_TRUE(wrong_kind.failed_with(Errc::corrupt));
  EXPECT_EQ(wrong_kind.error().context(), "is a data block");
}

RC_GTEST_PROP(BlockCodec, AMovedBlockNeverPassesInAFileBelowFourGigabytes,
              (std::uint32_t written, std::uint32_t read)) {
  RC_PRE(written != read);
  BlockDecoder decoder;
  const base::Bytes frame = frame_of("some payload", Compression::none, BlockKind::data, written);
  RC_ASSERT(decoder.decode(kSeal, BlockKind::data, read, frame, Memory::share)
                .failed_with(Errc::corrupt));
}

// A frame whose checksum is right and whose head lies.
base::Bytes forged(std::uint8_t kind, std::uint8_t compression, std::uint32_t stored,
                   std::uint32_t payload, std::string_view bytes) {
  base::Buffer out;
  base::Encoder encoder(out);
  encoder.u8(kind);
  encoder.u8(compression);
  encoder.u32_le(stored);
  encoder.u32_le(payload);
  encoder.raw(as_bytes(bytes));
  encoder.u32_le(kSeal.of(0, out.view()));
  return std::move(out).freeze();
}

TEST(BlockCodec, LiesInTheHeadAreErrorsBeforeMemoryIsTaken) {
  BlockDecoder decoder;
  const auto decode = [&](const base::Bytes& frame) {
    return decoder.decode(kSeal, BlockKind::data, 0, frame, Memory::share);
  };
  EXPECT_TRUE(decode(forged(0, 0, 3, 3, "abc")).failed_with(Errc::corrupt)) << "kind";
  EXPECT_TRUE(decode(forged(7, 0, 3, 3, "abc")).failed_with(Errc::corrupt)) << "kind";
  EXPECT_TRUE(decode(forged(1, 3, 3, 4, "abc")).failed_with(Errc::unsupported)) << "compression";
  EXPECT_TRUE(decode(forged(1, 0, 3, 4, "abc")).failed_with(Errc::corrupt)) << "sizes differ";
  EXPECT_TRUE(decode(forged(1, 0, 2, 2, "abc")).failed_with(Errc::corrupt)) << "frame is longer";
  EXPECT_TRUE(decode(forged(1, 0, 0, 0, "")).failed_with(Errc::corrupt)) << "no payload";
  EXPECT_TRUE(decode(forged(1, 1, 3, 3, "abc")).failed_with(Errc::corrupt)) << "does not shrink";
  EXPECT_TRUE(decode(forged(1, 1, 3, 100u << 20, "abc")).failed_with(Errc::corrupt)) << "bomb";
  EXPECT_TRUE(decode(forged(1, 1, 3, 0xffffffff, "abc")).failed_with(Errc::corrupt)) << "limit";
  EXPECT_TRUE(decode(forged(1, 1, 3, 100, "abc")).failed_with(Errc::corrupt)) << "no LZ4";
  EXPECT_TRUE(decode(forged(1, 2, 3, 100, "abc")).failed_with(Errc::corrupt)) << "no zstd";
}

TEST(BlockCodec, ZstdThatDeclaresAnotherSizeIsAnError) {
  BlockDecoder decoder;
  const base::Bytes good = frame_of(repetitive(1000), Compression::zstd, BlockKind::data, 0);
  const auto head = BlockHead::decode(good);
  ASSERT_TRUE(head.has_value());
  const std::string_view stored = good.text().substr(kBlockHeadSize, head->stored_size);
  for (const std::uint32_t size : {999u, 1001u, 100u << 20}) {
    const auto frame = forged(1, 2, head->stored_size, size, stored);
    EXPECT_TRUE(
        decoder.decode(kSeal, BlockKind::data, 0, frame, Memory::share).failed_with(Errc::corrupt))
        << size;
  }
}

TEST(BlockCodec, NamesOfCompressionsReadBack) {
  for (const auto compression : {Compression::none, Compression::lz4, Compression::zstd}) {
    EXPECT_EQ(compression_named(name_of(compression)), compression);
  }
  EXPECT_EQ(compression_named("snappy"), std::nullopt);
}

}  // namespace
}  // namespace helenus::storage
