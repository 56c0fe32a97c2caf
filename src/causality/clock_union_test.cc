#include "causality/clock_union.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "causality/generators.h"

namespace helenus::causality {
namespace {

using testing::any_clock;
using testing::universe;

RC_GTEST_PROP(ClockUnionLaws, HoldsTheDotsOfTheClocksThatAreThere, ()) {
  ClockUnion all;
  std::vector<Clock> there;
  const int changes = *rc::gen::inRange(0, 12);
  for (int i = 0; i < changes; ++i) {
    if (there.empty() || *rc::gen::inRange(0, 3) != 0) {
      there.push_back(*any_clock());
      all.add(there.back());
    } else {
      const auto at = there.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(there));
      all.remove(*at);
      there.erase(at);
    }
  }
  for (const Dot& dot : universe()) {
    const bool want =
        std::ranges::any_of(there, [&](const Clock& clock) { return clock.contains(dot); });
    RC_ASSERT(all.contains(dot) == want);
  }
}

// In any order, over many blocks.
RC_GTEST_PROP(CountedRangesLaws, HoldWhatTheRangesThatAreThereHold, ()) {
  constexpr std::uint64_t kNumbers = 4 * CountedRanges::kBlockMax;
  std::vector<CounterRange> there;
  CountedRanges counted;
  const std::uint64_t stride = 2 * *rc::gen::inRange<std::uint64_t>(0, kNumbers / 2) + 1;
  for (std::uint64_t i = 0; i < kNumbers; ++i) {
    const std::uint64_t first = 3 * (i * stride % kNumbers);
    there.push_back({first, first + *rc::gen::inRange<std::uint64_t>(0, 9)});
    counted.add(there.back().first, there.back().last);
  }
  const auto taken_out = *rc::gen::inRange<std::size_t>(0, there.size() + 1);
  for (std::size_t i = 0; i < taken_out; ++i) {
    counted.remove(there.back().first, there.back().last);
    there.pop_back();
  }
  RC_ASSERT(counted.empty() == there.empty());
  for (std::uint64_t number = 0; number < 3 * kNumbers + 9; ++number) {
    const bool want = std::ranges::any_of(there, [&](const CounterRange& range) {
      return range.first <= number && number <= range.last;
    });
    RC_ASSERT(counted.contains(number) == want);
  }
}

TEST(ClockUnion, IsEmptyWhenTheLastHasGone) {
  Clock clock;
  clock.add(actor_of(1, 1), CounterSet::up_to(7));
  clock.close(actor_of(2, 1));
  ClockUnion all;
  all.add(clock);
  all.add(clock);
  all.remove(clock);
  EXPECT_TRUE(all.contains({actor_of(1, 1), 7}));
  EXPECT_TRUE(all.contains({actor_of(2, 1), kCounterMax}));
  all.remove(clock);
  EXPECT_TRUE(all.empty());
}

}  // namespace
}  // namespace helenus::causality
