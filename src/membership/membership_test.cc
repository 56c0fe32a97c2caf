#include "membership/membership.h"

#include <set>

#include <gtest/gtest.h>

#include "membership/lab/timeout_detector.h"
#include "membership/membership_test_support.h"

namespace helenus::membership {
namespace {

using namespace std::chrono_literals;
using base::Errc;
using model::NodeId;
using testing::at_ms;
using testing::node_of;
using Kind = Event::Kind;

const NodeId kSelf = node_of(100);
const NodeId kPeer = node_of(1);

MembershipConfig config_of(NodeId self, std::uint32_t seeds = 0) {
  MembershipConfig config;
  config.cluster = "troy";
  config.self = self;
  config.seed_count = seeds;
  return config;
}

Membership node_with_timeout(NodeId self, std::uint32_t seeds = 0) {
  return {config_of(self, seeds), std::make_unique<TimeoutDetector>(10s)};
}

// What a peer says: its states from the first version on, the last one its heartbeat.
Message tidings(Generation generation, Version beats, std::optional<Status> status) {
  Delta delta{.node = kPeer, .generation = generation, .after = 0, .states = {}};
  if (status) delta.states.push_back({StateKey::status, 1, encode_status(*status)});
  delta.states.push_back({StateKey::heartbeat, 1 + beats, {}});
  return {.cluster = "troy", .sender = kPeer, .body = Closing{{delta}}};
}

std::vector<Kind> kinds(const Output& output) {
  std::vector<Kind> result;
  for (const Event& event : output.events) result.push_back(event.kind);
  return result;
}

TEST(Membership, AStrangerIsRefusedAndChangesNothing) {
  base::Prng random(1);
  Membership node = node_with_timeout(kSelf);
  Message message = tidings(1, 1, Status::normal);
  message.cluster = "sparta";
  const auto output = node.receive(message, at_ms(0), random);
  ASSERT_TRUE(output.failed_with(Errc::refused));
  EXPECT_NE(output.error().context().find("sparta"), std::string_view::npos);
  EXPECT_NE(output.error().context().find("troy"), std::string_view::npos);
  EXPECT_EQ(node.gossip().nodes().size(), 1U);
}

TEST(Membership, ItsOwnVoiceIsNotAPeer) {
  base::Prng random(1);
  Membership node = node_with_timeout(kSelf, 1);
  const Output out = node.round(at_ms(0), random);
  ASSERT_EQ(out.messages.size(), 1U);
  EXPECT_EQ(std::get<Seed>(out.messages[0].to), Seed(0));
  const auto output = node.receive(out.messages[0].message, at_ms(0), random);
  ASSERT_TRUE(output);
  EXPECT_TRUE(output->messages.empty());
}

TEST(Membership, ANodeIsUpOnceItsHeartIsSeenBeating) {
  base::Prng random(1);
  Membership node = node_with_timeout(kSelf);
  Output out = *node.receive(tidings(1, 1, Status::normal), at_ms(0), random);
  EXPECT_EQ(kinds(out), std::vector{Kind::new_node}) << "it may have died long ago";
  EXPECT_TRUE(node.tick(at_ms(500)).events.empty());
  out = *node.receive(tidings(1, 1, Status::normal), at_ms(600), random);
  EXPECT_TRUE(out.events.empty());
  out = *node.receive(tidings(1, 2, Status::normal), at_ms(1'000), random);
  EXPECT_EQ(kinds(out), std::vector{Kind::up});
  for (int i = 2; i <= 10; ++i) EXPECT_TRUE(node.tick(at_ms(1'000 * i)).events.empty());
  EXPECT_EQ(kinds(node.tick(at_ms(11'000))), std::vector{Kind::down});
  EXPECT_TRUE(node.tick(at_ms(12'000)).events.empty());
  out = *node.receive(tidings(1, 3, Status::left), at_ms(13'000), random);
  EXPECT_EQ(kinds(out), std::vector{Kind::up}) << "an older version's value is not taken again";
}

TEST(Membership, WhoHasJustStartedGreetsSomeOfThoseItWasToldOf) {
  base::Prng random(1);
  Membership node = node_with_timeout(kSelf);
  EXPECT_TRUE(node.greet({}, random).messages.empty());
  std::vector<NodeId> others;
  for (std::uint64_t number = 1; number < 30; ++number) others.push_back(node_of(number));
  std::set<NodeId> greeted;
  for (const Outgoing& outgoing : node.greet(others, random).messages) {
    greeted.insert(std::get<NodeId>(outgoing.to));
    EXPECT_TRUE(std::holds_alternative<Opening>(outgoing.message.body));
  }
  EXPECT_EQ(greeted.size(), Membership::kSpreadPeersMax) << "nobody twice";
  // Who is greeted tells what it knows.
  Membership other = node_with_timeout(node_of(1));
  const Output greeting = node.greet({node_of(1)}, random);
  const auto answer = other.receive(greeting.messages.front().message, at_ms(1), random);
  ASSERT_TRUE(answer && answer->messages.size() == 1);
  ASSERT_TRUE(node.receive(answer->messages.front().message, at_ms(2), random));
  EXPECT_NE(node.view().find(node_of(1)), nullptr);
}

TEST(Membership, WhatIsUrgentIsSpreadToSomeWhoLive) {
  base::Prng random(1);
  Membership node = node_with_timeout(kSelf);
  const auto meet = [&](std::uint64_t number, int beats) {
    for (int beat = 1; beat <= beats; ++beat) {
      Message message = tidings(1, static_cast<Version>(beat), Status::normal);
      std::get<Closing>(message.body).deltas.front().node = node_of(number);
      ASSERT_TRUE(node.receive(message, at_ms(beat), random));
    }
  };
  EXPECT_TRUE(node.spread(random).messages.empty());
  meet(1, 2);
  meet(2, 1);
  ASSERT_EQ(node.spread(random).messages.size(), 1U) << "whether the other one lives is not known";
  EXPECT_EQ(node.spread(random).messages.front().to, (std::variant<NodeId, Seed>(node_of(1))));
  for (std::uint64_t number = 3; number < 30; ++number) meet(number, 2);
  std::set<NodeId> told;
  for (const Outgoing& outgoing : node.spread(random).messages) {
    told.insert(std::get<NodeId>(outgoing.to));
    EXPECT_EQ(outgoing.message.body, Body(node.gossip().open_self()));
  }
  EXPECT_EQ(told.size(), Membership::kSpreadPeersMax) << "nobody twice";
  EXPECT_TRUE(node.tick(at_ms(20)).events.empty()) << "no beat was spent on it";
}

TEST(Membership, ARestartIsDownThenUp) {
  base::Prng random(1);
  Membership node = node_with_timeout(kSelf);
  ASSERT_TRUE(node.receive(tidings(1, 1, Status::normal), at_ms(0), random));
  ASSERT_TRUE(node.receive(tidings(1, 2, Status::normal), at_ms(1'000), random));
  Output out = *node.receive(tidings(2, 1, std::nullopt), at_ms(2'000), random);
  EXPECT_EQ(kinds(out), std::vector{Kind::down});
  EXPECT_EQ(node.view().find(kPeer)->status, Status::normal) << "until the new life says more";
  out = *node.receive(tidings(2, 2, std::nullopt), at_ms(3'000), random);
  EXPECT_EQ(kinds(out), std::vector{Kind::up});
}

TEST(Membership, AStatusOfALaterReleaseLeavesTheOneBefore) {
  base::Prng random(1);
  Membership node = node_with_timeout(kSelf);
  ASSERT_TRUE(node.receive(tidings(1, 1, Status::normal), at_ms(0), random));
  const Delta strange{.node = kPeer,
                      .generation = 1,
                      .after = 2,
                      .states = {{StateKey::status, 3, base::Bytes::copy_of("\x63")}}};
  const Message message{.cluster = "troy", .sender = kPeer, .body = Closing{{strange}}};
  EXPECT_TRUE(node.receive(message, at_ms(1), random)->events.empty());
  EXPECT_EQ(node.view().find(kPeer)->status, Status::normal);
}

TEST(Membership, ANodeThatWasHeldUpBlamesNobody) {
  base::Prng random(1);
  Membership node = node_with_timeout(kSelf);
  ASSERT_TRUE(node.receive(tidings(1, 1, Status::normal), at_ms(0), random));
  ASSERT_TRUE(node.receive(tidings(1, 2, Status::normal), at_ms(1'000), random));
  node.tick(at_ms(2'000));
  EXPECT_TRUE(node.tick(at_ms(3'600'000)).events.empty());
  EXPECT_TRUE(node.tick(at_ms(3'604'000)).events.empty());
  EXPECT_EQ(kinds(node.tick(at_ms(3'605'000))), std::vector{Kind::down})
      << "there was time to hear of it";
}

TEST(Membership, WhomAnOperatorRemovesIsGoneOnce) {
  base::Prng random(1);
  Membership node = node_with_timeout(kSelf);
  ASSERT_TRUE(node.receive(tidings(1, 1, Status::normal), at_ms(0), random));
  EXPECT_EQ(kinds(node.forget(kPeer)), std::vector{Kind::removed_node});
  EXPECT_TRUE(node.forget(kPeer).events.empty());
  EXPECT_TRUE(node.receive(tidings(1, 5, Status::normal), at_ms(1), random)->events.empty());
  EXPECT_EQ(node.view().find(kPeer), nullptr);
}

}  // namespace
}  // namespace helenus::membership
