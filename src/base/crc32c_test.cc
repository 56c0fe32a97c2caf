#include "base/crc32c.h"

#include <algorithm>
#include <array>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::base {
namespace {

// The definition, bit by bit: the reflected polynomial of RFC 3720.
std::uint32_t crc32c_bitwise(ByteView bytes) {
  std::uint32_t state = ~0u;
  for (const std::byte byte : bytes) {
    state ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) * 0x82f63b78u);
  }
  return ~state;
}

TEST(Crc32c, MatchesTheVectorsOfRfc3720) {
  std::array<std::byte, 32> bytes{};
  EXPECT_EQ(crc32c(bytes), 0x8a9136aau);
  std::ranges::fill(bytes, std::byte{0xff});
  EXPECT_EQ(crc32c(bytes), 0x62a8ab43u);
  for (std::size_t index = 0; index < 32; ++index) bytes[index] = static_cast<std::byte>(index);
  EXPECT_EQ(crc32c(bytes), 0x46dd794eu);
  std::ranges::reverse(bytes);
  EXPECT_EQ(crc32c(bytes), 0x113fdb5cu);
  std::array<std::byte, 48> read_command{};
  const auto set = [&](std::size_t index, int value) {
    read_command[index] = static_cast<std::byte>(value);
  };
  set(0, 0x01), set(1, 0xc0), set(16, 0x14), set(22, 0x04), set(27, 0x14), set(31, 0x18);
  set(32, 0x28), set(40, 0x02);
  EXPECT_EQ(crc32c(read_command), 0xd9963a56u);
}

TEST(Crc32c, MatchesTheCheckValueOfTheCatalogue) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, APreviousValueContinuesWhereverTheBytesAreSplit) {
  std::string text;
  for (int index = 0; index < 600; ++index) text += static_cast<char>(index * 7);
  const ByteView whole = as_bytes(text);
  for (std::size_t split = 0; split <= whole.size(); ++split) {
    ASSERT_EQ(crc32c(whole.subspan(split), crc32c(whole.first(split))), crc32c(whole)) << split;
  }
}

RC_GTEST_PROP(Crc32c, EqualsItsDefinition, (const std::string& text)) {
  RC_ASSERT(crc32c(as_bytes(text)) == crc32c_bitwise(as_bytes(text)));
}

RC_GTEST_PROP(Crc32c, SeesEveryChangeOfOneByte, (std::string text, char byte)) {
  RC_PRE(!text.empty());
  const std::uint32_t before = crc32c(as_bytes(text));
  const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
  RC_PRE(text[at] != byte);
  text[at] = byte;
  RC_ASSERT(crc32c(as_bytes(text)) != before);
}

}  // namespace
}  // namespace helenus::base
