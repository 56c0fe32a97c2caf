// AdaptiveCuckoo: a cuckoo filter that, told of a false positive, stops giving it. After
// Mitzenmacher, Pontarelli and Reviriego, "Adaptive Cuckoo Filters" (ALENEX 2018).
//
// A slot of kBits bits holds three things of its key: a *base* fingerprint, which never changes and
// decides the key's other bucket; a *tag*; and a *selector*, two bits that say which of four tags
// of the key that is. A lookup agrees with a slot when the base and the selected tag agree. When
// an absent key agrees with a slot by chance, the owner says so, the filter takes another selector
// whose tags tell the two keys apart, and the next lookup of the absent key is denied.
//
//   bits    selector   base   tag    rate when full, before it adapts
//   16      2          6      8      0.050 %
//   32      2          14     16     7.5e-9
//
// To write down another tag the filter needs the key again, and to erase one, too: two keys may
// agree under one selector and not under the next, so that taking out "a slot that agrees" could
// deny a key that is in. What is exact is not in the filter; it is in ResidentKeys or in any other
// place the owner can look up. Two ways to supply it:
//
// - The owner keeps ResidentKeys at hand: KeyedAdaptiveCuckoo below does, and is a filter like the
//   others.
// - The owner keeps it elsewhere, on disk in an sstable's case, where nothing moves once the table
//   is written. It asks `matches(key)`, fetches the entries of those slots (at most eight, usually
//   one) in its own time and its own way, and hands them to `adapt` or `erase`. No callback runs
//   inside the filter, and an owner that waits for a disk waits outside.
//
// Either way the filter checks what it is given against the slot and changes nothing when they
// disagree. A wrong entry passes that check by chance once in 2^14, and then a key may be lost: an
// owner's entries are checksummed, as those of ResidentKeys are.
//
// An adaptation may bring back a false positive that an earlier one of the same slot removed: there
// are four selectors, and the filter remembers the last. Moving a key keeps its selector.
//
// Cost: as Cuckoo, and four comparisons a bucket more where a base agrees: for every key that is
// in, and for one absent key in eight (16 bits) or two thousand (32 bits).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/result.h"
#include "filters/bucket.h"
#include "filters/filter.h"
#include "filters/key_hash.h"
#include "filters/placement.h"
#include "filters/resident_keys.h"
#include "filters/table.h"

namespace helenus::filters {

// What came of a reported false positive.
enum class Adapted : std::uint8_t {
  done,            // the filter now denies the key
  not_needed,      // it denied the key already
  key_is_present,  // a resident has the key's very hash: to this filter the key is in
  impossible,      // a resident agrees with the key under every selector; nothing was changed
};

// The slots that agree with a key: both of its buckets' at most.
class Matches {
 public:
  static constexpr unsigned kMax = 2 * kSlotsPerBucket;

  std::span<const std::uint64_t> slots() const { return {slots_.data(), count_}; }
  bool empty() const { return count_ == 0; }
  void add(std::uint64_t slot) {
    ASSERT(count_ < kMax);
    slots_[count_++] = slot;
  }

 private:
  std::array<std::uint64_t, kMax> slots_;
  unsigned count_ = 0;
};

struct Resident {
  std::uint64_t slot = 0;
  KeyHash key;
};

template <unsigned kBits>
class AdaptiveCuckoo {
  static_assert(kBits == 16 || kBits == 32);

 public:
  static constexpr unsigned kSelectorBits = 2;
  static constexpr unsigned kSelectors = 1 << kSelectorBits;
  static constexpr unsigned kBaseBits = kBits == 16 ? 6 : 14;
  static constexpr unsigned kTagBits = kBits - kSelectorBits - kBaseBits;
  static constexpr std::uint64_t kBucketsMax = kTableBytesMax / Bucket<kBits>::kBytes - 1;

  // As Cuckoo::for_capacity and Cuckoo::with_buckets.
  static base::Result<AdaptiveCuckoo> for_capacity(std::uint64_t capacity);
  static base::Result<AdaptiveCuckoo> with_buckets(std::uint64_t bucket_count);

  // As filter.h says; `residents` follows every move. Requires: residents.slot_count() ==
  // slot_count(), and `residents` was given to every insertion before.
  [[nodiscard]] bool insert(KeyHash key, ResidentKeys& residents);

  bool contains(KeyHash key) const {
    const std::uint32_t base_fingerprint = base_of(key);
    const std::uint64_t first = placement_.first(key);
    const std::uint64_t second = placement_.alternate(first, base_fingerprint);
    return has_base(first, second, base_fingerprint) && agrees(first, second, Patterns(key));
  }

  void contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const;

  void prefetch(KeyHash key) const {
    const std::uint64_t first = placement_.first(key);
    Slots::prefetch(bucket_at(first));
    Slots::prefetch(bucket_at(placement_.alternate(first, base_of(key))));
  }

  // The slots that make `contains(key)` true; none when it is false.
  Matches matches(KeyHash key) const;

  // Makes `contains(absent)` false. Requires: `residents` says who sits in each slot of
  // matches(absent). Errors: invalid_argument when one of these slots is not named; corrupt when
  // a resident does not agree with its slot. Either way nothing has changed.
  base::Result<Adapted> adapt(KeyHash absent, std::span<const Resident> residents);

  // Takes out one occurrence of exactly this key and returns its slot, whose resident is no
  // longer anybody's. Nothing happens when `residents` does not have the key. Requires:
  // `residents` says who sits in each slot of matches(key). Errors: as adapt.
  base::Result<std::optional<std::uint64_t>> erase(KeyHash key,
                                                   std::span<const Resident> residents);

  std::uint64_t size() const { return size_; }
  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t bucket_count() const { return placement_.bucket_count(); }
  std::uint64_t slot_count() const { return bucket_count() * kSlotsPerBucket; }
  double load() const { return static_cast<double>(size_) / static_cast<double>(slot_count()); }
  double false_positive_rate() const;
  double false_positive_rate_max() const;
  std::uint64_t memory_bytes() const { return table_.size(); }
  bool is_borrowed() const { return table_.is_borrowed(); }

  // Whether `residents` names, for every slot in use, a key that agrees with it. Reads everything.
  bool agrees_with(const ResidentKeys& residents) const;

  // The filter alone, without its residents.
  base::Bytes encode() const;
  // Errors: corrupt, unsupported, invalid_argument for another kind or width of filter.
  static base::Result<AdaptiveCuckoo> decode(const base::Bytes& encoded);

 private:
  using Slots = Bucket<kBits>;
  using Word = typename Slots::Word;

  static constexpr std::uint32_t kBaseMask = (1U << kBaseBits) - 1;
  static constexpr std::uint32_t kTagMask = (1U << kTagBits) - 1;

  static std::uint32_t base_of(KeyHash key) {
    const std::uint32_t low = static_cast<std::uint32_t>(key.value()) & kBaseMask;
    return low + (low == 0 ? 1 : 0);
  }

  // What a slot of this key looks like under each selector.
  struct Patterns {
    explicit Patterns(KeyHash key) : base_fingerprint(base_of(key)) {
      std::uint64_t tags = base::mix64(key.value());
      for (std::uint32_t selector = 0; selector < kSelectors; ++selector, tags >>= 16) {
        slots[selector] = base_fingerprint |
                          ((static_cast<std::uint32_t>(tags) & kTagMask) << kBaseBits) |
                          (selector << (kBaseBits + kTagBits));
      }
    }
    std::uint32_t base_fingerprint;
    std::array<std::uint32_t, kSelectors> slots;
  };

  AdaptiveCuckoo(std::uint64_t bucket_count, std::uint64_t capacity, std::uint64_t size,
                 Table table)
      : placement_(bucket_count), capacity_(capacity), size_(size), table_(std::move(table)) {}

  static std::uint64_t table_bytes(std::uint64_t bucket_count) {
    return bucket_count * Slots::kBytes + Slots::kSlackBytes;
  }
  static unsigned selector_of(std::uint32_t slot) { return slot >> (kBaseBits + kTagBits); }

  const std::byte* bucket_at(std::uint64_t bucket) const {
    return table_.data() + bucket * Slots::kBytes;
  }
  // Whether any slot of the two buckets has this base, whatever its tag: for most absent keys none
  // has, and one comparison does.
  bool has_base(std::uint64_t first, std::uint64_t second, std::uint32_t base_fingerprint) const {
    const Word bases = Slots::in_every_slot(kBaseMask);
    const Word wanted = Slots::in_every_slot(base_fingerprint);
    return Slots::any_zero((Slots::load(bucket_at(first)) ^ wanted) & bases,
                           (Slots::load(bucket_at(second)) ^ wanted) & bases);
  }
  bool agrees(std::uint64_t first, std::uint64_t second, const Patterns& patterns) const {
    bool found = false;
    for (const std::uint32_t slot : patterns.slots) {
      found |= Slots::any_equal(bucket_at(first), bucket_at(second), slot);
    }
    return found;
  }

  std::uint32_t slot_at(std::uint64_t slot) const {
    return Slots::slot(Slots::load(bucket_at(slot / kSlotsPerBucket)), slot % kSlotsPerBucket);
  }
  void set_slot(std::uint64_t slot, std::uint32_t value);
  bool could_hold(std::uint64_t slot, KeyHash key) const;
  base::Result<void> check(const Matches& matches, std::span<const Resident> residents) const;

  Placement placement_;
  std::uint64_t capacity_;
  std::uint64_t size_;
  Table table_;
};

// An adaptive filter with its residents in memory beside it: 64 bits a slot more, and a filter like
// the others that also knows exactly what it holds. Erasing a key that is not in does nothing.
template <unsigned kBits>
class KeyedAdaptiveCuckoo {
 public:
  static base::Result<KeyedAdaptiveCuckoo> for_capacity(std::uint64_t capacity);
  static base::Result<KeyedAdaptiveCuckoo> with_buckets(std::uint64_t bucket_count);

  [[nodiscard]] bool insert(KeyHash key) { return filter_.insert(key, residents_); }
  bool contains(KeyHash key) const { return filter_.contains(key); }
  void contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const {
    filter_.contains_batch(keys, answers);
  }
  void prefetch(KeyHash key) const { filter_.prefetch(key); }
  bool erase(KeyHash key);
  // Exactly how often the key is in.
  unsigned count(KeyHash key) const;

  // Requires: `absent` is not in. When it is, nothing happens but the answer `key_is_present`.
  Adapted report_false_positive(KeyHash absent);

  std::uint64_t size() const { return filter_.size(); }
  std::uint64_t capacity() const { return filter_.capacity(); }
  std::uint64_t slot_count() const { return filter_.slot_count(); }
  double false_positive_rate() const { return filter_.false_positive_rate(); }
  double false_positive_rate_max() const { return filter_.false_positive_rate_max(); }
  std::uint64_t memory_bytes() const {
    return filter_.memory_bytes() + residents_.slot_count() * ResidentKeys::kEntryBytes;
  }

  const AdaptiveCuckoo<kBits>& filter() const { return filter_; }
  const ResidentKeys& residents() const { return residents_; }

  // The filter's bytes, then its residents'.
  base::Bytes encode() const;
  // Errors: as AdaptiveCuckoo::decode; corrupt when filter and residents disagree.
  static base::Result<KeyedAdaptiveCuckoo> decode(const base::Bytes& encoded);

 private:
  KeyedAdaptiveCuckoo(AdaptiveCuckoo<kBits> filter, ResidentKeys residents)
      : filter_(std::move(filter)), residents_(std::move(residents)) {}

  AdaptiveCuckoo<kBits> filter_;
  ResidentKeys residents_;
};

extern template class AdaptiveCuckoo<16>;
extern template class AdaptiveCuckoo<32>;
extern template class KeyedAdaptiveCuckoo<16>;
extern template class KeyedAdaptiveCuckoo<32>;

static_assert(ErasableFilter<KeyedAdaptiveCuckoo<16>> && AdaptiveFilter<KeyedAdaptiveCuckoo<16>>);

}  // namespace helenus::filters
