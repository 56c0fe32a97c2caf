#include "replication/cluster/answer_times.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.h"

namespace helenus::replication {

using model::NodeId;
using runtime::Duration;
using runtime::MonotonicTime;

// Below four microseconds a bucket each; every doubling behind that has four.
std::size_t RecentTimes::bucket_of(std::uint64_t microseconds) {
  if (microseconds < kBucketsPerDoubling) return static_cast<std::size_t>(microseconds);
  const auto doubling = static_cast<std::size_t>(std::bit_width(microseconds)) - 1;
  const std::size_t part = (microseconds >> (doubling - 2)) & (kBucketsPerDoubling - 1);
  return std::min((doubling - 1) * kBucketsPerDoubling + part, kBuckets - 1);
}

std::uint64_t RecentTimes::end_of(std::size_t bucket) {
  if (bucket < kBucketsPerDoubling) return bucket + 1;
  const std::size_t doubling = bucket / kBucketsPerDoubling + 1;
  const std::uint64_t part = bucket % kBucketsPerDoubling;
  return (kBucketsPerDoubling + part + 1) << (doubling - 2);
}

void RecentTimes::record(Duration time) {
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  ++buckets_[bucket_of(static_cast<std::uint64_t>(std::max<std::int64_t>(microseconds, 0)))];
  if (++count_ < kHalvedAt) return;
  count_ = 0;
  for (std::uint16_t& bucket : buckets_) {
    bucket = static_cast<std::uint16_t>(bucket / 2);
    count_ += bucket;
  }
}

Duration RecentTimes::quantile(double q) const {
  ASSERT(count_ > 0 && q > 0 && q <= 1);
  const auto wanted = static_cast<std::uint32_t>(
      std::max(1.0, std::min(q * count_ + 0.999999, static_cast<double>(count_))));
  std::uint32_t seen = 0;
  std::size_t bucket = 0;
  for (; bucket + 1 < kBuckets; ++bucket) {
    seen += buckets_[bucket];
    if (seen >= wanted) break;
  }
  return std::chrono::microseconds(end_of(bucket));
}

AnswerTimes::Asked::Asked(AnswerTimes& times, NodeId node, Kind kind, MonotonicTime now)
    : peer_(times.peers_[node]), kind_(kind), began_at_(now), before_(peer_.newest) {
  (before_ == nullptr ? peer_.oldest : before_->behind_) = this;
  peer_.newest = this;
}

void AnswerTimes::Asked::unlink() {
  (before_ == nullptr ? peer_.oldest : before_->behind_) = behind_;
  (behind_ == nullptr ? peer_.newest : behind_->before_) = before_;
  is_open_ = false;
}

void AnswerTimes::Asked::answered(MonotonicTime now) {
  peer_.times[static_cast<std::size_t>(kind_)].record(now - began_at_);
  refused(now);
}

void AnswerTimes::Asked::refused(MonotonicTime now) {
  ASSERT(is_open_);
  unlink();
  peer_.answered_at = now;
  peer_.is_silent = false;
}

void AnswerTimes::Asked::given_up(MonotonicTime now) {
  ASSERT(is_open_);
  peer_.is_silent = peer_.is_suspected(now);
  unlink();
}

AnswerTimes::Asked::~Asked() {
  if (is_open_) unlink();
}

Duration AnswerTimes::Peer::patience(Kind kind) const {
  const RecentTimes& recent = times[static_cast<std::size_t>(kind)];
  if (recent.empty()) return kSuspectAfterMin;
  return std::clamp<Duration>(3 * recent.quantile(0.99), kSuspectAfterMin, kSuspectAfterMax);
}

bool AnswerTimes::Peer::is_suspected(MonotonicTime now) const {
  if (is_silent) return true;
  if (oldest == nullptr) return false;
  const auto silent_for = now - std::max(oldest->began_at_, answered_at);
  return silent_for >= kSuspectAfterMin && silent_for >= patience(oldest->kind_);
}

bool AnswerTimes::is_suspected(NodeId node, MonotonicTime now) const {
  const auto found = peers_.find(node);
  return found != peers_.end() && found->second.is_suspected(now);
}

bool AnswerTimes::claim_probe(NodeId node, MonotonicTime now) {
  Peer& peer = peers_[node];
  if (now < peer.probe_not_before) return false;
  peer.probe_not_before = now + kProbePeriod;
  return true;
}

std::optional<Duration> AnswerTimes::usual(NodeId node, Kind kind, double quantile) const {
  const auto found = peers_.find(node);
  if (found == peers_.end()) return std::nullopt;
  const RecentTimes& recent = found->second.times[static_cast<std::size_t>(kind)];
  if (recent.empty()) return std::nullopt;
  return recent.quantile(quantile);
}

}  // namespace helenus::replication
