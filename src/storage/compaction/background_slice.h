// end_slice: where background work lets others run.
//
// Flushes, compactions and merges of mutation files go in slices: so many bytes, or so much effort,
// counted by whoever does the work. They yield here and nowhere else between their waits for the
// disk, so this is the place where a queue of background work, or a share of the processor, would
// take hold. How fast they may write is another matter: rate_limiter.h.
#pragma once

#include <utility>

#include "runtime/runtime.h"
#include "runtime/sleep.h"
#include "runtime/stop_token.h"

namespace helenus::storage {

// Goes on behind what is ready on this core. To be awaited; costs no frame. Errors: cancelled.
inline auto end_slice(runtime::Runtime& runtime, runtime::StopToken stop) {
  return runtime::yield_now(runtime, std::move(stop));
}

}  // namespace helenus::storage
