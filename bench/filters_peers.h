// The peers of bench-filters: a cuckoo filter as its paper has it, and the filters of RocksDB.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/prng.h"
#include "filters/bucket.h"
#include "filters/key_hash.h"
#include "filters/table.h"

namespace rocksdb {
class FilterBitsReader;
class FilterPolicy;
}  // namespace rocksdb

namespace helenus::bench {

// Fan et al.'s cuckoo filter, straightforwardly: a power of two of buckets, the other bucket by
// xor, displacement at random for at most 500 steps, and one victim kept when they are used up.
// Buckets are packed as ours are and compared as in the authors' own code, by arithmetic on words.
// It stands for that code here and is no easier a peer: with the same hash, at a million keys, its
// lookups were 1.15 to 1.5 times as fast as theirs for 12 and 16 bits (one run on a busy machine).
template <unsigned kBits>
class PlainCuckoo {
 public:
  explicit PlainCuckoo(std::uint64_t keys) {
    constexpr double kLoadMax = 0.96;
    std::uint64_t buckets = std::bit_ceil(std::max<std::uint64_t>(1, keys / 4));
    if (static_cast<double>(keys) / static_cast<double>(buckets * 4) > kLoadMax) buckets *= 2;
    mask_ = buckets - 1;
    table_.emplace(*filters::Table::zeroed(buckets * Slots::kBytes + Slots::kSlackBytes));
    memory_ = table_->writable();
  }

  bool insert(filters::KeyHash key) {
    if (has_victim_) return false;
    constexpr unsigned kDisplacementsMax = 500;
    std::uint64_t bucket = first(key);
    std::uint32_t fingerprint = fingerprint_of(key);
    for (unsigned step = 0; step < kDisplacementsMax; ++step) {
      std::byte* at = memory_ + bucket * Slots::kBytes;
      const auto word = Slots::load(at);
      if (Slots::has_room(word)) {
        Slots::store(at, Slots::with_slot(word, Slots::empty_slot(word), fingerprint));
        ++size_;
        return true;
      }
      if (step > 0) {
        const auto slot = static_cast<unsigned>(prng_.next() % filters::kSlotsPerBucket);
        const std::uint32_t displaced = Slots::slot(word, slot);
        Slots::store(at, Slots::with_slot(word, slot, fingerprint));
        fingerprint = displaced;
      }
      bucket = alternate(bucket, fingerprint);
    }
    victim_bucket_ = bucket;
    victim_ = fingerprint;
    has_victim_ = true;
    ++size_;
    return true;
  }

  bool contains(filters::KeyHash key) const {
    const std::uint32_t fingerprint = fingerprint_of(key);
    const std::uint64_t bucket = first(key);
    const std::uint64_t other = alternate(bucket, fingerprint);
    if (has_victim_ && fingerprint == victim_ &&
        (bucket == victim_bucket_ || other == victim_bucket_)) {
      return true;
    }
    const auto wanted = Slots::in_every_slot(fingerprint);
    return Slots::any_zero(Slots::load(memory_ + bucket * Slots::kBytes) ^ wanted,
                           Slots::load(memory_ + other * Slots::kBytes) ^ wanted);
  }

  bool erase(filters::KeyHash key) {
    const std::uint32_t fingerprint = fingerprint_of(key);
    const std::uint64_t bucket = first(key);
    for (const std::uint64_t one : {bucket, alternate(bucket, fingerprint)}) {
      std::byte* at = memory_ + one * Slots::kBytes;
      const auto word = Slots::load(at);
      const auto equal = Slots::zero_lanes(word ^ Slots::in_every_slot(fingerprint));
      if (equal == 0) continue;
      Slots::store(at, Slots::with_slot(word, Slots::lowest_lane(equal), 0));
      --size_;
      return true;
    }
    return false;
  }

  double load() const { return static_cast<double>(size_) / static_cast<double>((mask_ + 1) * 4); }
  std::uint64_t memory_bytes() const { return table_->size(); }

 private:
  using Slots = filters::Bucket<kBits>;

  static std::uint32_t fingerprint_of(filters::KeyHash key) {
    const std::uint32_t low = static_cast<std::uint32_t>(key.value()) & Slots::kSlotMask;
    return low + (low == 0 ? 1 : 0);
  }
  std::uint64_t first(filters::KeyHash key) const { return (key.value() >> 32) & mask_; }
  std::uint64_t alternate(std::uint64_t bucket, std::uint32_t fingerprint) const {
    return (bucket ^ (fingerprint * std::uint64_t{0x5bd1e995})) & mask_;
  }

  std::uint64_t mask_;
  std::uint64_t size_ = 0;
  std::optional<filters::Table> table_;
  std::byte* memory_ = nullptr;
  base::Prng prng_{1};
  bool has_victim_ = false;
  std::uint64_t victim_bucket_ = 0;
  std::uint32_t victim_ = 0;
};

// A filter of RocksDB over keys of 8 bytes, made and asked through its library.
class RocksDbFilter {
 public:
  enum class Kind { bloom, ribbon };

  // `bits_per_key` as RocksDB means it: for ribbon, those a Bloom filter would need for the rate.
  RocksDbFilter(Kind kind, double bits_per_key);
  ~RocksDbFilter();

  // Adds the keys 0 to count - 1 and finishes the filter.
  void build(std::uint64_t count);
  bool contains(std::uint64_t key) const;
  std::uint64_t memory_bytes() const { return bytes_; }

 private:
  std::unique_ptr<const rocksdb::FilterPolicy> policy_;
  std::unique_ptr<const char[]> memory_;
  std::size_t bytes_ = 0;
  std::unique_ptr<rocksdb::FilterBitsReader> reader_;
};

}  // namespace helenus::bench
