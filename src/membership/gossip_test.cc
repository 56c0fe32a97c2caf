#include "membership/gossip.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "membership/membership_test_support.h"

namespace helenus::membership {
namespace {

using base::Errc;
using model::NodeId;
using testing::first_delta;
using testing::key_of;
using testing::node_of;
using testing::value_of;

GossipLimits small_limits(DeltaOrder order) {
  GossipLimits limits;
  limits.digest_bytes_max = GossipLimits::kDigestBytesMin;
  limits.delta_bytes_max = GossipLimits::kDeltaBytesMin;
  limits.order = order;
  return limits;
}

Gossip::Received deliver(Gossip& to, const Body& body, base::Prng& random) {
  if (const auto* opening = std::get_if<Opening>(&body)) return to.receive(*opening, random);
  if (const auto* answer = std::get_if<Answer>(&body)) return to.receive(*answer, random);
  return to.receive(std::get<Closing>(body));
}

// One whole exchange, begun by the first.
void exchange(Gossip& a, Gossip& b, base::Prng& random) {
  const Gossip::Received answer = deliver(b, a.open(), random);
  if (!answer.reply) return;
  const Gossip::Received closing = deliver(a, *answer.reply, random);
  if (closing.reply) deliver(b, *closing.reply, random);
}

// A node that was told of nodes 1 to `count`.
Gossip knowing(std::uint64_t count, NodeId self, const GossipLimits& limits) {
  Gossip gossip(self, 1, limits);
  Closing closing;
  for (std::uint64_t i = 1; i <= count; ++i) closing.deltas.push_back(first_delta(node_of(i)));
  gossip.receive(closing);
  return gossip;
}

TEST(Gossip, OneExchangeMakesTwoNodesEqual) {
  base::Prng random(1);
  Gossip a(node_of(1), 1, {});
  Gossip b(node_of(2), 1, {});
  ASSERT_TRUE(a.set(StateKey::status, encode_status(Status::normal)));
  ASSERT_TRUE(b.set(StateKey::load, encode_load(77)));
  exchange(a, b, random);
  EXPECT_EQ(a.nodes(), b.nodes());
  EXPECT_EQ(*a.find(node_of(2))->find(StateKey::load), encode_load(77));
  EXPECT_FALSE(deliver(b, a.open(), random).reply) << "there is nothing left to say";
}

TEST(Gossip, WhatANodeSaysOfItselfHasLimits) {
  Gossip gossip(node_of(1), 1, {});
  EXPECT_TRUE(gossip.set(StateKey::heartbeat, {}).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(gossip.set(key_of(kStateKeyCountMax), {}).failed_with(Errc::invalid_argument));
  const auto too_long = value_of(kStateValueBytesMax + 1);
  EXPECT_TRUE(gossip.set(StateKey::tokens, too_long).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(gossip.set(StateKey::tokens, value_of(kStateValueBytesMax)));
  const Version version = gossip.own().version();
  EXPECT_TRUE(gossip.set(StateKey::tokens, value_of(kStateValueBytesMax)));
  EXPECT_EQ(gossip.own().version(), version) << "the same again is no change";
}

TEST(Gossip, ProgressTellsWhatIsNews) {
  base::Prng random(1);
  Gossip a(node_of(1), 1, {});
  Gossip b(node_of(2), 1, {});
  const auto news = [&] {
    const auto answer = deliver(b, a.open(), random);
    return deliver(a, answer.reply.value_or(Closing{}), random).progress;
  };
  auto progress = news();
  ASSERT_EQ(progress.size(), 1U);
  EXPECT_TRUE(progress[0].learned);
  EXPECT_FALSE(progress[0].heartbeat) << "the first beat may be an old one";
  b.beat();
  progress = news();
  ASSERT_EQ(progress.size(), 1U);
  EXPECT_TRUE(progress[0].heartbeat);
  EXPECT_FALSE(progress[0].learned || progress[0].restarted);
  EXPECT_TRUE(progress[0].changed(StateKey::heartbeat));
  EXPECT_TRUE(news().empty());
  b = Gossip(node_of(2), 2, {});
  ASSERT_TRUE(b.set(StateKey::rack, value_of(3)));
  progress = news();
  ASSERT_EQ(progress.size(), 1U);
  EXPECT_TRUE(progress[0].restarted && progress[0].changed(StateKey::rack));
  EXPECT_FALSE(progress[0].heartbeat || progress[0].changed(StateKey::load));
}

TEST(Gossip, DepthSendsTheMostStaleNodeFirstAndBreadthTheOldestOfEach) {
  base::Prng random(3);
  for (const DeltaOrder order : {DeltaOrder::breadth, DeltaOrder::depth}) {
    Gossip sender(node_of(9), 1, small_limits(order));
    Delta many = first_delta(node_of(1));
    Delta few = first_delta(node_of(2));
    // Two of these values fit into a message, three do not.
    for (const unsigned key : {1U, 2U, 3U, 4U}) {
      many.states.push_back({key_of(key), 1 + key, value_of(3'000)});
    }
    few.states.push_back({key_of(1), 2, value_of(3'000)});
    sender.receive(Closing{{many, few}});
    const Opening all_but_sender = {{.arc = {.after = {}, .last = node_of(2)}, .nodes = {}}};
    const auto answer = std::get<Answer>(*sender.receive(all_but_sender, random).reply);
    ASSERT_EQ(answer.deltas.size(), 2U) << "a heartbeat always finds room";
    const std::size_t of_many = answer.deltas[0].states.size();
    const std::size_t of_few = answer.deltas[1].states.size();
    if (order == DeltaOrder::breadth) {
      EXPECT_EQ(of_many, 2U);
      EXPECT_EQ(of_few, 2U);
    } else {
      EXPECT_EQ(of_many, 3U);
      EXPECT_EQ(of_few, 1U);
    }
  }
}

TEST(Gossip, AnAnswerToAnEarlierLifeLeavesNoGap) {
  base::Prng random(1);
  Gossip peer(node_of(2), 1, {});
  ASSERT_TRUE(peer.set(StateKey::rack, value_of(3)));
  Gossip before(node_of(1), 1, {});
  exchange(before, peer, random);
  const Opening asked = before.open();
  ASSERT_TRUE(peer.set(StateKey::load, encode_load(1)));
  const auto late = deliver(peer, asked, random);
  Gossip after(node_of(1), 2, {});
  deliver(after, *late.reply, random);
  EXPECT_EQ(after.statistics().deltas_with_gap, 1U);
  EXPECT_EQ(after.find(node_of(2)), nullptr);
  exchange(after, peer, random);
  EXPECT_EQ(*after.find(node_of(2)), peer.own());
}

TEST(Gossip, ANodeWhoseClockWasSetBackOutlivesItsFormerSelf) {
  base::Prng random(1);
  Gossip peer(node_of(2), 1, {});
  Gossip first_life(node_of(1), 5'000, {});
  exchange(first_life, peer, random);
  Gossip second_life(node_of(1), 4'000, {});
  ASSERT_TRUE(second_life.set(StateKey::rack, value_of(5)));
  exchange(peer, second_life, random);
  exchange(second_life, peer, random);
  EXPECT_EQ(second_life.own().generation(), 5'001U);
  EXPECT_EQ(second_life.statistics().generations_raised, 1U);
  EXPECT_EQ(*peer.find(node_of(1)), second_life.own());
}

TEST(Gossip, ARestartInTheSameGenerationIsNoticedWhereVersionsTell) {
  base::Prng random(1);
  Gossip peer(node_of(2), 1, {});
  Gossip first_life(node_of(1), 7, {});
  for (int i = 0; i < 10; ++i) first_life.beat();
  exchange(first_life, peer, random);
  Gossip second_life(node_of(1), 7, {});
  exchange(second_life, peer, random);
  exchange(second_life, peer, random);
  EXPECT_EQ(second_life.own().generation(), 8U);
  EXPECT_EQ(*peer.find(node_of(1)), second_life.own());
}

TEST(Gossip, NobodyIsPushedToTheEndOfTheGenerations) {
  base::Prng random(1);
  Gossip gossip(node_of(1), 1, {});
  gossip.receive(Opening{{.arc = {}, .nodes = {{node_of(1), kGenerationMax, 1}}}}, random);
  EXPECT_EQ(gossip.own().generation(), 1U);
}

TEST(Gossip, DigestsCoverALargeClusterArcByArc) {
  base::Prng random(1);
  constexpr std::uint64_t kNodes = 50;
  Gossip full = knowing(kNodes, node_of(100), small_limits(DeltaOrder::breadth));
  Gossip empty(node_of(200), 1, small_limits(DeltaOrder::breadth));
  std::size_t named = 0;
  std::size_t openings = 0;
  do {
    const Opening opening = full.open();
    named += opening.digest.nodes.size();
    ++openings;
    EXPECT_LE(opening.digest.nodes.size(), 4U);
    if (!opening.digest.arc.last) break;
  } while (openings < 100);
  EXPECT_EQ(named, kNodes + 1);
  EXPECT_FALSE(full.open().digest.arc.after) << "it begins again";
  for (int round = 0; round < 60; ++round) exchange(full, empty, random);
  EXPECT_EQ(empty.nodes().size(), kNodes + 2);
  EXPECT_EQ(empty.nodes(), full.nodes());
}

TEST(Gossip, AnArcOfItsOwnTellsOfANodeAtOnceWhateverTheSizeOfTheCluster) {
  base::Prng random(1);
  const NodeId self = node_of(100);
  for (const std::uint64_t nodes : {0U, 50U}) {
    Gossip teller = knowing(nodes, self, small_limits(DeltaOrder::breadth));
    Gossip other(node_of(200), 1, {});
    ASSERT_TRUE(teller.set(StateKey::load, encode_load(77)));
    const Opening opening = teller.open_self();
    EXPECT_EQ(opening.digest.nodes.size(), 1U);
    const auto answer = deliver(other, opening, random);
    ASSERT_TRUE(answer.reply);
    const auto closing = deliver(teller, *answer.reply, random);
    ASSERT_TRUE(closing.reply);
    deliver(other, *closing.reply, random);
    ASSERT_NE(other.find(self), nullptr);
    EXPECT_EQ(*other.find(self), teller.own());
    EXPECT_EQ(other.nodes().size(), 2U) << "of nobody else";
  }
}

TEST(Gossip, AForgottenNodeStaysForgottenUntilItLivesAgain) {
  base::Prng random(1);
  GossipLimits limits;
  limits.quarantine_rounds = 3;
  Gossip a = knowing(1, node_of(10), limits);
  Gossip b = knowing(1, node_of(11), limits);
  a.forget(node_of(1));
  a.forget(node_of(42));
  exchange(a, b, random);
  exchange(b, a, random);
  EXPECT_EQ(a.find(node_of(1)), nullptr);
  EXPECT_GT(a.statistics().nodes_quarantined, 0U);
  const auto reply = deliver(a, Opening{{.arc = {}, .nodes = {{node_of(1), 1, 9}}}}, random).reply;
  EXPECT_TRUE(std::get<Answer>(*reply).wanted.empty());
  a.receive(Closing{{first_delta(node_of(1), 2)}});
  EXPECT_NE(a.find(node_of(1)), nullptr) << "another life of it";
  a.forget(node_of(1));
  for (int round = 0; round < 3; ++round) a.beat();
  a.receive(Closing{{first_delta(node_of(1), 2)}});
  EXPECT_NE(a.find(node_of(1)), nullptr) << "the quarantine is over";
}

TEST(Gossip, NodesBeyondTheLimitAreNeitherTakenNorAskedFor) {
  base::Prng random(1);
  GossipLimits limits;
  limits.nodes_max = 3;
  Gossip gossip = knowing(10, node_of(100), limits);
  EXPECT_EQ(gossip.nodes().size(), 3U);
  EXPECT_EQ(gossip.statistics().nodes_over_limit, 8U);
  const auto reply =
      deliver(gossip, Opening{{.arc = {}, .nodes = {{node_of(5), 1, 9}}}}, random).reply;
  EXPECT_TRUE(std::get<Answer>(*reply).wanted.empty());
}

// A few nodes whose exchanges overlap, are lost, come twice or late, and a record of what each node
// ever said, to hold the invariant of gossip.h against.
class Crowd {
 public:
  Crowd(std::size_t count, const GossipLimits& limits, std::uint64_t seed)
      : limits_(limits), random_(seed) {
    for (std::size_t i = 0; i < count; ++i) nodes_.emplace_back(node_of(i + 1), 1, limits);
  }

  void step() {
    Gossip& node = one();
    switch (random_.below(8)) {
      case 0:
        node.beat();
        break;
      case 1:
      case 2: {
        const auto key = key_of(static_cast<unsigned>(random_.between(1, kStateKeyCountMax - 1)));
        const std::size_t size = random_.chance(0.2) ? kStateValueBytesMax : random_.below(50);
        const char fill = static_cast<char>('a' + random_.below(26));
        ASSERT_TRUE(node.set(key, value_of(size, fill)));
        break;
      }
      case 3:
        send(node, one(), node.open());
        break;
      case 4:
        if (random_.chance(0.05)) {
          node = Gossip(node.self(), node.own().generation() + 1, limits_);
        }
        break;
      default:
        if (!on_the_way_.empty()) deliver_one();
    }
  }

  // Nothing is lost any more: everybody talks to the next one until all know all.
  void heal() {
    on_the_way_.clear();
    for (int round = 0; round < 400; ++round) {
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        exchange(nodes_[i], nodes_[(i + 1 + random_.below(nodes_.size() - 1)) % nodes_.size()],
                 random_);
      }
    }
  }

  void expect_prefixes() const {
    for (const Gossip& owner : nodes_) {
      for (const Gossip& knower : nodes_) {
        const NodeStates* known = knower.find(owner.self());
        if (known == nullptr || known->generation() != owner.own().generation()) continue;
        for (const State& state : owner.own().states()) {
          if (state.version > known->version()) break;
          const base::Bytes* value = known->find(state.key);
          ASSERT_TRUE(value != nullptr && *value == state.value);
        }
        ASSERT_LE(known->version(), owner.own().version());
      }
    }
  }

  void expect_agreement() const {
    for (const Gossip& node : nodes_) ASSERT_EQ(node.nodes(), nodes_.front().nodes());
  }

 private:
  struct Letter {
    NodeId from;
    NodeId to;
    Body body;
  };

  Gossip& one() { return nodes_[random_.below(nodes_.size())]; }
  Gossip& named(NodeId id) {
    return *std::ranges::find_if(nodes_, [&](const Gossip& node) { return node.self() == id; });
  }
  void send(const Gossip& from, const Gossip& to, Body body) {
    if (from.self() == to.self()) return;
    const std::size_t bytes = encode({.cluster = "c", .sender = from.self(), .body = body}).size();
    ASSERT_LE(bytes, limits_.digest_bytes_max + limits_.delta_bytes_max + 64);
    if (random_.chance(0.2)) return;
    if (random_.chance(0.1)) on_the_way_.push_back({from.self(), to.self(), body});
    on_the_way_.push_back({from.self(), to.self(), std::move(body)});
  }
  void deliver_one() {
    std::swap(on_the_way_[random_.below(on_the_way_.size())], on_the_way_.back());
    const Letter letter = std::move(on_the_way_.back());
    on_the_way_.pop_back();
    Gossip& to = named(letter.to);
    const Gossip::Received received = deliver(to, letter.body, random_);
    if (received.reply) send(to, named(letter.from), *received.reply);
  }

  GossipLimits limits_;
  base::Prng random_;
  std::vector<Gossip> nodes_;
  std::vector<Letter> on_the_way_;
};

TEST(Gossip, KnowsAPrefixOfEveryNodeWhateverIsLostOrLateAndAgreesInTheEnd) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(seed);
    const DeltaOrder order = seed % 2 == 0 ? DeltaOrder::breadth : DeltaOrder::depth;
    Crowd crowd(2 + seed % 5, small_limits(order), seed);
    for (int step = 0; step < 1'500; ++step) {
      crowd.step();
      if (step % 10 == 0) crowd.expect_prefixes();
      if (HasFatalFailure()) return;
    }
    crowd.heal();
    crowd.expect_prefixes();
    crowd.expect_agreement();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace helenus::membership
