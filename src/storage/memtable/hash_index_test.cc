#include "storage/memtable/hash_index.h"

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"

namespace helenus::storage {
namespace {

using Index = HashIndex<const int>;

// All with this hash: each is found if it alone is wanted.
std::set<const int*> found(const Index& index, std::uint32_t hash) {
  std::set<const int*> things;
  (void)index.find(hash, [&](const int& thing) {
    things.insert(&thing);
    return false;
  });
  return things;
}

// Hashes in ranges that few bits tell apart, so that they meet and segments cannot be split.
RC_GTEST_PROP(HashIndex, WhatWasInsertedIsFoundByItsHash, ()) {
  const auto bits = *rc::gen::inRange(1, 33);
  const auto shift = *rc::gen::inRange(0, 33 - bits);
  const auto count = *rc::gen::inRange(0, 3000);
  base::Prng prng(*rc::gen::arbitrary<std::uint64_t>());
  Index index;
  std::deque<int> things;
  std::map<std::uint32_t, std::set<const int*>> model;
  for (int i = 0; i < count; ++i) {
    const auto hash = static_cast<std::uint32_t>(prng.below(std::uint64_t{1} << bits) << shift);
    index.insert(hash, things.emplace_back(i));
    model[hash].insert(&things.back());
  }
  RC_ASSERT(index.size() == things.size());
  for (const auto& [hash, expected] : model) RC_ASSERT(found(index, hash) == expected);
  for (int i = 0; i < 100; ++i) {
    const auto any = static_cast<std::uint32_t>(prng.next());
    RC_ASSERT(found(index, any).empty() == !model.contains(any));
  }
}

TEST(HashIndex, NothingIsFoundInNone) {
  EXPECT_EQ(Index().find(7, [](int) { return true; }), nullptr);
}

TEST(HashIndex, TheOneThatIsWantedIsFoundAmongThoseWithItsHash) {
  Index index;
  std::deque<int> things;
  for (int i = 0; i < 1000; ++i) index.insert(99, things.emplace_back(i));
  for (const int& thing : things) {
    EXPECT_EQ(index.find(99, [&](const int& each) { return each == thing; }), &thing);
  }
}

// One hash for all of a thousand: no directory could tell them apart, and none is made.
TEST(HashIndex, TakesNoMemoryForHashesThatAreAlike) {
  Index index;
  std::deque<int> things;
  for (int i = 0; i < 1000; ++i) index.insert(99, things.emplace_back(i));
  EXPECT_LT(index.memory_bytes(), 100'000U);
}

TEST(HashIndex, TakesLittleMemoryAndFewStepsHoweverManyThereAre) {
  Index index;
  std::deque<int> things;
  std::vector<std::uint32_t> hashes;
  base::Prng prng(1);
  for (const std::size_t count : {1'000U, 10'000U, 300'000U}) {
    while (hashes.size() < count) {
      hashes.push_back(static_cast<std::uint32_t>(prng.next()));
      index.insert(hashes.back(), things.emplace_back(0));
    }
    EXPECT_LT(index.memory_bytes() / count, 45U) << count;
    std::size_t wrong = 0;  // things touched that have another hash: none
    for (std::size_t i = 0; i < count; ++i) {
      const int* wanted = &things[i];
      ASSERT_EQ(index.find(hashes[i],
                           [&](const int& each) {
                             wrong += &each != wanted ? 1 : 0;
                             return &each == wanted;
                           }),
                wanted);
    }
    EXPECT_LT(wrong, count / 1000);
  }
}

}  // namespace
}  // namespace helenus::storage
