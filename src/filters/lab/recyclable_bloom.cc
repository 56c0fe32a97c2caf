#include "filters/lab/recyclable_bloom.h"

#include <utility>

#include "base/assert.h"
#include "filters/forgetful_rates.h"
#include "filters/probes.h"

namespace helenus::filters {

namespace {

// What Bloom says of itself with so many keys.
double rate_with(std::uint64_t bits, unsigned probes, std::uint64_t keys) {
  return bloom_rate(bits, probes, keys) + rate_of_aligned_probes(bits, keys);
}

}  // namespace

base::Result<RecyclableBloom> RecyclableBloom::with_table(std::uint64_t bits, unsigned probes,
                                                          double rate_max) {
  const bool sound = bits > 0 && bits <= Bloom::kBitsMax && probes > 0 && probes <= kProbesMax &&
                     rate_max > 0 && rate_max < 1;
  if (!sound || rate_with(bits, probes, 1) > rate_max) {
    return base::Error(base::Errc::invalid_argument,
                       "a recyclable Bloom filter of {} bits, {} probes, to a rate of {}", bits,
                       probes, rate_max);
  }
  // The rate grows with the keys: the most of them that stay below it. Thirty-two keys a bit fill
  // any table.
  std::uint64_t fits = 1;
  std::uint64_t too_many = bits * 32;
  while (too_many - fits > 1) {
    const std::uint64_t middle = fits + (too_many - fits) / 2;
    (rate_with(bits, probes, middle) <= rate_max ? fits : too_many) = middle;
  }
  const std::uint64_t capacity = fits < Bloom::kBitsMax ? fits : Bloom::kBitsMax;
  TRY(Bloom bloom, Bloom::with_shape({.bits = bits, .probes = probes, .capacity = capacity}));
  return RecyclableBloom(std::move(bloom));
}

base::Result<RecyclableBloom> RecyclableBloom::for_rate(std::uint64_t capacity, double rate_max) {
  TRY(Bloom bloom, Bloom::for_rate(capacity, rate_max));
  return RecyclableBloom(std::move(bloom));
}

bool RecyclableBloom::insert_recycling(KeyHash key) {
  if (bloom_.insert(key)) return false;
  bloom_.clear();
  ASSERT(bloom_.insert(key), "an empty filter takes a key");
  return true;
}

base::Result<RecyclableBloom> RecyclableBloom::decode(const base::Bytes& encoded) {
  TRY(Bloom bloom, Bloom::decode(encoded));
  return RecyclableBloom(std::move(bloom));
}

}  // namespace helenus::filters
