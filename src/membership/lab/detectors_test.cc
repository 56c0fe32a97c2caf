// The detectors that nodes do not run.
#include <set>

#include <gtest/gtest.h>

#include "membership/lab/prober.h"
#include "membership/lab/swim_detector.h"
#include "membership/lab/timeout_detector.h"
#include "membership/membership_test_support.h"

namespace helenus::membership {
namespace {

using namespace std::chrono_literals;
using model::NodeId;
using testing::at_ms;
using testing::node_of;

const NodeId kSelf = node_of(100);
const NodeId kPeer = node_of(1);

TEST(TimeoutDetector, ANodeIsDeadWhenItsTimeIsOver) {
  TimeoutDetector detector(10s);
  EXPECT_FALSE(detector.is_alive(kPeer, at_ms(0)));
  detector.heard(kPeer, at_ms(0));
  EXPECT_FALSE(detector.is_alive(kPeer, at_ms(0))) << "nobody watches it";
  detector.watch(kPeer);
  EXPECT_FALSE(detector.is_alive(kPeer, at_ms(0))) << "it was not heard of";
  detector.heard(kPeer, at_ms(1'000));
  detector.watch(kPeer);
  EXPECT_TRUE(detector.is_alive(kPeer, at_ms(10'999)));
  EXPECT_FALSE(detector.is_alive(kPeer, at_ms(11'000)));
  EXPECT_TRUE(detector.is_alive(kPeer, at_ms(0))) << "time that goes back has not passed";
  EXPECT_DOUBLE_EQ(detector.suspicion(kPeer, at_ms(6'000)), 0.5);
  detector.forget(kPeer);
  EXPECT_EQ(detector.suspicion(kPeer, at_ms(6'000)), FailureDetector::kUnheardOf);
}

constexpr SwimConfig kSwim = {
    .period = 1s, .acknowledgement_timeout = 300ms, .helpers = 2, .suspicion_timeout = 3s};

Probe acknowledgement_of(Probe ping) {
  ping.kind = Probe::Kind::acknowledgement;
  return ping;
}

TEST(SwimDetector, AnAcknowledgementKeepsANodeAlive) {
  base::Prng random(1);
  SwimDetector detector(kSelf, kSwim);
  EXPECT_TRUE(detector.tick(at_ms(0), random).empty());
  detector.watch(kPeer);
  const auto pings = detector.tick(at_ms(0), random);
  ASSERT_EQ(pings.size(), 1U);
  EXPECT_EQ(pings[0].to, kPeer);
  EXPECT_EQ(pings[0].probe.kind, Probe::Kind::ping);
  EXPECT_FALSE(detector.is_alive(kPeer, at_ms(100)));
  detector.acknowledged(acknowledgement_of(pings[0].probe), at_ms(100));
  EXPECT_TRUE(detector.is_alive(kPeer, at_ms(100)));
  EXPECT_TRUE(detector.tick(at_ms(400), random).empty()) << "no helpers are asked";
  EXPECT_EQ(detector.tick(at_ms(1'000), random).size(), 1U) << "the next period";
}

TEST(SwimDetector, HelpersAreAskedThenItIsSuspectedThenDead) {
  base::Prng random(1);
  SwimDetector detector(kSelf, kSwim);
  detector.watch(kPeer);
  const auto pings = detector.tick(at_ms(0), random);
  for (int i = 2; i <= 5; ++i) {
    detector.watch(node_of(static_cast<std::uint64_t>(i)));
    detector.heard(node_of(static_cast<std::uint64_t>(i)), at_ms(0));
  }
  detector.heard(kPeer, at_ms(0));
  EXPECT_TRUE(detector.tick(at_ms(299), random).empty());
  const auto requests = detector.tick(at_ms(300), random);
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_NE(requests[0].to, requests[1].to);
  for (const OutgoingProbe& request : requests) {
    EXPECT_NE(request.to, kPeer);
    EXPECT_EQ(request.probe.kind, Probe::Kind::ping_request);
    EXPECT_EQ(request.probe.subject, kPeer);
    EXPECT_EQ(request.probe.number, pings[0].probe.number);
  }
  detector.tick(at_ms(999), random);
  EXPECT_EQ(detector.suspicion(kPeer, at_ms(999)), 0);
  detector.tick(at_ms(1'000), random);
  EXPECT_TRUE(detector.is_alive(kPeer, at_ms(3'999))) << "suspected is not dead";
  EXPECT_FALSE(detector.is_alive(kPeer, at_ms(4'000)));
  detector.acknowledged(acknowledgement_of(pings[0].probe), at_ms(4'000));
  EXPECT_FALSE(detector.is_alive(kPeer, at_ms(4'000))) << "too old an acknowledgement";
  detector.heard(kPeer, at_ms(4'100));
  EXPECT_EQ(detector.suspicion(kPeer, at_ms(4'100)), 0) << "a heartbeat refutes";
}

TEST(SwimDetector, APauseHereIsNoFailureThere) {
  base::Prng random(1);
  SwimDetector detector(kSelf, kSwim);
  detector.watch(kPeer);
  detector.heard(kPeer, at_ms(0));
  const auto pings = detector.tick(at_ms(0), random);
  detector.tick(at_ms(60'000), random);
  EXPECT_EQ(detector.suspicion(kPeer, at_ms(60'000)), 0);
  detector.acknowledged(acknowledgement_of(pings[0].probe), at_ms(60'010));
  detector.tick(at_ms(61'500), random);
  EXPECT_EQ(detector.suspicion(kPeer, at_ms(61'500)), 0);
}

TEST(SwimDetector, EverybodyIsAskedInTurnAtAConstantRate) {
  base::Prng random(7);
  SwimDetector detector(kSelf, kSwim);
  constexpr std::uint64_t kNodes = 20;
  for (std::uint64_t i = 1; i <= kNodes; ++i) detector.watch(node_of(i));
  for (std::uint64_t lap = 0; lap < 3; ++lap) {
    std::set<NodeId> asked;
    for (std::uint64_t i = 0; i < kNodes; ++i) {
      const auto now = at_ms(static_cast<std::int64_t>(1'000 * (kNodes * lap + i)));
      const auto pings = detector.tick(now, random);
      ASSERT_EQ(pings.size(), 1U);
      asked.insert(pings[0].to);
      detector.acknowledged(acknowledgement_of(pings[0].probe), now);
    }
    EXPECT_EQ(asked.size(), kNodes);
  }
}

TEST(SwimDetector, ANodeForgottenWhileItIsAskedIsNotMissed) {
  base::Prng random(1);
  SwimDetector detector(kSelf, kSwim);
  detector.watch(kPeer);
  detector.tick(at_ms(0), random);
  detector.forget(kPeer);
  EXPECT_TRUE(detector.tick(at_ms(300), random).empty());
  EXPECT_TRUE(detector.tick(at_ms(2'000), random).empty());
  EXPECT_FALSE(detector.is_alive(kPeer, at_ms(2'000)));
}

TEST(Probe, GoesThroughAHelperAndBack) {
  const NodeId helper = node_of(2);
  const Probe request = {Probe::Kind::ping_request, 9, kSelf, kPeer};
  const auto to_subject = answer_to(request, kSelf, helper);
  ASSERT_TRUE(to_subject);
  EXPECT_EQ(to_subject->to, kPeer);
  const auto to_helper = answer_to(to_subject->probe, helper, kPeer);
  ASSERT_TRUE(to_helper);
  EXPECT_EQ(to_helper->to, helper);
  const auto to_origin = answer_to(to_helper->probe, kPeer, helper);
  ASSERT_TRUE(to_origin);
  EXPECT_EQ(*to_origin, (OutgoingProbe{kSelf, {Probe::Kind::acknowledgement, 9, kSelf, kPeer}}));
  EXPECT_FALSE(answer_to(to_origin->probe, helper, kSelf)) << "it has arrived";
}

TEST(Probe, WhatIsMeantForOthersIsNotAnswered) {
  const NodeId other = node_of(2);
  EXPECT_FALSE(answer_to({Probe::Kind::ping, 1, kSelf, kPeer}, kSelf, other));
  EXPECT_FALSE(answer_to({Probe::Kind::ping_request, 1, kSelf, kPeer}, node_of(3), other));
  EXPECT_FALSE(answer_to({Probe::Kind::acknowledgement, 1, kSelf, kPeer}, node_of(3), other));
  EXPECT_EQ(answer_to({Probe::Kind::ping_request, 1, kSelf, other}, kSelf, other),
            (OutgoingProbe{kSelf, {Probe::Kind::acknowledgement, 1, kSelf, other}}));
}

TEST(Probe, TakesWhatAMessageOfGossipWould) {
  const Probe probe = {Probe::Kind::ping, 300, kSelf, kPeer};
  EXPECT_EQ(encoded_size(probe, "troy"), 1U + 1 + 5 + 16 + 1 + 2 + 16 + 16);
}

// A machine that has heard of kPeer.
Membership machine_with(std::unique_ptr<FailureDetector> detector) {
  base::Prng random(1);
  Membership machine({.cluster = "troy", .self = kSelf, .limits = {}}, std::move(detector));
  const Delta delta{.node = kPeer,
                    .generation = 1,
                    .after = 0,
                    .states = {{StateKey::status, 1, encode_status(Status::normal)}}};
  const Message tidings{.cluster = "troy", .sender = kPeer, .body = Closing{{delta}}};
  EXPECT_TRUE(machine.receive(tidings, at_ms(0), random));
  return machine;
}

TEST(Prober, AnswersWhicheverDetectorRuns) {
  const Membership machine = machine_with(std::make_unique<TimeoutDetector>(10s));
  Prober prober(machine, nullptr);
  base::Prng random(1);
  EXPECT_TRUE(prober.tick(at_ms(0), random).empty());
  const auto answer = prober.receive({Probe::Kind::ping, 4, kPeer, kSelf}, kPeer, at_ms(0));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->to, kPeer);
  EXPECT_FALSE(prober.receive({Probe::Kind::ping_request, 4, kPeer, node_of(55)}, kPeer, at_ms(0)))
      << "a node nobody here knows is not called";
}

TEST(Prober, ASwimNodeHearsItsAcknowledgement) {
  auto made = std::make_unique<SwimDetector>(kSelf, SwimConfig{});
  SwimDetector* swim = made.get();
  Membership machine = machine_with(std::move(made));
  Prober prober(machine, swim);
  base::Prng random(1);
  EXPECT_TRUE(machine.tick(at_ms(50)).events.empty());
  const auto pings = prober.tick(at_ms(100), random);
  ASSERT_EQ(pings.size(), 1U);
  EXPECT_FALSE(prober.receive(acknowledgement_of(pings[0].probe), kPeer, at_ms(150)));
  const Output out = machine.tick(at_ms(200));
  ASSERT_EQ(out.events.size(), 1U);
  EXPECT_EQ(out.events[0].kind, Event::Kind::up);
}

}  // namespace
}  // namespace helenus::membership
