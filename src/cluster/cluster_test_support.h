// Clusters for tests: nodes with a ClusterService each, on simulated machines, that are told
// stories.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/cluster_service.h"
#include "cluster/metadata_ledger_test_support.h"
#include "consensus/acceptor.h"
#include "metadata/transitions.h"
#include "runtime/contract/world.h"
#include "runtime/event.h"
#include "runtime/files.h"
#include "runtime/sleep.h"
#include "sim/process.h"
#include "sim/sim_disk.h"
#include "sim/world.h"

namespace helenus::cluster::testing {

inline constexpr std::uint16_t kPort = 7000;
inline const std::string kFolder = "/data";

inline model::NodeId node_of(std::uint64_t number) {
  return model::NodeId(base::Uuid::from_random(0x3000 + number, number));
}

inline rpc::ClusterSecret secret_of(std::uint8_t number) {
  rpc::Key key;
  key.fill(std::byte{number});
  return rpc::ClusterSecret(key);
}

inline ClusterService::Transition add_keyspace(std::string name) {
  return [name](const metadata::ClusterMetadata& now) {
    model::Keyspace keyspace;
    keyspace.name = name;
    keyspace.replication = {{"class", "org.apache.cassandra.locator.SimpleStrategy"},
                            {"replication_factor", "2"}};
    return metadata::change_schema(now, now.schema.with(std::move(keyspace)));
  };
}

inline ClusterService::Transition alter_keyspace(std::string name, std::uint64_t factor) {
  return [name,
          factor](const metadata::ClusterMetadata& now) -> base::Result<metadata::ClusterMetadata> {
    const model::KeyspacePtr found = now.schema.find_keyspace(name);
    if (found == nullptr) return base::Error(base::Errc::not_found);
    model::Keyspace keyspace = *found;
    keyspace.replication["replication_factor"] = fmt::format("{}", factor);
    return metadata::change_schema(now, now.schema.with(std::move(keyspace)));
  };
}

struct NodePlan {
  ClusterService::Options options;
  bool prepared = false;  // stands for the node's identity, which is written behind
  // An owner that takes its time, or fails.
  bool has_owner = false;
  bool owner_waits = false;
  int owner_fails = 0;
  std::optional<base::Error> start_error;
  MetadataLedger* ledger = nullptr;  // of a node with a client that works
};

inline runtime::Task<base::Result<void>> apply(runtime::Runtime& runtime, NodePlan& plan,
                                               runtime::Until until) {
  if (plan.owner_fails > 0) {
    --plan.owner_fails;
    co_return base::Error(base::Errc::no_space, "as asked");
  }
  while (plan.owner_waits) {
    CO_TRY_VOID(co_await runtime::sleep_for(runtime, std::chrono::milliseconds(100), until.stop));
  }
  co_return {};
}

inline ClusterService::Hooks hooks_of(runtime::Runtime& runtime, NodePlan& plan) {
  ClusterService::Hooks hooks;
  if (!plan.has_owner) return hooks;
  hooks.apply = [&](const MetadataPtr&, consensus::Version, runtime::Until until) {
    return apply(runtime, plan, std::move(until));
  };
  return hooks;
}

class ClusterNode final : public sim::Process {
 public:
  using Story = std::function<runtime::Task<void>(runtime::Runtime&, ClusterService&)>;

  ClusterNode(runtime::Runtime& runtime, NodePlan& plan, ClusterNode*& self)
      : runtime_(runtime),
        plan_(plan),
        self_(self),
        service_(runtime, plan.options, hooks_of(runtime, plan)),
        stories_(runtime) {
    self_ = this;
  }
  ~ClusterNode() override { self_ = nullptr; }

  runtime::Task<void> run(runtime::StopToken stop) override {
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
    EXPECT_TRUE((co_await never.wait({.stop = stop})).failed_with(base::Errc::cancelled));
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
  runtime::Task<void> work(MetadataLedger& ledger, runtime::StopToken stop) {
    for (;;) {
      const auto pause = std::chrono::milliseconds(1) * runtime_.random.between(50, 400);
      if (!co_await runtime::sleep_for(runtime_, pause, stop)) co_return;
      if (!ledger.is_work_time && !metadata::change_is_under_way(*service_.metadata())) continue;
      const auto changed = co_await service_.change(
          next_change(ledger), runtime::Until::after(runtime_, std::chrono::seconds(3), stop));
      if (changed) ++ledger.acknowledged;
    }
  }
  ClusterService::Transition next_change(MetadataLedger& ledger) {
    const metadata::ClusterMetadata& known = *service_.metadata();
    if (metadata::change_is_under_way(known)) {
      return [epoch = known.epoch](const metadata::ClusterMetadata& now) {
        return metadata::advance_change(now, epoch);
      };
    }
    if (ledger.keyspaces < 6 || runtime_.random.chance(0.2)) {
      return add_keyspace(fmt::format("k{}", ++ledger.keyspaces));
    }
    const auto factor = runtime_.random.between(1, 5);
    return alter_keyspace(fmt::format("k{}", runtime_.random.between(1, 6)), factor);
  }

  runtime::Runtime& runtime_;
  NodePlan& plan_;
  ClusterNode*& self_;
  ClusterService service_;
  bool is_started_ = false;
  runtime::TaskGroup stories_;
};

inline ClusterNode::Story change(ClusterService::Transition transition) {
  return [transition](runtime::Runtime& runtime, ClusterService& service) -> runtime::Task<void> {
    CO_ASSERT_OK(co_await service.change(transition,
                                         runtime::Until::after(runtime, std::chrono::seconds(20))));
  };
}

// Makes a keyspace, which is in force soon, and not everywhere within that time.
inline ClusterNode::Story change_that_waits_for(std::uint64_t node, runtime::Duration limit) {
  return [node, limit](runtime::Runtime& runtime, ClusterService& service) -> runtime::Task<void> {
    CO_ASSERT_OK(co_await service.change(add_keyspace("shop"),
                                         runtime::Until::after(runtime, std::chrono::seconds(20))));
    const auto applied = co_await service.wait_applied_everywhere(
        service.version(), runtime::Until::after(runtime, limit));
    EXPECT_TRUE(applied.failed_with(base::Errc::timeout));
    if (applied) co_return;
    EXPECT_THAT(applied.error().to_string(),
                ::testing::HasSubstr(node_of(node).value().to_string()));
  };
}

inline ClusterNode::Story wait_applied_everywhere(runtime::Duration limit) {
  return [limit](runtime::Runtime& runtime, ClusterService& service) -> runtime::Task<void> {
    CO_ASSERT_OK(co_await service.wait_applied_everywhere(service.version(),
                                                          runtime::Until::after(runtime, limit)));
  };
}

// All nodes but the last `strangers` are seeds of all.
class Cluster {
 public:
  explicit Cluster(std::uint64_t seed, std::size_t size, std::size_t strangers = 0)
      : world_(seed), plans_(size), nodes_(size) {
    std::vector<runtime::Address> seeds;
    for (std::size_t i = 0; i < size; ++i) {
      const sim::Machine& machine = world_.add_machine({}, [this, i](runtime::Runtime& runtime) {
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
                           .tokens = std::max<std::size_t>(32, 2 * size),
                           .secrets = {secret_of(1)}};
      if (i + strangers < size) seeds.push_back(machine.address(kPort));
    }
    for (NodePlan& plan : plans_) plan.options.seeds = seeds;
  }
  ~Cluster() {
    for (const auto id : targets_) world_.machine(id).request_stop();
    EXPECT_TRUE(world_.run_until(
        [&] {
          return std::ranges::none_of(targets_,
                                      [&](auto id) { return world_.machine(id).is_up(); });
        },
        std::chrono::minutes(1)))
        << "does not stop";
  }

  void start_all() {
    for (const auto id : targets_) world_.machine(id).start();
  }
  // All that are up know the same metadata, in which all of `count` are normal, and see each other.
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
                                 const metadata::ClusterMetadata& metadata = *service->metadata();
                                 return metadata == *services.front()->metadata() &&
                                        metadata.nodes.size() == count &&
                                        !metadata::change_is_under_way(metadata);
                               }) &&
           !services.empty();
  }
  void expect_whole(std::size_t count, runtime::Duration limit = std::chrono::minutes(2)) {
    EXPECT_TRUE(world_.run_until([&] { return is_whole(count); }, limit)) << phases();
  }
  std::string phases() {
    std::string text;
    for (ClusterNode* node : nodes_) {
      text += node == nullptr ? "down; " : node->service().phase() + "; ";
    }
    for (const NodePlan& plan : plans_) {
      if (plan.start_error) text += plan.start_error->to_string() + "; ";
    }
    return text;
  }
  void tell(std::size_t i, const ClusterNode::Story& story) {
    nodes_[i]->tell(story);
    EXPECT_TRUE(world_.run_until([&] { return !nodes_[i]->is_telling(); }, std::chrono::minutes(5)))
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
  NodePlan& plan(std::size_t i) { return plans_[i]; }
  ClusterNode& node(std::size_t i) { return *nodes_[i]; }
  ClusterService& service(std::size_t i) { return nodes_[i]->service(); }

 private:
  sim::World world_;
  std::vector<NodePlan> plans_;
  std::vector<ClusterNode*> nodes_;
  std::vector<sim::MachineId> targets_;
};

}  // namespace helenus::cluster::testing
