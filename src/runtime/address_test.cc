#include "runtime/address.h"

#include <array>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::runtime {
namespace {

using base::Errc;

TEST(Address, TextAndBackAgain) {
  struct Row {
    const char* text;
    const char* shown;
    Address::Family family;
    std::uint16_t port;
  };
  constexpr auto kV4 = Address::Family::v4;
  constexpr auto kV6 = Address::Family::v6;
  for (const Row& row : {
           Row{"127.0.0.1:9042", "127.0.0.1:9042", kV4, 9042},
           Row{"0.0.0.0:0", "0.0.0.0:0", kV4, 0},
           Row{"255.255.255.255:65535", "255.255.255.255:65535", kV4, 65535},
           Row{"10.0.0.1:007", "10.0.0.1:7", kV4, 7},
           Row{"[::1]:9042", "[::1]:9042", kV6, 9042},
           Row{"[::]:1", "[::]:1", kV6, 1},
           Row{"[FE80:0:0:0:0:0:0:1]:80", "[fe80::1]:80", kV6, 80},
           Row{"[::ffff:10.1.2.3]:80", "[::ffff:10.1.2.3]:80", kV6, 80},
       }) {
    const auto address = Address::parse(row.text);
    ASSERT_TRUE(address.has_value()) << row.text;
    EXPECT_EQ(address->to_string(), row.shown);
    EXPECT_EQ(address->family(), row.family) << row.text;
    EXPECT_EQ(address->port(), row.port) << row.text;
    EXPECT_EQ(address->ip_bytes().size(), row.family == kV4 ? 4U : 16U) << row.text;
    EXPECT_EQ(Address::parse(address->to_string()), *address) << row.text;
  }
}

TEST(Address, WhatIsNotAnAddressIsRefused) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {
           ""sv,
           ":"sv,
           ":80"sv,
           "127.0.0.1"sv,
           "127.0.0.1:"sv,
           "127.0.0.1:-1"sv,
           "127.0.0.1:+1"sv,
           "127.0.0.1: 1"sv,
           "127.0.0.1:1 "sv,
           "127.0.0.1:65536"sv,
           "127.0.0.1:99999999999999999999"sv,
           "127.0.0.1:80x"sv,
           "127.0.0:80"sv,
           "127.0.0.256:80"sv,
           "127.0.0.1.1:80"sv,
           " 127.0.0.1:80"sv,
           "localhost:80"sv,
           "::1:80"sv,
           "[::1]"sv,
           "[::1]80"sv,
           "[::1:80"sv,
           "::1]:80"sv,
           "[]:80"sv,
           "[]"sv,
           "["sv,
           "[[::1]]:80"sv,
           "[127.0.0.1]:80"sv,
           "[fe80::1%eth0]:80"sv,
           "[:::1]:80"sv,
           "127.0.0.1\0:80"sv,
           "127.0.0.1\0.example:80"sv,
           "[::1\0]:80"sv,
       }) {
    EXPECT_TRUE(Address::parse(text).failed_with(Errc::invalid_argument)) << text;
  }
}

TEST(Address, AnErrorDoesNotRepeatALongText) {
  const auto address = Address::parse(std::string(1 << 20, 'x'));
  ASSERT_FALSE(address.has_value());
  EXPECT_LT(address.error().to_string().size(), 300U);
}

RC_GTEST_PROP(Address, EveryAddressReadsBackFromItsText, ()) {
  const auto port = *rc::gen::arbitrary<std::uint16_t>();
  const auto ip =
      *rc::gen::container<std::array<std::uint8_t, 16>>(rc::gen::weightedOneOf<std::uint8_t>(
          {{1, rc::gen::just<std::uint8_t>(0)}, {1, rc::gen::arbitrary<std::uint8_t>()}}));
  const Address v6 = Address::v6(ip, port);
  RC_ASSERT((Address::parse(v6.to_string()) == v6));
  const Address v4 = Address::v4({ip[0], ip[1], ip[2], ip[3]}, port);
  RC_ASSERT((Address::parse(v4.to_string()) == v4));
  RC_ASSERT((v4 != v6));
  RC_ASSERT((v4.with_port(1) == Address::v4({ip[0], ip[1], ip[2], ip[3]}, 1)));
}

TEST(Address, OrdersByFamilyThenBytesThenPort) {
  const std::set<Address> sorted = {Address::v6({}, 1), Address::v4({10, 0, 0, 1}, 2),
                                    Address::v4({10, 0, 0, 1}, 1), Address::v4({9, 0, 0, 1}, 9)};
  std::string order;
  for (const Address& address : sorted) order += address.to_string() + " ";
  EXPECT_EQ(order, "9.0.0.1:9 10.0.0.1:1 10.0.0.1:2 [::]:1 ");
}

}  // namespace
}  // namespace helenus::runtime
