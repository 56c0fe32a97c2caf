// SiblingsChecker: whether cells that keep all concurrent values kept them, as their clients saw
// it.
//
// Every write has a number, which is the value that it puts into some cells; it may delete others.
// It is made under a context, that of a read or of an earlier write, and the client knows what of a
// cell it had seen with that: `seen`. Of a strong read R and a value X:
//   lost       X was there when R began, and R did not see it: then some write Y that began before
//   R
//              returned, and was not refused, had seen X in that cell and changed it
//   zombie     R saw X: then no write Y that was there when R began had seen X in that cell and
//              changed it
//   nowhere    R saw X: X was written to that cell, began before R returned, and was not refused
// A write is there from its acknowledgement on, and one that puts a value when a read returns that
// saw it and spreads. A weak read may miss what it will: `nowhere` alone is asked of it.
//
// Why `lost` is exact although a context names more than its reader saw: what it names and did not
// show had been replaced before, by a write that had seen it, and so on back to one that saw it
// shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/hash.h"

namespace helenus::sim {

class SiblingsHistory {
 public:
  using Cell = std::uint32_t;
  using Value = std::uint64_t;  // the number of a write, from 1
  using Moment = std::uint64_t;
  using Values = std::set<Value>;
  // What is known of some cells; nothing of those that are not in it.
  using Known = std::map<Cell, Values>;
  enum class Outcome : std::uint8_t { unknown, acknowledged, refused };

  struct Write {
    std::set<Cell> puts = {};
    std::set<Cell> deletes = {};
    Known seen = {};
    std::string text = {};  // for messages
    Outcome outcome = Outcome::unknown;
    Moment invoked = 0;
    std::optional<Moment> there = std::nullopt;  // since when
    bool changes(Cell cell) const { return puts.contains(cell) || deletes.contains(cell); }
  };
  struct Read {
    bool is_strong = false;
    bool spreads = false;
    std::string text = {};
    Moment invoked = 0;
    std::optional<Moment> returned = std::nullopt;  // none: it says nothing
    Known saw = {};
  };

  Value invoke_write(Write write);
  void acknowledge(Value write);
  void refuse(Value write);
  std::size_t invoke_read(Read read);
  void return_read(std::size_t read, Known saw);

  // In the order of their values.
  const std::vector<Write>& writes() const { return writes_; }
  const std::vector<Read>& reads() const { return reads_; }
  std::size_t count(Outcome outcome) const;
  void add_to(base::Digest& digest) const;

 private:
  Moment now_ = 0;
  std::vector<Write> writes_;
  std::vector<Read> reads_;
};

// What does not hold, one sentence each; empty if all does.
std::vector<std::string> check_siblings(const SiblingsHistory& history);

}  // namespace helenus::sim
