// Many lookups at once: the memory of one group of them is on its way before the first is answered.
//
// A lookup out of cache spends nearly all its time waiting. A processor overlaps the waits of
// lookups that follow one another as far as its window of instructions reaches, which is a few
// lookups; asking for the memory of a whole group first keeps all its fill buffers busy, whatever
// the caller does with the answers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "base/assert.h"
#include "filters/key_hash.h"

namespace helenus::filters {

// Several times the fill buffers of a core (10 to 16), so that few of them idle while a group ends;
// few enough that what was fetched is still in the first-level cache when it is looked at.
inline constexpr std::size_t kLookupsInFlight = 64;

// answers[i] = finish(begin(keys[i])), where `begin` asks for memory and returns what `finish`
// needs. Requires: as many answers as keys.
template <class Begin, class Finish>
void overlap(std::span<const KeyHash> keys, std::span<bool> answers, Begin&& begin,
             Finish&& finish) {
  ASSERT(keys.size() == answers.size());
  std::array<decltype(begin(KeyHash())), kLookupsInFlight> begun;
  while (!keys.empty()) {
    const std::size_t group = std::min(kLookupsInFlight, keys.size());
    for (std::size_t i = 0; i < group; ++i) begun[i] = begin(keys[i]);
    for (std::size_t i = 0; i < group; ++i) answers[i] = finish(begun[i]);
    keys = keys.subspan(group);
    answers = answers.subspan(group);
  }
}

// The same by what every filter has: prefetch() begins, contains() answers.
template <class Filter>
void overlap_lookups(const Filter& filter, std::span<const KeyHash> keys, std::span<bool> answers) {
  overlap(
      keys, answers,
      [&filter](KeyHash key) {
        filter.prefetch(key);
        return key;
      },
      [&filter](KeyHash key) { return filter.contains(key); });
}

}  // namespace helenus::filters
