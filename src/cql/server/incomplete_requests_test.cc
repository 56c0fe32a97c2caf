#include "cql/server/incomplete_requests.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace helenus::cql {
namespace {

using runtime::Address;

constexpr std::size_t kMib = std::size_t{1} << 20;

Address client(std::uint8_t number, std::uint16_t port = 1) {
  return Address::v4({192, 0, 2, number}, port);
}

TEST(IncompleteRequests, AddressesHaveTheirShareAndAllTogetherTheirs) {
  IncompleteRequests bodies({.bytes_max = 100, .bytes_per_address_max = 60}, 1);
  IncompleteRequests::Charge with_the_turn(bodies, client(9));
  EXPECT_TRUE(with_the_turn.grow_to(61));
  IncompleteRequests::Charge first(bodies, client(1));
  IncompleteRequests::Charge again(bodies, client(1, 2));
  IncompleteRequests::Charge other(bodies, client(2));
  EXPECT_TRUE(first.grow_to(40));
  EXPECT_FALSE(again.grow_to(21)) << "the address has its share";
  EXPECT_EQ(again.bytes(), 0U);
  EXPECT_TRUE(again.grow_to(20));
  EXPECT_FALSE(other.grow_to(41)) << "all together have theirs";
  EXPECT_TRUE(other.grow_to(40));
  EXPECT_TRUE(other.grow_to(30)) << "it holds as many already";
  EXPECT_EQ(other.bytes(), 40U);
  EXPECT_EQ(bodies.bytes(), 100U);
  first.release();
  EXPECT_FALSE(other.grow_to(61));
  EXPECT_TRUE(other.grow_to(60));
  EXPECT_EQ(bodies.bytes(), 80U);
}

TEST(IncompleteRequests, OneAtATimeIsLetInBesideTheParts) {
  IncompleteRequests bodies({.bytes_max = 100, .bytes_per_address_max = 60}, 1);
  IncompleteRequests::Charge first(bodies, client(1));
  IncompleteRequests::Charge second(bodies, client(1, 2));
  IncompleteRequests::Charge third(bodies, client(1, 3));
  EXPECT_TRUE(first.grow_to(50));
  EXPECT_TRUE(second.grow_to(10));
  EXPECT_TRUE(second.grow_to(50)) << "it takes the turn, and gives back what it had";
  EXPECT_EQ(bodies.bytes(), 50U);
  EXPECT_FALSE(third.grow_to(11));
  EXPECT_TRUE(third.grow_to(10));
  EXPECT_TRUE(second.grow_to(70));
  EXPECT_EQ(second.bytes(), 70U);
  EXPECT_EQ(bodies.bytes(), 60U);
  second.release();
  EXPECT_EQ(bodies.bytes(), 60U);
  EXPECT_TRUE(third.grow_to(90)) << "the turn is its own now";
  EXPECT_FALSE(second.grow_to(11));
  third.release();
  EXPECT_TRUE(second.grow_to(10));
  EXPECT_EQ(bodies.bytes(), 60U);
}

TEST(IncompleteRequests, LeaveAQuarterForRequestsThatAreThereAndLetOneBodyInAlways) {
  const auto usual = IncompleteRequests::limits_within(256 * kMib, 16 * kMib);
  EXPECT_EQ(usual.bytes_max, 192 * kMib);
  EXPECT_EQ(usual.bytes_per_address_max, 96 * kMib);
  const auto large = IncompleteRequests::limits_within(256 * kMib, 127 * kMib);
  EXPECT_EQ(large.bytes_max, 192 * kMib);
  EXPECT_EQ(large.bytes_per_address_max, 127 * kMib);
  const auto small = IncompleteRequests::limits_within(100, 90);
  EXPECT_EQ(small.bytes_max, 90U);
  EXPECT_EQ(small.bytes_per_address_max, 90U);
}

TEST(IncompleteRequests, WhatIsRefusedOrGoneTakesNothing) {
  IncompleteRequests bodies({.bytes_max = 1000, .bytes_per_address_max = 400}, 7);
  base::Prng dice(1);
  std::vector<std::unique_ptr<IncompleteRequests::Charge>> charges;
  for (std::uint8_t i = 0; i < 20; ++i) {
    charges.push_back(std::make_unique<IncompleteRequests::Charge>(bodies, client(i % 5)));
  }
  std::size_t refused = 0;
  for (int step = 0; step < 10'000; ++step) {
    auto& charge = charges[dice.below(charges.size())];
    if (dice.chance(0.4)) {
      charge->release();
    } else {
      refused += charge->grow_to(dice.below(200)) ? 0 : 1;
    }
    std::size_t sum = 0;
    std::vector<std::size_t> of_address(5);
    for (std::size_t i = 0; i < charges.size(); ++i) {
      sum += charges[i]->bytes();
      of_address[i % 5] += charges[i]->bytes();
    }
    ASSERT_LE(bodies.bytes(), sum);
    ASSERT_GE(bodies.bytes() + 200, sum);
    ASSERT_LE(bodies.bytes(), 1000U);
    for (const std::size_t bytes : of_address) ASSERT_LE(bytes, 400U + 200U);
  }
  EXPECT_GT(refused, 0U);
  charges.clear();
  EXPECT_EQ(bodies.bytes(), 0U);
}

}  // namespace
}  // namespace helenus::cql
