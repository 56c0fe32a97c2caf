// RowsBoard: what the clients of the scenario `rows` share: what they are to do, what they saw, and
// what went wrong. No crash touches it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/address.h"
#include "sim/checkers/convergence_checker.h"
#include "sim/checkers/rows_history.h"
#include "sim/scenarios/rows/shape.h"
#include "sim/world_time.h"

namespace helenus::sim {

struct RowsBoard {
  enum class Phase : std::uint8_t {
    hold,    // nobody begins anything
    faults,  // requests may fail
    calm,    // every request must succeed; each client makes a number of them
    over,
  };
  Phase phase = Phase::hold;
  bool healed = false;
  RowsShape shape;
  // How long a node may take for a request, and how long clients wait for the answer.
  Duration node_limit{0};
  Duration client_limit{0};
  // After how long nodes reset clients that they do not hear of, or that waited while they stood
  // still (R3).
  Duration client_lost_after{0};
  // Nodes do not wait for each other as long as some packets take in calm, too: then not every
  // request of the calm can succeed.
  bool is_world_slow = false;
  std::vector<runtime::Address> nodes;  // that are asked now
  // Also of those that come later, and of those that have gone.
  std::vector<runtime::Address> contact_points;
  // Whether writes have the time of their client; else that of their coordinator.
  bool has_client_timestamps = true;
  std::function<WorldTime()> true_time;
  std::function<bool()> is_quiet;  // all nodes are up, and see each other
  // Asks every node whether it is at rest; of so many the answer is not there yet.
  std::function<void()> begin_rest_check;
  std::size_t rest_checks_left = 0;
  // By how much clocks differed so far, and what else may delay or round a time to live.
  std::function<Duration()> expiry_slack;

  RowsHistory history;
  ConvergenceHistory convergence;
  // A statement that was acknowledged, and one that fails where it is not known.
  struct SchemaChange {
    std::string text;
    std::string probe;
  };
  std::vector<SchemaChange> schema_changes;

  std::size_t busy = 0;          // requests under way
  std::uint64_t done = 0;        // requests that succeeded
  std::uint64_t met_faults = 0;  // requests that failed while faults struck
  std::uint64_t reads_done = 0;
  std::size_t calm_clients = 0;  // that have made all their requests of the calm
  std::uint64_t rounds_until_equal = 0;
  std::vector<std::string> problems;
  std::map<std::string, std::size_t> problems_of_kind;
  bool is_over = false;

  // The first ones of each kind are kept.
  void add_problem(const std::string& kind, const std::string& what) {
    constexpr std::size_t kKeptOfKind = 3;
    if (++problems_of_kind[kind] <= kKeptOfKind) {
      problems.push_back(fmt::format("{}: {}", kind, what));
    }
  }

  // How long after it was sent a write may be executed, whatever became of its client: what is sent
  // again over a connection that was cut off, where it stood still and waited, and what the node
  // then takes. Clocks may be a tenth too slow.
  Duration late_at_most() const { return (4 * client_lost_after + node_limit) * 11 / 10 + 1s; }
  RowsHistory::Moment now() const {
    return static_cast<RowsHistory::Moment>(true_time().since_origin() / 1ns);
  }
  // Each later than all before, in microseconds.
  std::int64_t next_timestamp() {
    constexpr std::int64_t kBegins = 1'767'225'600'000'000;  // as clocks of the world do
    last_timestamp_ = std::max(
        last_timestamp_ + 1, kBegins + static_cast<std::int64_t>(true_time().since_origin() / 1us));
    return last_timestamp_;
  }

 private:
  std::int64_t last_timestamp_ = 0;
};

}  // namespace helenus::sim
