// RowsHistory: what clients wrote to the cells of rows, what they read from them, and when.
//
// A cell is a number with a name. Every write puts its own number as the value of some cells and
// deletes others, so a value that is read tells which write it is of. Moments are nanoseconds of
// true time, each a little later than the one before, so that no two are equal: they order what
// happened, and say how old a cell is that expires.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace helenus::sim {

class RowsHistory {
 public:
  using Cell = std::uint32_t;
  using Moment = std::uint64_t;
  // Of a write, and the value of its cells. Never 0.
  using Value = std::uint64_t;

  enum class Outcome : std::uint8_t {
    unknown,       // it may have been executed, or may be yet
    acknowledged,  // executed, so that every strong read that begins from now on sees it
    refused,       // the answer says that it was not executed
  };

  struct Write {
    std::uint32_t client = 0;
    std::vector<Cell> puts = {};
    std::vector<Cell> deletes = {};
    std::optional<Moment> ttl = std::nullopt;  // of the cells that it puts
    Moment invoked = 0;
    Outcome outcome = Outcome::unknown;
    // From then on it is not executed any more; none is never.
    std::optional<Moment> ended = std::nullopt;
    std::string text = {};  // for messages
  };
  struct Seen {
    Cell cell = 0;
    std::optional<Value> value = std::nullopt;  // none: there is no such cell
  };
  struct Read {
    std::uint32_t client = 0;
    // Its level and that of the writes have a replica in common; a weak one may miss writes.
    bool is_strong = false;
    // What it saw is seen by every strong read that begins after it has returned.
    bool spreads = false;
    Moment invoked = 0;
    std::optional<Moment> returned = std::nullopt;  // none: it says nothing
    std::vector<Seen> seen = {};
    std::string text = {};
  };

  // The number of a new cell.
  Cell add_cell(std::string name);
  const std::vector<std::string>& cells() const { return cells_; }

  // `at` is true time. The number by which it is known; the value that it puts. Requires: no cell
  // twice.
  Value invoke_write(Moment at, Write write);
  void acknowledge(Moment at, Value write);
  void refuse(Moment at, Value write);
  // Its outcome stays unknown, but from now on it is not executed any more. Only of one whose
  // outcome is unknown.
  void end(Moment at, Value write);
  // The same for all whose outcome is unknown.
  void end_unknown(Moment at);

  // The number by which it is known.
  // Requires: a read that spreads is strong.
  std::size_t invoke_read(Moment at, Read read);
  void return_read(Moment at, std::size_t read, std::vector<Seen> seen);

  // Requires: a value that was written.
  const Write& write(Value value) const { return writes_[value - 1]; }
  bool was_written(Value value) const { return value >= 1 && value <= writes_.size(); }
  // In the order of their values.
  const std::vector<Write>& writes() const { return writes_; }
  const std::vector<Read>& reads() const { return reads_; }
  std::size_t count(Outcome outcome) const;
  void add_to(base::Digest& digest) const;

 private:
  Moment moment(Moment at);
  Write& unknown(Value write);

  Moment last_ = 0;
  std::vector<std::string> cells_;
  std::vector<Write> writes_;
  std::vector<Read> reads_;
};

}  // namespace helenus::sim
