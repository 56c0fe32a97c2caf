// AdaptiveForgetful: the paper's forgetful Bloom filter with dynamic resizing (FBF, Algorithm 3),
// as printed and mended. Here to be compared with: SlicedForgetful is what adapts in earnest.
//
// A list of Bloom filters, future first, of one size for ever. What resizing can change is their
// number and the period between refreshes; one tick is the paper's second, in which its background
// thread runs.
//
// As printed: when the estimate (equation 3) reaches 0.9 of the target, the number of filters is
// doubled by appending empty ones to the past, and the period shortened by one; at 0.1 of the
// target one filter is dropped and the period lengthened by one. Appended filters are empty, so
// nothing is relieved before refreshes have moved keys into them, and until then every tick doubles
// again: a burst ends in thousands of filters and a period of zero. Dropping the oldest, and
// dropping it sooner because the period is shorter, loses keys that the window promised.
//
// Mended: the window is a constant. Every filter knows when it ceased to be the future one, and is
// dropped when that was longer ago than the window. Resizing changes the period alone: at 0.9 of
// the target it halves it and refreshes at once, at 0.1 it lengthens it by one; how many filters a
// window takes follows. The estimate is the corrected one, and looks ahead: each filter will be the
// oldest one day, which is asked alone. Keys are shed while it is at the target. Where there are
// `filters_max` of them a refresh waits until the oldest may go.
//
// It meets the contract of filter.h, of the keys that it has not forgotten. How many there may be
// is not bounded by a number but, mended, by the target: `capacity` is what its first filters would
// hold.
//
// Cost: every filter is asked for itself; `tick` reads no bits. What bytes can make it take: as
// many filters of the size of those in them as kFiltersMax.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "filters/bloom.h"
#include "filters/filter.h"
#include "filters/key_hash.h"
#include "filters/sliced_forgetful.h"

namespace helenus::filters {

class AdaptiveForgetful {
 public:
  static constexpr unsigned kFiltersMin = 3;
  static constexpr unsigned kFiltersMax = 8192;

  static constexpr Ticks kPeriodMax = Ticks{1} << 32;

  enum class Resizing : std::uint8_t { mended = 0, as_printed = 1, off = 2 };

  struct Options {
    std::uint64_t bits = 0;  // of each filter
    unsigned probes = 0;
    unsigned filters = kFiltersMin;  // at first: N + 2
    Ticks period = 1;                // at first, between refreshes
    double rate_max = 0;             // the target
    Resizing resizing = Resizing::mended;
    unsigned filters_max = 256;
  };

  // The window is what the options promise at first, (filters - 1) * period.
  // Errors: invalid_argument for options outside their limits, overloaded without memory.
  static base::Result<AdaptiveForgetful> with_options(const Options& options);

  // One second of the paper passes: refreshes and resizes as is due.
  // Errors: overloaded when there is no memory for another filter; no key is lost.
  base::Result<void> tick();

  // False when it must shed; nothing has changed then.
  [[nodiscard]] bool insert(KeyHash key);
  Admission insert_if_absent(KeyHash key);

  bool contains(KeyHash key) const;
  void contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const;
  void prefetch(KeyHash key) const;

  const Options& options() const { return options_; }
  Ticks now() const { return now_; }
  Ticks window() const { return (options_.filters - 1) * options_.period; }
  Ticks period() const { return period_; }
  unsigned filter_count() const { return static_cast<unsigned>(filters_.size()); }
  std::uint64_t memory_bytes() const;
  // Keys that are remembered, each as often as it was inserted.
  std::uint64_t size() const;
  // Keys that so many filters as there were at first hold at the target, spread evenly over their
  // periods; one at least. Cost: works it out.
  std::uint64_t capacity() const;
  // By the equations as printed, and as corrected.
  double rate_as_printed() const;
  double rate_by_equation() const;
  double false_positive_rate() const { return rate_by_equation(); }
  // The target; only the mended form keeps it.
  double false_positive_rate_max() const { return options_.rate_max; }

  base::Bytes encode() const;
  // Errors: corrupt, unsupported, invalid_argument for another kind of filter.
  static base::Result<AdaptiveForgetful> decode(const base::Bytes& encoded);

 private:
  struct Constituent {
    Bloom bloom;
    std::uint64_t keys_as_future;  // inserted while it was the future filter: one period's
    Ticks future_until;            // when it ceased to be that
  };

  explicit AdaptiveForgetful(const Options& options) : options_(options), period_(options.period) {}

  static base::Result<void> check(const Options& options);
  base::Result<Constituent> make() const;
  bool has_room() const;
  void drop_old();
  base::Result<void> decode_filters(const base::Bytes& body, std::uint32_t count);
  base::Result<void> validate() const;
  base::Result<void> refresh();
  base::Result<void> resize_as_printed();
  base::Result<void> resize_mended();
  double rate_ahead() const;

  Options options_;
  Ticks now_ = 0;
  Ticks period_;
  Ticks refreshed_ = 0;
  std::deque<Constituent> filters_;  // future, present, newest past to oldest
};

static_assert(Filter<AdaptiveForgetful>);

}  // namespace helenus::filters
