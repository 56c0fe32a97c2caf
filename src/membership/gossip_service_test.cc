// Gossip as nodes use it: over rpc on simulated machines, which find each other through seeds and
// agree on who is there after loss, partitions, pauses, jumping clocks, kills and power losses.
//
// HELENUS_MEMBERSHIP_SEEDS=100 asks for more worlds than usual, HELENUS_MEMBERSHIP_NODES=100 for a
// larger one.
#include "membership/gossip_service.h"

#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_scale.h"
#include "membership/phi_detector.h"
#include "runtime/contract/world.h"
#include "runtime/event.h"
#include "sim/faults.h"
#include "sim/nemesis.h"
#include "sim/process.h"
#include "sim/world.h"

namespace helenus::membership {
namespace {

using base::Errc;
using model::NodeId;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using ::testing::ElementsAre;
using ::testing::Pair;
using namespace std::chrono_literals;

// A sanitizer makes each world several times as dear, and its faults do not hide in one alone.
constexpr std::size_t kShare = base::kSanitized ? 3 : 1;

constexpr std::uint16_t kPort = 7000;

NodeId node_of(std::uint64_t number) {
  return NodeId(base::Uuid::from_random(0x2000 + number, number));
}

// What a node's subscribers know by counting events along.
struct Told {
  std::set<NodeId> members;
  std::set<NodeId> up;
  std::map<NodeId, std::uint64_t> metadata_versions;

  void take(const Event& event) {
    switch (event.kind) {
      case Event::Kind::new_node:
        EXPECT_TRUE(members.insert(event.node).second);
        break;
      case Event::Kind::removed_node:
        EXPECT_TRUE(members.erase(event.node) == 1);
        up.erase(event.node);
        break;
      case Event::Kind::up:
        EXPECT_TRUE(members.contains(event.node) && up.insert(event.node).second);
        break;
      case Event::Kind::down:
        EXPECT_TRUE(up.erase(event.node) == 1);
        break;
    }
  }
};

struct Plan {
  std::string cluster = "troy";
  NodeId node;
  runtime::Address address;
  std::vector<runtime::Address> seeds;
};

class GossipNode final : public sim::Process {
 public:
  GossipNode(Runtime& runtime, const Plan& plan, GossipNode*& self)
      : runtime_(runtime),
        plan_(plan),
        self_(self),
        rpc_(runtime,
             {.cluster = plan.cluster, .node = plan.node, .any_address_in_the_clear = true}),
        gossip_(runtime, rpc_, {.cluster = plan.cluster, .seeds = plan.seeds},
                std::make_unique<PhiDetector>(PhiConfig{})) {
    self_ = this;
  }
  ~GossipNode() override { self_ = nullptr; }

  Task<void> run(StopToken stop) override {
    CO_ASSERT_OK(gossip_.set(StateKey::status, encode_status(Status::normal)));
    CO_ASSERT_OK(gossip_.set(StateKey::node_address, encode_address(plan_.address)));
    gossip_.on_event([this](const Event& event) { told_.take(event); });
    gossip_.on_state([this](NodeId node, StateKey key, const base::Bytes& value) {
      if (key == StateKey::metadata_version) {
        told_.metadata_versions[node] = *decode_metadata_version(value);
      }
    });
    CO_ASSERT_OK(rpc_.start(plan_.address));
    gossip_.start();
    runtime::Event never(runtime_);
    EXPECT_TRUE((co_await never.wait({.stop = stop})).failed_with(Errc::cancelled));
    co_await gossip_.stop();
    co_await rpc_.stop();
  }

  GossipService& gossip() { return gossip_; }
  rpc::Rpc& rpc() { return rpc_; }
  const Told& told() const { return told_; }

 private:
  Runtime& runtime_;
  const Plan plan_;
  GossipNode*& self_;
  rpc::Rpc rpc_;
  GossipService gossip_;
  Told told_;
};

// Nodes 0 and 1 are the seeds of all.
class GossipCluster {
 public:
  GossipCluster(std::uint64_t seed, std::size_t size) : world_(seed), plans_(size), nodes_(size) {
    for (std::size_t i = 0; i < size; ++i) {
      const sim::Machine& machine = world_.add_machine({}, [this, i](Runtime& runtime) {
        return std::make_unique<GossipNode>(runtime, plans_[i], nodes_[i]);
      });
      targets_.push_back(machine.id());
      plans_[i].node = node_of(i);
      plans_[i].address = machine.address(kPort);
    }
    for (Plan& plan : plans_) {
      for (std::size_t i = 0; i < std::min<std::size_t>(2, size); ++i) {
        plan.seeds.push_back(plans_[i].address);
      }
    }
  }

  void start() {
    for (const auto id : targets_) world_.machine(id).start();
  }
  void suffer(const sim::FaultPlan& plan, runtime::Duration duration) {
    sim::Nemesis nemesis(world_, plan, targets_);
    nemesis.start();
    world_.run_for(duration);
    nemesis.stop();
    for (const auto fault :
         {sim::Fault::packet_loss, sim::Fault::symmetric_partition, sim::Fault::kill,
          sim::Fault::power_loss, sim::Fault::pause, sim::Fault::clock_jump}) {
      happened_[fault] += nemesis.happened(fault);
    }
  }
  // Of the kinds that must not be missing.
  const std::map<sim::Fault, std::uint64_t>& happened() const { return happened_; }
  void stop() {
    for (const auto id : targets_) world_.machine(id).request_stop();
    EXPECT_TRUE(world_.run_until(
        [&] {
          return std::ranges::none_of(targets_,
                                      [&](auto id) { return world_.machine(id).is_up(); });
        },
        1min));
  }

  // Everybody who runs sees just those who run as up, and its subscribers know.
  bool agrees() {
    std::set<NodeId> running;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i] != nullptr) running.insert(plans_[i].node);
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i] == nullptr) continue;
      std::set<NodeId> others = running;
      others.erase(plans_[i].node);
      if (nodes_[i]->told().up != others) return false;
      for (const NodeId other : others) {
        const auto* seen = nodes_[i]->gossip().view().find(other);
        if (seen == nullptr || !seen->up) return false;
      }
    }
    return true;
  }
  // Asks now and then: the question takes time with the square of the size, and so do the answers
  // that the world has to run for.
  void expect_agreement(runtime::Duration limit) {
    constexpr runtime::Duration kPause = 100ms;
    for (runtime::Duration waited{0}; waited < limit && !agrees(); waited += kPause) {
      world_.run_for(kPause);
    }
    EXPECT_TRUE(agrees());
  }

  sim::World& world() { return world_; }
  const std::vector<sim::MachineId>& targets() const { return targets_; }
  sim::Machine& machine(std::size_t i) { return world_.machine(targets_[i]); }
  Plan& plan(std::size_t i) { return plans_[i]; }
  GossipNode& node(std::size_t i) { return *nodes_[i]; }

 private:
  sim::World world_;
  std::vector<Plan> plans_;
  std::vector<GossipNode*> nodes_;
  std::vector<sim::MachineId> targets_;
  std::map<sim::Fault, std::uint64_t> happened_;
};

TEST(GossipService, NodesFindEachOtherThroughTheirSeeds) {
  GossipCluster cluster(1, 5);
  cluster.start();
  cluster.expect_agreement(10s);
  EXPECT_GT(cluster.node(4).gossip().statistics().rounds, 0U);
  EXPECT_GT(cluster.node(4).gossip().statistics().bytes_sent, 0U);
  cluster.stop();
}

TEST(GossipService, ANodeThatDiesIsDownAndUpAgainWhenItIsBack) {
  GossipCluster cluster(2, 4);
  cluster.start();
  cluster.expect_agreement(10s);
  cluster.machine(3).power_loss();
  cluster.expect_agreement(1min);
  EXPECT_THAT(cluster.node(0).told().members, testing::Contains(node_of(3)));
  cluster.machine(3).start();
  cluster.expect_agreement(1min);
  cluster.stop();
}

TEST(GossipService, WhatANodeSaysOfItselfReachesTheSubscribersOfAll) {
  GossipCluster cluster(3, 4);
  cluster.start();
  cluster.expect_agreement(10s);
  ASSERT_TRUE(
      cluster.node(2).gossip().set(StateKey::metadata_version, encode_metadata_version(17)));
  cluster.world().run_for(15s);
  for (const auto i : {0U, 1U, 3U}) {
    EXPECT_THAT(cluster.node(i).told().metadata_versions, ElementsAre(Pair(node_of(2), 17)));
  }
  cluster.stop();
}

TEST(GossipService, WhatIsSpreadWaitsForNoRound) {
  GossipCluster cluster(7, 4);
  cluster.start();
  cluster.expect_agreement(10s);
  for (std::uint64_t version = 1; version <= 5; ++version) {
    GossipService& teller = cluster.node(2).gossip();
    ASSERT_TRUE(teller.set(StateKey::metadata_version, encode_metadata_version(version)));
    teller.spread();
    cluster.world().run_for(100ms);
    for (const auto i : {0U, 1U, 3U}) {
      EXPECT_THAT(cluster.node(i).told().metadata_versions, ElementsAre(Pair(node_of(2), version)));
    }
  }
  cluster.stop();
}

TEST(GossipService, TheLastBeatOfANodeIsKnownByWayOfOthersAndStopsWithIt) {
  GossipCluster cluster(8, 3);
  cluster.start();
  cluster.expect_agreement(10s);
  const auto last_beat = [&] { return *cluster.node(0).gossip().last_beat(node_of(2)); };
  for (const auto& [from, to] : {std::pair(0U, 2U), std::pair(2U, 0U)}) {
    cluster.world().network().set_blocked(cluster.targets()[from], cluster.targets()[to], true);
  }
  cluster.world().run_for(20s);
  const auto behind_a_broken_link = last_beat();
  cluster.world().run_for(5s);
  EXPECT_GT(last_beat(), behind_a_broken_link);
  cluster.machine(2).kill();
  cluster.world().run_for(3s);
  const auto dead = last_beat();
  cluster.world().run_for(30s);
  EXPECT_EQ(last_beat(), dead);
  cluster.node(0).gossip().forget(node_of(2));
  EXPECT_FALSE(cluster.node(0).gossip().last_beat(node_of(2)));
  cluster.stop();
}

TEST(GossipService, ANodeOfAnotherClusterStaysAlone) {
  GossipCluster cluster(4, 3);
  cluster.plan(2).cluster = "carthage";
  cluster.start();
  cluster.world().run_for(30s);
  EXPECT_EQ(cluster.node(0).told().up.size(), 1U);
  EXPECT_TRUE(cluster.node(2).told().up.empty());
  EXPECT_EQ(cluster.node(0).gossip().membership().gossip().find(node_of(2)), nullptr);
  cluster.stop();
}

TEST(GossipService, GarbageAndMessagesInAnothersNameAreRefused) {
  GossipCluster cluster(5, 3);
  cluster.start();
  cluster.expect_agreement(10s);
  rpc::Rpc& mallory = cluster.node(2).rpc();
  const Message forged{.cluster = "troy", .sender = node_of(1), .body = Opening{}};
  ASSERT_TRUE(mallory.tell(node_of(0), rpc::verbs::kGossip, encode(forged)));
  ASSERT_TRUE(mallory.tell(node_of(0), rpc::verbs::kGossip, base::Bytes::of_static("garbage")));
  cluster.world().run_for(1s);
  EXPECT_EQ(cluster.node(0).gossip().statistics().messages_refused, 2U);
  cluster.expect_agreement(10s);
  cluster.stop();
}

TEST(GossipService, ANodeThatIsForgottenIsGone) {
  GossipCluster cluster(6, 3);
  cluster.start();
  cluster.expect_agreement(10s);
  cluster.machine(2).kill();
  for (const auto i : {0U, 1U}) cluster.node(i).gossip().forget(node_of(2));
  cluster.world().run_for(20s);
  for (const auto i : {0U, 1U}) {
    EXPECT_FALSE(cluster.node(i).told().members.contains(node_of(2)));
    EXPECT_EQ(cluster.node(i).gossip().membership().gossip().find(node_of(2)), nullptr);
  }
  cluster.stop();
}

constexpr sim::FaultSet kFaults = sim::kNetworkFaults | sim::kProcessFaults | sim::kClockFaults;

// Faults of the kinds and rates that the seed draws.
TEST(GossipService, ViewsAgreeAfterFaultsOfAFewNodes) {
  const std::uint64_t wanted = base::count_from_environment("HELENUS_MEMBERSHIP_SEEDS", 8);
  for (std::uint64_t seed = 1; seed <= wanted && !::testing::Test::HasFailure(); ++seed) {
    base::Prng swarm = base::Prng::for_purpose(seed, "swarm");
    GossipCluster cluster(seed, 4);
    const auto plan = sim::FaultPlan::draw({.permitted = kFaults}, cluster.targets(), swarm);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, plan.to_string()));
    cluster.start();
    cluster.suffer(plan, 20s);
    cluster.expect_agreement(5min);
    cluster.stop();
  }
}

// Faults of all kinds at once.
TEST(GossipService, ViewsAgreeAfterEveryKindOfFaultOfAHundredNodes) {
  const std::size_t nodes = base::number_from_environment("HELENUS_MEMBERSHIP_NODES", 100 / kShare);
  const std::uint64_t seeds = base::count_from_environment("HELENUS_MEMBERSHIP_SEEDS", 1);
  std::map<sim::Fault, std::uint64_t> happened;
  for (std::uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}, {} nodes", seed, nodes));
    GossipCluster cluster(seed, nodes);
    cluster.start();
    cluster.suffer(sim::FaultPlan::everything(kFaults), 20s);
    for (const auto& [fault, times] : cluster.happened()) happened[fault] += times;
    cluster.expect_agreement(5min);
    cluster.stop();
  }
  for (const auto& [fault, times] : happened) EXPECT_GT(times, 0U) << sim::name_of(fault);
}

}  // namespace
}  // namespace helenus::membership
