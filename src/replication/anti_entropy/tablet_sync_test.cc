// What follows from the clocks of other replicas; and a small world of replicas that write, pull
// and lose messages, under the law of watermarks.
#include "replication/anti_entropy/tablet_sync.h"

#include <deque>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"

namespace helenus::replication {
namespace {

using causality::actor_of;
using causality::Clock;
using causality::Dot;
using causality::Epoch;
using causality::WallTime;

model::NodeId peer_id(std::uint8_t number) {
  base::Uuid::Octets octets{};
  octets.back() = std::byte{number};
  return model::NodeId(base::Uuid(octets));
}

Clock clock_of(std::initializer_list<Dot> dots) {
  Clock clock;
  for (const Dot& dot : dots) clock.add(dot);
  return clock;
}

constexpr Dot kFirst{actor_of(2, 1), 1};
constexpr Dot kSecond{actor_of(2, 1), 2};
constexpr Dot kThird{actor_of(2, 1), 3};

class TwoReplicas : public ::testing::Test {
 protected:
  const model::NodeId peer_ = peer_id(2);
  TabletSync sync_{Epoch(1), {peer_}};
};

TEST_F(TwoReplicas, NothingIsStableBeforeThePeerWasHeardOf) {
  EXPECT_FALSE(sync_.watermarks().front().has_value());
  EXPECT_FALSE(sync_.next_pull().has_value());
}

TEST_F(TwoReplicas, AnAnnouncedClockIsAWatermarkOnceAllOfItIsHere) {
  sync_.on_announcement(peer_, clock_of({kFirst, kThird}), WallTime(5));
  EXPECT_EQ(sync_.next_pull(), peer_);
  EXPECT_EQ(sync_.missing_here(peer_), 2U);
  // The base is here, and the exception is not.
  EXPECT_FALSE(sync_.on_clock(clock_of({kFirst})));
  EXPECT_FALSE(sync_.watermarks().front().has_value());
  EXPECT_TRUE(sync_.on_clock(clock_of({kFirst, kThird})));
  ASSERT_TRUE(sync_.watermarks().front().has_value());
  EXPECT_EQ(sync_.watermarks().front()->base, clock_of({kFirst}));
  EXPECT_EQ(sync_.watermarks().front()->wall, WallTime(5));
  EXPECT_FALSE(sync_.next_pull().has_value());
}

TEST_F(TwoReplicas, WhatWaitsToBeSyncedIsNotPulledAgainAndIsNoWatermark) {
  sync_.on_announcement(peer_, clock_of({kFirst, kSecond}), WallTime(5));
  EXPECT_TRUE(sync_.is_behind());
  EXPECT_EQ(sync_.announced(), clock_of({kFirst, kSecond}));
  sync_.on_staged(clock_of({kFirst}));
  EXPECT_EQ(sync_.missing_here(peer_), 1U);
  sync_.on_staged(clock_of({kFirst, kSecond}));
  EXPECT_FALSE(sync_.next_pull().has_value());
  EXPECT_TRUE(sync_.is_behind());
  EXPECT_FALSE(sync_.watermarks().front().has_value());
  const std::uint64_t before = sync_.watermarks_number();
  EXPECT_TRUE(sync_.on_clock(clock_of({kFirst, kSecond})));
  EXPECT_GT(sync_.watermarks_number(), before);
  EXPECT_FALSE(sync_.is_behind());
  EXPECT_TRUE(sync_.announced().empty());
}

TEST_F(TwoReplicas, AnAnnouncementThatComesLateTakesNothingBack) {
  sync_.on_clock(clock_of({kFirst, kSecond}));
  sync_.on_announcement(peer_, clock_of({kFirst, kSecond}), WallTime(9));
  sync_.on_announcement(peer_, clock_of({kFirst}), WallTime(3));
  EXPECT_EQ(sync_.watermarks().front()->base, clock_of({kFirst, kSecond}));
  EXPECT_EQ(sync_.watermarks().front()->wall, WallTime(9));
}

TEST_F(TwoReplicas, APeerIsToldUntilItKnows) {
  EXPECT_TRUE(sync_.must_tell(peer_));
  sync_.on_known(peer_, sync_.clock_number());
  EXPECT_FALSE(sync_.must_tell(peer_));
  sync_.on_clock(clock_of({kFirst}));
  const std::uint64_t first = sync_.clock_number();
  sync_.on_clock(clock_of({kFirst, kSecond}));
  sync_.on_known(peer_, first);
  EXPECT_TRUE(sync_.must_tell(peer_));
  sync_.on_known(peer_, sync_.clock_number() + 1);
  EXPECT_TRUE(sync_.must_tell(peer_)) << "what was never told cannot be known";
  sync_.on_known(peer_, sync_.clock_number());
  EXPECT_FALSE(sync_.must_tell(peer_));
  sync_.on_reconnect(peer_);
  EXPECT_TRUE(sync_.must_tell(peer_));
}

TEST_F(TwoReplicas, CountsExactlyWhatIsMissingThere) {
  sync_.on_clock(clock_of({kFirst, kSecond, kThird}));
  EXPECT_EQ(sync_.missing_there(peer_), 3U);
  sync_.on_announcement(peer_, clock_of({kSecond}), WallTime(1));
  EXPECT_EQ(sync_.missing_there(peer_), 2U);
}

TEST_F(TwoReplicas, StrangersAreNotListenedTo) {
  EXPECT_FALSE(sync_.on_announcement(peer_id(9), clock_of({kFirst}), WallTime(1)));
  EXPECT_FALSE(sync_.must_tell(peer_id(9)));
  EXPECT_FALSE(sync_.next_pull().has_value());
}

TEST(TabletSync, PullsFromWhoHasMostAndFromAnotherAfterAFailure) {
  TabletSync sync(Epoch(1), {peer_id(2), peer_id(3)});
  sync.on_announcement(peer_id(2), clock_of({kFirst}), WallTime(1));
  sync.on_announcement(peer_id(3), clock_of({kFirst, kSecond}), WallTime(1));
  EXPECT_EQ(sync.next_pull(), peer_id(3));
  EXPECT_EQ(sync.next_pull(peer_id(3)), peer_id(2));
  const auto not_the_second = [](model::NodeId peer) { return peer != peer_id(2); };
  EXPECT_EQ(sync.next_pull(peer_id(3), not_the_second), peer_id(3));
  EXPECT_FALSE(sync.next_pull({}, [](model::NodeId) { return false; }).has_value());
  sync.on_clock(clock_of({kFirst}));
  EXPECT_EQ(sync.next_pull(peer_id(3)), peer_id(3)) << "nobody else is left";
}

// ---- A world of replicas ----

struct Announcement {
  std::size_t from;
  std::size_t to;
  Clock clock;
  std::uint64_t number;
};

class World {
 public:
  World(std::size_t replicas, std::uint64_t seed) : prng_(seed), clocks_(replicas) {
    for (std::size_t i = 0; i < replicas; ++i) {
      std::vector<model::NodeId> peers;
      for (std::size_t other = 0; other < replicas; ++other) {
        if (other != i) peers.push_back(id(other));
      }
      syncs_.emplace_back(Epoch(1), std::move(peers));
    }
  }

  void step() {
    const std::size_t i = prng_.below(clocks_.size());
    switch (prng_.below(4)) {
      case 0:  // mints, and one other may get it at once
        mint(i);
        break;
      case 1:
        tell(i);
        break;
      case 2:
        pull(i, prng_.chance(0.5));
        break;
      default:
        deliver();
    }
    check();
  }

  void calm() {
    for (int round = 0; round < 20; ++round) {
      for (std::size_t i = 0; i < clocks_.size(); ++i) tell(i);
      while (!messages_.empty()) deliver(false);
      for (std::size_t i = 0; i < clocks_.size(); ++i) pull(i, false);
      check();
    }
    for (std::size_t i = 0; i < clocks_.size(); ++i) {
      RC_ASSERT(clocks_[i] == clocks_[0]);
      for (const auto& watermark : syncs_[i].watermarks()) {
        RC_ASSERT(watermark.has_value());
        RC_ASSERT(watermark->base == clocks_[0]);
      }
      for (const model::NodeId peer : syncs_[i].peers()) RC_ASSERT(!syncs_[i].must_tell(peer));
    }
  }

 private:
  static model::NodeId id(std::size_t replica) {
    return peer_id(static_cast<std::uint8_t>(replica + 1));
  }
  static std::size_t index(model::NodeId node) {
    return static_cast<std::size_t>(node.value().bytes().back()) - 1;
  }

  void mint(std::size_t i) {
    const Dot dot{actor_of(static_cast<std::uint32_t>(i + 1), 1), ++minted_[i]};
    contexts_.emplace(dot, clocks_[i]);
    clocks_[i].add(dot);
    note(i);
    if (!prng_.chance(0.5)) return;
    const std::size_t to = prng_.below(clocks_.size());
    clocks_[to].add(dot);
    note(to);
  }

  // Rule (c): who finds a mutation stable has every one that is concurrent with it, and everybody
  // has it.
  void check_stable(const Clock& here, const Clock& stable) const {
    for (const Clock& clock : clocks_) RC_ASSERT(clock.covers(stable));
    for (const auto& [dot, context] : contexts_) {
      if (!stable.contains(dot)) continue;
      for (const auto& [other, other_context] : contexts_) {
        const bool concurrent = !context.contains(other) && !other_context.contains(dot);
        RC_ASSERT(!concurrent || here.contains(other));
      }
    }
  }

  void note(std::size_t i) { syncs_[i].on_clock(clocks_[i]); }

  void tell(std::size_t i) {
    for (const model::NodeId peer : syncs_[i].peers()) {
      if (!syncs_[i].must_tell(peer)) continue;
      messages_.push_back({i, index(peer), clocks_[i], syncs_[i].clock_number()});
    }
  }

  // Messages come in any order, twice, or never.
  void deliver(bool faulty = true) {
    if (messages_.empty()) return;
    const std::size_t at = faulty ? prng_.below(messages_.size()) : 0;
    const Announcement message = messages_[at];
    if (!faulty || !prng_.chance(0.1)) {
      messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (faulty && prng_.chance(0.2)) return;
    RC_ASSERT(syncs_[message.to].on_announcement(id(message.from), message.clock, WallTime(1)));
    if (!faulty || prng_.chance(0.8)) syncs_[message.from].on_known(id(message.to), message.number);
  }

  // All that the peer has, or a part.
  void pull(std::size_t i, bool partly) {
    const auto from = syncs_[i].next_pull();
    if (!from) return;
    for (const causality::DotRange& range :
         causality::missing(clocks_[i], clocks_[index(*from)]).dots) {
      for (causality::Counter counter = range.first; counter <= range.last; ++counter) {
        if (partly && prng_.chance(0.5)) continue;
        clocks_[i].add(Dot{range.actor, counter});
      }
    }
    note(i);
  }

  void check() {
    for (std::size_t i = 0; i < clocks_.size(); ++i) {
      const auto watermarks = syncs_[i].watermarks();
      for (std::size_t p = 0; p < watermarks.size(); ++p) {
        if (!watermarks[p]) continue;
        const std::size_t peer = index(syncs_[i].peers()[p]);
        RC_ASSERT(clocks_[peer].covers(watermarks[p]->base));
        Clock& last = last_[{i, peer}];
        RC_ASSERT(watermarks[p]->base.covers(last));
        last = watermarks[p]->base;
      }
      check_stable(clocks_[i], causality::stability(clocks_[i], WallTime(1), watermarks).dots);
    }
  }

  base::Prng prng_;
  std::vector<Clock> clocks_;
  std::vector<TabletSync> syncs_;
  std::map<std::size_t, causality::Counter> minted_;
  std::map<Dot, Clock> contexts_;  // what was seen when it was minted
  std::deque<Announcement> messages_;
  std::map<std::pair<std::size_t, std::size_t>, Clock> last_;
};

RC_GTEST_PROP(TabletSync, WatermarksAreWhatPeersHaveAndAllBecomeEqual, (std::uint64_t seed)) {
  World world(2 + seed % 4, seed);
  for (int step = 0; step < 60; ++step) world.step();
  world.calm();
}

}  // namespace
}  // namespace helenus::replication
