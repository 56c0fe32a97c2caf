// What is particular to the adaptive filter; the rest is in filter_contract.h.
#include "filters/adaptive_cuckoo.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/prng.h"
#include "filters/envelope.h"
#include "filters/filter_contract.h"

namespace helenus::filters {
namespace {

using base::Errc;

// A filter whose residents are somewhere else, as an sstable's are.
class AdaptiveCuckooTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kKeys = 20'000;

  AdaptiveCuckooTest()
      : filter_(*AdaptiveCuckoo<16>::for_capacity(kKeys)),
        disk_(*ResidentKeys::for_slots(filter_.slot_count())) {
    for (const KeyHash key : keys_from(0, kKeys)) EXPECT_TRUE(filter_.insert(key, disk_));
  }

  std::vector<Resident> fetch(KeyHash key) const {
    std::vector<Resident> residents;
    for (const std::uint64_t slot : filter_.matches(key).slots()) {
      residents.push_back({slot, disk_.at(slot)});
    }
    return residents;
  }

  KeyHash a_false_positive() {
    while (!filter_.contains(KeyHash::of_integer(next_))) ++next_;
    return KeyHash::of_integer(next_++);
  }

  std::uint64_t members_denied() const {
    std::uint64_t denied = 0;
    for (const KeyHash key : keys_from(0, kKeys)) denied += filter_.contains(key) ? 0 : 1;
    return denied;
  }

  AdaptiveCuckoo<16> filter_;
  ResidentKeys disk_;
  std::uint64_t next_ = kStrangers;
};

TEST_F(AdaptiveCuckooTest, ResidentsFollowEveryMove) {
  EXPECT_GT(filter_.load(), 0.94);
  EXPECT_TRUE(filter_.agrees_with(disk_));
  for (const KeyHash key : keys_from(0, 1000)) {
    const std::vector<Resident> residents = fetch(key);
    EXPECT_EQ(std::ranges::count(residents, key, &Resident::key), 1);
  }
}

TEST_F(AdaptiveCuckooTest, AdaptsWithTheFetchedResidentsAlone) {
  for (int i = 0; i < 100; ++i) {
    const KeyHash absent = a_false_positive();
    EXPECT_EQ(filter_.adapt(absent, fetch(absent)), Adapted::done);
    EXPECT_FALSE(filter_.contains(absent));
    EXPECT_EQ(filter_.adapt(absent, fetch(absent)), Adapted::not_needed);
  }
  EXPECT_EQ(members_denied(), 0U);
  EXPECT_TRUE(filter_.agrees_with(disk_));
}

TEST_F(AdaptiveCuckooTest, AdaptationsSurviveTheRoundTrip) {
  const KeyHash absent = a_false_positive();
  ASSERT_EQ(filter_.adapt(absent, fetch(absent)), Adapted::done);
  filter_ = *AdaptiveCuckoo<16>::decode(filter_.encode());
  disk_ = *ResidentKeys::decode(disk_.encode());
  EXPECT_FALSE(filter_.contains(absent));
  const KeyHash another = a_false_positive();
  EXPECT_EQ(filter_.adapt(another, fetch(another)), Adapted::done);
  EXPECT_FALSE(filter_.contains(another));
  EXPECT_EQ(members_denied(), 0U);
}

TEST_F(AdaptiveCuckooTest, AReportOfAKeyThatIsInChangesNothing) {
  const base::Bytes before = filter_.encode();
  for (const KeyHash key : keys_from(0, 1000)) {
    EXPECT_EQ(filter_.adapt(key, fetch(key)), Adapted::key_is_present);
  }
  EXPECT_EQ(filter_.encode(), before);
}

TEST_F(AdaptiveCuckooTest, ResidentsThatAreMissingOrWrongChangeNothing) {
  const KeyHash absent = a_false_positive();
  std::vector<Resident> residents = fetch(absent);
  const base::Bytes before = filter_.encode();
  EXPECT_TRUE(filter_.adapt(absent, {}).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(filter_.erase(absent, {}).failed_with(Errc::invalid_argument));
  residents[0].key = KeyHash("somebody else");
  EXPECT_TRUE(filter_.adapt(absent, residents).failed_with(Errc::corrupt));
  EXPECT_TRUE(filter_.erase(absent, residents).failed_with(Errc::corrupt));
  EXPECT_EQ(filter_.encode(), before);
}

TEST_F(AdaptiveCuckooTest, ErasesExactlyTheKeyEvenWhenAnotherAgreesWithItsSlots) {
  // A stranger that agrees with a member's slot: inserted, it is a second key in the same place.
  const KeyHash twin = a_false_positive();
  ASSERT_TRUE(filter_.erase(KeyHash::of_integer(0), fetch(KeyHash::of_integer(0)))->has_value());
  ASSERT_TRUE(filter_.insert(twin, disk_));
  EXPECT_GE(filter_.matches(twin).slots().size(), 2U);
  const auto erased = filter_.erase(twin, fetch(twin));
  ASSERT_TRUE(erased->has_value());
  EXPECT_EQ(disk_.at(**erased), twin);
  EXPECT_EQ(members_denied(), filter_.contains(KeyHash::of_integer(0)) ? 0U : 1U);
  EXPECT_EQ(*filter_.erase(twin, fetch(twin)), std::nullopt);
}

// The inverse of base::mix64: inverse multipliers, and shifts undone from the top.
std::uint64_t unmix64(std::uint64_t word) {
  word ^= (word >> 31) ^ (word >> 62);
  word *= 0x319642b2d24d8ec3;
  word ^= (word >> 27) ^ (word >> 54);
  word *= 0x96de1b173f119089;
  return word ^ (word >> 30) ^ (word >> 60);
}

TEST(AdaptiveCuckoo, AKeyThatAgreesUnderEverySelectorCannotBeToldApart) {
  auto filter = *KeyedAdaptiveCuckoo<16>::with_buckets(1);
  const KeyHash member("member");
  ASSERT_EQ(unmix64(base::mix64(member.value())), member.value());
  ASSERT_TRUE(filter.insert(member));
  const base::Bytes before = filter.encode();
  // Chance finds such a key once in 2^38; built from the member's own tags, once in 64.
  constexpr std::uint64_t kTagsOfAllSelectors = 0x00ff00ff00ff00ff;
  base::Prng prng(1);
  std::uint64_t twin;
  do {
    const std::uint64_t tags = base::mix64(member.value()) & kTagsOfAllSelectors;
    twin = unmix64(tags | (prng.next() & ~kTagsOfAllSelectors));
  } while (twin % 64 != member.value() % 64);
  ASSERT_NE(twin, member.value());
  EXPECT_TRUE(filter.contains(KeyHash(twin)));
  EXPECT_EQ(filter.report_false_positive(KeyHash(twin)), Adapted::impossible);
  EXPECT_EQ(filter.encode(), before);
}

// At 32 bits no number of strangers that a test can ask would show a tag cut short.
template <class F>
class AdaptiveCuckooOfEveryWidth : public ::testing::Test {};
using AdaptiveCuckoos = ::testing::Types<KeyedAdaptiveCuckoo<16>, KeyedAdaptiveCuckoo<32>>;
TYPED_TEST_SUITE(AdaptiveCuckooOfEveryWidth, AdaptiveCuckoos);

TYPED_TEST(AdaptiveCuckooOfEveryWidth, EveryBitOfBaseAndTagTellsKeysApart) {
  using Slots = std::remove_cvref_t<decltype(std::declval<TypeParam&>().filter())>;
  for (const KeyHash key : keys_from(0, 20)) {
    // With this bit the low ones are neither 0 nor 1, which look alike.
    const KeyHash member(key.value() | 2);
    auto filter = *TypeParam::with_buckets(1);
    ASSERT_TRUE(filter.insert(member));
    for (unsigned bit = 0; bit < Slots::kBaseBits; ++bit) {
      EXPECT_FALSE(filter.contains(KeyHash(member.value() ^ (std::uint64_t{1} << bit))));
    }
    for (unsigned bit = 0; bit < Slots::kTagBits; ++bit) {
      // The first tag differs in one bit; the others are tried until the base is the same.
      const std::uint64_t tags = base::mix64(member.value()) ^ (std::uint64_t{1} << bit);
      std::uint64_t twin = 0;
      std::uint64_t others = 0;
      do {
        twin = unmix64(tags ^ (++others << 16));
      } while ((twin ^ member.value()) % (std::uint64_t{1} << Slots::kBaseBits) != 0);
      EXPECT_FALSE(filter.contains(KeyHash(twin))) << bit;
    }
  }
}

TEST(AdaptiveCuckoo, ErasingAStrangerDoesNothing) {
  constexpr std::uint64_t kKeys = 5000;
  auto filter = *KeyedAdaptiveCuckoo<16>::for_capacity(kKeys);
  for (const KeyHash key : keys_from(0, kKeys)) ASSERT_TRUE(filter.insert(key));
  std::uint64_t agreed = 0;
  for (const KeyHash stranger : keys_from(kStrangers, 100'000)) {
    agreed += filter.contains(stranger);
    EXPECT_EQ(filter.count(stranger), 0U);
    EXPECT_FALSE(filter.erase(stranger));
  }
  EXPECT_GT(agreed, 0U);
  EXPECT_EQ(filter.size(), kKeys);
  EXPECT_EQ(yes_count(filter, keys_from(0, kKeys)), kKeys);
}

TEST(AdaptiveCuckoo, FillsToNinetyFivePercent) {
  for (const std::uint64_t buckets : {1UL << 12, 40'961UL}) {
    auto filter = *KeyedAdaptiveCuckoo<16>::with_buckets(buckets);
    std::uint64_t key = 0;
    while (filter.insert(KeyHash::of_integer(key))) ++key;
    EXPECT_GE(filter.filter().load(), 0.95) << buckets;
  }
}

TEST(AdaptiveCuckoo, SizesThatCannotBeAreErrors) {
  EXPECT_TRUE(KeyedAdaptiveCuckoo<16>::for_capacity(0).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(KeyedAdaptiveCuckoo<16>::with_buckets(0).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(KeyedAdaptiveCuckoo<32>::for_capacity(~0UL).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(KeyedAdaptiveCuckoo<32>::with_buckets(~0UL).failed_with(Errc::invalid_argument));
}

TEST(AdaptiveCuckoo, ASlotWithoutABaseFingerprintIsAnError) {
  auto filter = *KeyedAdaptiveCuckoo<16>::with_buckets(3);
  ASSERT_TRUE(filter.insert("a"));
  auto opened = *unseal(filter.filter().encode());
  base::Buffer body;
  body.append(opened.body);
  for (std::size_t slot = 0; slot < body.size() / 2; ++slot) {
    if (base::load_le<std::uint16_t>(body.data() + 2 * slot) != 0) {
      body.data()[2 * slot] &= std::byte{0xc0};
      body.data()[2 * slot + 1] |= std::byte{0x01};
    }
  }
  EXPECT_TRUE(
      AdaptiveCuckoo<16>::decode(seal(opened.envelope, body.view())).failed_with(Errc::corrupt));
}

TEST(AdaptiveCuckoo, AnotherWidthIsRefusedByName) {
  const auto filter = *KeyedAdaptiveCuckoo<16>::with_buckets(3);
  EXPECT_TRUE(
      AdaptiveCuckoo<32>::decode(filter.filter().encode()).failed_with(Errc::invalid_argument));
}

TEST(AdaptiveCuckoo, ResidentsOfAnotherFilterAreAnError) {
  auto one = *KeyedAdaptiveCuckoo<16>::with_buckets(3);
  auto other = *KeyedAdaptiveCuckoo<16>::with_buckets(3);
  auto larger = *KeyedAdaptiveCuckoo<16>::with_buckets(4);
  ASSERT_TRUE(one.insert("a"));
  ASSERT_TRUE(other.insert("b"));
  for (const auto* foreign : {&other, &larger}) {
    base::Buffer mixed;
    mixed.append(one.filter().encode());
    mixed.append(foreign->residents().encode());
    EXPECT_TRUE(
        KeyedAdaptiveCuckoo<16>::decode(std::move(mixed).freeze()).failed_with(Errc::corrupt));
  }
}

TEST(ResidentKeys, NumbersOfSlotsThatCannotBeAreErrors) {
  EXPECT_TRUE(ResidentKeys::for_slots(0).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(ResidentKeys::for_slots(kTableBytesMax / 8 + 1).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(ResidentKeys::for_slots(~0UL).failed_with(Errc::invalid_argument));
}

TEST(ResidentKeys, BytesThatAreNoWholeNumberOfEntriesAreAnError) {
  const auto bytes_of = [](std::string_view body, std::uint64_t units) {
    return seal({.kind = Kind::resident_keys, .width = 64, .capacity = units, .units = units},
                base::as_bytes(body));
  };
  EXPECT_TRUE(ResidentKeys::decode(bytes_of("12345678", 1)).has_value());
  EXPECT_TRUE(ResidentKeys::decode(bytes_of("1234567", 1)).failed_with(Errc::corrupt));
  EXPECT_TRUE(ResidentKeys::decode(bytes_of("12345678", 2)).failed_with(Errc::corrupt));
  EXPECT_TRUE(ResidentKeys::decode(bytes_of("", 0)).failed_with(Errc::corrupt));
  EXPECT_TRUE(ResidentKeys::decode(KeyedAdaptiveCuckoo<16>::with_buckets(1)->filter().encode())
                  .failed_with(Errc::invalid_argument));
}

}  // namespace
}  // namespace helenus::filters
