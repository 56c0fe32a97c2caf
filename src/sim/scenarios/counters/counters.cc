#include "sim/scenarios/counters/counters.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/scenarios/counters/board.h"
#include "sim/scenarios/counters/clients.h"
#include "sim/scenarios/test_cluster.h"

namespace helenus::sim {

namespace {

constexpr std::size_t kClientMachinesOfCounters = 2;
constexpr std::size_t kWorkersOfAMachine = 3;
static_assert(CountersBoard::kSharedKeys + kClientMachinesOfCounters * kWorkersOfAMachine ==
              CountersBoard::kKeys);
constexpr Duration kNodeLimitOfCounters = 3s;
// Some packets take longer than usual by this factor.
constexpr std::int64_t kSlowestPacketOfCounters = 130;
constexpr std::uint64_t kTidyEveryMaxMs = 4'000;

class CountersScenario final : public Scenario {
 public:
  explicit CountersScenario(const CountersScenarioOptions& options) {
    board_.with_ids = !options.without_ids;
  }

  FaultBudget budget() const override {
    FaultSet permitted = kNetworkFaults | kProcessFaults |
                         FaultSet{Fault::slow_disk, Fault::slow_sync, Fault::buggify};
    if (has_clock_faults_) permitted = permitted | kClockFaults;
    return {.permitted = permitted};
  }

  void setup(World& world, base::Prng& dice) override {
    world_ = &world;
    has_clock_faults_ = dice.chance(0.5);
    const Duration slowest = kSlowestPacketOfCounters * world.network().options().latency_max;
    board_.node_limit = kNodeLimitOfCounters + slowest;
    board_.client_limit = board_.node_limit * 3 / 2;
    board_.is_quiet = [this] { return cluster_->is_quiet(); };
    begin_cluster(dice);
    if (board_.problems.empty()) begin_clients(dice);
  }

  std::vector<MachineId> targets() const override { return cluster_->ids(); }
  Duration safety_phase() const override { return 30s; }
  Duration liveness_limit() const override { return 15min; }
  void on_healed() override {
    cluster_->reset_clocks();
    if (board_.phase == CountersBoard::Phase::faults) board_.phase = CountersBoard::Phase::calm;
  }
  bool quiet() const override { return board_.is_over || !has_begun_; }

  void check(Violations& violations) override {
    for (const std::string& what : cluster_->failed_starts()) {
      violations.add("a start failed: " + what);
    }
    for (const std::string& what : board_.problems) violations.add(what);
  }

  void add_to(std::vector<Sighting>& sightings) const override {
    sightings.push_back({"operations acknowledged", board_.acknowledged(), 100});
    sightings.push_back({"operations acknowledged once more", board_.acknowledged_again, 20});
    sightings.push_back({"attempts that failed", board_.attempts_failed, 4});
    sightings.push_back({"counters read", board_.reads, 50});
    sightings.push_back({"counters deleted", board_.deletes, 3});
    sightings.push_back({"flushes and compactions", chores_, 1});
  }
  void add_to(base::Digest& digest) const override {
    digest.add(board_.operations.size());
    digest.add(board_.acknowledged());
    digest.add(board_.attempts_failed);
    digest.add(board_.reads);
    digest.add(board_.deletes);
  }

 private:
  void begin_cluster(base::Prng& dice) {
    const std::size_t nodes = 3 + dice.below(3);
    std::vector<std::uint16_t> cores;
    for (std::size_t i = 0; i < nodes; ++i) {
      cores.push_back(static_cast<std::uint16_t>(1 + dice.below(2)));
    }
    const auto configure = [this](node::Config& config) {
      config.request_timeout_ms = static_cast<std::uint32_t>(board_.node_limit / 1ms);
    };
    cluster_.emplace(*world_,
                     TestCluster::Options{.cores = cores, .seeds = 3, .configure = configure});
    for (std::size_t i = 0; i < nodes; ++i) board_.nodes.push_back(cluster_->address(i));
    cluster_->start_all();
    if (!cluster_->wait_quiet()) return refuse_run("no cluster: " + cluster_->phases());
    must_succeed(dice,
                 "CREATE KEYSPACE counted WITH replication = {'class': 'SimpleStrategy', "
                 "'replication_factor': 3}");
    must_succeed(dice, "CREATE TABLE counted.c (k int PRIMARY KEY, n counter)");
    if (!cluster_->wait_quiet()) refuse_run("no schema: " + cluster_->phases());
  }

  void begin_clients(base::Prng& dice) {
    board_.workers = kClientMachinesOfCounters * kWorkersOfAMachine;
    for (std::size_t i = 0; i < kClientMachinesOfCounters; ++i) {
      const auto factory = [this, is_judge = i == 0,
                            own_key = CountersBoard::kSharedKeys + i * kWorkersOfAMachine,
                            seed = dice.next()](runtime::Runtime& runtime) {
        return std::make_unique<CountersClients>(runtime, board_, kWorkersOfAMachine, own_key,
                                                 is_judge, seed);
      };
      world_->add_machine({.name = fmt::format("clients{}", i)}, factory).start();
    }
    chore_dice_.emplace(dice.next());
    if (dice.chance(0.7)) plan_tidying();
    board_.phase = CountersBoard::Phase::faults;
    has_begun_ = true;
  }

  void refuse_run(std::string why) { board_.add_problem(std::move(why)); }
  void must_succeed(base::Prng& dice, const std::string& text) {
    const std::string answer = cluster_->ask(dice.below(cluster_->size()), text);
    if (answer != "done") refuse_run(fmt::format("{}: {}", text, answer));
  }

  // Now and then a node writes the table to files, or merges them.
  void plan_tidying() {
    const auto pause = std::chrono::milliseconds(chore_dice_->below(kTidyEveryMaxMs));
    world_->after(pause, [this] {
      if (board_.is_over) return;
      const std::size_t node = chore_dice_->below(cluster_->size());
      const bool is_flush = chore_dice_->chance(0.7);
      if (cluster_->is_up(node))
        cluster_->begin(node, TestCluster::tidying(is_flush, "counted", "c"),
                        [this] { ++chores_; });
      plan_tidying();
    });
  }

  World* world_ = nullptr;
  mutable std::optional<TestCluster> cluster_;
  CountersBoard board_;
  bool has_clock_faults_ = false;
  bool has_begun_ = false;
  std::optional<base::Prng> chore_dice_;
  std::uint64_t chores_ = 0;
};

}  // namespace

std::unique_ptr<Scenario> make_counters_scenario(const CountersScenarioOptions& options) {
  return std::make_unique<CountersScenario>(options);
}

}  // namespace helenus::sim
