// The window and the target of the sliced forgetful filter, whatever the load does; the rest is in
// filter_contract.h.
#include "filters/sliced_forgetful.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "filters/checked_window.h"
#include "filters/envelope.h"
#include "filters/filter_contract.h"
#include "filters/forgetful_bloom.h"
#include "filters/forgetful_rates.h"
#include "filters/hostile_bytes_test_support.h"

namespace helenus::filters {
namespace {

using base::Errc;
using Options = SlicedForgetful::Options;
using Sizing = SlicedForgetful::Sizing;

TEST(SlicedForgetful, RemembersForTheWindowAndForgetsSoonAfter) {
  auto filter = *SlicedForgetful::with_options({.window = 100, .rate_max = 0.001, .capacity = 500});
  ASSERT_TRUE(filter.insert("early"));
  std::uint64_t next = 0;
  Ticks forgotten = 0;
  for (Ticks now = 0; now < 300 && forgotten == 0; ++now) {
    filter.advance_to(now);
    ASSERT_TRUE(filter.insert(KeyHash::of_integer(next++)));
    if (!filter.contains("early")) forgotten = now;
  }
  EXPECT_GT(forgotten, 100U);
  EXPECT_LE(forgotten, 120U) << "a slice after the window";
  EXPECT_EQ(filter.table_count(), 1U);
}

TEST(SlicedForgetful, TheWindowIncludesItsLastMoment) {
  auto filter = *SlicedForgetful::with_options({.window = 10, .rate_max = 0.001, .capacity = 50});
  filter.advance_to(7);
  ASSERT_TRUE(filter.insert("key"));
  filter.advance_to(17);
  EXPECT_TRUE(filter.contains("key"));
  filter.advance_to(18);
  EXPECT_FALSE(filter.contains("key"));
  EXPECT_EQ(filter.size(), 0U);
  EXPECT_EQ(filter.false_positive_rate(), 0.0);
}

TEST(SlicedForgetful, TimeGoesForwardOnlyAndByAnyJump) {
  auto filter = *SlicedForgetful::with_options({.window = 10, .rate_max = 0.001, .capacity = 50});
  filter.advance_to(100);
  ASSERT_TRUE(filter.insert("key"));
  filter.advance_to(3);
  EXPECT_EQ(filter.now(), 100U);
  EXPECT_TRUE(filter.contains("key"));
  filter.advance_to(~Ticks{0});
  EXPECT_FALSE(filter.contains("key"));
  ASSERT_TRUE(filter.insert("key"));
  EXPECT_TRUE(filter.contains("key"));
}

TEST(SlicedForgetful, AfterAPauseAllOfItIsFreeAgain) {
  auto filter = *SlicedForgetful::with_options(
      {.window = 10, .rate_max = 0.01, .capacity = 100'000, .sizing = Sizing::fixed});
  std::uint64_t next = 0;
  for (int round = 0; round < 5; ++round) {
    std::uint64_t taken = 0;
    while (filter.insert(KeyHash::of_integer(next++))) ++taken;
    EXPECT_GE(taken, 100'000U);
    EXPECT_TRUE(filter.is_shedding());
    filter.advance_to(filter.now() + 11);
    EXPECT_FALSE(filter.is_shedding());
    EXPECT_EQ(filter.size(), 0U);
  }
}

// All slices are full when the first of them expires: its table is too large to be swept by the
// calls until then.
TEST(SlicedForgetful, AfterAJumpOfTimeItSweepsBeforeItShedsOrGrows) {
  for (const Sizing sizing : {Sizing::fixed, Sizing::adaptive}) {
    auto filter = *SlicedForgetful::with_options(
        {.window = 100, .rate_max = 0.01, .capacity = 300'000, .slices = 3, .sizing = sizing});
    std::uint64_t next = 0;
    for (Ticks now = 0; now < 3; ++now) {
      filter.advance_to(now);
      for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(filter.insert(KeyHash::of_integer(next++)));
    }
    filter.advance_to(101);
    for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(filter.insert(KeyHash::of_integer(next++))) << i;
    EXPECT_EQ(filter.table_count(), 1U);
    EXPECT_EQ(filter.size(), 300'000U);
    EXPECT_EQ(yes_count(filter, keys_from(100'000, 300'000)), 300'000U);
    EXPECT_LE(filter.false_positive_rate(), 0.01) << "nothing of the slice before is left";
  }
}

TEST(SlicedForgetful, InsertsOnlyWhatItDoesNotHave) {
  auto filter = *SlicedForgetful::with_options({.window = 10, .rate_max = 0.001, .capacity = 4});
  EXPECT_EQ(filter.insert_if_absent("key"), Admission::inserted);
  EXPECT_EQ(filter.insert_if_absent("key"), Admission::present);
  EXPECT_EQ(filter.size(), 1U);
  // It grows, and still knows what the table before has.
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_NE(filter.insert_if_absent(KeyHash::of_integer(i)), Admission::shed);
  }
  EXPECT_GT(filter.table_count(), 1U);
  EXPECT_EQ(filter.insert_if_absent("key"), Admission::present);
}

TEST(SlicedForgetful, ASteadyLoadNeedsOneTableForEver) {
  auto filter =
      *SlicedForgetful::with_options({.window = 1000, .rate_max = 0.01, .capacity = 15'000});
  base::Prng prng(1);
  std::uint64_t next = 0;
  double rate_most = 0;
  for (Ticks now = 0; now < 10'000; ++now) {
    filter.advance_to(now);
    // Ten a tick on average, in a way that chance would have it.
    for (std::uint64_t i = prng.below(21); i > 0; --i) {
      ASSERT_TRUE(filter.insert(KeyHash::of_integer(next++)));
    }
    rate_most = std::max(rate_most, filter.false_positive_rate());
    ASSERT_EQ(filter.table_count(), 1U) << "at " << now;
  }
  EXPECT_EQ(filter.capacity(), 15'000U);
  EXPECT_LE(rate_most, 0.005);
  EXPECT_EQ(filter.live_slice_count(), filter.shape().slices);
}

// A load in keys a tick, with everything inside the window asked for and strangers counted.
class Load {
 public:
  explicit Load(const Options& options) : filter(*SlicedForgetful::with_options(options)) {}

  void run(Ticks ticks, std::uint64_t keys_per_tick) {
    for (Ticks i = 0; i < ticks; ++i) {
      filter.advance_to(filter.now() + 1);
      for (std::uint64_t k = 0; k < keys_per_tick; ++k) {
        const KeyHash key = KeyHash::of_integer(next_++);
        const Admission admission = filter.insert_if_absent(key);
        if (admission == Admission::inserted) inserted_.emplace_back(filter.now(), key);
        if (admission == Admission::shed) ++shed;
      }
      look();
    }
  }

  SlicedForgetful filter;
  std::uint64_t shed = 0;
  std::uint64_t lost = 0;
  double rate_most = 0;           // by fill
  double rate_measured_most = 0;  // over 20,000 strangers
  unsigned tables_most = 0;
  std::uint64_t memory_most = 0;

 private:
  void look() {
    while (filter.now() - inserted_[forgotten_].first > filter.options().window) ++forgotten_;
    rate_most = std::max(rate_most, filter.false_positive_rate());
    tables_most = std::max(tables_most, filter.table_count());
    memory_most = std::max(memory_most, filter.memory_bytes());
    if (filter.now() % 10 != 0) return;
    for (std::size_t i = forgotten_; i < inserted_.size(); ++i) {
      if (!filter.contains(inserted_[i].second)) ++lost;
    }
    const std::uint64_t hits = yes_count(filter, keys_from(kStrangers, 20'000));
    rate_measured_most = std::max(rate_measured_most, static_cast<double>(hits) / 20'000);
  }

  std::uint64_t next_ = 0;
  std::size_t forgotten_ = 0;
  std::vector<std::pair<Ticks, KeyHash>> inserted_;
};

TEST(SlicedForgetful, ATenFoldBurstKeepsTargetAndWindow) {
  Load load({.window = 100, .rate_max = 0.01, .capacity = 1'500});
  load.run(200, 10);
  EXPECT_EQ(load.tables_most, 1U);
  const std::uint64_t memory_before = load.filter.memory_bytes();
  load.run(200, 100);
  EXPECT_EQ(load.shed, 0U);
  EXPECT_EQ(load.lost, 0U);
  EXPECT_LE(load.rate_most, 0.01);
  EXPECT_LE(load.rate_measured_most, 0.01 + 3 * std::sqrt(0.01 / 20'000));
  EXPECT_LE(load.tables_most, 4U);
  EXPECT_LE(load.memory_most, 30 * memory_before);
  // It comes back to what it was.
  load.run(600, 10);
  EXPECT_EQ(load.lost, 0U);
  EXPECT_EQ(load.filter.table_count(), 1U);
  EXPECT_LE(load.filter.memory_bytes(), 3 * memory_before);
}

TEST(SlicedForgetful, WithoutTheMemoryForABurstItShedsAndLosesNothing) {
  Load load({.window = 100, .rate_max = 0.01, .capacity = 1500, .memory_bytes_max = 10'000});
  load.run(200, 10);
  EXPECT_EQ(load.shed, 0U);
  load.run(200, 100);
  EXPECT_GT(load.shed, 0U);
  EXPECT_EQ(load.lost, 0U);
  EXPECT_LE(load.rate_most, 0.01);
  EXPECT_LE(load.memory_most, 10'000U);
  // Once the burst is over, and its keys old, there is room again.
  load.run(110, 10);
  const std::uint64_t shed = load.shed;
  load.run(200, 10);
  EXPECT_EQ(load.shed, shed);
  EXPECT_EQ(load.lost, 0U);
}

// The user's knob: by how many percent a counter may be wrong. Increments come with retries, a few
// windows long, and ten times as many for a while.
TEST(SlicedForgetful, ACounterBehindItIsWithinTheErrorThatItsUserAllows) {
  for (const double percent : {0.1, 1.0, 5.0}) {
    auto filter = *SlicedForgetful::with_options(
        {.window = 1000, .rate_max = percent / 100, .capacity = 15'000});
    base::Prng prng(9);
    std::uint64_t increments = 0;
    std::uint64_t counter = 0;
    const auto apply = [&](std::uint64_t operation) {
      const Admission admission = filter.insert_if_absent(KeyHash::of_integer(operation));
      ASSERT_NE(admission, Admission::shed);
      counter += admission == Admission::inserted ? 1 : 0;
    };
    for (Ticks now = 0; now < 10'000; ++now) {
      filter.advance_to(now);
      const bool is_burst = now >= 4000 && now < 6000;
      for (int i = is_burst ? 100 : 10; i > 0; --i) {
        apply(increments++);
        // Of one of the last nine hundred ticks at most.
        if (prng.chance(0.3)) apply(increments - 1 - prng.below(std::min(increments, 9000UL)));
      }
    }
    EXPECT_LE(counter, increments) << "no retry is counted";
    const double error =
        100 * static_cast<double>(increments - counter) / static_cast<double>(increments);
    EXPECT_LE(error, percent);
    // A tenth or so: the filter has room to spare, and keeps some of the target for a next table.
    EXPECT_GT(error, percent / 20) << "more accurate, and larger, than it was asked to be";
  }
}

// The window guarantee: bursts, resizes, shedding, jumps of time forward and back, and bytes.
TEST(SlicedForgetful, NoKeyIsDeniedInsideTheWindowWhateverHappens) {
  const bool held = rc::check([] {
    const Options options{.window = *rc::gen::inRange<Ticks>(1, 60),
                          .rate_max = *rc::gen::element(0.2, 0.01, 1e-5),
                          .capacity = *rc::gen::inRange<std::uint64_t>(1, 60),
                          .slices = *rc::gen::element(0U, 2U, 3U, 16U, 56U),
                          .sizing = *rc::gen::element(Sizing::adaptive, Sizing::fixed),
                          .memory_bytes_max = *rc::gen::element<std::uint64_t>(100'000, 1 << 30)};
    CheckedWindow checked(*SlicedForgetful::with_options(options));
    const auto operations = *rc::gen::container<std::vector<std::pair<unsigned, unsigned>>>(
        rc::gen::pair(rc::gen::inRange(0U, 10U), rc::gen::inRange(0U, 100U)));
    std::uint64_t fresh = 1000;
    for (const auto& [operation, number] : operations) {
      const Ticks now = checked.filter().now();
      if (operation < 2) {
        checked.insert(KeyHash::of_integer(number));
      } else if (operation < 4) {
        checked.insert_if_absent(KeyHash::of_integer(number));
      } else if (operation < 5) {
        for (unsigned i = 0; i < number; ++i) {
          checked.insert_if_absent(KeyHash::of_integer(fresh++));
        }
      } else if (operation < 8) {
        checked.advance_to(now + number / 10);
      } else if (operation < 9) {
        checked.advance_to(number % 2 == 0 ? now + number : now - std::min<Ticks>(now, number));
      } else {
        checked.reload();
      }
      checked.contains_all();
    }
    RC_ASSERT(checked.problem() == "");
  });
  EXPECT_TRUE(held);
}

// The paper's form and the sliced one with the same memory, window and load, in the steady state.
class SideBySide {
 public:
  static constexpr Ticks kPeriod = 1000;

  SideBySide(unsigned past, std::uint64_t keys_per_period, std::uint64_t bits)
      : past_(past),
        keys_per_period_(keys_per_period),
        bits_(bits),
        paper_(
            *ForgetfulBloom::with_shape({.bits = bits, .probes = 5, .past = past, .capacity = 1})) {
    for (std::uint64_t i = 0; i < keys(); ++i) {
      if (i > 0 && i % keys_per_period == 0) paper_.refresh();
      paper_.insert(KeyHash::of_integer(i));
    }
  }

  // What the sliced form with so many slices says yes to, of what the paper's does.
  double ratio_with(unsigned slices, unsigned probes) const {
    // A sweep takes a little time, so a slice may have to take a few keys more.
    const std::uint64_t keys_per_slice = window_keys() / (slices - 1);
    return ratio(
        *SlicedForgetful::with_shape({.bits = bits_ * (past_ + 2) / slices,
                                      .probes = probes,
                                      .slices = slices,
                                      .keys_per_slice = keys_per_slice + keys_per_slice / 32 + 1},
                                     window()));
  }
  // The same for the form that is made where nothing but memory, window and load is given.
  double ratio_by_default() const {
    return ratio(*SlicedForgetful::with_options(
        *SlicedForgetful::options_for_memory(window(), window_keys(), paper_.memory_bytes())));
  }

 private:
  Ticks window() const { return (past_ + 1) * kPeriod; }
  std::uint64_t window_keys() const { return keys_per_period_ * (past_ + 1); }
  std::uint64_t keys() const { return keys_per_period_ * (2 * past_ + 6); }

  double ratio(SlicedForgetful sliced) const {
    for (std::uint64_t i = 0; i < keys(); ++i) {
      sliced.advance_to(i * kPeriod / keys_per_period_);
      EXPECT_TRUE(sliced.insert(KeyHash::of_integer(i))) << i;
    }
    EXPECT_EQ(sliced.table_count(), 1U);
    EXPECT_LE(sliced.memory_bytes(), paper_.memory_bytes());
    const auto remembered = keys_from(keys() - window_keys(), window_keys());
    EXPECT_EQ(yes_count(paper_, remembered), window_keys());
    EXPECT_EQ(yes_count(sliced, remembered), window_keys());
    const std::vector<KeyHash> strangers = keys_from(kStrangers, 300'000);
    return static_cast<double>(yes_count(sliced, strangers)) /
           static_cast<double>(yes_count(paper_, strangers));
  }

  unsigned past_;
  std::uint64_t keys_per_period_;
  std::uint64_t bits_;
  ForgetfulBloom paper_;
};

// Every N and load of the lab's table, in the sizes of the lab.
TEST(SlicedForgetful, ByDefaultItHasAtMostTwoFifthsOfTheRateOfThePapersFormForEveryN) {
  for (const unsigned past : {1U, 4U, 10U, 14U, 30U, 54U}) {
    for (const std::uint64_t keys_per_period : {150U, 300U, 600U}) {
      EXPECT_LE(SideBySide(past, keys_per_period, 6250).ratio_by_default(), 0.4)
          << "N = " << past << ", " << keys_per_period;
    }
  }
}

TEST(SlicedForgetful, WithAsManySlicesAsThePaperHasFiltersTheSameHoldsForNUpToFourteen) {
  for (const auto& [past, keys_per_period] :
       {std::pair(1U, 3000U), {1U, 6000U}, {4U, 3000U}, {10U, 6000U}, {14U, 6000U}}) {
    const double ratio = SideBySide(past, keys_per_period, 62'500).ratio_with(past + 2, 5);
    EXPECT_LE(ratio, 0.4) << "N = " << past << ", " << keys_per_period;
    EXPECT_GE(ratio, 0.1) << "better than it can be";
  }
  const double ratio = SideBySide(30, 6000, 62'500).ratio_with(32, 5);
  EXPECT_GT(ratio, 0.4);
  EXPECT_LT(ratio, 0.48);
}

TEST(SlicedForgetful, TheLowestTargetForAMemoryUsesNearlyAllOfIt) {
  for (const std::uint64_t bytes : {20'000U, 30'000U, 60'000U, 1'000'000U}) {
    const Options options = *SlicedForgetful::options_for_memory(1000, 10'000, bytes);
    const auto filter = *SlicedForgetful::with_options(options);
    EXPECT_LE(filter.memory_bytes(), bytes);
    EXPECT_TRUE(filter.memory_bytes() > bytes / 100 * 97 ||
                options.rate_max == SlicedForgetful::kRateMin)
        << bytes;
    EXPECT_EQ(options.slices, 0U);
    EXPECT_GT(options.capacity, 10'000U);
  }
  for (const auto& [window, keys, bytes] :
       {std::tuple(0UL, 10UL, 1000UL), {10, 0, 1000}, {10, ~0UL, 1000}, {10, 10'000, 1000}}) {
    EXPECT_TRUE(SlicedForgetful::options_for_memory(window, keys, bytes)
                    .failed_with(Errc::invalid_argument));
  }
}

TEST(SlicedForgetful, DeclaresByFillAndByEquationWhatStrangersMeet) {
  constexpr std::uint64_t kTrials = 400'000;
  auto filter =
      *SlicedForgetful::with_options({.window = 100, .rate_max = 0.02, .capacity = 20'000});
  std::uint64_t next = 0;
  // Grows twice on the way.
  for (Ticks now = 0; now < 90; ++now) {
    filter.advance_to(now);
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(filter.insert(KeyHash::of_integer(next++)));
  }
  EXPECT_GT(filter.table_count(), 1U);
  const std::uint64_t hits = yes_count(filter, keys_from(kStrangers, kTrials));
  expect_hits_at_rate(hits, kTrials, filter.false_positive_rate());
  EXPECT_NEAR(filter.rate_by_equation() / filter.false_positive_rate(), 1, 0.05);
}

// Small tables, where probes in arithmetic progression would give six times the rate declared.
TEST(SlicedForgetful, KeepsALowRateInSmallTablesToo) {
  constexpr std::uint64_t kTrials = 300'000;
  std::uint64_t hits = 0;
  double expected = 0;
  for (std::uint64_t draw = 0; draw < 3; ++draw) {
    auto filter = *SlicedForgetful::with_options(
        {.window = 100, .rate_max = 1e-4, .capacity = 1000, .sizing = Sizing::fixed});
    for (const KeyHash key : keys_from(draw * 1000, 1000)) ASSERT_TRUE(filter.insert(key));
    hits += yes_count(filter, keys_from(kStrangers, kTrials));
    expected += filter.false_positive_rate() * kTrials;
  }
  EXPECT_LE(static_cast<double>(hits), expected + 4.4 * std::sqrt(expected));
  EXPECT_GE(static_cast<double>(hits), expected - 4.4 * std::sqrt(expected));
}

TEST(SlicedForgetful, TakesTheNumberOfSlicesThatNeedsLeastMemory) {
  for (const double rate : {0.1, 0.01, 1e-4, 1e-6}) {
    const unsigned slices = SliceRing::shape_for(1'000'000, rate, 0).slices;
    EXPECT_GE(slices, 5U);
    EXPECT_LE(slices, 20U);
    // For what a window brings: all slices but one.
    const auto memory = [&](unsigned count) {
      const std::uint64_t capacity = 1'000'000ULL * count / (count - 1);
      return static_cast<double>(SliceRing::shape_for(capacity, rate, count).memory_bytes());
    };
    EXPECT_LE(memory(slices), 1.02 * memory(3));
    EXPECT_LE(memory(slices), 1.02 * memory(slices - 1));
    EXPECT_LE(memory(slices), 1.02 * memory(slices + 1));
    EXPECT_LE(memory(slices), 1.02 * memory(40));
  }
}

TEST(SlicedForgetful, OptionsThatCannotBeAreErrors) {
  const Options sound{.window = 1, .rate_max = 0.01, .capacity = 1};
  EXPECT_TRUE(SlicedForgetful::with_options(sound).has_value());
  const auto refused = [&](auto change) {
    Options options = sound;
    change(options);
    return SlicedForgetful::with_options(options).failed_with(Errc::invalid_argument);
  };
  EXPECT_TRUE(refused([](Options& options) { options.window = 0; }));
  EXPECT_TRUE(refused([](Options& options) { options.rate_max = 0; }));
  EXPECT_TRUE(refused([](Options& options) { options.rate_max = 0.6; }));
  EXPECT_TRUE(refused([](Options& options) { options.rate_max = std::nan(""); }));
  EXPECT_TRUE(refused([](Options& options) { options.capacity = 0; }));
  EXPECT_TRUE(refused([](Options& options) { options.capacity = ~0UL; }));
  EXPECT_TRUE(refused([](Options& options) { options.slices = 1; }));
  EXPECT_TRUE(refused([](Options& options) { options.slices = 57; }));
  EXPECT_TRUE(refused([](Options& options) { options.sizing = Sizing{2}; }));
  EXPECT_TRUE(refused([](Options& options) { options.memory_bytes_max = 0; }));
  EXPECT_TRUE(refused([](Options& options) { options.memory_bytes_max = 10; }));
  EXPECT_TRUE(refused([](Options& options) { options.memory_bytes_max = ~0UL; }));
  const SliceRing::Shape shape{.bits = 100, .probes = 2, .slices = 3, .keys_per_slice = 5};
  EXPECT_TRUE(SlicedForgetful::with_shape(shape, 1).has_value());
  EXPECT_TRUE(SlicedForgetful::with_shape(shape, 0).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(SlicedForgetful::with_shape({}, 1).failed_with(Errc::invalid_argument));
  const SliceRing::Shape crowded{.bits = 10, .probes = 2, .slices = 3, .keys_per_slice = 50};
  EXPECT_TRUE(SlicedForgetful::with_shape(crowded, 1).failed_with(Errc::invalid_argument));
}

// Bytes with sound checksums that describe no filter: two tables, of which the first is old.
class HostileSliced : public HostileBytes<SlicedForgetful> {
 protected:
  static constexpr std::size_t kFirstTable = 64;

  HostileSliced() : HostileBytes(with_two_tables()) {}

  static SlicedForgetful with_two_tables() {
    auto filter =
        *SlicedForgetful::with_options({.window = 50, .rate_max = 0.1, .capacity = 6, .slices = 3});
    for (std::uint64_t i = 0; i < 9; ++i) {
      filter.advance_to(10 + i);
      EXPECT_TRUE(filter.insert(KeyHash::of_integer(i)));
    }
    EXPECT_EQ(filter.table_count(), 2U);
    return filter;
  }
};

TEST_F(HostileSliced, TheUnchangedBytesDecode) {
  EXPECT_TRUE(decode().has_value());
}
TEST_F(HostileSliced, OptionsThatCannotBeAreCorrupt) {
  EXPECT_TRUE(is_corrupt_with(0, 0)) << "no window";
  EXPECT_TRUE(is_corrupt_with(8, 3)) << "slices from the future";
  EXPECT_TRUE(is_corrupt_with(23, 0x7f)) << "a rate above one";
  EXPECT_TRUE(is_corrupt_with(24, 0)) << "no capacity";
  EXPECT_TRUE(is_corrupt_with(40, 1)) << "one slice";
  EXPECT_TRUE(is_corrupt_with(41, 2)) << "a sizing that there is not";
  EXPECT_TRUE(is_corrupt_with(42, 1)) << "padding";
  EXPECT_TRUE(is_corrupt_with(63, 1)) << "padding";
}
TEST_F(HostileSliced, TablesThatCannotBeAreCorrupt) {
  EXPECT_TRUE(is_corrupt_with(kFirstTable + 0, 0)) << "no capacity";
  EXPECT_TRUE(is_corrupt_with(kFirstTable + 15, 0x7f)) << "more than the target";
  EXPECT_TRUE(is_corrupt_with(kFirstTable + 15, 0xff)) << "less than nothing";
  EXPECT_TRUE(is_corrupt_with(kFirstTable + 16, 200)) << "begun in the future";
  EXPECT_TRUE(is_corrupt_with(kFirstTable + 24, 0)) << "no bits";
  EXPECT_TRUE(is_corrupt_with(kFirstTable + 31, 0x7f)) << "too many bits";
  EXPECT_TRUE(is_corrupt_with(kFirstTable + 28, 1)) << "more bits than bytes";
  EXPECT_TRUE(is_corrupt_with(kFirstTable + 32, 0)) << "no keys a slice";
  EXPECT_TRUE(is_corrupt_with(kFirstTable + 32, 3)) << "more keys a slice than capacity";
  EXPECT_TRUE(is_corrupt_with(kFirstTable + 40, 1)) << "probes that break its part of the target";
  EXPECT_TRUE(is_corrupt_with(kFirstTable + 40, 0)) << "no probes";
  EXPECT_TRUE(is_corrupt_with(kFirstTable + 41, 57)) << "too many slices";
  EXPECT_TRUE(is_corrupt_with(kFirstTable + 42, 3)) << "a slice that there is not";
  EXPECT_TRUE(is_corrupt_with(kFirstTable + 43, 1)) << "padding";
}
TEST_F(HostileSliced, SlicesThatContradictTheTableAreCorrupt) {
  const std::size_t slice = kFirstTable + 64;
  EXPECT_TRUE(is_corrupt_with(slice + 0, 30)) << "ends before it begins";
  EXPECT_TRUE(is_corrupt_with(slice + 8, 30)) << "ends in the future";
  EXPECT_TRUE(is_corrupt_with(slice + 16, 0)) << "bits without keys";
  EXPECT_TRUE(is_corrupt_with(slice + 16, 1)) << "more bits than the keys can have set";
  EXPECT_TRUE(is_corrupt_with(slice + 16, 3)) << "more keys than a slice takes";
  EXPECT_TRUE(is_corrupt_with(slice + 24, 1)) << "other bits than are set";
  EXPECT_TRUE(is_corrupt_with(slice + 96, 1)) << "padding after the slices";
  EXPECT_TRUE(is_corrupt_with(slice + 128, 0xa5)) << "other bits than were set";
}
TEST_F(HostileSliced, AHeaderThatContradictsTheBodyIsCorrupt) {
  const Envelope sound = envelope_;
  for (const unsigned tables : {0U, 1U, 3U, 9U}) {
    envelope_.width = static_cast<std::uint8_t>(tables);
    EXPECT_TRUE(decode().failed_with(Errc::corrupt)) << tables;
  }
  for (std::uint64_t Envelope::* field :
       {&Envelope::size, &Envelope::capacity, &Envelope::units, &Envelope::population}) {
    envelope_ = sound;
    envelope_.*field += 1;
    EXPECT_TRUE(decode().failed_with(Errc::corrupt));
  }
}
TEST_F(HostileSliced, ABodyThatIsCutOrGoesOnIsCorrupt) {
  body_.push_back(std::byte{0});
  EXPECT_TRUE(decode().failed_with(Errc::corrupt));
  while (!body_.empty()) {
    body_.truncate(body_.size() - 1);
    if (body_.size() % 64 != 0 || body_.size() < 64) {
      ASSERT_TRUE(decode().failed_with(Errc::corrupt)) << body_.size();
    }
    if (body_.size() % 64 == 1) ASSERT_TRUE(decode().failed_with(Errc::corrupt));
  }
}
// Bytes may say that nothing of the target is left: it sheds instead of growing.
TEST_F(HostileSliced, WithNothingLeftOfTheTargetItShedsInsteadOfGrowing) {
  base::store_le(body_.data() + kFirstTable + 8, std::bit_cast<std::uint64_t>(0.1 - 0.1 / 4));
  auto filter = *decode();
  std::uint64_t next = 1000;
  while (filter.insert(KeyHash::of_integer(next)) && next < 2000) ++next;
  EXPECT_LT(next, 2000U);
  EXPECT_TRUE(filter.is_shedding());
}

}  // namespace
}  // namespace helenus::filters
