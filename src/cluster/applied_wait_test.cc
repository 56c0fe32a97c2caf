// Changes that are acknowledged when every node that is up acts by them, on simulated machines: who
// is waited for, and who is not.
#include "cluster/applied_wait.h"

#include <cstddef>
#include <cstdint>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cluster/cluster_test_support.h"
#include "rpc/verb.h"
#include "runtime/contract/world.h"

namespace helenus::cluster {
namespace {

using base::Errc;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using namespace cluster::testing;
using namespace std::chrono_literals;

TEST(AppliedWait, AChangeIsEverywhereBeforeTheNextRoundOfGossip) {
  Cluster cluster(17, 3);
  cluster.start_all();
  cluster.expect_whole(3);
  cluster.world().run_for(10s);
  cluster.tell(0, [](Runtime& runtime, ClusterService& service) -> Task<void> {
    const auto began = runtime.clock.now();
    for (int i = 0; i < 3; ++i) {
      const auto until = Until::after(runtime, 20s);
      CO_ASSERT_OK(co_await service.change(add_keyspace(fmt::format("k{}", i)), until));
      CO_ASSERT_OK(co_await service.wait_applied_everywhere(service.version(), until));
    }
    EXPECT_LT(runtime.clock.now() - began, 500ms);
  });
}

TEST(AppliedWait, AVersionIsAppliedWhenTheOwnerActsByIt) {
  Cluster cluster(9, 3);
  cluster.plan(2).has_owner = true;
  cluster.plan(2).owner_fails = 2;
  cluster.start_all();
  cluster.expect_whole(3);
  cluster.plan(2).owner_waits = true;
  cluster.tell(0, change_that_waits_for(2, 9s));
  // It knows, and does not act by it.
  EXPECT_EQ(cluster.service(2).version(), cluster.service(0).version());
  EXPECT_LT(cluster.service(2).applied_version(), cluster.service(2).version());
  cluster.plan(2).owner_waits = false;
  cluster.tell(0, wait_applied_everywhere(9s));
  EXPECT_EQ(cluster.service(2).applied_version(), cluster.service(2).version());
}

TEST(AppliedWait, WhoIsCutOffFromOneNodeAloneIsWaitedForByIt) {
  Cluster cluster(14, 3);
  cluster.plan(2).has_owner = true;
  cluster.start_all();
  cluster.expect_whole(3);
  cluster.plan(2).owner_waits = true;
  cluster.cut_off(0, 2);
  // Longer than it takes for connections to break and the detector to judge.
  cluster.world().run_for(1min);
  EXPECT_TRUE(cluster.service(0).gossip().view().find(node_of(2))->up) << "a test of nothing";
  cluster.tell(0, [](Runtime& runtime, ClusterService& service) -> Task<void> {
    const auto answer =
        co_await service.rpc().call(node_of(2), rpc::verbs::kMetadataVersion,
                                    rpc::Payload(base::Bytes()), Until::after(runtime, 10s));
    EXPECT_TRUE(answer.failed_with(Errc::unavailable)) << "a test of nothing";
  });
  cluster.tell(0, change_that_waits_for(2, 15s));
  cluster.plan(2).owner_waits = false;
  // By way of the node between them.
  cluster.tell(0, wait_applied_everywhere(20s));
  EXPECT_EQ(cluster.service(2).applied_version(), cluster.service(0).version());
}

TEST(AppliedWait, WhoHasJustStartedWaitsForNodesItHasNotHeardOf) {
  Cluster cluster(10, 3);
  cluster.start_all();
  cluster.expect_whole(3);
  for (const std::size_t i : {1U, 2U}) {
    cluster.machine(i).power_loss();
    cluster.cut_off(0, i);
  }
  for (const std::size_t i : {2U, 1U}) {
    cluster.machine(i).start();
    EXPECT_TRUE(cluster.world().run_until([&] { return cluster.node(i).is_started(); }, 5s));
  }
  // Node 0 is up, and nobody has told node 1 of it in this life.
  EXPECT_EQ(cluster.service(1).gossip().view().find(node_of(0)), nullptr) << "a test of nothing";
  cluster.tell(1, change_that_waits_for(0, 3s));
  for (const std::size_t i : {1U, 2U}) cluster.cut_off(0, i, false);
  cluster.tell(1, wait_applied_everywhere(20s));
  EXPECT_EQ(cluster.service(0).applied_version(), cluster.service(1).version());
}

TEST(AppliedWait, WhoWasKilledIsNotWaitedForUntilItsSilenceIsNoticed) {
  Cluster cluster(13, 3);
  cluster.start_all();
  cluster.expect_whole(3);
  cluster.machine(2).kill();
  cluster.tell(0, [](Runtime& runtime, ClusterService& service) -> Task<void> {
    CO_ASSERT_OK(co_await service.change(add_keyspace("shop"), Until::after(runtime, 5s)));
    CO_ASSERT_OK(
        co_await service.wait_applied_everywhere(service.version(), Until::after(runtime, 8s)));
    EXPECT_TRUE(service.gossip().view().find(node_of(2))->up) << "a test of nothing";
  });
}

TEST(AppliedWait, WhoVanishedFromTheNetworkIsNotWaitedForUntilItsSilenceIsNoticed) {
  Cluster cluster(27, 3);
  cluster.start_all();
  cluster.expect_whole(3);
  cluster.world().run_for(10s);
  // Packets to it are lost, and nobody says so.
  for (const std::size_t i : {0U, 1U}) cluster.cut_off(2, i);
  cluster.tell(0, [](Runtime& runtime, ClusterService& service) -> Task<void> {
    CO_ASSERT_OK(co_await service.change(add_keyspace("shop"), Until::after(runtime, 5s)));
    CO_ASSERT_OK(
        co_await service.wait_applied_everywhere(service.version(), Until::after(runtime, 8s)));
    EXPECT_TRUE(service.gossip().view().find(node_of(2))->up) << "a test of nothing";
  });
}

// Also where it does not even shake hands any more, so that calls to it are refused.
TEST(AppliedWait, WhoIsHeldUpForAMomentIsWaitedFor) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Cluster cluster(seed, 3);
    cluster.start_all();
    cluster.expect_whole(3);
    cluster.world().run_for(10s);
    cluster.machine(2).pause();
    cluster.world().run_for(seed * 37ms);
    // Longer than its silence lasts until who is gone is not waited for.
    cluster.tell(0, change_that_waits_for(2, 15s));
    cluster.machine(2).resume();
    cluster.tell(0, wait_applied_everywhere(9s));
    EXPECT_EQ(cluster.service(2).applied_version(), cluster.service(0).version());
  }
}

}  // namespace
}  // namespace helenus::cluster
