#include "sim/scenarios/siblings/siblings.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/scenarios/siblings/clients.h"
#include "sim/scenarios/test_cluster.h"

namespace helenus::sim {

namespace {

constexpr std::size_t kNodesMin = 3;
constexpr std::size_t kNodesMax = 5;
constexpr std::size_t kSeedNodes = 3;
constexpr std::size_t kKeysMax = 4;
constexpr std::size_t kClientMachines = 2;
constexpr std::size_t kClientsMax = 3;  // of a machine
constexpr Duration kNodeTimeLimit = 3s;
// Some packets take longer than usual by this factor, in calm, too.
constexpr std::int64_t kSlowPacket = 130;
constexpr std::uint64_t kFlushEveryMaxMs = 4'000;

class SiblingsScenario final : public Scenario {
 public:
  explicit SiblingsScenario(const SiblingsScenarioOptions& options) : options_(options) {}

  FaultBudget budget() const override {
    FaultSet permitted = kNetworkFaults | kProcessFaults |
                         FaultSet{Fault::slow_disk, Fault::slow_sync, Fault::buggify};
    if (has_clock_faults_) permitted = permitted | kClockFaults;
    return {.permitted = permitted};
  }

  void setup(World& world, base::Prng& dice) override {
    world_ = &world;
    has_clock_faults_ = dice.chance(0.5);
    board_.keys = dice.between(1, kKeysMax);
    board_.reads_at_one = options_.reads_too_few;
    const Duration limit = kNodeTimeLimit + kSlowPacket * world.network().options().latency_max;
    board_.client_limit = limit * 3 / 2;
    board_.is_quiet = [this] { return cluster_->is_quiet(); };
    begin_nodes(dice, limit);
    if (board_.problems.empty()) begin_clients(dice);
  }

  std::vector<MachineId> targets() const override { return cluster_->ids(); }
  Duration safety_phase() const override { return 30s; }
  Duration liveness_limit() const override { return 15min; }
  void on_healed() override {
    board_.healed = true;
    cluster_->reset_clocks();
  }
  bool quiet() const override { return board_.is_over || !has_begun_; }

  void check(Violations& violations) override {
    std::vector<std::string> problems = check_siblings(board_.history);
    for (const std::string& what : cluster_->failed_starts()) {
      problems.push_back("a start failed: " + what);
    }
    problems.insert(problems.end(), board_.problems.begin(), board_.problems.end());
    if (problems.empty()) return;
    violations.add(fmt::format("with {} nodes and {} keys; {}", cluster_->size(), board_.keys,
                               cluster_->phases()));
    for (std::string& what : problems) violations.add(std::move(what));
  }

  void add_to(std::vector<Sighting>& sightings) const override {
    using Outcome = SiblingsHistory::Outcome;
    const SiblingsHistory& history = board_.history;
    sightings.push_back({"requests that met faults", board_.met_faults, 4});
    sightings.push_back({"writes acknowledged", history.count(Outcome::acknowledged), 50});
    sightings.push_back({"writes of unknown outcome", history.count(Outcome::unknown), 1});
    sightings.push_back({"reads of several values", board_.reads_of_siblings, 20});
    sightings.push_back({"writes that had seen several values", board_.resolved, 10});
    sightings.push_back({"writes over CQL", board_.over_cql, 20});
    sightings.push_back({"flushes and compactions", flushes_, 1});
  }
  void add_to(base::Digest& digest) const override { board_.history.add_to(digest); }

 private:
  void begin_nodes(base::Prng& dice, Duration limit) {
    std::vector<std::uint16_t> cores(dice.between(kNodesMin, kNodesMax));
    for (std::uint16_t& count : cores) count = dice.chance(0.2) ? 2 : 1;
    const auto configure = [limit](node::Config& config) {
      config.request_timeout_ms = static_cast<std::uint32_t>(limit / 1ms);
      config.key_value_remote = true;
    };
    cluster_.emplace(
        *world_, TestCluster::Options{.cores = cores, .seeds = kSeedNodes, .configure = configure});
    for (std::size_t i = 0; i < cluster_->size(); ++i) {
      board_.cql.push_back(cluster_->address(i));
      board_.http.push_back(cluster_->config(i).admin_address);
    }
    cluster_->start_all();
    if (!cluster_->wait_quiet()) return refuse("no cluster: " + cluster_->phases());
    must(dice,
         "CREATE KEYSPACE ks WITH replication = "
         "{'class': 'SimpleStrategy', 'replication_factor': 3}");
    must(dice,
         "CREATE TABLE ks.t (k text PRIMARY KEY, v bigint, w bigint) "
         "WITH conflicts = 'siblings'");
    if (!cluster_->wait_quiet()) refuse("no schema: " + cluster_->phases());
  }

  void begin_clients(base::Prng& dice) {
    for (std::size_t i = 0; i < kClientMachines; ++i) {
      const std::size_t count = dice.between(1, kClientsMax);
      begin_process(fmt::format("clients{}", i),
                    [this, count, seed = dice.next()](runtime::Runtime& runtime) {
                      return std::make_unique<SiblingsClients>(runtime, board_, count, seed);
                    });
    }
    begin_process("judge", [this](runtime::Runtime& runtime) {
      return std::make_unique<SiblingsJudge>(runtime, board_);
    });
    flush_dice_.emplace(dice.next());
    if (dice.chance(0.6)) plan_flush();
    has_begun_ = true;
  }

  void begin_process(std::string name, ProcessFactory factory) {
    world_->add_machine({.name = std::move(name)}, std::move(factory)).start();
  }
  void refuse(std::string why) { board_.problems.push_back(std::move(why)); }
  void must(base::Prng& dice, const std::string& text) {
    const std::string answer = cluster_->ask(dice.below(cluster_->size()), text);
    if (answer != "done") refuse(fmt::format("{}: {}", text, answer));
  }

  // Now and then a node writes the table to files, or merges them.
  void plan_flush() {
    const auto pause = std::chrono::milliseconds(flush_dice_->below(kFlushEveryMaxMs));
    world_->after(pause, [this] {
      if (board_.is_over) return;
      const std::size_t node = flush_dice_->below(cluster_->size());
      const bool is_flush = flush_dice_->chance(0.7);
      if (cluster_->is_up(node)) {
        cluster_->begin(node, TestCluster::tidying(is_flush, "ks", "t"), [this] { ++flushes_; });
      }
      plan_flush();
    });
  }

  const SiblingsScenarioOptions options_;
  World* world_ = nullptr;
  // Called by const functions that look on.
  mutable std::optional<TestCluster> cluster_;
  SiblingsBoard board_;
  bool has_clock_faults_ = false;
  bool has_begun_ = false;
  std::optional<base::Prng> flush_dice_;
  std::uint64_t flushes_ = 0;
};

}  // namespace

std::unique_ptr<Scenario> make_siblings_scenario(const SiblingsScenarioOptions& options) {
  return std::make_unique<SiblingsScenario>(options);
}

}  // namespace helenus::sim
