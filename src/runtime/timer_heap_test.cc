// The heap against a std::multimap, which keeps timers of one moment in the order armed too.
#include "runtime/timer_heap.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::runtime {
namespace {

class SilentTimer final : public Timer {
 public:
  void fire() override {}
};

class HeapTimers final : public Timers {
 public:
  void arm(Timer& timer, MonotonicTime at) override { heap.arm(timer, at); }
  void disarm(Timer& timer) override { heap.disarm(timer); }
  TimerHeap heap{*this};
};

MonotonicTime moment(std::int64_t ns) {
  return MonotonicTime(Duration(ns));
}

// Timers and the moments they are armed for, kept twice.
class HeapAndModel {
 public:
  explicit HeapAndModel(std::size_t timers) {
    for (std::size_t index = 0; index < timers; ++index) {
      timers_.push_back(std::make_unique<SilentTimer>());
    }
  }

  void arm(std::size_t index, MonotonicTime at) {
    forget(timers_[index].get());
    subject_.arm(*timers_[index], at);
    model_.emplace(at, timers_[index].get());
  }
  void disarm(std::size_t index) {
    forget(timers_[index].get());
    timers_[index]->disarm();
  }
  // A new timer takes the place of one that may be armed.
  void destroy(std::size_t index) {
    forget(timers_[index].get());
    timers_[index] = std::make_unique<SilentTimer>();
  }
  void take_due(MonotonicTime now) {
    Timer* expected = nullptr;
    if (!model_.empty() && model_.begin()->first <= now) {
      expected = model_.begin()->second;
      model_.erase(model_.begin());
    }
    RC_ASSERT(subject_.heap.take_due(now) == expected);
    RC_ASSERT((expected == nullptr || !expected->armed()));
  }
  void check() const {
    RC_ASSERT(subject_.heap.size() == model_.size());
    RC_ASSERT(subject_.heap.empty() == model_.empty());
    const auto next = model_.empty() ? MonotonicTime::never() : model_.begin()->first;
    RC_ASSERT(subject_.heap.next_at() == next);
  }

 private:
  void forget(const Timer* timer) {
    const auto found =
        std::ranges::find_if(model_, [&](const auto& entry) { return entry.second == timer; });
    if (found != model_.end()) model_.erase(found);
  }

  HeapTimers subject_;
  std::vector<std::unique_ptr<SilentTimer>> timers_;
  std::multimap<MonotonicTime, Timer*> model_;
};

RC_GTEST_PROP(TimerHeap, AgreesWithAMultimap, ()) {
  constexpr std::size_t kTimers = 40;
  HeapAndModel timers(kTimers);
  // A few moments for many timers: equal ones are common.
  const auto moments = *rc::gen::inRange<std::int64_t>(1, 30);
  const auto steps = *rc::gen::container<std::vector<std::tuple<int, std::size_t, std::int64_t>>>(
      rc::gen::tuple(rc::gen::inRange(0, 10), rc::gen::inRange<std::size_t>(0, kTimers),
                     rc::gen::inRange<std::int64_t>(0, moments)));
  for (const auto& [kind, index, at] : steps) {
    if (kind < 6) timers.arm(index, moment(at));
    if (kind == 6) timers.disarm(index);
    if (kind == 7) timers.destroy(index);
    if (kind > 7) timers.take_due(moment(at));
    timers.check();
  }
}

TEST(TimerHeap, GivesNothingBeforeItsTime) {
  HeapTimers timers;
  SilentTimer timer;
  timers.arm(timer, moment(10));
  EXPECT_EQ(timers.heap.take_due(moment(9)), nullptr);
  EXPECT_EQ(timers.heap.take_due(moment(10)), &timer);
  EXPECT_EQ(timers.heap.take_due(moment(10)), nullptr);
}

TEST(TimerHeap, ATimerArmedForNeverIsDueAtTheEndOfTimeOnly) {
  HeapTimers timers;
  SilentTimer timer;
  timers.arm(timer, MonotonicTime::never());
  EXPECT_TRUE(timers.heap.next_at().is_never());
  EXPECT_EQ(timers.heap.take_due(moment(INT64_MAX - 1)), nullptr);
}

TEST(TimerHeap, ArmingElsewhereLeavesTheOldHeap) {
  HeapTimers here, there;
  SilentTimer timer;
  here.arm(timer, moment(1));
  there.arm(timer, moment(2));
  EXPECT_TRUE(here.heap.empty());
  EXPECT_EQ(there.heap.size(), 1U);
}

TEST(TimerHeap, TimersMayOutliveTheirHeap) {
  SilentTimer first, second;
  {
    HeapTimers timers;
    timers.arm(first, moment(1));
    timers.arm(second, moment(2));
  }
  EXPECT_FALSE(first.armed());
  EXPECT_FALSE(second.armed());
  first.disarm();
}

}  // namespace
}  // namespace helenus::runtime
