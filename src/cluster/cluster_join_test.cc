// Nodes that come into a cluster, are kept out of it, or were removed, on simulated machines.
#include "cluster/cluster_join.h"

#include <cstddef>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/cluster_test_support.h"
#include "metadata/transitions.h"
#include "runtime/contract/world.h"

namespace helenus::cluster {
namespace {

using base::Errc;
using metadata::ClusterMetadata;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using ::testing::HasSubstr;
using namespace cluster::testing;
using namespace std::chrono_literals;

TEST(ClusterJoin, AKeyspaceThatIsMadeAndAlteredWhileANodeJoinsDelaysItAndNoMore) {
  Cluster cluster(18, 4, 1);
  for (const std::size_t i : {0U, 1U, 2U}) cluster.machine(i).start();
  cluster.expect_whole(3);
  cluster.machine(3).start();
  const auto joins = [&] { return cluster.service(0).metadata()->find(node_of(3)) != nullptr; };
  ASSERT_TRUE(cluster.world().run_until(joins, 1min));
  const auto epoch = cluster.service(0).metadata()->epoch;
  for (const std::size_t i : {0U, 1U, 2U}) cluster.cut_off(3, i);
  cluster.tell(0, change(add_keyspace("shop")));
  cluster.tell(0, change(alter_keyspace("shop", 3)));
  ASSERT_GT(cluster.service(0).metadata()->epoch, epoch) << "a test of nothing";
  for (const std::size_t i : {0U, 1U, 2U}) cluster.cut_off(3, i, false);
  cluster.expect_whole(4);
  EXPECT_TRUE(cluster.service(3).metadata()->keyspaces.contains("shop"));
}

TEST(ClusterJoin, AFourthNodeOfAnotherClusterIsRefusedAndToldSo) {
  Cluster cluster(4, 4, 1);
  cluster.plan(3).options.cluster_name = "carthage";
  cluster.start_all();
  cluster.world().run_for(30s);
  EXPECT_FALSE(cluster.node(3).is_started());
  EXPECT_THAT(cluster.service(3).phase(), HasSubstr("refused"));
  EXPECT_THAT(cluster.service(3).phase(), HasSubstr("troy"));
  EXPECT_EQ(cluster.service(0).metadata()->nodes.size(), 3U);
}

TEST(ClusterJoin, ANodeDoesNotJoinWhereDataWouldHaveToBeCopiedAndNobodyDoes) {
  Cluster cluster(6, 4, 1);
  for (const std::size_t i : {0U, 1U, 2U}) cluster.machine(i).start();
  cluster.expect_whole(3);
  cluster.tell(0, change(add_keyspace("shop")));
  cluster.machine(3).start();
  EXPECT_TRUE(
      cluster.world().run_until([&] { return cluster.plan(3).start_error.has_value(); }, 1min));
  EXPECT_EQ(cluster.plan(3).start_error->code(), Errc::unsupported);
}

TEST(ClusterJoin, ARemovedNodeIsGoneEverywhereAndDoesNotComeBackUnderItsId) {
  Cluster cluster(7, 4);
  cluster.start_all();
  cluster.expect_whole(4);
  cluster.machine(3).power_loss();
  cluster.tell(0, [](Runtime& runtime, ClusterService& service) -> Task<void> {
    const auto removing = co_await service.change(
        [](const ClusterMetadata& now) {
          return metadata::begin_removal(now, node_of(3), metadata::DataLoss::refused);
        },
        Until::after(runtime, 20s));
    CO_ASSERT_OK(removing);
    const auto epoch = (*removing)->epoch;
    CO_ASSERT_OK(co_await service.change(
        [epoch](const ClusterMetadata& now) { return metadata::finish_change(now, epoch); },
        Until::after(runtime, 20s)));
  });
  cluster.expect_whole(3);
  // It learns of it from the others, who do not take it back.
  for (const std::size_t i : {0U, 1U, 2U}) cluster.cut_off(3, i);
  cluster.machine(3).start();
  EXPECT_TRUE(cluster.world().run_until([&] { return cluster.node(3).is_started(); }, 10s));
  for (const std::size_t i : {0U, 1U, 2U}) cluster.cut_off(3, i, false);
  const auto learned = [&] { return cluster.service(3).phase() == "was removed from the cluster"; };
  EXPECT_TRUE(cluster.world().run_until(learned, 2min)) << cluster.phases();
  cluster.world().run_for(10s);
  for (const std::size_t i : {0U, 1U, 2U}) {
    const auto* seen = cluster.service(i).gossip().view().find(node_of(3));
    EXPECT_TRUE(seen == nullptr || !seen->member);
  }
  cluster.machine(3).power_loss();
  cluster.machine(3).start();
  EXPECT_TRUE(
      cluster.world().run_until([&] { return cluster.plan(3).start_error.has_value(); }, 2min))
      << cluster.phases();
  ASSERT_TRUE(cluster.plan(3).start_error);
  EXPECT_EQ(cluster.plan(3).start_error->code(), Errc::refused);
  EXPECT_THAT(cluster.plan(3).start_error->to_string(), HasSubstr("was removed"));
}

TEST(ClusterJoin, ANewcomerReachesAcceptorsThatAreNoSeeds) {
  Cluster cluster(8, 5, 4);
  for (const std::size_t i : {0U, 1U, 2U, 3U}) cluster.machine(i).start();
  cluster.expect_whole(4);
  cluster.machine(4).start();
  cluster.expect_whole(5);
}

}  // namespace
}  // namespace helenus::cluster
