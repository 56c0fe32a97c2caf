#include "filters/lab/dynamic_cuckoo.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <utility>

#include "base/codec.h"
#include "base/hash.h"
#include "filters/envelope.h"
#include "filters/fingerprint.h"
#include "filters/overlap.h"

namespace helenus::filters {

using base::Errc;
using base::Error;

base::Result<void> DynamicCuckoo::check(const Options& options) {
  const bool sound = options.capacity > 0 && options.capacity <= kCapacityMax &&
                     options.fingerprint_bits >= kFingerprintBitsMin &&
                     options.fingerprint_bits <= kFingerprintBitsMax && options.slots > 0 &&
                     options.slots <= kSlotsMax && std::has_single_bit(options.member_buckets) &&
                     options.member_buckets <= kMemberBucketsMax && options.kicks_max <= kKicksMax;
  if (sound) return {};
  return Error(Errc::invalid_argument,
               "a dynamic cuckoo filter for {} keys of {} bits in {} buckets of {} slots, {} kicks",
               options.capacity, options.fingerprint_bits, options.member_buckets, options.slots,
               options.kicks_max);
}

base::Result<DynamicCuckoo> DynamicCuckoo::for_capacity(std::uint64_t capacity) {
  if (capacity == 0 || capacity > kCapacityMax) {
    return Error(Errc::invalid_argument, "a dynamic cuckoo filter for {} keys", capacity);
  }
  const Options defaults;
  const std::uint64_t buckets = std::bit_ceil(capacity / 8 / defaults.slots + 1);
  return with_options(
      {.capacity = capacity, .member_buckets = static_cast<std::uint32_t>(buckets)});
}

base::Result<DynamicCuckoo> DynamicCuckoo::with_options(const Options& options) {
  TRY_VOID(check(options));
  DynamicCuckoo filter(options);
  filter.add_member();
  return filter;
}

// The fingerprint comes from the low bits, the bucket from the high ones.
DynamicCuckoo::Home DynamicCuckoo::home_of(KeyHash key) const {
  const Fingerprint fingerprint = fingerprint_of(key, options_.fingerprint_bits);
  const auto first = static_cast<std::uint32_t>(key.value() >> 32) & (options_.member_buckets - 1);
  return {.fingerprint = fingerprint, .first = first, .second = other_bucket(first, fingerprint)};
}

std::uint32_t DynamicCuckoo::other_bucket(std::uint32_t bucket, Fingerprint fingerprint) const {
  const auto offset = static_cast<std::uint32_t>(base::mix64(fingerprint));
  return (bucket ^ offset) & (options_.member_buckets - 1);
}

bool DynamicCuckoo::holds(const Member& member, const Home& home) const {
  const Fingerprint* first = bucket_of(member, home.first);
  const Fingerprint* second = bucket_of(member, home.second);
  bool found = false;
  for (unsigned slot = 0; slot < options_.slots; ++slot) {
    found |= first[slot] == home.fingerprint || second[slot] == home.fingerprint;
  }
  return found;
}

bool DynamicCuckoo::place(Member& member, std::uint32_t bucket, Fingerprint fingerprint) const {
  Fingerprint* at = bucket_of(member, bucket);
  Fingerprint* end = at + options_.slots;
  Fingerprint* free = std::find(at, end, 0U);
  if (free == end) return false;
  *free = fingerprint;
  return true;
}

bool DynamicCuckoo::insert_into(Member& member, const Home& home) {
  if (member.size == slots_per_member()) return false;
  const bool inserted = place(member, home.first, home.fingerprint) ||
                        place(member, home.second, home.fingerprint) ||
                        insert_by_walking(member, home);
  if (inserted) ++member.size;
  return inserted;
}

bool DynamicCuckoo::insert_by_walking(Member& member, const Home& home) {
  std::vector<std::pair<std::size_t, Fingerprint>> displaced;
  Fingerprint homeless = home.fingerprint;
  std::uint32_t bucket = home.first;
  for (unsigned kick = 0; kick < options_.kicks_max; ++kick) {
    const std::size_t slot = std::size_t{bucket} * options_.slots +
                             base::mix64(homeless + (std::uint64_t{kick} << 32)) % options_.slots;
    displaced.emplace_back(slot, member.slots[slot]);
    std::swap(homeless, member.slots[slot]);
    bucket = other_bucket(bucket, homeless);
    if (place(member, bucket, homeless)) return true;
  }
  for (; !displaced.empty(); displaced.pop_back()) {
    member.slots[displaced.back().first] = displaced.back().second;
  }
  return false;
}

bool DynamicCuckoo::insert(KeyHash key) {
  if (size_ >= options_.capacity) return false;
  const Home home = home_of(key);
  if (insert_into(members_[active_], home)) {
    ++size_;
    return true;
  }
  if (members_.size() == kMembersMax) return false;
  add_member();
  active_ = static_cast<std::uint32_t>(members_.size() - 1);
  const bool inserted = insert_into(members_.back(), home);
  ASSERT(inserted);  // It is empty.
  ++size_;
  return true;
}

bool DynamicCuckoo::contains(KeyHash key) const {
  const Home home = home_of(key);
  return std::ranges::any_of(members_, [&](const Member& member) { return holds(member, home); });
}

void DynamicCuckoo::prefetch(KeyHash key) const {
  const Home home = home_of(key);
  for (const Member& member : members_) {
    __builtin_prefetch(bucket_of(member, home.first));
    __builtin_prefetch(bucket_of(member, home.second));
  }
}

void DynamicCuckoo::contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const {
  overlap_lookups(*this, keys, answers);
}

bool DynamicCuckoo::erase(KeyHash key) {
  const Home home = home_of(key);
  for (Member& member : members_) {
    for (const std::uint32_t bucket : {home.first, home.second}) {
      Fingerprint* at = bucket_of(member, bucket);
      Fingerprint* found = std::find(at, at + options_.slots, home.fingerprint);
      if (found == at + options_.slots) continue;
      *found = 0;
      --member.size;
      --size_;
      return true;
    }
  }
  return false;
}

unsigned DynamicCuckoo::count(KeyHash key) const {
  const Home home = home_of(key);
  std::ptrdiff_t total = 0;
  for (const Member& member : members_) {
    const Fingerprint* first = bucket_of(member, home.first);
    total += std::count(first, first + options_.slots, home.fingerprint);
    if (home.second == home.first) continue;
    const Fingerprint* second = bucket_of(member, home.second);
    total += std::count(second, second + options_.slots, home.fingerprint);
  }
  return static_cast<unsigned>(total);
}

bool DynamicCuckoo::move_bucket(Member& member, std::size_t from, std::uint32_t bucket) {
  Fingerprint* at = bucket_of(member, bucket);
  for (unsigned slot = 0; slot < options_.slots; ++slot) {
    if (at[slot] == 0) continue;
    const bool moved = [&] {
      for (std::size_t i = 0; i < members_.size(); ++i) {
        // Into fuller ones alone: what moves there does not have to move again.
        const bool is_fuller =
            members_[i].size > member.size || (members_[i].size == member.size && i < from);
        if (i == from || !is_fuller || !place(members_[i], bucket, at[slot])) continue;
        ++members_[i].size;
        return true;
      }
      return false;
    }();
    if (!moved) return false;
    at[slot] = 0;
    --member.size;
  }
  return true;
}

// Whether the member is empty now.
bool DynamicCuckoo::move_out(std::size_t from) {
  Member& member = members_[from];
  bool all_moved = true;
  for (std::uint32_t bucket = 0; bucket < options_.member_buckets; ++bucket) {
    all_moved &= move_bucket(member, from, bucket);
  }
  return all_moved;
}

unsigned DynamicCuckoo::compact() {
  std::vector<std::size_t> order(members_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [this](std::size_t i) { return std::pair(members_[i].size, i); });
  for (const std::size_t member : order) {
    if (members_[member].size < slots_per_member()) move_out(member);
  }
  const std::size_t before = members_.size();
  std::erase_if(members_, [](const Member& member) { return member.size == 0; });
  if (members_.empty()) add_member();
  const auto emptiest = std::ranges::min_element(members_, {}, &Member::size);
  active_ = static_cast<std::uint32_t>(emptiest - members_.begin());
  return static_cast<unsigned>(before - members_.size());
}

// A lookup compares with two buckets of every member, as full as they are on average.
double DynamicCuckoo::false_positive_rate() const {
  return rate_of_equal_fingerprints(options_.fingerprint_bits,
                                    2.0 * static_cast<double>(size_) / options_.member_buckets);
}

double DynamicCuckoo::false_positive_rate_max() const {
  return rate_of_equal_fingerprints(
      options_.fingerprint_bits,
      2.0 * static_cast<double>(options_.capacity) / options_.member_buckets);
}

base::Bytes DynamicCuckoo::encode() const {
  base::Buffer body;
  base::Encoder out(body);
  out.u8(static_cast<std::uint8_t>(options_.slots));
  out.u32_le(options_.kicks_max);
  out.u32_le(options_.member_buckets);
  out.u32_le(active_);
  out.u32_le(static_cast<std::uint32_t>(members_.size()));
  for (const Member& member : members_) {
    for (const Fingerprint slot : member.slots) out.u32_le(slot);
  }
  return seal({.kind = Kind::dynamic_cuckoo,
               .width = static_cast<std::uint8_t>(options_.fingerprint_bits),
               .size = size_,
               .capacity = options_.capacity,
               .units = slot_count(),
               .population = size_},
              body.view());
}

base::Result<DynamicCuckoo> DynamicCuckoo::decode(const base::Bytes& encoded) {
  TRY(const Opened opened, unseal(encoded, Kind::dynamic_cuckoo));
  const Envelope& envelope = opened.envelope;
  base::Decoder in(opened.body);
  Options options{.capacity = envelope.capacity, .fingerprint_bits = envelope.width};
  options.slots = in.u8();
  options.kicks_max = in.u32_le();
  options.member_buckets = in.u32_le();
  const std::uint32_t active = in.u32_le();
  const std::uint32_t member_count = in.u32_le();
  TRY_VOID(in.status());
  if (const auto sound = check(options); !sound) {
    return Error(Errc::corrupt, "{}", sound.error().context());
  }
  DynamicCuckoo filter(options);
  const std::size_t member_bytes = filter.slots_per_member() * sizeof(Fingerprint);
  if (member_count == 0 || member_count > kMembersMax || active >= member_count ||
      in.remaining() / member_bytes != member_count || in.remaining() % member_bytes != 0) {
    return Error(Errc::corrupt, "a dynamic cuckoo filter of {} members", member_count);
  }
  filter.active_ = active;
  const std::uint64_t values = std::uint64_t{1} << options.fingerprint_bits;
  for (std::uint32_t i = 0; i < member_count; ++i) {
    filter.add_member();
    for (Fingerprint& slot : filter.members_.back().slots) {
      slot = in.u32_le();
      if (slot >= values) return Error(Errc::corrupt, std::string("a fingerprint is too long"));
      filter.members_.back().size += slot != 0 ? 1 : 0;
    }
    filter.size_ += filter.members_.back().size;
  }
  TRY_VOID(in.finish());
  if (filter.size_ != envelope.size || filter.size_ != envelope.population ||
      filter.size_ > envelope.capacity || filter.slot_count() != envelope.units) {
    return Error(Errc::corrupt, "{} fingerprints of {} keys", filter.size_, envelope.size);
  }
  return filter;
}

}  // namespace helenus::filters
