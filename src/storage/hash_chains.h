// HashChains: things found by their hash. A lookup touches a bucket and what hangs there, one thing
// on average, however many there are.
//
// Linear hashing: a new thing may add one bucket, and then one other bucket is shared out with it.
// So no insert takes longer than the others, as it would in a table that doubles. Buckets lie in
// segments that never move.
//
// Ownership: the things carry their links and are somebody else's; they stay where they are.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace helenus::storage {

struct HashLink {
  HashLink* next = nullptr;
  std::uint32_t hash = 0;
};

class HashChains {
 public:
  // The first of those that may have this hash; the others follow it by `next`.
  HashLink* first(std::uint32_t hash) const {
    return segments_.empty() ? nullptr : bucket(place_of(hash));
  }

  // Requires: it is not here, and its hash does not change.
  void insert(HashLink& link) {
    if (count_ == buckets_) add_bucket();
    hang(link);
    ++count_;
  }

  std::size_t size() const { return count_; }
  // What a thing takes here, its link apart.
  static constexpr std::size_t kBytesPerThing = sizeof(HashLink*);

 private:
  static constexpr std::size_t kSegmentBuckets = 512;

  HashLink*& bucket(std::size_t at) const {
    return segments_[at / kSegmentBuckets][at % kSegmentBuckets];
  }
  // Those below the split have been shared out among twice as many.
  std::size_t place_of(std::uint32_t hash) const {
    const std::size_t round = std::bit_floor(buckets_);
    const std::size_t at = hash & (2 * round - 1);
    return at < buckets_ ? at : at - round;
  }

  void hang(HashLink& link) {
    HashLink*& head = bucket(place_of(link.hash));
    link.next = head;
    head = &link;
  }

  void add_bucket() {
    if (buckets_ % kSegmentBuckets == 0) {
      segments_.push_back(std::make_unique<HashLink*[]>(kSegmentBuckets));
    }
    const std::size_t from = buckets_ == 0 ? 0 : buckets_ - std::bit_floor(buckets_);
    ++buckets_;
    HashLink* link = std::exchange(bucket(from), nullptr);
    while (link != nullptr) hang(*std::exchange(link, link->next));
  }

  std::vector<std::unique_ptr<HashLink*[]>> segments_;
  std::size_t buckets_ = 0;
  std::size_t count_ = 0;
};

}  // namespace helenus::storage
