// LaneTable: up to 56 tables of bits of one length, woven together so that one load reads the same
// place of all of them.
//
// Position p of every lane lies in the bits p * lanes to (p + 1) * lanes - 1 of the memory: lane 0
// first. Eight bytes loaded from the byte where a position begins hold all of it, because at most
// seven bits come before and at most 56 are its own. What is asked of many lanes therefore costs
// what it costs of one, and no bit is wasted whatever their number. Sixty-four positions are a
// block of as many 64-bit words as there are lanes, which is how lanes are cleared: each block with
// the same pattern of words.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/result.h"
#include "filters/filter.h"
#include "filters/key_hash.h"
#include "filters/probes.h"
#include "filters/table.h"

namespace helenus::filters {

inline constexpr unsigned kLanesMax = 56;

// A set of lanes: bit i is lane i.
using Lanes = std::uint64_t;

class LaneTable {
 public:
  static constexpr std::uint64_t kPositionsPerBlock = 64;
  static constexpr std::uint64_t kPositionsMax = kTableBytesMax / 8;
  static_assert(kPositionsMax / 8 * (kLanesMax + 1) <= kTableBytesMax);

  // Requires: 0 < positions <= kPositionsMax and 0 < lanes <= kLanesMax, here and below.
  static std::uint64_t bytes_for(std::uint64_t positions, unsigned lanes) {
    return blocks_for(positions) * lanes * sizeof(std::uint64_t) + kSlack;
  }
  // All bits zero. Errors: overloaded when there is no memory for it.
  static base::Result<LaneTable> zeroed(std::uint64_t positions, unsigned lanes);
  // Looks into `bytes`. Requires: as many as bytes_for says.
  static LaneTable viewing(base::Bytes bytes, std::uint64_t positions, unsigned lanes);

  std::uint64_t positions() const { return positions_; }
  unsigned lanes() const { return lanes_; }
  Lanes all() const { return mask_; }
  std::uint64_t block_count() const { return blocks_for(positions_); }
  std::uint64_t memory_bytes() const { return table_.size(); }
  base::ByteView view() const { return table_.view(); }
  bool is_borrowed() const { return table_.is_borrowed(); }

  // The lanes that have the bit at `position` set. Requires: position < positions().
  Lanes at(std::uint64_t position) const { return at(table_.data(), position); }

  // The lanes of `asked` that have all bits of the key set.
  Lanes holders(KeyHash key, unsigned probes, Lanes asked) const {
    MixedProbes walk(key);
    const std::byte* data = table_.data();
    for (unsigned i = 0; i < probes && asked != 0; ++i) asked &= at(data, walk.next(positions_));
    return asked;
  }

  // Sets the key's bits in the lanes of `into`; how many of them were not set.
  unsigned add(KeyHash key, unsigned probes, Lanes into) {
    MixedProbes walk(key);
    std::byte* data = table_.writable();
    unsigned added = 0;
    for (unsigned i = 0; i < probes; ++i) added += set(data, walk.next(positions_), into);
    return added;
  }

  struct Added {
    bool present = false;
    unsigned bits = 0;  // newly set
  };
  // Both in one pass over the key's places: `is_present` is told which lanes of `asked` hold the
  // key, and unless it answers true, the key's bits are set in `into`.
  template <class IsPresent>
  Added add_unless(KeyHash key, unsigned probes, Lanes asked, Lanes into, IsPresent&& is_present) {
    std::array<std::uint64_t, kProbesMax> places;
    MixedProbes walk(key);
    const std::byte* data = table_.data();
    for (unsigned i = 0; i < probes; ++i) {
      places[i] = walk.next(positions_);
      asked &= at(data, places[i]);
    }
    if (asked != 0 && is_present(asked)) return {.present = true, .bits = 0};
    std::byte* writable = table_.writable();
    unsigned added = 0;
    for (unsigned i = 0; i < probes; ++i) added += set(writable, places[i], into);
    return {.present = false, .bits = added};
  }

  void prefetch(KeyHash key, unsigned probes) const {
    MixedProbes walk(key);
    for (unsigned i = 0; i < probes; ++i) {
      __builtin_prefetch(table_.data() + walk.next(positions_) * lanes_ / 8);
    }
  }

  // Clears the lanes in some blocks of positions. Requires: the blocks are there.
  void clear(Lanes lanes, std::uint64_t first_block, std::uint64_t block_count);

  // For each lane, at how many positions map(lanes set there) has it.
  template <class Map>
  std::array<std::uint64_t, kLanesMax> count(Map&& map) const;
  std::array<std::uint64_t, kLanesMax> count() const {
    return count([](Lanes set) { return set; });
  }

  // The table with the lanes that are not in `kept` empty, appended to `out`.
  void append_to(base::Buffer& out, Lanes kept) const;
  // Whether nothing is set after the last position, which a table that is looked into must prove.
  bool ends_clean() const;

 private:
  // The last position may begin in the last byte of its block.
  static constexpr std::uint64_t kSlack = sizeof(std::uint64_t);

  LaneTable(Table table, std::uint64_t positions, unsigned lanes)
      : positions_(positions),
        lanes_(lanes),
        mask_((Lanes{1} << lanes) - 1),
        table_(std::move(table)) {}

  static std::uint64_t blocks_for(std::uint64_t positions) {
    return (positions + kPositionsPerBlock - 1) / kPositionsPerBlock;
  }

  Lanes at(const std::byte* data, std::uint64_t position) const {
    const std::uint64_t bit = position * lanes_;
    return (base::load_le<std::uint64_t>(data + bit / 8) >> (bit % 8)) & mask_;
  }
  unsigned set(std::byte* data, std::uint64_t position, Lanes into) const {
    const std::uint64_t bit = position * lanes_;
    std::byte* where = data + bit / 8;
    const auto word = base::load_le<std::uint64_t>(where);
    const std::uint64_t wanted = into << (bit % 8);
    base::store_le(where, word | wanted);
    return static_cast<unsigned>(std::popcount(wanted & ~word));
  }

  std::uint64_t positions_;
  unsigned lanes_;
  Lanes mask_;
  Table table_;
};

template <class Map>
std::array<std::uint64_t, kLanesMax> LaneTable::count(Map&& map) const {
  // Counters of six bits for all lanes at once: plane b holds bit b of each lane's counter.
  constexpr unsigned kPlanes = 6;
  constexpr std::uint64_t kPositionsPerRound = (std::uint64_t{1} << kPlanes) - 1;
  std::array<std::uint64_t, kLanesMax> counts{};
  for (std::uint64_t first = 0; first < positions_; first += kPositionsPerRound) {
    const std::uint64_t end =
        positions_ - first < kPositionsPerRound ? positions_ : first + kPositionsPerRound;
    std::array<Lanes, kPlanes> planes{};
    for (std::uint64_t position = first; position < end; ++position) {
      Lanes carry = map(at(position));
      for (unsigned plane = 0; carry != 0; ++plane) {
        const Lanes sum = planes[plane] ^ carry;
        carry &= planes[plane];
        planes[plane] = sum;
      }
    }
    for (unsigned lane = 0; lane < lanes_; ++lane) {
      for (unsigned plane = 0; plane < kPlanes; ++plane) {
        counts[lane] += ((planes[plane] >> lane) & 1) << plane;
      }
    }
  }
  return counts;
}

}  // namespace helenus::filters
