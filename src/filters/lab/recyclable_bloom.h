// RecyclableBloom: a Bloom filter that empties itself when it is full, the rival of the forgetful
// ones (FBF section VI-E).
//
// It is full when one key more would take its false positive rate past the target. `insert` then
// refuses, as any filter does; `insert_recycling` flushes all bits and begins again with the new
// key. What was in is forgotten at once, however recent: this is what a window of time cures.
//
// Its bytes are those of its Bloom filter (docs/formats/filters.md).
//
// Cost: as Bloom; an insertion that flushes writes the whole table.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "filters/bloom.h"
#include "filters/filter.h"
#include "filters/key_hash.h"

namespace helenus::filters {

class RecyclableBloom {
 public:
  // A table of `bits` that is flushed before its rate passes `rate_max`, in (0, 1).
  // Errors: invalid_argument when not even one key stays below it, or for a shape without bits or
  // probes or beyond the limits of Bloom; overloaded when there is no memory.
  static base::Result<RecyclableBloom> with_table(std::uint64_t bits, unsigned probes,
                                                  double rate_max);
  // As Bloom::for_rate.
  static base::Result<RecyclableBloom> for_rate(std::uint64_t capacity, double rate_max);

  [[nodiscard]] bool insert(KeyHash key) { return bloom_.insert(key); }
  // Inserts the key; whether everything else had to be forgotten for it.
  bool insert_recycling(KeyHash key);
  // Takes out all keys.
  void flush() { bloom_.clear(); }

  bool contains(KeyHash key) const { return bloom_.contains(key); }
  void contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const {
    bloom_.contains_batch(keys, answers);
  }
  void prefetch(KeyHash key) const { bloom_.prefetch(key); }

  std::uint64_t size() const { return bloom_.size(); }
  std::uint64_t capacity() const { return bloom_.capacity(); }
  double false_positive_rate() const { return bloom_.false_positive_rate(); }
  double false_positive_rate_max() const { return bloom_.false_positive_rate_max(); }
  std::uint64_t memory_bytes() const { return bloom_.memory_bytes(); }

  base::Bytes encode() const { return bloom_.encode(); }
  // Errors: corrupt, unsupported, invalid_argument for another kind of filter.
  static base::Result<RecyclableBloom> decode(const base::Bytes& encoded);

 private:
  explicit RecyclableBloom(Bloom bloom) : bloom_(std::move(bloom)) {}

  Bloom bloom_;
};

static_assert(Filter<RecyclableBloom>);

}  // namespace helenus::filters
