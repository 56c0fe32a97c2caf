#include "sim/scenarios/siblings/clients.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cql/catalog/context_token.h"
#include "keyvalue/url_text.h"
#include "model/value.h"
#include "runtime/sleep.h"
#include "runtime/when_all.h"

namespace helenus::sim {

using runtime::StopToken;
using runtime::Task;
using runtime::Until;
using Outcome = SiblingsHistory::Outcome;
using Value = SiblingsHistory::Value;

namespace {

constexpr Duration kPause = 20ms;
constexpr std::uint64_t kPauseMaxMs = 60;
constexpr std::size_t kContextsKept = 4;
constexpr Duration kLookAgain = 100ms;
constexpr Duration kQuietLimit = 3min;
// After it every session is connected, and even the slowest sync is over that began under a fault.
constexpr Duration kCalmBegins = 70s;
constexpr Duration kConvergenceLimit = 1min;
constexpr Duration kRoundEvery = 2s;

std::string target_of(std::size_t key, std::string_view column, model::Consistency level) {
  return fmt::format("/v1/kv/ks/t/{}{}{}?consistency={}", SiblingsBoard::key_name(key),
                     column.empty() ? "" : "/", column, name_of(level));
}

// None if the answer is none.
std::optional<SiblingsHistory::Known> cells_of(std::size_t key, const HttpReply& reply) {
  SiblingsHistory::Known cells;
  for (const char column : {'v', 'w'}) cells[SiblingsBoard::cell(key, column)] = {};
  if (reply.status == 404) return cells;
  const auto json = nlohmann::json::parse(reply.body, nullptr, false);
  if (!json.is_object() || !json.contains("columns")) return std::nullopt;
  for (const auto& [name, values] : json["columns"].items()) {
    for (const auto& value : values) {
      if (!value.is_number_unsigned()) return std::nullopt;
      cells[SiblingsBoard::cell(key, name.front())].insert(value.get<Value>());
    }
  }
  return cells;
}

client::SessionOptions session_options(const SiblingsBoard& board) {
  client::SessionOptions options{.contact_points = board.cql};
  options.connect_timeout = 2s;
  options.back_off_max = 1s;
  options.connection.heartbeat_interval = 2s;
  options.connection.heartbeat_timeout = board.client_limit;
  return options;
}

}  // namespace

Task<std::optional<SiblingsSeen>> read_siblings(runtime::Runtime& runtime, SiblingsBoard& board,
                                                std::size_t key, std::size_t node,
                                                model::Consistency level, bool is_strong,
                                                Until until) {
  const std::string text = fmt::format("k{} at {} by n{}", key, name_of(level), node);
  const std::size_t read = board.history.invoke_read(
      {.is_strong = is_strong, .spreads = level == model::Consistency::quorum, .text = text});
  const auto reply = co_await http_request(runtime, board.http[node], "GET",
                                           target_of(key, "", level), "", {}, std::move(until));
  if (!reply || (reply->status != 200 && reply->status != 404)) {
    ++board.met_faults;
    if (reply && reply->status < 500) board.add_problem("a read was refused", reply->body);
    co_return std::nullopt;
  }
  auto cells = cells_of(key, *reply);
  const std::string context = reply->header("Helenus-Context");
  if (!cells || context.empty()) {
    board.add_problem("no answer to a read", fmt::format("{}: {}", reply->status, reply->body));
    co_return std::nullopt;
  }
  board.history.return_read(read, *cells);
  const auto several = [](const auto& cell) { return cell.second.size() > 1; };
  if (std::ranges::any_of(*cells, several)) ++board.reads_of_siblings;
  co_return SiblingsSeen{.context = context, .cells = *std::move(cells), .body = reply->body};
}

SiblingsClients::SiblingsClients(runtime::Runtime& runtime, SiblingsBoard& board, std::size_t count,
                                 std::uint64_t seed)
    : runtime_(runtime),
      board_(board),
      count_(count),
      seed_(seed),
      session_(runtime, session_options(board)) {}

Task<void> SiblingsClients::run(StopToken stop) {
  std::ignore = co_await session_.start(Until::after(runtime_, 10s, stop));
  std::vector<Task<void>> workers;
  for (std::size_t i = 0; i < count_; ++i) workers.push_back(work(*this, seed_ + i, stop));
  co_await runtime::when_all(std::move(workers));
  co_await session_.stop();
}

Task<void> SiblingsClients::work(SiblingsClients& self, std::uint64_t seed, StopToken stop) {
  Worker worker{.dice = base::Prng(seed)};
  while (!stop.stop_requested() && self.board_.phase != SiblingsBoard::Phase::over) {
    Duration pause = kPause;
    if (self.board_.phase == SiblingsBoard::Phase::faults) {
      ++self.board_.busy;
      co_await self.request(worker, stop);
      --self.board_.busy;
      pause = std::chrono::milliseconds(worker.dice.below(kPauseMaxMs));
    }
    const auto slept = co_await runtime::sleep_for(self.runtime_, pause, stop);
    if (!slept) co_return;
  }
}

Task<void> SiblingsClients::request(Worker& worker, StopToken stop) {
  const std::size_t key = worker.dice.below(board_.keys);
  if (worker.known.contains(key) && worker.dice.chance(0.5)) {
    co_await write(worker, key, std::move(stop));
  } else {
    co_await read(worker, key, std::move(stop));
  }
}

Task<void> SiblingsClients::read(Worker& worker, std::size_t key, StopToken stop) {
  const bool is_strong = !worker.dice.chance(0.15);
  auto seen = co_await read_siblings(
      runtime_, board_, key, worker.dice.below(board_.http.size()),
      is_strong && !board_.reads_at_one ? model::Consistency::quorum : model::Consistency::one,
      is_strong, Until::after(runtime_, board_.client_limit, std::move(stop)));
  if (seen) remember(worker, key, *std::move(seen));
}

void SiblingsClients::remember(Worker& worker, std::size_t key, SiblingsSeen seen) {
  auto& known = worker.known[key];
  known.push_back(std::move(seen));
  if (known.size() > kContextsKept) known.pop_front();
}

SiblingsClients::Change SiblingsClients::draw_change(base::Prng& dice, std::size_t key) {
  Change change{.key = key};
  change.is_row = dice.chance(0.3);
  change.columns = change.is_row ? "vw" : dice.chance(0.5) ? "v" : "w";
  if (!dice.chance(0.25)) change.put = change.columns;
  return change;
}

SiblingsHistory::Write SiblingsClients::record_of(const Change& change, const SiblingsSeen& seen) {
  SiblingsHistory::Write record;
  for (const char column : change.columns) {
    const auto cell = SiblingsBoard::cell(change.key, column);
    (change.put.empty() ? record.deletes : record.puts).insert(cell);
    record.seen[cell] = seen.cells.at(cell);
  }
  return record;
}

Task<void> SiblingsClients::write(Worker& worker, std::size_t key, StopToken stop) {
  base::Prng& dice = worker.dice;
  const auto& known = worker.known[key];
  const SiblingsSeen seen = known[dice.chance(0.7) ? known.size() - 1 : dice.below(known.size())];
  const Change change = draw_change(dice, key);
  const bool by_cql = dice.chance(0.5);
  const std::size_t node = dice.below(board_.http.size());
  SiblingsHistory::Write record = record_of(change, seen);
  const auto several = [](const auto& cell) { return cell.second.size() > 1; };
  if (std::ranges::any_of(record.seen, several)) ++board_.resolved;
  board_.over_cql += by_cql ? 1 : 0;
  record.text = fmt::format("{} {} of k{} by n{} over {}", change.put.empty() ? "delete" : "put",
                            change.columns, key, node, by_cql ? "CQL" : "HTTP");
  const Value value = board_.history.invoke_write(std::move(record));
  const Until until = Until::after(runtime_, board_.client_limit, std::move(stop));
  const Fate fate = by_cql ? co_await write_by_cql(change, value, seen.context, node, until)
                           : co_await write_by_http(change, value, seen.context, node, until);
  if (fate.outcome == Outcome::refused) board_.history.refuse(value);
  if (fate.outcome != Outcome::acknowledged) {
    ++board_.met_faults;
    co_return;
  }
  board_.history.acknowledge(value);
  if (fate.context.empty()) co_return;
  SiblingsSeen next = seen;
  next.context = fate.context;
  for (const char column : change.put) {
    next.cells[SiblingsBoard::cell(key, column)].insert(value);
  }
  remember(worker, key, std::move(next));
}

Task<SiblingsClients::Fate> SiblingsClients::write_by_http(const Change& change, Value value,
                                                           std::string context, std::size_t node,
                                                           Until until) {
  std::string body;
  if (!change.put.empty()) {
    body = change.is_row ? fmt::format(R"({{"v": {0}, "w": {0}}})", value) : fmt::to_string(value);
  }
  const auto reply = co_await http_request(
      runtime_, board_.http[node], change.put.empty() ? "DELETE" : "PUT",
      target_of(change.key, change.is_row ? "" : change.columns, model::Consistency::quorum),
      std::move(body), {{"Helenus-Context", std::move(context)}}, std::move(until));
  Fate fate;
  if (!reply) {
    if (reply.failed_with(base::Errc::unavailable)) fate.outcome = Outcome::refused;
    co_return fate;
  }
  if (reply->status == 204) {
    fate = {.outcome = Outcome::acknowledged, .context = reply->header("Helenus-Context")};
  } else if (reply->status < 500) {
    fate.outcome = Outcome::refused;
    if (reply->status != 404) board_.add_problem("a write was refused", reply->body);
  }
  co_return fate;
}

Task<SiblingsClients::Fate> SiblingsClients::write_by_cql(const Change& change, Value value,
                                                          std::string context, std::size_t node,
                                                          Until until) {
  const std::string where = fmt::format("WHERE k = '{}'", SiblingsBoard::key_name(change.key));
  client::Query query;
  if (change.put.empty()) {
    query.text = fmt::format("DELETE {} FROM ks.t {}", change.is_row ? "" : change.columns, where);
  } else if (change.is_row) {
    query.text = fmt::format("UPDATE ks.t SET v = {0}, w = {0} {1}", value, where);
  } else {
    query.text = fmt::format("UPDATE ks.t SET {} = {} {}", change.columns, value, where);
  }
  const auto bytes = keyvalue::from_base64url(context);
  client::RequestOptions options{.consistency = model::Consistency::quorum};
  if (bytes) {
    options.payload.push_back({.key = std::string(cql::kContextKey), .value = *bytes});
  }
  const auto done = co_await session_.execute(std::move(query), std::move(options),
                                              {.node = board_.cql[node]}, std::move(until));
  Fate fate;
  if (done) {
    const auto next = done->payload(cql::kContextKey);
    fate.outcome = Outcome::acknowledged;
    if (next) fate.context = keyvalue::to_base64url(*next);
  } else if (!done.error().may_have_happened()) {
    fate.outcome = Outcome::refused;
    if (done.error().is(cql::protocol::ErrorCode::invalid)) {
      board_.add_problem("a write was refused", done.error().to_string());
    }
  }
  co_return fate;
}

// ---- The judge ----

Task<void> SiblingsJudge::run(StopToken stop) {
  co_await judge(std::move(stop));
  board_.phase = SiblingsBoard::Phase::over;
  board_.is_over = true;
}

Task<bool> SiblingsJudge::wait_for(std::function<bool()> condition, Duration limit,
                                   StopToken stop) {
  const auto until = runtime_.clock.now() + limit;
  while (!condition()) {
    const auto slept = co_await runtime::sleep_for(runtime_, kLookAgain, stop);
    if (!slept || runtime_.clock.now() >= until) co_return condition();
  }
  co_return true;
}

Task<void> SiblingsJudge::judge(StopToken stop) {
  const bool healed =
      co_await wait_for([this] { return board_.healed; }, Duration::max() / 2, stop);
  if (!healed) co_return;
  board_.phase = SiblingsBoard::Phase::hold;
  const bool is_quiet = co_await wait_for([this] { return board_.busy == 0 && board_.is_quiet(); },
                                          kQuietLimit, stop);
  if (!is_quiet) {
    board_.add_problem("after calm", "the nodes do not come to rest");
    co_return;
  }
  std::ignore = co_await runtime::sleep_for(runtime_, 2 * board_.client_limit + kCalmBegins, stop);
  const auto until = runtime_.clock.now() + kConvergenceLimit;
  for (;;) {
    board_.convergence.clear();
    const bool answered = co_await ask_all(model::Consistency::one, "", false, stop);
    const auto differences = check_convergence(board_.convergence);
    if (answered && differences.empty()) break;
    if (runtime_.clock.now() >= until || stop.stop_requested()) {
      if (!answered) board_.add_problem("after calm", "not all answer");
      for (const std::string& difference : differences) {
        board_.add_problem("not converged", difference);
      }
      co_return;
    }
    std::ignore = co_await runtime::sleep_for(runtime_, kRoundEvery, stop);
  }
  std::ignore = co_await ask_all(model::Consistency::one, "", true, stop);
  std::ignore = co_await ask_all(model::Consistency::all, " at ALL", true, stop);
  for (const std::string& difference : check_convergence(board_.convergence)) {
    board_.add_problem("changed after all was calm", difference);
  }
}

Task<bool> SiblingsJudge::ask_all(model::Consistency level, std::string when, bool are_strong,
                                  StopToken stop) {
  bool all_answered = true;
  for (std::size_t key = 0; key < board_.keys; ++key) {
    for (std::size_t node = 0; node < board_.http.size(); ++node) {
      const auto seen = co_await read_siblings(runtime_, board_, key, node, level, are_strong,
                                               Until::after(runtime_, board_.client_limit, stop));
      all_answered = all_answered && seen.has_value();
      if (!seen) continue;
      std::string said;
      for (const auto& [cell, values] : seen->cells) {
        said += fmt::format("{}:{} ", cell, fmt::join(values, ","));
      }
      board_.convergence.answer(SiblingsBoard::key_name(key), fmt::format("n{}{}", node, when),
                                said);
    }
  }
  co_return all_answered;
}

}  // namespace helenus::sim
