// HashIndex: things found by their hash, as a rule in one line of memory, however many there are.
//
// Extendible hashing: a directory leads from the high bits of a hash to a segment of slots, which
// are searched from the one that the low bits name. A slot has the hash beside the thing, so that
// neither a search in vain nor a move touches a thing. A segment that has filled up is split in
// two, by one more bit; so no insert takes much longer than the others, as it would in a table that
// doubles. Hashes with too many bits in common for that, which no good hash has, lie in a list.
//
// Ownership: the things are somebody else's, and stay where they are.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace helenus::storage {

template <class Thing>
class HashIndex {
 public:
  // One of those with this hash that `is_wanted` takes; null if there is none.
  template <class IsWanted>
  Thing* find(std::uint32_t hash, IsWanted is_wanted) const {
    if (directory_.empty()) return nullptr;
    const Segment& segment = *directory_[place_of(hash)];
    for (std::size_t at = hash % kSlots; segment.slots[at].thing != nullptr;
         at = (at + 1) % kSlots) {
      const Slot& slot = segment.slots[at];
      if (slot.hash == hash && is_wanted(*slot.thing)) return slot.thing;
    }
    for (const Slot& slot : segment.rest) {
      if (slot.hash == hash && is_wanted(*slot.thing)) return slot.thing;
    }
    return nullptr;
  }

  void insert(std::uint32_t hash, Thing& thing) {
    if (directory_.empty()) directory_.push_back(add_segment(0));
    while (directory_[place_of(hash)]->count == kSlotsUsedMax && split(hash)) {
    }
    put(*directory_[place_of(hash)], {.thing = &thing, .hash = hash});
    ++count_;
  }

  std::size_t size() const { return count_; }
  // How many slots a search for the hash looks at.
  std::size_t slots_searched(std::uint32_t hash) const {
    if (directory_.empty()) return 0;
    const Segment& segment = *directory_[place_of(hash)];
    std::size_t count = 1 + segment.rest.size();
    for (std::size_t at = hash % kSlots; segment.slots[at].thing != nullptr;
         at = (at + 1) % kSlots) {
      ++count;
    }
    return count;
  }
  std::size_t memory_bytes() const {
    return segments_.size() * (sizeof(Segment) + sizeof(Segment*)) +
           directory_.size() * sizeof(Segment*);
  }

 private:
  static constexpr std::size_t kSlots = 256;
  static constexpr std::size_t kSlotsUsedMax = kSlots * 3 / 4;  // a search ends at an empty one
  // The directory doubles only while so many things come on a place of it, where a good hash puts
  // more than a hundred.
  static constexpr std::size_t kThingsPerPlaceMin = 32;
  static constexpr unsigned kDepthMax = 24;

  struct Slot {
    Thing* thing = nullptr;
    std::uint32_t hash = 0;
  };
  struct Segment {
    std::uint32_t count = 0;
    unsigned depth = 0;  // how many high bits its hashes have in common
    std::array<Slot, kSlots> slots;
    std::vector<Slot> rest;  // what it could not be split for
  };

  // With 2^depth_ places.
  std::size_t place_of(std::uint32_t hash) const {
    return static_cast<std::size_t>(std::uint64_t{hash} >> (32 - depth_));
  }

  Segment* add_segment(unsigned depth) {
    segments_.push_back(std::make_unique<Segment>());
    segments_.back()->depth = depth;
    return segments_.back().get();
  }

  static void put(Segment& segment, Slot slot) {
    if (segment.count == kSlotsUsedMax) {
      segment.rest.push_back(slot);
      return;
    }
    std::size_t at = slot.hash % kSlots;
    while (segment.slots[at].thing != nullptr) at = (at + 1) % kSlots;
    segment.slots[at] = slot;
    ++segment.count;
  }

  // Splits the segment of a hash. False if the directory would become larger than what it leads to
  // is worth.
  bool split(std::uint32_t hash) {
    Segment& lower = *directory_[place_of(hash)];
    if (lower.depth == depth_ && !double_directory()) return false;
    const std::size_t width = std::size_t{1} << (depth_ - lower.depth);
    const std::size_t first = place_of(hash) / width * width;
    Segment& upper = *add_segment(++lower.depth);
    std::fill_n(directory_.begin() + static_cast<std::ptrdiff_t>(first + width / 2), width / 2,
                &upper);
    const std::array<Slot, kSlots> slots = std::exchange(lower.slots, {});
    const std::vector<Slot> rest = std::exchange(lower.rest, {});
    lower.count = 0;
    for (const Slot& slot : slots) {
      if (slot.thing != nullptr) put(*directory_[place_of(slot.hash)], slot);
    }
    for (const Slot& slot : rest) put(*directory_[place_of(slot.hash)], slot);
    return true;
  }

  bool double_directory() {
    if (depth_ == kDepthMax || count_ < directory_.size() * kThingsPerPlaceMin) return false;
    std::vector<Segment*> doubled;
    doubled.reserve(directory_.size() * 2);
    for (Segment* segment : directory_) doubled.insert(doubled.end(), 2, segment);
    directory_ = std::move(doubled);
    ++depth_;
    return true;
  }

  unsigned depth_ = 0;
  std::vector<Segment*> directory_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::size_t count_ = 0;
};

}  // namespace helenus::storage
