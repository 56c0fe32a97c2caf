#include "filters/consistent_cuckoo.h"

#include <array>
#include <string>

#include "base/assert.h"
#include "base/codec.h"
#include "filters/envelope.h"
#include "filters/overlap.h"

namespace helenus::filters {

using base::Errc;
using base::Error;

namespace {

// Buckets that one insertion adds before it gives up. A table that is small compared with the
// search always finds room among so many. In a large one that grows before it is full an insertion
// fails only where a key is in too often; in one that does not, so many new buckets may all be far
// from where room is wanted.
constexpr unsigned kBucketsTried = 64;

// A member is added only where more than one in so many slots is in use.
constexpr std::uint64_t kEmptyPartsMax = 16;

// Bytes of a member before its labels and slots.
constexpr std::size_t kMemberBytesMin = 24;

}  // namespace

base::Result<void> ConsistentCuckoo::check(const Options& options) {
  TRY_VOID(IndexIndependentCuckoo::check(options.shape));
  const bool sound = options.capacity > 0 && options.capacity <= kCapacityMax &&
                     options.fingerprint_bits >= kFingerprintBitsMin &&
                     options.fingerprint_bits <= kFingerprintBitsMax &&
                     options.member_buckets > 0 && options.member_buckets <= kMemberBucketsMax &&
                     options.members_max > 0 && options.members_max <= kMembersMax &&
                     options.growth <= Growth::by_members_as_printed &&
                     options.grow_above_percent > 0 && options.grow_above_percent <= 100 &&
                     options.shrink_below_percent <= options.grow_above_percent &&
                     options.merged_fingerprints_max <= IndexIndependentCuckoo::kSlotsMax;
  if (sound) return {};
  return Error(Errc::invalid_argument,
               "a consistent cuckoo filter for {} keys of {} bits in {} members of {} buckets, "
               "growing above {} % and shrinking below {} %",
               options.capacity, options.fingerprint_bits, options.members_max,
               options.member_buckets, options.grow_above_percent, options.shrink_below_percent);
}

base::Result<ConsistentCuckoo> ConsistentCuckoo::for_capacity(std::uint64_t capacity) {
  return with_options({.capacity = capacity});
}

base::Result<ConsistentCuckoo> ConsistentCuckoo::with_options(const Options& options) {
  TRY_VOID(check(options));
  ConsistentCuckoo filter(options);
  filter.add_member(options.shape, options.member_buckets);
  return filter;
}

void ConsistentCuckoo::add_member(const Shape& shape, std::uint32_t bucket_count) {
  members_.emplace_back(shape, next_salt_++, bucket_count);
  candidates_max_ = std::max(candidates_max_, shape.candidates);
  compact_at_size_ = UINT64_MAX;
}

std::size_t ConsistentCuckoo::member_with_fewest_keys() const {
  const auto found = std::ranges::min_element(members_, {}, &IndexIndependentCuckoo::size);
  return static_cast<std::size_t>(found - members_.begin());
}

std::size_t ConsistentCuckoo::member_with_fewest_buckets() const {
  const auto found = std::ranges::min_element(members_, {}, &IndexIndependentCuckoo::bucket_count);
  return static_cast<std::size_t>(found - members_.begin());
}

std::size_t ConsistentCuckoo::member_with_most_buckets() const {
  const auto found = std::ranges::max_element(members_, {}, &IndexIndependentCuckoo::bucket_count);
  return static_cast<std::size_t>(found - members_.begin());
}

// --- Growing ---

bool ConsistentCuckoo::insert(KeyHash key) {
  if (size_ >= options_.capacity) return false;
  const Fingerprint fingerprint = fingerprint_of(key);
  const bool inserted = options_.growth == Growth::by_members_as_printed
                            ? members_[member_with_fewest_keys()].insert(fingerprint)
                            : insert_anywhere(fingerprint);
  if (!inserted && !insert_by_growing(fingerprint)) return false;
  ++size_;
  // After the insertion, since one that is refused must leave no trace.
  if (options_.grow_above_percent < 100 && options_.growth == Growth::by_buckets &&
      size_ * 100 > slot_count() * options_.grow_above_percent) {
    (void)scale_up();  // Where it fails, an insertion will ask for room again.
  }
  return true;
}

bool ConsistentCuckoo::insert_anywhere(Fingerprint fingerprint) {
  const std::size_t first = member_with_fewest_keys();
  if (members_[first].insert(fingerprint)) return true;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (i != first && members_[i].insert(fingerprint)) return true;
  }
  return false;
}

bool ConsistentCuckoo::insert_by_growing(Fingerprint fingerprint) {
  if (options_.growth != Growth::by_buckets && members_.size() < options_.members_max) {
    if (size_ * kEmptyPartsMax < slot_count()) return false;
    add_member(options_.shape, options_.member_buckets);
    const bool inserted = members_.back().insert(fingerprint);
    ASSERT(inserted);  // It is empty.
    return true;
  }
  std::vector<IndexIndependentCuckoo*> by_buckets;
  for (IndexIndependentCuckoo& member : members_) by_buckets.push_back(&member);
  std::ranges::sort(by_buckets, {}, [](const IndexIndependentCuckoo* member) {
    return std::pair(member->bucket_count(), member->salt());
  });
  const auto positions = IndexIndependentCuckoo::positions_of(fingerprint, candidates_max_);
  return std::ranges::any_of(by_buckets, [&](IndexIndependentCuckoo* member) {
    // More of the same fingerprint than one bucket takes: no number of buckets is sure to help.
    return member->count(fingerprint, positions) < member->shape().slots &&
           member->insert_with_room(fingerprint, kBucketsTried);
  });
}

bool ConsistentCuckoo::scale_up() {
  return members_[member_with_fewest_buckets()].add_bucket();
}

base::Result<void> ConsistentCuckoo::scale_out(const Shape& shape, std::uint32_t bucket_count) {
  TRY_VOID(IndexIndependentCuckoo::check(shape));
  if (bucket_count == 0 || !IndexIndependentCuckoo::fits_on_ring(shape, bucket_count)) {
    return Error(Errc::invalid_argument, "a member of {} buckets", bucket_count);
  }
  if (members_.size() >= options_.members_max) {
    return Error(Errc::overloaded, "a consistent cuckoo filter has {} members already",
                 members_.size());
  }
  add_member(shape, bucket_count);
  return {};
}

void ConsistentCuckoo::reserve(std::uint64_t keys) {
  keys = std::min(keys, options_.capacity);
  while (slot_count() * options_.grow_above_percent < keys * 100) {
    if (!scale_up()) return;
  }
}

// --- Shrinking ---

bool ConsistentCuckoo::erase(KeyHash key) {
  const Fingerprint fingerprint = fingerprint_of(key);
  const auto positions = IndexIndependentCuckoo::positions_of(fingerprint, candidates_max_);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const std::uint32_t bucket = members_[i].erase(fingerprint, positions);
    if (bucket == IndexIndependentCuckoo::kNowhere) continue;
    --size_;
    shrink_after(i, bucket);
    return true;
  }
  return false;
}

bool ConsistentCuckoo::scale_down() {
  IndexIndependentCuckoo& member = members_[member_with_most_buckets()];
  auto bucket = static_cast<std::uint32_t>(member.bucket_count() - 1);
  if (member.shape().ring == IndexIndependentCuckoo::Ring::hashed) {
    for (std::uint32_t each = 0; each < member.bucket_count(); ++each) {
      if (member.occupied(each) < member.occupied(bucket)) bucket = each;
    }
  }
  return member.remove_bucket(bucket);
}

void ConsistentCuckoo::shrink_after(std::size_t index, std::uint32_t bucket) {
  IndexIndependentCuckoo& member = members_[index];
  if (options_.growth == Growth::by_buckets) {
    const std::uint64_t left = member.slot_count() - member.shape().slots;
    if (member.size() * 100 > left * options_.shrink_below_percent) return;
    if (member.shape().ring == IndexIndependentCuckoo::Ring::even) {
      bucket = static_cast<std::uint32_t>(member.bucket_count() - 1);
    }
    if (member.occupied(bucket) > options_.merged_fingerprints_max) return;
    (void)member.remove_bucket(bucket);  // Where it fails, a later erasure tries again.
    return;
  }
  if (members_.size() == 1 || size_ > compact_at_size_) return;
  compact();
}

unsigned ConsistentCuckoo::compact() {
  unsigned gone = 0;
  while (members_.size() > 1) {
    const std::size_t least = member_with_fewest_keys();
    const std::uint64_t left = slot_count() - members_[least].slot_count();
    if (size_ * 100 > left * options_.shrink_below_percent) {
      compact_at_size_ = left * options_.shrink_below_percent / 100;
      return gone;
    }
    if (!empty_into_others(least)) {
      // A little more room before the next attempt, which costs as much as this one.
      const std::uint64_t pause = 1 + members_[least].slot_count() / 64;
      compact_at_size_ = size_ > pause ? size_ - pause : 0;
      return gone;
    }
    ++gone;
  }
  compact_at_size_ = UINT64_MAX;
  return gone;
}

bool ConsistentCuckoo::empty_into_others(std::size_t index) {
  IndexIndependentCuckoo leaving = std::move(members_[index]);
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(index));
  for (IndexIndependentCuckoo& member : members_) member.begin();
  const bool moved = std::ranges::all_of(leaving.slots(), [this](Fingerprint fingerprint) {
    return fingerprint == 0 || insert_anywhere(fingerprint);
  });
  for (IndexIndependentCuckoo& member : members_) moved ? member.commit() : member.roll_back();
  if (!moved) {
    members_.insert(members_.begin() + static_cast<std::ptrdiff_t>(index), std::move(leaving));
  }
  return moved;
}

// --- Asking ---

bool ConsistentCuckoo::contains_in_any(Fingerprint fingerprint) const {
  const auto positions = IndexIndependentCuckoo::positions_of(fingerprint, candidates_max_);
  return std::ranges::any_of(members_, [&](const IndexIndependentCuckoo& member) {
    return member.contains(fingerprint, positions);
  });
}

void ConsistentCuckoo::prefetch(KeyHash key) const {
  const auto positions = IndexIndependentCuckoo::positions_of(fingerprint_of(key), candidates_max_);
  for (const IndexIndependentCuckoo& member : members_) member.prefetch_places(positions);
}

// Three passes over a group: the ring, the buckets, the answers.
void ConsistentCuckoo::contains_batch(std::span<const KeyHash> keys,
                                      std::span<bool> answers) const {
  ASSERT(keys.size() == answers.size());
  std::array<IndexIndependentCuckoo::Positions, kLookupsInFlight> positions;
  std::array<IndexIndependentCuckoo::Buckets, kLookupsInFlight> buckets;
  while (!keys.empty()) {
    const std::size_t group = std::min(kLookupsInFlight, keys.size());
    for (std::size_t i = 0; i < group; ++i) {
      positions[i] = IndexIndependentCuckoo::positions_of(fingerprint_of(keys[i]), candidates_max_);
    }
    for (std::size_t i = 0; i < group; ++i) answers[i] = false;
    for (const IndexIndependentCuckoo& member : members_) {
      for (std::size_t i = 0; i < group; ++i) member.prefetch_places(positions[i]);
      for (std::size_t i = 0; i < group; ++i) member.find_buckets(positions[i], buckets[i]);
      for (std::size_t i = 0; i < group; ++i) {
        answers[i] |= member.contains_in(buckets[i], fingerprint_of(keys[i]));
      }
    }
    keys = keys.subspan(group);
    answers = answers.subspan(group);
  }
}

unsigned ConsistentCuckoo::count(KeyHash key) const {
  const Fingerprint fingerprint = fingerprint_of(key);
  const auto positions = IndexIndependentCuckoo::positions_of(fingerprint, candidates_max_);
  unsigned total = 0;
  for (const IndexIndependentCuckoo& member : members_) {
    total += member.count(fingerprint, positions);
  }
  return total;
}

std::uint64_t ConsistentCuckoo::bucket_count() const {
  std::uint64_t total = 0;
  for (const IndexIndependentCuckoo& member : members_) total += member.bucket_count();
  return total;
}

std::uint64_t ConsistentCuckoo::slot_count() const {
  std::uint64_t total = 0;
  for (const IndexIndependentCuckoo& member : members_) total += member.slot_count();
  return total;
}

std::uint64_t ConsistentCuckoo::memory_bytes() const {
  std::uint64_t total = 0;
  for (const IndexIndependentCuckoo& member : members_) total += member.memory_bytes();
  return total;
}

// A stranger meets every key that is in.
double ConsistentCuckoo::false_positive_rate() const {
  return rate_of_equal_fingerprints(options_.fingerprint_bits, static_cast<double>(size_));
}

double ConsistentCuckoo::false_positive_rate_max() const {
  return rate_of_equal_fingerprints(options_.fingerprint_bits,
                                    static_cast<double>(options_.capacity));
}

base::Result<void> ConsistentCuckoo::check() const {
  std::uint64_t total = 0;
  for (const IndexIndependentCuckoo& member : members_) {
    TRY_VOID(member.check());
    total += member.size();
  }
  if (total != size_) return Error(Errc::corrupt, "{} fingerprints of {} keys", total, size_);
  return {};
}

// --- Bytes ---

namespace {

void encode_shape(base::Encoder& out, const IndexIndependentCuckoo::Shape& shape) {
  out.u8(static_cast<std::uint8_t>(shape.candidates));
  out.u8(static_cast<std::uint8_t>(shape.slots));
  out.u8(static_cast<std::uint8_t>(shape.places));
  out.u8(std::to_underlying(shape.ring));
  out.u32_le(shape.searched_max);
}

IndexIndependentCuckoo::Shape decode_shape(base::Decoder& in) {
  IndexIndependentCuckoo::Shape shape;
  shape.candidates = in.u8();
  shape.slots = in.u8();
  shape.places = in.u8();
  shape.ring = IndexIndependentCuckoo::Ring{in.u8()};
  shape.searched_max = in.u32_le();
  return shape;
}

void encode_words(base::Encoder& out, std::span<const std::uint32_t> words) {
  for (const std::uint32_t word : words) out.u32_le(word);
}

std::vector<std::uint32_t> decode_words(base::Decoder& in, std::uint64_t count) {
  std::vector<std::uint32_t> words;
  if (count > in.remaining() / sizeof(std::uint32_t)) {
    in.fail("words are missing");
    return words;
  }
  words.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) words.push_back(in.u32_le());
  return words;
}

base::Result<IndexIndependentCuckoo> decode_member(base::Decoder& in, unsigned fingerprint_bits) {
  const auto shape = decode_shape(in);
  const std::uint32_t salt = in.u32_le();
  const std::uint32_t next_label = in.u32_le();
  const std::uint64_t bucket_count = in.u64_le();
  if (!in.ok()) return in.status().error();
  if (const auto sound = IndexIndependentCuckoo::check(shape); !sound) {
    return Error(Errc::corrupt, "{}", sound.error().context());
  }
  if (bucket_count > in.remaining() / sizeof(std::uint32_t)) {
    return Error(Errc::corrupt, "a member of {} buckets", bucket_count);
  }
  const bool has_labels = shape.ring == IndexIndependentCuckoo::Ring::hashed;
  std::vector<std::uint32_t> labels = decode_words(in, has_labels ? bucket_count : 0);
  std::vector<std::uint32_t> slots = decode_words(in, bucket_count * shape.slots);
  if (!in.ok()) return in.status().error();
  const std::uint64_t values = std::uint64_t{1} << fingerprint_bits;
  if (std::ranges::any_of(slots, [&](std::uint32_t slot) { return slot >= values; })) {
    return Error(Errc::corrupt, "a fingerprint of more than {} bits", fingerprint_bits);
  }
  return IndexIndependentCuckoo::from_parts(shape, salt, next_label, std::move(labels),
                                            std::move(slots));
}

}  // namespace

base::Bytes ConsistentCuckoo::encode() const {
  base::Buffer body;
  base::Encoder out(body);
  encode_shape(out, options_.shape);
  out.u32_le(options_.member_buckets);
  out.u32_le(options_.members_max);
  out.u8(std::to_underlying(options_.growth));
  out.u8(static_cast<std::uint8_t>(options_.grow_above_percent));
  out.u8(static_cast<std::uint8_t>(options_.shrink_below_percent));
  out.u8(static_cast<std::uint8_t>(options_.merged_fingerprints_max));
  out.u32_le(next_salt_);
  out.u64_le(compact_at_size_);
  out.u32_le(static_cast<std::uint32_t>(members_.size()));
  for (const IndexIndependentCuckoo& member : members_) {
    encode_shape(out, member.shape());
    out.u32_le(member.salt());
    out.u32_le(member.next_label());
    out.u64_le(member.bucket_count());
    encode_words(out, member.labels());
    encode_words(out, member.slots());
  }
  return seal({.kind = Kind::consistent_cuckoo,
               .width = static_cast<std::uint8_t>(options_.fingerprint_bits),
               .size = size_,
               .capacity = options_.capacity,
               .units = slot_count(),
               .population = size_},
              body.view());
}

base::Result<ConsistentCuckoo> ConsistentCuckoo::decode(const base::Bytes& encoded) {
  TRY(const Opened opened, unseal(encoded, Kind::consistent_cuckoo));
  const Envelope& envelope = opened.envelope;
  base::Decoder in(opened.body);
  Options options{.capacity = envelope.capacity, .fingerprint_bits = envelope.width};
  options.shape = decode_shape(in);
  options.member_buckets = in.u32_le();
  options.members_max = in.u32_le();
  options.growth = Growth{in.u8()};
  options.grow_above_percent = in.u8();
  options.shrink_below_percent = in.u8();
  options.merged_fingerprints_max = in.u8();
  const std::uint32_t next_salt = in.u32_le();
  const std::uint64_t compact_at_size = in.u64_le();
  const std::uint32_t member_count = in.u32_le();
  TRY_VOID(in.status());
  if (const auto sound = check(options); !sound) {
    return Error(Errc::corrupt, "{}", sound.error().context());
  }
  if (member_count == 0 || member_count > options.members_max ||
      member_count > in.remaining() / kMemberBytesMin) {
    return Error(Errc::corrupt, "a consistent cuckoo filter of {} members", member_count);
  }
  ConsistentCuckoo filter(options);
  filter.next_salt_ = next_salt;
  filter.compact_at_size_ = compact_at_size;
  for (std::uint32_t i = 0; i < member_count; ++i) {
    TRY(IndexIndependentCuckoo member, decode_member(in, options.fingerprint_bits));
    filter.candidates_max_ = std::max(filter.candidates_max_, member.shape().candidates);
    filter.size_ += member.size();
    filter.members_.push_back(std::move(member));
  }
  TRY_VOID(in.finish());
  if (filter.size_ != envelope.size || filter.size_ != envelope.population ||
      filter.size_ > envelope.capacity || filter.slot_count() != envelope.units) {
    return Error(Errc::corrupt, "{} fingerprints in {} slots of {} keys in {}", filter.size_,
                 filter.slot_count(), envelope.size, envelope.units);
  }
  return filter;
}

}  // namespace helenus::filters
