// SlicedForgetful: a Bloom filter that forgets what is older than a window of time, and keeps its
// rate when the load changes. What counters use to tell new operations from retries.
//
// Time is cut into slices; each has a Bloom filter of its own, and a key is inserted into the
// current one only. A slice is dropped when even its last key is older than the window W. With N +
// 2 slices of W / (N + 1) this has the window and the memory of the paper's N-FBF (ForgetfulBloom)
// and half its writes. But nobody asks for N here: the knobs are the target rate and W, and the
// slices and probes that take least memory follow from the target. In the same memory, for the same
// window and load, this gives at most 0.4 of the paper's false positives for every N
// (lab/results/filters; with as many slices as the paper has filters, N = 30 and 54 would give
// 0.40 to 0.52, for of so many small filters some always say yes).
//
// The promise: a key inserted at time t is answered "present" at every time until t + W, t + W
// included, whatever is inserted, resized or shed meanwhile. Why it holds: a slice answers from its
// first key on until expire() lets it go, which asks `now - last > W` of its own last key; nothing
// else ever stops a slice that has keys, and a table is given up only when none of its slices
// answers. Bits are cleared only in lanes that do not answer.
//
// Adapting. Slices lie woven in one table (slice_ring.h), so that a lookup costs the same for any
// number of them. A slice that is full before its time makes room for the next one early, so their
// number follows the load. When there is no slice left, a larger table takes over; the old one goes
// on answering until its last key is old. When a table has been mostly empty for a window, a
// smaller one takes over. Every table is given, when it is made, a part of what the target rate
// leaves over by the tables that still answer, half of it, and each slice an equal part of that:
// the sum is at most the target. W is never adapted.
//
// When neither the memory allowed nor the number of tables has room for another, keys are refused
// ("shed"): nothing is changed, and the owner must not go on with what it could not remember.
//
// It screens; it never decides: "present" is wrong at the declared rate.
//
// The owner tells the time, by advance_to, in any unit. It goes forward only; an earlier time is
// taken for the latest one told. Keys are inserted at the time last told: the promise is kept by
// that time, so an owner that lets a step of d go by untold gives some keys d less than W. It
// bounds its steps, or adds the longest to W. A key may be remembered for longer than W: by a
// slice's length, and longer when nobody inserts.
//
// Cost: `contains` reads until no slice is left, in one table, more while tables overlap;
// `insert_if_absent` reads and writes each probe once. Clearing is spread over the calls that
// follow. An insertion writes the whole table when it needs a slice and all that have expired are
// unswept (after a jump of time), and a larger one when it grows.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "filters/filter.h"
#include "filters/key_hash.h"
#include "filters/slice_ring.h"

namespace helenus::filters {

enum class Admission : std::uint8_t {
  inserted,  // it was not in, and is now
  present,   // it is in, or is taken for one that is
  shed,      // it is not in, and there is no room for it
};

class SlicedForgetful {
 public:
  static constexpr unsigned kTablesMax = 8;
  static constexpr std::uint64_t kCapacityMax = SliceRing::kCapacityMax;
  static constexpr double kRateMin = 1e-9;
  static constexpr double kRateMax = 0.5;

  enum class Sizing : std::uint8_t { fixed = 0, adaptive = 1 };

  struct Options {
    Ticks window = 0;     // W
    double rate_max = 0;  // the target; rate_for_counter_error() has it from a counter's error
    // Keys it holds at first, and later unless memory_bytes_max forbids: what a window brings, and
    // a slice more. Half as much again as a window is expected to bring leaves room for both and
    // for chance.
    std::uint64_t capacity = 0;
    unsigned slices = 0;  // N + 2; 0: as many as take least memory
    Sizing sizing = Sizing::adaptive;
    std::uint64_t memory_bytes_max = kTableBytesMax;  // of all tables together

    friend bool operator==(const Options&, const Options&) = default;
  };

  // Errors: invalid_argument for options outside their limits, or a first table that is larger than
  // the memory allowed; overloaded when there is no memory.
  static base::Result<SlicedForgetful> with_options(const Options& options);
  // The same knob from its other end: of all else by default, the lowest target that a first table
  // of `memory_bytes` keeps where a window brings `keys`, evenly.
  // Errors: invalid_argument when no target up to kRateMax is met by so little memory, or for no
  // window or keys.
  static base::Result<Options> options_for_memory(Ticks window, std::uint64_t keys,
                                                  std::uint64_t memory_bytes);
  // One table of this very shape, fixed. Errors: as above, also when its rate exceeds kRateMax.
  static base::Result<SlicedForgetful> with_shape(const SliceRing::Shape& shape, Ticks window);

  // Forgets what has become old. Cost: a few kilobytes of memory are written; but the whole table
  // is copied by the first call that finds something to clear after decoding, and a smaller table
  // is made and zeroed when this one has been mostly empty for two windows.
  void advance_to(Ticks now);

  // False when it must shed; nothing has changed then.
  [[nodiscard]] bool insert(KeyHash key);
  [[nodiscard]] Admission insert_if_absent(KeyHash key);

  bool contains(KeyHash key) const {
    for (const Generation& generation : generations_) {
      if (generation.ring.contains(key)) return true;
    }
    return false;
  }
  void contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const;
  void prefetch(KeyHash key) const;

  const Options& options() const { return options_; }
  Ticks now() const { return now_; }
  // Whether the last insertion that needed room was refused.
  bool is_shedding() const { return is_shedding_; }
  // Tables that answer or take keys; more than one while sizes change.
  unsigned table_count() const { return static_cast<unsigned>(generations_.size()); }
  unsigned live_slice_count() const;
  // The shape of the table that takes keys.
  const SliceRing::Shape& shape() const { return generations_.back().ring.shape(); }

  // Keys that are remembered, each as often as it was inserted.
  std::uint64_t size() const;
  // Keys that the table which takes them was made for.
  std::uint64_t capacity() const { return generations_.back().capacity; }
  // From the bits that are set; from the number of keys; and at worst, the target.
  double false_positive_rate() const;
  double rate_by_equation() const;
  double false_positive_rate_max() const { return options_.rate_max; }
  std::uint64_t memory_bytes() const;

  base::Bytes encode() const;
  // Errors: corrupt, unsupported, invalid_argument for another kind of filter.
  static base::Result<SlicedForgetful> decode(const base::Bytes& encoded);

 private:
  // One table and its part of the target rate.
  struct Generation {
    SliceRing ring;
    std::uint64_t capacity;
    double rate_part;
    Ticks began;
  };

  explicit SlicedForgetful(const Options& options) : options_(options) {}

  static base::Result<void> check(const Options& options);
  static double first_rate_part(const Options& options);
  static base::Result<SlicedForgetful> decode_body(const base::Bytes& body,
                                                   std::uint8_t table_count);
  base::Result<Generation> decode_generation(const base::Bytes& body, std::size_t& offset) const;
  Ticks slice_ticks(const SliceRing::Shape& shape) const;
  double rate_left() const;
  bool make_room() { return newest().make_room(now_, slice_ticks(shape())); }
  SliceRing& newest() { return generations_.back().ring; }
  // Puts a table for `capacity` keys in charge, or for as many as the memory allows.
  bool take_over(std::uint64_t capacity);
  bool grow();
  void shrink_if_idle();

  Options options_;
  Ticks now_ = 0;
  bool is_shedding_ = false;
  std::vector<Generation> generations_;  // the last one takes keys
};

static_assert(Filter<SlicedForgetful>);

}  // namespace helenus::filters
