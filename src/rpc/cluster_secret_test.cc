// The file of secrets, and what proofs and marks are computed with.
#include "rpc/cluster_secret.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpc/crypto.h"
#include "rpc/rpc_test_support.h"

namespace helenus::rpc {
namespace {

using ::testing::HasSubstr;

std::string line_of(std::uint8_t number) {
  return secret_of(number).line().reveal();
}

std::string hex(base::ByteView bytes) {
  return base::to_hex(bytes);
}

TEST(ClusterSecret, IsWrittenAsALineWithAChecksum) {
  EXPECT_EQ(line_of(0xab),
            "helenus-secret:1:abababababababababababababababababababababababababababababababab:"
            "ec12479d\n");
}

TEST(ClusterSecret, AFileHoldsSeveralTheNewestFirst) {
  const auto secrets = parse_cluster_secrets("# of troy\n\n" + line_of(2) + line_of(1));
  ASSERT_TRUE(secrets.has_value());
  ASSERT_EQ(secrets->size(), 2U);
  EXPECT_EQ(secrets->front().reveal(), secret_of(2).reveal());
  EXPECT_EQ(secrets->back().reveal(), secret_of(1).reveal());
}

TEST(ClusterSecret, WhatIsWrongIsSaidWithoutTheSecret) {
  const std::string good = line_of(7);
  std::string changed = good;
  changed[20] = changed[20] == '0' ? '1' : '0';
  const std::string later = "helenus-secret:2:" + good.substr(17);
  const struct {
    std::string text;
    Errc code;
    std::string_view says;
  } cases[] = {
      {"", Errc::corrupt, "no secret"},
      {"# nothing\n", Errc::corrupt, "no secret"},
      {good + "password\n", Errc::corrupt, "line 2: does not begin"},
      {good.substr(0, good.size() - 3), Errc::corrupt, "another length"},
      {changed, Errc::corrupt, "checksum does not match"},
      {later, Errc::unsupported, "version"},
      {good + good + good + good + good + good + good + good + good, Errc::corrupt, "more than 8"},
  };
  for (const auto& each : cases) {
    const auto secrets = parse_cluster_secrets(each.text);
    ASSERT_FALSE(secrets.has_value()) << each.says;
    EXPECT_EQ(secrets.error().code(), each.code);
    EXPECT_THAT(secrets.error().to_string(), HasSubstr(each.says));
    EXPECT_FALSE(secrets.error().to_string().contains("0707"));
  }
}

TEST(ClusterSecret, FormatsAsStars) {
  EXPECT_EQ(fmt::format("{}", secret_of(1).line()), "***");
}

// RFC 4231, test case 2.
TEST(Crypto, HmacIsThatOfTheStandard) {
  EXPECT_EQ(
      hex(hmac_sha256(base::as_bytes("Jefe"), base::as_bytes("what do ya want for nothing?"))),
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

// RFC 5869, test case 1, the first 32 bytes.
TEST(Crypto, HkdfIsThatOfTheStandard) {
  const std::string material(22, '\x0b');
  std::string salt;
  for (char octet = 0; octet <= 0x0c; ++octet) salt.push_back(octet);
  const std::string info = "\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9";
  EXPECT_EQ(hex(hkdf_sha256(base::as_bytes(material), base::as_bytes(salt), info)),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
}

TEST(Crypto, MarksDependOnTheKeyTheBytesAndTheirPlace) {
  Seal one(secret_of(1).reveal());
  Seal same(secret_of(1).reveal());
  Seal other(secret_of(2).reveal());
  const auto bytes = base::as_bytes("sing, goddess");
  const auto mark = one.next({bytes});
  EXPECT_EQ(mark, same.next({bytes.first(4), {}, bytes.subspan(4)})) << "however it is cut";
  EXPECT_NE(mark, other.next({bytes}));
  EXPECT_NE(mark, one.next({bytes})) << "the same frame again";
  EXPECT_NE(one.next({bytes}), same.next({bytes})) << "a frame was left out";
}

TEST(Crypto, ComparisonIsOfWholeValues) {
  EXPECT_TRUE(equal_in_constant_time(base::as_bytes("abc"), base::as_bytes("abc")));
  EXPECT_FALSE(equal_in_constant_time(base::as_bytes("abc"), base::as_bytes("abd")));
  EXPECT_FALSE(equal_in_constant_time(base::as_bytes("abc"), base::as_bytes("ab")));
}

}  // namespace
}  // namespace helenus::rpc
