// RingSectors: the nodes of a hash ring (hash_ring.h), found by reading one cache line.
//
// The ring is cut into equal sectors, a power of two of them, and each is a line:
//
//   lows      the low bits of the positions of its nodes, ascending; then ones
//   owners    the nodes in the same order; then, to the end, the node that comes after them on the
//             ring, wherever its sector is
//
// A search counts the lows before the one that it wants, which takes no branch that depends on
// them, and there is its owner: also where the sector has no node after the position, or none at
// all. Only what does not fit the line, in one sector of seven or fewer, is in another line, to
// which the last owner leads.
//
// The high bits of a position are those of its sector. With 2^16 sectors or more 16 low bits are
// enough, and a line takes ten nodes; with fewer it takes seven.
//
// What it costs to keep: an addition or removal writes the sector's line, and where it changes the
// sector's first node, the lines before it back to the next sector that has one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"

namespace helenus::filters {

struct PlacedNode {
  std::uint32_t position;
  std::uint32_t node;
};

// Low is std::uint16_t or std::uint32_t.
template <class Low>
class RingSectors {
 public:
  using Position = std::uint32_t;
  using Node = std::uint32_t;
  static constexpr Node kNodeMax = (Node{1} << 30) - 1;
  static constexpr unsigned kNodesPerLine = sizeof(Low) == sizeof(std::uint16_t) ? 10 : 7;

  // No sectors: nothing may be asked of it.
  RingSectors() = default;
  // 2^bits sectors with these nodes. Requires: 32 - bits low bits fit in Low; nodes in ascending
  // order of their positions, all different.
  RingSectors(unsigned bits, std::span<const PlacedNode> nodes);

  // Requires: a node at least. In the caller's loop, since what limits it is how many searches fit
  // the processor's window of instructions.
  [[gnu::always_inline]] Node find_owner(Position position) const {
    const Line& line = lines_[sector_of(position)];
    const std::uint32_t owner = line.owners[line.count_before(low_of(position))];
    if ((owner & kMore) != 0) [[unlikely]]
      return find_in_overflow(owner, low_of(position));
    return owner & kNodeMax;
  }
  void prefetch(Position position) const { __builtin_prefetch(&lines_[sector_of(position)]); }

  bool is_taken(Position position) const;
  // Requires: the position is not taken; node <= kNodeMax.
  void add(Position position, Node node);
  // Requires, for both: the position is taken.
  void remove(Position position);
  void renumber(Position position, Node node);

  std::uint64_t sector_count() const { return lines_.size(); }
  std::uint32_t crowd_at(Position position) const;
  // How many sectors without a node follow one another at most.
  std::uint64_t longest_gap() const;
  // In ascending order of their positions.
  std::vector<PlacedNode> nodes() const;
  std::uint64_t memory_bytes() const;

 private:
  // Of what an owner is: a node of the sector; kNext: the node that comes after them; kMore: the
  // number of the line in overflow_ that goes on with the sector, after a full one.
  static constexpr std::uint32_t kNext = std::uint32_t{1} << 31;
  static constexpr std::uint32_t kMore = std::uint32_t{1} << 30;

  struct Entry {
    Low low;
    Node node;
  };
  struct alignas(64) Line {
    std::array<Low, kNodesPerLine> lows;
    std::array<std::uint32_t, kNodesPerLine + 1> owners;

    unsigned count_before(Low low) const {
      unsigned before = 0;
      for (const Low each : lows) before += each < low ? 1 : 0;
      return before;
    }
    unsigned count() const;
    bool is_empty() const { return (owners[0] & kNext) != 0; }
    bool is_followed() const { return (owners[kNodesPerLine] & kMore) != 0; }
  };
  static_assert(sizeof(Line) == 64);

  // Bits above the low ones are the same for all positions of a sector, and disturb no order.
  static Low low_of(Position position) { return static_cast<Low>(position); }
  std::uint64_t sector_of(Position position) const { return std::uint64_t{position} >> shift_; }

  Node find_in_overflow(std::uint32_t owner, Low low) const;
  static Line line_of(std::span<const Entry> entries, std::uint32_t after);
  const Line& line_after(const Line& line) const {
    return overflow_[line.owners[kNodesPerLine] & kNodeMax];
  }
  Line& last_line(std::uint64_t sector);
  void read(std::uint64_t sector, std::vector<Entry>& entries) const;
  void write(std::uint64_t sector, std::span<const Entry> entries, Node next);
  Node next_after(std::uint64_t sector) {
    return last_line(sector).owners[kNodesPerLine] & kNodeMax;
  }
  void set_next_after(std::uint64_t sector, Node next);
  void announce(std::uint64_t sector, Node first);
  typename std::vector<Entry>::iterator find_taken(Low low);
  std::uint32_t store_overflow(const Line& line);

  unsigned shift_ = 32;
  std::vector<Line> lines_;     // by sector
  std::vector<Line> overflow_;  // and of those that are full
  std::vector<std::uint32_t> free_overflow_;
  std::vector<Entry> entries_;  // of a change under way, kept for its memory
};

extern template class RingSectors<std::uint16_t>;
extern template class RingSectors<std::uint32_t>;

}  // namespace helenus::filters
