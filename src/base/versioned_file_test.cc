#include "base/versioned_file.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace helenus::base {
namespace {

using ::testing::HasSubstr;

constexpr FileFormat kFormat{.magic = "HLNSTEST", .version = 1};

std::string file_of(std::string_view content) {
  return std::string(encode_file(kFormat, as_bytes(content)).text());
}

TEST(VersionedFile, HasTheseBytes) {
  EXPECT_EQ(to_hex(as_bytes(file_of("ab"))), "484c4e53544553540161626f7acb5d");
}

TEST(VersionedFile, ContentComesBack) {
  for (const std::string& content : {std::string(), std::string("x"), std::string(5000, '\0')}) {
    const std::string file = file_of(content);
    EXPECT_EQ(file.size(), kFormat.frame_size() + content.size());
    const auto decoded = decode_file(kFormat, as_bytes(file));
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(as_text(*decoded), content);
  }
}

TEST(VersionedFile, EveryFlippedBitAndEveryTruncationIsRefused) {
  const std::string whole = file_of("content");
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode_file(kFormat, as_bytes(damaged)).has_value()) << bit;
  }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(decode_file(kFormat, as_bytes(whole.substr(0, size))).failed_with(Errc::corrupt))
        << size;
  }
  EXPECT_TRUE(decode_file(kFormat, as_bytes(whole + "x")).failed_with(Errc::corrupt));
}

TEST(VersionedFile, AnotherVersionIsNamedWhateverFollowsIt) {
  for (const int version : {0, 2, 255}) {
    std::string other = file_of("content").substr(0, kFormat.magic.size() + 1);
    other.back() = static_cast<char>(version);
    const auto decoded = decode_file(kFormat, as_bytes(other));
    ASSERT_TRUE(decoded.failed_with(Errc::unsupported));
    EXPECT_THAT(decoded.error().to_string(),
                HasSubstr(fmt::format("version {} of its format, and this release reads version 1: "
                                      "start the release that wrote it, or this one with an empty "
                                      "folder",
                                      version)));
  }
}

}  // namespace
}  // namespace helenus::base
