// The snapshot: what it refuses, and where positions and ranges lie in it.
#include "ring/topology.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ring/topology_test_support.h"

namespace helenus::ring {
namespace {

using testing::a_node;
using testing::at;
using testing::node_id;

TopologyPtr topology_of(std::vector<Node> nodes) {
  return *Topology::make(Partitioner::murmur3, std::move(nodes));
}

TEST(Topology, IsTheSameWhateverTheOrderOfNodes) {
  const auto forward = topology_of({a_node(1, "dc", "r1", {5, -5}), a_node(2, "dc", "r2", {0})});
  const auto backward = topology_of({a_node(2, "dc", "r2", {0}), a_node(1, "dc", "r1", {-5, 5})});
  ASSERT_EQ(forward->nodes().size(), 2U);
  EXPECT_TRUE(std::ranges::equal(forward->nodes(), backward->nodes()));
  EXPECT_EQ(forward->nodes()[0].tokens, (std::vector{at(-5), at(5)}));
  EXPECT_EQ(forward->find(node_id(2)), NodeIndex{1});
  EXPECT_EQ(forward->find(node_id(3)), std::nullopt);
}

TEST(Topology, PositionBelongsToTheNextTokenAndTheRingWraps) {
  const auto topology = topology_of({a_node(1, "dc", "r", {-10, 10}), a_node(2, "dc", "r", {0})});
  ASSERT_EQ(topology->tablet_count(), 3U);
  EXPECT_EQ(topology->tablet_at(at(-10)), 0U);
  EXPECT_EQ(topology->tablet_at(at(-9)), 1U);
  EXPECT_EQ(topology->tablet_at(at(0)), 1U);
  EXPECT_EQ(topology->owner_of(1), NodeIndex{1});
  EXPECT_EQ(topology->tablet_at(at(11)), 0U);
  EXPECT_EQ(topology->tablet_at(at(INT64_MIN)), 0U);
  EXPECT_EQ(topology->start_of(0), at(10));
  EXPECT_EQ(topology->start_of(2), at(0));
}

TEST(Topology, RacksOfOneNameInTwoDatacentresAreTwo) {
  const auto topology =
      topology_of({a_node(1, "a", "r", {1}), a_node(2, "b", "r", {2}), a_node(3, "a", "r", {3})});
  EXPECT_EQ(topology->datacentres().size(), 2U);
  EXPECT_EQ(topology->rack_count(), 2U);
  EXPECT_NE(topology->rack_number(0), topology->rack_number(1));
  EXPECT_EQ(topology->rack_number(0), topology->rack_number(2));
}

TEST(Topology, RefusesWhatIsNoRing) {
  const auto refused = [](std::vector<Node> nodes, std::string_view why) {
    const auto made = Topology::make(Partitioner::murmur3, std::move(nodes));
    return made.failed_with(base::Errc::invalid_argument) &&
           made.error().context().find(why) != std::string_view::npos;
  };
  EXPECT_TRUE(refused({a_node(1, "dc", "r", {1}), a_node(1, "dc", "r", {2})}, "is there twice"));
  EXPECT_TRUE(refused({a_node(1, "dc", "r", {7}), a_node(2, "dc", "r", {7})}, "token 7 belongs"));
  EXPECT_TRUE(refused({a_node(1, "dc", "r", {7, 7})}, "token 7 belongs"));
  EXPECT_TRUE(refused({a_node(1, "", "r", {1})}, "datacentre name"));
  EXPECT_TRUE(refused({a_node(1, "dc", "", {1})}, "rack name"));
  EXPECT_TRUE(refused({a_node(1, "dc", std::string(257, 'r'), {1})}, "rack name"));
  EXPECT_TRUE(refused({Node{node_id(1), "dc", "r", {Position()}}}, "token of 0 bytes"));
  std::vector<Node> too_many;
  for (std::size_t number = 0; number <= Topology::kNodesMax; ++number) {
    too_many.push_back(a_node(number, "dc", "r", {}));
  }
  EXPECT_TRUE(refused(too_many, "4097 nodes"));
  Node full = a_node(1, "dc", "r", {});
  for (std::int64_t token = 0; token <= static_cast<std::int64_t>(kTokensMax); ++token) {
    full.tokens.push_back(at(token));
  }
  EXPECT_TRUE(refused({full}, "65537 tokens"));
}

TEST(Topology, OfNobodyHasNoTablets) {
  const auto topology = topology_of({});
  EXPECT_EQ(topology->tablet_count(), 0U);
  EXPECT_TRUE(topology->ranges_in(at(1), at(1)).empty());
}

TEST(Topology, RangeIsCutAtTokens) {
  const auto topology = topology_of({a_node(1, "dc", "r", {-10, 0, 10})});
  using Ranges = std::vector<TabletRange>;
  EXPECT_EQ(topology->ranges_in(at(-3), at(5)), (Ranges{{at(-3), at(0), 1}, {at(0), at(5), 2}}));
  EXPECT_EQ(topology->ranges_in(at(0), at(10)), (Ranges{{at(0), at(10), 2}}));
  EXPECT_EQ(topology->ranges_in(at(20), at(-20)), (Ranges{{at(20), at(-20), 0}}));
  EXPECT_EQ(topology->ranges_in(at(20), at(30)), (Ranges{{at(20), at(30), 0}}));
  EXPECT_EQ(topology->ranges_in(at(10), at(10)),
            (Ranges{{at(10), at(-10), 0}, {at(-10), at(0), 1}, {at(0), at(10), 2}}));
  EXPECT_EQ(
      topology->ranges_in(at(5), at(5)),
      (Ranges{{at(5), at(10), 2}, {at(10), at(-10), 0}, {at(-10), at(0), 1}, {at(0), at(5), 2}}));
  EXPECT_EQ(topology->ranges_in(at(30), at(20)).size(), 4U);
  const auto alone = topology_of({a_node(1, "dc", "r", {10})});
  EXPECT_EQ(alone->ranges_in(at(10), at(10)), (Ranges{{at(10), at(10), 0}}));
  EXPECT_EQ(alone->ranges_in(at(5), at(3)), (Ranges{{at(5), at(10), 0}, {at(10), at(3), 0}}));
}

// Whether a position is in (start, end], by going round in the simplest way.
bool is_inside(const Position& start, const Position& end, const Position& position) {
  if (start == end) return true;
  const bool between = std::min(start, end) < position && position <= std::max(start, end);
  return start < end ? between : !between;
}

RC_GTEST_PROP(Topology, RangesTileWhatWasAskedForTabletByTablet, (std::uint64_t seed)) {
  base::Prng prng(seed);
  const auto partitioner = prng.chance(0.5) ? Partitioner::murmur3 : Partitioner::ordered;
  const auto topology = *Topology::make(partitioner, testing::random_nodes(partitioner, prng));
  RC_PRE(topology->tablet_count() > 0);
  const auto draw = [&] {
    return prng.chance(0.5)
               ? testing::random_position(partitioner, prng)
               : topology->token_of(static_cast<TabletIndex>(prng.below(topology->tablet_count())));
  };
  const Position start = draw();
  const Position end = prng.chance(0.2) ? start : draw();
  const auto ranges = topology->ranges_in(start, end);
  RC_ASSERT((ranges.front().start == start));
  RC_ASSERT((ranges.back().end == end));
  for (std::size_t index = 1; index < ranges.size(); ++index) {
    RC_ASSERT((ranges[index].start == ranges[index - 1].end));
  }
  for (int probe = 0; probe < 20; ++probe) {
    const Position position = draw();
    std::size_t found = 0;
    for (const TabletRange& range : ranges) {
      if (!is_inside(range.start, range.end, position)) continue;
      ++found;
      RC_ASSERT((topology->tablet_at(position) == range.tablet));
    }
    RC_ASSERT((found == (is_inside(start, end, position) ? 1U : 0U)));
  }
}

RC_GTEST_PROP(Topology, TabletOfAPositionIsWhereALinearSearchFindsIt, (std::uint64_t seed)) {
  base::Prng prng(seed);
  const auto partitioner = prng.chance(0.5) ? Partitioner::murmur3 : Partitioner::ordered;
  const auto topology = *Topology::make(partitioner, testing::random_nodes(partitioner, prng));
  RC_PRE(topology->tablet_count() > 0);
  const Position position = testing::random_position(partitioner, prng);
  TabletIndex found = 0;
  while (found < topology->tablet_count() && topology->token_of(found) < position) ++found;
  RC_ASSERT((topology->tablet_at(position) == found % topology->tablet_count()));
}

}  // namespace
}  // namespace helenus::ring
