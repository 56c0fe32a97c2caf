// The contract of filter.h as one suite of tests, run for every filter there is.
//
// A filter joins by a FilterSubject that says how to make one, and a line in
// filter_contract_test.cc. All keys come from fixed seeds, so that a test that passes once passes
// always; the bounds on what is counted are those a correct filter would break once in 100,000
// choices of seed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"
#include "filters/checked_filter.h"
#include "filters/filter.h"
#include "filters/overlap.h"

namespace helenus::filters {

// static F make(std::uint64_t capacity): an empty filter for so many keys.
// static constexpr double kTightness: the part of the declared bound that it reaches when full, at
// least; where it is not given, 0.8.
template <Filter F>
struct FilterSubject;

template <Filter F>
constexpr double tightness_of() {
  if constexpr (requires { FilterSubject<F>::kTightness; }) {
    return FilterSubject<F>::kTightness;
  } else {
    return 0.8;
  }
}

// Keys number `from` to `from + count`; numbers never collide.
inline std::vector<KeyHash> keys_from(std::uint64_t from, std::size_t count) {
  std::vector<KeyHash> keys;
  keys.reserve(count);
  for (std::size_t i = 0; i < count; ++i) keys.push_back(KeyHash::of_integer(from + i));
  return keys;
}

// Numbers that no test inserts.
inline constexpr std::uint64_t kStrangers = std::uint64_t{1} << 40;

template <Filter F>
std::vector<bool> batch_answers(const F& filter, std::span<const KeyHash> keys) {
  const auto answers = std::make_unique<bool[]>(keys.size());
  filter.contains_batch(keys, std::span(answers.get(), keys.size()));
  return std::vector<bool>(answers.get(), answers.get() + keys.size());
}

template <Filter F>
std::uint64_t yes_count(const F& filter, std::span<const KeyHash> keys) {
  const std::vector<bool> answers = batch_answers(filter, keys);
  return static_cast<std::uint64_t>(std::ranges::count(answers, true));
}

// `hits` out of `trials` that each hit with probability `rate`: within 4.4 standard deviations,
// and a few for small numbers, where the distribution has a tail.
inline void expect_hits_at_rate(std::uint64_t hits, std::uint64_t trials, double rate) {
  const double expected = static_cast<double>(trials) * rate;
  const double allowed = 4.4 * std::sqrt(expected) + 4;
  EXPECT_LE(static_cast<double>(hits), expected + allowed) << trials << " trials at " << rate;
  EXPECT_GE(static_cast<double>(hits), expected - allowed) << trials << " trials at " << rate;
}

template <class F>
class FilterContract : public ::testing::Test {
 protected:
  static F make(std::uint64_t capacity) { return FilterSubject<F>::make(capacity); }

  static F filled(std::uint64_t capacity) {
    F filter = make(capacity);
    for (const KeyHash key : keys_from(0, capacity)) EXPECT_TRUE(filter.insert(key));
    return filter;
  }
};

TYPED_TEST_SUITE_P(FilterContract);

TYPED_TEST_P(FilterContract, AnEmptyFilterDeniesEverything) {
  const TypeParam filter = this->make(1000);
  EXPECT_EQ(filter.size(), 0U);
  EXPECT_EQ(filter.false_positive_rate(), 0.0);
  EXPECT_EQ(yes_count(filter, keys_from(0, 1000)), 0U);
}

TYPED_TEST_P(FilterContract, TakesItsCapacityAndDeniesNoneOfIt) {
  for (const std::uint64_t capacity :
       {1UL, 2UL, 3UL, 4UL, 5UL, 6UL, 7UL, 8UL, 9UL, 10UL, 17UL, 64UL, 100UL, 1000UL, 20'000UL}) {
    const TypeParam filter = this->filled(capacity);
    EXPECT_EQ(filter.size(), capacity);
    EXPECT_EQ(filter.capacity(), capacity);
    EXPECT_EQ(yes_count(filter, keys_from(0, capacity)), capacity);
  }
}

TYPED_TEST_P(FilterContract, AnswersABatchAsItAnswersOneByOne) {
  const TypeParam filter = this->filled(500);
  for (const std::size_t count :
       {0UL, 1UL, kLookupsInFlight - 1, kLookupsInFlight, kLookupsInFlight + 1,
        2 * kLookupsInFlight - 1, 2 * kLookupsInFlight, 2 * kLookupsInFlight + 1, 1000UL}) {
    const std::vector<KeyHash> keys = keys_from(250, count);
    const std::vector<bool> answers = batch_answers(filter, keys);
    for (std::size_t i = 0; i < count; ++i) {
      filter.prefetch(keys[i]);
      EXPECT_EQ(answers[i], filter.contains(keys[i])) << i << " of " << count;
    }
  }
}

TYPED_TEST_P(FilterContract, SaysYesToStrangersAsRarelyAsItDeclares) {
  constexpr std::uint64_t kCapacity = 50'000;
  constexpr std::uint64_t kTrials = 400'000;
  TypeParam filter = this->make(kCapacity);
  const std::vector<KeyHash> strangers = keys_from(kStrangers, kTrials);
  for (const std::uint64_t keys : {kCapacity / 4, kCapacity / 2, kCapacity}) {
    for (const KeyHash key : keys_from(filter.size(), keys - filter.size())) {
      ASSERT_TRUE(filter.insert(key));
    }
    const std::uint64_t hits = yes_count(filter, strangers);
    expect_hits_at_rate(hits, kTrials, filter.false_positive_rate());
    EXPECT_LE(filter.false_positive_rate(), filter.false_positive_rate_max());
  }
  // The declared bound is not a lax one.
  EXPECT_GT(filter.false_positive_rate(),
            tightness_of<TypeParam>() * filter.false_positive_rate_max());
}

TYPED_TEST_P(FilterContract, RefusesWhenFullAndLosesNothing) {
  for (const std::uint64_t capacity : {1UL, 10UL, 1000UL}) {
    TypeParam filter = this->filled(capacity);
    std::uint64_t inserted = capacity;
    base::Bytes before = filter.encode();
    // Twice the capacity does not fit any filter.
    while (inserted < 64 + 2 * capacity && filter.insert(KeyHash::of_integer(inserted))) {
      ++inserted;
      before = filter.encode();
    }
    ASSERT_LT(inserted, 64 + 2 * capacity);
    EXPECT_EQ(filter.size(), inserted);
    EXPECT_EQ(filter.encode(), before) << "a refused insertion changed the filter";
    EXPECT_EQ(yes_count(filter, keys_from(0, inserted)), inserted);
  }
}

TYPED_TEST_P(FilterContract, ComesBackFromItsBytesTheSame) {
  for (const std::uint64_t capacity : {1UL, 7UL, 100UL, 5000UL}) {
    const TypeParam filter = this->filled(capacity);
    const base::Bytes encoded = filter.encode();
    const auto decoded = TypeParam::decode(encoded);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().to_string();
    EXPECT_EQ(decoded->encode(), encoded);
    EXPECT_EQ(decoded->size(), filter.size());
    EXPECT_EQ(decoded->capacity(), filter.capacity());
    EXPECT_EQ(decoded->memory_bytes(), filter.memory_bytes());
    EXPECT_EQ(decoded->false_positive_rate(), filter.false_positive_rate());
    EXPECT_EQ(decoded->false_positive_rate_max(), filter.false_positive_rate_max());
    const std::vector<KeyHash> asked = keys_from(0, capacity + 20'000);
    EXPECT_EQ(batch_answers(*decoded, asked), batch_answers(filter, asked));
  }
}

TYPED_TEST_P(FilterContract, ADecodedFilterCanBeChangedAndItsBytesCannot) {
  TypeParam original = this->make(100);
  for (const KeyHash key : keys_from(0, 50)) ASSERT_TRUE(original.insert(key));
  const base::Bytes encoded = original.encode();
  const base::Bytes kept = encoded.compact();
  auto decoded = TypeParam::decode(encoded);
  ASSERT_TRUE(decoded.has_value());
  for (const KeyHash key : keys_from(50, 50)) ASSERT_TRUE(decoded->insert(key));
  EXPECT_EQ(yes_count(*decoded, keys_from(0, 100)), 100U);
  EXPECT_EQ(encoded, kept);
}

TYPED_TEST_P(FilterContract, ReadsBytesAtAnyAddressAndNothingBesideThem) {
  const TypeParam filter = this->filled(77);
  const base::Bytes encoded = filter.encode();
  for (std::size_t shift = 0; shift < 9; ++shift) {
    base::Buffer memory(shift + encoded.size());
    for (std::size_t i = 0; i < shift; ++i) memory.push_back(std::byte{0xee});
    memory.append(encoded);
    auto decoded = TypeParam::decode(std::move(memory).freeze().slice(shift));
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(yes_count(*decoded, keys_from(0, 77)), 77U);
  }
}

TYPED_TEST_P(FilterContract, BytesWithAnyBitFlippedAreAnError) {
  const base::Bytes encoded = this->filled(20).encode();
  for (std::size_t bit = 0; bit < encoded.size() * 8; ++bit) {
    base::Buffer damaged(encoded.size());
    damaged.append(encoded);
    damaged.data()[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto decoded = TypeParam::decode(std::move(damaged).freeze());
    ASSERT_FALSE(decoded.has_value()) << "bit " << bit;
    ASSERT_EQ(decoded.error().code(), base::Errc::corrupt) << "bit " << bit;
  }
}

TYPED_TEST_P(FilterContract, BytesCutShortOrGoingOnAreAnError) {
  const base::Bytes encoded = this->filled(20).encode();
  for (std::size_t size = 0; size < encoded.size(); ++size) {
    ASSERT_TRUE(TypeParam::decode(encoded.slice(0, size)).failed_with(base::Errc::corrupt)) << size;
  }
  base::Buffer longer;
  longer.append(encoded);
  longer.push_back(std::byte{0});
  EXPECT_TRUE(TypeParam::decode(std::move(longer).freeze()).failed_with(base::Errc::corrupt));
}

// Few keys and a small filter, so that it is often full, keys are often in twice and fingerprints
// often meet.
TYPED_TEST_P(FilterContract, KeepsStepWithTheTruth) {
  const bool held = rc::check([this] {
    const auto capacity = *rc::gen::inRange<std::uint64_t>(1, 40);
    CheckedFilter<TypeParam> checked(this->make(capacity));
    const auto operations = *rc::gen::container<std::vector<std::pair<unsigned, unsigned>>>(
        rc::gen::pair(rc::gen::inRange(0U, 8U), rc::gen::inRange(0U, 100U)));
    for (const auto& [operation, number] : operations) {
      const KeyHash key = KeyHash::of_integer(number);
      if (operation < 3) {
        checked.insert(key);
      } else if (operation < 5) {
        if constexpr (ErasableFilter<TypeParam>) checked.erase(key);
      } else if (operation < 7) {
        if constexpr (AdaptiveFilter<TypeParam>) {
          checked.contains_and_report(key);
        } else {
          checked.contains(key);
        }
      } else {
        checked.reload();
      }
    }
    checked.contains_all();
    RC_ASSERT(checked.problem().empty());
  });
  EXPECT_TRUE(held);
}

REGISTER_TYPED_TEST_SUITE_P(FilterContract, AnEmptyFilterDeniesEverything,
                            TakesItsCapacityAndDeniesNoneOfIt, AnswersABatchAsItAnswersOneByOne,
                            SaysYesToStrangersAsRarelyAsItDeclares, RefusesWhenFullAndLosesNothing,
                            ComesBackFromItsBytesTheSame,
                            ADecodedFilterCanBeChangedAndItsBytesCannot,
                            ReadsBytesAtAnyAddressAndNothingBesideThem,
                            BytesWithAnyBitFlippedAreAnError, BytesCutShortOrGoingOnAreAnError,
                            KeepsStepWithTheTruth);

template <class F>
class ErasableFilterContract : public FilterContract<F> {};

TYPED_TEST_SUITE_P(ErasableFilterContract);

TYPED_TEST_P(ErasableFilterContract, AnErasedKeyIsGoneAndTheOthersStay) {
  constexpr std::uint64_t kCapacity = 5000;
  TypeParam filter = this->filled(kCapacity);
  for (const KeyHash key : keys_from(0, kCapacity / 2)) EXPECT_TRUE(filter.erase(key));
  EXPECT_EQ(filter.size(), kCapacity / 2);
  EXPECT_EQ(yes_count(filter, keys_from(kCapacity / 2, kCapacity / 2)), kCapacity / 2);
  expect_hits_at_rate(yes_count(filter, keys_from(0, kCapacity / 2)), kCapacity / 2,
                      filter.false_positive_rate());
  for (const KeyHash key : keys_from(kCapacity / 2, kCapacity / 2)) EXPECT_TRUE(filter.erase(key));
  EXPECT_EQ(filter.size(), 0U);
  EXPECT_EQ(yes_count(filter, keys_from(0, kCapacity)), 0U);
}

TYPED_TEST_P(ErasableFilterContract, AKeyInsertedTwiceIsErasedTwice) {
  TypeParam filter = this->make(100);
  const KeyHash key("twice");
  ASSERT_TRUE(filter.insert(key));
  ASSERT_TRUE(filter.insert(key));
  EXPECT_EQ(filter.count(key), 2U);
  EXPECT_TRUE(filter.erase(key));
  EXPECT_EQ(filter.count(key), 1U);
  EXPECT_TRUE(filter.contains(key));
  EXPECT_TRUE(filter.erase(key));
  EXPECT_FALSE(filter.contains(key));
  EXPECT_FALSE(filter.erase(key));
  EXPECT_EQ(filter.size(), 0U);
}

// What filter.h says of erasing a key that is not in: without a trace of it, nothing; with one,
// the filter may lose that trace, and with it one key and no more.
TYPED_TEST_P(ErasableFilterContract, ErasingAStrangerTakesOutAtMostOneTrace) {
  constexpr std::uint64_t kCapacity = 3000;
  TypeParam filter = this->filled(kCapacity);
  const std::vector<KeyHash> members = keys_from(0, kCapacity);
  std::uint64_t traces_taken = 0;
  for (const KeyHash stranger : keys_from(kStrangers, 20'000)) {
    const unsigned traces = filter.count(stranger);
    const bool erased = filter.erase(stranger);
    EXPECT_EQ(erased, traces > 0);
    if (erased) {
      ++traces_taken;
      EXPECT_EQ(filter.count(stranger), traces - 1);
    }
  }
  EXPECT_EQ(filter.size(), kCapacity - traces_taken);
  EXPECT_GE(yes_count(filter, members), kCapacity - traces_taken);
}

TYPED_TEST_P(ErasableFilterContract, TenTimesItsCapacityOfChurnChangesNothing) {
  constexpr std::uint64_t kCapacity = 20'000;
  constexpr std::uint64_t kTrials = 200'000;
  TypeParam filter = this->filled(kCapacity);
  const std::vector<KeyHash> strangers = keys_from(kStrangers, kTrials);
  const double rate = filter.false_positive_rate();
  // The keys that are in are numbers [oldest, newest), in an order that does not repeat.
  std::vector<KeyHash> members = keys_from(0, kCapacity);
  std::uint64_t newest = kCapacity;
  base::Prng prng(7);
  for (int round = 0; round < 10; ++round) {
    for (std::uint64_t i = 0; i < kCapacity; ++i) {
      KeyHash& member = members[prng.below(kCapacity)];
      ASSERT_TRUE(filter.erase(member));
      member = KeyHash::of_integer(newest++);
      ASSERT_TRUE(filter.insert(member)) << "round " << round << ", key " << i;
    }
    ASSERT_EQ(filter.size(), kCapacity);
    ASSERT_EQ(yes_count(filter, members), kCapacity) << "a key was lost in round " << round;
    expect_hits_at_rate(yes_count(filter, strangers), kTrials, rate);
  }
}

REGISTER_TYPED_TEST_SUITE_P(ErasableFilterContract, AnErasedKeyIsGoneAndTheOthersStay,
                            AKeyInsertedTwiceIsErasedTwice, ErasingAStrangerTakesOutAtMostOneTrace,
                            TenTimesItsCapacityOfChurnChangesNothing);

template <class F>
class AdaptiveFilterContract : public FilterContract<F> {};

TYPED_TEST_SUITE_P(AdaptiveFilterContract);

TYPED_TEST_P(AdaptiveFilterContract, AReportedFalsePositiveIsNotGivenAgainAndNoKeyIsLost) {
  constexpr std::uint64_t kCapacity = 20'000;
  TypeParam filter = this->filled(kCapacity);
  const std::vector<KeyHash> members = keys_from(0, kCapacity);
  std::uint64_t reported = 0;
  for (const KeyHash stranger : keys_from(kStrangers, 200'000)) {
    if (!filter.contains(stranger)) continue;
    ++reported;
    filter.report_false_positive(stranger);
    EXPECT_FALSE(filter.contains(stranger));
  }
  expect_hits_at_rate(reported, 200'000, filter.false_positive_rate());
  EXPECT_EQ(filter.size(), kCapacity);
  EXPECT_EQ(yes_count(filter, members), kCapacity);
}

TYPED_TEST_P(AdaptiveFilterContract, StrangersThatComeBackAreSoonDenied) {
  constexpr std::uint64_t kCapacity = 20'000;
  TypeParam filter = this->filled(kCapacity);
  const std::vector<KeyHash> strangers = keys_from(kStrangers, 50'000);
  std::uint64_t first_round = 0;
  std::uint64_t last_round = 0;
  for (int round = 0; round < 5; ++round) {
    last_round = 0;
    for (const KeyHash stranger : strangers) {
      if (!filter.contains(stranger)) continue;
      ++last_round;
      filter.report_false_positive(stranger);
    }
    if (round == 0) first_round = last_round;
  }
  EXPECT_LE(last_round, first_round / 20);
}

REGISTER_TYPED_TEST_SUITE_P(AdaptiveFilterContract,
                            AReportedFalsePositiveIsNotGivenAgainAndNoKeyIsLost,
                            StrangersThatComeBackAreSoonDenied);

}  // namespace helenus::filters
