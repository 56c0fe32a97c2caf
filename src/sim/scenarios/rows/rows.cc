#include "sim/scenarios/rows/rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cql/catalog/catalog.h"
#include "replication/coordinator/coordinator.h"
#include "sim/checkers/rows_checker.h"
#include "sim/lost_folder.h"
#include "sim/scenarios/rows/board.h"
#include "sim/scenarios/rows/clients.h"
#include "sim/scenarios/rows/judge.h"
#include "sim/scenarios/test_cluster.h"

namespace helenus::sim {

namespace {

using runtime::Task;
using runtime::Until;

constexpr std::size_t kSeedsMax = 3;
constexpr std::size_t kClientMachines = 2;
// How often clocks are looked at, to know how far they are apart.
constexpr Duration kLookAtClocksEvery = 10ms;
// A time to live is in whole seconds, and requests take time.
constexpr Duration kExpirySlack = 2s;
// A request that nothing disturbs takes less than that on a network without latency.
constexpr Duration kNodeLimit = 3s;
// How long nodes take to connect to each other before they give up is longer than this.
constexpr Duration kNodePatience = 2s;
// Some packets take longer than usual by this factor, in calm, too.
constexpr std::int64_t kSlowestPacket = 130;
constexpr std::uint64_t kChoreEveryMaxMs = 4'000;
constexpr Duration kClientLostAfter = 2s;
constexpr Duration kSyncPeriod = 300ms;
constexpr std::uint64_t kJoinsWithinMs = 12'000;
constexpr Duration kLookAtRingEvery = 100ms;
constexpr double kLeaves = 0.05;  // at each look

// What is left says which node it is.
void lose_rows(SimDisk& disk) {
  lose_folder(disk, "/data/tables");
  lose_folder(disk, "/data/commitlog");
}

class RowsScenario final : public Scenario {
 public:
  explicit RowsScenario(const RowsScenarioOptions& options) : options_(options) {}

  FaultBudget budget() const override {
    // A majority that loses its power at once loses what it acknowledged within the period.
    const FaultSet of_processes =
        loses_power() ? FaultSet{Fault::kill, Fault::pause} : kProcessFaults;
    FaultSet permitted = kNetworkFaults | of_processes |
                         FaultSet{Fault::slow_disk, Fault::slow_sync, Fault::buggify};
    if (has_clock_faults_) permitted = permitted | kClockFaults;
    return {.permitted = permitted};
  }

  void setup(World& world, base::Prng& dice) override {
    world_ = &world;
    board_.shape = RowsShape::draw(dice, options_.nodes_min, options_.nodes_max);
    if (options_.late_max > 0) board_.shape.add_late(dice, dice.between(1, options_.late_max));
    if (options_.reads_too_few) {
      for (RowsKeyspace& keyspace : board_.shape.keyspaces) {
        keyspace.write_level = model::Consistency::quorum;
        keyspace.read_level = model::Consistency::one;
      }
    }
    has_clock_faults_ = dice.chance(0.5);
    board_.has_client_timestamps = dice.chance(0.6);
    board_.shape.add_cells(board_.history);
    const Duration slowest = kSlowestPacket * world.network().options().latency_max;
    board_.is_world_slow = slowest > kNodePatience;
    board_.node_limit = kNodeLimit + slowest;
    board_.client_limit = board_.node_limit * 3 / 2;
    board_.client_lost_after = kClientLostAfter + 2 * slowest;
    board_.true_time = [this] { return world_->now(); };
    board_.is_quiet = [this] { return cluster_->is_quiet(); };
    board_.begin_rest_check = [this] { begin_rest_check(); };
    board_.expiry_slack = [this] { return most_ahead_ - most_behind_ + kExpirySlack; };
    begin_cluster(dice);
    if (board_.problems.empty()) begin_clients(dice);
  }

  std::vector<MachineId> targets() const override { return cluster_->ids(); }
  Duration safety_phase() const override { return 30s; }
  Duration liveness_limit() const override { return 15min; }
  void on_healed() override {
    board_.healed = true;
    cluster_->reset_clocks();
    // What was begun comes to its end; who was to come later comes now.
    for (std::size_t i = 0; i < board_.shape.nodes(); ++i) join_late(i);
  }
  bool quiet() const override { return board_.is_over || !has_begun_; }

  void check(Violations& violations) override {
    const RowsRules rules{
        .expiry_slack = static_cast<RowsHistory::Moment>(board_.expiry_slack() / 1ns),
        .timestamps_follow_time = board_.has_client_timestamps || !has_clock_faults_};
    std::vector<std::string> problems = check_rows(board_.history, rules);
    for (const std::string& what : cluster_->failed_starts()) {
      // Of one that has left.
      if (options_.late_max > 0 && what.find("was removed") != std::string::npos) continue;
      problems.push_back("a start failed: " + what);
    }
    problems.insert(problems.end(), board_.problems.begin(), board_.problems.end());
    if (problems.empty() && violations.empty()) return;
    // Many may follow, of which the first ones are kept.
    violations.add(fmt::format("with {}; {} timestamps; {}", board_.shape.to_string(),
                               board_.has_client_timestamps ? "the clients'" : "the nodes'",
                               cluster_->phases()));
    for (std::string& what : problems) violations.add(std::move(what));
  }

  void add_to(std::vector<Sighting>& sightings) const override {
    using Outcome = RowsHistory::Outcome;
    const RowsHistory& history = board_.history;
    // Two for a run, so that one in two is enough.
    sightings.push_back(
        {"runs in which requests met faults, twice", board_.met_faults > 0 ? 2U : 0U, 1});
    sightings.push_back({"requests that met faults", board_.met_faults, 4});
    sightings.push_back({"writes acknowledged", history.count(Outcome::acknowledged), 100});
    sightings.push_back({"writes refused", history.count(Outcome::refused), 1});
    sightings.push_back({"writes of unknown outcome", history.count(Outcome::unknown), 1});
    sightings.push_back({"reads", board_.reads_done, 100});
    sightings.push_back({"changes of the schema", board_.schema_changes.size(), 1});
    sightings.push_back({"flushes and compactions", chores_, 1});
    if (loses_power()) sightings.push_back({"power losses", power_losses_, 1});
    if (options_.late_max > 0) {
      sightings.push_back({"nodes that joined", joined_, 1});
      sightings.push_back({"nodes that left, of eight joined", 8 * left_, 1});
    }
  }
  void add_to(base::Digest& digest) const override { board_.history.add_to(digest); }

 private:
  void begin_cluster(base::Prng& dice) {
    const RowsShape& shape = board_.shape;
    const std::size_t seeds = std::min(kSeedsMax, shape.nodes() - shape.late);
    const auto configure = [this](node::Config& config) {
      config.request_timeout_ms = static_cast<std::uint32_t>(board_.node_limit / 1ms);
      config.write_timeout_ms = config.request_timeout_ms;
      config.client_lost_after_ms = static_cast<std::uint32_t>(board_.client_lost_after / 1ms);
      if (options_.periodic_sync) {
        config.commitlog_sync_period_ms = static_cast<std::uint32_t>(kSyncPeriod / 1ms);
      }
      if (options_.acks_before_sync || options_.periodic_sync) {
        config.commitlog_sync = storage::LogSyncMode::periodic;
      }
    };
    cluster_.emplace(*world_, TestCluster::Options{
                                  .cores = shape.cores, .seeds = seeds, .configure = configure});
    for (std::size_t i = 0; i < shape.nodes(); ++i) {
      cluster_->config(i).data_center = shape.datacenters[i];
      cluster_->config(i).rack = shape.racks[i];
      cluster_->set_absent(i, shape.is_late(i));
      board_.contact_points.push_back(cluster_->address(i));
      if (!shape.is_late(i)) board_.nodes.push_back(cluster_->address(i));
    }
    cluster_->start_all();
    if (!cluster_->wait_quiet()) return refuse("no cluster: " + cluster_->phases());
    for (const RowsKeyspace& keyspace : shape.keyspaces) {
      must(dice, fmt::format("CREATE KEYSPACE {} WITH replication = {}", keyspace.name,
                             keyspace.replication));
      must(dice, fmt::format("CREATE TABLE {} (k int, c int, s bigint static, v bigint, w bigint, "
                             "m map<int, bigint>, PRIMARY KEY (k, c))",
                             keyspace.table()));
      must(dice, fmt::format("CREATE INDEX ON {} (v) USING 'sai'", keyspace.table()));
    }
    if (!cluster_->wait_quiet()) refuse("no schema: " + cluster_->phases());
  }

  void begin_clients(base::Prng& dice) {
    std::vector<std::vector<std::uint32_t>> numbers(kClientMachines);
    for (std::uint32_t i = 0; i < board_.shape.clients; ++i) {
      numbers[i % kClientMachines].push_back(i);
    }
    for (std::size_t i = 0; i < kClientMachines; ++i) {
      begin_process(fmt::format("clients{}", i),
                    [this, of = numbers[i], seed = dice.next()](runtime::Runtime& runtime) {
                      return std::make_unique<RowsClients>(runtime, board_, of, seed);
                    });
    }
    begin_process("schema", [this, seed = dice.next()](runtime::Runtime& runtime) {
      return std::make_unique<RowsSchemaClient>(runtime, board_, seed);
    });
    begin_process("judge", [this](runtime::Runtime& runtime) {
      return std::make_unique<RowsJudge>(runtime, board_);
    });
    chore_dice_.emplace(dice.next());
    look_at_clocks();
    if (dice.chance(0.5)) plan_chore();
    if (loses_power()) look_for_power_loss();
    plan_ring(dice);
    board_.phase = RowsBoard::Phase::faults;
    has_begun_ = true;
  }

  void begin_process(std::string name, ProcessFactory factory) {
    world_->add_machine({.name = std::move(name)}, std::move(factory)).start();
  }
  void refuse(std::string why) { board_.problems.push_back(std::move(why)); }
  void must(base::Prng& dice, const std::string& text) {
    const std::string answer = cluster_->ask(dice.below(board_.nodes.size()), text);
    if (answer != "done") refuse(fmt::format("{}: {}", text, answer));
  }

  // What each node says of its replicas when all is at rest.
  void begin_rest_check() {
    rest_is_checked_ = true;
    board_.rest_checks_left = cluster_->size();
    for (std::size_t i = 0; i < cluster_->size(); ++i) {
      if (cluster_->is_absent(i)) {
        --board_.rest_checks_left;
        continue;
      }
      if (!cluster_->is_up(i)) {
        board_.add_problem("at rest", fmt::format("n{} is not up", i));
        --board_.rest_checks_left;
        continue;
      }
      cluster_->begin(
          i,
          [this, i](runtime::Runtime& runtime, node::Node& node) {
            return at_rest(runtime, node, i);
          },
          [this] { --board_.rest_checks_left; });
    }
  }
  Task<void> at_rest(runtime::Runtime& runtime, node::Node& node, std::size_t number) {
    const auto wrong = [&](const std::string& what) {
      board_.add_problem("at rest", fmt::format("n{}: {}", number, what));
    };
    node::Database& database = node.database();
    const auto report = co_await database.anti_entropy();
    if (!report) {
      wrong(report.error().to_string());
      co_return;
    }
    if (report->tablets_behind > 0) wrong(fmt::format("{} tablets behind", report->tablets_behind));
    if (report->tablets_behind_themselves > 0) wrong("it has lost its own writes");
    if (report->withheld > 0) wrong(fmt::format("{} writes withheld", report->withheld));
    if (report->mutations_refused > 0) wrong("it refused mutations");
    for (const auto& peer : report->peers) {
      if (peer.lacking_here + peer.lacking_there + peer.clocks_to_tell == 0) continue;
      wrong(
          fmt::format("it lacks {}, a peer {}, of {} clocks it is not known whether they are known",
                      peer.lacking_here, peer.lacking_there, peer.clocks_to_tell));
    }
    const auto merged = co_await database.maintain(node::Database::Maintenance::compact, "", "",
                                                   Until::after(runtime, 1min));
    if (!merged) wrong("compaction: " + merged.error().to_string());
    const auto metrics = co_await database.metrics();
    if (!metrics) {
      wrong(metrics.error().to_string());
      co_return;
    }
    // What a power loss took from everybody leaves a gap in the clocks, and what lies above it is
    // kept: the names of before are not closed yet (R11).
    if (power_losses_ > 0) co_return;
    for (const auto& metric : *metrics) {
      const bool must_be_zero = metric.name == "helenus_mutation_log_mutations" ||
                                metric.name == "helenus_mutation_log_files";
      if (must_be_zero && metric.value != 0) wrong(fmt::format("{} {}", metric.name, metric.value));
    }
    const auto tables = co_await database.tables("", "");
    if (!tables) {
      wrong(tables.error().to_string());
      co_return;
    }
    for (const auto& table : *tables) {
      if (table.here.sstable_deletes == 0) continue;
      wrong(fmt::format("{}.{} has {} deletes and contexts in its files", table.keyspace,
                        table.table, table.here.sstable_deletes));
    }
  }

  void look_at_clocks() {
    if (board_.healed) return;
    for (std::size_t i = 0; i < cluster_->size(); ++i) {
      const Duration ahead = cluster_->machine(i).clock().wall_at(world_->now()).since_origin() -
                             LocalClock::kWorldBegins.since_origin() - world_->now().since_origin();
      most_ahead_ = std::max(most_ahead_, ahead);
      most_behind_ = std::min(most_behind_, ahead);
    }
    world_->after(kLookAtClocksEvery, [this] { look_at_clocks(); });
  }

  bool loses_power() const { return options_.periodic_sync || options_.loses_disks; }

  // The next power loss comes when all have been well for so long that what they acknowledged is on
  // their disks.
  void look_for_power_loss() {
    if (board_.healed) return;
    if (!cluster_->is_quiet()) {
      quiet_since_ = world_->now();
    } else if (world_->now() - quiet_since_ > 3 * kSyncPeriod && chore_dice_->chance(0.05)) {
      const std::size_t node = chore_dice_->below(cluster_->size());
      cluster_->power_loss(node);
      if (options_.loses_disks) lose_rows(cluster_->machine(node).disk());
      ++power_losses_;
      world_->after(std::chrono::milliseconds(chore_dice_->between(100, 3'000)), [this, node] {
        if (!cluster_->machine(node).is_up()) cluster_->start(node);
      });
    }
    world_->after(kSyncPeriod / 4, [this] { look_for_power_loss(); });
  }

  // ---- The ring ----

  void plan_ring(base::Prng& dice) {
    for (std::size_t i = 0; i < board_.shape.nodes(); ++i) {
      if (!board_.shape.is_late(i)) continue;
      const auto comes_after = std::chrono::milliseconds(dice.below(kJoinsWithinMs));
      world_->after(comes_after, [this, i] {
        if (!board_.healed) join_late(i);
      });
      if (dice.chance(0.5)) leavers_.insert(i);
    }
    if (board_.shape.late > 0) look_at_ring();
  }
  // It is started, and joins by itself.
  void join_late(std::size_t i) {
    if (!board_.shape.is_late(i) || !cluster_->is_absent(i) || gone_.contains(i)) return;
    cluster_->set_absent(i, false);
    if (!cluster_->machine(i).is_up()) cluster_->start(i);
  }
  void look_at_ring() {
    if (board_.is_over) return;
    for (std::size_t i = 0; i < board_.shape.nodes(); ++i) {
      if (board_.shape.is_late(i) && !cluster_->is_absent(i)) look_at_late(i);
    }
    world_->after(kLookAtRingEvery, [this] { look_at_ring(); });
  }
  // The newest that a node that is up knows.
  const metadata::ClusterMetadata* newest_metadata() const {
    const cluster::ClusterService* newest = nullptr;
    for (std::size_t i = 0; i < board_.shape.nodes(); ++i) {
      if (!cluster_->is_up(i)) continue;
      const cluster::ClusterService& service = cluster_->node(i).cluster();
      if (newest == nullptr || service.version() > newest->version()) newest = &service;
    }
    return newest == nullptr ? nullptr : newest->metadata().get();
  }
  // One that has joined serves clients; some leave again.
  void look_at_late(std::size_t i) {
    const metadata::ClusterMetadata* metadata = newest_metadata();
    if (metadata == nullptr) return;
    if (cluster_->is_up(i)) late_ids_[i] = cluster_->node(i).identity().node;
    const auto id = late_ids_.find(i);
    if (id == late_ids_.end()) return;
    const bool is_member = metadata->find(id->second) != nullptr;
    const runtime::Address address = cluster_->address(i);
    const auto listed = std::ranges::find(board_.nodes, address);
    if (asked_to_leave_.contains(i)) {
      if (is_member) return;
      cluster_->set_absent(i, true);
      gone_.insert(i);
      ++left_;
      cluster_->machine(i).request_stop();
      return;
    }
    if (listed == board_.nodes.end()) {
      if (!is_member) return;
      board_.nodes.push_back(address);
      ++joined_;
      return;
    }
    const bool leaves = leavers_.contains(i) && !board_.healed && cluster_->is_up(i) &&
                        chore_dice_->chance(kLeaves);
    if (!leaves) return;
    // Its clients go elsewhere first: what it answers them while it goes is no matter here.
    board_.nodes.erase(listed);
    asked_to_leave_.insert(i);
    cluster_->begin(
        i,
        [](runtime::Runtime& runtime, node::Node& leaver) -> Task<void> {
          std::ignore = co_await leaver.ring_change().leave(Until::after(runtime, 1min));
        },
        [] {});
  }

  // Now and then a node writes a table to files, or merges them.
  void plan_chore() {
    const auto pause = std::chrono::milliseconds(chore_dice_->below(kChoreEveryMaxMs));
    world_->after(pause, [this] {
      if (board_.is_over) return;
      do_chore();
      plan_chore();
    });
  }
  void do_chore() {
    const std::size_t node = chore_dice_->below(cluster_->size());
    const bool is_flush = chore_dice_->chance(0.7);
    const std::size_t keyspace = chore_dice_->below(board_.shape.keyspaces.size());
    if (!cluster_->is_up(node) || rest_is_checked_) return;
    cluster_->begin(node,
                    TestCluster::tidying(is_flush, board_.shape.keyspaces[keyspace].name, "t"),
                    [this] { ++chores_; });
  }

  const RowsScenarioOptions options_;
  World* world_ = nullptr;
  std::set<std::size_t> leavers_;  // of those that join later
  std::set<std::size_t> asked_to_leave_;
  std::set<std::size_t> gone_;
  std::map<std::size_t, model::NodeId> late_ids_;
  std::uint64_t joined_ = 0;
  std::uint64_t left_ = 0;
  // Called by const functions that look on.
  mutable std::optional<TestCluster> cluster_;
  RowsBoard board_;
  bool has_clock_faults_ = false;
  bool has_begun_ = false;
  Duration most_ahead_{0};
  Duration most_behind_{0};
  std::optional<base::Prng> chore_dice_;
  std::uint64_t chores_ = 0;
  bool rest_is_checked_ = false;
  WorldTime quiet_since_{};
  std::uint64_t power_losses_ = 0;
};

}  // namespace

std::unique_ptr<Scenario> make_rows_scenario(const RowsScenarioOptions& options) {
  return std::make_unique<RowsScenario>(options);
}

}  // namespace helenus::sim
