#include "storage/sstable/sstable_filter.h"

#include <utility>

#include "base/assert.h"
#include "filters/envelope.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;

namespace {

// All hashes in one cuckoo filter, or nothing. A table sized for them refuses one with a small
// probability; a larger one then takes it, unless more hashes are equal than two buckets hold.
template <class Cuckoo>
std::optional<base::Bytes> all_in(const std::vector<std::uint64_t>& hashes) {
  constexpr int kAttemptsMax = 4;
  std::uint64_t capacity = hashes.size();
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    auto filter = Cuckoo::for_capacity(capacity);
    ASSERT(filter.has_value(), "{}", filter.error().to_string());
    bool all = true;
    for (const std::uint64_t hash : hashes) {
      all = filter->insert(filters::KeyHash(hash));
      if (!all) break;
    }
    if (all) return filter->encode();
    capacity += capacity / 16 + 1;
  }
  return std::nullopt;
}

}  // namespace

FilterBuilder::FilterBuilder(FilterOptions options) : options_(options) {
  ASSERT(options_.false_positive_rate >= kFilterRateMin &&
             options_.false_positive_rate <= kFilterRateMax,
         "false positive rate {}", options_.false_positive_rate);
  ASSERT(!options_.bits_per_hash || (*options_.bits_per_hash >= kFilterBitsMin &&
                                     *options_.bits_per_hash <= kFilterBitsMax),
         "{} bits a hash", *options_.bits_per_hash);
}

base::Bytes FilterBuilder::finish() {
  ASSERT(enabled() && !hashes_.empty());
  base::Bytes encoded = options_.kind == FilterKind::cuckoo  ? build_cuckoo()
                        : options_.kind == FilterKind::bloom ? build_bloom()
                                                             : build_consistent_cuckoo();
  hashes_.clear();
  return encoded;
}

unsigned FilterBuilder::fingerprint_bits() const {
  // What widths give when full (filters/cuckoo.h).
  constexpr double kRateOf8Bits = 0.032;
  constexpr double kRateOf12Bits = 0.002;
  if (options_.bits_per_hash.has_value()) {
    return *options_.bits_per_hash >= 16 ? 16 : *options_.bits_per_hash >= 12 ? 12 : 8;
  }
  const double rate = options_.false_positive_rate;
  return rate >= kRateOf8Bits ? 8 : rate >= kRateOf12Bits ? 12 : 16;
}

base::Bytes FilterBuilder::build_cuckoo() const {
  const unsigned bits = fingerprint_bits();
  const auto encoded = bits == 8    ? all_in<filters::Cuckoo8>(hashes_)
                       : bits == 12 ? all_in<filters::Cuckoo12>(hashes_)
                                    : all_in<filters::Cuckoo16>(hashes_);
  // Only keys made to collide get here; a Bloom filter takes them all.
  return encoded.has_value() ? *encoded : build_bloom();
}

base::Bytes FilterBuilder::build_consistent_cuckoo() const {
  auto filter = filters::ConsistentCuckoo::for_capacity(hashes_.size());
  ASSERT(filter.has_value(), "{}", filter.error().to_string());
  filter->reserve(hashes_.size());
  for (const std::uint64_t hash : hashes_) {
    // Only keys made to collide are refused; a Bloom filter takes them all.
    if (!filter->insert(filters::KeyHash(hash))) return build_bloom();
  }
  return filter->encode();
}

base::Bytes FilterBuilder::build_bloom() const {
  auto filter =
      options_.bits_per_hash.has_value()
          ? filters::BlockedBloom::with_bits_per_key(hashes_.size(), *options_.bits_per_hash)
          : filters::BlockedBloom::for_rate(hashes_.size(), options_.false_positive_rate);
  ASSERT(filter.has_value(), "{}", filter.error().to_string());
  for (const std::uint64_t hash : hashes_) {
    const bool inserted = filter->insert(filters::KeyHash(hash));
    ASSERT(inserted);
  }
  return filter->encode();
}

FilterKind SstableFilter::kind() const {
  if (std::holds_alternative<filters::BlockedBloom>(filter_)) return FilterKind::bloom;
  if (std::holds_alternative<filters::ConsistentCuckoo>(filter_)) {
    return FilterKind::consistent_cuckoo;
  }
  return FilterKind::cuckoo;
}

Result<SstableFilter> SstableFilter::decode(base::ByteView encoded) {
  // Filters look into the bytes they are given; aligned, no bucket straddles two cache lines.
  constexpr std::size_t kCacheLine = 64;
  base::Buffer aligned(encoded.size(), kCacheLine);
  aligned.append(encoded);
  const base::Bytes bytes = std::move(aligned).freeze();
  TRY(const auto opened, filters::unseal(bytes));
  if (opened.envelope.kind == filters::Kind::blocked_bloom) {
    TRY(auto bloom, filters::BlockedBloom::decode(bytes));
    return SstableFilter(std::move(bloom));
  }
  if (opened.envelope.kind == filters::Kind::consistent_cuckoo) {
    TRY(auto cuckoo, filters::ConsistentCuckoo::decode(bytes));
    return SstableFilter(std::move(cuckoo));
  }
  if (opened.envelope.kind == filters::Kind::cuckoo) {
    if (opened.envelope.width == 8) {
      TRY(auto cuckoo, filters::Cuckoo8::decode(bytes));
      return SstableFilter(std::move(cuckoo));
    }
    if (opened.envelope.width == 12) {
      TRY(auto cuckoo, filters::Cuckoo12::decode(bytes));
      return SstableFilter(std::move(cuckoo));
    }
    if (opened.envelope.width == 16) {
      TRY(auto cuckoo, filters::Cuckoo16::decode(bytes));
      return SstableFilter(std::move(cuckoo));
    }
  }
  return Error(Errc::unsupported, "filter of kind {} and width {}",
               static_cast<int>(opened.envelope.kind), opened.envelope.width);
}

}  // namespace helenus::storage
