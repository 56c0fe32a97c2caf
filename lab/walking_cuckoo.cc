#include "lab/walking_cuckoo.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/assert.h"
#include "filters/fingerprint.h"

namespace helenus::lab {

WalkingCuckoo::WalkingCuckoo(const Options& options) : options_(options), prng_(1) {
  std::vector<Fingerprint> homeless;
  add_bucket(homeless);
}

WalkingCuckoo::Candidates WalkingCuckoo::candidates_of(Fingerprint fingerprint) const {
  const auto positions =
      filters::IndexIndependentCuckoo::positions_of(fingerprint, options_.candidates);
  Candidates owners;
  while (owners.count < options_.candidates) {
    owners.buckets[owners.count] = ring_.find_owner(positions[owners.count]);
    ++owners.count;
  }
  return owners;
}

bool WalkingCuckoo::is_candidate(Fingerprint fingerprint, std::uint32_t bucket) const {
  const Candidates candidates = candidates_of(fingerprint);
  return std::ranges::find(candidates, bucket) != candidates.end();
}

void WalkingCuckoo::set_slot(std::size_t slot, Fingerprint value) {
  const std::size_t bucket = slot / options_.slots;
  journal_.push_back({.slot = slot, .before = slots_[slot]});
  if (slots_[slot] != kNone) --occupied_[bucket];
  if (value != kNone) ++occupied_[bucket];
  slots_[slot] = value;
}

bool WalkingCuckoo::place(std::uint32_t bucket, Fingerprint fingerprint) {
  if (occupied_[bucket] == options_.slots) return false;
  std::size_t slot = std::size_t{bucket} * options_.slots;
  while (slots_[slot] != kNone) ++slot;
  set_slot(slot, fingerprint);
  return true;
}

WalkingCuckoo::Fingerprint WalkingCuckoo::insert_by_walking(Fingerprint fingerprint) {
  Candidates others = candidates_of(fingerprint);
  for (unsigned moves = 0; moves <= options_.moves_max; ++moves) {
    if (std::ranges::any_of(others, [&](auto bucket) { return place(bucket, fingerprint); })) {
      return kNone;
    }
    if (moves == options_.moves_max) break;
    const std::uint32_t bucket = others.buckets[prng_.below(others.count)];
    const std::size_t slot = std::size_t{bucket} * options_.slots + prng_.below(options_.slots);
    const Fingerprint victim = slots_[slot];
    set_slot(slot, fingerprint);
    fingerprint = victim;
    others = candidates_of(fingerprint);
    // Where all are the bucket it was kicked out of, it kicks out another one there.
    const auto rest = std::ranges::remove(others, bucket);
    if (rest.begin() != others.begin()) others.count -= rest.size();
  }
  return fingerprint;
}

void WalkingCuckoo::add_bucket(std::vector<Fingerprint>& homeless) {
  const std::uint32_t added = bucket_count();
  places_.emplace_back();
  occupied_.push_back(0);
  slots_.resize(slots_.size() + options_.slots, kNone);
  std::vector<std::uint32_t> owners;
  while (places_.back().size() < options_.places) {
    const auto position = static_cast<Position>(prng_.next() >> 32);
    if (ring_.is_taken(position)) continue;
    if (added > 0) owners.push_back(ring_.find_owner(position));
    ring_.add(position, added);
    places_.back().push_back(position);
  }
  for (const std::uint32_t owner : owners) {
    for (unsigned i = 0; i < options_.slots; ++i) {
      const std::size_t slot = std::size_t{owner} * options_.slots + i;
      const Fingerprint fingerprint = slots_[slot];
      if (fingerprint == kNone || is_candidate(fingerprint, owner)) continue;
      homeless.push_back(fingerprint);
      set_slot(slot, kNone);
    }
  }
}

bool WalkingCuckoo::insert(filters::KeyHash key) {
  std::vector<Fingerprint> homeless = {filters::fingerprint_of(key, options_.fingerprint_bits)};
  constexpr int kBucketsTried = 1000;
  for (int tried = 0; tried < kBucketsTried; ++tried) {
    std::vector<Fingerprint> victims;
    for (const Fingerprint each : homeless) {
      const Fingerprint victim = insert_by_walking(each);
      if (victim != kNone) victims.push_back(victim);
    }
    journal_.clear();
    homeless = std::move(victims);
    if (homeless.empty()) {
      ++size_;
      return true;
    }
    add_bucket(homeless);
  }
  UNREACHABLE();
}

bool WalkingCuckoo::contains(filters::KeyHash key) const {
  const Fingerprint fingerprint = filters::fingerprint_of(key, options_.fingerprint_bits);
  return std::ranges::any_of(candidates_of(fingerprint), [&](std::uint32_t bucket) {
    const auto slots = std::span(slots_).subspan(std::size_t{bucket} * options_.slots);
    return std::ranges::count(slots.first(options_.slots), fingerprint) > 0;
  });
}

bool WalkingCuckoo::erase(filters::KeyHash key) {
  const Fingerprint fingerprint = filters::fingerprint_of(key, options_.fingerprint_bits);
  for (const std::uint32_t bucket : candidates_of(fingerprint)) {
    for (unsigned i = 0; i < options_.slots; ++i) {
      const std::size_t slot = std::size_t{bucket} * options_.slots + i;
      if (slots_[slot] != fingerprint) continue;
      set_slot(slot, kNone);
      --size_;
      merge_after(bucket);
      journal_.clear();
      return true;
    }
  }
  return false;
}

void WalkingCuckoo::merge_after(std::uint32_t bucket) {
  if (options_.merging == Merging::the_one_left) {
    if (occupied_[bucket] <= options_.merged_fingerprints_max) (void)remove_bucket(bucket);
    return;
  }
  while (true) {
    const auto emptiest = std::ranges::min_element(occupied_);
    if (*emptiest > options_.merged_fingerprints_max) return;
    if (!remove_bucket(static_cast<std::uint32_t>(emptiest - occupied_.begin()))) return;
    if (options_.merging == Merging::the_emptiest) return;
  }
}

bool WalkingCuckoo::remove_bucket(std::uint32_t bucket) {
  const std::uint32_t last = bucket_count() - 1;
  if (last == 0) return false;
  journal_.clear();
  for (const Position position : places_[bucket]) ring_.remove(position);
  std::vector<Fingerprint> displaced;
  const std::size_t first_slot = std::size_t{bucket} * options_.slots;
  for (std::size_t slot = first_slot; slot < first_slot + options_.slots; ++slot) {
    if (slots_[slot] == kNone) continue;
    displaced.push_back(slots_[slot]);
    set_slot(slot, kNone);
  }
  const bool moved = std::ranges::all_of(
      displaced, [this](Fingerprint each) { return insert_by_walking(each) == kNone; });
  if (!moved) {
    for (const Position position : places_[bucket]) ring_.add(position, bucket);
    while (!journal_.empty()) {
      const Change change = journal_.back();
      set_slot(change.slot, change.before);
      journal_.resize(journal_.size() - 2);  // this one and the one that undid it
    }
    return false;
  }
  if (bucket != last) {
    for (const Position position : places_[last]) ring_.renumber(position, bucket);
    std::copy_n(slots_.end() - options_.slots, options_.slots,
                slots_.begin() + static_cast<std::ptrdiff_t>(first_slot));
    places_[bucket] = std::move(places_[last]);
    occupied_[bucket] = occupied_[last];
  }
  places_.pop_back();
  occupied_.pop_back();
  slots_.resize(slots_.size() - options_.slots);
  return true;
}

}  // namespace helenus::lab
