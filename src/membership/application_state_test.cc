#include "membership/application_state.h"

#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "membership/membership_test_support.h"

namespace helenus::membership {
namespace {

using base::Errc;
using model::Token;
using testing::value_of;

TEST(ApplicationState, EveryStatusComesBackAndHasAName) {
  for (const Status status : {Status::joining, Status::normal, Status::leaving, Status::left}) {
    EXPECT_EQ(decode_status(encode_status(status)), status);
    EXPECT_FALSE(name_of(status).empty());
  }
  EXPECT_EQ(name_of(Status::leaving), "leaving");
}

TEST(ApplicationState, AStatusOfALaterReleaseIsAnError) {
  EXPECT_TRUE(decode_status(base::as_bytes("\x04")).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode_status({}).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode_status(base::as_bytes("\x01\x01")).failed_with(Errc::corrupt));
}

TEST(ApplicationState, WhetherClientsAreServedIsYesOrNo) {
  EXPECT_EQ(decode_wall_clock(encode_wall_clock(1'700'000'000'000'000)), 1'700'000'000'000'000U);
  EXPECT_EQ(decode_serves_clients(encode_serves_clients(true)), true);
  EXPECT_EQ(decode_serves_clients(encode_serves_clients(false)), false);
  EXPECT_TRUE(decode_serves_clients({}).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode_serves_clients(base::as_bytes("\x02")).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode_serves_clients(base::as_bytes("\x01\x01")).failed_with(Errc::corrupt));
}

RC_GTEST_PROP(ApplicationState, LoadAndTokensComeBack, ()) {
  const auto load = *rc::gen::arbitrary<std::uint64_t>();
  RC_ASSERT((decode_load(encode_load(load)) == load));
  RC_ASSERT((decode_metadata_version(encode_metadata_version(load)) == load));
  const auto drawn = *rc::gen::arbitrary<std::vector<std::int64_t>>();
  const std::set<std::int64_t> numbers(drawn.begin(), drawn.end());
  std::vector<Token> tokens;
  for (const std::int64_t number : numbers) tokens.emplace_back(number);
  RC_ASSERT((decode_tokens(encode_tokens(tokens)) == tokens));
}

TEST(ApplicationState, TokensOutOfOrderTornOrTooManyAreErrors) {
  const std::vector<Token> two = {Token(-5), Token(7)};
  const base::Bytes bytes = encode_tokens(two);
  const std::string swapped = std::string(bytes.text().substr(8)) + std::string(bytes.text(), 0, 8);
  EXPECT_TRUE(decode_tokens(base::as_bytes(swapped)).failed_with(Errc::corrupt));
  const std::string twice = std::string(bytes.text(), 0, 8) + std::string(bytes.text(), 0, 8);
  EXPECT_TRUE(decode_tokens(base::as_bytes(twice)).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode_tokens(bytes.slice(0, 15)).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode_tokens(value_of(kStateValueBytesMax + 8)).failed_with(Errc::corrupt));
  EXPECT_EQ(decode_tokens({}), std::vector<Token>());
}

TEST(ApplicationState, AddressesOfBothFamiliesComeBack) {
  for (const char* text : {"127.0.0.1:9042", "[2001:db8::7]:7000"}) {
    const runtime::Address address = *runtime::Address::parse(text);
    EXPECT_EQ(decode_address(encode_address(address)), address);
  }
  for (const std::size_t size : {0U, 4U, 5U, 7U, 16U, 17U, 19U}) {
    EXPECT_TRUE(decode_address(value_of(size)).failed_with(Errc::corrupt)) << size;
  }
}

TEST(ApplicationState, ASchemaVersionIsAUuid) {
  const base::Uuid version = base::Uuid::from_random(1, 2);
  EXPECT_EQ(decode_schema_version(encode_schema_version(version)), version);
  EXPECT_TRUE(decode_schema_version(value_of(15)).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode_load(value_of(11, '\xff')).failed_with(Errc::corrupt));
}

}  // namespace
}  // namespace helenus::membership
