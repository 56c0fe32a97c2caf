#include "filters/bucket.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::filters {
namespace {

using Values = std::array<std::uint32_t, kSlotsPerBucket>;

template <class B>
constexpr unsigned kBitsOf = 8 * B::kBytes / kSlotsPerBucket;

template <class B>
class BucketTest : public ::testing::Test {
 public:
  static auto word_of(const Values& values) {
    typename B::Word word = 0;
    for (unsigned i = 0; i < kSlotsPerBucket; ++i) word = B::with_slot(word, i, values[i]);
    return word;
  }

  // Every question a filter asks of a bucket, answered slot by slot.
  static void expect_agrees(const Values& values, std::uint32_t wanted) {
    const auto word = word_of(values);
    const auto differences = word ^ B::in_every_slot(wanted);
    const auto equal = std::ranges::count(values, wanted);
    const auto empty = std::ranges::count(values, 0U);
    for (unsigned i = 0; i < kSlotsPerBucket; ++i) ASSERT_EQ(B::slot(word, i), values[i]);
    ASSERT_EQ(B::any_zero(differences), equal > 0);
    ASSERT_EQ(B::any_zero(differences, B::kOnes), equal > 0);
    ASSERT_EQ(B::any_zero(B::kOnes, differences), equal > 0);
    ASSERT_EQ(B::lane_count(B::zero_lanes(differences)), equal);
    // The other bucket has what is wanted in no slot, and all bits set but one in each.
    std::array<std::byte, 2 * B::kBytes + B::kSlackBytes> memory;
    memory.fill(std::byte{0xff});
    std::byte* const second = memory.data() + B::kBytes;
    const auto other = B::in_every_slot(B::kSlotMask ^ (wanted == (B::kSlotMask ^ 1) ? 2 : 1));
    B::store(memory.data(), word);
    B::store(second, other);
    ASSERT_EQ(B::any_equal(memory.data(), second, wanted), equal > 0);
    ASSERT_EQ(B::any_equal(second, memory.data(), wanted), equal > 0);
    B::store(memory.data(), other);
    B::store(second, word);
    ASSERT_EQ(B::any_equal(memory.data(), second, wanted), equal > 0);
    ASSERT_EQ(B::has_room(word), empty > 0);
    ASSERT_EQ(B::occupied(word), kSlotsPerBucket - empty);
    if (equal > 0) {
      ASSERT_EQ(B::lowest_lane(B::zero_lanes(differences)),
                std::ranges::find(values, wanted) - values.begin());
    }
    if (empty > 0) {
      ASSERT_EQ(B::empty_slot(word), std::ranges::find(values, 0U) - values.begin());
    }
  }
};

using Buckets = ::testing::Types<Bucket<8>, Bucket<12>, Bucket<16>, Bucket<32>>;
TYPED_TEST_SUITE(BucketTest, Buckets);

// The values where carries and borrows begin and end, in every combination.
TYPED_TEST(BucketTest, AnswersAsALoopOverItsSlotsWould) {
  constexpr std::uint32_t kMask = TypeParam::kSlotMask;
  constexpr std::uint32_t kHigh = kMask / 2 + 1;
  const std::vector<std::uint32_t> edges = {0, 1, 2, kHigh - 1, kHigh, kHigh + 1, kMask - 1, kMask};
  for (const std::uint32_t a : edges) {
    for (const std::uint32_t b : edges) {
      for (const std::uint32_t c : edges) {
        for (const std::uint32_t d : edges) {
          for (const std::uint32_t wanted : edges) {
            this->expect_agrees({a, b, c, d}, wanted);
            if (this->HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TYPED_TEST(BucketTest, FindsAValueInEitherOfTwoBucketsInMemory) {
  const bool held = rc::check([] {
    // Few values, so that some are equal, with bits in all parts of a slot.
    const auto value = [] {
      return (*rc::gen::inRange<std::uint32_t>(0, 6) * 0x9e3779b9U) >> (32 - kBitsOf<TypeParam>);
    };
    Values a;
    Values b;
    std::ranges::generate(a, value);
    std::ranges::generate(b, value);
    const std::uint32_t wanted = value();
    std::array<std::byte, 2 * TypeParam::kBytes + TypeParam::kSlackBytes> memory{};
    TypeParam::store(memory.data(), BucketTest<TypeParam>::word_of(a));
    TypeParam::store(memory.data() + TypeParam::kBytes, BucketTest<TypeParam>::word_of(b));
    RC_ASSERT(TypeParam::any_equal(memory.data(), memory.data() + TypeParam::kBytes, wanted) ==
              ((std::ranges::count(a, wanted) > 0) || (std::ranges::count(b, wanted) > 0)));
  });
  EXPECT_TRUE(held);
}

TYPED_TEST(BucketTest, StoringOneBucketLeavesItsNeighboursAlone) {
  std::array<std::byte, 3 * TypeParam::kBytes + TypeParam::kSlackBytes> memory;
  memory.fill(std::byte{0xa5});
  const auto before = TypeParam::load(memory.data());
  TypeParam::store(memory.data() + TypeParam::kBytes, this->word_of({1, 2, 3, 4}));
  EXPECT_EQ(TypeParam::load(memory.data()), before);
  EXPECT_EQ(TypeParam::load(memory.data() + 2 * TypeParam::kBytes), before);
  EXPECT_EQ(TypeParam::load(memory.data() + TypeParam::kBytes), this->word_of({1, 2, 3, 4}));
}

TEST(Bucket, PacksFourSlotsOfTwelveBitsIntoSixBytesLittleEndian) {
  std::array<std::byte, 8> memory{};
  auto word = Bucket<12>::Word{0};
  for (unsigned i = 0; i < 4; ++i) word = Bucket<12>::with_slot(word, i, 0xa10 + i);
  Bucket<12>::store(memory.data(), word);
  EXPECT_EQ(base::to_hex(memory), "101aa1123aa10000") << "slots a10, a11, a12, a13";
}

}  // namespace
}  // namespace helenus::filters
