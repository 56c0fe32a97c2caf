// The identity's format; how it survives crashes is the simulator's to show.
#include "node/identity.h"

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace helenus::node {
namespace {

using base::Errc;

Identity golden() {
  const auto uuid = base::Uuid::parse("00010203-0405-4607-8809-0a0b0c0d0e0f");
  return {.node = model::NodeId(*uuid),
          .created = runtime::WallTime(runtime::Duration(1794735000000000000))};
}

TEST(Identity, TheGoldenFileDecodesForEver) {
  std::ifstream stream(HELENUS_TESTDATA "/identity-v1", std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), {}};
  ASSERT_EQ(file.size(), 37U);
  const auto identity = decode_identity(base::as_bytes(file));
  ASSERT_TRUE(identity.has_value()) << identity.error().to_string();
  EXPECT_EQ(*identity, golden());
  EXPECT_EQ(base::as_text(encode(golden())), file);
}

TEST(Identity, EveryTruncationIsRefused) {
  const base::Bytes whole = encode(golden());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(decode_identity(whole.slice(0, size)).failed_with(Errc::corrupt)) << size;
  }
}

TEST(Identity, EveryFlippedBitIsRefused) {
  const std::string whole(encode(golden()).text());
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode_identity(base::as_bytes(damaged)).has_value()) << "bit " << bit;
  }
}

TEST(Identity, AnotherVersionIsNamedAsSuch) {
  for (const char version : {'\0', '\2'}) {
    std::string other(encode(golden()).text());
    other[8] = version;
    EXPECT_TRUE(decode_identity(base::as_bytes(other)).failed_with(Errc::unsupported));
  }
}

TEST(Identity, TrailingBytesAreRefused) {
  const std::string longer = std::string(encode(golden()).text()) + "x";
  EXPECT_TRUE(decode_identity(base::as_bytes(longer)).failed_with(Errc::corrupt));
}

}  // namespace
}  // namespace helenus::node
