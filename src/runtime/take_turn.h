// take_turn: how long work lets others run, and finds out whether it may go on.
//
// Work that may take longer than a slice (Executor::kSlice) awaits this after every little step: a
// few kilobytes, a few hundred rows, some ten microseconds. How long it goes on between two turns
// is a matter of time alone, whatever a step turns out to cost.
#pragma once

#include <utility>

#include "base/result.h"
#include "runtime/executor.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::runtime {

// Goes on behind what is ready on this core, or at once if the slice is not over. Of background
// work, that is behind all foreground work, but for its share. Costs no frame. Errors: cancelled,
// timeout.
class [[nodiscard]] Turn final : public Operation<void> {
 public:
  Turn(Runtime& runtime, Until until) : Operation(runtime, std::move(until)), alarm_(*this) {}

 private:
  struct Alarm final : runtime::Timer {
    explicit Alarm(Turn& turn_) : turn(turn_) {}
    void fire() override { turn.complete({}); }
    Turn& turn;
  };

  void start() override {
    if (runtime().executor.slice_is_over()) {
      runtime().timers.arm(alarm_, MonotonicTime());
    } else {
      complete({});
    }
  }
  void cancel() override {
    alarm_.disarm();
    complete(base::Error(base::Errc::cancelled));
  }

  Alarm alarm_;
};

inline Task<base::Result<void>> take_turn(Runtime& runtime, Until until) {
  co_return co_await Turn(runtime, std::move(until));
}

}  // namespace helenus::runtime
