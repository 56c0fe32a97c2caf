#include "sim/scenarios/counters/clients.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/codec.h"
#include "runtime/sleep.h"
#include "runtime/when_all.h"

namespace helenus::sim {

using runtime::StopToken;
using runtime::Task;
using runtime::Until;

namespace {

constexpr std::uint64_t kPauseMaxMs = 60;
constexpr int kAttempts = 5;
constexpr std::uint64_t kShortestAttemptMs = 20;
constexpr std::uint64_t kLongestAttemptMs = 3'000;
constexpr Duration kPauseOfCalm = 200ms;
constexpr std::int64_t kAmountMax = 9;
// How often a client adds to its own counter, and deletes it where it might read.
constexpr double kAddsToItsOwn = 0.3;
constexpr double kDeletes = 0.3;

client::SessionOptions session_options(const CountersBoard& board) {
  client::SessionOptions options{.contact_points = board.nodes};
  options.connect_timeout = 2s;
  options.back_off_max = 1s;
  options.connection.heartbeat_interval = 2s;
  options.connection.heartbeat_timeout = board.node_limit;
  return options;
}

std::string update_of(const std::pair<std::size_t, std::int64_t>& part) {
  return fmt::format("UPDATE counted.c SET n = n + {} WHERE k = {}", part.second, part.first);
}

client::Statement statement_of(const CountersBoard::Operation& operation) {
  if (operation.parts.size() == 1) return client::Query{.text = update_of(operation.parts[0])};
  client::Batch batch{.type = client::Batch::Type::counter, .statements = {}};
  for (const auto& part : operation.parts) {
    batch.statements.emplace_back(client::Query{.text = update_of(part)});
  }
  return batch;
}

}  // namespace

CountersClients::CountersClients(runtime::Runtime& runtime, CountersBoard& board,
                                 std::size_t workers, std::size_t own_key, bool is_judge,
                                 std::uint64_t seed)
    : runtime_(runtime),
      board_(board),
      workers_(workers),
      own_key_(own_key),
      is_judge_(is_judge),
      seed_(seed),
      session_(runtime, session_options(board)) {}

Task<void> CountersClients::run(StopToken stop) {
  // Where it fails, the session goes on trying.
  std::ignore = co_await session_.start(Until::after(runtime_, 10s, stop));
  std::vector<Task<void>> workers;
  for (std::size_t i = 0; i < workers_; ++i) workers.push_back(work(*this, i, stop));
  if (is_judge_) workers.push_back(judge(*this, stop));
  co_await runtime::when_all(std::move(workers));
  co_await session_.stop();
}

Task<void> CountersClients::work(CountersClients& self, std::size_t number, StopToken stop) {
  CountersBoard& board = self.board_;
  Worker worker{.dice = base::Prng(self.seed_ + number), .own_key = self.own_key_ + number};
  while (board.phase != CountersBoard::Phase::calm) {
    if (board.phase == CountersBoard::Phase::faults) {
      const bool adds = worker.dice.chance(0.8);
      if (adds) {
        co_await self.add(worker, stop);
      } else if (worker.dice.chance(kDeletes)) {
        co_await self.remove(worker, stop);
      } else {
        co_await self.read(worker, stop);
      }
    }
    const auto pause = std::chrono::milliseconds(1 + worker.dice.below(kPauseMaxMs));
    if (!co_await runtime::sleep_for(self.runtime_, pause, stop)) co_return;
  }
  // What nobody knows the outcome of has an id: it is tried until it is known.
  while (!worker.unsettled.empty()) {
    for (const std::size_t operation : std::exchange(worker.unsettled, {})) {
      co_await self.settle(worker, operation, 1, stop);
    }
    if (!co_await runtime::sleep_for(self.runtime_, kPauseOfCalm, stop)) co_return;
  }
  ++board.workers_done;
}

std::array<std::byte, 16> CountersClients::draw_id(base::Prng& dice) const {
  const auto time = runtime_.clock.wall_now().since_origin() / 1ms;
  std::array<std::byte, 16> id{};
  base::store_be(id.data(), static_cast<std::uint64_t>(time) << 16 | 0x7000U | dice.below(0x1000));
  base::store_be(id.data() + 8, dice.next() >> 2 | std::uint64_t{1} << 63);
  return id;
}

Task<void> CountersClients::add(Worker& worker, StopToken stop) {
  base::Prng& dice = worker.dice;
  CountersBoard::Operation operation{.id = draw_id(dice), .parts = {}};
  const auto amount = [&] { return 1 + static_cast<std::int64_t>(dice.below(kAmountMax)); };
  if (dice.chance(kAddsToItsOwn)) {
    operation.parts.emplace_back(worker.own_key, amount());
    worker.own.push_back(board_.operations.size());
  } else {
    const std::size_t parts = dice.chance(0.2) ? 2 : 1;
    const std::size_t first = dice.below(CountersBoard::kSharedKeys);
    for (std::size_t i = 0; i < parts; ++i) {
      operation.parts.emplace_back((first + i) % CountersBoard::kSharedKeys, amount());
    }
  }
  board_.operations.push_back(std::move(operation));
  co_await settle(worker, board_.operations.size() - 1, kAttempts, std::move(stop));
}

Task<void> CountersClients::settle(Worker& worker, std::size_t operation, int attempts,
                                   StopToken stop) {
  base::Prng& dice = worker.dice;
  CountersBoard::Operation& mine = board_.operations[operation];
  for (int i = 0; i < attempts && !mine.is_acknowledged && !mine.is_given_up; ++i) {
    // Some do not wait for the answer before they try elsewhere, as drivers that speculate.
    const std::size_t at_once = dice.chance(0.2) ? 2 : 1;
    std::vector<Task<Outcome>> sent;
    for (std::size_t one = 0; one < at_once; ++one) {
      const bool is_patient = board_.phase == CountersBoard::Phase::calm || dice.chance(0.3);
      const auto limit =
          is_patient
              ? board_.client_limit
              : std::chrono::milliseconds(kShortestAttemptMs + dice.below(kLongestAttemptMs));
      sent.push_back(attempt(operation, draw_node(dice), limit, stop));
    }
    const std::vector<Outcome> outcomes = co_await runtime::when_all(std::move(sent));
    if (std::ranges::find(outcomes, Outcome::acknowledged) != outcomes.end()) {
      mine.is_acknowledged = true;
    }
    const auto pause = std::chrono::milliseconds(dice.below(kPauseMaxMs));
    if (!co_await runtime::sleep_for(runtime_, pause, stop)) co_return;
  }
  if (!mine.is_acknowledged && !mine.is_given_up) {
    worker.unsettled.push_back(operation);
  } else if (mine.is_acknowledged && dice.chance(0.3)) {
    const Outcome again = co_await attempt(operation, draw_node(dice), board_.client_limit, stop);
    board_.acknowledged_again += again == Outcome::acknowledged ? 1 : 0;
  }
}

Task<CountersClients::Outcome> CountersClients::attempt(std::size_t operation,
                                                        runtime::Address node, Duration limit,
                                                        StopToken stop) {
  const CountersBoard::Operation& mine = board_.operations[operation];
  client::RequestOptions options{.consistency = model::Consistency::quorum};
  if (board_.with_ids) {
    options.payload.push_back({.key = "helenus-op", .value = base::Bytes::copy_of(mine.id)});
  }
  const auto done =
      co_await session_.execute(statement_of(mine), std::move(options), {.node = node},
                                Until::after(runtime_, limit, std::move(stop)));
  if (done) co_return Outcome::acknowledged;
  ++board_.attempts_failed;
  if (done.error().is(cql::protocol::ErrorCode::invalid)) {
    const std::string text = done.error().to_string();
    const bool is_expired = text.find("operations are remembered") != std::string::npos;
    const bool is_ahead = text.find("in the future") != std::string::npos;
    if (is_expired) board_.operations[operation].is_given_up = true;
    if (!is_expired && !is_ahead) board_.add_problem(text);
  }
  co_return Outcome::failed;
}

Task<std::optional<std::int64_t>> CountersClients::read_counter(std::size_t key,
                                                                runtime::Address node,
                                                                model::Consistency level,
                                                                StopToken stop) {
  const auto read = co_await session_.execute(
      client::Query{.text = fmt::format("SELECT n FROM counted.c WHERE k = {}", key)},
      {.consistency = level}, {.node = node},
      Until::after(runtime_, board_.client_limit, std::move(stop)));
  if (!read) co_return std::nullopt;
  ++board_.reads;
  for (const client::Row row : read->rows()) {
    const auto value = row.get<std::optional<std::int64_t>>("n");
    if (value) co_return value->value_or(0);
    board_.add_problem(fmt::format("{}", value.error()));
  }
  co_return 0;
}

Task<void> CountersClients::remove(Worker& worker, StopToken stop) {
  base::Prng& dice = worker.dice;
  for (bool is_done = false; !is_done;) {
    // Each attempt is a delete of its own: between them nobody adds to the counter.
    const auto done = co_await session_.execute(
        client::Query{.text = fmt::format("DELETE FROM counted.c WHERE k = {}", worker.own_key)},
        {.consistency = model::Consistency::quorum}, {.node = draw_node(dice)},
        Until::after(runtime_, board_.client_limit, stop));
    is_done = done.has_value();
    const auto pause = std::chrono::milliseconds(1 + dice.below(kPauseMaxMs));
    if (!is_done && !co_await runtime::sleep_for(runtime_, pause, stop)) co_return;
  }
  board_.note_deleted(worker.own_key);
  // A repetition of what was deleted counts no more than before.
  for (const std::size_t operation : std::exchange(worker.own, {})) {
    if (!board_.operations[operation].is_deleted || !dice.chance(0.3)) continue;
    co_await attempt(operation, draw_node(dice), board_.client_limit, stop);
  }
}

Task<void> CountersClients::read(Worker& worker, StopToken stop) {
  const bool is_own = worker.dice.chance(kAddsToItsOwn);
  const std::size_t key = is_own ? worker.own_key : worker.dice.below(CountersBoard::kSharedKeys);
  const std::int64_t least = board_.least(key);
  const auto seen = co_await read_counter(key, draw_node(worker.dice), model::Consistency::quorum,
                                          std::move(stop));
  if (!seen) co_return;
  const std::int64_t most = board_.most(key);
  if (*seen < least || *seen > most) {
    board_.add_problem(
        fmt::format("counter {} was read as {}, and {} were acknowledged before, {} "
                    "begun",
                    key, *seen, least, most));
  }
}

Task<void> CountersClients::judge(CountersClients& self, StopToken stop) {
  CountersBoard& board = self.board_;
  while (board.phase != CountersBoard::Phase::calm || board.workers_done < board.workers ||
         !board.is_quiet()) {
    if (!co_await runtime::sleep_for(self.runtime_, kPauseOfCalm, stop)) co_return;
  }
  for (std::size_t key = 0; key < CountersBoard::kKeys; ++key) {
    for (const runtime::Address& node : board.nodes) {
      for (const auto level : {model::Consistency::quorum, model::Consistency::all}) {
        std::optional<std::int64_t> seen;
        while (!seen) {
          seen = co_await self.read_counter(key, node, level, stop);
          if (!seen && !co_await runtime::sleep_for(self.runtime_, kPauseOfCalm, stop)) co_return;
        }
        const std::int64_t least = board.least(key);
        const std::int64_t most = board.most(key);
        if (*seen >= least && *seen <= most) continue;
        board.add_problem(
            fmt::format("counter {} is {} at the end, by {} at {}, and {} to {} were "
                        "added",
                        key, *seen, node, name_of(level), least, most));
      }
    }
  }
  board.is_over = true;
}

}  // namespace helenus::sim
