#include "causality/clock.h"

#include <random>

#include <gtest/gtest.h>

#include "causality/context.h"
#include "causality/generators.h"

namespace helenus::causality {
namespace {

using testing::any_clock;
using testing::any_dot;
using testing::universe;

Clock with(std::initializer_list<DotRange> ranges) {
  Clock clock;
  for (const DotRange& range : ranges) clock.add(range);
  return clock;
}
const ActorId kA = actor_of(1, 1);
const ActorId kB = actor_of(2, 1);

TEST(CounterSet, TakesTwentyFourBytesWithoutAGap) {
  static_assert(sizeof(CounterSet) == 24);
  EXPECT_EQ(CounterSet::up_to(1'000'000).ranges().size(), 1U);
}

TEST(CounterSet, AgreesWithASetOfNumbersThroughInsertAndErase) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    CounterSet set;
    std::set<Counter> model;
    for (int step = 0; step < 60; ++step) {
      const Counter first = 1 + random() % 40;
      if (random() % 3 == 0) {
        set.erase(first);
        model.erase(first);
      } else {
        const Counter last = first + random() % 5;
        set.insert({first, last});
        for (Counter counter = first; counter <= last; ++counter) model.insert(counter);
      }
      ASSERT_EQ(set.size(), model.size());
      for (std::size_t i = 1; i < set.ranges().size(); ++i) {
        ASSERT_GT(set.ranges()[i].first, set.ranges()[i - 1].last + 1);
      }
    }
    for (Counter counter = 1; counter < 50; ++counter) {
      ASSERT_EQ(set.contains(counter), model.contains(counter));
    }
  }
}

TEST(Clock, EventMintsTheNextDotOfItsActor) {
  Clock clock = with({{kA, 1, 3}, {kB, 5, 5}});
  EXPECT_EQ(event(clock, kA), (Dot{kA, 4}));
  EXPECT_TRUE(clock.contains({kA, 4}));
  EXPECT_EQ(event(clock, actor_of(9, 1)), (Dot{actor_of(9, 1), 1}));
}

TEST(Clock, ACopyKeepsWhatItHadWhenTheOtherChanges) {
  Clock clock = with({{kA, 1, 3}, {kB, 1, 5}});
  const Clock before = clock;
  event(clock, kA);
  clock.remove({kB, 5});
  clock.close(actor_of(3, 1));
  EXPECT_EQ(before, with({{kA, 1, 3}, {kB, 1, 5}}));
  EXPECT_EQ(clock.max_of(kA), 4U);
  Clock copy = before;
  copy.add(Dot{kB, 7});
  const Clock moved = std::move(copy);
  EXPECT_FALSE(before.contains({kB, 7}));
  EXPECT_TRUE(moved.contains({kB, 7}));
}

TEST(ClockDeathTest, AClosedActorMintsNothing) {
  Clock clock;
  clock.close(kA);
  EXPECT_DEATH(event(clock, kA), "cannot mint");
}

TEST(Clock, MissingIsExactlyTheGapsOfTheOther) {
  const Clock mine = with({{kA, 1, 10}, {kA, 15, 20}, {kB, 3, 3}});
  const Clock theirs = with({{kA, 1, 18}, {kB, 1, 4}, {actor_of(3, 1), 1, 2}});
  const Missing lacked = missing(mine, theirs);
  const std::vector<DotRange> want{{kA, 11, 14}, {kB, 1, 2}, {kB, 4, 4}, {actor_of(3, 1), 1, 2}};
  EXPECT_EQ(lacked.dots, want);
}

TEST(Clock, ClosedIncarnationsOfANodeMeltIntoOneMark) {
  Clock clock;
  for (std::uint32_t incarnation = 1; incarnation <= 100; ++incarnation) {
    clock.add(Dot{actor_of(1, incarnation), 1});
    clock.close(actor_of(1, incarnation));
  }
  EXPECT_EQ(clock.closed().size(), 1U);
  EXPECT_TRUE(clock.entries().empty());
  EXPECT_TRUE(clock.contains({actor_of(1, 50), 12345}));
  EXPECT_FALSE(clock.contains({actor_of(1, 101), 1}));
}

TEST(Clock, ClosesInAnyOrderAlike) {
  const auto closed = [](std::initializer_list<std::uint32_t> incarnations) {
    Clock clock = with({{actor_of(1, 2), 1, 4}, {actor_of(1, 9), 1, 1}, {actor_of(2, 2), 1, 1}});
    for (const std::uint32_t incarnation : incarnations) clock.close(actor_of(1, incarnation));
    return clock;
  };
  const Clock want = closed({1, 2, 3, 5});
  EXPECT_EQ(want.closed().size(), 2U);
  EXPECT_EQ(want.entries().size(), 2U) << "those of other actors stay";
  EXPECT_EQ(closed({5, 3, 1, 2}), want);
  EXPECT_EQ(closed({2, 5, 1, 3, 5, 1}), want);
}

TEST(ClockDeathTest, TheLargestCounterIsNeverMinted) {
  Clock clock = with({{kA, 1, kCounterMax - 1}});
  EXPECT_DEATH(event(clock, kA), "minted all");
}

TEST(Clock, TakingADotOutOfAClosedActorLeavesAllItsOtherDots) {
  Clock clock;
  clock.close({NodeNumber{1}, Incarnation{1}, Incarnation{3}});
  const Dot out{actor_of(1, 2), 7};
  clock.remove(out);
  EXPECT_FALSE(clock.contains(out));
  EXPECT_TRUE(clock.contains({actor_of(1, 2), 6}));
  EXPECT_TRUE(clock.contains({actor_of(1, 2), kCounterMax}));
  EXPECT_TRUE(clock.is_closed(actor_of(1, 1)) && clock.is_closed(actor_of(1, 3)));
  clock.add(out);
  EXPECT_EQ(clock.closed().size(), 1U) << "the last dot closes the actor again";
  EXPECT_TRUE(clock.entries().empty());
}

TEST(Clock, PrintsForPeople) {
  Clock clock = with({{kA, 1, 7}, {kA, 9, 9}, {kB, 2, 3}});
  clock.close({NodeNumber{3}, Incarnation{1}, Incarnation{4}});
  EXPECT_EQ(fmt::format("{}", clock), "{1.1:1-7 1.1:9 2.1:2-3 closed 3.1-3.4}");
  EXPECT_EQ(fmt::format("{}", Context{Epoch{4}, Timestamp{9}, {}}), "{} in epoch 4 above 9");
}

TEST(Context, ThatClaimsDotsNeverMintedHereIsRefused) {
  const Clock minted = with({{kA, 1, 3}});
  Context context;
  context.dots = with({{kA, 1, 3}, {kB, 1, 99}});
  EXPECT_TRUE(check_claims(context, kA, minted));
  context.dots.add(Dot{kA, 4});
  EXPECT_TRUE(check_claims(context, kA, minted).failed_with(base::Errc::invalid_argument));
  Context closing;
  closing.dots.close(kA);
  EXPECT_TRUE(check_claims(closing, kA, minted).failed_with(base::Errc::invalid_argument));
}

RC_GTEST_PROP(ClockLaws, NoOperationChangesACopyMadeBefore, ()) {
  Clock clock = *any_clock();
  const Clock copy = clock;
  Clock apart;
  for (const Clock::Entry& entry : clock.entries()) apart.add(entry.actor, entry.counters);
  for (const ClosedActors& closed : clock.closed()) apart.close(closed);
  RC_ASSERT(copy == apart);
  clock.add(*any_dot());
  clock.remove(*any_dot());
  clock.close((*any_dot()).actor);
  RC_ASSERT(copy == apart);
}

RC_GTEST_PROP(ClockLaws, JoinIsALeastUpperBound, ()) {
  const Clock a = *any_clock();
  const Clock b = *any_clock();
  const Clock c = *any_clock();
  RC_ASSERT(join(a, b) == join(b, a));
  RC_ASSERT(join(a, join(b, c)) == join(join(a, b), c));
  RC_ASSERT(join(a, a) == a);
  RC_ASSERT(join(a, b).covers(a) && join(a, b).covers(b));
  RC_ASSERT(b.covers(a) == (join(a, b) == b));
}

RC_GTEST_PROP(ClockLaws, MeetIsAGreatestLowerBoundAndDistributes, ()) {
  const Clock a = *any_clock();
  const Clock b = *any_clock();
  const Clock c = *any_clock();
  RC_ASSERT(meet(a, b) == meet(b, a));
  RC_ASSERT(meet(a, meet(b, c)) == meet(meet(a, b), c));
  RC_ASSERT(meet(a, a) == a);
  RC_ASSERT(meet(a, join(b, c)) == join(meet(a, b), meet(a, c)));
}

RC_GTEST_PROP(ClockLaws, EveryOperationIsTheOneOnSetsOfDots, ()) {
  const Clock a = *any_clock();
  const Clock b = *any_clock();
  const Clock united = join(a, b);
  const Clock common = meet(a, b);
  const Clock rest = subtract(a, b);
  for (const Dot& dot : universe()) {
    const bool in_a = a.contains(dot);
    const bool in_b = b.contains(dot);
    RC_ASSERT(united.contains(dot) == (in_a || in_b));
    RC_ASSERT(common.contains(dot) == (in_a && in_b));
    RC_ASSERT(rest.contains(dot) == (in_a && !in_b));
  }
  RC_ASSERT(join(rest, b) == united);
  RC_ASSERT(meet(rest, b).empty());
}

RC_GTEST_PROP(ClockLaws, AddingWhatIsMissingGivesTheJoin, ()) {
  const Clock mine = *any_clock();
  const Clock theirs = *any_clock();
  const Missing lacked = missing(mine, theirs);
  RC_ASSERT(lacked.empty() == mine.covers(theirs));
  Clock filled = mine;
  for (const DotRange& range : lacked.dots) {
    for (Counter counter = range.first; counter <= range.last; ++counter) {
      RC_ASSERT(!mine.contains({range.actor, counter}));
    }
    filled.add(range);
  }
  for (const ClosedActors& closed : lacked.closed) filled.close(closed);
  RC_ASSERT(filled == join(mine, theirs));
}

RC_GTEST_PROP(ClockLaws, BaseIsTheContiguousPart, ()) {
  const Clock clock = *any_clock();
  const Clock bases = base(clock);
  RC_ASSERT(clock.covers(bases));
  RC_ASSERT(base(bases) == bases);
  RC_ASSERT(bases.dots_above_base() == 0);
  for (const ActorId actor : testing::universe_actors()) {
    RC_ASSERT(bases.base_of(actor) == clock.base_of(actor));
  }
}

RC_GTEST_PROP(ContextLaws, JoinIsCommutativeAssociativeIdempotent, ()) {
  const auto any_context = [] {
    return Context{Epoch{*rc::gen::inRange<std::uint64_t>(0, 4)},
                   Timestamp{*rc::gen::inRange<std::int64_t>(-3, 4)}, *any_clock()};
  };
  const Context a = any_context();
  const Context b = any_context();
  const Context c = any_context();
  RC_ASSERT(join(a, b) == join(b, a));
  RC_ASSERT(join(a, join(b, c)) == join(join(a, b), c));
  RC_ASSERT(join(a, a) == a);
}

RC_GTEST_PROP(ClockLaws, EventIsNewAndLargest, ()) {
  Clock clock = *any_clock(false);
  const ActorId actor = (*any_dot()).actor;
  const Clock before = clock;
  const Dot dot = event(clock, actor);
  RC_ASSERT(!before.contains(dot) && clock.contains(dot));
  RC_ASSERT(dot.counter > before.max_of(actor));
  RC_ASSERT(subtract(clock, before).dots_above_base() + subtract(clock, before).base_of(actor) ==
            1);
}

}  // namespace
}  // namespace helenus::causality
