// What is particular to cuckoo filters; what they share with all filters is in filter_contract.h.
#include "filters/cuckoo.h"

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "filters/cuckoo_table.h"
#include "filters/envelope.h"
#include "filters/filter_contract.h"

namespace helenus::filters {
namespace {

template <class F>
double load_at_first_refusal(F filter) {
  std::uint64_t key = 0;
  while (filter.insert(KeyHash::of_integer(key))) ++key;
  EXPECT_EQ(yes_count(filter, keys_from(0, key)), key);
  return filter.load();
}

TEST(Cuckoo, FillsTablesOfAnySizeToNinetyFivePercent) {
  for (const std::uint64_t buckets : {1UL << 12, (1UL << 12) + 1, 1UL << 15, 40'961UL}) {
    EXPECT_GE(load_at_first_refusal(*Cuckoo8::with_buckets(buckets)), 0.95) << buckets;
    EXPECT_GE(load_at_first_refusal(*Cuckoo12::with_buckets(buckets)), 0.95) << buckets;
    EXPECT_GE(load_at_first_refusal(*Cuckoo16::with_buckets(buckets)), 0.95) << buckets;
    EXPECT_GE(load_at_first_refusal(*Cuckoo32::with_buckets(buckets)), 0.95) << buckets;
  }
}

TEST(Cuckoo, TakesTheCapacityItWasMadeForWhicheverTheKeys) {
  std::uint64_t next = 0;
  for (std::uint64_t capacity = 1; capacity <= 2000; capacity += 1 + capacity / 8) {
    for (int set_of_keys = 0; set_of_keys < 40; ++set_of_keys) {
      auto filter = *Cuckoo12::for_capacity(capacity);
      for (std::uint64_t i = 0; i < capacity; ++i) {
        ASSERT_TRUE(filter.insert(KeyHash::of_integer(next++))) << i << " of " << capacity;
      }
    }
  }
}

TEST(Cuckoo, UsesTheMemoryItsHeaderPromises) {
  const double bits = 8.0 * static_cast<double>(Cuckoo12::for_capacity(1'000'000)->memory_bytes());
  EXPECT_NEAR(bits / 1e6, 12.63, 0.01);
}

TEST(Cuckoo, CapacityAndBucketsAreInverse) {
  for (std::uint64_t buckets = 1; buckets < 3000; ++buckets) {
    const std::uint64_t capacity = capacity_of(buckets);
    ASSERT_LE(buckets_for(capacity), buckets);
    ASSERT_GT(buckets_for(capacity + 1), buckets);
  }
  EXPECT_EQ(Cuckoo16::with_buckets(1 << 18)->capacity(), 996'147U);
}

TEST(Cuckoo, TakesOneKeyEightTimesAndRefusesTheNinth) {
  auto filter = *Cuckoo16::with_buckets(1000);
  const KeyHash key("again and again");
  for (unsigned i = 0; i < 8; ++i) {
    EXPECT_EQ(filter.count(key), i);
    EXPECT_TRUE(filter.insert(key));
  }
  EXPECT_FALSE(filter.insert(key));
  EXPECT_EQ(filter.count(key), 8U);
  EXPECT_EQ(filter.size(), 8U);
  for (unsigned i = 0; i < 8; ++i) EXPECT_TRUE(filter.erase(key));
  EXPECT_FALSE(filter.contains(key));
}

// Theory says it, this shows it: erasing a key that is not in can deny one that is.
TEST(Cuckoo, ErasingAStrangerCanDenyAMember) {
  auto filter = *Cuckoo8::for_capacity(1000);
  const std::vector<KeyHash> members = keys_from(0, 1000);
  for (const KeyHash key : members) ASSERT_TRUE(filter.insert(key));
  std::uint64_t erased = 0;
  for (const KeyHash stranger : keys_from(kStrangers, 1000)) erased += filter.erase(stranger);
  EXPECT_GT(erased, 0U);
  EXPECT_LT(yes_count(filter, members), 1000U);
}

TEST(Cuckoo, AFullFilterTakesKeysAgainAfterAnErasure) {
  auto filter = *Cuckoo12::with_buckets(512);
  std::uint64_t key = 0;
  while (filter.insert(KeyHash::of_integer(key))) ++key;
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(filter.erase(KeyHash::of_integer(i)));
  EXPECT_TRUE(filter.insert(KeyHash::of_integer(key)));
  EXPECT_EQ(yes_count(filter, keys_from(20, key - 19)), key - 19);
}

// At 32 bits no number of strangers that a test can ask would show a fingerprint cut short.
template <class F>
class CuckooOfEveryWidth : public ::testing::Test {};
using Cuckoos = ::testing::Types<Cuckoo8, Cuckoo12, Cuckoo16, Cuckoo32>;
TYPED_TEST_SUITE(CuckooOfEveryWidth, Cuckoos);

TYPED_TEST(CuckooOfEveryWidth, EveryBitOfAFingerprintTellsKeysApart) {
  for (const KeyHash key : keys_from(0, 20)) {
    // With this bit the low ones are neither 0 nor 1, which look alike.
    const KeyHash member(key.value() | 2);
    auto filter = *TypeParam::with_buckets(1);
    ASSERT_TRUE(filter.insert(member));
    for (unsigned bit = 0; bit < TypeParam::kFingerprintBits; ++bit) {
      EXPECT_FALSE(filter.contains(KeyHash(member.value() ^ (std::uint64_t{1} << bit)))) << bit;
    }
  }
}

TEST(Cuckoo, TheHashZeroAndAllOnesAreKeysLikeOthers) {
  auto filter = *Cuckoo32::for_capacity(10);
  for (const KeyHash key : {KeyHash(0), KeyHash(~std::uint64_t{0})}) {
    EXPECT_FALSE(filter.contains(key));
    EXPECT_TRUE(filter.insert(key));
    EXPECT_TRUE(filter.contains(key));
    EXPECT_TRUE(filter.erase(key));
    EXPECT_FALSE(filter.contains(key));
  }
}

TEST(Cuckoo, SizesThatCannotBeAreErrors) {
  using base::Errc;
  EXPECT_TRUE(Cuckoo12::for_capacity(0).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(Cuckoo12::with_buckets(0).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(Cuckoo12::for_capacity(std::uint64_t{1} << 60).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(Cuckoo12::with_buckets(~std::uint64_t{0}).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(Cuckoo8::with_buckets(Cuckoo8::kBucketsMax + 1).failed_with(Errc::invalid_argument));
}

TEST(Cuckoo, LooksIntoTheBytesItCameFromUntilItIsChanged) {
  auto filter = *Cuckoo16::for_capacity(100);
  ASSERT_TRUE(filter.insert("a"));
  EXPECT_FALSE(filter.is_borrowed());
  auto decoded = *Cuckoo16::decode(filter.encode());
  EXPECT_TRUE(decoded.is_borrowed());
  EXPECT_TRUE(decoded.contains("a"));
  EXPECT_FALSE(decoded.erase("no such key"));
  EXPECT_TRUE(decoded.is_borrowed());
  EXPECT_TRUE(decoded.erase("a"));
  EXPECT_FALSE(decoded.is_borrowed());
}

// Bytes with sound checksums that describe no filter.
class HostileCuckoo : public ::testing::Test {
 protected:
  HostileCuckoo() {
    auto filter = *Cuckoo12::with_buckets(10);
    for (const KeyHash key : keys_from(0, 20)) EXPECT_TRUE(filter.insert(key));
    auto opened = *unseal(filter.encode());
    envelope_ = opened.envelope;
    body_.append(opened.body);
  }

  base::Result<Cuckoo12> decode() { return Cuckoo12::decode(seal(envelope_, body_.view())); }

  Envelope envelope_;
  base::Buffer body_;
};

TEST_F(HostileCuckoo, TheUnchangedBytesDecode) {
  EXPECT_TRUE(decode().has_value());
}
TEST_F(HostileCuckoo, MoreKeysThanFingerprintsWouldDenyKeys) {
  envelope_.size = envelope_.population = 21;
  EXPECT_TRUE(decode().failed_with(base::Errc::corrupt));
}
TEST_F(HostileCuckoo, AnEmptiedTableWouldDenyKeys) {
  std::ranges::fill(body_.mutable_view(), std::byte{0});
  EXPECT_TRUE(decode().failed_with(base::Errc::corrupt));
}
TEST_F(HostileCuckoo, APopulationThatIsNotTheSizeIsAnError) {
  envelope_.population = 19;
  EXPECT_TRUE(decode().failed_with(base::Errc::corrupt));
}
TEST_F(HostileCuckoo, BucketsThatTheBodyDoesNotHaveAreAnError) {
  for (const std::uint64_t buckets : {0UL, 9UL, 11UL, (1UL << 63) + 10, ~0UL}) {
    envelope_.units = buckets;
    EXPECT_TRUE(decode().failed_with(base::Errc::corrupt)) << buckets;
  }
}
TEST_F(HostileCuckoo, ACapacityThatCannotBeIsAnError) {
  for (const std::uint64_t capacity : {0UL, 41UL, ~0UL}) {
    envelope_.capacity = capacity;
    EXPECT_TRUE(decode().failed_with(base::Errc::corrupt)) << capacity;
  }
}
TEST_F(HostileCuckoo, PaddingInUseIsAnError) {
  body_.mutable_view().back() = std::byte{1};
  EXPECT_TRUE(decode().failed_with(base::Errc::corrupt));
}
TEST_F(HostileCuckoo, AnotherWidthOrKindIsRefusedByName) {
  envelope_.width = 16;
  EXPECT_TRUE(decode().failed_with(base::Errc::invalid_argument));
  envelope_.kind = Kind::bloom;
  EXPECT_TRUE(decode().failed_with(base::Errc::invalid_argument));
}

}  // namespace
}  // namespace helenus::filters
