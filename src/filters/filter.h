// The concept every filter meets, and what it promises.
//
// A filter holds a multiset of keys by their hashes and answers `contains`: "no" is certain, "yes"
// is wrong for an absent key with a probability that the filter declares. All filters keep the
// same contract, checked for each of them by one suite (filter_contract.h):
//
//   insert      true: the key is in. False: there is no room for it within the declared bounds;
//               nothing has changed, and every key that was in still is.
//   contains    true for every key that is in, always. True for any other key with a probability
//               of at most false_positive_rate_max().
//   encode      bytes that describe the filter completely (docs/formats/filters.md).
//   decode      the same filter, or an error for bytes that are damaged, cut, hostile or newer
//               than this code. The filter looks into the bytes and copies them only when it is
//               first changed.
//
// What an erasable filter adds:
//
//   erase       takes out one occurrence of a key that is in, and answers true.
//               Requires: the key is in. Of a key that is not in, a filter may hold what another
//               key left there: erase then takes that out, answers true, and the other key is
//               denied from then on. An owner therefore erases only what it has found in the exact
//               data behind the filter, once. When no trace is found: false, and nothing changes.
//               A filter that knows its keys exactly (AdaptiveCuckoo) says so, and is free of this.
//   count       at least how often the key is in, and at most how often it could be.
//
// Ownership: a filter is a value that can be moved, not copied. Any number of cores may ask one
// filter that nobody changes; changing it needs exclusive access. Filters read no clock, start
// nothing, allocate only when they are made, encoded or first changed after decoding, and never
// fail except as said here. To make a filter for which there is no memory is an error (overloaded);
// what allocates later ends as any other failed allocation of the process does.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "filters/key_hash.h"

namespace helenus::filters {

// No table of a filter is larger than this; asking for one is an error.
inline constexpr std::uint64_t kTableBytesMax = std::uint64_t{1} << 38;

template <class F>
concept Filter =
    std::movable<F> && requires(F& filter, const F& constant, KeyHash key, base::Bytes bytes,
                                std::span<const KeyHash> keys, std::span<bool> answers) {
      { filter.insert(key) } -> std::same_as<bool>;
      { constant.contains(key) } -> std::same_as<bool>;
      // answers[i] = contains(keys[i]), with the waits for memory overlapped.
      // Requires: as many answers as keys.
      { constant.contains_batch(keys, answers) } -> std::same_as<void>;
      // Starts to bring in the memory that `contains(key)` will need.
      { constant.prefetch(key) } -> std::same_as<void>;
      // How many keys are in, each as often as it was inserted.
      { constant.size() } -> std::same_as<std::uint64_t>;
      // How many keys it was made for.
      { constant.capacity() } -> std::same_as<std::uint64_t>;
      // The probability that `contains` says yes to an absent key: as filled now, and at worst.
      { constant.false_positive_rate() } -> std::same_as<double>;
      { constant.false_positive_rate_max() } -> std::same_as<double>;
      { constant.memory_bytes() } -> std::same_as<std::uint64_t>;
      { constant.encode() } -> std::same_as<base::Bytes>;
      { F::decode(bytes) } -> std::same_as<base::Result<F>>;
    };

template <class F>
concept ErasableFilter = Filter<F> && requires(F& filter, const F& constant, KeyHash key) {
  { filter.erase(key) } -> std::same_as<bool>;
  { constant.count(key) } -> std::same_as<unsigned>;
};

// Told of a false positive, it stops giving it.
template <class F>
concept AdaptiveFilter =
    Filter<F> && requires(F& filter, KeyHash key) { filter.report_false_positive(key); };

}  // namespace helenus::filters
