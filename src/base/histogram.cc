#include "base/histogram.h"

#include <algorithm>
#include <cmath>

namespace helenus::base {

namespace {

constexpr std::uint8_t kFormatVersion = 1;

}  // namespace

double Histogram::mean() const {
  return empty() ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

std::uint64_t Histogram::count_up_to(std::uint64_t value) const {
  std::uint64_t count = 0;
  for (std::size_t bucket = 0; bucket < kBucketCount && bucket_max(bucket) <= value; ++bucket) {
    count += buckets_[bucket];
  }
  return count;
}

std::uint64_t Histogram::quantile(double q) const {
  ASSERT(q >= 0 && q <= 1, "quantile {}", q);
  if (empty()) return 0;
  if (q == 1) return max_;
  // A hair less than q: 0.07 * 100 is a little above 7 in doubles, and must not ask for rank 8.
  const double rank_wanted = std::ceil(std::nextafter(q, 0) * static_cast<double>(count_));
  const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(rank_wanted), 1, count_);
  if (rank == 1) return min_;
  if (rank == count_) return max_;
  std::uint64_t seen = 0;
  for (std::size_t bucket = bucket_of(min_); bucket < kBucketCount; ++bucket) {
    seen += buckets_[bucket];
    if (seen < rank) continue;
    const std::uint64_t low = bucket_min(bucket);
    const std::uint64_t middle = low + (bucket_max(bucket) - low + 1) / 2;
    return std::clamp(middle, min_, max_);
  }
  UNREACHABLE("rank {} of {}", rank, count_);
}

void Histogram::merge(const Histogram& other) {
  ASSERT(other.count_ <= UINT64_MAX - count_);
  for (std::size_t bucket = 0; bucket < kBucketCount; ++bucket) {
    buckets_[bucket] += other.buckets_[bucket];
  }
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

Result<Histogram> Histogram::since(const Histogram& earlier) const {
  Histogram difference;
  std::size_t first = kBucketCount;
  std::size_t last = 0;
  bool possible = earlier.sum_ <= sum_ && earlier.min_ >= min_ && earlier.max_ <= max_;
  for (std::size_t bucket = 0; bucket < kBucketCount; ++bucket) {
    possible &= earlier.buckets_[bucket] <= buckets_[bucket];
    const std::uint64_t count = buckets_[bucket] - earlier.buckets_[bucket];
    if (count == 0) continue;
    difference.buckets_[bucket] = count;
    difference.count_ += count;
    first = std::min(first, bucket);
    last = bucket;
  }
  if (possible && difference.count_ > 0) {
    difference.sum_ = sum_ - earlier.sum_;
    difference.min_ = std::max(bucket_min(first), min_);
    difference.max_ = std::min(bucket_max(last), max_);
    possible = difference.is_consistent();
  } else {
    possible &= sum_ == earlier.sum_;
  }
  if (!possible) {
    return Error(Errc::invalid_argument,
                 "a histogram of {} values cannot be an older copy of one of {}", earlier.count_,
                 count_);
  }
  return difference;
}

bool Histogram::is_consistent() const {
  std::uint64_t count = 0;
  Sum sum_min = 0;
  Sum sum_max = 0;
  std::size_t first = kBucketCount;
  std::size_t last = 0;
  for (std::size_t bucket = 0; bucket < kBucketCount; ++bucket) {
    if (buckets_[bucket] == 0) continue;
    count += buckets_[bucket];
    sum_min += static_cast<Sum>(std::max(bucket_min(bucket), min_)) * buckets_[bucket];
    sum_max += static_cast<Sum>(std::min(bucket_max(bucket), max_)) * buckets_[bucket];
    first = std::min(first, bucket);
    last = bucket;
  }
  if (count != count_) return false;
  if (count == 0) return sum_ == 0 && min_ == UINT64_MAX && max_ == 0;
  return bucket_of(min_) == first && bucket_of(max_) == last && min_ <= max_ && sum_min <= sum_ &&
         sum_ <= sum_max;
}

void Histogram::encode(Encoder& out) const {
  out.u8(kFormatVersion);
  const auto unused = static_cast<std::size_t>(std::ranges::count(buckets_, 0u));
  out.varint(kBucketCount - unused);
  if (empty()) return;
  std::size_t next = 0;
  for (std::size_t bucket = bucket_of(min_); bucket <= bucket_of(max_); ++bucket) {
    if (buckets_[bucket] == 0) continue;
    out.varint(bucket - next);
    out.varint(buckets_[bucket]);
    next = bucket + 1;
  }
  out.varint(min_);
  out.varint(max_);
  out.varint(static_cast<std::uint64_t>(sum_ >> 64));
  out.varint(static_cast<std::uint64_t>(sum_));
}

Result<Histogram> Histogram::decode(Decoder& in) {
  const std::uint8_t version = in.u8();
  TRY_VOID(in.status());
  if (version > kFormatVersion) {
    return Error(Errc::unsupported, "histogram version {}, at most {} is known", version,
                 kFormatVersion);
  }
  if (version == 0) in.fail("histogram version is zero");
  Histogram histogram;
  std::size_t next = 0;
  for (std::size_t left = in.count(2); left > 0 && in.ok(); --left) {
    const std::uint64_t skipped = in.varint();
    const std::uint64_t count = in.varint();
    if (!in.ok()) break;
    if (next == kBucketCount || skipped >= kBucketCount - next) {
      in.fail("histogram has a bucket too many");
    } else if (count == 0 || count > kCountDecodedMax - histogram.count_) {
      in.fail("histogram counts none or too many in a bucket");
    } else {
      histogram.buckets_[next + skipped] = count;
      histogram.count_ += count;
      next += skipped + 1;
    }
  }
  if (!histogram.empty()) {
    histogram.min_ = in.varint();
    histogram.max_ = in.varint();
    histogram.sum_ = static_cast<Sum>(in.varint()) << 64;
    histogram.sum_ |= in.varint();
  }
  if (in.ok() && !histogram.is_consistent()) in.fail("histogram contradicts itself");
  TRY_VOID(in.status());
  return histogram;
}

std::string Histogram::summary(std::string_view unit) const {
  return fmt::format(
      "count={0} min={1}{8} mean={2:.1f}{8} p50={3}{8} p90={4}{8} p99={5}{8} p99.9={6}{8} "
      "max={7}{8}",
      count(), min(), mean(), quantile(0.5), quantile(0.9), quantile(0.99), quantile(0.999), max(),
      unit);
}

}  // namespace helenus::base
