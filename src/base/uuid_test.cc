#include "base/uuid.h"

#include <string>

#include <gtest/gtest.h>

namespace helenus::base {
namespace {

TEST(Uuid, TextRoundTrips) {
  const auto uuid = Uuid::parse("f81d4fae-7DEC-11d0-a765-00a0c91e6bf6");
  ASSERT_TRUE(uuid.has_value());
  EXPECT_EQ(uuid->to_string(), "f81d4fae-7dec-11d0-a765-00a0c91e6bf6");
  EXPECT_EQ(uuid->version(), 1U);
  EXPECT_EQ(uuid->bytes()[0], std::byte{0xf8});
  EXPECT_EQ(uuid->bytes()[15], std::byte{0xf6});
}

TEST(Uuid, RefusesWhatIsNotOne) {
  for (const char* text :
       {"", "f81d4fae", "f81d4fae-7dec-11d0-a765-00a0c91e6bf",
        "f81d4fae-7dec-11d0-a765-00a0c91e6bf66", "f81d4fae+7dec-11d0-a765-00a0c91e6bf6",
        "g81d4fae-7dec-11d0-a765-00a0c91e6bf6", "f81d4fae-7dec-11d0-a76500a0-c91e6bf6"}) {
    EXPECT_TRUE(Uuid::parse(text).failed_with(Errc::invalid_argument)) << text;
  }
}

TEST(Uuid, AnErrorRepeatsNoMoreOfAStrangersTextThanAUuidHas) {
  const auto uuid = Uuid::parse(std::string(1'000'000, 'x'));
  ASSERT_FALSE(uuid.has_value());
  EXPECT_EQ(uuid.error().context(),
            "'" + std::string(36, 'x') + "' of 1000000 bytes is not a UUID");
}

TEST(Uuid, RandomOnesCarryVersionAndVariant) {
  Uuid::Octets ones;
  ones.fill(std::byte{0xff});
  EXPECT_EQ(Uuid::from_random(ones).to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
  EXPECT_EQ(Uuid::from_random({}).to_string(), "00000000-0000-4000-8000-000000000000");
  EXPECT_TRUE(Uuid().is_nil());
  EXPECT_FALSE(Uuid::from_random({}).is_nil());
}

TEST(Uuid, IsDecodedFromItsBytesAndNilWhereTheyEnd) {
  const Uuid uuid = Uuid::from_random(7, 8);
  Decoder whole(uuid.bytes());
  EXPECT_EQ(decode_uuid(whole), uuid);
  EXPECT_TRUE(whole.finish().has_value());
  Decoder short_one(uuid.bytes().first(15));
  EXPECT_EQ(decode_uuid(short_one), Uuid());
  EXPECT_TRUE(short_one.finish().failed_with(Errc::corrupt));
}

}  // namespace
}  // namespace helenus::base
