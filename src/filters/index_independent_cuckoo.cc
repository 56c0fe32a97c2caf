#include "filters/index_independent_cuckoo.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <string>
#include <utility>

#include "base/assert.h"

namespace helenus::filters {

using base::Errc;
using base::Error;

namespace {

constexpr std::uint32_t kNoParent = UINT32_MAX;

// Labels that are tried before a bucket is said not to fit.
constexpr unsigned kLabelsTried = 8;

// Storage for so many buckets: a sixteenth more at most, in steps that many additions share.
std::uint64_t storage_step(std::uint64_t bucket_count) {
  return std::max<std::uint64_t>(8, std::bit_floor(bucket_count / 16));
}
std::uint64_t storage_for(std::uint64_t bucket_count) {
  const std::uint64_t step = storage_step(bucket_count);
  return (bucket_count + step - 1) / step * step;
}

}  // namespace

base::Result<void> IndexIndependentCuckoo::check(const Shape& shape) {
  const bool sound =
      shape.candidates > 0 && shape.candidates <= kCandidatesMax && shape.slots > 0 &&
      shape.slots <= kSlotsMax && shape.places > 0 && shape.places <= kPlacesMax &&
      shape.searched_max > 0 && shape.searched_max <= kSearchedMax &&
      (shape.ring == Ring::hashed || (shape.ring == Ring::even && shape.places == 1));
  if (sound) return {};
  return Error(Errc::invalid_argument,
               "a consistent cuckoo table of {} candidates, {} slots, {} places, searching {}",
               shape.candidates, shape.slots, shape.places, shape.searched_max);
}

IndexIndependentCuckoo::IndexIndependentCuckoo(Shape shape, std::uint32_t salt,
                                               std::uint64_t bucket_count)
    : IndexIndependentCuckoo(shape, salt) {
  ASSERT(check(shape).has_value());
  ASSERT(bucket_count > 0 && fits_on_ring(shape, bucket_count));
  for (std::uint64_t i = 0; i < bucket_count; ++i) append_bucket();
}

// --- The ring ---

HashRing::Position IndexIndependentCuckoo::place_of(std::uint32_t label, unsigned index) const {
  const std::uint64_t name = (std::uint64_t{salt_} << 32) | label;
  return static_cast<HashRing::Position>(
      base::mix64(name + std::uint64_t{index + 1} * 0x9e3779b97f4a7c15) >> 32);
}

bool IndexIndependentCuckoo::is_free(std::uint32_t label) const {
  for (unsigned i = 0; i < shape_.places; ++i) {
    const HashRing::Position place = place_of(label, i);
    if (ring_.is_taken(place)) return false;
    for (unsigned j = 0; j < i; ++j) {
      if (place_of(label, j) == place) return false;
    }
  }
  return true;
}

void IndexIndependentCuckoo::put_on_ring(std::uint32_t label, std::uint32_t bucket) {
  for (unsigned i = 0; i < shape_.places; ++i) ring_.add(place_of(label, i), bucket);
}

void IndexIndependentCuckoo::take_off_ring(std::uint32_t label) {
  for (unsigned i = 0; i < shape_.places; ++i) ring_.remove(place_of(label, i));
}

void IndexIndependentCuckoo::set_bucket_count(std::uint64_t bucket_count) {
  const std::uint64_t wanted = storage_for(bucket_count);
  const std::uint64_t there = slots_.capacity() / shape_.slots;
  const bool is_loose = wanted + storage_step(bucket_count) < there;
  const bool has_labels = shape_.ring == Ring::hashed;
  if (wanted > there || is_loose) {
    std::vector<std::uint32_t> labels;
    Slots slots;
    if (has_labels) labels.reserve(wanted);
    slots.reserve(wanted * shape_.slots);
    const std::size_t kept = std::min<std::size_t>(bucket_count, bucket_count_);
    std::ranges::copy(std::span(labels_).first(has_labels ? kept : 0), std::back_inserter(labels));
    slots.assign(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(kept * shape_.slots));
    labels_ = std::move(labels);
    slots_ = std::move(slots);
  }
  if (has_labels) labels_.resize(bucket_count);
  slots_.resize(bucket_count * shape_.slots);
  bucket_count_ = static_cast<std::uint32_t>(bucket_count);
  even_mask_ = std::bit_ceil(bucket_count_) - 1;
}

void IndexIndependentCuckoo::append_bucket() {
  const std::uint32_t bucket = bucket_count_;
  set_bucket_count(std::uint64_t{bucket} + 1);
  if (shape_.ring == Ring::even) return;
  while (!is_free(next_label_)) ++next_label_;
  labels_[bucket] = next_label_++;
  put_on_ring(labels_[bucket], bucket);
}

void IndexIndependentCuckoo::drop_last_bucket() {
  if (shape_.ring == Ring::hashed) take_off_ring(labels_.back());
  set_bucket_count(std::uint64_t{bucket_count_} - 1);
}

// --- Fingerprints ---

bool IndexIndependentCuckoo::is_candidate(Fingerprint fingerprint, std::uint32_t bucket) const {
  const Positions positions = positions_of(fingerprint, shape_.candidates);
  for (unsigned i = 0; i < shape_.candidates; ++i) {
    if (candidate(positions, i) == bucket) return true;
  }
  return false;
}

void IndexIndependentCuckoo::set_slot(std::size_t slot, Fingerprint value) {
  if (is_journaling_) journal_.push_back({.slot = slot, .before = slots_[slot]});
  slots_[slot] = value;
}

bool IndexIndependentCuckoo::place(std::uint32_t bucket, Fingerprint fingerprint) {
  const Fingerprint* at = bucket_at(bucket);
  for (unsigned slot = 0; slot < shape_.slots; ++slot) {
    if (at[slot] != 0) continue;
    set_slot(std::size_t{bucket} * shape_.slots + slot, fingerprint);
    return true;
  }
  return false;
}

bool IndexIndependentCuckoo::insert(Fingerprint fingerprint) {
  ASSERT(fingerprint != 0);
  const Positions positions = positions_of(fingerprint, shape_.candidates);
  for (unsigned i = 0; i < shape_.candidates; ++i) {
    if (place(candidate(positions, i), fingerprint)) {
      ++size_;
      return true;
    }
  }
  return insert_by_moving(fingerprint, positions);
}

bool IndexIndependentCuckoo::insert_by_moving(Fingerprint fingerprint, const Positions& positions) {
  if (size_ == slots_.size()) return false;
  visits_.clear();
  seen_.forget(std::min<std::size_t>(shape_.searched_max, bucket_count_));
  for (unsigned i = 0; i < shape_.candidates && visits_.size() < shape_.searched_max; ++i) {
    const std::uint32_t root = candidate(positions, i);
    if (seen_.add(root)) visits_.push_back({.bucket = root, .parent = kNoParent, .parent_slot = 0});
  }
  for (std::uint32_t visit = 0; visit < visits_.size(); ++visit) {
    const std::uint32_t bucket = visits_[visit].bucket;
    for (std::uint32_t slot = 0; slot < shape_.slots; ++slot) {
      const Fingerprint moved = bucket_at(bucket)[slot];
      const Positions others = positions_of(moved, shape_.candidates);
      for (unsigned i = 0; i < shape_.candidates; ++i) {
        const std::uint32_t next = candidate(others, i);
        if (next == bucket) continue;
        if (occupied(next) < shape_.slots) {
          move_along(visit, slot, next, fingerprint);
          return true;
        }
        if (visits_.size() < shape_.searched_max && seen_.add(next)) {
          visits_.push_back({next, visit, slot});
        }
      }
    }
  }
  return false;
}

void IndexIndependentCuckoo::Seen::forget(std::size_t count_max) {
  const std::size_t wanted = std::bit_ceil(2 * count_max);
  if (entries_.size() != wanted) {
    entries_.assign(wanted, {});
    round_ = 0;
  }
  if (++round_ == 0) {
    entries_.assign(wanted, {});
    round_ = 1;
  }
}

bool IndexIndependentCuckoo::Seen::add(std::uint32_t bucket) {
  const std::size_t mask = entries_.size() - 1;
  for (std::size_t at = base::mix64(bucket) & mask;; at = (at + 1) & mask) {
    if (entries_[at].round != round_) {
      entries_[at] = {.bucket = bucket, .round = round_};
      return true;
    }
    if (entries_[at].bucket == bucket) return false;
  }
}

// From the free slot back to the newcomer's: each slot takes what the one before it held. Buckets
// of a shortest chain are all different (chain.h), so no move meets another.
void IndexIndependentCuckoo::move_along(std::uint32_t visit, std::uint32_t slot,
                                        std::uint32_t free_bucket, Fingerprint fingerprint) {
  const auto slot_of = [this](std::uint32_t bucket, std::uint32_t index) {
    return std::size_t{bucket} * shape_.slots + index;
  };
  std::size_t from = slot_of(visits_[visit].bucket, slot);
  const bool placed = place(free_bucket, slots_[from]);
  ASSERT(placed);
  while (visits_[visit].parent != kNoParent) {
    const std::size_t to = from;
    slot = visits_[visit].parent_slot;
    visit = visits_[visit].parent;
    from = slot_of(visits_[visit].bucket, slot);
    set_slot(to, slots_[from]);
  }
  set_slot(from, fingerprint);
  ++size_;
}

unsigned IndexIndependentCuckoo::count(Fingerprint fingerprint, const Positions& positions) const {
  unsigned total = 0;
  for (unsigned i = 0; i < shape_.candidates; ++i) {
    const std::uint32_t bucket = candidate(positions, i);
    bool is_repeated = false;
    for (unsigned j = 0; j < i; ++j) is_repeated |= candidate(positions, j) == bucket;
    if (is_repeated) continue;
    const Fingerprint* at = bucket_at(bucket);
    total += static_cast<unsigned>(std::count(at, at + shape_.slots, fingerprint));
  }
  return total;
}

std::uint32_t IndexIndependentCuckoo::erase(Fingerprint fingerprint, const Positions& positions) {
  for (unsigned i = 0; i < shape_.candidates; ++i) {
    const std::uint32_t bucket = candidate(positions, i);
    for (unsigned slot = 0; slot < shape_.slots; ++slot) {
      if (bucket_at(bucket)[slot] != fingerprint) continue;
      set_slot(std::size_t{bucket} * shape_.slots + slot, 0);
      --size_;
      return bucket;
    }
  }
  return kNowhere;
}

unsigned IndexIndependentCuckoo::occupied(std::uint32_t bucket) const {
  const Fingerprint* at = bucket_at(bucket);
  unsigned used = 0;
  for (unsigned slot = 0; slot < shape_.slots; ++slot) used += at[slot] != 0 ? 1 : 0;
  return used;
}

// --- Transactions ---

void IndexIndependentCuckoo::begin() {
  ASSERT(!is_journaling_);
  is_journaling_ = true;
  buckets_before_ = bucket_count_;
  next_label_before_ = next_label_;
  size_before_ = size_;
}

void IndexIndependentCuckoo::commit() {
  ASSERT(is_journaling_);
  is_journaling_ = false;
  journal_.clear();
}

void IndexIndependentCuckoo::undo_slots_to(std::size_t changes) {
  while (journal_.size() > changes) {
    slots_[journal_.back().slot] = journal_.back().before;
    journal_.pop_back();
  }
}

void IndexIndependentCuckoo::roll_back() {
  ASSERT(is_journaling_);
  undo_slots_to(0);
  while (bucket_count_ > buckets_before_) drop_last_bucket();
  next_label_ = next_label_before_;
  size_ = size_before_;
  is_journaling_ = false;
}

bool IndexIndependentCuckoo::insert_each(std::span<const Fingerprint> fingerprints) {
  return std::ranges::all_of(fingerprints, [this](Fingerprint each) { return insert(each); });
}

// Requires: a transaction is under way, to take back what a failure leaves.
bool IndexIndependentCuckoo::move_strangers_out_of(std::span<const std::uint32_t> buckets) {
  std::array<Fingerprint, std::size_t{kPlacesMax} * kSlotsMax> strangers;
  std::size_t stranger_count = 0;
  for (const std::uint32_t bucket : buckets) {
    for (unsigned slot = 0; slot < shape_.slots; ++slot) {
      const Fingerprint fingerprint = bucket_at(bucket)[slot];
      if (fingerprint == 0 || is_candidate(fingerprint, bucket)) continue;
      strangers[stranger_count++] = fingerprint;
      set_slot(std::size_t{bucket} * shape_.slots + slot, 0);
      --size_;
    }
  }
  return insert_each(std::span(strangers).first(stranger_count));
}

// Requires: a transaction is under way. False: as before, save that a label is used up.
bool IndexIndependentCuckoo::try_one_more_bucket() {
  std::array<std::uint32_t, kPlacesMax> owners;
  if (shape_.ring == Ring::even) {
    owners[0] = bucket_count_ & ~std::bit_floor(bucket_count_);
  } else {
    while (!is_free(next_label_)) ++next_label_;
    for (unsigned i = 0; i < shape_.places; ++i) {
      owners[i] = ring_.find_owner(place_of(next_label_, i));
    }
  }
  const std::size_t changes = journal_.size();
  const std::uint64_t size = size_;
  append_bucket();
  if (move_strangers_out_of(std::span(owners).first(shape_.places))) return true;
  undo_slots_to(changes);
  size_ = size;
  drop_last_bucket();
  return false;
}

bool IndexIndependentCuckoo::add_bucket() {
  if (!fits_on_ring(shape_, bucket_count() + 1) || !has_labels_left()) return false;
  begin();
  // On an even ring there is one place for the next bucket: another try would be the same.
  const unsigned tries = shape_.ring == Ring::even ? 1 : kLabelsTried;
  for (unsigned tried = 0; tried < tries; ++tried) {
    if (try_one_more_bucket()) {
      commit();
      return true;
    }
  }
  roll_back();
  return false;
}

bool IndexIndependentCuckoo::insert_with_room(Fingerprint fingerprint, unsigned buckets_max) {
  if (!fits_on_ring(shape_, bucket_count() + buckets_max) || !has_labels_left()) return false;
  begin();
  for (unsigned tried = 0; tried < buckets_max; ++tried) {
    const bool added = try_one_more_bucket();
    if (!added && shape_.ring == Ring::even) break;
    if (added && insert(fingerprint)) {
      commit();
      return true;
    }
  }
  roll_back();
  return false;
}

// A hidden bucket is nobody's candidate and still has its storage.
void IndexIndependentCuckoo::hide(std::uint32_t bucket) {
  if (shape_.ring == Ring::hashed) {
    take_off_ring(labels_[bucket]);
  } else {
    --bucket_count_;
    even_mask_ = std::bit_ceil(bucket_count_) - 1;
  }
}

void IndexIndependentCuckoo::unhide(std::uint32_t bucket) {
  if (shape_.ring == Ring::hashed) {
    put_on_ring(labels_[bucket], bucket);
  } else {
    ++bucket_count_;
    even_mask_ = std::bit_ceil(bucket_count_) - 1;
  }
}

bool IndexIndependentCuckoo::remove_bucket(std::uint32_t bucket) {
  const std::uint32_t last = bucket_count_ - 1;
  ASSERT(bucket <= last && (bucket == last || shape_.ring == Ring::hashed));
  if (last == 0) return false;
  begin();
  std::array<Fingerprint, kSlotsMax> displaced;
  std::size_t displaced_count = 0;
  for (unsigned slot = 0; slot < shape_.slots; ++slot) {
    const Fingerprint fingerprint = bucket_at(bucket)[slot];
    if (fingerprint == 0) continue;
    displaced[displaced_count++] = fingerprint;
    set_slot(std::size_t{bucket} * shape_.slots + slot, 0);
    --size_;
  }
  hide(bucket);
  if (!insert_each(std::span(displaced).first(displaced_count))) {
    unhide(bucket);
    roll_back();
    return false;
  }
  commit();
  if (bucket != last) {
    std::copy_n(bucket_at(last), shape_.slots, bucket_at(bucket));
    labels_[bucket] = labels_[last];
    for (unsigned i = 0; i < shape_.places; ++i) {
      ring_.renumber(place_of(labels_[bucket], i), bucket);
    }
  }
  set_bucket_count(last);
  return true;
}

// --- The rest ---

std::uint64_t IndexIndependentCuckoo::memory_bytes() const {
  return labels_.capacity() * sizeof(std::uint32_t) + slots_.capacity() * sizeof(Fingerprint) +
         ring_.memory_bytes();
}

void IndexIndependentCuckoo::prefetch_places(const Positions& positions) const {
  if (shape_.ring == Ring::even) return;
  for (unsigned i = 0; i < shape_.candidates; ++i) ring_.prefetch(positions[i]);
}

void IndexIndependentCuckoo::find_buckets(const Positions& positions, Buckets& buckets) const {
  for (unsigned i = 0; i < shape_.candidates; ++i) {
    buckets.at[i] = candidate(positions, i);
    __builtin_prefetch(bucket_at(buckets.at[i]));
  }
}

bool IndexIndependentCuckoo::contains_in(const Buckets& buckets, Fingerprint fingerprint) const {
  if (shape_.candidates == 2) return either_has(buckets[0], buckets[1], fingerprint);
  for (unsigned i = 0; i < shape_.candidates; ++i) {
    if (has(buckets[i], fingerprint)) return true;
  }
  return false;
}

bool IndexIndependentCuckoo::has(std::uint32_t bucket, Fingerprint fingerprint) const {
  const Fingerprint* at = bucket_at(bucket);
  return std::find(at, at + shape_.slots, fingerprint) != at + shape_.slots;
}

bool IndexIndependentCuckoo::either_has_of_any_size(std::uint32_t one, std::uint32_t other,
                                                    Fingerprint fingerprint) const {
  return has(one, fingerprint) || has(other, fingerprint);
}

bool IndexIndependentCuckoo::contains(Fingerprint fingerprint, const Positions& positions) const {
  for (unsigned i = 0; i < shape_.candidates; ++i) {
    if (has(candidate(positions, i), fingerprint)) return true;
  }
  return false;
}

base::Result<IndexIndependentCuckoo> IndexIndependentCuckoo::from_parts(
    Shape shape, std::uint32_t salt, std::uint32_t next_label, std::vector<std::uint32_t> labels,
    std::vector<Fingerprint> slots) {
  ASSERT(check(shape).has_value());
  const std::uint64_t bucket_count = slots.size() / shape.slots;
  const bool is_hashed = shape.ring == Ring::hashed;
  if (bucket_count == 0 || !fits_on_ring(shape, bucket_count) || slots.size() % shape.slots != 0 ||
      labels.size() != (is_hashed ? bucket_count : 0)) {
    return Error(Errc::corrupt, "a consistent cuckoo table of {} labels with {} slots",
                 labels.size(), slots.size());
  }
  IndexIndependentCuckoo table(shape, salt);
  table.set_bucket_count(bucket_count);
  std::ranges::copy(slots, table.slots_.begin());
  table.next_label_ = next_label;
  table.size_ = slots.size() - static_cast<std::uint64_t>(std::ranges::count(slots, 0U));
  TRY_VOID(table.place_labels(labels));
  if (is_hashed && table.ring_.longest_gap() > HashRing::kGapMax) {
    return Error(Errc::corrupt, "buckets leave most of a ring empty");
  }
  TRY_VOID(table.check());
  return table;
}

// All at once: one by one, places that were chosen to be put each before the others would cost the
// square of their number before it shows that they leave a gap.
base::Result<void> IndexIndependentCuckoo::place_labels(std::span<const std::uint32_t> labels) {
  std::vector<PlacedNode> places;
  places.reserve(labels.size() * shape_.places);
  for (std::uint32_t bucket = 0; bucket < labels.size(); ++bucket) {
    if (labels[bucket] >= next_label_) {
      return Error(Errc::corrupt, "label {} was not given", labels[bucket]);
    }
    labels_[bucket] = labels[bucket];
    for (unsigned i = 0; i < shape_.places; ++i) {
      places.push_back({place_of(labels[bucket], i), bucket});
    }
  }
  std::ranges::sort(places, {}, &PlacedNode::position);
  const auto twice = std::ranges::adjacent_find(places, {}, &PlacedNode::position);
  if (twice != places.end()) {
    return Error(Errc::corrupt, "label {} is given twice, or has the place of another",
                 labels[twice->node]);
  }
  ring_ = HashRing(places);
  for (const PlacedNode& place : places) {
    if (ring_.crowd_at(place.position) <= HashRing::kCrowdMax) continue;
    return Error(Errc::corrupt, "buckets crowd on a ring, at label {}", labels[place.node]);
  }
  return {};
}

base::Result<void> IndexIndependentCuckoo::check() const {
  for (std::uint32_t bucket = 0; bucket < bucket_count_; ++bucket) {
    for (unsigned slot = 0; slot < shape_.slots; ++slot) {
      const Fingerprint fingerprint = bucket_at(bucket)[slot];
      if (fingerprint == 0 || is_candidate(fingerprint, bucket)) continue;
      return Error(Errc::corrupt, "fingerprint {:#x} in bucket {}, where nobody looks for it",
                   fingerprint, bucket);
    }
  }
  return {};
}

}  // namespace helenus::filters
