// HashRing: a consistent hash ring over 32-bit positions. Nodes sit at positions of their own; a
// position belongs to the first node at or after it, round the ring.
//
// The search for that node is what an index-independent cuckoo filter does for every candidate
// bucket of every lookup. A balanced tree takes log2(nodes) loads, each waiting for the one before.
// Here the ring is cut into equal sectors, a power of two of them, so that a sector holds 6 to 12
// nodes on average; positions come from a hash, so no sector holds many more. A search loads the
// sector's head, counts the positions before the one it wants, which takes no branch that depends
// on them, and has its node: two cache lines or three, for any number of nodes. Only when all nodes
// of the sector are before the position does it go on to the next one.
//
// To add or to remove a node moves the later nodes of its sector: a cache line or two. When sectors
// become too full or too empty on average all are cut anew, which costs as much as the additions or
// removals that led to it.
//
// Cost: find_owner reads two cache lines or three; add and remove the same and are O(1) amortized.
// Memory: about 12 bytes a node.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/assert.h"

namespace helenus::filters {

class HashRing {
 public:
  using Position = std::uint32_t;
  using Node = std::uint32_t;

  HashRing() = default;
  HashRing(HashRing&&) noexcept = default;
  HashRing& operator=(HashRing&&) noexcept = default;

  std::uint64_t size() const { return size_; }
  bool is_empty() const { return size_ == 0; }

  // The node that owns a position. Requires: the ring is not empty.
  Node find_owner(Position position) const {
    std::uint64_t sector = sector_of(position);
    const Sector& first = sectors_[sector];
    const std::uint32_t before = first.count_before(position);
    if (before < first.count) [[likely]]
      return first.nodes()[before];
    return first_node_after(sector);
  }

  // Starts to bring in what find_owner will need: the sector's head; then, once that is there, the
  // rest of it.
  void prefetch_head(Position position) const {
    __builtin_prefetch(&sectors_[sector_of(position)]);
  }
  void prefetch_sector(Position position) const {
    __builtin_prefetch(sectors_[sector_of(position)].words.get());
  }

  // How many nodes share a position's sector with it: what add, remove and find_owner there cost.
  std::uint32_t crowd_at(Position position) const { return sectors_[sector_of(position)].count; }
  // More than hashed positions ever put into one sector: with 12 in it on average, once in 10^50.
  static constexpr std::uint32_t kCrowdMax = 96;

  // How many sectors without a node follow one another at most: what find_owner passes over.
  // Cost: linear.
  std::uint64_t longest_gap() const;
  // More than hashed positions ever leave empty: with 3 in a sector on average, once in 10^80.
  static constexpr std::uint64_t kGapMax = 64;

  // Whether a node sits exactly there.
  bool is_taken(Position position) const;
  // Requires: the position is not taken.
  void add(Position position, Node node);
  // Requires: the position is taken.
  void remove(Position position);
  // The node at a position gets another number. Requires: the position is taken.
  void renumber(Position position, Node node);

  std::uint64_t memory_bytes() const;

 private:
  // Positions in ascending order, then as many nodes; both padded to a multiple of kWordsStep, the
  // positions with ones, which are before nothing.
  struct Sector {
    static constexpr std::uint32_t kWordsStep = 8;
    std::unique_ptr<std::uint32_t[]> words;
    std::uint32_t count = 0;
    std::uint32_t capacity = 0;

    const Position* positions() const { return words.get(); }
    Position* positions() { return words.get(); }
    const Node* nodes() const { return words.get() + capacity; }
    Node* nodes() { return words.get() + capacity; }

    std::uint32_t count_before(Position position) const {
      std::uint32_t before = 0;
      const Position* at = positions();
      for (std::uint32_t begin = 0; begin < capacity; begin += kWordsStep) {
        for (std::uint32_t i = 0; i < kWordsStep; ++i) before += at[begin + i] < position ? 1 : 0;
      }
      return before;
    }
    void insert(Position position, Node node);
    void erase(std::uint32_t index);
    void set_capacity(std::uint32_t wanted);
  };

  std::uint64_t sector_of(Position position) const { return std::uint64_t{position} >> shift_; }
  Node first_node_after(std::uint64_t sector) const;
  // The place of the node at that position in its sector. Requires: it is taken.
  std::uint32_t index_of(const Sector& sector, Position position) const;
  void cut_into(unsigned bits);

  std::uint64_t size_ = 0;
  unsigned shift_ = 32;  // 32 minus the logarithm of the number of sectors
  std::vector<Sector> sectors_ = std::vector<Sector>(1);
};

}  // namespace helenus::filters
