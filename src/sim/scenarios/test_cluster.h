// TestCluster: nodes as the server runs them (node::Node), on the machines of a simulated world,
// and all that can be done to them.
//
// Nodes n0, n1, ... are of one cluster, each in a rack of its own. What a nemesis does to the same
// machines is seen here too. Nobody runs at first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/cluster_options.h"
#include "consensus/document.h"
#include "node/config.h"
#include "node/node.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "sim/machine_id.h"
#include "sim/process.h"
#include "sim/world.h"
#include "sim/world_time.h"

namespace helenus::sim {

class TestCluster {
 public:
  struct Options {
    // As many nodes as there are numbers.
    std::vector<std::uint16_t> cores = {1, 1, 1};
    // So many, from the first on, are seeds of all.
    std::size_t seeds = 3;
    // A node that could not start tries again after this long; max() leaves it at that.
    Duration retry_after = Duration::max();
    // Of every node, after what this class sets.
    std::function<void(node::Config&)> configure = {};
  };
  // On the core that a node lives on.
  using Story = std::function<runtime::Task<void>(runtime::Runtime&, node::Node&)>;
  using MetadataListener =
      std::function<void(std::size_t node, consensus::Version, const cluster::MetadataPtr&)>;

  TestCluster(World& world, Options options);
  // Requires: no node runs, or the world is gone.
  ~TestCluster() = default;
  TestCluster(const TestCluster&) = delete;
  TestCluster& operator=(const TestCluster&) = delete;

  std::size_t size() const { return ids_.size(); }
  const std::vector<MachineId>& ids() const { return ids_; }
  Machine& machine(std::size_t i) const { return world_.machine(ids_[i]); }
  // Takes effect with the next start.
  node::Config& config(std::size_t i) { return plans_[i].config; }
  // Whether it has started and serves clients.
  bool is_up(std::size_t i) const;
  // Requires: its process runs.
  node::Node& node(std::size_t i);
  // Of the last start that failed.
  const std::optional<base::Error>& start_error(std::size_t i) const {
    return plans_[i].start_error;
  }
  // Of all lives, but for starts that were asked to stop: "n0: ...".
  const std::vector<std::string>& failed_starts() const { return failed_starts_; }
  // Where clients connect.
  runtime::Address address(std::size_t i) const { return plans_[i].config.cql_address; }
  // Of every node, from now on: once when it has started, and at every newer metadata.
  void on_metadata(MetadataListener listener) { listener_ = std::move(listener); }

  // ---- Processes ----
  void start(std::size_t i) { machine(i).start(); }
  void start_all();
  // In an orderly way, and waits for the end: whether it came. All of them at once, if none is
  // named.
  bool stop(std::size_t i);
  bool stop_all();
  void kill(std::size_t i) { machine(i).kill(); }
  void power_loss(std::size_t i) { machine(i).power_loss(); }
  void pause(std::size_t i) { machine(i).pause(); }
  void resume(std::size_t i) { machine(i).resume(); }

  // ---- The network ----
  // Those with different numbers do not hear each other any more; machines that are no nodes hear
  // all. Requires: a number for each node.
  void partition(std::vector<std::uint32_t> group_of);
  // That one and the other nodes.
  void isolate(std::size_t i);
  void slow_link(std::size_t from, std::size_t to, std::uint32_t factor);
  // Links and disks are as they were; who is paused goes on. Clocks and processes stay.
  void heal();

  // ---- Clocks ----
  // Ahead of true time, from now on.
  void skew_clock(std::size_t i, Duration ahead);
  void step_clock(std::size_t i, Duration by);
  // So many parts in a billion too fast.
  void set_clock_rate(std::size_t i, std::int64_t rate_ppb) { machine(i).set_clock_rate(rate_ppb); }

  // All show true time, from now on.
  void reset_clocks();

  // ---- Disks ----
  // Writes what a table has in memory into files, or merges its files too, as far as a disk that
  // is slow lets it; nothing of a table that is not there.
  static Story tidying(bool is_flush, std::string keyspace, std::string table);
  void fill_disk(std::size_t i, std::uint64_t bytes_left = 0);
  void slow_disk(std::size_t i, std::uint32_t factor);
  void fail_disk(std::size_t i, double chance);

  // ---- Waiting ----
  // Whether those are up before the limit has passed.
  bool wait_up(std::initializer_list<std::size_t> nodes, Duration limit = 2min);
  bool wait_all_up(Duration limit = 2min);
  // One that is absent has not joined yet, or has left: nobody waits for it. None is at first.
  void set_absent(std::size_t i, bool is_absent) { plans_[i].is_absent = is_absent; }
  bool is_absent(std::size_t i) const { return plans_[i].is_absent; }
  // All nodes are up, see each other, and have applied the same metadata, in which nothing is under
  // way and all of them are members.
  bool is_quiet();
  bool wait_quiet(Duration limit = 2min);
  // What each node does, for a message about one that does not come to rest.
  std::string phases();

  // ---- Stories and statements ----
  // Runs the story on that node to its end; false if it does not come, or the node dies.
  // Requires: it is up.
  bool tell(std::size_t i, Story story, Duration limit = 5min);
  // The same, and does not wait: `done` is called when the story has ended, never if the node dies.
  void begin(std::size_t i, Story story, std::function<void()> done);
  // What statements are answered with, each sent to a node by a client of its own, all at once.
  using Question = std::pair<std::size_t, std::string>;
  std::vector<std::string> ask_at_once(const std::vector<Question>& questions);
  std::string ask(std::size_t i, const std::string& text) {
    return ask_at_once({{i, text}}).front();
  }

 private:
  class NodeProcess;
  struct Plan {
    node::Config config;
    NodeProcess* process = nullptr;
    std::optional<base::Error> start_error = std::nullopt;
    bool is_absent = false;
  };

  void configure(const Machine& machine, std::size_t number);

  World& world_;
  const Options options_;
  std::deque<Plan> plans_;
  std::vector<MachineId> ids_;
  MetadataListener listener_;
  std::vector<std::string> failed_starts_;
  std::optional<MachineId> client_;
};

}  // namespace helenus::sim
