#include "storage/mutations/operation_screen.h"

#include <algorithm>

namespace helenus::storage {

using causality::OperationId;
using causality::OperationTime;

namespace {

// Keys that the filter has room for at first; it grows with what comes.
constexpr std::uint64_t kKeysAtFirst = 4096;

filters::Ticks ticks_of(std::int64_t monotonic_ns) {
  return static_cast<filters::Ticks>(monotonic_ns / 1'000'000);
}

}  // namespace

void OperationScreen::tell(std::int64_t wall_ns, std::int64_t monotonic_ns) {
  if (is_told_ && has_ids_) {
    const std::int64_t elapsed = std::max<std::int64_t>(monotonic_ns - monotonic_ns_, 0);
    const std::int64_t eighth = elapsed / 8;
    now_ns_ += std::clamp(wall_ns - now_ns_, elapsed - eighth, elapsed + eighth);
  } else {
    now_ns_ = wall_ns;
    if (floor_min_ != kNoOperation) {
      const std::int64_t least_ms = floor_min_.value() + options_.window_ms + options_.skew_ms;
      now_ns_ = std::max(now_ns_, least_ms * kNsPerMs);
    }
  }
  is_told_ = true;
  monotonic_ns_ = std::max(monotonic_ns_, monotonic_ns);
  if (filter_) filter_->advance_to(ticks_of(monotonic_ns_));
}

OperationTime OperationScreen::floor() const {
  const OperationTime floor{now_ns_ / kNsPerMs - options_.window_ms - options_.skew_ms};
  return std::max(floor, floor_min_);
}

OperationScreen::Answer OperationScreen::judge(const OperationId& id) const {
  const OperationTime time = causality::time_of(id);
  if (time <= floor()) return Answer::expired;
  if (time.value() > now().value() + options_.skew_ms) return Answer::from_the_future;
  if (is_blind_) return Answer::perhaps_known;
  const bool is_perhaps_known = filter_ && filter_->contains(base::ByteView(id));
  return is_perhaps_known ? Answer::perhaps_known : Answer::surely_new;
}

void OperationScreen::remember(const OperationId& id) {
  has_ids_ = true;
  if (is_blind_) return;
  if (!filter_) {
    // An id may come that is `skew` ahead, and the clock may be drawn back by an eighth.
    const std::int64_t longest = (options_.window_ms + 2 * options_.skew_ms) * 5 / 4 + 1000;
    auto made =
        filters::SlicedForgetful::with_options({.window = static_cast<filters::Ticks>(longest),
                                                .rate_max = options_.false_positive_rate,
                                                .capacity = kKeysAtFirst,
                                                .memory_bytes_max = options_.memory_bytes_max});
    if (!made) return go_blind();
    filter_ = *std::move(made);
    filter_->advance_to(ticks_of(monotonic_ns_));
  }
  if (filter_->insert_if_absent(base::ByteView(id)) == filters::Admission::shed) go_blind();
}

}  // namespace helenus::storage
