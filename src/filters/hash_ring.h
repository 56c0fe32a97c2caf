// HashRing: a consistent hash ring over 32-bit positions. Nodes sit at positions of their own; a
// position belongs to the first node at or after it, round the ring.
//
// The search for that node is what an index-independent cuckoo filter does for every candidate
// bucket of every lookup. A balanced tree takes log2(nodes) loads, each waiting for the one before.
// Here the ring is cut into sectors of one cache line each (ring_sectors.h), so many that a line
// has room for all of its nodes nearly always: positions come from a hash, so no sector holds many
// more than the average. A search reads one line, for any number of nodes.
//
// To add or to remove a node writes the sector's line and one or two before it. When sectors become
// too full or too empty on average all are cut anew, which costs as much as the additions or
// removals that led to it.
//
// Cost: find_owner reads one cache line, a second one in four of a hundred cases or fewer; add
// and remove write about two and are O(1) amortized. Memory: 10 to 20 bytes a node where there are
// 230,000 or more, 14 to 27 where there are fewer, as the average goes from full to half full; up
// to a third more in a ring that has shrunk.
#pragma once

#include <cstdint>
#include <span>

#include "filters/ring_sectors.h"

namespace helenus::filters {

class HashRing {
 public:
  using Position = std::uint32_t;
  using Node = std::uint32_t;
  static constexpr Node kNodeMax = (Node{1} << 30) - 1;

  HashRing() = default;
  // With all of these nodes. Requires: in ascending order of their positions, all different; nodes
  // <= kNodeMax. Cost: linear, wherever they are.
  explicit HashRing(std::span<const PlacedNode> nodes);
  HashRing(HashRing&&) noexcept = default;
  HashRing& operator=(HashRing&&) noexcept = default;

  std::uint64_t size() const { return size_; }
  bool is_empty() const { return size_ == 0; }

  // The node that owns a position. Requires: the ring is not empty.
  Node find_owner(Position position) const {
    return is_fine() ? fine_.find_owner(position) : coarse_.find_owner(position);
  }
  // Those of two positions at once.
  struct Owners {
    Node first;
    Node second;
  };
  [[gnu::always_inline]] Owners find_owners(Position first, Position second) const {
    if (is_fine()) return {fine_.find_owner(first), fine_.find_owner(second)};
    return {coarse_.find_owner(first), coarse_.find_owner(second)};
  }
  // Starts to bring in what find_owner will need.
  void prefetch(Position position) const {
    is_fine() ? fine_.prefetch(position) : coarse_.prefetch(position);
  }

  // How many nodes share a position's sector with it: what add, remove and find_owner there cost.
  std::uint32_t crowd_at(Position position) const;
  // More than hashed positions ever put into one sector: with 7 in it on average, once in 10^35.
  static constexpr std::uint32_t kCrowdMax = 64;

  // How many sectors without a node follow one another at most: what add and remove pass over.
  // Cost: linear.
  std::uint64_t longest_gap() const;
  // More than hashed positions ever leave empty: with 2.5 in a sector on average, once in 10^60.
  static constexpr std::uint64_t kGapMax = 64;

  // Whether a node sits exactly there.
  bool is_taken(Position position) const;
  // Requires: the position is not taken, and node <= kNodeMax.
  void add(Position position, Node node);
  // Requires: the position is taken.
  void remove(Position position);
  // The node at a position gets another number. Requires: the position is taken, and
  // node <= kNodeMax.
  void renumber(Position position, Node node);

  std::uint64_t memory_bytes() const;

 private:
  using Coarse = RingSectors<std::uint32_t>;
  using Fine = RingSectors<std::uint16_t>;
  // From so many bits of sector on, 16 low bits tell positions apart.
  static constexpr unsigned kFineBits = 16;

  bool is_fine() const { return bits_ >= kFineBits; }
  // What `ask` answers of the sectors that there are.
  template <class Ask>
  auto of_sectors(Ask&& ask) const {
    return is_fine() ? ask(fine_) : ask(coarse_);
  }
  // How many nodes so many bits of sector are for.
  static std::uint64_t room_in(unsigned bits);
  void cut_into(unsigned bits);
  void make_sectors(unsigned bits, std::span<const PlacedNode> nodes);

  std::uint64_t size_ = 0;
  unsigned bits_ = 0;  // 2^bits_ sectors: coarse ones, or from kFineBits on fine ones
  Coarse coarse_ = Coarse(0, {});
  Fine fine_;
};

}  // namespace helenus::filters
