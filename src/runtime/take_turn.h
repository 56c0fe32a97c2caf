// take_turn: how long work lets others run, and finds out whether it may go on.
#pragma once

#include "base/result.h"
#include "runtime/clock.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/sleep.h"
#include "runtime/task.h"

namespace helenus::runtime {

// Goes on behind what is ready on this core. Errors: cancelled, timeout.
inline Task<base::Result<void>> take_turn(Runtime& runtime, const Until& until) {
  if (until.stop.stop_requested()) co_return base::Error(base::Errc::cancelled);
  if (runtime.clock.now() >= until.deadline) co_return base::Error(base::Errc::timeout);
  co_return co_await yield_now(runtime, until.stop);
}

}  // namespace helenus::runtime
