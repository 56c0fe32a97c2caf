// What only these filters do: gain and lose buckets and members. That they are filters is the
// contract's business (filter_contract_test.cc).
#include "filters/consistent_cuckoo.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/codec.h"
#include "base/hash.h"
#include "base/prng.h"
#include "filters/envelope.h"
#include "filters/filter_contract.h"
#include "filters/index_independent_cuckoo.h"

namespace helenus::filters {
namespace {

using Shape = IndexIndependentCuckoo::Shape;
using ::testing::HasSubstr;

std::vector<std::uint32_t> fingerprints_from(std::uint64_t from, std::size_t count) {
  std::vector<std::uint32_t> fingerprints;
  for (const KeyHash key : keys_from(from, count)) {
    fingerprints.push_back(static_cast<std::uint32_t>(key.value()) | 1);
  }
  return fingerprints;
}

bool has_all(const IndexIndependentCuckoo& table, std::span<const std::uint32_t> fingerprints) {
  return std::ranges::all_of(fingerprints, [&](std::uint32_t each) {
    return table.contains(
        each, IndexIndependentCuckoo::positions_of(each, IndexIndependentCuckoo::kCandidatesMax));
  });
}

// All or none.
bool insert_all(IndexIndependentCuckoo& table, std::span<const std::uint32_t> fingerprints) {
  table.begin();
  const bool all =
      std::ranges::all_of(fingerprints, [&](std::uint32_t each) { return table.insert(each); });
  all ? table.commit() : table.roll_back();
  return all;
}

std::vector<std::uint32_t> contents(const IndexIndependentCuckoo& table) {
  std::vector<std::uint32_t> all(table.slots().begin(), table.slots().end());
  std::erase(all, 0U);
  std::ranges::sort(all);
  return all;
}

constexpr auto kEven = IndexIndependentCuckoo::Ring::even;
constexpr auto kHashed = IndexIndependentCuckoo::Ring::hashed;

const std::vector<Shape> kShapes = {
    {.candidates = 2, .slots = 3, .ring = kHashed, .places = 10, .searched_max = 1200},
    {.candidates = 2, .slots = 8, .ring = kEven},
    {.candidates = 3, .slots = 4, .ring = kEven},
    {.candidates = 3, .slots = 4, .ring = kHashed, .places = 2},
    {.candidates = 1, .slots = 2, .ring = kHashed, .places = 1},
    {.candidates = 16, .slots = 1, .ring = kHashed, .places = 3},
};

TEST(IndexIndependentCuckoo, AddingBucketsLosesNothing) {
  for (const Shape& shape : kShapes) {
    IndexIndependentCuckoo table(shape, 1, 40);
    std::vector<std::uint32_t> in;
    for (const std::uint32_t each : fingerprints_from(0, std::size_t{40} * shape.slots)) {
      if (table.insert(each)) in.push_back(each);
    }
    EXPECT_EQ(table.size(), in.size());
    for (int i = 0; i < 150; ++i) {
      (void)table.add_bucket();
      ASSERT_TRUE(table.check().has_value()) << table.check().error().to_string();
      ASSERT_EQ(table.size(), in.size());
    }
    EXPECT_GT(table.bucket_count(), 150U);
    EXPECT_TRUE(has_all(table, in));
  }
}

TEST(IndexIndependentCuckoo, RemovingBucketsLosesNothingAndStopsWhenThereIsNoRoom) {
  for (const Shape& shape : kShapes) {
    IndexIndependentCuckoo table(shape, 2, 200);
    std::vector<std::uint32_t> in;
    for (const std::uint32_t each : fingerprints_from(0, std::size_t{40} * shape.slots)) {
      if (table.insert(each)) in.push_back(each);
    }
    base::Prng prng(3);
    for (int i = 0; i < 500; ++i) {
      const auto before = contents(table);
      const std::uint64_t buckets = table.bucket_count();
      const std::uint64_t bucket = shape.ring == kEven ? buckets - 1 : prng.below(buckets);
      const bool removed = table.remove_bucket(static_cast<std::uint32_t>(bucket));
      ASSERT_EQ(table.bucket_count(), removed ? buckets - 1 : buckets);
      ASSERT_EQ(contents(table), before);
      ASSERT_TRUE(table.check().has_value());
    }
    EXPECT_TRUE(has_all(table, in));
    EXPECT_LT(table.bucket_count(), 150U);
    EXPECT_GE(table.slot_count(), in.size());
  }
}

TEST(IndexIndependentCuckoo, TheLastBucketStays) {
  IndexIndependentCuckoo table({}, 0, 1);
  EXPECT_FALSE(table.remove_bucket(0));
  EXPECT_EQ(table.bucket_count(), 1U);
}

// A removal that fails half-way has moved fingerprints by then.
TEST(IndexIndependentCuckoo, WhatCannotBeRemovedIsLeftAsItWas) {
  IndexIndependentCuckoo table({.candidates = 2, .slots = 3, .ring = kHashed, .places = 4}, 0, 30);
  std::vector<std::uint32_t> in;
  for (const std::uint32_t each : fingerprints_from(0, 500)) {
    if (table.insert(each)) in.push_back(each);
  }
  ASSERT_GT(in.size(), 75U);
  int refused = 0;
  for (std::uint32_t bucket = 0; bucket < 30; ++bucket) {
    const std::vector<std::uint32_t> slots(table.slots().begin(), table.slots().end());
    if (table.remove_bucket(bucket)) break;
    ++refused;
    EXPECT_TRUE(std::ranges::equal(table.slots(), slots));
    EXPECT_EQ(table.size(), in.size());
    EXPECT_TRUE(has_all(table, in));
  }
  EXPECT_GT(refused, 10);
}

TEST(IndexIndependentCuckoo, EqualFingerprintsAreRefusedBeyondTheirSlotsAndNothingLoops) {
  IndexIndependentCuckoo table({.candidates = 2, .slots = 4, .ring = kHashed, .places = 2}, 0, 10);
  unsigned taken = 0;
  while (table.insert(77) && taken < 100) ++taken;
  EXPECT_TRUE(taken == 4 || taken == 8) << taken;
  const std::uint64_t buckets = table.bucket_count();
  EXPECT_FALSE(table.insert_with_room(77, 1));
  EXPECT_EQ(table.bucket_count(), buckets);
  EXPECT_EQ(table.size(), taken);
  EXPECT_TRUE(table.check().has_value());
}

TEST(IndexIndependentCuckoo, ATransactionIsTakenBackWhole) {
  IndexIndependentCuckoo table({.candidates = 2, .slots = 3, .ring = kHashed, .places = 4}, 5, 20);
  for (const std::uint32_t each : fingerprints_from(0, 50)) ASSERT_TRUE(table.insert(each));
  const std::vector<std::uint32_t> slots(table.slots().begin(), table.slots().end());
  const std::uint32_t next_label = table.next_label();
  EXPECT_FALSE(insert_all(table, fingerprints_from(1000, 30)));
  EXPECT_TRUE(std::ranges::equal(table.slots(), slots));
  EXPECT_EQ(table.size(), 50U);
  EXPECT_EQ(table.next_label(), next_label);
  EXPECT_TRUE(insert_all(table, fingerprints_from(1000, 3)));
  EXPECT_EQ(table.size(), 53U);
}

TEST(IndexIndependentCuckoo, BucketsHaveEqualSharesTheMoreEqualTheMorePlacesTheyHave) {
  const auto spread = [](unsigned places) {
    IndexIndependentCuckoo table({.candidates = 1, .slots = 16, .ring = kHashed, .places = places},
                                 0, 500);
    // With few keys nothing moves, so that what a bucket holds is what it owns of the ring.
    for (const std::uint32_t each : fingerprints_from(0, 2000)) (void)table.insert(each);
    double squares = 0;
    for (std::uint32_t bucket = 0; bucket < 500; ++bucket) {
      squares += std::pow(table.occupied(bucket) - 4.0, 2);
    }
    return squares / 500;
  };
  EXPECT_GT(spread(1), 1.5 * spread(20));
}

// --- The filter ---

TEST(ConsistentCuckoo, GrowsWithItsKeysAndGivesTheMemoryBack) {
  ConsistentCuckoo filter = *ConsistentCuckoo::for_capacity(100'000);
  EXPECT_LT(filter.memory_bytes(), 1000U);
  const auto keys = keys_from(0, 100'000);
  std::uint64_t inserted = 0;
  for (const KeyHash key : keys) {
    ASSERT_TRUE(filter.insert(key));
    ++inserted;
    if (inserted > 1000 && inserted % 1000 == 0) ASSERT_GT(filter.load(), 0.90) << inserted;
  }
  const std::uint64_t memory = filter.memory_bytes();
  EXPECT_LT(memory, 100'000U * 8);
  for (std::size_t i = 0; i < 90'000; ++i) {
    ASSERT_TRUE(filter.erase(keys[i]));
    if (i % 5000 == 0) ASSERT_GT(filter.load(), 0.80) << i;
  }
  EXPECT_TRUE(filter.check().has_value());
  EXPECT_EQ(yes_count(filter, std::span(keys).subspan(90'000)), 10'000U);
  EXPECT_LT(filter.memory_bytes(), memory / 7);
}

TEST(ConsistentCuckoo, ReservingGivesAllTheRoomAtOnce) {
  ConsistentCuckoo filter = *ConsistentCuckoo::for_capacity(50'000);
  filter.reserve(50'000);
  const std::uint64_t buckets = filter.bucket_count();
  for (const KeyHash key : keys_from(0, 50'000)) ASSERT_TRUE(filter.insert(key));
  EXPECT_LE(filter.bucket_count(), buckets + 1);
}

// The number of candidates, slots and members is not in it.
TEST(ConsistentCuckoo, StrangersAreTakenForKeysAtTheTrueRate) {
  const std::uint64_t keys = 10'000;
  ConsistentCuckoo filter = *ConsistentCuckoo::with_options(
      {.capacity = keys, .fingerprint_bits = 16, .shape = {.candidates = 2, .slots = 4}});
  for (const KeyHash key : keys_from(0, keys)) ASSERT_TRUE(filter.insert(key));
  const double rate = -std::expm1(static_cast<double>(keys) * std::log1p(-1.0 / (1 << 16)));
  EXPECT_NEAR(filter.false_positive_rate(), rate, 1e-5);
  // Between keys, fingerprints vary once for all strangers: their spread is a little wider.
  const auto hits = static_cast<double>(yes_count(filter, keys_from(kStrangers, 400'000)));
  EXPECT_NEAR(hits / 400'000, rate, 0.01);
}

ConsistentCuckoo by_members(std::uint64_t capacity, unsigned members_max) {
  return *ConsistentCuckoo::with_options(
      {.capacity = capacity,
       .fingerprint_bits = 30,
       .shape = {.candidates = 2, .slots = 3, .ring = kHashed, .places = 10, .searched_max = 300},
       .member_buckets = 64,
       .members_max = members_max,
       .growth = ConsistentCuckoo::Growth::by_members,
       .grow_above_percent = 100,
       .shrink_below_percent = 98});
}

TEST(ConsistentCuckoo, GrowsAndShrinksByMembers) {
  ConsistentCuckoo filter = by_members(5000, 100);
  const auto keys = keys_from(0, 5000);
  for (const KeyHash key : keys) ASSERT_TRUE(filter.insert(key));
  EXPECT_GE(filter.members().size(), 5000U / 192 + 1);
  EXPECT_LE(filter.members().size(), 5000U / 192 + 4);
  EXPECT_EQ(yes_count(filter, keys), 5000U);
  for (std::size_t i = 0; i < 4500; ++i) ASSERT_TRUE(filter.erase(keys[i]));
  EXPECT_LE(filter.members().size(), 4U);
  EXPECT_EQ(yes_count(filter, std::span(keys).subspan(4500)), 500U);
  EXPECT_TRUE(filter.check().has_value());
}

TEST(ConsistentCuckoo, BeyondItsMembersItGrowsByBuckets) {
  ConsistentCuckoo filter = by_members(5000, 3);
  const auto keys = keys_from(0, 5000);
  for (const KeyHash key : keys) ASSERT_TRUE(filter.insert(key));
  EXPECT_EQ(filter.members().size(), 3U);
  EXPECT_EQ(yes_count(filter, keys), 5000U);
  EXPECT_TRUE(filter.check().has_value());
}

std::vector<std::vector<std::uint32_t>> slots_of_members(const ConsistentCuckoo& filter) {
  std::vector<std::vector<std::uint32_t>> slots;
  for (const auto& member : filter.members()) {
    slots.emplace_back(member.slots().begin(), member.slots().end());
  }
  return slots;
}

TEST(ConsistentCuckoo, ACompactionWithoutEnoughSlotsIsNotTried) {
  ConsistentCuckoo filter = by_members(5000, 100);
  for (const KeyHash key : keys_from(0, 1000)) ASSERT_TRUE(filter.insert(key));
  const auto before = slots_of_members(filter);
  // More than 98 % of the others' slots would be in use.
  EXPECT_EQ(filter.compact(), 0U);
  EXPECT_EQ(slots_of_members(filter), before);
}

// Slots enough by their number, and no way to use them all: some fingerprints have moved by then.
TEST(ConsistentCuckoo, ACompactionThatFailsHalfWayChangesNothing) {
  int failed = 0;
  for (std::uint64_t keys = 900; keys < 960; keys += 4) {
    ConsistentCuckoo filter = by_members(5000, 100);
    for (const KeyHash key : keys_from(0, keys)) ASSERT_TRUE(filter.insert(key));
    const auto least =
        std::ranges::min_element(filter.members(), {}, &IndexIndependentCuckoo::size);
    const std::uint64_t left = filter.slot_count() - least->slot_count();
    const bool is_tried = keys * 100 <= left * 98;
    // The others have room for one fingerprint of it, but not for all.
    if (!is_tried || least->size() < 10) continue;
    const auto before = slots_of_members(filter);
    if (filter.compact() > 0) continue;
    ++failed;
    ASSERT_EQ(slots_of_members(filter), before) << keys;
    EXPECT_EQ(filter.size(), keys);
    EXPECT_EQ(yes_count(filter, keys_from(0, keys)), keys);
    EXPECT_TRUE(filter.check().has_value());
    // Nothing of the attempt is left behind: it can be changed as before.
    for (const KeyHash key : keys_from(0, keys)) ASSERT_TRUE(filter.erase(key));
    EXPECT_EQ(filter.size(), 0U);
  }
  EXPECT_GE(failed, 3);
}

TEST(ConsistentCuckoo, GrowsAndShrinksByMembersAsPrinted) {
  ConsistentCuckoo::Options options = by_members(5000, 100).options();
  options.growth = ConsistentCuckoo::Growth::by_members_as_printed;
  ConsistentCuckoo filter = *ConsistentCuckoo::with_options(options);
  const auto keys = keys_from(0, 5000);
  for (const KeyHash key : keys) ASSERT_TRUE(filter.insert(key));
  // Only the member with the fewest keys is tried before another one is added.
  EXPECT_GE(filter.members().size(), 5000U / 192 + 1);
  EXPECT_LE(filter.members().size(), 5000U / 192 + 6);
  EXPECT_EQ(yes_count(filter, keys), 5000U);
  EXPECT_TRUE(filter.check().has_value());
  const auto decoded = ConsistentCuckoo::decode(filter.encode());
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->options(), options);
  for (std::size_t i = 0; i < 4500; ++i) ASSERT_TRUE(filter.erase(keys[i]));
  EXPECT_LE(filter.members().size(), 4U);
  EXPECT_EQ(yes_count(filter, std::span(keys).subspan(4500)), 500U);
  EXPECT_TRUE(filter.check().has_value());
}

TEST(ConsistentCuckoo, ScalesUpAndDownByOneBucketAsItIsTold) {
  for (const auto ring : {kEven, kHashed}) {
    ConsistentCuckoo filter = *ConsistentCuckoo::with_options(
        {.capacity = 1000,
         .shape = {.candidates = 2, .slots = 4, .ring = ring, .places = ring == kEven ? 1U : 4U},
         .grow_above_percent = 100,
         .shrink_below_percent = 0});
    for (int i = 0; i < 99; ++i) ASSERT_TRUE(filter.scale_up());
    EXPECT_EQ(filter.bucket_count(), 100U);
    for (const KeyHash key : keys_from(0, 200)) ASSERT_TRUE(filter.insert(key));
    std::uint64_t buckets = filter.bucket_count();
    while (filter.scale_down()) {
      ASSERT_EQ(filter.bucket_count(), --buckets);
      ASSERT_TRUE(filter.check().has_value());
    }
    // It stopped because there was no room: nothing has changed, and it can grow again.
    EXPECT_EQ(filter.bucket_count(), buckets);
    EXPECT_GT(filter.load(), ring == kEven ? 0.85 : 0.75);
    EXPECT_EQ(yes_count(filter, keys_from(0, 200)), 200U);
    EXPECT_TRUE(filter.scale_up());
  }
  ConsistentCuckoo smallest = *ConsistentCuckoo::for_capacity(10);
  EXPECT_FALSE(smallest.scale_down());
  EXPECT_EQ(smallest.bucket_count(), 1U);
}

// With 15 different fingerprints a member holds 15 keys, however large it is.
TEST(ConsistentCuckoo, CollidingKeysAreRefusedInsteadOfGivenOneMemberAfterAnother) {
  ConsistentCuckoo filter = *ConsistentCuckoo::with_options(
      {.capacity = 100'000,
       .fingerprint_bits = 4,
       .shape = {.candidates = 1, .slots = 1, .ring = kHashed, .places = 1},
       .member_buckets = 1024,
       .members_max = ConsistentCuckoo::kMembersMax,
       .growth = ConsistentCuckoo::Growth::by_members});
  std::uint64_t refused = 0;
  for (const KeyHash key : keys_from(0, 10'000)) refused += filter.insert(key) ? 0 : 1;
  EXPECT_GT(refused, 9'000U);
  EXPECT_LE(filter.members().size(), 2U);
  EXPECT_TRUE(filter.check().has_value());
}

TEST(ConsistentCuckoo, MembersMayDifferInShape) {
  ConsistentCuckoo filter = *ConsistentCuckoo::with_options(
      {.capacity = 20'000, .shape = {.candidates = 2, .slots = 8}, .members_max = 4});
  for (const KeyHash key : keys_from(0, 1000)) ASSERT_TRUE(filter.insert(key));
  ASSERT_TRUE(filter.scale_out({.candidates = 4, .slots = 3, .ring = kHashed, .places = 5}, 500)
                  .has_value());
  ASSERT_TRUE(filter.scale_out({.candidates = 1, .slots = 16, .ring = kHashed, .places = 2}, 100)
                  .has_value());
  for (const KeyHash key : keys_from(1000, 4000)) ASSERT_TRUE(filter.insert(key));
  EXPECT_EQ(yes_count(filter, keys_from(0, 5000)), 5000U);
  const auto decoded = ConsistentCuckoo::decode(filter.encode());
  ASSERT_TRUE(decoded.has_value()) << decoded.error().to_string();
  EXPECT_EQ(yes_count(*decoded, keys_from(0, 5000)), 5000U);
  for (const KeyHash key : keys_from(0, 4900)) ASSERT_TRUE(filter.erase(key));
  EXPECT_GT(filter.compact(), 0U);
  EXPECT_EQ(yes_count(filter, keys_from(4900, 100)), 100U);
  EXPECT_TRUE(filter.check().has_value());
}

TEST(ConsistentCuckoo, RefusesUnsoundOptions) {
  using Options = ConsistentCuckoo::Options;
  const auto refuses = [](const Options& options) {
    return ConsistentCuckoo::with_options(options).failed_with(base::Errc::invalid_argument);
  };
  EXPECT_FALSE(refuses({.capacity = 10}));
  EXPECT_TRUE(refuses({.capacity = 0}));
  EXPECT_TRUE(refuses({.capacity = ConsistentCuckoo::kCapacityMax + 1}));
  EXPECT_TRUE(refuses({.capacity = 10, .fingerprint_bits = 33}));
  EXPECT_TRUE(refuses({.capacity = 10, .fingerprint_bits = 3}));
  EXPECT_TRUE(refuses({.capacity = 10, .shape = {.candidates = 0}}));
  EXPECT_TRUE(refuses({.capacity = 10, .shape = {.candidates = 17}}));
  EXPECT_TRUE(refuses({.capacity = 10, .shape = {.slots = 17}}));
  EXPECT_TRUE(refuses({.capacity = 10, .shape = {.ring = kHashed, .places = 0}}));
  EXPECT_TRUE(refuses({.capacity = 10, .shape = {.ring = kEven, .places = 2}}));
  EXPECT_TRUE(refuses({.capacity = 10, .shape = {.searched_max = 0}}));
  EXPECT_TRUE(refuses({.capacity = 10, .member_buckets = 0}));
  EXPECT_TRUE(refuses({.capacity = 10, .member_buckets = ConsistentCuckoo::kMemberBucketsMax + 1}));
  EXPECT_TRUE(refuses({.capacity = 10, .members_max = 0}));
  EXPECT_TRUE(refuses({.capacity = 10, .grow_above_percent = 101}));
  EXPECT_TRUE(refuses({.capacity = 10, .grow_above_percent = 50, .shrink_below_percent = 51}));
  EXPECT_TRUE(refuses({.capacity = 10, .merged_fingerprints_max = 17}));
  ConsistentCuckoo one = *ConsistentCuckoo::for_capacity(10);
  EXPECT_TRUE(one.scale_out({}, 1).failed_with(base::Errc::overloaded));
  EXPECT_TRUE(one.scale_out({.slots = 0}, 1).failed_with(base::Errc::invalid_argument));
  EXPECT_TRUE(one.scale_out({}, 0).failed_with(base::Errc::invalid_argument));
}

// Bytes with sound checksums: one member of one place a bucket on a hashed ring.
class HostileConsistent : public ::testing::Test {
 protected:
  static constexpr std::size_t kMemberBuckets = 8;
  static constexpr std::size_t kMember = 36;
  static constexpr std::size_t kNextLabel = kMember + 12;
  static constexpr std::size_t kLabels = kMember + 24;

  void make(std::vector<std::uint32_t> labels, std::uint32_t next_label, unsigned places = 1) {
    const ConsistentCuckoo filter = *ConsistentCuckoo::with_options(
        {.capacity = 1000,
         .shape = {.candidates = 2, .slots = 1, .ring = kHashed, .places = places},
         .member_buckets = static_cast<std::uint32_t>(labels.size())});
    auto opened = *unseal(filter.encode());
    envelope_ = opened.envelope;
    body_ = base::Buffer();
    body_.append(opened.body);
    set(kNextLabel, next_label);
    for (std::size_t i = 0; i < labels.size(); ++i) set(kLabels + 4 * i, labels[i]);
  }
  void set(std::size_t offset, std::uint32_t value) {
    base::store_le(body_.data() + offset, value);
  }
  base::Bytes encoded() const { return seal(envelope_, body_.view()); }
  std::string refusal() const {
    const auto decoded = ConsistentCuckoo::decode(encoded());
    return decoded ? "" : decoded.error().to_string();
  }

  // Without a salt, where a bucket has one.
  static std::uint64_t place_of(std::uint32_t label) {
    return base::mix64(label + 0x9e3779b97f4a7c15) >> 32;
  }
  // Of the labels below a bound those whose place is in the first of so many parts of the ring.
  static std::vector<std::uint32_t> labels_at_the_beginning(std::uint64_t parts,
                                                            std::uint32_t bound) {
    std::vector<std::uint32_t> labels;
    for (std::uint32_t label = 0; label < bound; ++label) {
      if (place_of(label) < (std::uint64_t{1} << 32) / parts) labels.push_back(label);
    }
    return labels;
  }

  Envelope envelope_;
  base::Buffer body_;
};

TEST_F(HostileConsistent, LabelsThatWereNotGivenOrAreGivenTwiceAreCorrupt) {
  make({0, 1, 2}, 3);
  EXPECT_EQ(refusal(), "");
  make({0, 1, 3}, 3);
  EXPECT_THAT(refusal(), HasSubstr("label 3"));
  make({0, 1, 1}, 3);
  EXPECT_THAT(refusal(), HasSubstr("label 1"));
}

// Chosen so that all sit in one part of 4096 of the ring, where an honest table has one in 4096.
TEST_F(HostileConsistent, LabelsWhosePlacesCrowdAreCorrupt) {
  constexpr std::uint32_t kSearched = 1U << 22;
  const auto crowd = labels_at_the_beginning(4096, kSearched);
  ASSERT_GT(crowd.size(), 900U);
  make(crowd, kSearched);
  EXPECT_THAT(refusal(), HasSubstr("crowd"));
  std::vector<std::uint32_t> honest;
  for (std::uint32_t label = 0; label < crowd.size(); ++label) honest.push_back(label);
  make(honest, kSearched);
  EXPECT_EQ(refusal(), "");
}

// Chosen so that all sit in a quarter of the ring: none of its sectors is a crowd, but a node
// that is put before them would have to be told to all the others.
TEST_F(HostileConsistent, LabelsWhosePlacesLeaveAGapAreCorrupt) {
  constexpr std::uint32_t kSearched = 1U << 12;
  const auto quarter = labels_at_the_beginning(4, kSearched);
  ASSERT_GT(quarter.size(), 900U);
  make(quarter, kSearched);
  EXPECT_THAT(refusal(), HasSubstr("empty"));
}

// In half of the ring, each before all the others. Put there one by one they would have to pass
// over the empty half a quarter of a million times.
TEST_F(HostileConsistent, LabelsInTheWorstOrderCostNoMoreThanOthers) {
  constexpr std::uint32_t kSearched = 1U << 19;
  auto half = labels_at_the_beginning(2, kSearched);
  std::ranges::sort(half, std::ranges::greater(), place_of);
  const auto same_place = std::ranges::unique(half, {}, place_of);
  half.erase(same_place.begin(), same_place.end());
  const std::size_t buckets = half.size();
  const auto table = IndexIndependentCuckoo::from_parts(
      {.candidates = 2, .slots = 1, .ring = kHashed, .places = 1}, 0, kSearched, std::move(half),
      std::vector<IndexIndependentCuckoo::Fingerprint>(buckets));
  ASSERT_TRUE(table.failed_with(base::Errc::corrupt));
  EXPECT_THAT(table.error().to_string(), HasSubstr("empty"));
}

TEST_F(HostileConsistent, MembersThatGrowthWouldMakeTooLargeAreCorrupt) {
  make({0, 1, 2}, 3);
  set(kMemberBuckets, ConsistentCuckoo::kMemberBucketsMax);
  EXPECT_EQ(refusal(), "");
  set(kMemberBuckets, ConsistentCuckoo::kMemberBucketsMax + 1);
  EXPECT_THAT(refusal(), HasSubstr("corrupt"));
  set(kMemberBuckets, UINT32_MAX);
  EXPECT_THAT(refusal(), HasSubstr("corrupt"));
}

TEST_F(HostileConsistent, ATableWithoutLabelsLeftTakesNoMoreBuckets) {
  make({0, 1, 2}, UINT32_MAX);
  ConsistentCuckoo filter = *ConsistentCuckoo::decode(encoded());
  EXPECT_FALSE(filter.scale_up());
  std::uint64_t taken = 0;
  for (const KeyHash key : keys_from(0, 100)) taken += filter.insert(key) ? 1 : 0;
  EXPECT_LE(taken, 3U);
  EXPECT_EQ(filter.bucket_count(), 3U);
}

// As many places as make a ring emptiest: it has just been cut.
TEST_F(HostileConsistent, BytesTakeNoMoreThanAHundredAndSeventyTimesTheirNumber) {
  for (const std::uint32_t buckets : {1281U, 2000U}) {
    std::vector<std::uint32_t> labels;
    for (std::uint32_t label = 0; label < buckets; ++label) labels.push_back(label);
    make(labels, buckets, IndexIndependentCuckoo::kPlacesMax);
    const auto filter = ConsistentCuckoo::decode(encoded());
    ASSERT_TRUE(filter.has_value());
    EXPECT_LE(filter->memory_bytes(), 170 * encoded().size());
  }
}

// All shapes, growing and shrinking all the time, compared with the truth at every step.
RC_GTEST_PROP(ConsistentCuckoo, KeepsStepWithTheTruthInEveryShape, ()) {
  const auto small = [](unsigned below) { return *rc::gen::inRange(1U, below); };
  const bool is_even = *rc::gen::arbitrary<bool>();
  const ConsistentCuckoo::Options options{
      .capacity = 200,
      .fingerprint_bits = *rc::gen::inRange(6U, 33U),
      .shape = {.candidates = small(6),
                .slots = small(6),
                .ring = is_even ? kEven : kHashed,
                .places = is_even ? 1 : small(6),
                .searched_max = 50},
      .member_buckets = small(5),
      .members_max = small(4),
      .growth = *rc::gen::element(ConsistentCuckoo::Growth::by_buckets,
                                  ConsistentCuckoo::Growth::by_members,
                                  ConsistentCuckoo::Growth::by_members_as_printed),
      .grow_above_percent = *rc::gen::inRange(60U, 101U),
      .shrink_below_percent = *rc::gen::inRange(0U, 61U),
      .merged_fingerprints_max = *rc::gen::inRange(0U, 6U)};
  CheckedFilter<ConsistentCuckoo> checked(*ConsistentCuckoo::with_options(options));
  const auto operations = *rc::gen::container<std::vector<std::pair<unsigned, unsigned>>>(
      rc::gen::pair(rc::gen::inRange(0U, 9U), rc::gen::inRange(0U, 150U)));
  for (const auto& [operation, number] : operations) {
    const KeyHash key = KeyHash::of_integer(number);
    if (operation < 4) {
      checked.insert(key);
    } else if (operation < 7) {
      checked.erase(key);
    } else if (operation < 8) {
      checked.contains(key);
    } else {
      checked.reload();
    }
    const auto sound = checked.filter().check();
    RC_ASSERT(sound.has_value());
  }
  checked.contains_all();
  RC_ASSERT(checked.problem() == "");
}

}  // namespace
}  // namespace helenus::filters
