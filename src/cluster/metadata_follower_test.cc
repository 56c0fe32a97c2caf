// Nodes that were away and learn what was decided, on simulated machines: restarted in any order,
// cut off, or slow to start.
#include "cluster/metadata_follower.h"

#include <cstddef>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/cluster_test_support.h"
#include "runtime/contract/world.h"

namespace helenus::cluster {
namespace {

using ::testing::HasSubstr;
using namespace cluster::testing;
using namespace std::chrono_literals;

TEST(MetadataFollower, ACrashedClusterIsBackWhateverTheOrder) {
  Cluster cluster(3, 3);
  cluster.start_all();
  cluster.expect_whole(3);
  for (const std::size_t i : {0U, 1U, 2U}) cluster.machine(i).power_loss();
  cluster.world().run_for(5s);
  for (const std::size_t i : {2U, 1U, 0U}) {
    cluster.machine(i).start();
    cluster.world().run_for(5s);
    // It waits for nobody who is not there.
    EXPECT_TRUE(cluster.node(i).is_started());
  }
  cluster.expect_whole(3);
}

TEST(MetadataFollower, ANodeThatWasAwayHasAppliedWhatWasDecidedMeanwhileWhenItHasStarted) {
  Cluster cluster(15, 3);
  cluster.start_all();
  cluster.expect_whole(3);
  cluster.machine(2).kill();
  cluster.tell(0, change(add_keyspace("shop")));
  cluster.machine(2).start();
  EXPECT_TRUE(cluster.world().run_until([&] { return cluster.node(2).is_started(); }, 2s));
  EXPECT_EQ(cluster.service(2).applied_version(), cluster.service(0).version());
}

TEST(MetadataFollower, ANodeThatStartsAMomentBeforeTheOthersAppliesWhatTheyKnow) {
  Cluster cluster(21, 3);
  cluster.start_all();
  cluster.expect_whole(3);
  cluster.machine(2).kill();
  cluster.tell(0, change(add_keyspace("shop")));
  const auto newest = cluster.service(0).version();
  for (const std::size_t i : {0U, 1U}) cluster.machine(i).kill();
  cluster.machine(2).start();
  cluster.world().run_for(1s);
  EXPECT_FALSE(cluster.node(2).is_started());
  for (const std::size_t i : {0U, 1U}) cluster.machine(i).start();
  EXPECT_TRUE(cluster.world().run_until([&] { return cluster.node(2).is_started(); }, 2s));
  EXPECT_EQ(cluster.service(2).applied_version(), newest);
}

// One node decides until there are three; the document that has three decide is decided by one.
TEST(MetadataFollower, WhoDiedBeforeItNotedThatOthersDecideWithItStartsAlone) {
  Cluster cluster(22, 3);
  cluster.start_all();
  const auto has_accepted = [&] {
    const auto state = cluster.acceptor_state(0);
    return state && state->accepted && state->accepted->document.acceptors.size() == 3;
  };
  ASSERT_TRUE(cluster.world().run_until(has_accepted, 1min));
  const auto accepted = cluster.acceptor_state(0)->accepted->document.version;
  for (const std::size_t i : {0U, 1U, 2U}) cluster.machine(i).kill();
  ASSERT_TRUE(has_accepted()) << "a test of nothing";
  ASSERT_EQ(cluster.acceptor_state(0)->decided.acceptors.size(), 1U) << "a test of nothing";
  cluster.machine(0).start();
  EXPECT_TRUE(cluster.world().run_until([&] { return cluster.node(0).is_started(); }, 4s))
      << cluster.phases();
  EXPECT_EQ(cluster.service(0).applied_version(), accepted);
  for (const std::size_t i : {1U, 2U}) cluster.machine(i).start();
  cluster.expect_whole(3);
}

TEST(MetadataFollower, WhoWasAwayAsksForTheNewestAndDoesNotWaitForEver) {
  Cluster cluster(16, 3);
  cluster.start_all();
  cluster.expect_whole(3);
  cluster.machine(2).kill();
  cluster.tell(0, change(add_keyspace("shop")));
  for (const std::size_t i : {0U, 1U}) cluster.cut_off(2, i);
  cluster.machine(2).start();
  cluster.world().run_for(2s);
  EXPECT_FALSE(cluster.node(2).is_started());
  EXPECT_THAT(cluster.service(2).phase(), HasSubstr("waits for 2 of the 3 nodes that decide"));
  EXPECT_TRUE(cluster.world().run_until([&] { return cluster.node(2).is_started(); }, 2s));
  EXPECT_LT(cluster.service(2).version(), cluster.service(0).version());
  for (const std::size_t i : {0U, 1U}) cluster.cut_off(2, i, false);
  cluster.expect_whole(3);
}

// Changes are acknowledged without a node that is taken for down, until it is heard of again.
TEST(MetadataFollower, WhatWasDecidedWhileAStartTookItsTimeIsAppliedWhenItIsOver) {
  Cluster cluster(26, 3);
  cluster.plan(2).has_owner = true;
  cluster.start_all();
  cluster.expect_whole(3);
  cluster.machine(2).kill();
  cluster.world().run_for(1min);
  cluster.plan(2).owner_waits = true;
  cluster.machine(2).start();
  const auto applies = [&] { return cluster.service(2).phase().starts_with("applies"); };
  ASSERT_TRUE(cluster.world().run_until(applies, 5s)) << cluster.phases();
  for (const std::size_t i : {0U, 1U}) cluster.cut_off(2, i);
  cluster.world().run_for(1min);
  cluster.tell(0, change(add_keyspace("shop")));
  cluster.tell(0, wait_applied_everywhere(1s));
  cluster.world().run_for(10s);
  for (const std::size_t i : {0U, 1U}) cluster.cut_off(2, i, false);
  cluster.world().run_for(10s);
  ASSERT_LT(cluster.service(2).version(), cluster.service(0).version()) << "a test of nothing";
  cluster.plan(2).owner_waits = false;
  EXPECT_TRUE(cluster.world().run_until([&] { return cluster.node(2).is_started(); }, 5s));
  EXPECT_EQ(cluster.service(2).applied_version(), cluster.service(0).version());
}

TEST(MetadataFollower, WhoCouldNotAskTheOnlyHolderOfANewerVersionAsksItAgain) {
  Cluster cluster(23, 3);
  cluster.plan(1).has_owner = true;
  cluster.start_all();
  cluster.expect_whole(3);
  // The third node hears by way of the second what the first one has applied; the second applies
  // nothing.
  cluster.plan(1).owner_waits = true;
  cluster.cut_off(0, 2);
  cluster.world().run_for(1min);
  cluster.tell(0, change(add_keyspace("shop")));
  cluster.world().run_for(20s);
  ASSERT_LT(cluster.service(2).version(), cluster.service(0).version()) << "a test of nothing";
  cluster.cut_off(0, 2, false);
  const auto knows = [&] { return cluster.service(2).version() == cluster.service(0).version(); };
  EXPECT_TRUE(cluster.world().run_until(knows, 15s));
  cluster.plan(1).owner_waits = false;
  cluster.expect_whole(3);
}

}  // namespace
}  // namespace helenus::cluster
