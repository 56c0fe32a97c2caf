// RowsJudge: what is asked of the scenario `rows` when the faults are over. It waits for calm, lets
// the clients make requests that must succeed, and then asks every node for every row: first until
// all say the same, then again at ALL, and once more some time later.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "client/session.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "sim/process.h"
#include "sim/scenarios/rows/board.h"

namespace helenus::sim {

class RowsJudge final : public Process {
 public:
  // The board outlives it.
  RowsJudge(runtime::Runtime& runtime, RowsBoard& board)
      : runtime_(runtime), board_(board), session_(runtime, rows_options(board)) {}

  runtime::Task<void> run(runtime::StopToken stop) override;

 private:
  static client::SessionOptions rows_options(const RowsBoard& board);

  runtime::Task<void> judge(runtime::StopToken stop);
  // Whether it holds before the limit has passed.
  runtime::Task<bool> wait_for(std::function<bool()> condition, Duration limit,
                               runtime::StopToken stop);
  runtime::Task<bool> become_calm(runtime::StopToken stop);
  runtime::Task<void> make_requests(runtime::StopToken stop);
  runtime::Task<void> converge(runtime::StopToken stop);
  // Every row through every node, into the convergence history, and into that of rows if they say
  // what is true. Whether all succeeded.
  runtime::Task<bool> ask_all(model::Consistency level, std::string when, bool are_strong,
                              runtime::StopToken stop);
  runtime::Task<client::RequestResult<client::ResultSet>> ask(std::string text,
                                                              model::Consistency level,
                                                              std::size_t node,
                                                              runtime::StopToken stop);
  runtime::Task<void> ask_for_schema(runtime::StopToken stop);
  // Every node for the rows that the index of each table has: they are those that a scan has.
  // Requires: all rows are equal everywhere, and nobody writes.
  runtime::Task<void> ask_indexes(runtime::StopToken stop);

  runtime::Runtime& runtime_;
  RowsBoard& board_;
  client::Session session_;
};

}  // namespace helenus::sim
