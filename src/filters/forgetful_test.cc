// What is particular to the paper's forgetful filters and to the recyclable one, and the paper's
// equations; the rest is in filter_contract.h. SlicedForgetful has a file of its own.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/codec.h"
#include "filters/envelope.h"
#include "filters/filter_contract.h"
#include "filters/forgetful_bloom.h"
#include "filters/forgetful_rates.h"
#include "filters/hostile_bytes_test_support.h"
#include "filters/probes.h"

namespace helenus::filters {
namespace {

using base::Errc;

TEST(ForgetfulRates, OfABloomFilter) {
  // 300 elements in 6250 bits by 5 probes, the paper's favourite.
  EXPECT_NEAR(bloom_rate(6250, 5, 300), 4.4e-4, 1e-5);
  EXPECT_EQ(bloom_rate(1, 3, 0), 0);
  EXPECT_EQ(bloom_rate(1, 3, 1), 1);
}

TEST(ForgetfulRates, AChainCountsWhatNeighboursSayOnlyOnce) {
  EXPECT_NEAR(chain_rate(std::vector{0.25}, {}), 0.25, 1e-12);
  EXPECT_NEAR(chain_rate(std::vector{0.25, 0.25}, std::vector{0.25}), 0.25, 1e-12) << "the same";
  EXPECT_NEAR(chain_rate(std::vector{0.25, 0.25}, std::vector{0.0}), 0.5, 1e-12) << "never both";
  EXPECT_NEAR(chain_rate(std::vector{1e-15, 1e-15}, std::vector{0.0}), 2e-15, 1e-20);
  EXPECT_EQ(chain_rate(std::vector{1.0, 0.5}, std::vector{0.5}), 1);
  EXPECT_NEAR(sliced_rate(std::vector{0.5, 0.25}, 2), 1 - 0.75 * (1 - 0.0625), 1e-12);
}

// How many refreshes a key inserted just before one of them lives to see.
unsigned refreshes_survived(unsigned past, ForgetfulCheck check) {
  auto filter = *ForgetfulBloom::with_shape(
      {.bits = 100'000, .probes = 5, .past = past, .capacity = 100, .check = check});
  filter.insert("key");
  unsigned refreshes = 0;
  for (; filter.contains("key"); ++refreshes) filter.refresh();
  return refreshes - 1;
}

TEST(ForgetfulBloom, RemembersForNPlusOnePeriodsAndAsPrintedForOneLess) {
  for (const unsigned past : {1U, 2U, 3U, 8U, 54U}) {
    EXPECT_EQ(refreshes_survived(past, ForgetfulCheck::simple), past + 1);
    EXPECT_EQ(refreshes_survived(past, ForgetfulCheck::optimised), past + 1);
    EXPECT_EQ(refreshes_survived(past, ForgetfulCheck::optimised_as_printed), past == 1 ? 2 : past);
  }
}

TEST(ForgetfulBloom, InsertsOnlyWhatItDoesNotHave) {
  auto filter = *ForgetfulBloom::for_rate(1000, 3, 0.001);
  EXPECT_TRUE(filter.insert_if_absent("key"));
  EXPECT_FALSE(filter.insert_if_absent("key"));
  for (unsigned i = 0; i < 4; ++i) {
    filter.refresh();
    EXPECT_FALSE(filter.insert_if_absent("key")) << "refresh " << i;
  }
  EXPECT_EQ(filter.size(), 1U);
  EXPECT_EQ(filter.keys_of_period(4), 1U);
  filter.refresh();
  EXPECT_EQ(filter.size(), 0U);
  EXPECT_TRUE(filter.insert_if_absent("key"));
}

// A filter in the steady state: as many keys in each of its periods, just before a refresh.
ForgetfulBloom steady(ForgetfulBloom::Shape shape, std::uint64_t keys_per_period) {
  auto filter = *ForgetfulBloom::with_shape(shape);
  std::uint64_t next = 0;
  for (unsigned period = 0; period < shape.past + 4; ++period) {
    if (period > 0) filter.refresh();
    for (std::uint64_t i = 0; i < keys_per_period; ++i) filter.insert(KeyHash::of_integer(next++));
  }
  return filter;
}

TEST(ForgetfulBloom, ByFillAndByTheCorrectedEquationsItDeclaresWhatStrangersMeet) {
  constexpr std::uint64_t kTrials = 300'000;
  const std::vector<KeyHash> strangers = keys_from(kStrangers, kTrials);
  for (const unsigned past : {1U, 4U, 10U}) {
    for (const auto check : {ForgetfulCheck::optimised, ForgetfulCheck::simple,
                             ForgetfulCheck::optimised_as_printed}) {
      const auto filter =
          steady({.bits = 62'500, .probes = 5, .past = past, .capacity = 1, .check = check}, 4000);
      const double measured = static_cast<double>(yes_count(filter, strangers)) / kTrials;
      EXPECT_NEAR(filter.false_positive_rate() / measured, 1, 0.06) << past;
      EXPECT_NEAR(filter.rate_by_equation() / measured, 1, 0.06) << past;
    }
  }
}

// Where the oldest filter is not asked alone, fewer strangers get a yes; so do keys.
TEST(ForgetfulBloom, AsPrintedTheCheckDeclaresALowerRateThanTheMendedOne) {
  const auto declared = [](ForgetfulCheck check, unsigned past) {
    const ForgetfulBloom::Shape shape{
        .bits = 62'500, .probes = 5, .past = past, .capacity = 4000UL * (past + 2), .check = check};
    return ForgetfulBloom::with_shape(shape)->false_positive_rate_max();
  };
  EXPECT_EQ(declared(ForgetfulCheck::optimised_as_printed, 1),
            declared(ForgetfulCheck::optimised, 1));
  EXPECT_LT(declared(ForgetfulCheck::optimised_as_printed, 4),
            0.6 * declared(ForgetfulCheck::optimised, 4));
  EXPECT_GT(declared(ForgetfulCheck::simple, 4), declared(ForgetfulCheck::optimised, 4));
}

TEST(ForgetfulBloom, IsNoLargerThanTheRateNeeds) {
  for (const double rate : {0.1, 0.01, 1e-4}) {
    const auto filter = *ForgetfulBloom::for_rate(10'000, 3, rate);
    EXPECT_LE(filter.false_positive_rate_max(), rate);
    EXPECT_GE(filter.false_positive_rate_max(), 0.99 * rate);
  }
}

TEST(ForgetfulBloom, ShapesThatCannotBeAreErrors) {
  const ForgetfulBloom::Shape sound{.bits = 8, .probes = 1, .past = 1, .capacity = 1};
  EXPECT_TRUE(ForgetfulBloom::with_shape(sound).has_value());
  const auto refused = [&](auto change) {
    ForgetfulBloom::Shape shape = sound;
    change(shape);
    return ForgetfulBloom::with_shape(shape).failed_with(Errc::invalid_argument);
  };
  EXPECT_TRUE(refused([](auto& shape) { shape.bits = 0; }));
  EXPECT_TRUE(refused([](auto& shape) { shape.bits = ~0UL; }));
  EXPECT_TRUE(refused([](auto& shape) { shape.probes = 0; }));
  EXPECT_TRUE(refused([](auto& shape) { shape.probes = 33; }));
  EXPECT_TRUE(refused([](auto& shape) { shape.past = 0; }));
  EXPECT_TRUE(refused([](auto& shape) { shape.past = 55; }));
  EXPECT_TRUE(refused([](auto& shape) { shape.capacity = 0; }));
  EXPECT_TRUE(refused([](auto& shape) { shape.check = ForgetfulCheck{3}; }));
  EXPECT_TRUE(ForgetfulBloom::for_rate(0, 1, 0.01).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(ForgetfulBloom::for_rate(1, 0, 0.01).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(ForgetfulBloom::for_rate(1, 1, 0.6).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(ForgetfulBloom::for_rate(1, 1, std::nan("")).failed_with(Errc::invalid_argument));
}

// Bytes with sound checksums that describe no filter.
class HostileForgetful : public ::testing::Test {
 protected:
  HostileForgetful() {
    auto filter =
        *ForgetfulBloom::with_shape({.bits = 500, .probes = 3, .past = 2, .capacity = 40});
    for (const KeyHash key : keys_from(0, 10)) filter.insert(key);
    filter.refresh();
    for (const KeyHash key : keys_from(10, 10)) filter.insert(key);
    auto opened = *unseal(filter.encode());
    envelope_ = opened.envelope;
    body_.append(opened.body);
  }

  bool is_corrupt() {
    return ForgetfulBloom::decode(seal(envelope_, body_.view())).failed_with(Errc::corrupt);
  }
  void set(std::size_t offset, std::uint8_t value) { body_.data()[offset] = std::byte{value}; }

  Envelope envelope_;
  base::Buffer body_;
};

TEST_F(HostileForgetful, TheUnchangedBytesDecode) {
  EXPECT_TRUE(ForgetfulBloom::decode(seal(envelope_, body_.view())).has_value());
}
TEST_F(HostileForgetful, ShapesThatCannotBeAreCorrupt) {
  for (const unsigned past : {0U, 1U, 3U, 55U, 255U}) {
    set(0, static_cast<std::uint8_t>(past));
    EXPECT_TRUE(is_corrupt()) << past;
  }
  set(0, 2);
  set(1, 3);
  EXPECT_TRUE(is_corrupt()) << "a check that there is not";
  set(1, 0);
  set(2, 4);
  EXPECT_TRUE(is_corrupt()) << "a future filter that there is not";
  set(2, 0);
  EXPECT_TRUE(is_corrupt()) << "another filter is the future one: its keys are not in the present";
}
TEST_F(HostileForgetful, NumbersThatContradictTheTableAreCorrupt) {
  const Envelope sound = envelope_;
  envelope_.population += 1;
  EXPECT_TRUE(is_corrupt());
  envelope_ = sound;
  envelope_.size += 1;
  EXPECT_TRUE(is_corrupt());
  envelope_ = sound;
  envelope_.units = 501;
  EXPECT_FALSE(is_corrupt()) << "a table in the same bytes, all of it in use or zero";
  envelope_.units = 499;
  envelope_.width = 0;
  EXPECT_TRUE(is_corrupt());
  envelope_ = sound;
  set(8, 1);
  envelope_.size = 11;
  EXPECT_TRUE(is_corrupt()) << "more bits than the keys can have set";
  set(8, 0);
  envelope_.size = 10;
  EXPECT_TRUE(is_corrupt()) << "bits without keys";
}
TEST_F(HostileForgetful, PaddingInUseAndUncountableKeysAreCorrupt) {
  set(3, 1);
  EXPECT_TRUE(is_corrupt());
  set(3, 0);
  set(8 + 4 * 8, 1);
  EXPECT_TRUE(is_corrupt());
  set(8 + 4 * 8, 0);
  for (std::size_t i = 0; i < 8; ++i) set(24 + i, 0xff);
  envelope_.size = 19;
  EXPECT_TRUE(is_corrupt());
}
TEST_F(HostileForgetful, CountsNoMoreKeysThanItCanWrite) {
  set(8, 0);
  set(15, 1);
  envelope_.size = 10 + ForgetfulBloom::kKeysPerPeriodMax;
  auto filter = *ForgetfulBloom::decode(seal(envelope_, body_.view()));
  EXPECT_FALSE(filter.insert("key"));
  EXPECT_TRUE(filter.insert_if_absent("key"));
  EXPECT_TRUE(ForgetfulBloom::decode(filter.encode())->contains("key"));
}
TEST_F(HostileForgetful, ABodyTooShortForItsHeadIsCorrupt) {
  body_.truncate(1);
  EXPECT_TRUE(is_corrupt());
  body_.truncate(0);
  EXPECT_TRUE(is_corrupt());
}

}  // namespace
}  // namespace helenus::filters
