// SliceRing: one table of the sliced forgetful filter (sliced_forgetful.h), slices of time in the
// lanes of one LaneTable.
//
// A lane is in one of four states, and goes through them in this order:
//
//   clean     all its bits are zero
//   current   takes the keys of now; one lane at most
//   live      takes no more keys, and answers; so does the current one
//   dirty     has expired: it answers no more, and its bits are yet to be cleared
//
// A lane expires, by a mask and so at once, when even its last key is older than the window. Its
// bits are then swept away a few blocks at a time by the calls that follow, so that no call pays
// for the whole table; a slice whose successor is not clean yet goes on. Only when the current
// slice is full or expired and no lane is clean is the rest of the sweep done at once: after a jump
// of time, or when slices fill as fast as they are swept. What a slice may hold is bounded by a
// number of keys, not by time.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "filters/key_hash.h"
#include "filters/lane_table.h"

namespace helenus::filters {

// Time as the owner of a filter measures it: any unit.
using Ticks = std::uint64_t;

struct Slice {
  Ticks first = 0;  // when its first key came
  Ticks last = 0;
  std::uint64_t keys = 0;  // none: the lane is clean or dirty
  std::uint64_t bits = 0;  // that they have set

  friend bool operator==(const Slice&, const Slice&) = default;
};

class SliceRing {
 public:
  static constexpr unsigned kSlicesMin = 2;
  static constexpr unsigned kNone = 0xff;

  struct Shape {
    std::uint64_t bits = 0;  // of each slice
    unsigned probes = 0;
    unsigned slices = 0;
    std::uint64_t keys_per_slice = 0;

    std::uint64_t capacity() const { return keys_per_slice * slices; }
    // What a stranger meets when every slice is full.
    double rate_when_full() const;
    std::uint64_t memory_bytes() const { return LaneTable::bytes_for(bits, slices); }
    bool is_sound() const;
  };
  // The smallest slices that hold `capacity` keys together at a rate of at most `rate_max`; with
  // `slices` 0, of the number that takes least memory for what a window brings.
  // Requires: 0 < capacity <= kCapacityMax, 0 < rate_max < 1, slices 0 or kSlicesMin to kLanesMax.
  static Shape shape_for(std::uint64_t capacity, double rate_max, unsigned slices);
  static constexpr std::uint64_t kCapacityMax = std::uint64_t{1} << 34;

  // Requires: a sound shape. Errors: overloaded when there is no memory for it.
  static base::Result<SliceRing> with_shape(const Shape& shape);

  const Shape& shape() const { return shape_; }
  const Slice& slice(unsigned lane) const { return slices_[lane]; }
  unsigned current() const { return current_; }  // or kNone
  bool has_live() const { return live_ != 0; }
  std::uint64_t memory_bytes() const { return table_.memory_bytes(); }
  bool is_borrowed() const { return table_.is_borrowed(); }
  std::uint64_t size() const;  // keys in live slices
  unsigned live_count() const { return static_cast<unsigned>(std::popcount(live_)); }
  double rate_by_fill() const;
  double rate_by_equation() const;

  bool contains(KeyHash key) const { return table_.holders(key, shape_.probes, live_) != 0; }
  void prefetch(KeyHash key) const { table_.prefetch(key, shape_.probes); }

  // Lets slices go whose last key is older than `window`. Looks at them only when one may be.
  // Requires: a time not before that of any earlier call.
  void expire(Ticks now, Ticks window);
  // Clears dirty lanes in the next `blocks` blocks. Returns whether there is nothing left to clear.
  bool sweep(std::uint64_t blocks);
  // Finds a slice for one more key: the current one, or a new one when that is full or began
  // `slice_ticks` ago. False when there is none.
  bool make_room(Ticks now, Ticks slice_ticks);
  // Requires, for both: make_room said yes for this key.
  void add(KeyHash key, Ticks now);
  bool add_if_absent(KeyHash key, Ticks now);  // true when it was not in, and is now

  // Takes no more keys.
  void close();

  // The slices and the table, for SlicedForgetful's bytes. Lanes that do not answer are written as
  // empty.
  void append_to(base::Buffer& out) const;
  static std::size_t encoded_bytes(const Shape& shape);
  // Requires: a sound shape, and as many bytes as encoded_bytes says. Errors: corrupt.
  static base::Result<SliceRing> decode(const Shape& shape, unsigned current, Ticks now,
                                        const base::Bytes& encoded);

 private:
  SliceRing(const Shape& shape, LaneTable table)
      : shape_(shape), table_(std::move(table)), clean_(table_.all()) {}

  static std::size_t head_bytes(const Shape& shape);
  void count_key(Ticks now, unsigned bits);
  base::Result<void> validate(Ticks now) const;

  Shape shape_;
  LaneTable table_;
  std::array<Slice, kLanesMax> slices_{};
  unsigned current_ = kNone;
  Ticks oldest_last_ = 0;  // no live slice's last key came before this, nor will one's
  Lanes live_ = 0;
  Lanes clean_;
  Lanes swept_ = 0;  // the dirty lanes that the sweep under way clears
  std::uint64_t swept_blocks_ = 0;
};

}  // namespace helenus::filters
