#include "sim/scenarios/test_cluster.h"

#include <algorithm>
#include <chrono>
#include <tuple>

#include <fmt/format.h>

#include "base/assert.h"
#include "cql/catalog/catalog.h"
#include "metadata/transitions.h"
#include "replication/coordinator/coordinator.h"
#include "runtime/event.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "runtime/when_all.h"
#include "sim/function_process.h"
#include "sim/scenarios/cql_client.h"

namespace helenus::sim {

using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;

namespace {

constexpr std::uint16_t kNodePort = 7000;
constexpr std::uint16_t kCqlPort = 9042;
constexpr std::uint16_t kAdminPort = 7070;
constexpr Duration kStopLimit = 2min;
constexpr Duration kAnswerLimit = 2min;

}  // namespace

// One life of a node; several attempts to start, if the options say so.
class TestCluster::NodeProcess final : public Process {
 public:
  NodeProcess(TestCluster& cluster, Runtime& runtime, std::size_t number)
      : cluster_(cluster),
        plan_(cluster.plans_[number]),
        runtime_(runtime),
        number_(number),
        node_(std::make_unique<node::Node>(runtime, plan_.config)),
        stories_(runtime) {
    plan_.process = this;
    plan_.start_error.reset();
  }
  ~NodeProcess() override { plan_.process = nullptr; }

  Task<void> run(StopToken stop) override {
    for (;;) {
      const auto started = co_await node_->start(stop);
      if (started) {
        co_await serve(stop);
      } else {
        note_failure(started.error());
      }
      co_await node_->stop();
      const Duration retry_after = cluster_.options_.retry_after;
      if (started || stop.stop_requested() || retry_after == Duration::max()) co_return;
      const auto slept = co_await runtime::sleep_for(runtime_, retry_after, stop);
      if (!slept) co_return;
      node_ = std::make_unique<node::Node>(runtime_, plan_.config);
    }
  }

  node::Node& node() { return *node_; }
  bool is_up() const { return is_up_; }

  void begin(Story story, std::function<void()> done) {
    stories_.spawn(run_story(*this, std::move(story), std::move(done)));
  }

 private:
  Task<void> serve(StopToken stop) {
    is_up_ = true;
    if (cluster_.listener_) {
      node_->cluster().on_metadata([this](const cluster::MetadataPtr& known) { tell(known); });
      tell(node_->cluster().metadata());
    }
    runtime::Event never(runtime_);
    static_cast<void>(co_await never.wait({.stop = stop}));
    is_up_ = false;
    co_await stories_.join();
  }
  void note_failure(const base::Error& error) {
    plan_.start_error = error;
    if (error.code() == base::Errc::cancelled) return;
    cluster_.failed_starts_.push_back(fmt::format("n{}: {}", number_, error.to_string()));
  }
  void tell(const cluster::MetadataPtr& metadata) {
    cluster_.listener_(number_, node_->cluster().version(), metadata);
  }
  static Task<void> run_story(NodeProcess& self, Story story, std::function<void()> done) {
    co_await story(self.runtime_, *self.node_);
    done();
  }

  TestCluster& cluster_;
  Plan& plan_;
  Runtime& runtime_;
  const std::size_t number_;
  std::unique_ptr<node::Node> node_;
  bool is_up_ = false;
  runtime::TaskGroup stories_;
};

TestCluster::TestCluster(World& world, Options options)
    : world_(world), options_(std::move(options)), plans_(options_.cores.size()) {
  ASSERT(options_.seeds <= options_.cores.size());
  for (std::size_t i = 0; i < options_.cores.size(); ++i) {
    const Machine& machine = world_.add_machine(
        {.name = fmt::format("n{}", i), .cores = options_.cores[i]},
        [this, i](Runtime& runtime) { return std::make_unique<NodeProcess>(*this, runtime, i); });
    ids_.push_back(machine.id());
    configure(machine, i);
  }
  for (Plan& plan : plans_) {
    for (std::size_t i = 0; i < options_.seeds; ++i) {
      plan.config.seeds.push_back(plans_[i].config.listen_address);
    }
    if (options_.configure) options_.configure(plan.config);
  }
}

void TestCluster::configure(const Machine& machine, std::size_t number) {
  node::Config& config = plans_[number].config;
  const std::uint32_t cores = machine.core_count();
  config.data_directory = "/data";
  config.cluster_name = "troy";
  config.cluster_secret = base::Secret<std::string>(
      "helenus-secret:1:abababababababababababababababababababababababababababababababab:"
      "ec12479d");
  config.rack = fmt::format("rack{}", number);
  config.listen_address = machine.address(kNodePort);
  config.cql_address = machine.address(kCqlPort);
  config.admin_address = machine.address(kAdminPort);
  config.admin_remote = true;
  config.tokens = 16;
  config.commitlog_segment_mib = 32;
  config.commitlog_total_mib = 128 * cores;
  config.memtable_mib = 8 * cores;
  config.block_cache_mib = 1;
}

bool TestCluster::is_up(std::size_t i) const {
  return plans_[i].process != nullptr && plans_[i].process->is_up();
}

node::Node& TestCluster::node(std::size_t i) {
  ASSERT(plans_[i].process != nullptr, "n{} is down", i);
  return plans_[i].process->node();
}

// ---- Processes ----

void TestCluster::start_all() {
  for (std::size_t i = 0; i < size(); ++i) {
    if (!machine(i).is_up() && !is_absent(i)) start(i);
  }
}

bool TestCluster::stop(std::size_t i) {
  machine(i).request_stop();
  return world_.run_until([&] { return !machine(i).is_up(); }, kStopLimit);
}

bool TestCluster::stop_all() {
  for (std::size_t i = 0; i < size(); ++i) machine(i).request_stop();
  const auto all_down = [&] {
    return std::ranges::none_of(ids_, [&](MachineId id) { return world_.machine(id).is_up(); });
  };
  return world_.run_until(all_down, kStopLimit);
}

// ---- The network ----

void TestCluster::partition(std::vector<std::uint32_t> group_of) {
  ASSERT(group_of.size() == size());
  std::vector<std::uint32_t> of_all(world_.machine_count(), Network::kEveryGroup);
  for (std::size_t i = 0; i < size(); ++i) of_all[ids_[i]] = group_of[i];
  world_.network().partition(of_all);
  world_.note("the network parts");
}

void TestCluster::isolate(std::size_t i) {
  std::vector<std::uint32_t> group_of(size(), 0);
  group_of[i] = 1;
  partition(std::move(group_of));
}

void TestCluster::slow_link(std::size_t from, std::size_t to, std::uint32_t factor) {
  world_.network().set_slowness(ids_[from], ids_[to], factor);
}

void TestCluster::heal() {
  world_.network().heal_partitions();
  world_.network().heal_slowness();
  world_.note("links and disks are well");
  for (std::size_t i = 0; i < size(); ++i) {
    machine(i).disk_queue().faults = {};
    machine(i).disk().set_capacity(machine(i).disk().options().capacity_bytes);
    machine(i).resume();
  }
}

// ---- Clocks and disks ----

void TestCluster::skew_clock(std::size_t i, Duration ahead) {
  machine(i).clock().set_wall(world_.now(), ahead);
}

void TestCluster::reset_clocks() {
  for (std::size_t i = 0; i < size(); ++i) {
    set_clock_rate(i, 0);
    skew_clock(i, Duration(0));
  }
}

TestCluster::Story TestCluster::tidying(bool is_flush, std::string keyspace, std::string table) {
  return [is_flush, keyspace = std::move(keyspace), table = std::move(table)](
             Runtime& runtime, node::Node& node) -> Task<void> {
    const auto snapshot = node.database().catalog().snapshot();
    const auto found = snapshot->schema().find_table(keyspace, table);
    if (found == nullptr) co_return;
    const auto id = snapshot->storage_of(found->id);
    if (!id) co_return;
    replication::Coordinator& coordinator = node.database().coordinator();
    const Until until = Until::after(runtime, 1min);
    std::ignore = is_flush ? co_await coordinator.flush(*id, until)
                           : co_await coordinator.compact(*id, until);
  };
}

void TestCluster::step_clock(std::size_t i, Duration by) {
  machine(i).clock().jump_wall(by);
}

void TestCluster::fill_disk(std::size_t i, std::uint64_t bytes_left) {
  machine(i).disk().set_capacity(machine(i).disk().used_bytes() + bytes_left);
}

void TestCluster::slow_disk(std::size_t i, std::uint32_t factor) {
  machine(i).disk_queue().faults.slowness = factor;
}

void TestCluster::fail_disk(std::size_t i, double chance) {
  DiskFaults& faults = machine(i).disk_queue().faults;
  faults.read_error = faults.write_error = faults.sync_error = chance;
}

// ---- Waiting ----

bool TestCluster::wait_up(std::initializer_list<std::size_t> nodes, Duration limit) {
  const std::vector<std::size_t> wanted(nodes);
  const auto all_up = [&] {
    return std::ranges::all_of(wanted, [&](std::size_t i) { return is_up(i); });
  };
  return world_.run_until(all_up, limit);
}

bool TestCluster::wait_all_up(Duration limit) {
  const auto all_up = [&] {
    for (std::size_t i = 0; i < size(); ++i) {
      if (!is_up(i)) return false;
    }
    return true;
  };
  return world_.run_until(all_up, limit);
}

bool TestCluster::is_quiet() {
  // It is asked after every event of the world: what is cheap to see comes first.
  std::vector<std::size_t> present;
  for (std::size_t i = 0; i < size(); ++i) {
    if (is_absent(i)) continue;
    if (!is_up(i)) return false;
    present.push_back(i);
  }
  const auto newest = node(present.front()).cluster().version();
  for (const std::size_t i : present) {
    const cluster::ClusterService& service = node(i).cluster();
    if (service.version() != newest || service.applied_version() != newest) return false;
  }
  for (const std::size_t i : present) {
    std::size_t seen = 0;
    for (const auto& [id, known] : node(i).cluster().gossip().view().nodes()) {
      seen += known.up ? 1U : 0U;
    }
    if (seen + 1 != present.size()) return false;
  }
  const metadata::ClusterMetadata& first = *node(present.front()).cluster().metadata();
  if (first.nodes.size() != present.size() || metadata::change_is_under_way(first)) return false;
  for (const std::size_t i : present) {
    if (!(*node(i).cluster().metadata() == first)) return false;
  }
  return true;
}

bool TestCluster::wait_quiet(Duration limit) {
  return world_.run_until([&] { return is_quiet(); }, limit);
}

std::string TestCluster::phases() {
  std::string text;
  for (std::size_t i = 0; i < size(); ++i) {
    const Plan& plan = plans_[i];
    text += fmt::format("n{} {}", i, plan.process == nullptr ? "is down" : node(i).phase());
    if (plan.start_error) text += fmt::format(" ({})", plan.start_error->to_string());
    text += i + 1 < size() ? "; " : "";
  }
  return text;
}

// ---- Stories and statements ----

void TestCluster::begin(std::size_t i, Story story, std::function<void()> done) {
  ASSERT(is_up(i), "n{} is not up", i);
  plans_[i].process->begin(std::move(story), std::move(done));
}

bool TestCluster::tell(std::size_t i, Story story, Duration limit) {
  const auto over = std::make_shared<bool>(false);
  const std::uint32_t life = machine(i).starts();
  begin(i, std::move(story), [over] { *over = true; });
  static_cast<void>(world_.run_until(
      [&] { return *over || !machine(i).is_up() || machine(i).starts() != life; }, limit));
  return *over;
}

namespace {

Task<void> ask_one(Runtime& runtime, runtime::Address address, std::string text,
                   std::string& answer) {
  CqlClient client(runtime, address);
  const auto answered = co_await client.query(text, {}, Until::after(runtime, kAnswerLimit));
  answer = answered ? answered->text() : answered.error().to_string();
}

}  // namespace

std::vector<std::string> TestCluster::ask_at_once(const std::vector<Question>& questions) {
  if (!client_) client_ = world_.add_machine({.name = "client"}, {}).id();
  std::vector<std::string> answers(questions.size());
  Machine& client = world_.machine(*client_);
  client.set_process(FunctionProcess::factory([&](Runtime& runtime, StopToken) -> Task<void> {
    std::vector<Task<void>> tasks;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      tasks.push_back(
          ask_one(runtime, address(questions[i].first), questions[i].second, answers[i]));
    }
    co_await runtime::when_all(std::move(tasks));
  }));
  client.start();
  ASSERT(world_.run_until([&] { return !client.is_up(); }, 2 * kAnswerLimit),
         "a client waits for ever");
  return answers;
}

}  // namespace helenus::sim
