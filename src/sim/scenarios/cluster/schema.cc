#include "sim/scenarios/cluster/schema.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cluster/metadata_ledger_test_support.h"
#include "metadata/cluster_metadata.h"
#include "runtime/random.h"
#include "runtime/sleep.h"
#include "runtime/when_all.h"
#include "sim/scenarios/cql_client.h"
#include "sim/scenarios/test_cluster.h"

namespace helenus::sim {

namespace {

using runtime::Runtime;
using runtime::Task;
using runtime::Until;

constexpr std::size_t kNodes = 3;
constexpr std::size_t kWriters = 3;
constexpr Duration kAnswerLimit = 20s;
constexpr double kAlterChance = 0.2;

std::string keyspace_statement(std::string_view verb, std::uint64_t factor) {
  return fmt::format(
      "{} ks WITH replication = {{'class': 'NetworkTopologyStrategy', 'replication_factor': {}}}",
      verb, factor);
}

struct Board {
  std::vector<runtime::Address> nodes;
  std::size_t asked = 0;
  std::size_t altered = 0;
  std::vector<std::string> acknowledged;
  bool healed = false;
  std::size_t writers_done = 0;
};

// Makes tables of its own on one node after the other, and alters the replication of their
// keyspace; ends when one of its tables was acknowledged after the last fault.
class Writers final : public Process {
 public:
  Writers(Runtime& runtime, Board& board) : runtime_(runtime), board_(board) {}

  Task<void> run(runtime::StopToken stop) override {
    std::vector<Task<void>> writers;
    for (std::size_t number = 0; number < kWriters; ++number) {
      writers.push_back(write(*this, number, stop));
    }
    co_await runtime::when_all(std::move(writers));
  }

 private:
  static Task<void> write(Writers& self, std::size_t number, runtime::StopToken stop) {
    Board& board = self.board_;
    for (std::size_t i = 0; !stop.stop_requested(); ++i) {
      const runtime::Address& node = board.nodes[(number + i) % board.nodes.size()];
      const bool was_healed = board.healed;
      bool is_table = false;
      if (self.runtime_.random.chance(kAlterChance)) {
        const std::string text =
            keyspace_statement("ALTER KEYSPACE", self.runtime_.random.between(1, 3));
        const bool done = co_await self.ask(node, text, stop);
        board.altered += done ? 1U : 0U;
      } else {
        const std::string name = fmt::format("t{}_{}", number, i);
        ++board.asked;
        is_table = co_await self.ask(
            node, fmt::format("CREATE TABLE ks.{} (k int PRIMARY KEY)", name), stop);
        if (is_table) board.acknowledged.push_back(name);
      }
      if (is_table && was_healed) break;
      const auto slept = co_await runtime::sleep_for(self.runtime_, 1s, stop);
      if (!slept) break;
    }
    ++board.writers_done;
  }

  // Whether it was acknowledged.
  Task<bool> ask(runtime::Address node, std::string text, runtime::StopToken stop) {
    CqlClient client(runtime_, node);
    const auto answer =
        co_await client.query(std::move(text), {}, Until::after(runtime_, kAnswerLimit, stop));
    co_return answer && !answer->error;
  }

  Runtime& runtime_;
  Board& board_;
};

class SchemaScenario final : public Scenario {
 public:
  FaultBudget budget() const override {
    return {.permitted = kNetworkFaults | kProcessFaults | kClockFaults | FaultSet{Fault::buggify}};
  }

  void setup(World& world, base::Prng&) override {
    cluster_.emplace(world, TestCluster::Options{.cores = std::vector<std::uint16_t>(kNodes, 1),
                                                 .seeds = kNodes});
    cluster_->on_metadata(
        [this](std::size_t, consensus::Version version, const cluster::MetadataPtr& metadata) {
          ledger_.saw(version.value(), metadata);
        });
    cluster_->start_all();
    began_well_ = cluster_->wait_quiet();
    if (began_well_) first_answer_ = cluster_->ask(0, keyspace_statement("CREATE KEYSPACE", 3));
    for (std::size_t i = 0; i < kNodes; ++i) board_.nodes.push_back(cluster_->address(i));
    world
        .add_machine(
            {.name = "writers"},
            [this](Runtime& runtime) { return std::make_unique<Writers>(runtime, board_); })
        .start();
  }

  std::vector<MachineId> targets() const override { return cluster_->ids(); }
  Duration safety_phase() const override { return 30s; }
  void on_healed() override { board_.healed = true; }
  bool quiet() const override { return board_.writers_done == kWriters && cluster_->is_quiet(); }

  void check(Violations& violations) override {
    violations.expect(began_well_, "no cluster: {}", cluster_->phases());
    violations.expect(first_answer_ == "done", "CREATE KEYSPACE: {}", first_answer_);
    violations.add_all(ledger_.violations());
    for (const std::string& what : cluster_->failed_starts()) {
      violations.add("a start failed: " + what);
    }
    if (!cluster_->is_quiet()) return violations.add(cluster_->phases());
    check_versions(violations);
    const auto keyspace = cluster_->node(0).cluster().metadata()->schema.find_keyspace("ks");
    if (keyspace == nullptr) return violations.add("the keyspace is lost");
    for (const std::string& name : board_.acknowledged) {
      violations.expect(keyspace->find_table(name) != nullptr, "{} was acknowledged and is lost",
                        name);
    }
    // What is unknown to those who asked is there or not; nothing else is.
    violations.expect(keyspace->tables.size() <= board_.asked, "tables that nobody asked for");
  }

  void add_to(std::vector<Sighting>& sightings) const override {
    sightings.push_back({"tables acknowledged", board_.acknowledged.size(), 3});
    sightings.push_back({"keyspaces altered", board_.altered, 1});
    sightings.push_back({"versions of the metadata", ledger_.versions(), 4});
  }
  void add_to(base::Digest& digest) const override {
    digest.add(board_.asked);
    for (const std::string& name : board_.acknowledged) digest.add(base::as_bytes(name));
  }

 private:
  // As clients are told them.
  void check_versions(Violations& violations) {
    std::vector<TestCluster::Question> questions;
    for (std::size_t i = 0; i < kNodes; ++i) {
      questions.emplace_back(i, "SELECT schema_version FROM system.local");
    }
    const auto answers = cluster_->ask_at_once(questions);
    for (const std::string& answer : answers) {
      violations.expect(answer == answers.front(), "schema version {} and {}", answer,
                        answers.front());
    }
    violations.expect(answers.front().size() == 36, "a schema version is {}", answers.front());
  }

  // Called by const functions that look on.
  mutable std::optional<TestCluster> cluster_;
  cluster::testing::MetadataLedger ledger_;
  Board board_;
  bool began_well_ = false;
  std::string first_answer_;
};

}  // namespace

std::unique_ptr<Scenario> make_schema_scenario() {
  return std::make_unique<SchemaScenario>();
}

}  // namespace helenus::sim
