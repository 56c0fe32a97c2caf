// CountersClients: a machine with some clients of the scenario `counters`, each of which adds to
// counters and reads them, one operation at a time, through a session that they share. The first
// one of all judges at the end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/prng.h"
#include "client/session.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "sim/process.h"
#include "sim/scenarios/counters/board.h"

namespace helenus::sim {

class CountersClients final : public Process {
 public:
  // The board outlives it.
  // Its clients have counters of their own from `own_key` on.
  CountersClients(runtime::Runtime& runtime, CountersBoard& board, std::size_t workers,
                  std::size_t own_key, bool is_judge, std::uint64_t seed);

  runtime::Task<void> run(runtime::StopToken stop) override;

 private:
  struct Worker {
    base::Prng dice;
    std::size_t own_key = 0;
    std::vector<std::size_t> unsettled = {};  // by their place on the board
    std::vector<std::size_t> own = {};        // of its own counter
  };

  static runtime::Task<void> work(CountersClients& self, std::size_t number,
                                  runtime::StopToken stop);
  runtime::Task<void> add(Worker& worker, runtime::StopToken stop);
  // Until it is acknowledged, or was tried that often.
  runtime::Task<void> settle(Worker& worker, std::size_t operation, int attempts,
                             runtime::StopToken stop);
  enum class Outcome : std::uint8_t { acknowledged, failed };
  // Through that node, for so long.
  runtime::Task<Outcome> attempt(std::size_t operation, runtime::Address node,
                                 runtime::Duration limit, runtime::StopToken stop);
  // Deletes its own counter, until that is acknowledged, and may send again what was counted.
  runtime::Task<void> remove(Worker& worker, runtime::StopToken stop);
  runtime::Task<void> read(Worker& worker, runtime::StopToken stop);
  runtime::Task<std::optional<std::int64_t>> read_counter(std::size_t key, runtime::Address node,
                                                          model::Consistency level,
                                                          runtime::StopToken stop);
  static runtime::Task<void> judge(CountersClients& self, runtime::StopToken stop);
  runtime::Address draw_node(base::Prng& dice) const {
    return board_.nodes[dice.below(board_.nodes.size())];
  }
  std::array<std::byte, 16> draw_id(base::Prng& dice) const;

  runtime::Runtime& runtime_;
  CountersBoard& board_;
  const std::size_t workers_;
  const std::size_t own_key_;
  const bool is_judge_;
  const std::uint64_t seed_;
  client::Session session_;
};

}  // namespace helenus::sim
