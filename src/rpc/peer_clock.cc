#include "rpc/peer_clock.h"

#include <algorithm>

#include "base/assert.h"

namespace helenus::rpc {

using runtime::Duration;
using runtime::MonotonicTime;

void PeerClock::note(MonotonicTime asked, MonotonicTime theirs, MonotonicTime heard) {
  ASSERT(asked <= heard);
  const Exchange next{.least = theirs - heard, .most = theirs - asked, .heard = heard};
  const auto contradicts = [&](const std::optional<Exchange>& older) {
    return older && (next.least > older->most + kErrorMax || next.most + kErrorMax < older->least);
  };
  const bool is_first = std::ranges::any_of(last_, contradicts);
  last_[1] = is_first ? std::nullopt : last_[0];
  last_[0] = next;
}

std::optional<Duration> PeerClock::least_ahead(MonotonicTime now) const {
  std::optional<Duration> ahead;
  for (const auto& exchange : last_) {
    if (!exchange) continue;
    const Duration least = exchange->least - (now - exchange->heard) / kDriftMax;
    ahead = std::max(ahead.value_or(least), least);
  }
  return ahead;
}

std::optional<MonotonicTime> PeerClock::at_least(MonotonicTime ours, MonotonicTime now) const {
  const auto ahead = least_ahead(now);
  if (!ahead) return std::nullopt;
  return ours + *ahead;
}

}  // namespace helenus::rpc
