// StandstillWatch: notices that the loop of this core stood still: its process was stopped, its
// machine slept, or something else held it up. What clients sent meanwhile lay in sockets of which
// nobody knows since when (R3).
//
// A beat tells that the loop runs. Who is about to use what it has read looks first: when the last
// beat is older than it may be, everybody is told before anything is used.
//
// Core affinity: one core.
#pragma once

#include <functional>
#include <utility>

#include "runtime/clock.h"
#include "runtime/runtime.h"
#include "runtime/sleep.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"

namespace helenus::cql {

class StandstillWatch {
 public:
  // `stood_still` is called each time that the loop did so for `limit`, or nearly.
  StandstillWatch(runtime::Runtime& runtime, runtime::Duration limit,
                  std::function<void(runtime::Duration)> stood_still)
      : runtime_(runtime),
        limit_(limit),
        stood_still_(std::move(stood_still)),
        beat_at_(runtime.clock.now()) {}
  StandstillWatch(const StandstillWatch&) = delete;
  StandstillWatch& operator=(const StandstillWatch&) = delete;

  // Beats until stopped.
  runtime::Task<void> run(runtime::StopToken stop) {
    beat_at_ = runtime_.clock.now();
    while (co_await runtime::sleep_for(runtime_, limit_ / kBeatsInLimit, stop)) {
      look();
      beat_at_ = runtime_.clock.now();
    }
  }
  void look() {
    const auto now = runtime_.clock.now();
    const runtime::Duration since = now - beat_at_;
    if (since < limit_) return;
    beat_at_ = now;
    stood_still_(since);
  }

 private:
  static constexpr int kBeatsInLimit = 4;

  runtime::Runtime& runtime_;
  const runtime::Duration limit_;
  const std::function<void(runtime::Duration)> stood_still_;
  runtime::MonotonicTime beat_at_;
};

}  // namespace helenus::cql
