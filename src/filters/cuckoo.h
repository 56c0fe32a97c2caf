// Cuckoo: a filter that can erase, after Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo Filter:
// Practically Better Than Bloom" (CoNEXT 2014).
//
// A table of buckets of four slots; a slot holds a fingerprint of kBits bits of one key. A key's
// fingerprint may live in either of two buckets (placement.h), so that a lookup reads two buckets
// and nothing else. An insertion that finds both full looks for the shortest chain of moves, each
// taking a fingerprint to its other bucket, that ends in a free slot: breadth first, over at most
// kSearchedBucketsMax buckets. Nothing is moved before the whole chain is known, so that a failed
// insertion leaves the table as it was. (The paper moves at random and keeps the last one it
// displaced in a victim slot; chain.h says why this is also faster.)
//
//   bits    8       12       16        32
//   rate    3.1 %   0.20 %   0.012 %   1.9e-9     false positives, full; 8 / 2^bits
//   memory  8.4     12.6     16.8      33.7       bits a key at a load of 0.95
//
// A key inserted n times is in n times. Both of its buckets together have eight slots: the ninth
// insertion of a key is refused, and so is an earlier one of a key that shares its slots.
// `erase` is for keys that are in, only: see filter.h for what happens otherwise.
//
// Cost: `contains` and `erase` read two buckets; `insert` is one or two until the table is three
// quarters full and about ten buckets more near the end; a refused insertion reads
// kSearchedBucketsMax buckets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "filters/bucket.h"
#include "filters/chain.h"
#include "filters/filter.h"
#include "filters/fingerprint.h"
#include "filters/key_hash.h"
#include "filters/placement.h"
#include "filters/table.h"

namespace helenus::filters {

template <unsigned kBits>
class Cuckoo {
 public:
  static constexpr unsigned kFingerprintBits = kBits;
  static constexpr std::uint64_t kBucketsMax = kTableBytesMax / Bucket<kBits>::kBytes - 1;

  // A filter that takes `capacity` keys: any `capacity` distinct keys fit, except with a
  // probability below one in ten thousand, when `insert` refuses one of the last.
  // Errors: invalid_argument for no capacity or a table beyond kTableBytesMax; overloaded when
  // there is no memory for it.
  static base::Result<Cuckoo> for_capacity(std::uint64_t capacity);
  // A filter with this many buckets, a power of two or any other number. Errors: the same.
  static base::Result<Cuckoo> with_buckets(std::uint64_t bucket_count);

  [[nodiscard]] bool insert(KeyHash key) {
    const std::uint32_t fingerprint = fingerprint_of(key);
    const std::uint64_t first = placement_.first(key);
    std::byte* table = table_.writable();
    if (place(table, first, fingerprint)) return true;
    const std::uint64_t second = placement_.alternate(first, fingerprint);
    if (place(table, second, fingerprint)) return true;
    return insert_by_moving(first, second, fingerprint);
  }

  bool contains(KeyHash key) const {
    const std::uint32_t fingerprint = fingerprint_of(key);
    const std::uint64_t first = placement_.first(key);
    const std::uint64_t second = placement_.alternate(first, fingerprint);
    return Slots::any_equal(bucket_at(first), bucket_at(second), fingerprint);
  }

  void contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const;

  void prefetch(KeyHash key) const {
    const std::uint64_t first = placement_.first(key);
    Slots::prefetch(bucket_at(first));
    Slots::prefetch(bucket_at(placement_.alternate(first, fingerprint_of(key))));
  }

  // Takes out one occurrence. Requires: the key is in (filter.h says what happens otherwise).
  bool erase(KeyHash key) {
    const std::uint32_t fingerprint = fingerprint_of(key);
    const std::uint64_t first = placement_.first(key);
    return displace(first, fingerprint) ||
           displace(placement_.alternate(first, fingerprint), fingerprint);
  }

  // At least how often the key is in: how many of its slots hold its fingerprint.
  unsigned count(KeyHash key) const;

  std::uint64_t size() const { return size_; }
  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t bucket_count() const { return placement_.bucket_count(); }
  std::uint64_t slot_count() const { return bucket_count() * kSlotsPerBucket; }
  double load() const { return static_cast<double>(size_) / static_cast<double>(slot_count()); }
  double false_positive_rate() const;
  double false_positive_rate_max() const;
  std::uint64_t memory_bytes() const { return table_.size(); }
  // Whether it still looks into the bytes it was decoded from.
  bool is_borrowed() const { return table_.is_borrowed(); }

  base::Bytes encode() const;
  // Errors: corrupt, unsupported, invalid_argument for another kind or width of filter.
  static base::Result<Cuckoo> decode(const base::Bytes& encoded);

 private:
  using Slots = Bucket<kBits>;
  using Word = typename Slots::Word;

  Cuckoo(std::uint64_t bucket_count, std::uint64_t capacity, std::uint64_t size, Table table)
      : placement_(bucket_count), capacity_(capacity), size_(size), table_(std::move(table)) {}

  static std::uint64_t table_bytes(std::uint64_t bucket_count) {
    return bucket_count * Slots::kBytes + Slots::kSlackBytes;
  }

  static std::uint32_t fingerprint_of(KeyHash key) { return filters::fingerprint_of(key, kBits); }

  const std::byte* bucket_at(std::uint64_t bucket) const {
    return table_.data() + bucket * Slots::kBytes;
  }

  bool place(std::byte* table, std::uint64_t bucket, std::uint32_t fingerprint) {
    std::byte* at = table + bucket * Slots::kBytes;
    const Word word = Slots::load(at);
    const Word empty = Slots::zero_lanes(word);
    if (empty == 0) return false;
    Slots::store(at, Slots::with_slot(word, Slots::lowest_lane(empty), fingerprint));
    ++size_;
    return true;
  }

  bool displace(std::uint64_t bucket, std::uint32_t fingerprint) {
    const Word word = Slots::load(bucket_at(bucket));
    const Word equal = Slots::zero_lanes(word ^ Slots::in_every_slot(fingerprint));
    if (equal == 0) return false;
    std::byte* at = table_.writable() + bucket * Slots::kBytes;
    Slots::store(at, Slots::with_slot(word, Slots::lowest_lane(equal), 0));
    --size_;
    return true;
  }

  bool insert_by_moving(std::uint64_t first, std::uint64_t second, std::uint32_t fingerprint);

  Placement placement_;
  std::uint64_t capacity_;
  std::uint64_t size_;
  Table table_;
};

using Cuckoo8 = Cuckoo<8>;
using Cuckoo12 = Cuckoo<12>;
using Cuckoo16 = Cuckoo<16>;
using Cuckoo32 = Cuckoo<32>;

extern template class Cuckoo<8>;
extern template class Cuckoo<12>;
extern template class Cuckoo<16>;
extern template class Cuckoo<32>;

static_assert(ErasableFilter<Cuckoo8> && ErasableFilter<Cuckoo12> && ErasableFilter<Cuckoo16> &&
              ErasableFilter<Cuckoo32>);

}  // namespace helenus::filters
