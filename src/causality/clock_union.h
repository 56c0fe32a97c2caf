// ClockUnion: the dots of many clocks together, of which some come and others go.
//
// A union of sets forgets who brought what, so nothing can be taken out of it again; here the ends
// of ranges are counted instead. Each range adds one at its first counter and takes one off behind
// its last; a dot is in as many of the clocks as these come to up to its counter.
//
// A value. Law: contains(d) iff one of the clocks that were added, and not removed since, contains
// d. Memory and cost follow the ranges, never the dots: to add or remove a clock takes the ranges
// it has, each as much as contains() does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <absl/container/btree_map.h>

#include "causality/clock.h"
#include "causality/dot.h"

namespace helenus::causality {

// Ranges of numbers, counted. The ends lie ascending in blocks that know their sum.
// Cost: O(n / kBlockMax + kBlockMax) for n ends that differ.
class CountedRanges {
 public:
  static constexpr std::size_t kBlockMax = 256;

  bool empty() const { return blocks_.empty(); }
  // Whether a range that was added, and not removed since, holds the number.
  bool contains(std::uint64_t number) const;
  // Requires: first <= last, and last is not the largest number there is.
  void add(std::uint64_t first, std::uint64_t last);
  // Requires: it was added, and not removed since.
  void remove(std::uint64_t first, std::uint64_t last);

 private:
  struct End {
    std::uint64_t at = 0;
    std::int64_t change = 0;  // never zero
  };
  struct Block {
    std::vector<End> ends;  // ascending, at least one
    std::int64_t sum = 0;
  };

  // The last block that begins at the number or before it; the first if none does.
  std::size_t block_of(std::uint64_t at) const;
  void change(std::uint64_t at, std::int64_t by);

  std::vector<Block> blocks_;
};

class ClockUnion {
 public:
  bool empty() const { return counters_.empty() && closed_.empty(); }
  bool contains(const Dot& dot) const;
  void add(const Clock& clock);
  // Requires: it was added, and not removed since.
  void remove(const Clock& clock);

 private:
  absl::btree_map<ActorId, CountedRanges> counters_;   // none is empty
  absl::btree_map<NodeNumber, CountedRanges> closed_;  // incarnations; none is empty
};

}  // namespace helenus::causality
