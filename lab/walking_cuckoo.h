// WalkingCuckoo: the index-independent cuckoo filter as its paper describes it, for the lab.
//
// It differs from filters::IndexIndependentCuckoo in how room is found: an insertion that meets
// full buckets kicks out a fingerprint at random, and that one another, for `moves_max` moves. The
// fingerprint that is then without a place, the last victim, goes where a new bucket makes room.
//
// After an erasure buckets are merged: those with at most `merged_fingerprints_max` fingerprints
// are emptied into others and taken off the ring. The paper does not say which are tried, and so
// there are several ways here.
//
// Cost: as the paper's, moves at random through memory; an erasure that looks for the emptiest
// bucket reads how full every one is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/prng.h"
#include "filters/hash_ring.h"
#include "filters/index_independent_cuckoo.h"
#include "filters/key_hash.h"

namespace helenus::lab {

class WalkingCuckoo {
 public:
  enum class Merging : std::uint8_t {
    the_one_left,  // the bucket that the erased fingerprint was in
    the_emptiest,  // of all
    all,           // the emptiest, and again, until one does not go
  };

  struct Options {
    unsigned fingerprint_bits = 30;  // f
    unsigned candidates = 2;         // k
    unsigned slots = 3;              // b
    unsigned places = 10;            // v
    unsigned moves_max = 1200;       // max
    unsigned merged_fingerprints_max = 1;
    Merging merging = Merging::the_emptiest;
  };

  explicit WalkingCuckoo(const Options& options);

  // Always true: buckets are added until there is room.
  bool insert(filters::KeyHash key);
  // False when it is not in.
  bool erase(filters::KeyHash key);
  bool contains(filters::KeyHash key) const;

  std::uint64_t size() const { return size_; }
  std::uint64_t slot_count() const { return slots_.size(); }

 private:
  using Fingerprint = filters::IndexIndependentCuckoo::Fingerprint;
  using Position = filters::HashRing::Position;
  static constexpr Fingerprint kNone = 0;

  struct Change {
    std::size_t slot;
    Fingerprint before;
  };

  // The owners of a fingerprint's positions; one may be among them more than once.
  struct Candidates {
    std::array<std::uint32_t, filters::IndexIndependentCuckoo::kCandidatesMax> buckets{};
    std::size_t count = 0;
    std::uint32_t* begin() { return buckets.data(); }
    std::uint32_t* end() { return buckets.data() + count; }
    const std::uint32_t* begin() const { return buckets.data(); }
    const std::uint32_t* end() const { return buckets.data() + count; }
  };

  std::uint32_t bucket_count() const { return static_cast<std::uint32_t>(places_.size()); }
  Candidates candidates_of(Fingerprint fingerprint) const;
  bool is_candidate(Fingerprint fingerprint, std::uint32_t bucket) const;
  void set_slot(std::size_t slot, Fingerprint value);
  bool place(std::uint32_t bucket, Fingerprint fingerprint);
  // kNone, or the last victim.
  [[nodiscard]] Fingerprint insert_by_walking(Fingerprint fingerprint);
  // The fingerprints that lose their bucket to it are appended to `homeless`.
  void add_bucket(std::vector<Fingerprint>& homeless);
  bool remove_bucket(std::uint32_t bucket);
  void merge_after(std::uint32_t bucket);

  Options options_;
  base::Prng prng_;
  filters::HashRing ring_;
  std::vector<std::vector<Position>> places_;  // by bucket
  std::vector<unsigned> occupied_;             // by bucket
  std::vector<Fingerprint> slots_;             // b a bucket
  std::vector<Change> journal_;                // of the removal under way
  std::uint64_t size_ = 0;
};

}  // namespace helenus::lab
