// Nodes that found one cluster and no second, on simulated machines, whatever the order they start
// in. Through faults they do so in the scenario cluster-founding.
#include "cluster/cluster_discovery.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/cluster_test_support.h"
#include "metadata/transitions.h"
#include "runtime/contract/world.h"

namespace helenus::cluster {
namespace {

using base::Errc;
using metadata::ClusterMetadata;
using model::NodeId;
using ::testing::HasSubstr;
using namespace cluster::testing;
using namespace std::chrono_literals;

TEST(ClusterDiscovery, ANodeThatIsItsOnlySeedFoundsACluster) {
  Cluster cluster(1, 1);
  cluster.start_all();
  cluster.expect_whole(1, 5s);
  EXPECT_EQ(cluster.service(0).metadata()->tablets.size(), 32U);
  EXPECT_EQ(cluster.service(0).phase(), "is of the cluster");
}

TEST(ClusterDiscovery, NodesBecomeOneClusterWhateverTheOrderTheyStartIn) {
  const std::vector<std::vector<std::size_t>> orders = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}};
  for (const auto& order : orders) {
    Cluster cluster(1, 3);
    for (const std::size_t i : order) {
      cluster.machine(i).start();
      cluster.world().run_for(3s);
    }
    cluster.expect_whole(3);
    // Each owns its share, and all decide.
    const ClusterMetadata& metadata = *cluster.service(0).metadata();
    std::map<NodeId, std::size_t> tokens;
    for (const auto& tablet : metadata.tablets) ++tokens[tablet.owner];
    for (const auto& [node, count] : tokens) EXPECT_TRUE(count == 10 || count == 11) << count;
    EXPECT_EQ(tokens.size(), 3U);
  }
}

TEST(ClusterDiscovery, ANodeSaysWhatItWaitsFor) {
  Cluster cluster(2, 3);
  cluster.machine(0).start();
  cluster.machine(1).start();
  cluster.world().run_for(10s);
  const std::string third = cluster.plan(2).options.self.node_address.to_string();
  EXPECT_THAT(cluster.service(0).phase(), HasSubstr("waits for " + third));
  EXPECT_THAT(cluster.service(0).phase(), HasSubstr("whether there is a cluster"));
  EXPECT_THAT(cluster.service(1).phase(), HasSubstr("waits for " + third));
  cluster.machine(2).start();
  cluster.expect_whole(3);
}

TEST(ClusterDiscovery, AFounderThatCannotWriteSaysSoAtOnce) {
  Cluster cluster(11, 2);
  cluster.machine(0).start();
  cluster.world().run_for(2s);
  cluster.machine(0).disk().set_capacity(cluster.machine(0).disk().used_bytes());
  cluster.machine(1).start();
  EXPECT_TRUE(
      cluster.world().run_until([&] { return cluster.plan(0).start_error.has_value(); }, 10s));
  EXPECT_EQ(cluster.plan(0).start_error->code(), Errc::no_space);
  EXPECT_TRUE(cluster.service(0).failure().has_value());
}

}  // namespace
}  // namespace helenus::cluster
