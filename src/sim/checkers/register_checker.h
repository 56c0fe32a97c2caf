// RegisterChecker: whether what clients of one register saw can be explained by some order of
// their operations that respects real time (linearizability).
//
// Every write writes a value of its own, so a read tells which write it saw, and the question can
// be answered in O(n log n) instead of by a search (P. Gibbons and E. Korach, Testing Shared
// Memories, 1997, section 4). All operations on a value form a cluster. Let `first` be the
// earliest return and `last` the latest invocation in it:
//   first < last   forward zone: the register must hold the value during all of [first, last]
//   first > last   backward zone: some moment in [last, first] will do
// The history is linearizable if and only if no read returns before its write began, no two
// forward zones overlap, and no backward zone lies within a forward zone.
//
// An operation whose outcome its client never learned may have happened at any later time: a
// write returns never; a read that failed is left out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"

namespace helenus::sim {

// Moments are ticks: a counter that every invocation and every return draws from.
using Tick = std::uint64_t;

class RegisterHistory {
 public:
  // What the register holds before anything is written.
  static constexpr std::uint64_t kInitialValue = 0;

  struct Operation {
    std::uint32_t client = 0;
    bool is_write = false;
    std::uint64_t value = 0;
    Tick invoked = 0;
    std::optional<Tick> returned;
  };

  // Returns the operation's number, to name it by when it returns.
  // Requires: each value is written once and is not kInitialValue.
  std::size_t invoke_write(std::uint32_t client, std::uint64_t value);
  std::size_t invoke_read(std::uint32_t client);
  void return_write(std::size_t operation);
  void return_read(std::size_t operation, std::uint64_t value);

  const std::vector<Operation>& operations() const { return operations_; }
  void add_to(base::Digest& digest) const;

 private:
  Tick ticks_ = 0;
  std::vector<Operation> operations_;
};

// Why the history is not linearizable; empty if it is.
std::vector<std::string> check_register(const std::vector<RegisterHistory::Operation>& operations);

}  // namespace helenus::sim
