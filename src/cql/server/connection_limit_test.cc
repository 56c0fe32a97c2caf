#include "cql/server/connection_limit.h"

#include <vector>

#include <gtest/gtest.h>

namespace helenus::cql {
namespace {

using Admission = ConnectionLimit::Admission;
using runtime::Address;

Address client(std::uint32_t number, std::uint16_t port = 1) {
  return Address::v4({10, static_cast<std::uint8_t>(number >> 16),
                      static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)},
                     port);
}

TEST(ConnectionLimit, TheNodeHasSoManyAndNoMore) {
  ConnectionLimit limit(2);
  EXPECT_EQ(limit.try_enter(client(1)), Admission::admitted);
  EXPECT_EQ(limit.try_enter(client(1)), Admission::admitted);
  EXPECT_EQ(limit.try_enter(client(2)), Admission::node_is_full);
  limit.leave(client(1));
  EXPECT_EQ(limit.try_enter(client(2)), Admission::admitted);
}

TEST(ConnectionLimit, AnAddressHasSoManyWhateverItsPortsAndOthersHaveTheirs) {
  ConnectionLimit limit(100, {.connections_max = 3, .hash_key = 7});
  for (const std::uint16_t port : std::vector<std::uint16_t>{1, 2, 3}) {
    EXPECT_EQ(limit.try_enter(client(1, port)), Admission::admitted);
  }
  EXPECT_EQ(limit.try_enter(client(1, 4)), Admission::address_is_full);
  EXPECT_EQ(limit.try_enter(client(2)), Admission::admitted);
  limit.leave(client(1, 2));
  EXPECT_EQ(limit.try_enter(client(1, 4)), Admission::admitted);
  EXPECT_EQ(limit.try_enter(client(1, 5)), Admission::address_is_full);
}

TEST(ConnectionLimit, OneThatIsTurnedAwayTakesNoPlace) {
  ConnectionLimit limit(2, {.connections_max = 1, .hash_key = 7});
  EXPECT_EQ(limit.try_enter(client(1)), Admission::admitted);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(limit.try_enter(client(1)), Admission::address_is_full);
  EXPECT_EQ(limit.try_enter(client(2)), Admission::admitted);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(limit.try_enter(client(3)), Admission::node_is_full);
  limit.leave(client(2));
  EXPECT_EQ(limit.try_enter(client(3)), Admission::admitted);
}

TEST(ConnectionLimit, AnIPv6NetworkIsOneClient) {
  ConnectionLimit limit(100, {.connections_max = 2, .hash_key = 7});
  std::array<std::uint8_t, 16> ip{0x20, 0x01, 0x0d, 0xb8};
  for (const auto host : std::vector<std::uint8_t>{1, 2}) {
    ip[15] = host;
    EXPECT_EQ(limit.try_enter(Address::v6(ip, 1)), Admission::admitted);
  }
  ip[15] = 3;
  EXPECT_EQ(limit.try_enter(Address::v6(ip, 1)), Admission::address_is_full);
  ip[7] = 1;
  EXPECT_EQ(limit.try_enter(Address::v6(ip, 1)), Admission::admitted);
}

// As full as a node gets: nobody is refused for what others do, unless nearly at the limit anyway.
TEST(ConnectionLimit, ManyAddressesHardlyGetInEachOthersWay) {
  ConnectionLimit limit(8192, {.connections_max = 12, .hash_key = 99});
  int refused = 0;
  for (std::uint32_t i = 0; i < 8190; ++i) {
    refused += limit.try_enter(client(i % 819)) == Admission::admitted ? 0 : 1;
  }
  EXPECT_EQ(refused, 0);
  for (std::uint32_t i = 0; i < 8190; ++i) limit.leave(client(i % 819));
  for (std::uint32_t i = 0; i < 8192; ++i)
    EXPECT_EQ(limit.try_enter(client(i)), Admission::admitted);
}

}  // namespace
}  // namespace helenus::cql
