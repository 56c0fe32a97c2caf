// CounterSet: which counters of one actor are in a set, as sorted ranges.
//
// The first range begins at 1 in any healthy clock: it is the contiguous *base*, and what follows
// are the ranges above it, one for each gap. A set without gaps is one range and lives inside the
// object (24 bytes, no heap). Memory and the cost of every operation follow the number of ranges,
// never the number of counters.
//
// Why ranges and not a Roaring bitmap: docs/adr/0010. In short: gaps in a clock come in runs, and
// where gaps are few, the common case, ranges are smaller and faster to join and compare.
#pragma once

#include <compare>
#include <cstddef>
#include <span>

#include <absl/container/inlined_vector.h>

#include "causality/dot.h"

namespace helenus::causality {

// Counters from `first` to `last`, both included.
struct CounterRange {
  Counter first = 0;
  Counter last = 0;
  friend constexpr auto operator<=>(const CounterRange&, const CounterRange&) = default;
};

class CounterSet {
 public:
  CounterSet() = default;
  // The counters 1 to `base`; none when `base` is 0.
  static CounterSet up_to(Counter base);

  bool empty() const { return ranges_.empty(); }
  // The largest counter b such that 1..b are all here; 0 when 1 is not.
  Counter base() const {
    return !ranges_.empty() && ranges_.front().first == 1 ? ranges_.front().last : 0;
  }
  Counter max() const { return ranges_.empty() ? 0 : ranges_.back().last; }
  // Logarithmic in the number of ranges.
  bool contains(Counter counter) const;
  bool contains_all(const CounterSet& other) const;
  // How many counters are here.
  std::uint64_t size() const;
  // Ascending, disjoint, never adjacent.
  std::span<const CounterRange> ranges() const { return {ranges_.data(), ranges_.size()}; }

  // Requires: counter > 0. Constant time at the end of the set or of its last range.
  void insert(Counter counter) { insert({counter, counter}); }
  // Requires: 0 < range.first <= range.last.
  void insert(CounterRange range);
  void erase(Counter counter);

  // Union, intersection and difference; each linear in the ranges of both.
  friend CounterSet unite(const CounterSet& a, const CounterSet& b);
  friend CounterSet intersect(const CounterSet& a, const CounterSet& b);
  friend CounterSet subtract(const CounterSet& a, const CounterSet& b);

  friend bool operator==(const CounterSet& a, const CounterSet& b) {
    return a.ranges_ == b.ranges_;
  }

 private:
  // Adds a range that begins no earlier than any range here, melting it into the last one.
  void append(CounterRange range);
  // The first range that ends at `counter` or later.
  std::size_t find(Counter counter) const;

  absl::InlinedVector<CounterRange, 1> ranges_;
};

CounterSet unite(const CounterSet& a, const CounterSet& b);
CounterSet intersect(const CounterSet& a, const CounterSet& b);
CounterSet subtract(const CounterSet& a, const CounterSet& b);

}  // namespace helenus::causality
