// A cluster of nodes in the simulator, each an Rpc that serves a few verbs, and stories told on
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "rpc/rpc.h"
#include "runtime/contract/world.h"
#include "runtime/event.h"
#include "runtime/sleep.h"
#include "sim/process.h"
#include "sim/world.h"

namespace helenus::rpc {

using base::Bytes;
using base::Errc;
using base::Error;
using base::Result;
using model::NodeId;
using runtime::Address;
using runtime::Duration;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;
using namespace std::chrono_literals;

inline constexpr std::uint16_t kTestPort = 7000;

inline constexpr Verb kEcho{.number = verbs::kTestsFirst, .lane = Lane::data};
inline constexpr Verb kWait{.number = verbs::kTestsFirst + 1, .lane = Lane::data};
inline constexpr Verb kNote{.number = verbs::kTestsFirst + 2, .lane = Lane::control};
inline constexpr Verb kFail{.number = verbs::kTestsFirst + 3, .lane = Lane::control};
inline constexpr Verb kNobodys{.number = verbs::kTestsFirst + 4, .lane = Lane::data};
inline constexpr Verb kCount{.number = verbs::kTestsFirst + 5, .lane = Lane::data};

inline NodeId node_of(std::uint64_t number) {
  return NodeId(base::Uuid::from_random(0x1000 + number, number));
}

inline ClusterSecret secret_of(std::uint8_t number) {
  Key key;
  key.fill(std::byte{number});
  return ClusterSecret(key);
}

inline Bytes text(std::string_view text) {
  return Bytes::copy_of(text);
}

// What handlers saw, in memory that no crash touches.
struct Seen {
  std::uint64_t echoes = 0;
  std::uint64_t waits_begun = 0;
  std::uint64_t waits_timed_out = 0;
  std::uint64_t waits_cancelled = 0;
  Duration longest_wait{0};
  std::vector<std::string> notes;
  std::map<std::string, std::uint64_t, std::less<>> runs;  // of kCount, by payload
};

// kEcho gives back what it got, kWait waits until it is stopped, kNote remembers, kFail is an
// error.
class TestHandlers {
 public:
  TestHandlers(Runtime& runtime, Seen& seen) : runtime_(runtime), seen_(seen) {}

  void serve_all(Rpc& rpc) {
    rpc.serve(kEcho, [this](Incoming incoming) { return echo(std::move(incoming)); });
    rpc.serve(kWait, [this](Incoming incoming) { return wait(std::move(incoming)); });
    rpc.serve(kNote, [this](Incoming incoming) { return note(std::move(incoming)); });
    rpc.serve(kFail, [](Incoming) { return fail(); });
    rpc.serve(kCount, [this](Incoming incoming) { return count(std::move(incoming)); });
  }

 private:
  Task<Result<Bytes>> echo(Incoming incoming) {
    ++seen_.echoes;
    co_return std::move(incoming.payload);
  }
  Task<Result<Bytes>> wait(Incoming incoming) {
    ++seen_.waits_begun;
    const auto began_at = runtime_.clock.now();
    runtime::Event never(runtime_);
    const auto waited = co_await never.wait(incoming.until);
    seen_.longest_wait = std::max(seen_.longest_wait, runtime_.clock.now() - began_at);
    ++(waited.failed_with(Errc::timeout) ? seen_.waits_timed_out : seen_.waits_cancelled);
    co_return waited.error();
  }
  Task<Result<Bytes>> note(Incoming incoming) {
    seen_.notes.emplace_back(incoming.payload.text());
    co_return Bytes();
  }
  Task<Result<Bytes>> count(Incoming incoming) {
    ++seen_.runs[std::string(incoming.payload.text())];
    const Duration pause = 1ms * runtime_.random.below(50);
    CO_TRY_VOID(co_await runtime::sleep_for(runtime_, pause, incoming.until.stop));
    co_return std::move(incoming.payload);
  }
  static Task<Result<Bytes>> fail() { co_return Error(Errc::no_space, "as asked"); }

  Runtime& runtime_;
  Seen& seen_;
};

// One life of a node. It knows where all the others are.
class TestNode final : public sim::Process {
 public:
  using Story = std::function<Task<void>(Runtime&, Rpc&)>;

  TestNode(Runtime& runtime, Options options, Address address,
           std::vector<std::pair<NodeId, Address>> others, Seen& seen, const Story& at_start,
           TestNode*& self)
      : runtime_(runtime),
        address_(address),
        others_(std::move(others)),
        at_start_(at_start),
        handlers_(runtime, seen),
        rpc_(runtime, std::move(options)),
        self_(self),
        stories_(runtime) {
    self_ = this;
  }
  ~TestNode() override { self_ = nullptr; }

  Task<void> run(StopToken stop) override {
    handlers_.serve_all(rpc_);
    const auto started = rpc_.start(address_);
    EXPECT_TRUE(started.has_value());
    for (const auto& [node, address] : others_) EXPECT_TRUE(rpc_.introduce(node, address));
    if (at_start_) tell(at_start_);
    runtime::Event never(runtime_);
    const auto stopped = co_await never.wait({.stop = stop});
    EXPECT_TRUE(stopped.failed_with(Errc::cancelled));
    co_await rpc_.stop();
    co_await stories_.join();
    EXPECT_EQ(rpc_.statistics().connections_current, 0U);
    EXPECT_EQ(rpc_.statistics().handler_bytes_current, 0U);
  }

  // The story is kept by the caller while it runs.
  void tell(const Story& story) { stories_.spawn(story(runtime_, rpc_)); }
  bool is_telling() const { return !stories_.empty(); }
  Rpc& rpc() { return rpc_; }

 private:
  Runtime& runtime_;
  const Address address_;
  const std::vector<std::pair<NodeId, Address>> others_;
  const Story& at_start_;
  TestHandlers handlers_;
  Rpc rpc_;
  TestNode*& self_;
  runtime::TaskGroup stories_;
};

class Cluster {
 public:
  explicit Cluster(std::uint64_t seed, std::size_t size, sim::WorldOptions world = {})
      : seen_(size), nodes_(size), world_(seed, std::move(world)) {
    for (std::size_t i = 0; i < size; ++i) {
      options_.push_back({.cluster = "troy", .node = node_of(i), .secrets = {secret_of(1)}});
      world_.add_machine({.name = fmt::format("n{}", i)}, [this, i](Runtime& runtime) {
        return std::make_unique<TestNode>(runtime, options_[i], address(i), others(i), seen_[i],
                                          at_start_, nodes_[i]);
      });
    }
  }

  sim::World& world() { return world_; }
  sim::Machine& machine(std::size_t i) { return world_.machine(static_cast<sim::MachineId>(i)); }
  Address address(std::size_t i) { return machine(i).address(kTestPort); }
  Options& options(std::size_t i) { return options_[i]; }
  Seen& seen(std::size_t i) { return seen_[i]; }
  std::size_t size() const { return nodes_.size(); }

  void start(std::size_t i) {
    machine(i).start();
    EXPECT_TRUE(world_.run_until([&] { return nodes_[i] != nullptr; }, 1s));
    world_.run_for(1ms);
  }
  void start_all() {
    for (std::size_t i = 0; i < size(); ++i) start(i);
  }
  // What every life of a node begins with.
  void set_story_at_start(TestNode::Story story) { at_start_ = std::move(story); }
  // The life of a node that is up.
  TestNode& node(std::size_t i) { return *nodes_[i]; }
  Rpc& rpc(std::size_t i) { return nodes_[i]->rpc(); }
  const PeerStatistics& statistics(std::size_t i, std::size_t of) {
    return *rpc(i).statistics_of_peer(node_of(of));
  }

  // Runs the story on that node to its end. The story is a lambda that captures nothing, or lives
  // until then.
  void tell(std::size_t i, const TestNode::Story& story, Duration limit = 10min) {
    node(i).tell(story);
    EXPECT_TRUE(world_.run_until([&] { return !node(i).is_telling(); }, limit)) << "waits for ever";
  }
  void stop_all() {
    for (std::size_t i = 0; i < size(); ++i) machine(i).request_stop();
    const auto all_down = [&] {
      for (std::size_t i = 0; i < size(); ++i) {
        if (machine(i).is_up()) return false;
      }
      return true;
    };
    EXPECT_TRUE(world_.run_until(all_down, 1min)) << "a node does not stop";
  }

  // How many lines of that machine contain all of these.
  std::size_t logged(std::size_t i, std::string_view message, std::string_view reason) {
    std::size_t count = 0;
    for (const std::string& line : world_.log().lines()) {
      count += line.contains(machine(i).name()) && line.contains(message) && line.contains(reason);
    }
    return count;
  }

 private:
  std::vector<std::pair<NodeId, Address>> others(std::size_t self) {
    std::vector<std::pair<NodeId, Address>> others;
    for (std::size_t i = 0; i < size(); ++i) {
      if (i != self) others.emplace_back(node_of(i), address(i));
    }
    return others;
  }

  TestNode::Story at_start_;
  std::vector<Options> options_;
  std::vector<Seen> seen_;
  std::vector<TestNode*> nodes_;
  sim::World world_;  // the last: what runs in it uses the others
};

}  // namespace helenus::rpc
