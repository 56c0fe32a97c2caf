#include "storage/mutations/operation_hold.h"

#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::storage {
namespace {

using causality::Clock;
using causality::CounterSet;
using causality::Dot;
using causality::OperationTime;

const causality::ActorId kActor = causality::actor_of(1, 1);

Clock seen_up_to(causality::Counter counter) {
  Clock clock;
  if (counter > 0) clock.add(kActor, CounterSet::up_to(counter));
  return clock;
}

TEST(OperationHold, WithoutIdsWhatIsStableGoes) {
  OperationHold hold;
  hold.mark(seen_up_to(5));
  EXPECT_FALSE(hold.holds());
  EXPECT_EQ(hold.releasable(seen_up_to(7)), seen_up_to(7));
}

TEST(OperationHold, AMutationGoesWhenTheFloorHasPassedItsId) {
  OperationHold hold;
  hold.note(OperationTime{100}, seen_up_to(4), Dot{kActor, 4});
  EXPECT_TRUE(hold.holds());
  EXPECT_EQ(hold.releasable(seen_up_to(9)), seen_up_to(3));
  hold.mark(seen_up_to(6));
  hold.note(OperationTime{150}, seen_up_to(7), Dot{kActor, 7});
  hold.release(OperationTime{99});
  EXPECT_EQ(hold.releasable(seen_up_to(9)), seen_up_to(3));
  hold.release(OperationTime{100});
  EXPECT_TRUE(hold.holds());
  EXPECT_EQ(hold.releasable(seen_up_to(9)), seen_up_to(6));
  EXPECT_EQ(hold.releasable(seen_up_to(5)), seen_up_to(5));
  hold.release(OperationTime{150});
  EXPECT_FALSE(hold.holds());
  EXPECT_EQ(hold.releasable(seen_up_to(9)), seen_up_to(9));
}

TEST(OperationHold, WhatAFileHasIsHeldAsAWhole) {
  OperationHold hold;
  hold.note(OperationTime{100});
  EXPECT_EQ(hold.releasable(seen_up_to(9)), Clock());
  hold.mark(seen_up_to(9));
  hold.release(OperationTime{100});
  EXPECT_EQ(hold.releasable(seen_up_to(9)), seen_up_to(9));
}

TEST(OperationHold, AnIdBelowTheFloorHoldsNothing) {
  OperationHold hold;
  hold.release(OperationTime{100});
  hold.note(OperationTime{100}, seen_up_to(4), Dot{kActor, 4});
  EXPECT_FALSE(hold.holds());
}

// The invariant of the header, in histories of ids whose times go up and down, marks and floors;
// and that everything goes at last.
RC_GTEST_PROP(OperationHold, NothingThatMayGoHasAnIdAboveTheFloor, ()) {
  OperationHold hold;
  std::map<causality::Counter, std::int64_t> ids;
  causality::Counter last = 0;
  Clock gone;
  const auto steps = *rc::gen::container<std::vector<std::pair<int, std::int64_t>>>(
      rc::gen::pair(rc::gen::inRange(0, 4), rc::gen::inRange<std::int64_t>(0, 60)));
  std::int64_t floor = 0;
  for (const auto& [what, number] : steps) {
    if (what == 0) ++last;
    if (what == 1) {
      ++last;
      // As who mints does it: the dot is in the clock already.
      ids[last] = floor + number - 10;
      hold.note(OperationTime{ids[last]}, seen_up_to(last), Dot{kActor, last});
    }
    if (what == 2) hold.mark(seen_up_to(last));
    if (what == 3) hold.release(OperationTime{floor += number});
    const Clock may_go = hold.releasable(seen_up_to(last));
    for (const auto& [counter, time] : ids) {
      RC_ASSERT(time <= hold.floor().value() || !may_go.contains(Dot{kActor, counter}));
    }
    RC_ASSERT(may_go.covers(gone));
    gone = may_go;
  }
  hold.release(OperationTime{floor + 100});
  RC_ASSERT(hold.releasable(seen_up_to(last)) == seen_up_to(last));
}

TEST(OperationHold, WhenMarksAreFullItHoldsForLonger) {
  OperationHold hold;
  for (causality::Counter i = 1; i <= 3 * OperationHold::kMarksMax; ++i) {
    hold.note(OperationTime{static_cast<std::int64_t>(i)}, seen_up_to(i), Dot{kActor, i});
    hold.mark(seen_up_to(i));
  }
  hold.release(OperationTime{OperationHold::kMarksMax - 1});
  EXPECT_EQ(hold.releasable(seen_up_to(1000)), seen_up_to(OperationHold::kMarksMax - 1));
  hold.release(OperationTime{OperationHold::kMarksMax + 1});
  EXPECT_EQ(hold.releasable(seen_up_to(1000)), seen_up_to(OperationHold::kMarksMax - 1));
}

}  // namespace
}  // namespace helenus::storage
