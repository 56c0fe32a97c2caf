#include "sim/scenarios/cql/statements.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cql/catalog/catalog.h"
#include "cql/execute/reference_executor_test_support.h"
#include "cql/execute/reference_statements_test_support.h"
#include "replication/coordinator/coordinator.h"
#include "runtime/sleep.h"
#include "sim/scenarios/cql_client.h"
#include "sim/scenarios/test_cluster.h"

namespace helenus::sim {

namespace {

using cql::testing::ReferenceExecutor;
using cql::testing::ReferenceStatement;
using cql::testing::ReferenceStatements;
using cql::testing::ReferenceTable;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

constexpr std::uint64_t kStatements = 500;
// How often the node is stopped, and how often it dies: once in so many statements.
constexpr std::uint64_t kStatementsPerRestart = 200;
// Of a death that comes while files are written.
constexpr std::uint64_t kDeathDelayMaxUs = 20'000;
constexpr std::size_t kHistoryShown = 60;
constexpr Duration kAnswerLimit = 1min;
constexpr Duration kLookAgain = 1ms;
// A statement that is sent in the last part of a second may be executed in the next one.
constexpr Duration kSecondEnds = 900ms;
constexpr Duration kWorldLimit = 12h;

// Of several nodes: for how many statements one is away that died.
constexpr std::uint64_t kStatementsAwayMax = 60;

// What the client wants done to a node, and waits for.
enum class Wish : std::uint8_t { none, restart, kill, power_loss, start, flush, compact };

// The client, and the reference beside it. The client asks one statement at a time; what it wishes
// is done by whoever runs the world. Of several nodes it asks the next best one, each page anew, at
// QUORUM, and one of them may be away.
class Comparison {
 public:
  Comparison(World& world, TestCluster& cluster, std::uint64_t seed)
      : world_(world),
        cluster_(cluster),
        is_away_(cluster.size()),
        reference_(ReferenceStatements::tables(seed)),
        statements_(seed, reference_, cluster.size() == 1) {}

  Task<void> run(Runtime& runtime) {
    runtime_ = &runtime;
    for (std::size_t i = 0; i < nodes(); ++i) clients_.emplace_back(runtime, cluster_.address(i));
    co_await must(
        fmt::format("CREATE KEYSPACE ks WITH replication = {{'class': 'SimpleStrategy', "
                    "'replication_factor': {}}}",
                    nodes()));
    for (std::size_t i = 0; i < nodes(); ++i) co_await must("USE ks", i);
    // A write has seen what was written before it, through whichever node.
    const std::string_view causal = nodes() > 1 ? " AND causal_writes = 'quorum'" : "";
    for (const ReferenceTable& table : reference_.tables()) {
      co_await must(fmt::format("{}{}", table.create(), causal));
    }
    co_await make_indexes(0);
    for (std::uint64_t left = kStatements; left > 0 && violations.empty(); --left) {
      co_await disturb();
      // Others find rows when they are made.
      if (left <= kStatements / 2 && away_for_ == 0) co_await make_indexes(1);
      if (statements_.prng().below(2) == 0) {
        co_await write();
      } else {
        co_await read();
      }
    }
    is_over = true;
  }

  // Of the node's life.
  Wish wish = Wish::none;
  Duration death_delay{0};
  Wish before_death = Wish::none;  // a flush or a compaction
  std::size_t node_wished = 0;
  std::size_t table_wished = 0;
  bool is_over = false;
  std::uint64_t acknowledged = 0;
  std::uint64_t answered = 0;
  std::uint64_t deaths = 0;  // of one of several
  Violations violations;

  const std::string& table_name(std::size_t number) const {
    return reference_.tables()[number].name;
  }
  void connect_again(std::size_t node) { clients_[node].close(); }
  std::size_t nodes() const { return is_away_.size(); }

 private:
  Duration node_time() const {
    return cluster_.machine(0).clock().wall_at(world_.now()).since_origin();
  }
  std::int64_t seconds() const {
    return std::chrono::floor<std::chrono::seconds>(node_time()).count();
  }
  Task<void> leave_the_end_of_a_second() {
    const Duration within = node_time() - std::chrono::floor<std::chrono::seconds>(node_time());
    if (within > kSecondEnds) {
      static_cast<void>(co_await runtime::sleep_for(*runtime_, 1s - within + kLookAgain, {}));
    }
  }

  // Draws nothing where there is no choice.
  std::size_t some_node() {
    if (nodes() == 1) return 0;
    for (;;) {
      const std::size_t node = statements_.prng().below(nodes());
      if (!is_away_[node]) return node;
    }
  }

  Task<void> must(std::string text, std::size_t node = 0) {
    const auto answer =
        co_await clients_[node].query(text, {}, Until::after(*runtime_, kAnswerLimit));
    if (!answer || answer->error) {
      violations.add(
          fmt::format("{}: {}", text, answer ? answer->text() : answer.error().to_string()));
    }
  }

  // Of every other table, once.
  Task<void> make_indexes(std::size_t which) {
    if (std::exchange(has_indexes_[which], true)) co_return;
    for (std::size_t i = which; i < reference_.tables().size(); i += 2) {
      for (const std::string& text : reference_.tables()[i].create_indexes()) co_await must(text);
    }
  }

  Task<void> grant(Wish wanted) {
    wish = wanted;
    while (wish != Wish::none) {
      static_cast<void>(co_await runtime::sleep_for(*runtime_, kLookAgain, {}));
    }
  }

  // What no statement may notice: time that passes, memory that goes to files, files that are
  // merged, a node that is stopped and started, or dies.
  Task<void> disturb() {
    base::Prng& prng = statements_.prng();
    if (away_for_ > 0 && --away_for_ == 0) co_await come_back();
    if (prng.below(kStatementsPerRestart) == 0 && away_for_ == 0) {
      node_wished = some_node();
      history_.push_back(fmt::format("(restart of {})", node_wished));
      co_await grant(Wish::restart);
      co_await must("USE ks", node_wished);
    }
    if (prng.below(kStatementsPerRestart) == 0 && away_for_ == 0) co_await die();
    const std::uint64_t what = prng.below(400);
    if (what < 6) {
      const auto pause = std::chrono::milliseconds(prng.between(1, 20'000));
      static_cast<void>(co_await runtime::sleep_for(*runtime_, pause, {}));
      history_.push_back(fmt::format("(it is {})", seconds()));
    }
    if (what == 6 || what == 7) co_await tidy_up(Wish::flush);
    if (what == 8) co_await tidy_up(Wish::compact);
  }

  Task<void> tidy_up(Wish how) {
    node_wished = some_node();
    choose_table(how);
    co_await grant(how);
  }
  void choose_table(Wish how) {
    table_wished = statements_.prng().below(reference_.tables().size());
    history_.push_back(
        fmt::format("({} {})", how == Wish::flush ? "flush" : "compact", table_name(table_wished)));
  }

  // At once, or while files are written.
  Task<void> die() {
    base::Prng& prng = statements_.prng();
    death_delay = std::chrono::microseconds(prng.below(kDeathDelayMaxUs));
    const Wish how = prng.chance(0.5) ? Wish::power_loss : Wish::kill;
    node_wished = some_node();
    history_.push_back(
        fmt::format("({} of {})", how == Wish::power_loss ? "power loss" : "kill", node_wished));
    before_death = Wish::none;
    if (prng.chance(0.7)) {
      before_death = prng.chance(0.5) ? Wish::flush : Wish::compact;
      choose_table(before_death);
    }
    co_await grant(how);
    if (nodes() == 1) {
      co_await must("USE ks");
      co_return;
    }
    ++deaths;
    is_away_[node_wished] = true;
    away_ = node_wished;
    away_for_ = prng.between(1, kStatementsAwayMax);
  }

  Task<void> come_back() {
    node_wished = away_;
    history_.push_back(fmt::format("(start of {})", away_));
    co_await grant(Wish::start);
    is_away_[away_] = false;
    co_await must("USE ks", away_);
  }

  Task<base::Result<CqlAnswer>> send(const ReferenceStatement& statement, CqlHow how) {
    how.timestamp_us = statement.timestamp;
    if (nodes() > 1) how.consistency = cql::protocol::Consistency::quorum;
    const Until until = Until::after(*runtime_, kAnswerLimit);
    CqlClient& client = clients_[some_node()];
    if (!statement.has_markers) {
      co_return co_await client.query(statement.text, std::move(how), until);
    }
    CO_TRY(const CqlAnswer prepared, co_await client.prepare(statement.text, until));
    if (prepared.error) co_return prepared;
    co_return co_await client.execute(*prepared.prepared_id, statement.values, std::move(how),
                                      until);
  }

  static std::string text_of(const ReferenceStatement& statement) {
    std::vector<std::string> values;
    for (const auto& value : statement.values) {
      values.push_back(value ? "0x" + base::to_hex(base::as_bytes(*value)) : "null");
    }
    return fmt::format("{} at {} with [{}]", statement.text, statement.timestamp,
                       fmt::join(values, ", "));
  }
  static std::string text_of(const base::Result<CqlAnswer>& answer) {
    return answer ? answer->text() : answer.error().to_string();
  }

  Task<void> write() {
    co_await leave_the_end_of_a_second();
    const ReferenceStatement statement = statements_.write(seconds());
    history_.push_back(text_of(statement));
    const auto answer = co_await send(statement, {});
    if (!answer || answer->error) {
      violations.add(told_after(statement, text_of(answer)));
      co_return;
    }
    ++acknowledged;
    reference_.apply(statement.changes, statement.timestamp);
  }

  Task<void> read() {
    const ReferenceStatement statement = statements_.read();
    // What expires while pages are read is there in some of them: such a read is done again.
    for (std::int64_t began = -1; began != seconds();) {
      co_await leave_the_end_of_a_second();
      began = seconds();
      std::vector<std::string> rows;
      const bool is_answered = co_await read_pages(statement, rows);
      if (!is_answered) co_return;
      if (began != seconds()) continue;
      ++answered;
      const std::vector<std::string> expected = reference_.select(*statement.query, began);
      if (rows == expected) co_return;
      violations.add(told_after(
          statement, fmt::format("gave\n    {}\n  and not\n    {}", fmt::join(rows, "\n    "),
                                 fmt::join(expected, "\n    "))));
      co_return;
    }
  }

  // Whether there are rows to compare: not if it was refused, be it as it should or not.
  Task<bool> read_pages(const ReferenceStatement& statement, std::vector<std::string>& rows) {
    CqlHow how;
    how.page_size = statement.page_size;
    do {
      const auto answer = co_await send(statement, how);
      if (!answer || answer->error.has_value() != statement.is_refused ||
          (answer->error && !answer->is_error(cql::protocol::ErrorCode::invalid))) {
        violations.add(told_after(statement, text_of(answer)));
        co_return false;
      }
      if (answer->error) co_return false;
      if (answer->rows.empty() && answer->paging_state) {
        violations.add(told_after(statement, "an empty page that is not the last"));
      }
      rows.insert(rows.end(), answer->rows.begin(), answer->rows.end());
      how.paging_state = answer->paging_state;
    } while (how.paging_state);
    co_return true;
  }

  // The end of what happened to the tables that the statement is about.
  std::string told_after(const ReferenceStatement& statement, const std::string& what) const {
    std::vector<std::string> shown;
    const std::string* const table =
        statement.query ? &reference_.tables()[statement.query->table].name : nullptr;
    for (const std::string& event : history_) {
      const bool is_of_all = event.starts_with("(it is") || event.starts_with("(restart") ||
                             event.starts_with("(start") || event.starts_with("(kill") ||
                             event.starts_with("(power loss");
      if (table == nullptr || is_of_all || event.contains(*table)) shown.push_back(event);
    }
    if (shown.size() > kHistoryShown) shown.erase(shown.begin(), shown.end() - kHistoryShown);
    return fmt::format("pages of {}: {}\n  {}\n  after\n  {}", statement.page_size.value_or(0),
                       text_of(statement), what, fmt::join(shown, "\n  "));
  }

  World& world_;
  TestCluster& cluster_;
  Runtime* runtime_ = nullptr;
  std::deque<CqlClient> clients_;  // by node
  std::vector<bool> is_away_;      // by node
  std::size_t away_ = 0;
  std::array<bool, 2> has_indexes_ = {};
  std::uint64_t away_for_ = 0;  // so many statements more
  ReferenceExecutor reference_;
  ReferenceStatements statements_;
  std::vector<std::string> history_;
};

class Client final : public Process {
 public:
  Client(Runtime& runtime, Comparison& comparison) : runtime_(runtime), comparison_(comparison) {}
  Task<void> run(runtime::StopToken) override { co_await comparison_.run(runtime_); }

 private:
  Runtime& runtime_;
  Comparison& comparison_;
};

// What a node is told to do with one of its tables.
TestCluster::Story tidying(Wish how, std::string table, Violations& violations) {
  return [how, table, &violations](Runtime&, node::Node& node) -> Task<void> {
    const auto snapshot = node.database().catalog().snapshot();
    const auto id = snapshot->storage_of(snapshot->schema().find_table("ks", table)->id);
    replication::Coordinator& coordinator = node.database().coordinator();
    const auto done = how == Wish::flush ? co_await coordinator.flush(*id, Until::forever())
                                         : co_await coordinator.compact(*id, Until::forever());
    if (!done) violations.add(fmt::format("{}: {}", table, done.error().to_string()));
  };
}

// Does what the client wishes; false if that does not come to an end.
bool fulfil(World& world, TestCluster& cluster, Comparison& client) {
  const Wish wish = client.wish;
  const std::size_t node = client.node_wished;
  const auto tidy = [&](Wish how) {
    return tidying(how, client.table_name(client.table_wished), client.violations);
  };
  bool is_well = true;
  bool stays_away = false;
  switch (wish) {
    case Wish::none:
    case Wish::start:
      break;
    case Wish::flush:
    case Wish::compact:
      is_well = cluster.tell(node, tidy(wish));
      break;
    case Wish::restart:
      is_well = cluster.stop(node);
      break;
    case Wish::kill:
    case Wish::power_loss:
      if (client.before_death != Wish::none) cluster.begin(node, tidy(client.before_death), [] {});
      world.run_for(client.death_delay);
      if (wish == Wish::kill) {
        cluster.kill(node);
      } else {
        cluster.power_loss(node);
      }
      stays_away = client.nodes() > 1;
      break;
  }
  if (!cluster.machine(node).is_up()) client.connect_again(node);
  if (is_well && !stays_away && !cluster.machine(node).is_up()) {
    cluster.start(node);
    // A node that has just come back does not know yet who else is up.
    is_well = client.nodes() == 1 ? cluster.wait_up({node}) : cluster.wait_quiet();
  }
  client.wish = Wish::none;
  return is_well;
}

RunOutcome run_statements(const RunOptions& options, const TestCluster::Options& nodes) {
  RunOutcome outcome;
  // With one of three away, no other one may fail a request.
  const bool has_bugs = options.seed % 2 == 1 && nodes.cores.size() == 1;
  World world(options.seed, {.buggify = has_bugs, .log = options.log});
  TestCluster cluster(world, nodes);
  Comparison comparison(world, cluster, options.seed);
  cluster.start_all();
  const bool is_ready = cluster.size() == 1 ? cluster.wait_up({0}) : cluster.wait_quiet();
  outcome.violations.expect(is_ready, "no nodes: {}", cluster.phases());
  Machine& client = world.add_machine({.name = "client"}, [&](Runtime& runtime) {
    return std::make_unique<Client>(runtime, comparison);
  });
  if (outcome.violations.empty()) client.start();
  std::uint64_t wishes = 0;
  while (outcome.violations.empty() && !comparison.is_over) {
    const bool is_on = world.run_until(
        [&] { return comparison.is_over || comparison.wish != Wish::none; }, kWorldLimit);
    outcome.violations.expect(is_on, "a statement waits for something that never happens");
    if (!is_on || comparison.is_over) break;
    ++wishes;
    outcome.violations.expect(fulfil(world, cluster, comparison), "the node does not come back: {}",
                              cluster.phases());
  }
  outcome.violations.add_all(comparison.violations);
  client.kill();
  outcome.violations.expect(cluster.stop_all(), "the nodes do not stop");
  outcome.plan = fmt::format("{} cores", fmt::join(nodes.cores, ", "));
  outcome.sightings = {{"statements that wrote", comparison.acknowledged, kStatements / 4},
                       {"statements that read", comparison.answered, kStatements / 8},
                       {"restarts, deaths, flushes and compactions", wishes, 5}};
  if (cluster.size() > 1) {
    outcome.sightings.push_back({"deaths of one of several nodes", comparison.deaths, 1});
  }
  base::Digest digest;
  add_world(world, digest, outcome);
  digest.add(comparison.acknowledged);
  digest.add(comparison.answered);
  outcome.state_hash = digest.value();
  return outcome;
}

}  // namespace

// Every fifth on three cores.
RunOutcome run_cql_statements(const RunOptions& options) {
  const std::uint16_t cores = options.seed % 5 == 4 ? 3 : 1;
  return run_statements(options, {.cores = {cores}, .seeds = 1});
}

RunOutcome run_cql_statements_of_three(const RunOptions& options) {
  const std::uint16_t cores = options.seed % 5 == 4 ? 2 : 1;
  return run_statements(options, {.cores = {cores, 1, 1}, .seeds = 3});
}

}  // namespace helenus::sim
