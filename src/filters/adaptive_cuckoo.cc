#include "filters/adaptive_cuckoo.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "filters/chain.h"
#include "filters/cuckoo_table.h"
#include "filters/envelope.h"
#include "filters/overlap.h"

namespace helenus::filters {

using base::Errc;
using base::Error;

namespace {

// The residents of a filter's matches, from an array that has them all.
struct Fetched {
  Fetched(const Matches& matches, const ResidentKeys& keys) {
    for (const std::uint64_t slot : matches.slots()) entries[count++] = {slot, keys.at(slot)};
  }
  std::span<const Resident> all() const { return {entries.data(), count}; }

  std::array<Resident, Matches::kMax> entries;
  std::size_t count = 0;
};

}  // namespace

template <unsigned kBits>
base::Result<AdaptiveCuckoo<kBits>> AdaptiveCuckoo<kBits>::for_capacity(std::uint64_t capacity) {
  if (capacity == 0 || capacity > capacity_of(kBucketsMax)) {
    return Error(Errc::invalid_argument, "an adaptive cuckoo filter for {} keys", capacity);
  }
  const std::uint64_t bucket_count = buckets_for(capacity);
  TRY(Table table, Table::zeroed(table_bytes(bucket_count)));
  return AdaptiveCuckoo(bucket_count, capacity, 0, std::move(table));
}

template <unsigned kBits>
base::Result<AdaptiveCuckoo<kBits>> AdaptiveCuckoo<kBits>::with_buckets(
    std::uint64_t bucket_count) {
  if (bucket_count == 0 || bucket_count > kBucketsMax) {
    return Error(Errc::invalid_argument, "an adaptive cuckoo filter of {} buckets", bucket_count);
  }
  TRY(Table table, Table::zeroed(table_bytes(bucket_count)));
  return AdaptiveCuckoo(bucket_count, capacity_of(bucket_count), 0, std::move(table));
}

template <unsigned kBits>
void AdaptiveCuckoo<kBits>::set_slot(std::uint64_t slot, std::uint32_t value) {
  std::byte* at = table_.writable() + slot / kSlotsPerBucket * Slots::kBytes;
  Slots::store(at, Slots::with_slot(Slots::load(at), slot % kSlotsPerBucket, value));
}

template <unsigned kBits>
bool AdaptiveCuckoo<kBits>::insert(KeyHash key, ResidentKeys& residents) {
  ASSERT(residents.slot_count() == slot_count());
  const Patterns patterns(key);
  const std::uint64_t first = placement_.first(key);
  const std::uint64_t second = placement_.alternate(first, patterns.base_fingerprint);
  const auto settle = [&](std::uint64_t slot) {
    set_slot(slot, patterns.slots[0]);
    residents.put(slot, key);
    ++size_;
  };
  for (const std::uint64_t bucket : {first, second}) {
    const Word word = Slots::load(bucket_at(bucket));
    if (Slots::has_room(word)) {
      settle(bucket * kSlotsPerBucket + Slots::empty_slot(word));
      return true;
    }
  }
  const Chain chain = find_chain<Slots>(table_.data(), first, second,
                                        [this](std::uint64_t bucket, std::uint32_t slot) {
                                          return placement_.alternate(bucket, slot & kBaseMask);
                                        });
  if (chain.length == 0) return false;
  const auto slot_of = [](const Chain::Place& place) {
    return place.bucket * kSlotsPerBucket + place.slot;
  };
  for (unsigned i = chain.length - 1; i > 0; --i) {
    const std::uint64_t from = slot_of(chain.places[i - 1]);
    const std::uint64_t to = slot_of(chain.places[i]);
    set_slot(to, slot_at(from));
    residents.put(to, residents.at(from));
  }
  settle(slot_of(chain.places[0]));
  return true;
}

template <unsigned kBits>
void AdaptiveCuckoo<kBits>::contains_batch(std::span<const KeyHash> keys,
                                           std::span<bool> answers) const {
  overlap_lookups(*this, keys, answers);
}

template <unsigned kBits>
Matches AdaptiveCuckoo<kBits>::matches(KeyHash key) const {
  Matches found;
  const Patterns patterns(key);
  const std::uint64_t first = placement_.first(key);
  const std::uint64_t second = placement_.alternate(first, patterns.base_fingerprint);
  const auto search = [&](std::uint64_t bucket) {
    for (unsigned i = 0; i < kSlotsPerBucket; ++i) {
      const std::uint64_t slot = bucket * kSlotsPerBucket + i;
      const std::uint32_t value = slot_at(slot);
      if (value == patterns.slots[selector_of(value)]) found.add(slot);
    }
  };
  search(first);
  if (second != first) search(second);
  return found;
}

template <unsigned kBits>
bool AdaptiveCuckoo<kBits>::could_hold(std::uint64_t slot, KeyHash key) const {
  const Patterns patterns(key);
  const std::uint64_t bucket = slot / kSlotsPerBucket;
  const std::uint64_t first = placement_.first(key);
  const std::uint32_t value = slot_at(slot);
  return (bucket == first || bucket == placement_.alternate(first, patterns.base_fingerprint)) &&
         value == patterns.slots[selector_of(value)];
}

template <unsigned kBits>
base::Result<void> AdaptiveCuckoo<kBits>::check(const Matches& matches,
                                                std::span<const Resident> residents) const {
  for (const std::uint64_t slot : matches.slots()) {
    const auto resident = std::ranges::find(residents, slot, &Resident::slot);
    if (resident == residents.end()) {
      return Error(Errc::invalid_argument, "nobody says who resides in slot {}", slot);
    }
    if (!could_hold(slot, resident->key)) {
      return Error(Errc::corrupt, "the resident of slot {} does not agree with it", slot);
    }
  }
  return {};
}

template <unsigned kBits>
base::Result<Adapted> AdaptiveCuckoo<kBits>::adapt(KeyHash absent,
                                                   std::span<const Resident> residents) {
  const Matches matching = matches(absent);
  if (matching.empty()) return Adapted::not_needed;
  TRY_VOID(check(matching, residents));
  const Patterns avoided(absent);
  std::array<std::uint32_t, Matches::kMax> replacements;
  unsigned planned = 0;
  for (const std::uint64_t slot : matching.slots()) {
    const KeyHash resident = std::ranges::find(residents, slot, &Resident::slot)->key;
    if (resident == absent) return Adapted::key_is_present;
    const Patterns patterns(resident);
    const unsigned selector = selector_of(slot_at(slot));
    unsigned turns = 1;
    const auto turned = [&] { return (selector + turns) % kSelectors; };
    while (turns < kSelectors && patterns.slots[turned()] == avoided.slots[turned()]) ++turns;
    if (turns == kSelectors) return Adapted::impossible;
    replacements[planned++] = patterns.slots[turned()];
  }
  for (unsigned i = 0; i < planned; ++i) set_slot(matching.slots()[i], replacements[i]);
  return Adapted::done;
}

template <unsigned kBits>
base::Result<std::optional<std::uint64_t>> AdaptiveCuckoo<kBits>::erase(
    KeyHash key, std::span<const Resident> residents) {
  const Matches matching = matches(key);
  TRY_VOID(check(matching, residents));
  for (const std::uint64_t slot : matching.slots()) {
    if (std::ranges::find(residents, slot, &Resident::slot)->key != key) continue;
    set_slot(slot, 0);
    --size_;
    return slot;
  }
  return std::nullopt;
}

// As for Cuckoo, with the base's uneven first value and an even tag.
template <unsigned kBits>
double AdaptiveCuckoo<kBits>::false_positive_rate() const {
  const double equal = (std::exp2(kBaseBits) + 2) / std::exp2(2 * kBaseBits + kTagBits);
  return -std::expm1(2 * kSlotsPerBucket * load() * std::log1p(-equal));
}

template <unsigned kBits>
double AdaptiveCuckoo<kBits>::false_positive_rate_max() const {
  const double equal = (std::exp2(kBaseBits) + 2) / std::exp2(2 * kBaseBits + kTagBits);
  return -std::expm1(2 * kSlotsPerBucket * std::log1p(-equal));
}

template <unsigned kBits>
bool AdaptiveCuckoo<kBits>::agrees_with(const ResidentKeys& residents) const {
  if (residents.slot_count() != slot_count()) return false;
  for (std::uint64_t slot = 0; slot < slot_count(); ++slot) {
    if (slot_at(slot) != 0 && !could_hold(slot, residents.at(slot))) return false;
  }
  return true;
}

template <unsigned kBits>
base::Bytes AdaptiveCuckoo<kBits>::encode() const {
  return seal({.kind = Kind::adaptive_cuckoo,
               .width = kBits,
               .size = size_,
               .capacity = capacity_,
               .units = bucket_count(),
               .population = size_},
              table_.view());
}

template <unsigned kBits>
base::Result<AdaptiveCuckoo<kBits>> AdaptiveCuckoo<kBits>::decode(const base::Bytes& encoded) {
  TRY(Opened opened,
      unseal_bucket_table<Slots>(encoded, Kind::adaptive_cuckoo, kBits, "slots", kBucketsMax));
  const Envelope& envelope = opened.envelope;
  AdaptiveCuckoo filter(envelope.units, envelope.capacity, envelope.size,
                        Table::viewing(std::move(opened.body)));
  for (std::uint64_t slot = 0; slot < filter.slot_count(); ++slot) {
    const std::uint32_t value = filter.slot_at(slot);
    if (value != 0 && (value & kBaseMask) == 0) {
      return Error(Errc::corrupt, "slot {} has no base fingerprint", slot);
    }
  }
  return filter;
}

template <unsigned kBits>
base::Result<KeyedAdaptiveCuckoo<kBits>> KeyedAdaptiveCuckoo<kBits>::for_capacity(
    std::uint64_t capacity) {
  TRY(auto filter, AdaptiveCuckoo<kBits>::for_capacity(capacity));
  TRY(ResidentKeys residents, ResidentKeys::for_slots(filter.slot_count()));
  return KeyedAdaptiveCuckoo(std::move(filter), std::move(residents));
}

template <unsigned kBits>
base::Result<KeyedAdaptiveCuckoo<kBits>> KeyedAdaptiveCuckoo<kBits>::with_buckets(
    std::uint64_t bucket_count) {
  TRY(auto filter, AdaptiveCuckoo<kBits>::with_buckets(bucket_count));
  TRY(ResidentKeys residents, ResidentKeys::for_slots(filter.slot_count()));
  return KeyedAdaptiveCuckoo(std::move(filter), std::move(residents));
}

template <unsigned kBits>
bool KeyedAdaptiveCuckoo<kBits>::erase(KeyHash key) {
  const Fetched fetched(filter_.matches(key), residents_);
  const auto erased = filter_.erase(key, fetched.all());
  ASSERT(erased.has_value(), "{}", erased.error());
  if (!*erased) return false;
  residents_.put(**erased, KeyHash());
  return true;
}

template <unsigned kBits>
unsigned KeyedAdaptiveCuckoo<kBits>::count(KeyHash key) const {
  const Fetched fetched(filter_.matches(key), residents_);
  return static_cast<unsigned>(std::ranges::count(fetched.all(), key, &Resident::key));
}

template <unsigned kBits>
Adapted KeyedAdaptiveCuckoo<kBits>::report_false_positive(KeyHash absent) {
  const Fetched fetched(filter_.matches(absent), residents_);
  const auto adapted = filter_.adapt(absent, fetched.all());
  ASSERT(adapted.has_value(), "{}", adapted.error());
  return *adapted;
}

template <unsigned kBits>
base::Bytes KeyedAdaptiveCuckoo<kBits>::encode() const {
  const base::Bytes filter = filter_.encode();
  const base::Bytes residents = residents_.encode();
  base::Buffer out(filter.size() + residents.size());
  out.append(filter);
  out.append(residents);
  return std::move(out).freeze();
}

template <unsigned kBits>
base::Result<KeyedAdaptiveCuckoo<kBits>> KeyedAdaptiveCuckoo<kBits>::decode(
    const base::Bytes& encoded) {
  TRY(const std::size_t filter_bytes, sealed_bytes(encoded));
  TRY(auto filter, AdaptiveCuckoo<kBits>::decode(encoded.slice(0, filter_bytes)));
  TRY(ResidentKeys residents, ResidentKeys::decode(encoded.slice(filter_bytes)));
  if (!filter.agrees_with(residents)) {
    return Error(Errc::corrupt, std::string("a filter and its residents disagree"));
  }
  return KeyedAdaptiveCuckoo(std::move(filter), std::move(residents));
}

template class AdaptiveCuckoo<16>;
template class AdaptiveCuckoo<32>;
template class KeyedAdaptiveCuckoo<16>;
template class KeyedAdaptiveCuckoo<32>;

}  // namespace helenus::filters
