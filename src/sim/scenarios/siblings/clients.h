// SiblingsClients: a machine with some clients of the scenario `siblings`. Each reads rows over
// HTTP and keeps the contexts that come with them, the newest or an older one; and writes and
// deletes under them, over HTTP or over CQL, through any node.
//
// SiblingsJudge: waits for calm, then asks every node for every row, until all say the same.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/prng.h"
#include "client/session.h"
#include "model/consistency.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "sim/process.h"
#include "sim/scenarios/siblings/board.h"
#include "sim/scenarios/siblings/http_client.h"

namespace helenus::sim {

// What one read of a row said.
struct SiblingsSeen {
  std::string context;  // as in the header
  SiblingsHistory::Known cells;
  std::string body;
};

// Reads a row, and notes it in the history. None if that failed.
runtime::Task<std::optional<SiblingsSeen>> read_siblings(runtime::Runtime& runtime,
                                                         SiblingsBoard& board, std::size_t key,
                                                         std::size_t node, model::Consistency level,
                                                         bool is_strong, runtime::Until until);

class SiblingsClients final : public Process {
 public:
  // So many. The board outlives it.
  SiblingsClients(runtime::Runtime& runtime, SiblingsBoard& board, std::size_t count,
                  std::uint64_t seed);

  runtime::Task<void> run(runtime::StopToken stop) override;

 private:
  // What a client writes, and how it says so.
  struct Change {
    std::size_t key = 0;
    std::string columns = {};  // that it changes: "v", "w" or "vw"
    std::string put = {};      // of them: those that get a value
    bool is_row = false;
  };
  struct Worker {
    base::Prng dice;
    // By key, the newest last.
    std::map<std::size_t, std::deque<SiblingsSeen>> known = {};
  };
  // What became of a write.
  struct Fate {
    SiblingsHistory::Outcome outcome = SiblingsHistory::Outcome::unknown;
    std::string context = {};  // with the write in it, if it was acknowledged
  };

  static runtime::Task<void> work(SiblingsClients& self, std::uint64_t seed,
                                  runtime::StopToken stop);
  runtime::Task<void> request(Worker& worker, runtime::StopToken stop);
  runtime::Task<void> read(Worker& worker, std::size_t key, runtime::StopToken stop);
  runtime::Task<void> write(Worker& worker, std::size_t key, runtime::StopToken stop);
  static Change draw_change(base::Prng& dice, std::size_t key);
  static SiblingsHistory::Write record_of(const Change& change, const SiblingsSeen& seen);
  runtime::Task<Fate> write_by_http(const Change& change, SiblingsHistory::Value value,
                                    std::string context, std::size_t node, runtime::Until until);
  runtime::Task<Fate> write_by_cql(const Change& change, SiblingsHistory::Value value,
                                   std::string context, std::size_t node, runtime::Until until);
  void remember(Worker& worker, std::size_t key, SiblingsSeen seen);

  runtime::Runtime& runtime_;
  SiblingsBoard& board_;
  const std::size_t count_;
  const std::uint64_t seed_;
  client::Session session_;
};

class SiblingsJudge final : public Process {
 public:
  SiblingsJudge(runtime::Runtime& runtime, SiblingsBoard& board)
      : runtime_(runtime), board_(board) {}

  runtime::Task<void> run(runtime::StopToken stop) override;

 private:
  runtime::Task<void> judge(runtime::StopToken stop);
  runtime::Task<bool> wait_for(std::function<bool()> condition, Duration limit,
                               runtime::StopToken stop);
  // Whether all answered.
  runtime::Task<bool> ask_all(model::Consistency level, std::string when, bool are_strong,
                              runtime::StopToken stop);

  runtime::Runtime& runtime_;
  SiblingsBoard& board_;
};

}  // namespace helenus::sim
