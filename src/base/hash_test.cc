#include "base/hash.h"

#include <bit>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::base {
namespace {

// Byte i is mix64(i + 1), cut; long enough for every code path of XXH3 (0, 1-3, 4-8, 9-16, 17-128,
// 129-240 bytes, and stripes).
std::string sample(std::size_t size) {
  std::string text;
  for (std::size_t index = 0; index < size; ++index) {
    text += static_cast<char>(mix64(index + 1) & 0xff);
  }
  return text;
}

TEST(Hash, StoredValuesNeverChange) {
  EXPECT_EQ(hash64({}), 0x2d06800538d394c2u);
  EXPECT_EQ(hash64(as_bytes("a")), 0xe6c632b61e964e1fu);
  EXPECT_EQ(hash64(as_bytes("abc")), 0x78af5f94892f3950u);
  EXPECT_EQ(hash128({}), (Hash128{.high = 0x99aa06d3014798d8, .low = 0x6001c324468d497f}));
  EXPECT_EQ(hash128(as_bytes("abc")),
            (Hash128{.high = 0x06b05ab6733a6185, .low = 0x78af5f94892f3950}));
}

TEST(Hash, StoredValuesOfEveryLengthClassNeverChange) {
  struct Golden {
    std::size_t size;
    std::uint64_t plain;
    std::uint64_t seeded;
    std::uint64_t high_of_128;
  };
  const Golden goldens[] = {
      {2, 0x4466880e2b4291d0, 0x242261e4134034f3, 0x71d74165c0aa7204},
      {7, 0xe78a8aa3eb71db62, 0xa6274be667b75521, 0xee11caa3713a2fb5},
      {16, 0x56250047aebc8c33, 0x4dbad82b7ceb6e9d, 0x060218386f3f1269},
      {17, 0x6bffd1740467595d, 0x65c51be5a06c7eb5, 0x2839d6ef72548c04},
      {128, 0xb31d99adf0fded93, 0xdf3d166f95ce1fcb, 0x74a90cbb960ddb85},
      {240, 0x1b642665d5f938a0, 0x5a9d00a507996eb4, 0x185488198b0f21d6},
      {241, 0x783ca14e37ebef8e, 0x0e9afa13b0df78c8, 0x9f22fbf593fefe6e},
      {5000, 0xce4def864471ea4a, 0x8bf93298e2c6cccc, 0x087acd7305d5dc48},
  };
  for (const Golden& golden : goldens) {
    const std::string text = sample(golden.size);
    EXPECT_EQ(hash64(as_bytes(text)), golden.plain) << golden.size;
    EXPECT_EQ(hash64(as_bytes(text), 42), golden.seeded) << golden.size;
    EXPECT_EQ(hash128(as_bytes(text), 42).high, golden.high_of_128) << golden.size;
  }
}

TEST(Hash, TheSeedMatters) {
  EXPECT_NE(hash64(as_bytes("abc"), 1), hash64(as_bytes("abc"), 2));
  EXPECT_NE(hash128(as_bytes("abc"), 1), hash128(as_bytes("abc"), 2));
}

TEST(Mix64, MatchesSplitMix64) {
  constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15;
  static_assert(mix64(0) == 0);
  static_assert(mix64(kGamma) == 0xe220a8397b1dcdaf);
  static_assert(mix64(2 * kGamma) == 0x6e789e6aa1b965f4);
  static_assert(mix64(3 * kGamma) == 0x06c45d188009454f);
}

RC_GTEST_PROP(Mix64, OneInputBitFlipsAboutHalfOfTheOutput, (std::uint64_t word)) {
  int flipped = 0;
  for (int bit = 0; bit < 64; ++bit) {
    flipped += std::popcount(mix64(word) ^ mix64(word ^ (std::uint64_t{1} << bit)));
  }
  RC_ASSERT(flipped > 64 * 24 && flipped < 64 * 40);
}

TEST(Digest, StoredValuesNeverChange) {
  Digest digest;
  EXPECT_EQ(digest.value(), 0u);
  digest.add(1);
  digest.add(as_bytes("two"));
  EXPECT_EQ(digest.value(), 0x07db11fe9e4a3715u);
}

TEST(Digest, DependsOnOrderAndOnBoundaries) {
  const auto digest_of = [](const std::vector<std::string>& parts) {
    Digest digest;
    for (const std::string& part : parts) digest.add(as_bytes(part));
    return digest.value();
  };
  const std::set<std::uint64_t> values = {
      digest_of({}),          digest_of({""}),    digest_of({"", ""}),    digest_of({"ab", "c"}),
      digest_of({"a", "bc"}), digest_of({"abc"}), digest_of({"c", "ab"}),
  };
  EXPECT_EQ(values.size(), 7u);
}

}  // namespace
}  // namespace helenus::base
