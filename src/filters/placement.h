// Placement: which two buckets a fingerprint may live in, for any number of buckets.
//
// A key's first bucket comes from its hash. The other is found from the bucket a fingerprint is in
// and the fingerprint alone, because that is all a filter knows when it moves one:
//
//   alternate(i, f) = (offset(f) - i) mod n         with 0 <= offset(f) < n
//
// This is an involution for every n, a power of two or not:
//
//   alternate(alternate(i, f), f) = offset(f) - (offset(f) - i) = i   (mod n)
//
// where the more common i xor offset(f) stays below n only for powers of two. For each f there are
// at most two buckets that are their own alternate (2i = offset(f) mod n); a fingerprint there has
// one bucket instead of two, which is right though cramped, and rare.
//
// The offset must not be linear in f. Were it f * c mod n, two moves would lead from i to
// i + (f2 - f1) * c: a few hundred places for fingerprints of 8 bits, however many pairs of
// fingerprints there are, and the table would fill no further than 0.959 instead of 0.972.
#pragma once

#include <bit>
#include <cstdint>

#include "filters/key_hash.h"

namespace helenus::filters {

// The high half of a product: scales `fraction` / 2^64 to [0, range).
constexpr std::uint64_t scale(std::uint64_t fraction, std::uint64_t range) {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(fraction) * range) >> 64);
}

class Placement {
 public:
  // Requires: bucket_count > 0.
  explicit constexpr Placement(std::uint64_t bucket_count) : bucket_count_(bucket_count) {}

  constexpr std::uint64_t bucket_count() const { return bucket_count_; }

  // Takes the high bits of the hash; fingerprints take the low ones.
  constexpr std::uint64_t first(KeyHash key) const { return scale(key.value(), bucket_count_); }

  // Requires: bucket < bucket_count().
  constexpr std::uint64_t alternate(std::uint64_t bucket, std::uint32_t fingerprint) const {
    return reflect(bucket, scale(scramble(fingerprint), bucket_count_), bucket_count_);
  }

  // (offset - bucket) mod count. Requires: bucket < count and offset < count.
  static constexpr std::uint64_t reflect(std::uint64_t bucket, std::uint64_t offset,
                                         std::uint64_t count) {
    return offset - bucket + (offset < bucket ? count : 0);
  }

 private:
  // A product's halves are both linear in the fingerprint; their xor is not.
  static constexpr std::uint64_t scramble(std::uint32_t fingerprint) {
    const std::uint64_t product = fingerprint * 0x9e3779b97f4a7c15;
    return product ^ std::rotl(product, 32);
  }

  std::uint64_t bucket_count_;
};

}  // namespace helenus::filters
