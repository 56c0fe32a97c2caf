// What levels ask for, how answers are counted, and that quorums meet.
#include "replication/map/level_rule.h"

#include <algorithm>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::replication {
namespace {

using model::Consistency;
using ::testing::ElementsAre;

const std::vector<std::string> kDatacentres{"dc1", "dc2"};

LevelRule rule_of(const ring::Strategy& strategy, Consistency level,
                  std::string_view local = "dc1") {
  return LevelRule::of(strategy, kDatacentres, local, level);
}

ring::Strategy simple(std::uint32_t factor) {
  return ring::SimpleStrategy{.factor = factor};
}

ring::Strategy network(std::uint32_t first, std::uint32_t second) {
  return ring::NetworkTopologyStrategy{.factors = {{"dc1", first}, {"dc2", second}}};
}

TEST(LevelRule, CountsReplicasWherever) {
  const auto required = [](Consistency level) { return rule_of(simple(5), level).required(); };
  EXPECT_EQ(required(Consistency::any), 1U);
  EXPECT_EQ(required(Consistency::one), 1U);
  EXPECT_EQ(required(Consistency::two), 2U);
  EXPECT_EQ(required(Consistency::three), 3U);
  EXPECT_EQ(required(Consistency::quorum), 3U);
  EXPECT_EQ(required(Consistency::all), 5U);
}

TEST(LevelRule, KnowsNoDatacentresWhereTheStrategyKnowsNone) {
  EXPECT_THAT(rule_of(simple(3), Consistency::local_quorum).groups(),
              ElementsAre(LevelRule::Group{{}, 2}));
  EXPECT_THAT(rule_of(simple(3), Consistency::each_quorum).groups(),
              ElementsAre(LevelRule::Group{{}, 2}));
}

TEST(LevelRule, CountsByDatacentre) {
  const auto strategy = network(3, 2);
  EXPECT_THAT(rule_of(strategy, Consistency::quorum).groups(),
              ElementsAre(LevelRule::Group{{}, 3}));
  EXPECT_THAT(rule_of(strategy, Consistency::local_quorum, "dc2").groups(),
              ElementsAre(LevelRule::Group{1, 2}));
  EXPECT_THAT(rule_of(strategy, Consistency::local_one).groups(),
              ElementsAre(LevelRule::Group{0, 1}));
  EXPECT_THAT(rule_of(strategy, Consistency::each_quorum).groups(),
              ElementsAre(LevelRule::Group{0, 2}, LevelRule::Group{1, 2}));
}

// Nobody there can answer, and a majority of nothing is not enough.
TEST(LevelRule, ALocalLevelWithoutLocalReplicasIsNeverMet) {
  for (const std::string_view local : {"dc1", "dc3"}) {
    const LevelRule rule = rule_of(network(0, 3), Consistency::local_quorum, local);
    const AckTally tally(rule, std::vector<CountedReplica>{1, 1, 1});
    EXPECT_TRUE(tally.is_impossible()) << local;
    EXPECT_EQ(tally.shortage()->alive, 0U);
  }
}

TEST(AckTally, IsMetWhenEveryGroupIs) {
  const LevelRule rule = rule_of(network(3, 2), Consistency::each_quorum);
  AckTally tally(rule, std::vector<CountedReplica>{0, 0, 0, 1, 1});
  tally.acknowledge(0);
  tally.acknowledge(0);
  tally.acknowledge(1);
  EXPECT_FALSE(tally.met());
  EXPECT_FALSE(tally.is_impossible());
  EXPECT_EQ(tally.shortage()->group, (LevelRule::Group{1, 2}));
  tally.acknowledge(1);
  EXPECT_TRUE(tally.met());
  EXPECT_EQ(tally.acknowledged(), 4U);
  EXPECT_FALSE(tally.shortage().has_value());
}

TEST(AckTally, IsImpossibleWhenTooManyFail) {
  const LevelRule rule = rule_of(simple(3), Consistency::quorum);
  AckTally tally(rule, std::vector<CountedReplica>{0, 0, 0});
  tally.fail(0);
  EXPECT_FALSE(tally.is_impossible());
  tally.fail(0);
  EXPECT_TRUE(tally.is_impossible());
  EXPECT_EQ(tally.failed(), 2U);
  EXPECT_EQ(tally.shortage()->alive, 1U);
}

// Fewer nodes than the factor wants: a majority is one of the factor.
TEST(AckTally, AMajorityIsOfWhatIsWanted) {
  const LevelRule rule = rule_of(simple(3), Consistency::quorum);
  const AckTally tally(rule, std::vector<CountedReplica>{0});
  EXPECT_TRUE(tally.is_impossible());
}

// Acknowledges a random order of the replicas until the level is met; who did.
std::vector<std::size_t> who_meets(const LevelRule& rule,
                                   const std::vector<CountedReplica>& replicas) {
  AckTally tally(rule, replicas);
  std::vector<std::size_t> order(replicas.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
  }
  std::vector<std::size_t> met;
  for (const std::size_t replica : order) {
    if (tally.met()) break;
    tally.acknowledge(replicas[replica]);
    met.push_back(replica);
  }
  RC_PRE(tally.met());
  return met;
}

RC_GTEST_PROP(LevelRule, WritersAndReadersOfAQuorumMeet, ()) {
  const auto first = *rc::gen::inRange<std::uint32_t>(0, 5);
  const auto second = *rc::gen::inRange<std::uint32_t>(0, 5);
  RC_PRE(first + second > 0);
  std::vector<CountedReplica> replicas(first, 0);
  replicas.insert(replicas.end(), second, 1);
  const auto level = *rc::gen::element(Consistency::quorum, Consistency::local_quorum,
                                       Consistency::each_quorum, Consistency::all);
  RC_PRE(level != Consistency::local_quorum || first > 0);
  const LevelRule rule = rule_of(network(first, second), level);
  const auto writers = who_meets(rule, replicas);
  const auto readers = who_meets(rule, replicas);
  RC_ASSERT(std::ranges::any_of(writers, [&](std::size_t replica) {
    return std::ranges::find(readers, replica) != readers.end();
  }));
}

// While a change is joint a level meets itself, and what the set before and the set after ask for.
RC_GTEST_PROP(LevelRule, AJointQuorumMeetsThoseBeforeAndAfterIt, ()) {
  const auto nodes = *rc::gen::inRange<std::size_t>(1, 7);
  const auto factor_before = *rc::gen::inRange<std::uint32_t>(1, 6);
  const auto factor_after = *rc::gen::inRange<std::uint32_t>(1, 6);
  std::vector<std::size_t> order(nodes);
  for (std::size_t i = 0; i < nodes; ++i) order[i] = i;
  for (std::size_t i = nodes; i > 1; --i) {
    std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
  }
  // The first ones of the nodes were the set, the first ones of another order will be.
  const auto is_before = [&](std::size_t node) { return node < factor_before; };
  const auto is_after = [&](std::size_t node) { return order[node] < factor_after; };
  std::vector<CountedReplica> before;
  std::vector<CountedReplica> after;
  std::vector<CountedReplica> joint;
  std::vector<std::size_t> before_nodes;
  std::vector<std::size_t> after_nodes;
  std::vector<std::size_t> joint_nodes;
  for (std::size_t node = 0; node < nodes; ++node) {
    if (is_before(node)) before.emplace_back(0), before_nodes.push_back(node);
    if (is_after(node)) after.emplace_back(0), after_nodes.push_back(node);
    if (!is_before(node) && !is_after(node)) continue;
    const unsigned sets = (is_before(node) ? 1U : 0U) + (is_after(node) ? 2U : 0U);
    joint.emplace_back(0, static_cast<ReplicaSets>(sets));
    joint_nodes.push_back(node);
  }
  const LevelRule rule_before = rule_of(simple(factor_before), Consistency::quorum);
  const LevelRule rule_after = rule_of(simple(factor_after), Consistency::quorum);
  const LevelRule rule_joint = LevelRule::joint(rule_before, rule_after);
  const auto met = [](const LevelRule& rule, const std::vector<CountedReplica>& replicas,
                      const std::vector<std::size_t>& names) {
    std::set<std::size_t> who;
    for (const std::size_t index : who_meets(rule, replicas)) who.insert(names[index]);
    return who;
  };
  const auto meet = [](const std::set<std::size_t>& a, const std::set<std::size_t>& b) {
    return std::ranges::any_of(a, [&](std::size_t node) { return b.contains(node); });
  };
  const auto in_joint = met(rule_joint, joint, joint_nodes);
  RC_ASSERT(meet(in_joint, met(rule_before, before, before_nodes)));
  RC_ASSERT(meet(in_joint, met(rule_after, after, after_nodes)));
  RC_ASSERT(meet(in_joint, met(rule_joint, joint, joint_nodes)));
}

// A replica of both sets counts in both; one of the next set alone does not help the present one.
TEST(AckTally, AJointLevelIsMetInBothSets) {
  const LevelRule quorum = rule_of(simple(3), Consistency::quorum);
  const LevelRule rule = LevelRule::joint(quorum, quorum);
  using enum ReplicaSets;
  AckTally tally(rule, std::vector<CountedReplica>{{0, present}, {0, both}, {0, both}, {0, next}});
  tally.acknowledge({0, both});
  tally.acknowledge({0, next});
  EXPECT_FALSE(tally.met());
  EXPECT_EQ(tally.shortage()->group.set, present);
  tally.fail({0, present});
  EXPECT_FALSE(tally.is_impossible());
  EXPECT_TRUE(tally.still_counts({0, both}));
  EXPECT_FALSE(tally.still_counts({0, next}));
  tally.acknowledge({0, both});
  EXPECT_TRUE(tally.met());
}

}  // namespace
}  // namespace helenus::replication
