// A wait that nobody needs, of any length up to a limit, where the simulator wants one:
//
//   if (runtime.buggify("log.group_waits")) {
//     static_cast<void>(co_await runtime::dawdle(runtime, kGroupWaitMax, stop));
//   }
#pragma once

#include "runtime/random.h"
#include "runtime/sleep.h"

namespace helenus::runtime {

// Requires: a limit above zero.
inline Sleep dawdle(Runtime& runtime, Duration limit, StopToken stop) {
  const Duration wait(runtime.random.below(static_cast<std::uint64_t>(limit.count())));
  return sleep_for(runtime, wait, std::move(stop));
}

}  // namespace helenus::runtime
