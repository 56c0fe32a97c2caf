#include "sim/scenarios/rows/clients.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/sleep.h"
#include "runtime/when_all.h"

namespace helenus::sim {

using runtime::StopToken;
using runtime::Task;
using runtime::Until;

namespace {

constexpr Duration kLookAgain = 20ms;
constexpr std::uint64_t kThinkMaxMs = 60;
// Longer, for one who has no connection.
constexpr Duration kDisappointed = 300ms;
constexpr std::uint64_t kCalmRequests = 15;
constexpr Duration kSchemaLimit = 20s;
constexpr std::uint64_t kSchemaChangesMax = 8;

RowsHistory::Moment moments(Duration duration) {
  return static_cast<RowsHistory::Moment>(duration / 1ns);
}

// A batch of one partition is one write, so that one which was not admitted left nothing.
bool was_not_executed(const client::RequestError& error) {
  return !error.may_have_happened() || error.is(cql::protocol::ErrorCode::overloaded);
}

}  // namespace

client::SessionOptions rows_session_options(const RowsBoard& board) {
  client::SessionOptions options{.contact_points = board.contact_points};
  options.connect_timeout = 2s;
  options.back_off_max = 1s;
  options.connection.heartbeat_interval = 2s;
  options.connection.heartbeat_timeout = board.node_limit;
  return options;
}

Task<void> RowsClients::run(StopToken stop) {
  // Where it fails, the session goes on trying.
  std::ignore = co_await session_.start(Until::after(runtime_, 10s, stop));
  std::vector<Task<void>> workers;
  for (const std::uint32_t number : numbers_) workers.push_back(work(*this, number, stop));
  co_await runtime::when_all(std::move(workers));
  co_await session_.stop();
}

Task<void> RowsClients::work(RowsClients& self, std::uint32_t number, StopToken stop) {
  RowsBoard& board = self.board_;
  Worker worker{.number = number,
                .statements = RowsStatements(board.shape, number, base::Prng(self.seed_ + number))};
  while (!stop.stop_requested() && board.phase != RowsBoard::Phase::over) {
    const bool is_calm = board.phase == RowsBoard::Phase::calm;
    const bool rests =
        board.phase == RowsBoard::Phase::hold || (is_calm && worker.calm_requests >= kCalmRequests);
    Duration pause = kLookAgain;
    if (!rests) {
      co_await self.request(worker, stop);
      if (is_calm && ++worker.calm_requests == kCalmRequests) ++board.calm_clients;
      pause = std::chrono::milliseconds(worker.statements.dice().below(kThinkMaxMs));
      if (std::exchange(self.is_disappointed_, false)) pause = kDisappointed;
    }
    const auto slept = co_await runtime::sleep_for(self.runtime_, pause, stop);
    if (!slept) co_return;
  }
}

Task<void> RowsClients::request(Worker& worker, StopToken stop) {
  ++board_.busy;
  const bool may_write = board_.now() >= worker.waits_until;
  if (may_write && worker.in_doubt != 0) {
    // Calm ends whatever is unknown, too.
    if (!board_.history.write(worker.in_doubt).ended) {
      board_.history.end(board_.now(), worker.in_doubt);
    }
    worker.in_doubt = 0;
  }
  if (may_write && worker.statements.dice().chance(0.45)) {
    co_await write(worker, std::move(stop));
  } else {
    co_await read(worker, std::move(stop));
  }
  --board_.busy;
}

void RowsClients::note_failure(const client::RequestError& error, const std::string& what,
                               bool is_calm) {
  if (is_calm && !board_.is_world_slow) {
    board_.add_problem("in calm: " + error.to_string(), what);
  } else if (error.fate() == client::Fate::not_sent) {
    is_disappointed_ = true;
  } else {
    ++board_.met_faults;
  }
}

client::Route RowsClients::draw_route(base::Prng& dice) const {
  if (dice.chance(0.5)) return {};
  return {.node = board_.nodes[dice.below(board_.nodes.size())]};
}

Task<client::Prepared> RowsClients::prepare(std::string text, StopToken stop) {
  if (const auto found = prepared_.find(text); found != prepared_.end()) co_return found->second;
  const auto prepared = co_await session_.prepare(
      text, {}, Until::after(runtime_, board_.client_limit, std::move(stop)));
  if (!prepared) co_return nullptr;
  prepared_[text] = *prepared;
  co_return *prepared;
}

Task<std::vector<client::Prepared>> RowsClients::prepare_all(const RowsWrite& write,
                                                             StopToken stop) {
  std::vector<client::Prepared> all;
  for (const RowsPart& part : write.parts) {
    auto prepared = co_await prepare(part.text, stop);
    all.push_back(std::move(prepared));
  }
  co_return all;
}

namespace {

std::variant<client::Query, client::Execution> statement_of(const RowsPart& part,
                                                            const client::Prepared& prepared,
                                                            RowsHistory::Value value,
                                                            bool literally) {
  if (prepared != nullptr) {
    return client::Execution{.prepared = prepared, .values = part.bound(value)};
  }
  if (literally) return client::Query{.text = part.literally(value)};
  return client::Query{.text = part.text, .values = part.bound(value)};
}

client::Statement statement_of(const RowsWrite& write,
                               const std::vector<client::Prepared>& prepared,
                               RowsHistory::Value value, base::Prng& dice) {
  if (write.parts.size() == 1) {
    return std::visit([](auto one) { return client::Statement(std::move(one)); },
                      statement_of(write.parts[0], prepared[0], value, dice.chance(0.5)));
  }
  client::Batch batch{
      .type = dice.chance(0.5) ? client::Batch::Type::logged : client::Batch::Type::unlogged,
      .statements = {}};
  for (std::size_t i = 0; i < write.parts.size(); ++i) {
    batch.statements.push_back(statement_of(write.parts[i], prepared[i], value, dice.chance(0.5)));
  }
  return batch;
}

}  // namespace

Task<void> RowsClients::write(Worker& worker, StopToken stop) {
  base::Prng& dice = worker.statements.dice();
  const std::size_t keyspace = worker.statements.draw_keyspace();
  RowsWrite write = worker.statements.draw_write(keyspace);
  const bool is_calm = board_.phase == RowsBoard::Phase::calm;
  std::vector<client::Prepared> prepared(write.parts.size());
  if (dice.chance(0.5)) prepared = co_await prepare_all(write, stop);

  RowsHistory& history = board_.history;
  RowsHistory::Write record{.client = worker.number, .puts = write.puts, .deletes = write.deletes};
  if (write.ttl_seconds) record.ttl = moments(*write.ttl_seconds * 1s);
  record.text = write.to_string(history.writes().size() + 1);
  const std::string text = record.text;
  const RowsHistory::Moment began_at = board_.now();
  const RowsHistory::Value value = history.invoke_write(began_at, std::move(record));
  client::RequestOptions options{.consistency = board_.shape.keyspaces[keyspace].write_level};
  if (board_.has_client_timestamps) options.default_timestamp_us = board_.next_timestamp();
  const auto done = co_await session_.execute(
      statement_of(write, prepared, value, dice), std::move(options), draw_route(dice),
      Until::after(runtime_, board_.client_limit, std::move(stop)));
  if (done) {
    history.acknowledge(board_.now(), value);
    ++board_.done;
    co_return;
  }
  note_failure(done.error(), text, is_calm);
  if (was_not_executed(done.error())) {
    history.refuse(board_.now(), value);
  } else if (worker.number % 2 == 0) {
    // A patient client, who goes on when the write is executed no more.
    worker.in_doubt = value;
    worker.waits_until = std::max(board_.now(), began_at + moments(board_.late_at_most()));
  }
}

Task<void> RowsClients::read(Worker& worker, StopToken stop) {
  base::Prng& dice = worker.statements.dice();
  const std::size_t keyspace = worker.statements.draw_keyspace();
  const RowsRead asked = worker.statements.draw_read(keyspace);
  const bool is_calm = board_.phase == RowsBoard::Phase::calm;
  const bool is_strong = !dice.chance(0.1);
  client::RequestOptions options{.consistency = is_strong
                                                    ? board_.shape.keyspaces[keyspace].read_level
                                                    : model::Consistency::one,
                                 .page_size = asked.page_size};
  client::Prepared prepared;
  if (dice.chance(0.5)) prepared = co_await prepare(asked.part.text, stop);
  const auto statement = std::visit([](auto one) { return client::Statement(std::move(one)); },
                                    statement_of(asked.part, prepared, 0, dice.chance(0.5)));
  const std::string text = asked.part.literally(0);
  const std::size_t number = board_.history.invoke_read(
      board_.now(), {.client = worker.number,
                     .is_strong = is_strong,
                     .spreads = options.consistency == model::Consistency::quorum,
                     .text = fmt::format("{} at {}", text, name_of(options.consistency))});
  RowsSeen seen(board_.shape, asked);
  do {
    const auto page = co_await session_.execute(statement, options, draw_route(dice),
                                                Until::after(runtime_, board_.client_limit, stop));
    if (!page) {
      note_failure(page.error(), text, is_calm);
      co_return;
    }
    if (const auto problem = seen.add(*page)) {
      board_.add_problem(*problem, text);
    }
    options.paging_state = page->paging_state();
  } while (options.paging_state);
  board_.history.return_read(board_.now(), number, std::move(seen).take());
  ++board_.done;
  ++board_.reads_done;
}

// ---- The schema ----

RowsBoard::SchemaChange RowsSchemaClient::draw_change(std::uint64_t number) {
  const RowsKeyspace& keyspace = board_.shape.keyspaces[dice_.below(board_.shape.keyspaces.size())];
  if (dice_.chance(0.5)) {
    return {.text = fmt::format("CREATE TABLE {}.x{} (k int PRIMARY KEY, v int)", keyspace.name,
                                number),
            .probe = fmt::format("SELECT v FROM {}.x{} WHERE k = 1", keyspace.name, number)};
  }
  return {.text = fmt::format("ALTER TABLE {} ADD a{} int", keyspace.table(), number),
          .probe = fmt::format("SELECT a{} FROM {} WHERE k = 0", number, keyspace.table())};
}

Task<void> RowsSchemaClient::run(StopToken stop) {
  client::Session session(runtime_, rows_session_options(board_));
  std::ignore = co_await session.start(Until::after(runtime_, 10s, stop));
  for (std::uint64_t number = 0; number < kSchemaChangesMax; ++number) {
    const auto pause = std::chrono::milliseconds(dice_.below(8'000));
    const auto slept = co_await runtime::sleep_for(runtime_, pause, stop);
    if (!slept || board_.phase != RowsBoard::Phase::faults) break;
    RowsBoard::SchemaChange change = draw_change(number);
    ++board_.busy;
    const auto made = co_await session.execute(client::Query{.text = change.text}, {}, {},
                                               Until::after(runtime_, kSchemaLimit, stop));
    --board_.busy;
    if (made) board_.schema_changes.push_back(std::move(change));
  }
  co_await session.stop();
}

}  // namespace helenus::sim
