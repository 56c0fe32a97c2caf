// How a cuckoo table makes room: the shortest chain of moves that ends in a free slot.
//
// Both buckets of a newcomer are full. Each of their eight fingerprints could move to its other
// bucket; if that has a free slot, one move makes room. If none has, each of those buckets' four
// fingerprints could move on, and so forth: a breadth-first search over buckets.
//
// Why breadth first and not, as the paper has it, a random walk that displaces as it goes:
// - Nothing is written before the chain is complete, so that giving up undoes nothing.
// - The loads of one level do not wait for one another; each step of a walk needs the one before.
// - Chains are short: between loads of 0.94 and 0.95 the walk displaces 20 fingerprints for each
//   that it takes in, the search 1.4.
//
// A shortest chain never visits a bucket twice (the part between the visits could be cut out and
// what is left would have been found earlier), so the moves do not get in one another's way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "filters/bucket.h"

namespace helenus::filters {

// A search looks at no more buckets than this before it calls a table full. Twice as many reach a
// load higher by 0.003.
inline constexpr unsigned kSearchedBucketsMax = 512;

// Two buckets, and four times as many on each level: six levels are more than the limit above.
inline constexpr unsigned kChainSlotsMax = 8;

// The slots to be used, from the newcomer's to the free one; each takes what the one before held.
struct Chain {
  struct Place {
    std::uint64_t bucket;
    unsigned slot;
  };
  std::array<Place, kChainSlotsMax> places;
  unsigned length = 0;  // zero: no room was found
};

// `alternate_of(bucket, slot value)` is the other bucket of what is in a slot of `bucket`.
// Requires: the buckets `first` and `second` are full.
template <class Slots, class AlternateOf>
Chain find_chain(const std::byte* table, std::uint64_t first, std::uint64_t second,
                 AlternateOf&& alternate_of) {
  struct Visit {
    std::uint64_t bucket;
    std::uint32_t parent;
    std::uint32_t parent_slot;  // the slot of the parent whose fingerprint would move here
  };
  constexpr std::uint32_t kRoot = UINT32_MAX;
  const auto word_at = [&](std::uint64_t bucket) {
    return Slots::load(table + bucket * Slots::kBytes);
  };

  Visit visits[kSearchedBucketsMax];
  visits[0] = {.bucket = first, .parent = kRoot, .parent_slot = 0};
  visits[1] = {.bucket = second, .parent = kRoot, .parent_slot = 0};
  std::uint32_t visit_count = 2;

  const auto chain_to = [&](std::uint32_t visit, unsigned slot, std::uint64_t free_bucket) {
    Chain chain;
    std::array<Chain::Place, kChainSlotsMax> reversed;
    reversed[chain.length++] = {free_bucket, Slots::empty_slot(word_at(free_bucket))};
    for (; visit != kRoot; slot = visits[visit].parent_slot, visit = visits[visit].parent) {
      ASSERT(chain.length < kChainSlotsMax);
      reversed[chain.length++] = {visits[visit].bucket, slot};
    }
    for (unsigned i = 0; i < chain.length; ++i) chain.places[i] = reversed[chain.length - 1 - i];
    return chain;
  };

  for (std::uint32_t visit = 0; visit < visit_count; ++visit) {
    const std::uint64_t bucket = visits[visit].bucket;
    const auto word = word_at(bucket);
    for (unsigned slot = 0; slot < kSlotsPerBucket; ++slot) {
      const std::uint64_t next = alternate_of(bucket, Slots::slot(word, slot));
      if (Slots::has_room(word_at(next))) return chain_to(visit, slot, next);
      if (visit_count < kSearchedBucketsMax) visits[visit_count++] = {next, visit, slot};
    }
  }
  return {};
}

}  // namespace helenus::filters
