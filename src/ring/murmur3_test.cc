// The partitioner against tokens that drivers computed.
#include "ring/murmur3.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace helenus::ring {
namespace {

std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  for (std::size_t index = 0; index < count; ++index) all += text;
  return all;
}
std::string counting(unsigned from, unsigned to) {
  std::string all;
  for (unsigned byte = from; byte <= to; ++byte) all.push_back(static_cast<char>(byte));
  return all;
}

struct Known {
  std::string key;
  std::int64_t token;
};

TEST(Murmur3, TokensAreThoseOfTheDrivers) {
  using namespace std::string_literals;
  const std::vector<Known> known = {
      {"123", -7468325962851647638},
      {"\0\0\0\1"s, -4069959284402364209},
      {"\0\0\0\0\0\0\0\1"s, 6292367497774912474},
      {"\xe2\x82\xac", 8619152265340498936},
      {repeated("a", 16), -954455200256842034},
      {"\0\1a\0\0\1b\0"s, 7470152180878494447},
      // Whole blocks have no quirk.
      {counting(0xf0, 0xff), -9084739235461062116},
  };
  for (const auto& [key, token] : known) {
    EXPECT_EQ(token_of(base::as_bytes(key)), model::Token{token})
        << base::to_hex(base::as_bytes(key));
  }
}

TEST(Murmur3, BytesOfTheLastBlockAreSignExtended) {
  const std::vector<Known> known = {
      {"\x80", -5284281814142962636},
      {"\xff\xff\xff\xff", 7297452126230313552},
      {repeated("\xfe", 8), -8927430733708461935},
      {counting(0xe0, 0xfe), -7291870741502709738},
  };
  for (const auto& [key, token] : known) {
    EXPECT_EQ(token_of(base::as_bytes(key)), model::Token{token})
        << base::to_hex(base::as_bytes(key));
  }
}

TEST(Murmur3, EmptyKeyComesBeforeAllOthers) {
  EXPECT_EQ(token_of({}), model::kTokenMin);
}

}  // namespace
}  // namespace helenus::ring
