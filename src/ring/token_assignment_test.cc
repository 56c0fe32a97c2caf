// Tokens dealt out: balance, least movement and spread, whoever comes and goes.
#include "ring/token_assignment.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ring/placement.h"
#include "ring/topology_test_support.h"

namespace helenus::ring {
namespace {

using testing::a_node;
using testing::at;
using testing::node_id;

TopologyPtr ring_of(std::size_t token_count, std::vector<Node> members) {
  return *create_ring(Partitioner::murmur3, evenly_spread_tokens(token_count), std::move(members));
}

// Nodes 1, 2, ... in turn in each of the racks of one datacentre.
std::vector<Node> members_in_racks(std::uint64_t node_count, std::uint64_t rack_count) {
  std::vector<Node> members;
  for (std::uint64_t number = 0; number < node_count; ++number) {
    members.push_back(a_node(number + 1, "dc", "r" + std::to_string(number % rack_count), {}));
  }
  return members;
}

std::map<Position, model::NodeId> owners_of(const Topology& topology) {
  std::map<Position, model::NodeId> owners;
  for (TabletIndex tablet = 0; tablet < topology.tablet_count(); ++tablet) {
    owners.emplace(topology.token_of(tablet), topology.node(topology.owner_of(tablet)).id);
  }
  return owners;
}

// Most and fewest tokens of a node.
std::pair<std::size_t, std::size_t> most_and_fewest(const Topology& topology) {
  const auto [fewest, most] = std::ranges::minmax(
      topology.nodes(), {}, [](const Node& node) { return node.tokens.size(); });
  return {most.tokens.size(), fewest.tokens.size()};
}

bool is_balanced(const Topology& topology) {
  const auto [most, fewest] = most_and_fewest(topology);
  return most - fewest <= 1;
}

TEST(TokenAssignment, FirstNodeOwnsEverythingAndTheSecondEveryOtherToken) {
  const auto alone = ring_of(8, members_in_racks(1, 1));
  EXPECT_EQ(alone->nodes()[0].tokens.size(), 8U);
  const auto both = *join(*alone, a_node(2, "dc", "r0", {}));
  EXPECT_EQ(both->nodes()[1].tokens.size(), 4U);
  for (TabletIndex tablet = 0; tablet < 8; ++tablet) {
    EXPECT_NE(both->owner_of(tablet), both->owner_of((tablet + 1) % 8));
  }
}

TEST(TokenAssignment, DoesNotDependOnTheOrderOfMembers) {
  auto members = members_in_racks(7, 3);
  const auto ring = ring_of(64, members);
  base::Prng prng(1);
  prng.shuffle(members);
  EXPECT_EQ(owners_of(*ring), owners_of(*ring_of(64, members)));
}

TEST(TokenAssignment, RefusesWhatCannotBeDealtOut) {
  const auto error_of = [](const base::Result<TopologyPtr>& made) {
    return made ? "none" : std::string(base::name_of(made.error().code()));
  };
  const auto create = [&](std::vector<Position> tokens, std::vector<Node> members) {
    return error_of(create_ring(Partitioner::murmur3, std::move(tokens), std::move(members)));
  };
  EXPECT_EQ(create(evenly_spread_tokens(2), members_in_racks(3, 1)), "invalid argument");
  EXPECT_EQ(create(evenly_spread_tokens(2), {}), "invalid argument");
  EXPECT_EQ(create(evenly_spread_tokens(2), {a_node(1, "dc", "r", {1})}), "invalid argument");
  EXPECT_EQ(create(evenly_spread_tokens(2), {a_node(1, "", "r", {})}), "invalid argument");
  EXPECT_EQ(create({at(1), at(1)}, members_in_racks(2, 1)), "invalid argument");
  EXPECT_EQ(create(std::vector<Position>(kTokensMax + 1), members_in_racks(2, 1)),
            "invalid argument");

  const auto full = ring_of(3, members_in_racks(3, 1));
  EXPECT_EQ(error_of(join(*full, a_node(4, "dc", "r", {}))), "invalid argument");
  EXPECT_EQ(error_of(join(*full, a_node(3, "dc", "r", {}))), "already exists");
  EXPECT_EQ(error_of(leave(*full, node_id(4))), "not found");
  const auto alone = ring_of(3, members_in_racks(1, 1));
  EXPECT_EQ(error_of(join(*alone, a_node(4, "dc", "r", {7}))), "invalid argument");
  EXPECT_EQ(error_of(join(*alone, a_node(4, "dc", "", {}))), "invalid argument");
  EXPECT_EQ(error_of(leave(*alone, node_id(1))), "invalid argument");
}

TEST(TokenAssignment, NodeWithoutTokensIsLeftInPeace) {
  const auto ring = *Topology::make(
      Partitioner::murmur3,
      {a_node(1, "dc", "r", {1, 2, 3, 4}), a_node(2, "dc", "r", {}), a_node(3, "dc", "r", {5, 6})});
  const auto joined = *join(*ring, a_node(4, "dc", "r", {}));
  EXPECT_EQ(joined->nodes()[1].tokens.size(), 0U);
  EXPECT_EQ(joined->nodes()[3].tokens.size(), 2U);
  EXPECT_TRUE((*leave(*ring, node_id(1)))->nodes()[0].tokens.empty());
  EXPECT_EQ(owners_of(**leave(*ring, node_id(2))), owners_of(*ring));
}

TEST(TokenAssignment, RingDealtOutOtherwiseIsTakenAsItIs) {
  const auto ring =
      *Topology::make(Partitioner::murmur3,
                      {a_node(1, "dc", "r", {1, 2, 3, 4, 5, 6, 7, 8}), a_node(2, "dc", "r", {9})});
  const auto joined = *join(*ring, a_node(3, "dc", "r", {}));
  EXPECT_EQ(joined->nodes()[0].tokens.size(), 5U);
  EXPECT_EQ(joined->nodes()[1].tokens.size(), 1U);
  EXPECT_EQ(joined->nodes()[2].tokens.size(), 3U);
  const auto left = *leave(*joined, node_id(3));
  EXPECT_EQ(left->nodes()[1].tokens.size(), 4U) << "all to the one with the fewest";
}

// A ring that grew and shrank.
class History {
 public:
  explicit History(std::uint64_t seed) : prng_(seed) {
    std::vector<Node> members;
    for (std::uint64_t count = prng_.between(1, 12); count > 0; --count) {
      members.push_back(new_node());
    }
    ring_ = ring_of(prng_.between(16, 128), std::move(members));
  }

  // Makes one change and checks what it moved.
  void step() {
    const auto before = owners_of(*ring_);
    const std::size_t node_count = ring_->nodes().size();
    const bool grows = node_count == 1 || (node_count < 16 && prng_.chance(0.5));
    const model::NodeId who =
        grows ? node_id(next_number_) : ring_->nodes()[prng_.below(node_count)].id;
    ring_ = grows ? *join(*ring_, new_node()) : *leave(*ring_, who);
    const auto after = owners_of(*ring_);
    RC_ASSERT(before.size() == after.size());
    std::size_t moved = 0;
    for (const auto& [token, owner] : before) {
      RC_ASSERT(after.contains(token));
      if (after.at(token) == owner) continue;
      ++moved;
      RC_ASSERT((grows ? after.at(token) == who : owner == who));
    }
    RC_ASSERT((!grows || moved == before.size() / (node_count + 1)));
  }

  const Topology& ring() const { return *ring_; }

 private:
  Node new_node() {
    return a_node(next_number_++, "dc" + std::to_string(prng_.below(2)),
                  "r" + std::to_string(prng_.below(3)), {});
  }

  base::Prng prng_;
  std::uint64_t next_number_ = 1;
  TopologyPtr ring_;
};

RC_GTEST_PROP(TokenAssignment, StaysBalancedAndMovesOnlyWhatItMust, (std::uint64_t seed)) {
  History history(seed);
  RC_ASSERT(is_balanced(history.ring()));
  for (int change = 0; change < 8; ++change) {
    history.step();
    RC_ASSERT(is_balanced(history.ring()));
  }
}

// The greatest number of tablets that a node holds, in proportion to the mean.
double load_peak(const TopologyPtr& topology, std::uint32_t factor) {
  const Placement placement(topology, NetworkTopologyStrategy{{{"dc", factor}}});
  std::size_t total = 0;
  std::size_t greatest = 0;
  for (NodeIndex node = 0; node < topology->nodes().size(); ++node) {
    const std::size_t load = placement.tablets_on(node).size();
    total += load;
    greatest = std::max(greatest, load);
  }
  return static_cast<double>(greatest * topology->nodes().size()) / static_cast<double>(total);
}

TEST(TokenAssignment, ReplicasAreSpreadEvenlyOverRacksOfOneSize) {
  for (const std::uint64_t rack_count : {1U, 3U, 5U}) {
    for (const std::uint64_t racks_full : {1U, 2U, 3U, 4U, 6U}) {
      const std::uint64_t node_count = rack_count * racks_full;
      const auto ring = ring_of(kTokensDefault, members_in_racks(node_count, rack_count));
      EXPECT_LT(load_peak(ring, 3), 1.1) << node_count << " nodes in " << rack_count << " racks";
    }
  }
}

TEST(TokenAssignment, ReplicasStaySpreadWhenNodesJoinAndLeave) {
  TopologyPtr ring = ring_of(kTokensDefault, members_in_racks(3, 3));
  for (std::uint64_t number = 3; number < 18; ++number) {
    ring = *join(*ring, a_node(number + 1, "dc", "r" + std::to_string(number % 3), {}));
  }
  EXPECT_LT(load_peak(ring, 3), 1.25);
  for (std::uint64_t number = 0; number < 9; ++number) ring = *leave(*ring, node_id(number + 1));
  EXPECT_LT(load_peak(ring, 3), 1.25);
}

}  // namespace
}  // namespace helenus::ring
