// IndexIndependentCuckoo: a cuckoo table that can gain and lose single buckets, after Luo, Guo,
// Rottenstreich, Ma, Luo and Ren, "The Consistent Cuckoo Filter" (INFOCOM 2019), where it is the
// I2CF.
//
// Buckets of b slots sit on a ring of positions. The candidates of a fingerprint are the owners of
// k positions that come from the fingerprint and nothing else. So a bucket's arrival or departure
// changes the candidates of the fingerprints near its places only, and no position depends on the
// number of buckets. There are two rings:
//
//   hashed  The paper's: a bucket sits at v places, hashes of its label (hash_ring.h). Any bucket
//   can
//           go. Shares of the ring are as uneven as chance makes them, and a bucket that owns
//           little of it is never filled: with two candidates of eight slots and v = 1 keys fill
//           0.63 of the slots. More places make shares more even and cost 10 to 20 bytes each.
//   even    Bucket i sits at the place that has the bits of i in reverse. It takes half of the
//   share
//           of the one it is put before, and shares never differ by more than a factor of two. Read
//           from its low end, this is linear hashing (Litwin 1980): the owner of a position is its
//           low bits. No memory, no search. The last bucket is the one that can go.
//
// The invariant, of which "no key that is in is denied" follows: every fingerprint in the table is
// in one of its candidate buckets, as the ring is now. check() verifies it.
//   - insert places it there; a chain of moves takes each fingerprint to another of its candidates.
//   - add_bucket takes ring positions away from the owners after its places and from nobody else.
//     A fingerprint in one of those that has lost its candidate there is inserted anew.
//   - remove_bucket gives its positions to their next owners. A fingerprint elsewhere loses no
//     candidate that it is in; those in the bucket are inserted anew.
// Both are transactions: where one of the fingerprints that must move finds no place, everything is
// as it was before. With v > 1 a new bucket can be sent more than b fingerprints, so this happens
// to add_bucket, too; another label, other places, is then the way.
//
// Moves are searched for breadth first, as in chain.h, over at most `searched_max` buckets; nothing
// moves before the whole chain is known. (The paper walks at random for `max` moves and leaves a
// homeless victim; its `max` is what we limit the search by.)
//
// What the paper does not say: all candidates follow from the fingerprint, so whoever shares a
// fingerprint with a key that is in is taken for it, wherever that is. The rate of false positives
// is 1 - (1 - 2^-f)^n for n keys, not k b 2^-f (consistent_analysis.h), and f is best 30 or more.
// At most k b equal fingerprints fit, and only b when all candidates meet in one bucket.
//
// This class knows fingerprints; ConsistentCuckoo is the filter that is made of it.
//
// Cost: contains reads k buckets, and before each, on a hashed ring, one cache line of it.
// add_bucket and remove_bucket: about v b insertions. Memory: 4 b bytes a bucket; on a hashed ring
// 4 + 10 v to 4 + 20 v more, and half as much again on small ones (hash_ring.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "filters/hash_ring.h"

namespace helenus::filters {

class IndexIndependentCuckoo {
 public:
  // Never zero, which marks an empty slot.
  using Fingerprint = std::uint32_t;

  enum class Ring : std::uint8_t { even = 0, hashed = 1 };

  struct Shape {
    unsigned candidates = 2;  // k
    unsigned slots = 8;       // b, of each bucket
    Ring ring = Ring::even;
    unsigned places = 1;          // v, of each bucket on the ring; 1 on an even one
    unsigned searched_max = 512;  // buckets that an insertion looks at before it calls them full

    friend bool operator==(const Shape&, const Shape&) = default;
  };
  static constexpr unsigned kCandidatesMax = 16;
  static constexpr unsigned kSlotsMax = 16;
  static constexpr unsigned kPlacesMax = 32;
  static constexpr unsigned kSearchedMax = 1U << 14;
  // Places on one ring. Hashed ones cost memory, and are far from using up the positions.
  static constexpr std::uint64_t kEvenPlacesMax = std::uint64_t{1} << 28;
  static constexpr std::uint64_t kHashedPlacesMax = std::uint64_t{1} << 25;
  static base::Result<void> check(const Shape& shape);
  // Whether so many buckets have places on a ring of this shape.
  static bool fits_on_ring(const Shape& shape, std::uint64_t bucket_count) {
    return bucket_count * shape.places <=
           (shape.ring == Ring::even ? kEvenPlacesMax : kHashedPlacesMax);
  }

  // The positions of a fingerprint on any ring; a table with k candidates uses the first k.
  struct Positions {
    std::array<HashRing::Position, kCandidatesMax> at;
    HashRing::Position operator[](std::size_t index) const { return at[index]; }
  };
  static Positions positions_of(Fingerprint fingerprint, unsigned candidates) {
    Positions positions;
    for (unsigned i = 0; i < candidates; i += 2) {
      const auto [first, second] = pair_of(fingerprint, i / 2);
      positions.at[i] = first;
      positions.at[i + 1] = second;
    }
    return positions;
  }
  // Positions 2 `index` and 2 `index` + 1.
  struct Pair {
    HashRing::Position first;
    HashRing::Position second;
  };
  static Pair pair_of(Fingerprint fingerprint, unsigned index) {
    const std::uint64_t word =
        base::mix64(fingerprint + std::uint64_t{index + 1} * 0xd1b54a32d192ed03);
    return {static_cast<HashRing::Position>(word), static_cast<HashRing::Position>(word >> 32)};
  }

  // An empty table. Tables of different salts have their buckets at different places.
  // Requires: a sound shape; 0 < bucket_count, and places for them (fits_on_ring).
  IndexIndependentCuckoo(Shape shape, std::uint32_t salt, std::uint64_t bucket_count);
  IndexIndependentCuckoo(IndexIndependentCuckoo&&) noexcept = default;
  IndexIndependentCuckoo& operator=(IndexIndependentCuckoo&&) noexcept = default;

  // False: no place was found, and nothing has changed.
  [[nodiscard]] bool insert(Fingerprint fingerprint);
  bool contains(Fingerprint fingerprint, const Positions& positions) const;
  // The same where two candidates are all there are. Requires: shape().candidates == 2.
  [[gnu::always_inline]] bool contains(Fingerprint fingerprint, Pair positions) const {
    const HashRing::Owners owners = shape_.ring == Ring::even
                                        ? HashRing::Owners{.first = even_owner(positions.first),
                                                           .second = even_owner(positions.second)}
                                        : ring_.find_owners(positions.first, positions.second);
    return either_has(owners.first, owners.second, fingerprint);
  }
  // In how many of its slots it is.
  unsigned count(Fingerprint fingerprint, const Positions& positions) const;

  static constexpr std::uint32_t kNowhere = UINT32_MAX;
  // Takes it out of one slot and returns that slot's bucket, or kNowhere when it was in none.
  std::uint32_t erase(Fingerprint fingerprint, const Positions& positions);

  // One more bucket; false when what had to move found no place, or there are no more places or
  // labels, and nothing has changed.
  [[nodiscard]] bool add_bucket();
  // The bucket's fingerprints go elsewhere and it is gone, the last bucket taking its number. False
  // when they found no place, or it is the only bucket: nothing has changed. Requires: on an even
  // ring, the last bucket.
  [[nodiscard]] bool remove_bucket(std::uint32_t bucket);
  // Adds buckets, at most `buckets_max`, until there is a place for the fingerprint. False: nothing
  // has changed.
  [[nodiscard]] bool insert_with_room(Fingerprint fingerprint, unsigned buckets_max);

  // Insertions from begin() on can be taken back as one, until commit() or roll_back(). Requires:
  // nothing else that is a transaction of its own (buckets come or go) is called in between.
  void begin();
  void commit();
  void roll_back();

  const Shape& shape() const { return shape_; }
  std::uint32_t salt() const { return salt_; }
  std::uint64_t size() const { return size_; }
  std::uint64_t bucket_count() const { return bucket_count_; }
  std::uint64_t slot_count() const { return slots_.size(); }
  unsigned occupied(std::uint32_t bucket) const;
  // All slots, bucket by bucket; zero where empty.
  std::span<const Fingerprint> slots() const { return slots_; }
  // A bucket's places on a hashed ring follow from the salt and its label. None on an even one.
  std::span<const std::uint32_t> labels() const { return labels_; }
  std::uint32_t next_label() const { return next_label_; }
  std::uint64_t memory_bytes() const;

  // Many lookups at once go in three steps, of which each finds in the cache what the one before
  // has asked for: the ring's part of the positions, the buckets, the answer.
  struct Buckets {
    std::array<std::uint32_t, kCandidatesMax> at;
    std::uint32_t operator[](std::size_t index) const { return at[index]; }
  };
  void prefetch_places(const Positions& positions) const;
  void find_buckets(const Positions& positions, Buckets& buckets) const;
  bool contains_in(const Buckets& buckets, Fingerprint fingerprint) const;

  // A table from its parts, as slots(), labels() and next_label() gave them. Errors: corrupt when
  // they do not fit together or break the invariant, or when labels were chosen so that their
  // places crowd or leave most of the ring empty. Cost: that of sorting the places. Memory: 170
  // times that of the parts at most, where a bucket of one slot has 32 places. Requires: a sound
  // shape.
  static base::Result<IndexIndependentCuckoo> from_parts(Shape shape, std::uint32_t salt,
                                                         std::uint32_t next_label,
                                                         std::vector<std::uint32_t> labels,
                                                         std::vector<Fingerprint> slots);
  // Whether every fingerprint is in one of its candidate buckets.
  base::Result<void> check() const;

 private:
  // A table that has used up so many, by buckets that came and went, gains no more buckets.
  static constexpr std::uint32_t kLabelsMax = UINT32_MAX - (1U << 20);

  struct Change {
    std::size_t slot;
    Fingerprint before;
  };
  // So that a bucket of a power of two of slots lies in one cache line.
  template <class T>
  struct LineAligned {
    using value_type = T;
    static constexpr std::align_val_t kLine{64};
    LineAligned() = default;
    template <class U>
    LineAligned(const LineAligned<U>&) {}  // NOLINT: allocators convert
    T* allocate(std::size_t count) {
      return static_cast<T*>(::operator new(count * sizeof(T), kLine));
    }
    void deallocate(T* at, std::size_t) { ::operator delete(at, kLine); }
    friend bool operator==(LineAligned, LineAligned) { return true; }
  };
  using Slots = std::vector<Fingerprint, LineAligned<Fingerprint>>;

  IndexIndependentCuckoo(Shape shape, std::uint32_t salt) : shape_(shape), salt_(salt) {}

  HashRing::Position place_of(std::uint32_t label, unsigned index) const;
  bool is_free(std::uint32_t label) const;
  // Labels are given once. A label that is no longer free is passed over, which is rare.
  bool has_labels_left() const { return shape_.ring == Ring::even || next_label_ < kLabelsMax; }
  void put_on_ring(std::uint32_t label, std::uint32_t bucket);
  // All of them on a ring that is empty, with the checks of from_parts.
  base::Result<void> place_labels(std::span<const std::uint32_t> labels);
  void take_off_ring(std::uint32_t label);
  // At the next label whose places are free.
  void append_bucket();
  void drop_last_bucket();
  void set_bucket_count(std::uint64_t bucket_count);
  bool try_one_more_bucket();

  std::uint32_t candidate(const Positions& positions, unsigned index) const {
    return shape_.ring == Ring::even ? even_owner(positions[index])
                                     : ring_.find_owner(positions[index]);
  }
  // As many low bits as the number of the last bucket has; one less where there is no such bucket.
  std::uint32_t even_owner(HashRing::Position position) const {
    const std::uint32_t owner = position & even_mask_;
    return owner < bucket_count_ ? owner : owner & (even_mask_ >> 1);
  }
  bool is_candidate(Fingerprint fingerprint, std::uint32_t bucket) const;
  [[gnu::always_inline]] bool either_has(std::uint32_t one, std::uint32_t other,
                                         Fingerprint fingerprint) const {
    if (shape_.slots == 8) return either_has<8>(one, other, fingerprint);
    if (shape_.slots == 4) return either_has<4>(one, other, fingerprint);
    return either_has_of_any_size(one, other, fingerprint);
  }
  // Where the compiler knows the number of slots.
  template <unsigned kSlots>
  bool either_has(std::uint32_t one, std::uint32_t other, Fingerprint fingerprint) const {
    const Fingerprint* first = slots_.data() + std::size_t{one} * kSlots;
    const Fingerprint* second = slots_.data() + std::size_t{other} * kSlots;
    bool found = false;
    for (unsigned slot = 0; slot < kSlots; ++slot) {
      found |= (first[slot] == fingerprint) | (second[slot] == fingerprint);
    }
    return found;
  }
  bool has(std::uint32_t bucket, Fingerprint fingerprint) const;
  bool either_has_of_any_size(std::uint32_t one, std::uint32_t other,
                              Fingerprint fingerprint) const;
  Fingerprint* bucket_at(std::uint32_t bucket) {
    return slots_.data() + std::size_t{bucket} * shape_.slots;
  }
  const Fingerprint* bucket_at(std::uint32_t bucket) const {
    return slots_.data() + std::size_t{bucket} * shape_.slots;
  }
  void set_slot(std::size_t slot, Fingerprint value);
  bool place(std::uint32_t bucket, Fingerprint fingerprint);
  bool insert_by_moving(Fingerprint fingerprint, const Positions& positions);
  void move_along(std::uint32_t visit, std::uint32_t slot, std::uint32_t free_bucket,
                  Fingerprint fingerprint);
  void hide(std::uint32_t bucket);
  void unhide(std::uint32_t bucket);
  void undo_slots_to(std::size_t changes);
  bool move_strangers_out_of(std::span<const std::uint32_t> buckets);
  bool insert_each(std::span<const Fingerprint> fingerprints);

  struct Visit {
    std::uint32_t bucket;
    std::uint32_t parent;       // the visit it was reached from
    std::uint32_t parent_slot;  // the slot there whose fingerprint would move here
  };

  // The buckets that a search has come to: at most half as many as there are entries.
  class Seen {
   public:
    void forget(std::size_t count_max);
    // False: it is there already.
    bool add(std::uint32_t bucket);

   private:
    struct Entry {
      std::uint32_t bucket = 0;
      std::uint32_t round = 0;  // of another search: the entry is free
    };
    std::vector<Entry> entries_;
    std::uint32_t round_ = 0;
  };

  Shape shape_;
  std::uint32_t salt_;
  std::uint32_t next_label_ = 0;
  std::uint64_t size_ = 0;
  std::uint32_t bucket_count_ = 0;
  std::uint32_t even_mask_ = 0;
  HashRing ring_;
  std::vector<std::uint32_t> labels_;  // by bucket
  Slots slots_;                        // b a bucket
  // What a transaction under way has changed.
  bool is_journaling_ = false;
  std::vector<Change> journal_;
  std::uint64_t buckets_before_ = 0;
  std::uint32_t next_label_before_ = 0;
  std::uint64_t size_before_ = 0;
  // Of a search, kept for their memory.
  std::vector<Visit> visits_;
  Seen seen_;
};

}  // namespace helenus::filters
