// CountersBoard: what the clients of the scenario `counters` did, and what was wrong with it.
// Outlives the processes that write on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/address.h"
#include "sim/world_time.h"

namespace helenus::sim {

struct CountersBoard {
  // Those that all clients add to, and one for each client that it alone uses, and deletes.
  static constexpr std::size_t kSharedKeys = 6;
  static constexpr std::size_t kKeys = 12;

  enum class Phase : std::uint8_t {
    hold,    // nobody begins anything
    faults,  // requests may fail
    calm,    // what is not acknowledged yet is tried until it is; then all counters are read
    over,
  };

  struct Operation {
    std::array<std::byte, 16> id{};
    // Keys, each once, and how much is added to them.
    std::vector<std::pair<std::size_t, std::int64_t>> parts;
    bool is_acknowledged = false;
    // Refused as too old: nobody can know any more.
    bool is_given_up = false;
    // Of a counter that was deleted since: whether it was acknowledged before the delete began, or
    // its outcome was not known then.
    bool is_deleted = false;
    bool may_be_deleted = false;
  };

  Phase phase = Phase::hold;
  bool with_ids = true;
  Duration node_limit{0};
  Duration client_limit{0};
  std::vector<runtime::Address> nodes;
  std::function<bool()> is_quiet;

  // All that were begun.
  std::deque<Operation> operations;
  std::size_t workers = 0;
  std::size_t workers_done = 0;  // whose operations are all settled
  std::uint64_t acknowledged_again = 0;
  std::uint64_t attempts_failed = 0;
  std::uint64_t reads = 0;
  std::uint64_t deletes = 0;
  std::vector<std::string> problems;
  bool is_over = false;

  // A delete of the counter was acknowledged, which began when only these were.
  void note_deleted(std::size_t key) {
    for (Operation& one : operations) {
      if (one.parts.front().first != key) continue;
      (one.is_acknowledged ? one.is_deleted : one.may_be_deleted) = true;
    }
    ++deletes;
  }

  // The least and the most that a reader may see of a counter who begins now, or ends now.
  std::int64_t least(std::size_t key) const {
    return sum(key, [](const Operation& one) {
      return one.is_acknowledged && !one.is_deleted && !one.may_be_deleted;
    });
  }
  std::int64_t most(std::size_t key) const {
    return sum(key, [](const Operation& one) { return !one.is_deleted; });
  }
  std::size_t acknowledged() const {
    std::size_t count = 0;
    for (const Operation& one : operations) count += one.is_acknowledged ? 1 : 0;
    return count;
  }
  void add_problem(std::string what) {
    constexpr std::size_t kKept = 12;
    if (problems.size() < kKept) problems.push_back(std::move(what));
  }

 private:
  template <class Counts>
  std::int64_t sum(std::size_t key, Counts counts) const {
    std::int64_t sum = 0;
    for (const Operation& one : operations) {
      if (!counts(one)) continue;
      for (const auto& [its_key, amount] : one.parts) sum += its_key == key ? amount : 0;
    }
    return sum;
  }
};

}  // namespace helenus::sim
