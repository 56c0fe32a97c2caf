// A whole cluster on simulated machines: changed from several sides at once, of two releases,
// through faults.
#include "cluster/cluster_service.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_scale.h"
#include "cluster/cluster_test_support.h"
#include "consensus/message.h"
#include "rpc/verb.h"
#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "sim/faults.h"
#include "sim/nemesis.h"

namespace helenus::cluster {
namespace {

using model::NodeId;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using namespace cluster::testing;
using namespace std::chrono_literals;

TEST(ClusterService, ChangesFromTwoNodesAtOnceHaveOneOrderAndReachEverybody) {
  Cluster cluster(5, 3);
  cluster.start_all();
  cluster.expect_whole(3);
  const auto before = cluster.service(0).version();
  const auto story = [](std::string name) {
    return [name](Runtime& runtime, ClusterService& service) -> Task<void> {
      const auto changed = co_await service.change(add_keyspace(name), Until::after(runtime, 20s));
      CO_ASSERT_OK(changed);
      EXPECT_TRUE((*changed)->keyspaces.contains(name));
      CO_ASSERT_OK(
          co_await service.wait_applied_everywhere(service.version(), Until::after(runtime, 30s)));
    };
  };
  const ClusterNode::Story shop = story("shop");
  const ClusterNode::Story bank = story("bank");
  cluster.node(1).tell(shop);
  cluster.node(2).tell(bank);
  EXPECT_TRUE(cluster.world().run_until(
      [&] { return !cluster.node(1).is_telling() && !cluster.node(2).is_telling(); }, 2min));
  cluster.expect_whole(3);
  EXPECT_EQ(cluster.service(0).metadata()->keyspaces.size(), 2U);
  EXPECT_EQ(cluster.service(0).version().value(), before.value() + 2);
}

TEST(ClusterService, ANodeKnowsWhichOthersAreNearByTheirPlaceAndTheirRoundTrips) {
  Cluster cluster(20, 4);
  cluster.start_all();
  cluster.expect_whole(4);
  const auto nearest_first = [&](std::vector<std::uint64_t> numbers) {
    const ring::Proximity& proximity = *cluster.service(0).proximity();
    std::vector<ring::NodeIndex> nodes;
    for (const auto number : numbers) nodes.push_back(*proximity.topology()->find(node_of(number)));
    std::vector<NodeId> sorted;
    for (const auto node : proximity.nearest_first(nodes)) {
      sorted.push_back(proximity.topology()->node(node).id);
    }
    return sorted;
  };
  // The third one shares the rack with the first, whatever the way to it.
  for (const std::uint64_t slow : {1U, 2U}) {
    cluster.world().network().heal_slowness();
    for (const std::uint64_t far : {slow, std::uint64_t{3}}) {
      cluster.world().network().set_slowness(cluster.targets()[0], cluster.targets()[far], 50);
      cluster.world().network().set_slowness(cluster.targets()[far], cluster.targets()[0], 50);
    }
    cluster.world().run_for(2min);
    EXPECT_EQ(nearest_first({1, 2, 3}),
              (std::vector{node_of(3), node_of(3 - slow), node_of(slow)}));
  }
}

// What this release speaks, and the next one may.
constexpr rpc::ProtocolVersion kOlder = rpc::kVersions.newest;
constexpr rpc::ProtocolVersion kNewest(kOlder.value() + 1);
constexpr rpc::VersionRange kNext{.oldest = kOlder, .newest = kNewest};

TEST(ClusterService, NodesOfTwoReleasesAreOneCluster) {
  Cluster cluster(19, 3);
  for (const std::size_t i : {0U, 2U}) cluster.plan(i).options.versions = kNext;
  cluster.start_all();
  cluster.expect_whole(3);
  cluster.tell(0, change(add_keyspace("shop")));
  cluster.tell(0, wait_applied_everywhere(20s));
  cluster.tell(1, change(add_keyspace("bank")));
  cluster.tell(1, wait_applied_everywhere(20s));
  cluster.expect_whole(3);
  EXPECT_EQ(cluster.spoken(0, 1), kOlder);
  EXPECT_EQ(cluster.spoken(1, 2), kOlder);
  EXPECT_EQ(cluster.spoken(0, 2), kNewest);
  // It is brought up to date.
  cluster.machine(1).kill();
  cluster.plan(1).options.versions = kNext;
  cluster.machine(1).start();
  cluster.expect_whole(3);
  cluster.world().run_for(10s);
  EXPECT_EQ(cluster.spoken(0, 1), kNewest);
}

TEST(ClusterService, ANodeThatIsTakenBackToTheReleaseBeforeIsStillOfTheCluster) {
  Cluster cluster(24, 3);
  for (const std::size_t i : {0U, 1U, 2U}) cluster.plan(i).options.versions = kNext;
  cluster.start_all();
  cluster.expect_whole(3);
  cluster.tell(0, change(add_keyspace("shop")));
  cluster.world().run_for(10s);
  EXPECT_EQ(cluster.spoken(0, 1), kNewest);
  cluster.machine(1).kill();
  // It decides on what was accepted and decided among those of the newer one.
  cluster.plan(1).options.versions = rpc::kVersions;
  cluster.machine(1).start();
  cluster.expect_whole(3);
  cluster.machine(2).kill();
  cluster.tell(0, change(add_keyspace("bank")));
  cluster.tell(1, change(add_keyspace("port")));
  cluster.machine(2).start();
  cluster.expect_whole(3);
  cluster.world().run_for(10s);
  EXPECT_EQ(cluster.spoken(0, 1), kOlder);
  EXPECT_EQ(cluster.spoken(1, 2), kOlder);
  EXPECT_EQ(cluster.spoken(0, 2), kNewest);
  EXPECT_EQ(cluster.service(2).metadata()->keyspaces.size(), 3U);
  for (const std::size_t i : {0U, 1U, 2U}) {
    EXPECT_EQ(cluster.service(i).consensus_statistics().messages_refused, 0U) << i;
  }
}

TEST(ClusterService, MessagesOfOtherRegistersAndLaterFormatsAreRefusedAndCounted) {
  Cluster cluster(25, 3);
  cluster.start_all();
  cluster.expect_whole(3);
  const auto version = cluster.service(0).version();
  cluster.tell(1, [](Runtime& runtime, ClusterService& service) -> Task<void> {
    const consensus::Message foreign{
        .register_id = consensus::RegisterId(base::Uuid::from_random(1, 2)),
        .body = consensus::Probe{.version = consensus::Version(1), .ticket = {}}};
    const base::Bytes of_a_later_format = base::Bytes::copy_of("\x63 is no version yet");
    for (const auto& bytes : {consensus::encode(foreign), of_a_later_format, base::Bytes()}) {
      CO_ASSERT_OK(service.rpc().tell(node_of(0), rpc::verbs::kConsensus, rpc::Payload(bytes)));
    }
    EXPECT_TRUE(co_await runtime::sleep_for(runtime, 1s, {}));
  });
  EXPECT_EQ(cluster.service(0).consensus_statistics().messages_refused, 3U);
  EXPECT_EQ(cluster.service(0).version(), version);
  cluster.tell(1, change(add_keyspace("shop")));
  cluster.expect_whole(3);
}

// What one node knows as version v, all others know that ever know v, through loss, partitions,
// pauses, jumping clocks, kills and power losses, while all of them change it.
TEST(ClusterService, NoTwoNodesKnowDifferentDocumentsOfAVersionOrReplicasOfAnEpoch) {
  constexpr sim::FaultSet kFaults = sim::kNetworkFaults | sim::kProcessFaults | sim::kClockFaults;
  std::map<sim::Fault, std::uint64_t> happened = {{sim::Fault::power_loss, 0},
                                                  {sim::Fault::kill, 0},
                                                  {sim::Fault::pause, 0},
                                                  {sim::Fault::clock_jump, 0},
                                                  {sim::Fault::symmetric_partition, 0}};
  const std::uint64_t seeds = base::count_from_environment("HELENUS_CLUSTER_SEEDS", 1);
  const std::size_t size = base::count_from_environment("HELENUS_CLUSTER_NODES", 5);
  for (std::uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    MetadataLedger ledger;
    Cluster cluster(seed, size, size - 5);
    for (std::size_t i = 0; i < size; ++i) cluster.plan(i).ledger = &ledger;
    cluster.start_all();
    cluster.expect_whole(size, 10min);
    ledger.is_work_time = true;
    sim::Nemesis nemesis(cluster.world(), sim::FaultPlan::everything(kFaults), cluster.targets());
    nemesis.start();
    cluster.world().run_for(20s);
    nemesis.stop();
    cluster.world().run_for(5s);
    ledger.is_work_time = false;
    cluster.expect_whole(size, 5min);
    for (auto& [fault, times] : happened) times += nemesis.happened(fault);
    EXPECT_THAT(ledger.violations().kept(), ::testing::IsEmpty());
    EXPECT_GT(ledger.acknowledged, 20U);
    EXPECT_GT(ledger.epochs(), 10U);
  }
  for (const auto& [fault, times] : happened) EXPECT_GT(times, 0U) << sim::name_of(fault);
}

}  // namespace
}  // namespace helenus::cluster
