// PeerClock: what the monotonic clock of a peer shows, at the least, when the own one shows
// something. Of one connection: it knows nothing of a peer that was started again.
//
// An exchange is something asked at `asked` and answered at `heard` by our clock, in between at
// `theirs` by the peer's. At the moment of the answer the peer's clock was ahead of ours by no less
// than theirs - heard and no more than theirs - asked. The first of these errs towards the past,
// and by no more than the answer took. So a deadline that is told in the peer's time is never later
// there than it is here, whatever the way there takes.
//
// Clocks drift: what was measured loses kDriftMax of its age, and only the two last exchanges
// count. One that contradicts those before it says that a clock stood still or jumped, and then it
// alone counts.
//
// Pure.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "runtime/time.h"

namespace helenus::rpc {

class PeerClock {
 public:
  // How far two exchanges may contradict each other, and how far a request may seem to come from
  // the future (R3).
  static constexpr runtime::Duration kErrorMax = std::chrono::seconds(1);
  // Both clocks together: a part in so many.
  static constexpr int kDriftMax = 1000;

  // Requires: asked <= heard.
  void note(runtime::MonotonicTime asked, runtime::MonotonicTime theirs,
            runtime::MonotonicTime heard);
  // What their clock shows, or less, when ours shows `ours`, as far as is known `now`. None before
  // the first exchange; never stays never.
  std::optional<runtime::MonotonicTime> at_least(runtime::MonotonicTime ours,
                                                 runtime::MonotonicTime now) const;

 private:
  // By how much theirs is ahead.
  struct Exchange {
    runtime::Duration least{0};
    runtime::Duration most{0};
    runtime::MonotonicTime heard;
  };
  std::optional<runtime::Duration> least_ahead(runtime::MonotonicTime now) const;

  std::array<std::optional<Exchange>, 2> last_;  // the newer one first
};

// As it travels; the beginning of time is no moment of a request.
constexpr std::uint64_t microseconds_of(runtime::MonotonicTime time) {
  const auto count = std::chrono::floor<std::chrono::microseconds>(time.since_origin()).count();
  return count < 1 ? 1 : static_cast<std::uint64_t>(count);
}
constexpr runtime::MonotonicTime time_of(std::uint64_t microseconds) {
  constexpr std::uint64_t kMax = 4'000'000'000'000'000;  // a hundred years
  const auto count = static_cast<std::int64_t>(microseconds < kMax ? microseconds : kMax);
  return runtime::MonotonicTime(std::chrono::microseconds(count));
}

}  // namespace helenus::rpc
