// Nodes as processes of simulated machines, for tests of what several of them do together.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/result.h"
#include "node/config.h"
#include "node/node.h"
#include "runtime/event.h"
#include "runtime/runtime.h"
#include "sim/process.h"
#include "sim/world.h"

namespace helenus::node::testing {

// Machines n0, n1, ... of one cluster, each in a rack of its own. Nobody runs yet.
class SimulatedNodes {
 public:
  // As many nodes as there are numbers of cores; the first `seeds` of them are seeds of all.
  SimulatedNodes(sim::World& world, const std::vector<std::uint16_t>& cores, std::size_t seeds)
      : world_(world), plans_(cores.size()) {
    for (std::size_t i = 0; i < cores.size(); ++i) {
      const sim::Machine& machine =
          world_.add_machine({.name = fmt::format("n{}", i), .cores = cores[i]},
                             [this, i](runtime::Runtime& rt) { return make_process(rt, i); });
      ids_.push_back(machine.id());
      plans_[i].config = config_of(machine, i, cores[i]);
    }
    for (Plan& plan : plans_) {
      for (std::size_t i = 0; i < seeds; ++i) {
        plan.config.seeds.push_back(plans_[i].config.listen_address);
      }
    }
  }
  // Requires: nobody runs.
  ~SimulatedNodes() = default;
  SimulatedNodes(const SimulatedNodes&) = delete;
  SimulatedNodes& operator=(const SimulatedNodes&) = delete;

  void stop_all() {
    for (const auto id : ids_) world_.machine(id).request_stop();
    const auto all_down = [&] {
      return std::ranges::none_of(ids_, [&](auto id) { return world_.machine(id).is_up(); });
    };
    EXPECT_TRUE(world_.run_until(all_down, std::chrono::minutes(2))) << "does not stop";
  }

  std::size_t size() const { return ids_.size(); }
  const std::vector<sim::MachineId>& ids() const { return ids_; }
  sim::Machine& machine(std::size_t i) const { return world_.machine(ids_[i]); }
  // Takes effect with the next start.
  Config& config(std::size_t i) { return plans_[i].config; }
  // Requires: its process runs.
  Node& node(std::size_t i) { return plans_[i].process->node; }
  bool is_up(std::size_t i) const {
    return plans_[i].process != nullptr && plans_[i].process->is_up;
  }
  // Of the last life.
  const std::optional<base::Error>& start_error(std::size_t i) { return plans_[i].start_error; }

  std::unique_ptr<sim::Process> make_process(runtime::Runtime& rt, std::size_t i) {
    return std::make_unique<NodeProcess>(rt, plans_[i]);
  }

 private:
  struct NodeProcess;
  struct Plan {
    Config config;
    NodeProcess* process = nullptr;
    std::optional<base::Error> start_error = std::nullopt;
  };

  // It starts, and waits to be stopped.
  struct NodeProcess final : sim::Process {
    NodeProcess(runtime::Runtime& rt, Plan& its_plan)
        : runtime(rt), plan(its_plan), node(rt, its_plan.config) {
      plan.process = this;
      plan.start_error.reset();
    }
    ~NodeProcess() override { plan.process = nullptr; }

    runtime::Task<void> run(runtime::StopToken stop) override {
      const auto started = co_await node.start(stop);
      if (!started) {
        plan.start_error = started.error();
      } else {
        is_up = true;
        runtime::Event never(runtime);
        EXPECT_TRUE((co_await never.wait({.stop = stop})).failed_with(base::Errc::cancelled));
        is_up = false;
      }
      co_await node.stop();
    }

    runtime::Runtime& runtime;
    Plan& plan;
    Node node;
    bool is_up = false;
  };

  static Config config_of(const sim::Machine& machine, std::size_t number, std::uint16_t cores) {
    Config config;
    config.data_directory = "/data";
    config.cluster_name = "troy";
    config.rack = fmt::format("rack{}", number);
    config.listen_address = machine.address(7000);
    config.cluster_secret = base::Secret<std::string>(
        "helenus-secret:1:abababababababababababababababababababababababababababababababab:"
        "ec12479d");
    config.cql_address = machine.address(9042);
    config.admin_address = machine.address(7070);
    config.admin_remote = true;
    config.tokens = 16;
    config.commitlog_segment_mib = 32;
    config.commitlog_total_mib = 128U * cores;
    config.memtable_mib = 8U * cores;
    config.block_cache_mib = 1;
    return config;
  }

  sim::World& world_;
  std::deque<Plan> plans_;
  std::vector<sim::MachineId> ids_;
};

}  // namespace helenus::node::testing
