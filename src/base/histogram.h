// Histogram: how values (latencies, sizes) are distributed, in fixed memory.
//
// The model is log-linear, as HdrHistogram's: every power of two is cut into kBucketsPerDoubling
// equal buckets, so a bucket is at most 1/32 of its values wide, and its middle is never further
// than 1/64 (kRelativeErrorMax) of it from any value in it. Below 64 every value has a bucket of
// its own. All 64-bit values fit; min, max, count and mean are exact.
//
// A value: 15 KiB without a pointer, copied to take a snapshot. Too big for the frame of a
// coroutine that many requests run at once.
// Threads: one core records; others get a copy.
// Cost: record() neither branches nor allocates; quantile() and merge() walk the buckets.
//
// Format, version 1 (all numbers are varints of base/codec.h, but the version byte):
//   version: u8 = 1
//   n: buckets in use; nothing follows when n = 0
//   n times: buckets skipped since the last one in use, count (> 0)
//   min, max, high word of the sum, low word of the sum
// Equal histograms have equal bytes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/codec.h"
#include "base/result.h"

namespace helenus::base {

class Histogram {
 public:
  static constexpr unsigned kPrecisionBits = 5;
  static constexpr std::size_t kBucketsPerDoubling = std::size_t{1} << kPrecisionBits;
  static constexpr std::size_t kBucketCount = (64 - kPrecisionBits + 1) * kBucketsPerDoubling;
  static constexpr double kRelativeErrorMax = 1.0 / (2 * kBucketsPerDoubling);
  // The most values a decoded histogram may hold; nine years at a million a second. It leaves room
  // to merge tens of thousands of histograms that came from peers.
  static constexpr std::uint64_t kCountDecodedMax = std::uint64_t{1} << 48;

  // Requires: count > 0, and that all counts together stay below 2^64.
  void record(std::uint64_t value, std::uint64_t count = 1) {
    ASSERT(count > 0);
    ASSERT_SLOW(count_ + count > count_);
    buckets_[bucket_of(value)] += count;
    count_ += count;
    sum_ += static_cast<Sum>(value) * count;
    min_ = value < min_ ? value : min_;
    max_ = value > max_ ? value : max_;
  }

  bool empty() const { return count_ == 0; }
  std::uint64_t count() const { return count_; }
  // Zero when empty, as are the mean and every quantile.
  std::uint64_t min() const { return empty() ? 0 : min_; }
  std::uint64_t max() const { return max_; }
  double mean() const;
  double sum() const { return static_cast<double>(sum_); }
  // How many values are in buckets that end at or below this one: exactly those that do not exceed
  // it if it is below 64 or one less than a power of two.
  std::uint64_t count_up_to(std::uint64_t value) const;

  // The value that the fraction `q` of all values does not exceed: the ceil(q * count)-th smallest,
  // off by no more than kRelativeErrorMax of it, and never outside [min, max]. The smallest and the
  // largest are exact. Requires: 0 <= q <= 1.
  std::uint64_t quantile(double q) const;

  // Adds what the other recorded. Requires: the counts together stay below 2^64.
  void merge(const Histogram& other);

  // What was recorded here and not yet in `earlier`, an older copy of this histogram. The minimum
  // and maximum of that are not exact: they are the bounds of the outermost buckets.
  // Errors: invalid_argument when `earlier` cannot be an older copy, as after a restart.
  Result<Histogram> since(const Histogram& earlier) const;

  void reset() { *this = Histogram(); }

  void encode(Encoder& out) const;
  // Reads one histogram and leaves what follows. Errors: corrupt, unsupported (a newer version).
  static Result<Histogram> decode(Decoder& in);

  // "count=1000 min=12us mean=40.1us p50=33us p90=70us p99=120us p99.9=301us max=377us".
  std::string summary(std::string_view unit = {}) const;

  friend bool operator==(const Histogram&, const Histogram&) = default;

  // The bucket of a value, and the least and greatest value of a bucket.
  static constexpr std::size_t bucket_of(std::uint64_t value) {
    // Values below two doublings' worth of buckets have width one: their shift is zero.
    const auto shift =
        static_cast<unsigned>(std::bit_width(value | kBucketsPerDoubling)) - (kPrecisionBits + 1);
    return shift * kBucketsPerDoubling + static_cast<std::size_t>(value >> shift);
  }
  static constexpr std::uint64_t bucket_min(std::size_t bucket) {
    const std::size_t shift = shift_of(bucket);
    return static_cast<std::uint64_t>(bucket - shift * kBucketsPerDoubling) << shift;
  }
  static constexpr std::uint64_t bucket_max(std::size_t bucket) {
    return bucket_min(bucket) + ((std::uint64_t{1} << shift_of(bucket)) - 1);
  }

 private:
  using Sum = unsigned __int128;

  static constexpr std::size_t shift_of(std::size_t bucket) {
    const std::size_t doubling = bucket / kBucketsPerDoubling;
    return doubling == 0 ? 0 : doubling - 1;
  }
  // Whether count, min, max and sum are possible with these buckets.
  bool is_consistent() const;

  std::array<std::uint64_t, kBucketCount> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t min_ = UINT64_MAX;
  std::uint64_t max_ = 0;
  Sum sum_ = 0;
};

static_assert(Histogram::bucket_of(UINT64_MAX) == Histogram::kBucketCount - 1);
static_assert(Histogram::bucket_max(Histogram::kBucketCount - 1) == UINT64_MAX);
static_assert(Histogram::kRelativeErrorMax <= 1.0 / 64);

}  // namespace helenus::base

template <>
struct fmt::formatter<helenus::base::Histogram> : fmt::formatter<std::string> {
  auto format(const helenus::base::Histogram& histogram, fmt::format_context& ctx) const {
    return fmt::formatter<std::string>::format(histogram.summary(), ctx);
  }
};
