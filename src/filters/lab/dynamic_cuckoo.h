// DynamicCuckoo: a filter that grows by whole cuckoo filters, after Chen, Liao, Jin and Wu, "The
// Dynamic Cuckoo Filter" (ICNP 2017). The rival that the consistent cuckoo filter is measured
// against; nothing here uses it.
//
// Members are alike: a power of two of buckets of b slots, two candidates by exclusive or. A key
// goes into the active member; when a walk of `kicks_max` moves finds no room there, into a new
// one, which is then active. A lookup asks all members, so the rate of false positives grows with
// their number: 1 - (1 - 2 b load 2^-f)^s.
//
// compact() is as printed: the members with the fewest keys first, each fingerprint moves to the
// bucket of the same number in another member if that has a free slot; a member that is empty then
// is gone. What moved stays moved where others could not follow, which costs nothing but time.
//
// Differences from print. A walk that finds no room is undone and the newcomer goes elsewhere,
// instead of its last victim: the same room is used, and a refusal changes nothing. The slot to
// move from follows from fingerprint and step instead of chance, so that a filter is a function of
// what was done to it.
//
// Memory: 32 bits a slot whatever f is, in its bytes, too. What the lab compares is slots in use,
// and packing, which `Cuckoo` does, would change none of it; where bits a key count, take that one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "filters/filter.h"
#include "filters/key_hash.h"

namespace helenus::filters {

class DynamicCuckoo {
 public:
  struct Options {
    std::uint64_t capacity = 0;  // keys at most
    unsigned fingerprint_bits = 16;
    unsigned slots = 4;                 // b
    std::uint32_t member_buckets = 64;  // a power of two
    unsigned kicks_max = 500;

    friend bool operator==(const Options&, const Options&) = default;
  };
  static constexpr unsigned kFingerprintBitsMin = 4;
  static constexpr unsigned kFingerprintBitsMax = 32;
  static constexpr unsigned kSlotsMax = 16;
  static constexpr unsigned kKicksMax = 1U << 14;
  static constexpr std::uint32_t kMemberBucketsMax = std::uint32_t{1} << 28;
  static constexpr std::uint64_t kCapacityMax = std::uint64_t{1} << 30;
  static constexpr std::uint32_t kMembersMax = std::uint32_t{1} << 20;

  // With members for an eighth of the capacity. Errors: invalid_argument.
  static base::Result<DynamicCuckoo> for_capacity(std::uint64_t capacity);
  // Errors: invalid_argument.
  static base::Result<DynamicCuckoo> with_options(const Options& options);

  DynamicCuckoo(DynamicCuckoo&&) noexcept = default;
  DynamicCuckoo& operator=(DynamicCuckoo&&) noexcept = default;

  [[nodiscard]] bool insert(KeyHash key);
  bool contains(KeyHash key) const;
  void contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const;
  void prefetch(KeyHash key) const;
  // Requires: the key is in (filter.h says what happens otherwise).
  bool erase(KeyHash key);
  unsigned count(KeyHash key) const;
  // How many members are gone.
  unsigned compact();

  std::uint64_t size() const { return size_; }
  std::uint64_t capacity() const { return options_.capacity; }
  const Options& options() const { return options_; }
  std::uint64_t member_count() const { return members_.size(); }
  std::uint64_t slot_count() const { return members_.size() * slots_per_member(); }
  double false_positive_rate() const;
  double false_positive_rate_max() const;
  std::uint64_t memory_bytes() const { return slot_count() * sizeof(std::uint32_t); }

  base::Bytes encode() const;
  // Errors: corrupt, unsupported, invalid_argument for another kind of filter.
  static base::Result<DynamicCuckoo> decode(const base::Bytes& encoded);

 private:
  using Fingerprint = std::uint32_t;
  struct Member {
    std::vector<Fingerprint> slots;
    std::uint64_t size = 0;
  };
  struct Home {
    Fingerprint fingerprint;
    std::uint32_t first;
    std::uint32_t second;
  };

  explicit DynamicCuckoo(const Options& options) : options_(options) {}
  static base::Result<void> check(const Options& options);

  std::size_t slots_per_member() const {
    return std::size_t{options_.member_buckets} * options_.slots;
  }
  Home home_of(KeyHash key) const;
  std::uint32_t other_bucket(std::uint32_t bucket, Fingerprint fingerprint) const;
  Fingerprint* bucket_of(Member& member, std::uint32_t bucket) const {
    return member.slots.data() + std::size_t{bucket} * options_.slots;
  }
  const Fingerprint* bucket_of(const Member& member, std::uint32_t bucket) const {
    return member.slots.data() + std::size_t{bucket} * options_.slots;
  }
  bool holds(const Member& member, const Home& home) const;
  bool place(Member& member, std::uint32_t bucket, Fingerprint fingerprint) const;
  bool insert_into(Member& member, const Home& home);
  bool insert_by_walking(Member& member, const Home& home);
  bool move_out(std::size_t from);
  bool move_bucket(Member& member, std::size_t from, std::uint32_t bucket);
  void add_member() { members_.push_back({.slots = std::vector<Fingerprint>(slots_per_member())}); }

  Options options_;
  std::uint64_t size_ = 0;
  std::uint32_t active_ = 0;
  std::vector<Member> members_;
};

static_assert(ErasableFilter<DynamicCuckoo>);

}  // namespace helenus::filters
