// end_slice: where background work lets others run.
//
// Flushes, compactions and merges of mutation files go in steps: so many bytes, or so much effort,
// counted by whoever does the work. After each they come here, and go on at once unless their slice
// of the core is over (runtime/take_turn.h). They yield here and nowhere else between their waits
// for the disk. How fast they may write is another matter: rate_limiter.h.
#pragma once

#include <utility>

#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/take_turn.h"

namespace helenus::storage {

// To be awaited; costs no frame. Errors: cancelled.
inline runtime::Turn end_slice(runtime::Runtime& runtime, runtime::StopToken stop) {
  return {runtime, {.stop = std::move(stop)}};
}

}  // namespace helenus::storage
