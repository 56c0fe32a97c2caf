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
        const auto node = static_cast<HashRing::Node>(prng.below(HashRing::kNodeMax + 1));
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

// Many nodes: lines that tell them apart by 16 bits, and back to those that take 32.
TEST(HashRing, AgreesWithATreeAsItGrowsLargeAndSmallAgain) {
  HashRing ring;
  Truth truth;
  std::vector<HashRing::Position> positions;  // in the order they came, which is any order
  base::Prng prng(12);
  const auto grow_to = [&](std::size_t size) {
    while (truth.size() < size) {
      const auto position = static_cast<HashRing::Position>(prng.next());
      const auto node = static_cast<HashRing::Node>(truth.size());
      if (!truth.emplace(position, node).second) continue;
      ring.add(position, node);
      positions.push_back(position);
    }
    expect_same_owners(ring, truth, prng, 5'000);
  };
  const auto shrink_to = [&](std::size_t size) {
    while (truth.size() > size) {
      ring.remove(positions.back());
      truth.erase(positions.back());
      positions.pop_back();
    }
    expect_same_owners(ring, truth, prng, 5'000);
  };
  const auto bytes_per_node = [&] {
    return static_cast<double>(ring.memory_bytes()) / static_cast<double>(ring.size());
  };
  grow_to(150'000);
  EXPECT_LT(bytes_per_node(), 18);
  grow_to(200'000);
  EXPECT_LT(bytes_per_node(), 23);
  for (const auto& [position, node] : truth) ASSERT_EQ(ring.find_owner(position), node);
  for (auto& [position, node] : truth) ring.renumber(position, node += 7);
  expect_same_owners(ring, truth, prng, 5'000);
  grow_to(450'000);  // nearly seven of ten places a line, so that lines overflow
  EXPECT_LT(bytes_per_node(), 13);
  for (const auto& [position, node] : truth) ASSERT_EQ(ring.find_owner(position), node);
  shrink_to(120'000);
  EXPECT_LT(bytes_per_node(), 22);
  shrink_to(7'700);
  EXPECT_LT(bytes_per_node(), 36);
  for (const auto& [position, node] : truth) ASSERT_EQ(ring.find_owner(position), node);
}

// Sectors are cut anew where their number must change, and not again for every node more or less.
TEST(HashRing, IsNotCutAnewAllTheTimeWhereItsSizeStays) {
  HashRing ring;
  base::Prng prng(13);
  std::vector<HashRing::Position> positions;
  const auto add = [&] {
    const auto position = static_cast<HashRing::Position>(prng.next());
    if (ring.is_taken(position)) return;
    ring.add(position, 1);
    positions.push_back(position);
  };
  const auto remove = [&] {
    ring.remove(positions.back());
    positions.pop_back();
  };
  for (const std::size_t sectors : {64U, 1024U}) {
    const std::size_t full = sectors * 5;
    while (ring.size() <= full) add();
    const std::uint64_t memory = ring.memory_bytes();
    EXPECT_GE(memory, 2 * sectors * 64) << "it was cut at this very node";
    for (std::size_t i = 0; i < full / 5; ++i) {
      remove();
      EXPECT_GE(ring.memory_bytes(), 2 * sectors * 64) << i;
    }
    for (std::size_t i = 0; i < full / 5; ++i) remove();
    EXPECT_LT(ring.memory_bytes(), 2 * sectors * 64);
  }
}

RC_GTEST_PROP(HashRing, KeepsStepWithATree, ()) {
  HashRing ring;
  Truth truth;
  const auto operations = *rc::gen::container<std::vector<std::pair<unsigned, std::uint32_t>>>(
      rc::gen::pair(rc::gen::inRange(0U, 4U), rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(0, 40),
                                                             rc::gen::arbitrary<std::uint32_t>())));
  for (const auto& [operation, position] : operations) {
    const HashRing::Node number = position & (HashRing::kNodeMax >> 1);
    RC_ASSERT(ring.is_taken(position) == truth.contains(position));
    if (operation < 2 && !truth.contains(position)) {
      ring.add(position, number + 1);
      truth.emplace(position, number + 1);
    } else if (operation == 2 && truth.contains(position)) {
      ring.remove(position);
      truth.erase(position);
    } else if (operation == 3 && truth.contains(position)) {
      ring.renumber(position, number + 2);
      truth[position] = number + 2;
    }
    if (!truth.empty()) RC_ASSERT(ring.find_owner(position) == owner_in(truth, position));
  }
}

}  // namespace
}  // namespace helenus::filters
