// RowsClients: a machine with some clients of the scenario `rows`, each of which writes and reads
// random rows, one request at a time, through a session that they share.
//
// RowsSchemaClient: one that makes tables and adds columns meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/prng.h"
#include "client/session.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "sim/process.h"
#include "sim/scenarios/rows/board.h"
#include "sim/scenarios/rows/statements.h"

namespace helenus::sim {

client::SessionOptions rows_session_options(const RowsBoard& board);

class RowsClients final : public Process {
 public:
  // Of those numbers. The board outlives it.
  RowsClients(runtime::Runtime& runtime, RowsBoard& board, std::vector<std::uint32_t> numbers,
              std::uint64_t seed)
      : runtime_(runtime),
        board_(board),
        numbers_(std::move(numbers)),
        seed_(seed),
        session_(runtime, rows_session_options(board)) {}

  runtime::Task<void> run(runtime::StopToken stop) override;

 private:
  struct Worker {
    std::uint32_t number = 0;
    RowsStatements statements;
    std::uint64_t calm_requests = 0;
    // Until then it writes nothing: what it wrote last may still be executed.
    RowsHistory::Moment waits_until = 0;
    RowsHistory::Value in_doubt = 0;  // 0: nothing is
  };

  static runtime::Task<void> work(RowsClients& self, std::uint32_t number, runtime::StopToken stop);
  runtime::Task<void> request(Worker& worker, runtime::StopToken stop);
  runtime::Task<void> write(Worker& worker, runtime::StopToken stop);
  runtime::Task<void> read(Worker& worker, runtime::StopToken stop);
  // As a text with literals, a text with values, or prepared.
  runtime::Task<client::Prepared> prepare(std::string text, runtime::StopToken stop);
  runtime::Task<std::vector<client::Prepared>> prepare_all(const RowsWrite& write,
                                                           runtime::StopToken stop);
  client::Route draw_route(base::Prng& dice) const;
  void note_failure(const client::RequestError& error, const std::string& what, bool is_calm);

  runtime::Runtime& runtime_;
  RowsBoard& board_;
  const std::vector<std::uint32_t> numbers_;
  const std::uint64_t seed_;
  client::Session session_;
  std::map<std::string, client::Prepared> prepared_;
  bool is_disappointed_ = false;  // a request did not leave
};

class RowsSchemaClient final : public Process {
 public:
  RowsSchemaClient(runtime::Runtime& runtime, RowsBoard& board, std::uint64_t seed)
      : runtime_(runtime), board_(board), dice_(seed) {}

  runtime::Task<void> run(runtime::StopToken stop) override;

 private:
  RowsBoard::SchemaChange draw_change(std::uint64_t number);

  runtime::Runtime& runtime_;
  RowsBoard& board_;
  base::Prng dice_;
};

}  // namespace helenus::sim
