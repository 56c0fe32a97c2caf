// ConsistentCuckoo: a cuckoo filter that is as large as what is in it, after Luo, Guo,
// Rottenstreich, Ma, Luo and Ren, "The Consistent Cuckoo Filter" (INFOCOM 2019).
//
// It is made of members, index-independent cuckoo tables (index_independent_cuckoo.h says how one
// gains and loses buckets), at most `members_max` of them. A lookup asks all. Capacity follows the
// keys at two levels:
//
//   scale up     a bucket more, in the member with the fewest buckets
//   scale down   a bucket less, where an erasure left room for its fingerprints elsewhere
//   scale out    a member more
//   compact      the member with the fewest keys is emptied into the others, whole or not at all
//
// Options::growth says which of them `insert` and `erase` use by themselves; all can be called,
// too. By buckets is for use: one member, so a lookup reads two buckets. By members is how the
// paper compares itself with the dynamic cuckoo filter.
//
// Members may differ in shape. All share the fingerprints, so that any can take what another holds.
//
// False positives: whoever shares a fingerprint with a key that is in is taken for it, whatever the
// number of members, buckets and candidates: 1 - (1 - 2^-f)^n. `capacity` bounds n and so the rate;
// the filter refuses keys beyond it. With 32 bits: 2.3e-4 at a million keys, 2.3e-3 at ten.
//
// A key inserted more than `slots` times may be refused, since buckets come and go and with them
// the number of different candidates; see index_independent_cuckoo.h. So may any key for which
// there is no room while 15 of 16 slots are empty: only keys made to collide, or fingerprints too
// short for their number, come to that, and another member would not be worth its memory.
//
// It meets the contract of filter.h, with one difference: what is decoded is copied, and its ring
// is built, which costs about as much as to insert its buckets' number of keys. What bytes can make
// a filter take: 170 times their number for a hashed ring, twice for an even one; and when it
// grows, one member of kMemberBucketsMax buckets more than its keys ask for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "filters/filter.h"
#include "filters/fingerprint.h"
#include "filters/index_independent_cuckoo.h"
#include "filters/key_hash.h"

namespace helenus::filters {

class ConsistentCuckoo {
 public:
  using Shape = IndexIndependentCuckoo::Shape;
  using Fingerprint = IndexIndependentCuckoo::Fingerprint;

  enum class Growth : std::uint8_t { by_buckets = 0, by_members = 1, by_members_as_printed = 2 };

  struct Options {
    std::uint64_t capacity = 0;        // keys at most
    unsigned fingerprint_bits = 32;    // f
    Shape shape{};                     // of the first member, and of those that growth adds
    std::uint32_t member_buckets = 1;  // of the same
    unsigned members_max = 1;          // s
    Growth growth = Growth::by_buckets;
    // Grows as soon as a larger part of the slots is in use; 100: only when an insertion must.
    unsigned grow_above_percent = 93;
    // Shrinks when no larger part of the remaining slots would be in use.
    unsigned shrink_below_percent = 88;
    // A bucket with more fingerprints than this is not taken away.
    unsigned merged_fingerprints_max = IndexIndependentCuckoo::kSlotsMax;

    friend bool operator==(const Options&, const Options&) = default;
  };
  static constexpr unsigned kFingerprintBitsMin = 4;
  static constexpr unsigned kFingerprintBitsMax = 32;
  static constexpr unsigned kMembersMax = 4096;
  static constexpr std::uint32_t kMemberBucketsMax = std::uint32_t{1} << 16;
  static constexpr std::uint64_t kCapacityMax = std::uint64_t{1} << 30;

  // A filter that grows as keys come, up to `capacity` of them.
  // Errors: invalid_argument for a capacity of zero or beyond kCapacityMax.
  static base::Result<ConsistentCuckoo> for_capacity(std::uint64_t capacity);
  // Errors: invalid_argument.
  static base::Result<ConsistentCuckoo> with_options(const Options& options);

  [[nodiscard]] bool insert(KeyHash key);

  bool contains(KeyHash key) const {
    const Fingerprint fingerprint = fingerprint_of(key);
    const IndexIndependentCuckoo& first = members_.front();
    const bool is_alone = std::next(members_.begin()) == members_.end();
    if (!is_alone || first.shape().candidates != 2) return contains_in_any(fingerprint);
    return first.contains(fingerprint, IndexIndependentCuckoo::pair_of(fingerprint, 0));
  }
  void contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const;
  void prefetch(KeyHash key) const;

  // Takes out one occurrence. Requires: the key is in (filter.h says what happens otherwise).
  bool erase(KeyHash key);
  unsigned count(KeyHash key) const;

  // Room for so many keys, at once: for who knows how many will come. Stops early where there is
  // no more to be had.
  void reserve(std::uint64_t keys);
  // One bucket more, in the member with the fewest. False: nothing has changed.
  [[nodiscard]] bool scale_up();
  // One bucket less, in the member with the most: the last one on an even ring, the emptiest on a
  // hashed one, which reads all of it. False when its fingerprints found no place elsewhere, or it
  // was the only one: nothing has changed.
  [[nodiscard]] bool scale_down();
  // A member more, with a shape of its own. Errors: invalid_argument for an unsound shape or number
  // of buckets; overloaded beyond members_max.
  base::Result<void> scale_out(const Shape& shape, std::uint32_t bucket_count);
  // Empties members into others as long as it can. How many are gone.
  unsigned compact();

  std::uint64_t size() const { return size_; }
  std::uint64_t capacity() const { return options_.capacity; }
  const Options& options() const { return options_; }
  std::uint64_t bucket_count() const;
  std::uint64_t slot_count() const;
  double load() const { return static_cast<double>(size_) / static_cast<double>(slot_count()); }
  std::span<const IndexIndependentCuckoo> members() const { return members_; }
  double false_positive_rate() const;
  double false_positive_rate_max() const;
  std::uint64_t memory_bytes() const;

  base::Bytes encode() const;
  // Errors: corrupt, unsupported, invalid_argument for another kind of filter.
  static base::Result<ConsistentCuckoo> decode(const base::Bytes& encoded);

  // Whether every key's fingerprint is where it is looked for. For tests: reads everything.
  base::Result<void> check() const;

 private:
  explicit ConsistentCuckoo(const Options& options)
      : options_(options), candidates_max_(options.shape.candidates) {}
  static base::Result<void> check(const Options& options);

  Fingerprint fingerprint_of(KeyHash key) const {
    return filters::fingerprint_of(key, options_.fingerprint_bits);
  }
  void add_member(const Shape& shape, std::uint32_t bucket_count);
  // For members of any number and shape.
  bool contains_in_any(Fingerprint fingerprint) const;
  bool insert_anywhere(Fingerprint fingerprint);
  bool insert_by_growing(Fingerprint fingerprint);
  void shrink_after(std::size_t member, std::uint32_t bucket);
  bool empty_into_others(std::size_t member);
  std::size_t member_with_fewest_keys() const;
  std::size_t member_with_fewest_buckets() const;
  std::size_t member_with_most_buckets() const;

  Options options_;
  unsigned candidates_max_;
  std::uint32_t next_salt_ = 0;
  std::uint64_t size_ = 0;
  // After a compaction that failed, no other is tried before this few keys are left.
  std::uint64_t compact_at_size_ = UINT64_MAX;
  std::vector<IndexIndependentCuckoo> members_;
};

static_assert(ErasableFilter<ConsistentCuckoo>);

}  // namespace helenus::filters
