// SiblingsBoard: what the clients of the scenario `siblings` share: what they are to do, what they
// saw, and what went wrong. No crash touches it.
//
//   CREATE TABLE ks.t (k text PRIMARY KEY, v bigint, w bigint) WITH conflicts = 'siblings'
//
// A cell is one of the two columns of one of few keys. A value is the number of its write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/address.h"
#include "sim/checkers/convergence_checker.h"
#include "sim/checkers/siblings_checker.h"
#include "sim/world_time.h"

namespace helenus::sim {

struct SiblingsBoard {
  enum class Phase : std::uint8_t { faults, hold, over };

  static SiblingsHistory::Cell cell(std::size_t key, char column) {
    return static_cast<SiblingsHistory::Cell>(2 * key + (column == 'w' ? 1U : 0U));
  }
  static std::string key_name(std::size_t key) { return fmt::format("k{}", key); }

  Phase phase = Phase::faults;
  bool healed = false;
  std::size_t keys = 1;
  // Wrong on purpose: what is taken for a strong read is at ONE.
  bool reads_at_one = false;
  std::vector<runtime::Address> cql;   // of the nodes
  std::vector<runtime::Address> http;  // of the same
  Duration client_limit{0};
  std::function<bool()> is_quiet;

  SiblingsHistory history;
  ConvergenceHistory convergence;
  std::size_t busy = 0;  // requests under way
  std::uint64_t met_faults = 0;
  std::uint64_t reads_of_siblings = 0;
  std::uint64_t resolved = 0;  // writes that had seen several values of a cell
  std::uint64_t over_cql = 0;
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
};

}  // namespace helenus::sim
