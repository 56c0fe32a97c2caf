#include "filters/hash_ring.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"

namespace helenus::filters {
namespace {

using Truth = std::map<HashRing::Position, HashRing::Node>;

HashRing::Node owner_in(const Truth& truth, HashRing::Position position) {
  const auto found = truth.lower_bound(position);
  return found == truth.end() ? truth.begin()->second : found->second;
}

void expect_same_owners(const HashRing& ring, const Truth& truth, base::Prng& prng, int samples) {
  ASSERT_EQ(ring.size(), truth.size());
  if (truth.empty()) return;
  for (const HashRing::Position edge : {0U, 1U, UINT32_MAX, UINT32_MAX - 1}) {
    ASSERT_EQ(ring.find_owner(edge), owner_in(truth, edge)) << edge;
  }
  for (int i = 0; i < samples; ++i) {
    const auto position = static_cast<HashRing::Position>(prng.next());
    ASSERT_EQ(ring.find_owner(position), owner_in(truth, position)) << position;
  }
}

TEST(HashRing, OneNodeOwnsAll) {
  HashRing ring;
  EXPECT_TRUE(ring.is_empty());
  ring.add(1000, 7);
  for (const HashRing::Position position : {0U, 999U, 1000U, 1001U, UINT32_MAX}) {
    EXPECT_EQ(ring.find_owner(position), 7U);
  }
}

TEST(HashRing, APositionBelongsToTheFirstNodeAtOrAfterItRoundTheRing) {
  HashRing ring;
  ring.add(0, 1);
  ring.add(UINT32_MAX, 2);
  ring.add(500, 3);
  EXPECT_EQ(ring.find_owner(0), 1U);
  EXPECT_EQ(ring.find_owner(1), 3U);
  EXPECT_EQ(ring.find_owner(500), 3U);
  EXPECT_EQ(ring.find_owner(501), 2U);
  EXPECT_EQ(ring.find_owner(UINT32_MAX), 2U);
  ring.remove(UINT32_MAX);
  EXPECT_EQ(ring.find_owner(501), 1U);
}

TEST(HashRing, AgreesWithATreeWhileItGrowsAndShrinks) {
  HashRing ring;
  Truth truth;
  base::Prng prng(11);
  std::uint64_t memory_max = 0;
  const auto churn = [&](int steps, double adding) {
    for (int i = 0; i < steps; ++i) {
      const auto position = static_cast<HashRing::Position>(prng.next());
      if (prng.chance(adding)) {
        if (ring.is_taken(position)) continue;
        const auto node = static_cast<HashRing::Node>(prng.next());
        ring.add(position, node);
        truth.emplace(position, node);
      } else if (!truth.empty()) {
        auto found = truth.lower_bound(position);
        if (found == truth.end()) found = truth.begin();
        ring.remove(found->first);
        truth.erase(found);
      }
      if (i % 1000 == 0) expect_same_owners(ring, truth, prng, 50);
      memory_max = std::max(memory_max, ring.memory_bytes());
    }
    expect_same_owners(ring, truth, prng, 2000);
  };
  churn(30'000, 0.8);
  EXPECT_LT(ring.memory_bytes(), ring.size() * 24);
  churn(40'000, 0.1);
  EXPECT_TRUE(truth.size() < 2000);
  EXPECT_LT(ring.memory_bytes(), memory_max / 4);
}

// All in one sector, as no hash would place them: slow, and right.
TEST(HashRing, CrowdedPositionsAreFoundAllTheSame) {
  HashRing ring;
  Truth truth;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    ring.add(i * 3, i);
    truth.emplace(i * 3, i);
  }
  for (std::uint32_t position = 0; position < 9100; ++position) {
    ASSERT_EQ(ring.find_owner(position), owner_in(truth, position));
  }
}

RC_GTEST_PROP(HashRing, KeepsStepWithATree, ()) {
  HashRing ring;
  Truth truth;
  const auto operations = *rc::gen::container<std::vector<std::pair<unsigned, std::uint32_t>>>(
      rc::gen::pair(rc::gen::inRange(0U, 4U), rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(0, 40),
                                                             rc::gen::arbitrary<std::uint32_t>())));
  for (const auto& [operation, position] : operations) {
    RC_ASSERT(ring.is_taken(position) == truth.contains(position));
    if (operation < 2 && !truth.contains(position)) {
      ring.add(position, position + 1);
      truth.emplace(position, position + 1);
    } else if (operation == 2 && truth.contains(position)) {
      ring.remove(position);
      truth.erase(position);
    } else if (operation == 3 && truth.contains(position)) {
      ring.renumber(position, position + 2);
      truth[position] = position + 2;
    }
    if (!truth.empty()) RC_ASSERT(ring.find_owner(position) == owner_in(truth, position));
  }
}

}  // namespace
}  // namespace helenus::filters
