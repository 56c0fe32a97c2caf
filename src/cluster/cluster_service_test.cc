// Nodes that become a cluster, on simulated machines: founded once, joined by the others, whatever
// the order and the faults; restarted; changed from two sides at once.
#include "cluster/cluster_service.h"

#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_scale.h"
#include "consensus/acceptor.h"
#include "consensus/message.h"
#include "metadata/transitions.h"
#include "rpc/verb.h"
#include "runtime/contract/world.h"
#include "runtime/event.h"
#include "runtime/files.h"
#include "runtime/sleep.h"
#include "sim/faults.h"
#include "sim/nemesis.h"
#include "sim/process.h"
#include "sim/sim_disk.h"
#include "sim/world.h"

namespace helenus::cluster {
namespace {

using base::Errc;
using base::Result;
using metadata::ClusterMetadata;
using model::NodeId;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;
using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr std::uint16_t kPort = 7000;
const std::string kFolder = "/data";

NodeId node_of(std::uint64_t number) {
  return NodeId(base::Uuid::from_random(0x3000 + number, number));
}

ClusterService::Transition add_keyspace(std::string name) {
  return [name](const ClusterMetadata& now) {
    model::Keyspace keyspace;
    keyspace.name = name;
    keyspace.replication = {{"class", "org.apache.cassandra.locator.SimpleStrategy"},
                            {"replication_factor", "2"}};
    return metadata::change_schema(now, now.schema.with(std::move(keyspace)));
  };
}

ClusterService::Transition alter_keyspace(std::string name, std::uint64_t factor) {
  return [name, factor](const ClusterMetadata& now) -> Result<ClusterMetadata> {
    const model::KeyspacePtr found = now.schema.find_keyspace(name);
    if (found == nullptr) return base::Error(Errc::not_found);
    model::Keyspace keyspace = *found;
    keyspace.replication["replication_factor"] = fmt::format("{}", factor);
    return metadata::change_schema(now, now.schema.with(std::move(keyspace)));
  };
}

// What any node ever took for the metadata, in memory that no crash touches. It complains if one
// version has two documents, if one does not follow from the one before, or if a tablet has other
// replicas in the same epoch (keyspaces are never dropped here).
class Ledger {
 public:
  void saw(std::uint64_t version, const MetadataPtr& metadata) {
    const auto [at, is_new] = documents_.try_emplace(version, metadata);
    if (!is_new) {
      EXPECT_EQ(*at->second, *metadata) << "two documents of version " << version;
      return;
    }
    if (const auto next = std::next(at); next != documents_.end()) expect_follows(next, at);
    if (at != documents_.begin()) expect_follows(at, std::prev(at));
    for (const auto& [name, replication] : metadata->keyspaces) {
      const auto replicas = metadata::replicas_of(*metadata, replication);
      for (std::size_t i = 0; i < replicas.size(); ++i) {
        const auto [known, is_first] = replicas_.try_emplace(
            std::tuple(name, i, metadata->tablets[i].epoch.value()), replicas[i]);
        EXPECT_TRUE(is_first || metadata::same_replicas(known->second, replicas[i]))
            << "tablet " << i << " of " << name << " in version " << version;
      }
    }
  }
  std::size_t versions() const { return documents_.size(); }
  std::size_t epochs() const {
    std::set<std::uint64_t> epochs;
    for (const auto& [version, metadata] : documents_) epochs.insert(metadata->epoch.value());
    return epochs.size();
  }

  bool is_work_time = false;       // clients alter the schema
  std::uint64_t keyspaces = 0;     // made so far
  std::uint64_t acknowledged = 0;  // changes

 private:
  using Documents = std::map<std::uint64_t, MetadataPtr>;
  static void expect_follows(Documents::const_iterator next, Documents::const_iterator before) {
    if (next->first != before->first + 1) return;
    EXPECT_TRUE(metadata::may_follow(*next->second, *before->second)) << "version " << next->first;
  }

  Documents documents_;
  std::map<std::tuple<std::string, std::size_t, std::uint64_t>, metadata::TabletReplicas> replicas_;
};

struct Plan {
  ClusterService::Options options;
  bool prepared = false;  // stands for the node's identity, which is written behind
  // An owner that takes its time, or fails.
  bool has_owner = false;
  bool owner_waits = false;
  int owner_fails = 0;
  std::optional<base::Error> start_error;
  Ledger* ledger = nullptr;  // of a node with a client that works
};

Task<Result<void>> apply(Runtime& runtime, Plan& plan, Until until) {
  if (plan.owner_fails > 0) {
    --plan.owner_fails;
    co_return base::Error(Errc::no_space, "as asked");
  }
  while (plan.owner_waits) {
    CO_TRY_VOID(co_await runtime::sleep_for(runtime, 100ms, until.stop));
  }
  co_return {};
}

ClusterService::Hooks hooks_of(Runtime& runtime, Plan& plan) {
  ClusterService::Hooks hooks;
  if (!plan.has_owner) return hooks;
  hooks.apply = [&](const MetadataPtr&, consensus::Version, Until until) {
    return apply(runtime, plan, std::move(until));
  };
  return hooks;
}

class ClusterNode final : public sim::Process {
 public:
  using Story = std::function<Task<void>(Runtime&, ClusterService&)>;

  ClusterNode(Runtime& runtime, Plan& plan, ClusterNode*& self)
      : runtime_(runtime),
        plan_(plan),
        self_(self),
        service_(runtime, plan.options, hooks_of(runtime, plan)),
        stories_(runtime) {
    self_ = this;
  }
  ~ClusterNode() override { self_ = nullptr; }

  Task<void> run(StopToken stop) override {
    CO_ASSERT_OK(co_await runtime::make_directories_durably(runtime_, kFolder));
    if (!plan_.prepared) {
      CO_ASSERT_OK(co_await ClusterService::prepare(runtime_, kFolder, plan_.options.self.id));
      plan_.prepared = true;
    }
    if (plan_.ledger != nullptr) {
      service_.on_metadata([this](const MetadataPtr& metadata) {
        plan_.ledger->saw(service_.version().value(), metadata);
      });
    }
    const auto started = co_await service_.start({.stop = stop});
    if (!started) plan_.start_error = started.error();
    is_started_ = started.has_value();
    if (is_started_ && plan_.ledger != nullptr) stories_.spawn(work(*plan_.ledger, stop));
    runtime::Event never(runtime_);
    EXPECT_TRUE((co_await never.wait({.stop = stop})).failed_with(Errc::cancelled));
    is_started_ = false;
    co_await stories_.join();
    co_await service_.stop();
  }

  void tell(const Story& story) { stories_.spawn(story(runtime_, service_)); }
  bool is_telling() const { return !stories_.empty(); }
  bool is_started() const { return is_started_; }
  ClusterService& service() { return service_; }

 private:
  // Makes keyspaces, alters their replication, and finishes what others began.
  Task<void> work(Ledger& ledger, StopToken stop) {
    for (;;) {
      const auto pause = 1ms * runtime_.random.between(50, 400);
      if (!co_await runtime::sleep_for(runtime_, pause, stop)) co_return;
      if (!ledger.is_work_time && !metadata::change_is_under_way(*service_.metadata())) continue;
      const auto changed =
          co_await service_.change(next_change(ledger), Until::after(runtime_, 3s, stop));
      if (changed) ++ledger.acknowledged;
    }
  }
  ClusterService::Transition next_change(Ledger& ledger) {
    const ClusterMetadata& known = *service_.metadata();
    if (metadata::change_is_under_way(known)) {
      return [epoch = known.epoch](const ClusterMetadata& now) {
        return metadata::finish_change(now, epoch);
      };
    }
    if (ledger.keyspaces < 6 || runtime_.random.chance(0.2)) {
      return add_keyspace(fmt::format("k{}", ++ledger.keyspaces));
    }
    const auto factor = runtime_.random.between(1, 5);
    return alter_keyspace(fmt::format("k{}", runtime_.random.between(1, 6)), factor);
  }

  Runtime& runtime_;
  Plan& plan_;
  ClusterNode*& self_;
  ClusterService service_;
  bool is_started_ = false;
  runtime::TaskGroup stories_;
};

ClusterNode::Story change(ClusterService::Transition transition) {
  return [transition](Runtime& runtime, ClusterService& service) -> Task<void> {
    CO_ASSERT_OK(co_await service.change(transition, Until::after(runtime, 20s)));
  };
}

// Makes a keyspace, which is in force soon, and not everywhere within that time.
ClusterNode::Story change_that_waits_for(std::uint64_t node, runtime::Duration limit) {
  return [node, limit](Runtime& runtime, ClusterService& service) -> Task<void> {
    CO_ASSERT_OK(co_await service.change(add_keyspace("shop"), Until::after(runtime, 20s)));
    const auto applied =
        co_await service.wait_applied_everywhere(service.version(), Until::after(runtime, limit));
    EXPECT_TRUE(applied.failed_with(Errc::timeout));
    if (applied) co_return;
    EXPECT_THAT(applied.error().to_string(), HasSubstr(node_of(node).value().to_string()));
  };
}

ClusterNode::Story wait_applied_everywhere(runtime::Duration limit) {
  return [limit](Runtime& runtime, ClusterService& service) -> Task<void> {
    CO_ASSERT_OK(
        co_await service.wait_applied_everywhere(service.version(), Until::after(runtime, limit)));
  };
}

// All nodes but the last `strangers` are seeds of all.
class Cluster {
 public:
  explicit Cluster(std::uint64_t seed, std::size_t size, std::size_t strangers = 0)
      : world_(seed), plans_(size), nodes_(size) {
    std::vector<runtime::Address> seeds;
    for (std::size_t i = 0; i < size; ++i) {
      const sim::Machine& machine = world_.add_machine({}, [this, i](Runtime& runtime) {
        return std::make_unique<ClusterNode>(runtime, plans_[i], nodes_[i]);
      });
      targets_.push_back(machine.id());
      plans_[i].options = {.data_directory = kFolder,
                           .cluster_name = "troy",
                           .self = {.id = node_of(i),
                                    .node_address = machine.address(kPort),
                                    .client_address = machine.address(9042),
                                    .datacentre = "dc1",
                                    .rack = fmt::format("r{}", i % 3)},
                           .listen_address = machine.address(kPort),
                           .tokens = std::max<std::size_t>(32, 2 * size)};
      if (i + strangers < size) seeds.push_back(machine.address(kPort));
    }
    for (Plan& plan : plans_) plan.options.seeds = seeds;
  }
  ~Cluster() {
    for (const auto id : targets_) world_.machine(id).request_stop();
    EXPECT_TRUE(world_.run_until(
        [&] {
          return std::ranges::none_of(targets_,
                                      [&](auto id) { return world_.machine(id).is_up(); });
        },
        1min))
        << "does not stop";
  }

  void start_all() {
    for (const auto id : targets_) world_.machine(id).start();
  }
  // All that are up hold the same metadata, in which all of `count` are normal, and see each other.
  bool is_whole(std::size_t count) {
    // It is asked after every event of the world: what is cheap to see comes first.
    std::vector<ClusterService*> services;
    for (ClusterNode* node : nodes_) {
      if (node == nullptr) continue;
      if (!node->is_started()) return false;
      services.push_back(&node->service());
      if (services.back()->version() != services.front()->version()) return false;
    }
    for (ClusterService* service : services) {
      std::size_t up = 0;
      for (const auto& [id, known] : service->gossip().view().nodes()) up += known.up ? 1 : 0;
      if (up + 1 != count) return false;
    }
    return std::ranges::all_of(services,
                               [&](ClusterService* service) {
                                 const ClusterMetadata& metadata = *service->metadata();
                                 return metadata == *services.front()->metadata() &&
                                        metadata.nodes.size() == count &&
                                        !metadata::change_is_under_way(metadata);
                               }) &&
           !services.empty();
  }
  void expect_whole(std::size_t count, runtime::Duration limit = 2min) {
    EXPECT_TRUE(world_.run_until([&] { return is_whole(count); }, limit)) << phases();
  }
  std::string phases() {
    std::string text;
    for (ClusterNode* node : nodes_) {
      text += node == nullptr ? "down; " : node->service().phase() + "; ";
    }
    for (const Plan& plan : plans_) {
      if (plan.start_error) text += plan.start_error->to_string() + "; ";
    }
    return text;
  }
  void tell(std::size_t i, const ClusterNode::Story& story) {
    nodes_[i]->tell(story);
    EXPECT_TRUE(world_.run_until([&] { return !nodes_[i]->is_telling(); }, 5min))
        << "waits for ever";
  }

  // The version in which one sends its gossip to the other.
  std::optional<rpc::ProtocolVersion> spoken(std::size_t from, std::size_t to) {
    for (const rpc::PeerInfo& peer : service(from).rpc().peers()) {
      if (peer.node == node_of(to)) return peer.versions[0];
    }
    return std::nullopt;
  }
  // Neither hears the other any more.
  void cut_off(std::size_t i, std::size_t j, bool blocked = true) {
    world_.network().set_blocked(targets_[i], targets_[j], blocked);
    world_.network().set_blocked(targets_[j], targets_[i], blocked);
  }

  // What its acceptor has written, if it has.
  std::optional<consensus::AcceptorState> acceptor_state(std::size_t i) {
    const sim::SimDisk& disk = machine(i).disk();
    const auto file = disk.find(kFolder + "/acceptor");
    if (!file) return std::nullopt;
    std::vector<std::byte> bytes(disk.size(*file));
    bytes.resize(disk.read(*file, 0, bytes));
    auto state = consensus::decode_acceptor_state(bytes);
    return state ? std::optional(*std::move(state)) : std::nullopt;
  }

  sim::World& world() { return world_; }
  sim::Machine& machine(std::size_t i) { return world_.machine(targets_[i]); }
  const std::vector<sim::MachineId>& targets() const { return targets_; }
  Plan& plan(std::size_t i) { return plans_[i]; }
  ClusterNode& node(std::size_t i) { return *nodes_[i]; }
  ClusterService& service(std::size_t i) { return nodes_[i]->service(); }

 private:
  sim::World world_;
  std::vector<Plan> plans_;
  std::vector<ClusterNode*> nodes_;
  std::vector<sim::MachineId> targets_;
};

TEST(ClusterService, ANodeThatIsItsOnlySeedFoundsACluster) {
  Cluster cluster(1, 1);
  cluster.start_all();
  cluster.expect_whole(1, 5s);
  EXPECT_EQ(cluster.service(0).metadata()->tablets.size(), 32U);
  EXPECT_EQ(cluster.service(0).phase(), "is of the cluster");
}

TEST(ClusterService, NodesBecomeOneClusterWhateverTheOrderTheyStartIn) {
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

TEST(ClusterService, ANodeSaysWhatItWaitsFor) {
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

TEST(ClusterService, ACrashedClusterIsBackWhateverTheOrder) {
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

TEST(ClusterService, WhoWasAwayHoldsWhatWasDecidedMeanwhileWhenItHasStarted) {
  Cluster cluster(15, 3);
  cluster.start_all();
  cluster.expect_whole(3);
  cluster.machine(2).kill();
  cluster.tell(0, change(add_keyspace("shop")));
  cluster.machine(2).start();
  EXPECT_TRUE(cluster.world().run_until([&] { return cluster.node(2).is_started(); }, 2s));
  EXPECT_EQ(cluster.service(2).applied_version(), cluster.service(0).version());
}

TEST(ClusterService, WhoStartsAMomentBeforeTheOthersHoldsWhatTheyKnow) {
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
TEST(ClusterService, WhoDiedBeforeItNotedThatOthersDecideWithItStartsAlone) {
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

TEST(ClusterService, WhoWasAwayAsksForTheNewestAndDoesNotWaitForEver) {
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
TEST(ClusterService, WhatWasDecidedWhileAStartTookItsTimeIsHeldWhenItIsOver) {
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

TEST(ClusterService, AChangeIsEverywhereBeforeTheNextRoundOfGossip) {
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

TEST(ClusterService, WhoCouldNotAskTheOnlyHolderOfANewerVersionAsksItAgain) {
  Cluster cluster(23, 3);
  cluster.plan(1).has_owner = true;
  cluster.start_all();
  cluster.expect_whole(3);
  // The third node hears by way of the second what the first one holds; the second holds nothing.
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

TEST(ClusterService, AKeyspaceThatIsMadeAndAlteredWhileANodeJoinsDelaysItAndNoMore) {
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

TEST(ClusterService, AFourthNodeOfAnotherClusterIsRefusedAndToldSo) {
  Cluster cluster(4, 4, 1);
  cluster.plan(3).options.cluster_name = "carthage";
  cluster.start_all();
  cluster.world().run_for(30s);
  EXPECT_FALSE(cluster.node(3).is_started());
  EXPECT_THAT(cluster.service(3).phase(), HasSubstr("refused"));
  EXPECT_THAT(cluster.service(3).phase(), HasSubstr("troy"));
  EXPECT_EQ(cluster.service(0).metadata()->nodes.size(), 3U);
}

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

TEST(ClusterService, AVersionIsHeldWhenTheOwnerActsByIt) {
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

TEST(ClusterService, WhoIsCutOffFromOneNodeAloneIsWaitedForByIt) {
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

TEST(ClusterService, WhoHasJustStartedWaitsForNodesItHasNotHeardOf) {
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

TEST(ClusterService, WhoWasKilledIsNotWaitedForUntilItsSilenceIsNoticed) {
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

TEST(ClusterService, WhoVanishedFromTheNetworkIsNotWaitedForUntilItsSilenceIsNoticed) {
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
TEST(ClusterService, WhoIsHeldUpForAMomentIsWaitedFor) {
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

TEST(ClusterService, NodesOfTwoReleasesAreOneCluster) {
  constexpr rpc::ProtocolVersion kNewest = rpc::kVersions.newest;
  constexpr rpc::ProtocolVersion kOlder(kNewest.value() - 1);
  Cluster cluster(19, 3);
  // It refuses what is written in a later version than it speaks.
  cluster.plan(1).options.versions.newest = kOlder;
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
  cluster.plan(1).options.versions = rpc::kVersions;
  cluster.machine(1).start();
  cluster.expect_whole(3);
  cluster.world().run_for(10s);
  EXPECT_EQ(cluster.spoken(0, 1), kNewest);
}

TEST(ClusterService, ANodeThatIsTakenBackToTheReleaseBeforeIsStillOfTheCluster) {
  constexpr rpc::ProtocolVersion kNewest = rpc::kVersions.newest;
  constexpr rpc::ProtocolVersion kOlder(kNewest.value() - 1);
  Cluster cluster(24, 3);
  cluster.start_all();
  cluster.expect_whole(3);
  cluster.tell(0, change(add_keyspace("shop")));
  cluster.world().run_for(10s);
  EXPECT_EQ(cluster.spoken(0, 1), kNewest);
  cluster.machine(1).kill();
  // It decides on what was accepted and decided among those of the newer one.
  cluster.plan(1).options.versions.newest = kOlder;
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

TEST(ClusterService, AFounderThatCannotWriteSaysSoAtOnce) {
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

TEST(ClusterService, ANodeWithAPastFoundsAndDoesNotJoin) {
  Cluster cluster(12, 2, 1);
  const auto past = [](Plan& plan) {
    const auto founded = metadata::found({.cluster_name = "before",
                                          .tokens = ring::evenly_spread_tokens(1),
                                          .nodes = {plan.options.self}});
    plan.options.schema = add_keyspace("shop")(*founded)->schema;
  };
  past(cluster.plan(0));
  cluster.machine(0).start();
  cluster.expect_whole(1, 5s);
  EXPECT_TRUE(cluster.service(0).metadata()->keyspaces.contains("shop"));
  past(cluster.plan(1));
  cluster.machine(1).start();
  EXPECT_TRUE(
      cluster.world().run_until([&] { return cluster.plan(1).start_error.has_value(); }, 10s));
  EXPECT_EQ(cluster.plan(1).start_error->code(), Errc::refused);
  EXPECT_THAT(cluster.plan(1).start_error->to_string(), HasSubstr("keyspaces of its own"));
}

TEST(ClusterService, ANodeDoesNotJoinWhereDataWouldHaveToBeCopiedAndNobodyDoes) {
  Cluster cluster(6, 4, 1);
  for (const std::size_t i : {0U, 1U, 2U}) cluster.machine(i).start();
  cluster.expect_whole(3);
  cluster.tell(0, change(add_keyspace("shop")));
  cluster.machine(3).start();
  EXPECT_TRUE(
      cluster.world().run_until([&] { return cluster.plan(3).start_error.has_value(); }, 1min));
  EXPECT_EQ(cluster.plan(3).start_error->code(), Errc::unsupported);
}

TEST(ClusterService, ARemovedNodeIsGoneEverywhereAndDoesNotComeBackUnderItsId) {
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

TEST(ClusterService, ANewcomerReachesAcceptorsThatAreNoSeeds) {
  Cluster cluster(8, 5, 4);
  for (const std::size_t i : {0U, 1U, 2U, 3U}) cluster.machine(i).start();
  cluster.expect_whole(4);
  cluster.machine(4).start();
  cluster.expect_whole(5);
}

TEST(ClusterService, OneClusterIsFoundedThroughFaults) {
  constexpr sim::FaultBudget kBudget{
      .permitted = sim::kNetworkFaults | sim::kProcessFaults | sim::kClockFaults, .liars_max = 0};
  const std::uint64_t seeds = base::number_from_environment("HELENUS_CLUSTER_SEEDS", 4);
  for (std::uint64_t seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Cluster cluster(seed, 5, 2);
    cluster.start_all();
    base::Prng swarm = base::Prng::for_purpose(seed, "swarm");
    sim::Nemesis nemesis(cluster.world(), sim::FaultPlan::draw(kBudget, cluster.targets(), swarm),
                         cluster.targets());
    nemesis.start();
    cluster.world().run_for(10s);
    nemesis.stop();
    cluster.expect_whole(5, 5min);
  }
}

// What one node holds as version v, all others hold that ever hold v, through loss, partitions,
// pauses, jumping clocks, kills and power losses, while all of them change it.
TEST(ClusterService, NoTwoNodesHoldDifferentDocumentsOfAVersionOrReplicasOfAnEpoch) {
  constexpr sim::FaultSet kFaults = sim::kNetworkFaults | sim::kProcessFaults | sim::kClockFaults;
  std::map<sim::Fault, std::uint64_t> happened = {{sim::Fault::power_loss, 0},
                                                  {sim::Fault::kill, 0},
                                                  {sim::Fault::pause, 0},
                                                  {sim::Fault::clock_jump, 0},
                                                  {sim::Fault::symmetric_partition, 0}};
  const std::uint64_t seeds = base::number_from_environment("HELENUS_CLUSTER_SEEDS", 2);
  const std::size_t size = base::number_from_environment("HELENUS_CLUSTER_NODES", 5);
  for (std::uint64_t seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Ledger ledger;
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
    EXPECT_GT(ledger.acknowledged, 20U);
    EXPECT_GT(ledger.epochs(), 10U);
  }
  for (const auto& [fault, times] : happened) EXPECT_GT(times, 0U) << sim::name_of(fault);
}

}  // namespace
}  // namespace helenus::cluster
