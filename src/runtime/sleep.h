// Waiting for a moment.
#pragma once

#include "runtime/operation.h"

namespace helenus::runtime {

class [[nodiscard]] Sleep final : public Operation<void> {
 public:
  Sleep(Runtime& runtime, MonotonicTime wake_at, StopToken stop)
      : Operation(runtime, {.deadline = MonotonicTime::never(), .stop = std::move(stop)}),
        alarm_(*this),
        wake_at_(wake_at) {}

 private:
  struct Alarm final : runtime::Timer {
    explicit Alarm(Sleep& sleep_) : sleep(sleep_) {}
    void fire() override { sleep.complete({}); }
    Sleep& sleep;
  };

  void start() override { runtime().timers.arm(alarm_, wake_at_); }
  void cancel() override {
    alarm_.disarm();
    complete(base::Error(base::Errc::cancelled));
  }

  Alarm alarm_;
  MonotonicTime wake_at_;
};

// Succeeds at that moment (at once if it has passed, after a turn of the loop), or fails with
// Errc::cancelled when stopped earlier.
inline Sleep sleep_until(Runtime& runtime, MonotonicTime wake_at, StopToken stop) {
  return {runtime, wake_at, std::move(stop)};
}
inline Sleep sleep_for(Runtime& runtime, Duration duration, StopToken stop) {
  return {runtime, runtime.clock.now() + duration, std::move(stop)};
}
// Lets others run.
inline Sleep yield_now(Runtime& runtime, StopToken stop = {}) {
  return {runtime, MonotonicTime(), std::move(stop)};
}

}  // namespace helenus::runtime
