#include "sim/scenarios/rows/judge.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/sleep.h"
#include "sim/scenarios/rows/clients.h"
#include "sim/scenarios/rows/statements.h"

namespace helenus::sim {

using runtime::StopToken;
using runtime::Task;
using runtime::Until;

namespace {

constexpr Duration kLookAgain = 100ms;
constexpr Duration kQuietLimit = 3min;
// After it every session is connected, and even the slowest sync is over that began under a fault.
constexpr Duration kCalmBegins = 70s;
constexpr Duration kConvergenceLimit = 1min;
constexpr Duration kRoundEvery = 2s;
constexpr Duration kAskedAgainAfter = 10s;
constexpr std::uint32_t kAgainMax = 3;

std::string text_of(const client::ResultSet& rows) {
  std::vector<std::string> lines;
  for (const client::Row row : rows.rows()) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < row.size(); ++i) cells.push_back(row.cell(i).to_text());
    lines.push_back(fmt::format("{}", fmt::join(cells, " ")));
  }
  return fmt::format("{}", fmt::join(lines, "; "));
}

}  // namespace

client::SessionOptions RowsJudge::rows_options(const RowsBoard& board) {
  return rows_session_options(board);
}

Task<void> RowsJudge::run(StopToken stop) {
  std::ignore = co_await session_.start(Until::after(runtime_, 10s, stop));
  co_await judge(stop);
  board_.phase = RowsBoard::Phase::over;
  board_.is_over = true;
  co_await session_.stop();
}

Task<bool> RowsJudge::wait_for(std::function<bool()> condition, Duration limit, StopToken stop) {
  const auto until = runtime_.clock.now() + limit;
  while (!condition()) {
    const auto slept = co_await runtime::sleep_for(runtime_, kLookAgain, stop);
    if (!slept || runtime_.clock.now() >= until) co_return condition();
  }
  co_return true;
}

Task<void> RowsJudge::judge(StopToken stop) {
  const bool is_calm = co_await become_calm(stop);
  if (!is_calm) {
    if (!stop.stop_requested()) board_.problems.push_back("the nodes do not come to rest");
    co_return;
  }
  co_await make_requests(stop);
  co_await converge(stop);
  co_await ask_for_schema(stop);
}

Task<bool> RowsJudge::become_calm(StopToken stop) {
  const bool healed =
      co_await wait_for([this] { return board_.healed; }, Duration::max() / 2, stop);
  if (!healed) co_return false;
  board_.phase = RowsBoard::Phase::hold;
  const bool is_quiet = co_await wait_for([this] { return board_.busy == 0 && board_.is_quiet(); },
                                          kQuietLimit, stop);
  if (!is_quiet) co_return false;
  std::ignore = co_await runtime::sleep_for(runtime_, 2 * board_.client_limit + kCalmBegins, stop);
  board_.history.end_unknown(board_.now());
  co_return !stop.stop_requested();
}

Task<void> RowsJudge::make_requests(StopToken stop) {
  board_.phase = RowsBoard::Phase::calm;
  const bool made = co_await wait_for(
      [this] { return board_.calm_clients == board_.shape.clients; }, kConvergenceLimit, stop);
  board_.phase = RowsBoard::Phase::hold;
  const bool are_done =
      co_await wait_for([this] { return board_.busy == 0; }, kConvergenceLimit, stop);
  if (!made || !are_done) board_.problems.push_back("in calm: requests are slow");
}

Task<void> RowsJudge::converge(StopToken stop) {
  // What expires meanwhile would be a difference.
  const Duration all_expired = RowsStatements::kTtlSecondsMax * 1s + board_.expiry_slack();
  std::ignore = co_await runtime::sleep_for(runtime_, all_expired, stop);
  const auto until = runtime_.clock.now() + kConvergenceLimit;
  for (;;) {
    ++board_.rounds_until_equal;
    board_.convergence.clear();
    const bool answered = co_await ask_all(model::Consistency::one, "", false, stop);
    const auto differences = check_convergence(board_.convergence);
    if (answered && differences.empty()) break;
    if (runtime_.clock.now() >= until || stop.stop_requested()) {
      for (const std::string& difference : differences) {
        board_.add_problem("not converged", difference);
      }
      co_return;
    }
    std::ignore = co_await runtime::sleep_for(runtime_, kRoundEvery, stop);
  }
  std::ignore = co_await ask_all(model::Consistency::one, "", true, stop);
  std::ignore = co_await ask_all(model::Consistency::all, " at ALL", true, stop);
  co_await ask_indexes(stop);
  std::ignore = co_await runtime::sleep_for(runtime_, kAskedAgainAfter, stop);
  std::ignore = co_await ask_all(model::Consistency::one, " later", true, stop);
  for (const std::string& difference : check_convergence(board_.convergence)) {
    board_.add_problem("changed after all was calm", difference);
  }
  board_.begin_rest_check();
  const bool checked =
      co_await wait_for([this] { return board_.rest_checks_left == 0; }, kConvergenceLimit, stop);
  if (!checked && !stop.stop_requested()) board_.problems.push_back("at rest: a node does not say");
}

Task<bool> RowsJudge::ask_all(model::Consistency level, std::string when, bool are_strong,
                              StopToken stop) {
  bool all_answered = true;
  const RowsShape& shape = board_.shape;
  for (std::size_t keyspace = 0; keyspace < shape.keyspaces.size(); ++keyspace) {
    for (std::int32_t k = 0; k < shape.partitions; ++k) {
      for (std::size_t i = 0; i < board_.nodes.size() && !stop.stop_requested(); ++i) {
        const RowsRead asked = read_of_partition(shape, keyspace, k);
        const std::string text = asked.part.literally(0);
        const std::string who = fmt::format("n{}{}", i, when);
        const std::size_t read =
            board_.history.invoke_read(board_.now(), {.client = shape.clients,
                                                      .is_strong = are_strong,
                                                      .text = fmt::format("{} by {}", text, who)});
        auto rows = co_await ask(text, level, i, stop);
        for (std::uint32_t again = 0; !rows && again < kAgainMax && board_.is_world_slow; ++again) {
          rows = co_await ask(text, level, i, stop);
        }
        if (!rows) {
          all_answered = false;
          board_.add_problem(
              fmt::format("after calm, at {}: {}", name_of(level), rows.error().to_string()),
              fmt::format("{} by {}", text, who));
          continue;
        }
        RowsSeen seen(shape, asked);
        if (const auto problem = seen.add(*rows)) {
          board_.add_problem(*problem, fmt::format("{} by {}", text, who));
        }
        board_.history.return_read(board_.now(), read, std::move(seen).take());
        board_.convergence.answer(text, who, text_of(*rows));
      }
    }
  }
  co_return all_answered;
}

Task<client::RequestResult<client::ResultSet>> RowsJudge::ask(std::string text,
                                                              model::Consistency level,
                                                              std::size_t node, StopToken stop) {
  return session_.execute(client::Query{.text = std::move(text)}, {.consistency = level},
                          {.node = board_.nodes[node]},
                          Until::after(runtime_, board_.client_limit, std::move(stop)));
}

namespace {

// The rows that have a value in the last of three columns.
std::set<std::string> rows_with_value(const client::ResultSet& rows) {
  std::set<std::string> texts;
  for (const client::Row row : rows.rows()) {
    if (row.cell(2).is_null()) continue;
    texts.insert(fmt::format("({}, {}, {})", row.cell(0).to_text(), row.cell(1).to_text(),
                             row.cell(2).to_text()));
  }
  return texts;
}

}  // namespace

Task<void> RowsJudge::ask_indexes(StopToken stop) {
  for (const RowsKeyspace& keyspace : board_.shape.keyspaces) {
    const std::string all = fmt::format("SELECT k, c, v FROM {}", keyspace.table());
    const std::string found = all + " WHERE v >= -9223372036854775808";
    for (std::size_t i = 0; i < board_.nodes.size() && !stop.stop_requested(); ++i) {
      const auto scanned = co_await ask(all, model::Consistency::quorum, i, stop);
      const auto indexed = co_await ask(found, model::Consistency::quorum, i, stop);
      const std::string who = fmt::format("{} by n{}", found, i);
      if (!scanned || !indexed) {
        const auto& error = scanned ? indexed.error() : scanned.error();
        if (!board_.is_world_slow) board_.add_problem(error.to_string(), who);
      } else if (rows_with_value(*scanned) != rows_with_value(*indexed)) {
        board_.add_problem(fmt::format("an index has other rows than a scan: {}; {}",
                                       fmt::join(rows_with_value(*indexed), " "),
                                       fmt::join(rows_with_value(*scanned), " ")),
                           who);
      }
    }
  }
}

Task<void> RowsJudge::ask_for_schema(StopToken stop) {
  for (const RowsBoard::SchemaChange& change : board_.schema_changes) {
    for (std::size_t i = 0; i < board_.nodes.size(); ++i) {
      const auto answer = co_await ask(change.probe, model::Consistency::one, i, stop);
      if (answer || stop.stop_requested()) continue;
      board_.add_problem(
          "a change of the schema was acknowledged and is not known",
          fmt::format("'{}', and n{} says: {}", change.text, i, answer.error().to_string()));
    }
  }
}

}  // namespace helenus::sim
