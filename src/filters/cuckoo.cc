#include "filters/cuckoo.h"

#include <utility>

#include "filters/cuckoo_table.h"
#include "filters/envelope.h"
#include "filters/overlap.h"

namespace helenus::filters {

using base::Errc;
using base::Error;

template <unsigned kBits>
base::Result<Cuckoo<kBits>> Cuckoo<kBits>::for_capacity(std::uint64_t capacity) {
  if (capacity == 0 || capacity > capacity_of(kBucketsMax)) {
    return Error(Errc::invalid_argument, "a cuckoo filter for {} keys", capacity);
  }
  const std::uint64_t bucket_count = buckets_for(capacity);
  TRY(Table table, Table::zeroed(table_bytes(bucket_count)));
  return Cuckoo(bucket_count, capacity, 0, std::move(table));
}

template <unsigned kBits>
base::Result<Cuckoo<kBits>> Cuckoo<kBits>::with_buckets(std::uint64_t bucket_count) {
  if (bucket_count == 0 || bucket_count > kBucketsMax) {
    return Error(Errc::invalid_argument, "a cuckoo filter of {} buckets", bucket_count);
  }
  TRY(Table table, Table::zeroed(table_bytes(bucket_count)));
  return Cuckoo(bucket_count, capacity_of(bucket_count), 0, std::move(table));
}

template <unsigned kBits>
bool Cuckoo<kBits>::insert_by_moving(std::uint64_t first, std::uint64_t second,
                                     std::uint32_t fingerprint) {
  std::byte* table = table_.writable();
  const Chain chain =
      find_chain<Slots>(table, first, second, [this](std::uint64_t bucket, std::uint32_t slot) {
        return placement_.alternate(bucket, slot);
      });
  if (chain.length == 0) return false;
  for (unsigned i = chain.length; i-- > 0;) {
    const auto [bucket, slot] = chain.places[i];
    std::uint32_t value = fingerprint;
    if (i > 0) {
      const auto [from, from_slot] = chain.places[i - 1];
      value = Slots::slot(Slots::load(bucket_at(from)), from_slot);
    }
    std::byte* at = table + bucket * Slots::kBytes;
    Slots::store(at, Slots::with_slot(Slots::load(at), slot, value));
  }
  ++size_;
  return true;
}

template <unsigned kBits>
void Cuckoo<kBits>::contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const {
  struct Lookup {
    const std::byte* first;
    const std::byte* second;
    std::uint32_t fingerprint;
  };
  overlap(
      keys, answers,
      [this](KeyHash key) {
        const std::uint32_t fingerprint = fingerprint_of(key);
        const std::uint64_t first = placement_.first(key);
        const Lookup lookup{.first = bucket_at(first),
                            .second = bucket_at(placement_.alternate(first, fingerprint)),
                            .fingerprint = fingerprint};
        Slots::prefetch(lookup.first);
        Slots::prefetch(lookup.second);
        return lookup;
      },
      [](const Lookup& lookup) {
        return Slots::any_equal(lookup.first, lookup.second, lookup.fingerprint);
      });
}

template <unsigned kBits>
unsigned Cuckoo<kBits>::count(KeyHash key) const {
  const std::uint32_t fingerprint = fingerprint_of(key);
  const std::uint64_t first = placement_.first(key);
  const std::uint64_t second = placement_.alternate(first, fingerprint);
  const auto equal_in = [&](std::uint64_t bucket) {
    const Word word = Slots::load(bucket_at(bucket));
    return Slots::lane_count(Slots::zero_lanes(word ^ Slots::in_every_slot(fingerprint)));
  };
  return equal_in(first) + (second == first ? 0 : equal_in(second));
}

// A lookup compares with the fingerprints of eight slots.
template <unsigned kBits>
double Cuckoo<kBits>::false_positive_rate() const {
  return rate_of_equal_fingerprints(kBits, 2 * kSlotsPerBucket * load());
}

template <unsigned kBits>
double Cuckoo<kBits>::false_positive_rate_max() const {
  return rate_of_equal_fingerprints(kBits, 2 * kSlotsPerBucket);
}

template <unsigned kBits>
base::Bytes Cuckoo<kBits>::encode() const {
  return seal({.kind = Kind::cuckoo,
               .width = kBits,
               .size = size_,
               .capacity = capacity_,
               .units = bucket_count(),
               .population = size_},
              table_.view());
}

template <unsigned kBits>
base::Result<Cuckoo<kBits>> Cuckoo<kBits>::decode(const base::Bytes& encoded) {
  TRY(Opened opened,
      unseal_bucket_table<Slots>(encoded, Kind::cuckoo, kBits, "fingerprints", kBucketsMax));
  const Envelope& envelope = opened.envelope;
  return Cuckoo(envelope.units, envelope.capacity, envelope.size,
                Table::viewing(std::move(opened.body)));
}

template class Cuckoo<8>;
template class Cuckoo<12>;
template class Cuckoo<16>;
template class Cuckoo<32>;

}  // namespace helenus::filters
